use crate::Als;
use crate::latent::LatentFactors;
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit, Fitted, Job, Model};
use gradus_core::iterate::Checkpoint;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_core::update::{Update, UpdateOptions};
use gradus_data::{Column, Entity, Id, IdVec, Ratings, SideTable, Table};
use gradus_file::{Reader, Writer};
use std::time::Duration;

/// Ratings whose biases and factors are linear in features, with features of both sides.
pub(crate) struct Planted {
    pub(crate) ratings: Ratings,
    pub(crate) users: SideTable,
    pub(crate) items: SideTable,
}

/// A table of features of `n` rows: a number, a word of three, a list, and this many columns of noise.
pub(crate) fn table(n: usize, noise: usize, seed: u64) -> Table {
    let mut stream = Stream::new(seed, "side.table", 0);
    let numbers: Vec<f64> = (0..n).map(|_| 50.0 + 10.0 * stream.normal()).collect();
    let words: Vec<String> = (0..n).map(|_| format!("w{}", stream.below(3))).collect();
    let lists: Vec<String> = (0..n)
        .map(|_| {
            let has: Vec<String> =
                (0..4).filter(|_| stream.chance(0.4)).map(|at| format!("g{at}")).collect();
            format!("{}|", has.join("|"))
        })
        .collect();
    let mut columns = vec![
        ("age".to_owned(), Column::Numbers(numbers)),
        ("word".to_owned(), Column::from_words(words.iter().map(Some)).unwrap()),
        ("genres".to_owned(), Column::from_words(lists.iter().map(Some)).unwrap()),
    ];
    for at in 0..noise {
        let values = (0..n).map(|_| stream.normal()).collect();
        columns.push((format!("noise{at}"), Column::Numbers(values)));
    }
    Table::from_columns(columns).unwrap()
}

/// Prior means of `rank` factors and a bias, linear in the features, and what is the row's own beside them.
fn vectors(side: &SideTable, rank: usize, own: f64, informative: bool, seed: u64) -> Vec<Vec<f64>> {
    let mut stream = Stream::new(seed, "side.map", 0);
    let n = side.encoder().n_features();
    let noise = side.encoder().names().iter().position(|name| name.starts_with("noise"));
    let map: Vec<Vec<f64>> =
        (0..n).map(|_| (0..=rank).map(|_| 0.6 * stream.normal()).collect()).collect();
    (0..side.ids().len())
        .map(|row| {
            let mut vector: Vec<f64> = (0..=rank).map(|_| own * stream.normal()).collect();
            let (columns, values) = side.features().row(row);
            let mut x: Vec<f64> = side.encoder().mean().iter().map(|mean| -mean).collect();
            columns.iter().zip(values).for_each(|(&at, &v)| x[at as usize] += f64::from(v));
            for (feature, x) in x.iter().enumerate().take(noise.unwrap_or(n)) {
                let x = if informative { *x } else { 0.0 };
                vector.iter_mut().zip(&map[feature]).for_each(|(sum, w)| *sum += x * w);
            }
            vector
        })
        .collect()
}

/// `per_user` ratings of each of `n_users` users; the last tenth of users and of items has none.
pub(crate) fn planted(
    (n_users, n_items, per_user): (usize, usize, usize),
    noise: usize,
    informative: bool,
    seed: u64,
) -> (Planted, Ratings) {
    let rank = 2;
    let side = |n: usize, seed: u64| {
        let ids: IdVec = (0..n as i64).map(Id::Int).collect();
        SideTable::from_ids(&ids, &table(n, noise, seed), &mut Vec::new()).unwrap()
    };
    let (users, items) = (side(n_users, seed), side(n_items, seed + 1));
    let of_users = vectors(&users, rank, 0.3, informative, seed + 2);
    let of_items = vectors(&items, rank, 0.3, informative, seed + 3);
    let mut stream = Stream::new(seed, "side.ratings", 0);
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (user, of_user) in of_users.iter().enumerate() {
        for item in stream.sample(n_items, per_user).unwrap() {
            let of_item = &of_items[item];
            let product: f64 =
                of_user[..rank].iter().zip(&of_item[..rank]).map(|(a, b)| a * b).sum();
            let value = 3.0 + of_user[rank] + of_item[rank] + product + 0.3 * stream.normal();
            let rating = (Id::Int(user as i64), Id::Int(item as i64), value as f32);
            let cold = user >= n_users - n_users / 10 || item >= n_items - n_items / 10;
            if cold { test.push(rating) } else { train.push(rating) }
        }
    }
    let ratings = Ratings::from_triplets(train).unwrap();
    (Planted { ratings, users, items }, Ratings::from_triplets(test).unwrap())
}

impl Planted {
    pub(crate) fn with(&self, which: &[Entity]) -> Ratings {
        which.iter().fold(self.ratings.clone(), |ratings, &of| {
            let table = if of == Entity::User { &self.users } else { &self.items };
            ratings.with_features(of, table).unwrap()
        })
    }
}

pub(crate) fn rmse(model: &LatentFactors, test: &Ratings) -> f64 {
    rmse_of(model, test)
}

pub(crate) fn rmse_of(model: &dyn Recommend, test: &Ratings) -> f64 {
    let pairs: Vec<_> = test
        .iter()
        .map(|r| {
            let user = model.users().find(test.users().get(r.user as usize));
            (user, model.items().find(test.items().get(r.item as usize)))
        })
        .collect();
    let squares = model.predict(&pairs).into_iter().zip(test.iter());
    let squares: f64 = squares.map(|(x, r)| (f64::from(x) - f64::from(r.value)).powi(2)).sum();
    (squares / test.len() as f64).sqrt()
}

fn fit(data: &Ratings) -> Fitted<Als> {
    Als::new().rank(4).regularization(0.7).max_iter(40).tol(1e-6).fit(data).unwrap()
}

#[test]
fn planted_maps_are_recovered() {
    let (planted, test) = planted((500, 300, 40), 0, true, 1);
    let plain = fit(&planted.ratings);
    let mut errors = vec![rmse(&plain, &test)];
    for which in [&[Entity::User][..], &[Entity::Item], &Entity::ALL] {
        let fitted = fit(&planted.with(which));
        let trace: Vec<f64> = fitted.report.trace.iter().map(|point| point.objective).collect();
        for pair in trace.windows(2) {
            assert!(pair[1] <= pair[0] * (1.0 + 1e-6), "{which:?}: {trace:?}");
        }
        errors.push(rmse(&fitted, &test));
    }
    // What is the rows' own and the noise leave about 0.6.
    assert!(errors[1] < errors[0] - 0.05 && errors[2] < errors[0] - 0.05, "{errors:?}");
    assert!(errors[3] < 0.75 && errors[3] < errors[1].min(errors[2]) - 0.1, "{errors:?}");
}

#[test]
fn features_of_noise_do_no_harm() {
    for seed in [1, 2] {
        let (planted, _) = planted((400, 200, 30), 20, false, seed);
        let error = |of: &[Entity]| {
            let (train, test) = planted.with(of).partition(|at| at % 7 != 0);
            rmse(&fit(&train), &test)
        };
        let (plain, noisy) = (error(&[]), error(&Entity::ALL));
        assert!(noisy < plain + 1e-3, "{noisy} for {plain}");
    }
}

#[test]
fn sides_of_which_every_column_is_left_out_are_fitted_as_without_features() {
    let (planted, _) = planted((400, 200, 30), 3, false, 1);
    let data = planted.with(&Entity::ALL);
    let (plain, fitted) = (fit(&planted.ratings), fit(&data));
    let strengths = fitted.report.chosen.iter().filter(|c| c.parameter == "feature_regularization");
    // A value of 0 says that no column is left.
    assert_eq!(strengths.map(|choice| choice.value).collect::<Vec<_>>(), [0.0, 0.0]);
    let last = |fitted: &Fitted<Als>| fitted.report.trace.last().unwrap().objective;
    assert!((last(&fitted) - last(&plain)).abs() <= 1e-4 * last(&plain));
    // The maps are 0, and there: someone is described as by any model of features.
    let features = planted.users.row(3);
    let described = Recipient::Described { features: &features, rated: None };
    assert_eq!(fitted.top(&described, 5, &Filter::default()).unwrap().len(), 5);
    let (bias, factors) = fitted.feature_coefficients(Entity::User, 0).unwrap();
    assert!(bias == 0.0 && factors.iter().all(|&x| x == 0.0), "{bias} {factors:?}");
}

#[test]
fn rows_with_ratings_lose_nothing() {
    let (planted, _) = planted((400, 200, 30), 3, true, 3);
    let error = |of: &[Entity]| {
        let (train, test) = planted.with(of).partition(|at| at % 7 != 0);
        rmse(&fit(&train), &test)
    };
    let (plain, with) = (error(&[]), error(&Entity::ALL));
    assert!(with < plain + 1e-3, "{with} for {plain}");
}

/// The bits of a model: maps, factors and biases.
fn bits(model: &LatentFactors) -> Vec<u8> {
    let mut file = Writer::new("x");
    model.write(&mut file);
    file.to_bytes().unwrap()
}

#[test]
fn the_same_bits_on_any_number_of_threads_by_both_solvers() {
    let (planted, _) = planted((150, 80, 20), 1, true, 4);
    let data = planted.with(&Entity::ALL);
    for solver in [crate::als::RowMethod::Cholesky, crate::als::RowMethod::Cg] {
        let fit = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let params = Als::new().rank(3).regularization(0.7).solver(solver).max_iter(5);
            let fitted = pool.install(|| params.fit(&data).unwrap());
            let trace: Vec<f64> = fitted.report.trace.iter().map(|p| p.objective).collect();
            assert!(trace.windows(2).all(|p| p[1] <= p[0] * (1.0 + 1e-6)), "{solver:?} {trace:?}");
            bits(&fitted)
        };
        let one = fit(1);
        assert!([2, 7].iter().all(|&threads| fit(threads) == one), "{solver:?}");
    }
}

#[test]
fn a_killed_fit_goes_on_to_the_same_bits() {
    let (planted, _) = planted((120, 60, 20), 1, true, 5);
    let data = planted.with(&Entity::ALL);
    let params = Als::new().rank(3).regularization(0.7).max_iter(8).tol(0.0);
    let whole = params.fit(&data).unwrap();
    let folder = std::env::temp_dir().join(format!("gradus-side-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("checkpoint");
    let checkpoint = |resume| Checkpoint { path: path.clone(), every: Duration::ZERO, resume };
    let short = params.clone().max_iter(3);
    short.fit_job(&data, &Job::default().checkpoint(checkpoint(false))).unwrap();
    assert!(path.exists());
    let again = params.fit_job(&data, &Job::default().checkpoint(checkpoint(true))).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(bits(&whole) == bits(&again));
}

#[test]
fn a_file_holds_the_maps_and_the_encoders() {
    let (planted, test) = planted((120, 60, 20), 1, true, 6);
    let fitted = fit(&planted.with(&Entity::ALL));
    let mut file = Writer::new("x");
    fitted.model.write(&mut file);
    let bytes = file.to_bytes().unwrap();
    let read = LatentFactors::read(&mut Reader::from_bytes(bytes.clone()).unwrap()).unwrap();
    assert_eq!(bits(&read), bytes);
    assert_eq!(rmse(&read, &test), rmse(&fitted, &test));
    assert_eq!(read.encoder(Entity::User), Some(planted.users.encoder()));
    let names = read.encoder(Entity::Item).unwrap().names();
    let age = names.iter().position(|name| name == "age").unwrap();
    assert_eq!(read.feature_coefficients(Entity::Item, age).unwrap().1.len(), 4);
}

#[test]
fn someone_is_described_by_features_and_by_ratings() {
    let (planted, test) = planted((300, 150, 30), 0, true, 7);
    let data = planted.with(&Entity::ALL);
    let fitted = fit(&data);
    let cold = fitted.users().find(Id::Int(290)).unwrap();
    let features = planted.users.row(290);
    // A user of the table without a rating is where their features put them.
    let vector = fitted.fold_in_described(&features, None).unwrap();
    assert_eq!(vector.factors[..4], *fitted.user_factors(cold as usize));
    let known = fitted.top(&Recipient::User(cold), 5, &Filter::default()).unwrap();
    let described = Recipient::Described { features: &features, rated: None };
    assert_eq!(fitted.top(&described, 5, &Filter::default()).unwrap(), known);
    // A user with ratings, folded in by both, is the user of the model.
    let (items, values) = data.by_user().row(5);
    let profile = Profile { items: items.to_vec(), values: values.to_vec() };
    let both = fitted.fold_in_described(&planted.users.row(5), Some(&profile)).unwrap();
    for (a, b) in both.factors.iter().zip(fitted.user_factors(5)) {
        assert!((a - b).abs() < 2e-2, "{a} and {b}");
    }
    // Ratings and features together are better than either.
    let mut errors = [0.0; 3];
    let row = |user: i64| test.users().find(Id::Int(user)).unwrap() as usize;
    for user in 270..300 {
        let (items, values) = test.by_user().row(row(user));
        let index = |&item: &u32| fitted.items().find(test.items().get(item as usize)).unwrap();
        let all: Vec<(u32, f32)> =
            items.iter().map(index).zip(values.iter().copied()).filter(|p| p.0 < 135).collect();
        let (few, rest) = all.split_at(4);
        let profile = Profile {
            items: few.iter().map(|p| p.0).collect(),
            values: few.iter().map(|p| p.1).collect(),
        };
        let features = planted.users.row(user as usize);
        let targets = [
            Recipient::Described { features: &features, rated: None },
            Recipient::Profile(&profile),
            Recipient::Described { features: &features, rated: Some(&profile) },
        ];
        for (error, target) in errors.iter_mut().zip(&targets) {
            let filter = Filter { include_seen: true, ..Filter::default() };
            let list = fitted.top(target, 1000, &filter).unwrap();
            for (item, value) in rest {
                let score = list.iter().find(|s| s.item == *item).unwrap().score;
                *error += f64::from(score - value).powi(2);
            }
        }
    }
    assert!(errors[2] < errors[0] && errors[2] < errors[1], "{errors:?}");
    let plain = fit(&planted.ratings);
    let said = plain.top(&described, 5, &Filter::default()).unwrap_err().to_string();
    assert!(said.contains("without features of users"), "{said}");
    let far = gradus_data::FeatureRow { indices: vec![99], values: vec![1.0] };
    assert!(fitted.fold_in_described(&far, None).is_err());
}

#[test]
fn an_explanation_names_the_features() {
    let (planted, _) = planted((300, 150, 30), 0, true, 8);
    let fitted = fit(&planted.with(&Entity::ALL));
    for user in [3, 290] {
        let user = fitted.users().find(Id::Int(user)).unwrap();
        for item in [2, 148] {
            let why = fitted.explain(&Recipient::User(user), item).unwrap();
            let parts = why.user_features.iter().map(|part| part.contribution);
            let parts = parts.chain(why.contributions.iter().map(|part| part.contribution));
            let sum = why.base + parts.sum::<f32>();
            assert!((sum - why.score).abs() < 1e-3, "{sum} for {}", why.score);
            let names: Vec<&str> = why.user_features.iter().map(|p| p.feature.as_str()).collect();
            assert!(names.contains(&"age") && !why.item_features.is_empty(), "{names:?}");
            // The base is what anyone with average features and no ratings would get: nothing of
            // the user is left in it.
            let anyone = fitted.mean() as f32 + fitted.item_bias()[item as usize];
            let centre = planted.users.encoder().mean().iter().enumerate();
            let centre: f32 = centre
                .map(|(feature, mean)| {
                    let (bias, _) = fitted.feature_coefficients(Entity::User, feature).unwrap();
                    *mean as f32 * bias
                })
                .sum();
            let slack = 1.0 + centre.abs();
            assert!((why.base - anyone).abs() < slack, "{} and {anyone}", why.base);
        }
    }
    assert!(!fitted.similar_items(148, 5).unwrap().is_empty());
}

#[test]
fn an_update_takes_features_of_new_users_and_items() {
    let (planted, _) = planted((200, 100, 20), 0, true, 9);
    // The table of training has the first 190 users and 95 items alone.
    let ids = |n: i64| (0..n).map(Id::Int).collect::<IdVec>();
    let cut = |table: Table, n: u32| table.select_rows(&(0..n).collect::<Vec<_>>());
    let users =
        SideTable::from_ids(&ids(190), &cut(table(200, 0, 9), 190), &mut Vec::new()).unwrap();
    let items =
        SideTable::from_ids(&ids(95), &cut(table(100, 0, 10), 95), &mut Vec::new()).unwrap();
    let data = planted.ratings.clone().with_features(Entity::User, &users).unwrap();
    let data = data.with_features(Entity::Item, &items).unwrap();
    let mut fitted = fit(&data);
    let before = fitted.user_factors(7).to_vec();
    let events = [(195, 3, 4.0), (195, 97, 2.0), (20, 97, 5.0)];
    let events = events.map(|(user, item, value)| (Id::Int(user), Id::Int(item), value));
    let events = Ratings::from_triplets(events).unwrap();
    let all = |n: usize, seed: u64, encoder| {
        SideTable::encode_ids(&ids(n as i64), &table(n, 0, seed), encoder).unwrap()
    };
    let with = events
        .clone()
        .with_features(Entity::User, &all(200, 9, users.encoder()))
        .and_then(|events| events.with_features(Entity::Item, &all(100, 10, items.encoder())))
        .unwrap();
    let mut plain = fitted.model.clone();
    plain.update(&events, &UpdateOptions::default()).unwrap();
    let updated = fitted.model.update(&with, &UpdateOptions::default()).unwrap();
    assert_eq!((updated.new_users, updated.new_items), (1, 1));
    let row = |model: &LatentFactors| model.users().find(Id::Int(195)).unwrap() as usize;
    let new = fitted.user_factors(row(&fitted)).to_vec();
    assert_ne!(new, plain.user_factors(row(&plain)));
    assert_eq!(fitted.user_factors(7), before);
    // Where a fold-in by features and ratings puts them.
    let items = [3, 97].map(|item| fitted.items().find(Id::Int(item)).unwrap());
    let profile = Profile { items: items.to_vec(), values: vec![4.0, 2.0] };
    let features = all(200, 9, users.encoder()).row(195);
    let folded = fitted.fold_in_described(&features, Some(&profile)).unwrap();
    assert_eq!(folded.factors[..4], new[..]);
    // Features that were encoded otherwise are refused.
    let other = planted.ratings.clone().with_features(Entity::User, &planted.users).unwrap();
    let said = fitted.model.update(&other, &UpdateOptions::default()).unwrap_err().to_string();
    assert!(said.contains("not fitted with such features"), "{said}");
}

#[test]
fn other_models_refuse_features() {
    let (planted, _) = planted((60, 40, 10), 0, true, 10);
    let said = crate::Bias::new().fit(&planted.with(&[Entity::Item])).unwrap_err().to_string();
    assert!(said.contains("bias") && said.contains("option `item_features`"), "{said}");
}

#[test]
fn ratings_in_another_unit_give_the_same_model() {
    let (planted, test) = planted((200, 100, 25), 2, true, 11);
    let data = planted.with(&Entity::ALL);
    let scaled = data.map_values(|r| 10.0 * r.value - 20.0);
    let params = Als::new().rank(3).regularization(0.7).max_iter(10);
    let (a, b) = (params.fit(&data).unwrap(), params.fit(&scaled).unwrap());
    let pairs: Vec<_> = test
        .iter()
        .take(200)
        .map(|r| {
            let user = a.users().find(test.users().get(r.user as usize));
            (user, a.items().find(test.items().get(r.item as usize)))
        })
        .collect();
    for (a, b) in a.predict(&pairs).iter().zip(b.predict(&pairs)) {
        assert!((10.0 * a - 20.0 - b).abs() < 0.05, "{a} and {b}");
    }
}
