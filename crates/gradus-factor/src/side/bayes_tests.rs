//! Side information of `bayes`.

use super::tests::{Planted, planted, rmse_of};
use crate::bayes::{Bayes, ImplicitSide, Posterior};
use gradus_core::estimator::{Fit as _, Fitted, Job, Model as _};
use gradus_core::iterate::Checkpoint;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend as _};
use gradus_data::{Entity, Id, Ratings};
use gradus_file::{Reader, Writer};
use std::time::Duration;

fn params() -> Bayes {
    Bayes::new().rank(4).max_iter(80).burn_in(30).keep_samples(50)
}

fn fit(data: &Ratings) -> Fitted<Bayes> {
    params().fit(data).unwrap()
}

#[test]
fn planted_maps_are_recovered() {
    let (planted, test) = planted((500, 300, 40), 0, true, 1);
    let error = |which: &[Entity]| rmse_of(&fit(&planted.with(which)).model, &test);
    let plain = error(&[]);
    let (users, items) = (error(&[Entity::User]), error(&[Entity::Item]));
    let both = error(&Entity::ALL);
    // What is the rows' own and the noise leave about 0.6.
    assert!(users < plain - 0.05 && items < plain - 0.05, "{plain} {users} {items}");
    assert!(both < 0.75 && both < users.min(items) - 0.1, "{plain} {users} {items} {both}");
}

#[test]
fn features_do_no_harm_to_rows_with_ratings() {
    for (noise, informative) in [(20, false), (3, true)] {
        let (planted, _) = planted((400, 200, 30), noise, informative, 2);
        let error = |of: &[Entity]| {
            let (train, test) = planted.with(of).partition(|at| at % 7 != 0);
            rmse_of(&fit(&train).model, &test)
        };
        let (plain, with) = (error(&[]), error(&Entity::ALL));
        // Another chain is another 0.001.
        assert!(with < plain + 2e-3, "{with} for {plain}");
    }
}

fn bits(model: &Posterior) -> Vec<u8> {
    let mut file = Writer::new("x");
    model.write(&mut file);
    file.to_bytes().unwrap()
}

fn small() -> (Planted, Ratings) {
    let (planted, _) = planted((150, 80, 20), 1, true, 4);
    let data = planted.with(&Entity::ALL);
    (planted, data)
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_after_a_kill() {
    let (_, data) = small();
    for lists in [ImplicitSide::None, ImplicitSide::Both] {
        let params = Bayes::new().rank(3).max_iter(12).burn_in(4).implicit_side(lists);
        let whole = params.fit(&data).unwrap();
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let fitted = pool.install(|| params.fit(&data).unwrap());
            assert!(bits(&whole) == bits(&fitted), "{lists:?}, {threads} threads");
        }
        let name = format!("gradus-bayes-side-{}-{lists:?}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("checkpoint");
        let checkpoint = |resume| Checkpoint { path: path.clone(), every: Duration::ZERO, resume };
        let stop = gradus_core::progress::Stop::new();
        let halfway = StopAt { stop: stop.clone(), at: 6 };
        let job = Job::default().checkpoint(checkpoint(false)).stop(stop).observer(&halfway);
        params.fit_job(&data, &job).unwrap();
        let again = params.fit_job(&data, &Job::default().checkpoint(checkpoint(true))).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(bits(&whole) == bits(&again), "{lists:?}");
    }
}

/// Asks a fit to stop after an iteration.
struct StopAt {
    stop: gradus_core::progress::Stop,
    at: usize,
}

impl gradus_core::progress::Observer for StopAt {
    fn notice(&self, event: &gradus_core::progress::Event<'_>) {
        if let gradus_core::progress::Event::Iteration { point, .. } = event
            && point.iteration >= self.at
        {
            self.stop.request();
        }
    }
}

#[test]
fn someone_is_described_by_features_and_the_file_holds_what_is_needed() {
    let (planted, data) = small();
    let fitted = fit(&data);
    let user = fitted.users().find(Id::Int(149)).unwrap();
    let features = planted.users.row(149);
    let described = Recipient::Described { features: &features, rated: None };
    let all = Filter::default();
    let known = fitted.top(&Recipient::User(user), 80, &all).unwrap();
    let new = fitted.top(&described, 80, &all).unwrap();
    for one in &known {
        let other = new.iter().find(|other| other.item == one.item).unwrap();
        assert!((one.score - other.score).abs() < 0.02, "{one:?} {other:?}");
    }
    let profile = Profile { items: vec![1, 2], values: vec![5.0, 1.0] };
    let both = Recipient::Described { features: &features, rated: Some(&profile) };
    let both = fitted.top(&both, 80, &all).unwrap();
    assert!(both.len() == known.len() - 2 && both[..3] != new[..3], "{both:?}");
    let bytes = bits(&fitted);
    let read = Posterior::read(&mut Reader::from_bytes(bytes.clone()).unwrap()).unwrap();
    assert_eq!(bits(&read), bytes);
    assert_eq!(read.top(&described, 80, &all).unwrap(), new);
    let far = gradus_data::FeatureRow { indices: vec![99], values: vec![1.0] };
    let far = Recipient::Described { features: &far, rated: None };
    assert!(fitted.top(&far, 3, &all).is_err());
    // The interval of a new item is wider than that of one with ratings.
    let pairs = [(Some(3), Some(5)), (Some(3), Some(79))];
    let widths: Vec<f32> =
        fitted.interval(&pairs, 0.9).unwrap().unwrap().iter().map(|i| i.high - i.low).collect();
    assert!(widths[1] > widths[0], "{widths:?}");
    assert_eq!(fitted.similar_items(79, 5).unwrap().len(), 5);
}

#[test]
fn an_explanation_names_the_features() {
    let (_, data) = small();
    let fitted = fit(&data);
    for user in [3, 149] {
        let user = fitted.users().find(Id::Int(user)).unwrap();
        for item in [2, 79] {
            let why = fitted.explain(&Recipient::User(user), item).unwrap();
            let parts = why.user_features.iter().map(|part| part.contribution);
            let parts = parts.chain(why.contributions.iter().map(|part| part.contribution));
            let sum = why.base + parts.sum::<f32>();
            assert!((sum - why.score).abs() < 1e-3, "{sum} for {}", why.score);
            let names: Vec<&str> = why.user_features.iter().map(|p| p.feature.as_str()).collect();
            assert!(names.contains(&"age") && !why.item_features.is_empty(), "{names:?}");
        }
    }
}
