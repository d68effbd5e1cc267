//! Side information of `ials`.

use super::tests::table;
use crate::ials::{Ials, IalsSolver};
use crate::latent::LatentFactors;
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit as _, Fitted, Job, Model as _};
use gradus_core::iterate::Checkpoint;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend as _};
use gradus_core::update::{Update as _, UpdateOptions};
use gradus_data::{Entity, Id, IdVec, Ratings, SideTable};
use gradus_file::{Reader, Writer};
use std::time::Duration;

/// Interactions that follow the features of users and items, and those of cold ones.
struct Planted {
    train: Ratings,
    users: SideTable,
    items: SideTable,
    /// The items that each cold user takes, and the users that take each cold item.
    of_users: Vec<(i64, Vec<i64>)>,
    of_items: Vec<(i64, Vec<i64>)>,
}

const USERS: i64 = 400;
const ITEMS: i64 = 240;

fn side(n: i64, noise: usize, seed: u64) -> SideTable {
    let ids: IdVec = (0..n).map(Id::Int).collect();
    SideTable::from_ids(&ids, &table(n as usize, noise, seed), &mut Vec::new()).unwrap()
}

/// Users like items whose features agree with theirs, if the features say anything.
fn planted(noise: usize, informative: bool, seed: u64) -> Planted {
    planted_with(noise, if informative { 1.0 } else { 0.0 }, 0.5, seed)
}

/// `explained` is the size of what features say, `own` of what they do not.
fn planted_with(noise: usize, explained: f64, own: f64, seed: u64) -> Planted {
    let (users, items) = (side(USERS, noise, seed), side(ITEMS, noise, seed + 1));
    // A direction for each feature, the same on both sides; the tables have the same columns.
    let rank = 3;
    let place = |table: &SideTable, n: i64, seed: u64| -> Vec<Vec<f64>> {
        let mut centre = vec![0.0; rank];
        let mut all: Vec<Vec<f64>> = (0..n)
            .map(|row| {
                let mut stream = Stream::new(seed, "own", row as u64);
                let mut x: Vec<f64> = (0..rank).map(|_| own * stream.normal()).collect();
                let features = table.row(row as usize);
                for (&feature, &value) in features.indices.iter().zip(&features.values) {
                    let mut way = Stream::new(77, "way", u64::from(feature));
                    x.iter_mut().for_each(|x| *x += explained * f64::from(value) * way.normal());
                }
                x
            })
            .collect();
        for x in &all {
            centre.iter_mut().zip(x).for_each(|(c, x)| *c += x / n as f64);
        }
        for x in &mut all {
            x.iter_mut().zip(&centre).for_each(|(x, c)| *x -= c);
        }
        all
    };
    let (of_users, of_items) = (place(&users, USERS, seed + 2), place(&items, ITEMS, seed + 3));
    let mut stream = Stream::new(seed, "taken", 0);
    let (mut train, mut cold_users, mut cold_items) = (Vec::new(), Vec::new(), Vec::new());
    let is_cold = |user: i64, item: i64| (user >= USERS - 40, item >= ITEMS - 24);
    for user in 0..USERS {
        for item in 0..ITEMS {
            let pair = of_users[user as usize].iter().zip(&of_items[item as usize]);
            let agree: f64 = pair.map(|(a, b)| a * b).sum();
            if stream.uniform() < 0.9 / (1.0 + (2.8 - 1.2 * agree).exp()) {
                match is_cold(user, item) {
                    (false, false) => train.push((Id::Int(user), Id::Int(item), 1.0)),
                    (true, false) => cold_users.push((user, item)),
                    (false, true) => cold_items.push((item, user)),
                    (true, true) => {}
                }
            }
        }
    }
    let grouped = |pairs: Vec<(i64, i64)>| {
        let mut groups: Vec<(i64, Vec<i64>)> = Vec::new();
        let mut pairs = pairs;
        pairs.sort_unstable();
        for (one, other) in pairs {
            match groups.last_mut().filter(|group| group.0 == one) {
                Some(group) => group.1.push(other),
                None => groups.push((one, vec![other])),
            }
        }
        groups
    };
    Planted {
        train: Ratings::from_triplets(train).unwrap(),
        users,
        items,
        of_users: grouped(cold_users),
        of_items: grouped(cold_items),
    }
}

impl Planted {
    fn with(&self, which: &[Entity]) -> Ratings {
        which.iter().fold(self.train.clone(), |ratings, &of| {
            let table = if of == Entity::User { &self.users } else { &self.items };
            ratings.with_features(of, table).unwrap()
        })
    }
}

fn params() -> Ials {
    Ials::new().rank(8).regularization(0.02).unobserved(0.1).max_iter(12).tol(0.0)
}

fn fit(data: &Ratings) -> Fitted<Ials> {
    params().fit(data).unwrap()
}

/// The mean share of hits in the first ten of the lists of cold users, and of the users who are ranked for
/// cold items.
fn hits(model: &LatentFactors, planted: &Planted) -> (f64, f64) {
    let mut of_users = Vec::new();
    for (user, taken) in &planted.of_users {
        let user = model.users().find(Id::Int(*user)).unwrap();
        let list = model.top(&Recipient::User(user), 10, &Filter::default()).unwrap();
        let hit = |item: u32| matches!(model.items().get(item as usize), Id::Int(id) if taken.contains(&id));
        of_users.push(list.iter().filter(|s| hit(s.item)).count() as f64 / 10.0);
    }
    let mut of_items = Vec::new();
    for (item, takers) in &planted.of_items {
        let item = model.items().find(Id::Int(*item)).unwrap();
        let list = model.top_users(item, 10, false).unwrap();
        let hit = |user: u32| matches!(model.users().get(user as usize), Id::Int(id) if takers.contains(&id));
        of_items.push(list.iter().filter(|s| hit(s.user)).count() as f64 / 10.0);
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    (mean(&of_users), mean(&of_items))
}

#[test]
fn planted_maps_are_recovered() {
    let planted = planted(0, true, 1);
    let fitted = fit(&planted.with(&Entity::ALL));
    let trace: Vec<f64> = fitted.report.trace.iter().map(|point| point.objective).collect();
    assert!(trace.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-6)), "{trace:?}");
    let (of_users, of_items) = hits(&fitted, &planted);
    // What features that say nothing come to: the most popular items.
    let (chance_users, chance_items) = {
        let silent = Ials { feature_regularization: Some(1e9), ..params() };
        hits(&silent.fit(&planted.with(&Entity::ALL)).unwrap(), &planted)
    };
    assert!(of_users > 1.5 * chance_users, "{of_users} for {chance_users}");
    assert!(of_items > 1.5 * chance_items, "{of_items} for {chance_items}");
}

#[test]
fn features_of_noise_do_no_harm() {
    for seed in [1, 2] {
        let planted = planted(20, false, seed);
        let error = |of: &[Entity]| {
            let (train, test) = planted.with(of).partition(|at| at % 5 != 0);
            let job = Job::default().validation(&test);
            params().patience(0).fit_job(&train, &job).unwrap().report.validation.unwrap()
        };
        // Only users, so that the same items are ranked.
        let (plain, noisy) = (error(&[]), error(&[Entity::User]));
        assert!((noisy - plain).abs() < 1e-3, "{noisy} for {plain}");
    }
}

fn bits(model: &LatentFactors) -> Vec<u8> {
    let mut file = Writer::new("x");
    model.write(&mut file);
    file.to_bytes().unwrap()
}

#[test]
fn the_same_bits_on_any_number_of_threads_by_all_solvers() {
    let data = planted(1, true, 4).with(&Entity::ALL);
    for solver in [IalsSolver::Cholesky, IalsSolver::Cg, IalsSolver::Blocks] {
        for biases in [false, true] {
            let fit = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let params = params().solver(solver).biases(biases).max_iter(6);
                let fitted = pool.install(|| params.fit(&data).unwrap());
                let trace: Vec<f64> = fitted.report.trace.iter().map(|p| p.objective).collect();
                let falls = trace.windows(2).all(|p| p[1] <= p[0] * (1.0 + 1e-6));
                assert!(falls, "{solver:?} {trace:?}");
                bits(&fitted)
            };
            let one = fit(1);
            assert!([2, 7].iter().all(|&threads| fit(threads) == one), "{solver:?}");
        }
    }
}

#[test]
fn a_killed_fit_goes_on_to_the_same_bits() {
    let data = planted(1, true, 5).with(&Entity::ALL);
    let params = params().max_iter(8);
    let whole = params.fit(&data).unwrap();
    let folder = std::env::temp_dir().join(format!("gradus-ials-side-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("checkpoint");
    let checkpoint = |resume| Checkpoint { path: path.clone(), every: Duration::ZERO, resume };
    let short = params.clone().max_iter(3);
    short.fit_job(&data, &Job::default().checkpoint(checkpoint(false))).unwrap();
    let again = params.fit_job(&data, &Job::default().checkpoint(checkpoint(true))).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(bits(&whole) == bits(&again));
}

#[test]
fn a_file_holds_what_is_needed() {
    let planted = planted(0, true, 6);
    for keep in [true, false] {
        let fitted = params().keep_history(keep).fit(&planted.with(&Entity::ALL)).unwrap();
        let bytes = bits(&fitted);
        let read = LatentFactors::read(&mut Reader::from_bytes(bytes.clone()).unwrap()).unwrap();
        assert_eq!(bits(&read), bytes);
        // Folding in sums over the same items.
        let profile = Profile { items: vec![3, 5], values: vec![1.0, 1.0] };
        let features = planted.users.row(390);
        let rated = Some(&profile);
        let one = fitted.fold_in_described(&features, rated).unwrap();
        assert_eq!(one, read.fold_in_described(&features, rated).unwrap());
        assert_ne!(one, fitted.fold_in_described(&features, None).unwrap());
    }
}

#[test]
fn someone_is_described_by_features_and_by_interactions() {
    // Half of a taste is what features say.
    let planted = planted_with(0, 0.5, 1.0, 7);
    let data = planted.with(&Entity::ALL);
    let fitted = fit(&data);
    let user = fitted.users().find(Id::Int(395)).unwrap();
    // A user of the table without interactions is where the features put them.
    let features = planted.users.row(395);
    let vector = fitted.fold_in_described(&features, None).unwrap();
    assert_eq!(vector.factors[..8], *fitted.user_factors(user as usize));
    // A user with interactions, folded in by both, is the user of the model, up to the last step of the map.
    let (items, values) = data.by_user().row(5);
    let profile = Profile { items: items.to_vec(), values: values.to_vec() };
    let both = fitted.fold_in_described(&planted.users.row(5), Some(&profile)).unwrap();
    let scale = fitted.user_factors(5).iter().fold(0.0f32, |a, b| a.max(b.abs()));
    for (a, b) in both.factors.iter().zip(fitted.user_factors(5)) {
        assert!((a - b).abs() < 0.02 * scale, "{a} and {b}");
    }
    // Features and a few interactions together are better than either.
    let mut hits = [0.0; 3];
    for (user, taken) in &planted.of_users {
        let taken: Vec<u32> =
            taken.iter().filter_map(|&item| fitted.items().find(Id::Int(item))).collect();
        if taken.len() < 6 {
            continue;
        }
        // The first by number, which says nothing of an item.
        let profile = Profile { items: taken[..3].to_vec(), values: vec![1.0; 3] };
        let features = planted.users.row(*user as usize);
        let targets = [
            Recipient::Described { features: &features, rated: None },
            Recipient::Profile(&profile),
            Recipient::Described { features: &features, rated: Some(&profile) },
        ];
        for (hits, target) in hits.iter_mut().zip(&targets) {
            let filter = Filter { deny: taken[..3].to_vec(), ..Filter::default() };
            let list = fitted.top(target, 10, &filter).unwrap();
            *hits += list.iter().filter(|s| taken[3..].contains(&s.item)).count() as f64;
        }
    }
    assert!(hits[2] > hits[0] && hits[2] > hits[1], "{hits:?}");
    let negative = Profile { items: vec![3], values: vec![-1.0] };
    assert!(fitted.fold_in_described(&features, Some(&negative)).is_err());
}

#[test]
fn an_explanation_names_the_features() {
    let planted = planted(0, true, 8);
    for biases in [false, true] {
        let fitted = params().biases(biases).fit(&planted.with(&Entity::ALL)).unwrap();
        for user in [3, 395] {
            let user = fitted.users().find(Id::Int(user)).unwrap();
            for item in [2, 239] {
                let why = fitted.explain(&Recipient::User(user), item).unwrap();
                let parts = why.user_features.iter().map(|part| part.contribution);
                let parts = parts.chain(why.contributions.iter().map(|part| part.contribution));
                let sum = why.base + parts.sum::<f32>();
                assert!((sum - why.score).abs() < 1e-4, "{sum} for {}", why.score);
                let names: Vec<&str> =
                    why.user_features.iter().map(|p| p.feature.as_str()).collect();
                assert!(names.contains(&"age") && !why.item_features.is_empty(), "{names:?}");
            }
        }
        // A cold item has neighbours.
        assert_eq!(fitted.similar_items(239, 5).unwrap().len(), 5);
    }
}

#[test]
fn an_update_moves_those_who_had_nothing_from_where_their_features_put_them() {
    let planted = planted(0, true, 9);
    let mut fitted = fit(&planted.with(&Entity::ALL));
    let (user, item) = (395, 238);
    let place = |model: &LatentFactors| {
        let (user, item) = (Id::Int(user), Id::Int(item));
        (model.users().find(user).unwrap() as usize, model.items().find(item).unwrap() as usize)
    };
    let before = place(&fitted);
    let (was_user, was_item) =
        (fitted.user_factors(before.0).to_vec(), fitted.item_factors(before.1).to_vec());
    let other = fitted.item_factors(7).to_vec();
    let events = [(user, 3), (user, 7), (10, item), (11, item)];
    let events = events.map(|(user, item)| (Id::Int(user), Id::Int(item), 1.0));
    let events = Ratings::from_triplets(events).unwrap();
    fitted.model.update(&events, &UpdateOptions::default()).unwrap();
    let after = place(&fitted);
    assert_ne!(fitted.user_factors(after.0), was_user);
    assert_ne!(fitted.item_factors(after.1), was_item);
    assert_eq!(fitted.item_factors(7), other);
    // Where a fold-in by features and interactions puts them.
    let items = [3, 7].map(|item| fitted.items().find(Id::Int(item)).unwrap());
    let profile = Profile { items: items.to_vec(), values: vec![1.0; 2] };
    let features = planted.users.row(user as usize);
    let folded = fitted.fold_in_described(&features, Some(&profile)).unwrap();
    assert_eq!(folded.factors[..8], *fitted.user_factors(after.0));
}
