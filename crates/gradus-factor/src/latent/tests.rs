//! Laws of the fitted model in use: lists for many users, new items, new ratings.

use super::*;
use crate::{Als, Ials};
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit, Fitted};
use gradus_core::recommend::{Categories, Profile};
use gradus_core::update::UpdateOptions;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, RatingsBuilder};
use gradus_kernel::padded;

/// A model of random factors, coarse enough for ties, with rows of zeros.
fn random(seed: u64, n_users: usize, n_items: usize, k: usize, biases: bool) -> LatentFactors {
    let mut stream = Stream::new(seed, "tests.latent", 0);
    let mut rows = |n: usize, every: usize| {
        let mut rows = Rows::zeros(n, k);
        for row in 0..n {
            let size = 0.2 + stream.below(10) as f32 / 4.0;
            for value in &mut rows.row_mut(row)[..k] {
                *value = size * (stream.below(9) as f32 - 4.0) / 4.0;
            }
            if row % every == every - 1 {
                rows.row_mut(row).fill(0.0);
            }
        }
        rows
    };
    let (user_factors, mut item_factors) = (rows(n_users, 7), rows(n_items, 11));
    // Twins: their scores tie for everyone.
    for item in (0..n_items.saturating_sub(1)).step_by(5) {
        let twin = item_factors.row(item).to_vec();
        item_factors.row_mut(item + 1).copy_from_slice(&twin);
    }
    let mut bias = |n: usize| -> Vec<f32> {
        (0..n).map(|_| if biases { stream.below(5) as f32 / 4.0 - 0.5 } else { 0.0 }).collect()
    };
    let (user_bias, item_bias) = (bias(n_users), bias(n_items));
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for user in 0..n_users {
        // Some have seen nearly everything, some nothing.
        let share = [0, 1, 3, 90][user % 4];
        indices.extend((0..n_items as u32).filter(|_| stream.below(100) < share));
        indptr.push(indices.len());
    }
    let values = vec![1.0; indices.len()];
    let rule = Squares {
        regularization: 0.1,
        scaling: Scaling::Count,
        biases,
        bias_regularization: biases.then_some([3.0, 5.0]),
    };
    LatentFactors {
        users: Ids::range(n_users),
        items: Ids::range(n_items),
        mean: 3.25,
        user_bias,
        item_bias,
        user_factors,
        item_factors,
        fold_in: FoldIn::Squares(rule),
        implicit_factors: None,
        normal: None,
        link: RatingLink::Identity,
        range: None,
        history: Some(History {
            ratings: Arc::new(Csr::new(n_items, indptr, indices, values).unwrap()),
            weights: None,
        }),
        side: [None, None],
        unobserved: [None, None],
        added: 0,
        items_base: OnceLock::new(),
        users_base: OnceLock::new(),
        level: Level::best(),
    }
}

/// The list of a user by scoring and sorting everything.
fn sorted(model: &LatentFactors, user: u32, n: usize, filter: &Filter) -> Vec<Scored> {
    let history = model.history().unwrap();
    let seen = history.row(user as usize).0;
    let vector = model.query_vector(&Recipient::User(user)).unwrap().0;
    let mut counts = vec![0; model.items.len()];
    history.indices().iter().for_each(|&item| counts[item as usize] += 1);
    let mut all: Vec<Scored> = (0..model.items.len() as u32)
        .filter(|item| filter.include_seen || !seen.contains(item))
        .filter(|item| filter.allow.as_ref().is_none_or(|allow| allow.contains(item)))
        .filter(|item| !filter.deny.contains(item))
        .filter(|&item| {
            let count = counts[item as usize];
            count >= filter.min_count && filter.max_count.is_none_or(|most| count <= most)
        })
        .map(|item| Scored { item, score: model.score_of_item(&vector, item as usize) })
        .collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
    if let Some(categories) = &filter.categories {
        let mut counts = std::collections::HashMap::new();
        all.retain(|scored| match categories.of_item[scored.item as usize] {
            Some(category) => {
                let count = counts.entry(category).or_insert(0);
                *count += 1;
                *count <= categories.max
            }
            None => true,
        });
    }
    all.truncate(n);
    all
}

fn bits(list: &[Scored]) -> Vec<(u32, u32)> {
    list.iter().map(|scored| (scored.item, scored.score.to_bits())).collect()
}

#[test]
fn lists_of_many_users_are_those_of_a_full_sort_to_the_last_bit() {
    for (seed, (k, n_items, biases)) in
        [(1, 300, true), (3, 500, false), (16, 700, true), (40, 333, false), (64, 900, true)]
            .into_iter()
            .enumerate()
    {
        let mut model = random(seed as u64, 150, n_items, k, biases);
        let of_item = (0..n_items as u32).map(|item| (item % 9 > 0).then_some(item % 9)).collect();
        let filters = [
            Filter::default(),
            Filter { include_seen: true, ..Filter::default() },
            Filter { deny: (0..50).collect(), min_count: 30, ..Filter::default() },
            Filter { allow: Some((20..290).collect()), max_count: Some(33), ..Filter::default() },
            Filter { allow: Some(vec![]), ..Filter::default() },
            Filter {
                categories: Some(Categories { of_item, max: 2 }),
                include_seen: true,
                ..Filter::default()
            },
        ];
        let users: Vec<u32> = (0..150).chain([3, 3, 149]).collect();
        for level in Level::available() {
            model.level = level;
            for (at, filter) in filters.iter().enumerate() {
                for n in [0, 1, 12, 2 * n_items] {
                    let found = model.top_many(&users, n, filter).unwrap();
                    assert_eq!(found.len(), users.len());
                    for (&user, list) in users.iter().zip(&found).step_by(9) {
                        let want = sorted(&model, user, n, filter);
                        assert_eq!(bits(list), bits(&want), "{level} k={k} {at} n={n} {user}");
                        let one = model.top(&Recipient::User(user), n, filter).unwrap();
                        assert_eq!(bits(&one), bits(&want), "{level} k={k} {at} n={n} {user}");
                    }
                }
            }
        }
    }
}

#[test]
fn extreme_factors_lose_nothing() {
    for scale in [1e-30f32, 1e-12, 1e6, 1e15] {
        let mut model = random(9, 40, 400, 20, true);
        for user in (0..40).step_by(3) {
            model.user_factors.row_mut(user).iter_mut().for_each(|x| *x *= scale);
        }
        for item in (0..400).step_by(4) {
            model.item_factors.row_mut(item).iter_mut().for_each(|x| *x *= scale);
        }
        // One value far above the others is what rounding to a few bits likes least.
        model.item_factors.row_mut(7)[0] = 1e3;
        model.user_factors.row_mut(8)[19] = -1e3;
        model.item_bias[9] = 1e5;
        let users: Vec<u32> = (0..40).collect();
        let filter = Filter::default();
        for (&user, list) in users.iter().zip(model.top_many(&users, 10, &filter).unwrap()) {
            assert_eq!(bits(&list), bits(&sorted(&model, user, 10, &filter)), "{scale} {user}");
        }
    }
}

#[test]
fn lists_do_not_depend_on_threads_or_company() {
    let model = random(5, 300, 600, 24, true);
    let users: Vec<u32> = (0..300).rev().collect();
    let lists = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| model.top_many(&users, 12, &Filter::default()).unwrap())
    };
    let one = lists(1);
    assert_eq!(one, lists(2));
    assert_eq!(one, lists(7));
    assert_eq!(one[5], model.top_many(&users[5..6], 12, &Filter::default()).unwrap()[0]);
    assert_eq!(model.top_many(&[], 12, &Filter::default()).unwrap(), Vec::<Vec<Scored>>::new());
    let said = model.top_many(&[0, 300], 3, &Filter::default()).unwrap_err().to_string();
    assert!(said.contains("300"), "{said}");
    let far = Filter { deny: vec![600], ..Filter::default() };
    assert!(model.top_many(&[0], 3, &far).is_err());
}

#[test]
fn users_and_items_trade_places() {
    let model = random(6, 60, 80, 6, true);
    let history = model.history().unwrap();
    for item in [0u32, 33, 79] {
        let found = model.top_users(item, 10, false).unwrap();
        let mut want: Vec<ScoredUser> = (0..60)
            .filter(|&user| !history.row(user as usize).0.contains(&item))
            .map(|user| {
                let vector = model.query_vector(&Recipient::User(user)).unwrap().0;
                ScoredUser { user, score: model.score_of_item(&vector, item as usize) }
            })
            .collect();
        want.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.user.cmp(&b.user)));
        want.truncate(10);
        assert_eq!(found, want);
        assert_eq!(model.top_users(item, 100, true).unwrap().len(), 60);
    }
    assert!(model.top_users(80, 10, false).is_err());
    let near = model.similar_users(4, 100).unwrap();
    let cosine = |a: usize, b: usize| {
        let (a, b) = (model.user_factors(a), model.user_factors(b));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    // Every seventh user has no factors, and is like nobody.
    assert_eq!(near.len(), 60 - 60 / 7 - 1);
    assert!(near.iter().all(|s| (s.score - cosine(4, s.user as usize)).abs() < 1e-5));
    assert!(near.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!(model.similar_users(6, 3).unwrap_err().to_string().contains("user `6`"));
    assert!(model.similar_users(60, 3).is_err());
}

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(90, 50, 1500) }.make(seed).unwrap().ratings
}

fn fitted(data: &Ratings) -> Fitted<Als> {
    let count = Als::new().scaling(Scaling::Count).regularization(0.05);
    count.rank(5).max_iter(6).tol(0.0).fit(data).unwrap()
}

#[test]
fn an_item_folded_in_by_its_ratings_solves_its_row() {
    let model = fitted(&made(1)).model;
    let (users, values) = (vec![40u32, 3, 77, 12], vec![5.0f32, 2.0, 4.0, 4.0]);
    let (bias, factors) = model.fold_in_item(&users, &values).unwrap();
    assert_eq!(factors.len(), 5);
    // The gradient of the row's objective is zero there.
    let FoldIn::Squares(rule) = model.fold_in else { panic!("{:?}", model.fold_in) };
    let (lambda, of_bias) = rule.of_items().of(4, None);
    let lambda = f64::from(lambda);
    let mut gradient: Vec<f64> = factors.iter().map(|&x| lambda * f64::from(x)).collect();
    let mut of_bias = f64::from(of_bias.unwrap()) * f64::from(bias);
    for (&user, &value) in users.iter().zip(&values) {
        let row = model.user_factors(user as usize);
        let product: f64 =
            row.iter().zip(&factors).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
        let rest = f64::from(value) - model.mean() - f64::from(model.user_bias()[user as usize]);
        let error = product + f64::from(bias) - rest;
        gradient.iter_mut().zip(row).for_each(|(sum, &x)| *sum += error * f64::from(x));
        of_bias += error;
    }
    assert!(gradient.iter().chain([&of_bias]).all(|g| g.abs() < 1e-4), "{gradient:?} {of_bias}");
    for (users, values, words) in [
        (vec![], vec![], "no ratings"),
        (vec![90], vec![1.0], "user index 90 is not below 90"),
        (vec![1, 1], vec![1.0, 2.0], "rated twice"),
        (vec![1], vec![f32::NAN], "NaN"),
        (vec![1], vec![], "expected 1"),
    ] {
        let said = model.fold_in_item(&users, &values).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
}

/// Ratings of known and new users and items, ids between, before and behind the known ones.
fn events(seed: u64, weighted: bool) -> Ratings {
    let mut stream = Stream::new(seed, "tests.events", 0);
    let mut builder = RatingsBuilder::new();
    for _ in 0..25 {
        let user = stream.below(120) as i64 - 10;
        let item = stream.below(70) as i64 - 8;
        let value = 1.0 + stream.below(5) as f32;
        match weighted {
            true => builder.push_weighted(Id::Int(user), Id::Int(item), value, 2.0).unwrap(),
            false => builder.push(Id::Int(user), Id::Int(item), value).unwrap(),
        }
    }
    builder.finish(Duplicates::Last).unwrap()
}

/// The data of a model with integer ids: the generator's items are titles.
fn numbered(seed: u64) -> Ratings {
    let data = made(seed);
    let users = Ids::range(data.n_users());
    Ratings::from_by_user(users, Ids::range(data.n_items()), data.by_user().clone()).unwrap()
}

#[test]
fn touched_rows_are_solved_exactly_and_all_others_keep_their_bits() {
    for (seed, items, weighted) in
        [(1, false, false), (2, true, false), (3, false, true), (4, true, true)]
    {
        let data = numbered(seed);
        let before = fitted(&data);
        let events = events(seed, weighted);
        let mut after = before.clone();
        let how = UpdateOptions { items, ..UpdateOptions::default() };
        let updated = after.update(&events, &how).unwrap();

        // All rows as if read from one file.
        let mut builder = RatingsBuilder::new();
        for part in [&data, &events] {
            for r in part.iter() {
                let (user, item) =
                    (part.users().get(r.user as usize), part.items().get(r.item as usize));
                match weighted {
                    true => builder.push_weighted(user, item, r.value, r.weight).unwrap(),
                    false => builder.push(user, item, r.value).unwrap(),
                }
            }
        }
        let merged = builder.finish(Duplicates::Last).unwrap();
        assert_eq!((after.users(), after.items()), (merged.users(), merged.items()));
        assert_eq!(after.history().unwrap(), merged.by_user());
        assert_eq!(updated.events, events.len());
        assert_eq!(updated.new_users, merged.n_users() - data.n_users());
        assert_eq!(updated.new_items, merged.n_items() - data.n_items());
        assert_eq!(data.len() + events.len() - updated.changed, merged.len());

        let mut rows = 0;
        for (user, id) in merged.users().iter().enumerate() {
            if events.users().find(id).is_some() {
                rows += 1;
                let (items, values) = merged.by_user().row(user);
                let range = merged.by_user().range(user);
                let weights = merged.weights_by_user().map(|weights| &weights[range]);
                let solved = after.solve_user(items, values, weights, None);
                assert_eq!(after.user_factors.row(user), solved.factors, "user {id}");
                assert_eq!(after.user_bias[user], solved.bias, "user {id}");
            } else {
                let old = data.users().find(id).unwrap() as usize;
                assert_eq!(after.user_factors.row(user), before.user_factors.row(old));
                assert_eq!(after.user_bias[user], before.user_bias[old]);
            }
        }
        // Items were solved with the users as they were; new users count as zero.
        let mut past = after.model.clone();
        for (user, id) in merged.users().iter().enumerate() {
            let old = data.users().find(id).map(|old| old as usize);
            let zero = vec![0.0; padded(5)];
            let row = old.map_or(zero.as_slice(), |old| before.user_factors.row(old));
            past.user_factors.row_mut(user).copy_from_slice(row);
            past.user_bias[user] = old.map_or(0.0, |old| before.user_bias[old]);
        }
        for (item, id) in merged.items().iter().enumerate() {
            let old = data.items().find(id).map(|old| old as usize);
            let touched = events.items().find(id).is_some();
            match old {
                Some(old) if !(touched && items) => {
                    assert_eq!(after.item_factors.row(item), before.item_factors.row(old));
                    assert_eq!(after.item_bias[item], before.item_bias[old]);
                }
                _ => {
                    rows += 1;
                    let (users, values) = merged.by_item().row(item);
                    let range = merged.by_item().range(item);
                    let weights = merged.weights_by_item().map(|weights| &weights[range]);
                    let solved = past.solve_item(users, values, weights, None).unwrap();
                    assert_eq!(after.item_factors.row(item), solved.factors, "item {id}");
                    assert_eq!(after.item_bias[item], solved.bias, "item {id}");
                }
            }
        }
        assert_eq!(updated.rows_solved, rows);
        assert!(after.report.notes.iter().any(|note| note.ends_with(&events.len().to_string())));
    }
}

#[test]
fn a_model_goes_on_after_an_update() {
    let data = numbered(5);
    let mut model = fitted(&data);
    let first = events(5, false);
    model.update(&first, &UpdateOptions::default()).unwrap();
    let bytes = model.to_bytes().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gradus");
    model.save(&path).unwrap();
    let mut again = Fitted::<Als>::load(&path).unwrap();
    assert_eq!(again.to_bytes().unwrap(), bytes);
    let second = events(6, true);
    let (a, b) = (
        model.update(&second, &UpdateOptions::default()).unwrap(),
        again.update(&second, &UpdateOptions::default()).unwrap(),
    );
    assert_eq!((a, a.since_fit), (b, (first.len() + second.len()) as u64));
    assert_eq!(model.to_bytes().unwrap(), again.to_bytes().unwrap());
    assert_eq!(model.report.notes.iter().filter(|note| note.contains("added")).count(), 1);
    let users: Vec<u32> = (0..model.users().len() as u32).collect();
    let lists = model.top_many(&users, 5, &Filter::default()).unwrap();
    for (user, list) in users.iter().zip(lists) {
        let seen = model.history().unwrap().row(*user as usize).0;
        assert!(list.iter().all(|scored| !seen.contains(&scored.item)));
    }
}

#[test]
fn what_cannot_be_added_leaves_the_model_as_it_was() {
    let data = numbered(7);
    let mut model = fitted(&data);
    let bytes = model.to_bytes().unwrap();
    let twice = UpdateOptions { duplicates: Duplicates::Error, items: false };
    assert!(model.update(&data, &twice).unwrap_err().to_string().contains("before"));
    let nothing = data.filter(|_| false);
    assert_eq!(model.update(&nothing, &UpdateOptions::default()).unwrap().rows_solved, 0);
    assert_eq!(model.to_bytes().unwrap(), bytes);
    // What is known already changes nothing: the users' rows are solved already.
    let half = data.filter(|at| at % 2 == 0);
    model.update(&half, &UpdateOptions::default()).unwrap();
    let before = fitted(&data);
    assert_eq!(model.user_factors, before.user_factors);
    let mut forgetful =
        Als::new().rank(2).regularization(1.0).keep_history(false).fit(&data).unwrap();
    let said = forgetful.update(&half, &UpdateOptions::default()).unwrap_err().to_string();
    assert!(said.contains("keep_history"), "{said}");
}

#[test]
fn an_axis_of_integers_can_turn_to_text() {
    let data = numbered(8);
    let mut model = fitted(&data);
    let before = model.clone();
    let events = Ratings::from_triplets([
        (Id::Text("ann"), Id::Int(3), 5.0),
        (Id::Int(12), Id::Text("Alien"), 4.0),
    ])
    .unwrap();
    model.update(&events, &UpdateOptions::default()).unwrap();
    for (old, id) in data.users().iter().enumerate() {
        let new = model.users().find(id).unwrap() as usize;
        if id != Id::Int(12) {
            assert_eq!(model.user_factors.row(new), before.user_factors.row(old), "user {id}");
        }
        let rated = |model: &LatentFactors, row: usize| -> Vec<String> {
            let items = model.history().unwrap().row(row).0;
            let mut names: Vec<String> =
                items.iter().map(|&item| model.items().get(item as usize).to_string()).collect();
            names.sort_unstable();
            names
        };
        if id != Id::Int(12) {
            assert_eq!(rated(&model, new), rated(&before, old), "user {id}");
        }
        assert!(model.history().unwrap().row(new).0.is_sorted());
    }
    assert_eq!(model.items().find(Id::Text("Alien")).map(|at| at as usize), Some(50));
    let profile = Profile { items: vec![1, 2], values: vec![5.0, 1.0] };
    assert!(model.top(&Recipient::Profile(&profile), 3, &Filter::default()).is_ok());
}

#[test]
fn an_item_folded_in_before_an_update_leaves_no_trace_in_it() {
    // What was summed over all users for the item did not count the users that came after.
    let data = numbered(5);
    let events = Ratings::from_triplets([
        (Id::Int(900_001), Id::Int(900_001), 1.0),
        (Id::Int(900_002), Id::Int(900_001), 1.0),
        (data.users().get(3), Id::Int(900_001), 1.0),
        (data.users().get(4), data.items().get(6), 1.0),
    ])
    .unwrap();
    for items in [false, true] {
        let how = UpdateOptions { items, ..UpdateOptions::default() };
        let fitted = || Ials::new().rank(4).biases(true).unobserved(0.5).fit(&data).unwrap();
        let (mut plain, mut asked) = (fitted(), fitted());
        asked.model.fold_in_item(&[0, 1], &[1.0, 1.0]).unwrap();
        plain.model.updater().unwrap().update(&events, &how).unwrap();
        asked.model.updater().unwrap().update(&events, &how).unwrap();
        assert_eq!(plain.to_bytes().unwrap(), asked.to_bytes().unwrap());
    }
}

#[test]
fn the_penalty_of_a_row_grows_with_its_weight_and_that_of_a_bias_does_not() {
    let rule = |scaling, bias_regularization| Squares {
        regularization: 0.5,
        scaling,
        biases: true,
        bias_regularization,
    };
    let weights = [0.5f32, 0.0, 3.5];
    for (scaling, by_count, by_weight) in
        [(Scaling::Count, 4.5, 2.0), (Scaling::Sqrt, 1.5, 1.0), (Scaling::None, 0.5, 0.5)]
    {
        let new = rule(scaling, Some([3.0, 7.0]));
        assert_eq!(new.of_users().of(9, None), (by_count, Some(3.0)));
        assert_eq!(new.of_items().of(3, Some(&weights)), (by_weight, Some(7.0)));
        // Models of 0.1 had one penalty for both.
        assert_eq!(rule(scaling, None).of_users().of(9, None), (by_count, Some(by_count)));
        let none = Squares { biases: false, ..new };
        assert_eq!(none.of_items().of(9, None), (by_count, None));
    }
}
