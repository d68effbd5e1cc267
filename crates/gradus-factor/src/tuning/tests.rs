use super::*;
use crate::latent::LatentFactors;
use crate::loss::RatingLoss;
use crate::{Als, Bias, Ccd, Gd, Sgd, Svdpp};
use gradus_core::estimator::{Fit, Fitted};
use gradus_core::iterate::Checkpoint;
use gradus_core::progress::{Observer, Stop};
use gradus_core::recommend::Recommend;
use gradus_core::report::StopReason;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids};
use std::sync::Mutex;
use std::time::Duration;

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 2400) }.make(seed).unwrap().ratings
}

/// Calls a generic function with each of the models, quick ones.
macro_rules! with_each {
    ($call:ident($($more:expr),*)) => {
        $call(&Als::new().max_iter(4) $(, $more)*);
        $call(&Ccd::new().max_iter(4) $(, $more)*);
        $call(&Gd::new().max_iter(4) $(, $more)*);
        $call(&Sgd::new().max_iter(4) $(, $more)*);
        $call(&Svdpp::new().max_iter(4) $(, $more)*);
    };
}

/// Counts trials and iterations, and asks to stop at one of them.
#[derive(Default)]
struct Watcher {
    trials: Mutex<usize>,
    iterations: Mutex<usize>,
    stop: Stop,
    stop_at_trial: usize,
    stop_at_iteration: usize,
}

impl Observer for Watcher {
    fn notice(&self, event: &Event<'_>) {
        let (count, last) = match event {
            Event::Choosing { .. } => (&self.trials, self.stop_at_trial),
            Event::Iteration { .. } => (&self.iterations, self.stop_at_iteration),
            _ => return,
        };
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count == last {
            self.stop.request();
        }
    }
}

impl Watcher {
    fn trials(&self) -> usize {
        *self.trials.lock().unwrap()
    }

    fn job(&self) -> Job<'_, Ratings> {
        Job::default().observer(self).stop(self.stop.clone())
    }
}

fn names<P: Fit>(fitted: &Fitted<P>) -> Vec<&str> {
    fitted.report.chosen.iter().map(|choice| choice.parameter.as_str()).collect()
}

fn same<P: Tunable + Fit<Model = LatentFactors>>(a: &Fitted<P>, b: &Fitted<P>) -> bool {
    let pairs: Vec<_> = (0..60).map(|n| (Some(2 * n), Some(n))).collect();
    a.rank() == b.rank() && a.predict(&pairs) == b.predict(&pairs)
}

fn what_is_given_stays<P: Tunable + Fit<Model = LatentFactors>>(params: &P, data: &Ratings) {
    let watcher = Watcher::default();
    let fitted = params.trial(5, 0.7).fit_job(data, &watcher.job()).unwrap();
    assert_eq!((watcher.trials(), fitted.rank()), (0, 5), "{}", P::NAME);
    assert_eq!(names(&fitted), [""; 0], "{}", P::NAME);
}

#[test]
fn what_is_given_is_not_touched_and_costs_no_trial() {
    with_each!(what_is_given_stays(&made(1)));
}

fn what_is_left_out_is_reported<P: Tunable + Fit<Model = LatentFactors>>(
    params: &P,
    data: &Ratings,
) {
    let watcher = Watcher::default();
    let fitted = params.fit_job(data, &watcher.job()).unwrap();
    assert!(watcher.trials() > 2, "{}: {} trials", P::NAME, watcher.trials());
    assert_eq!(names(&fitted), ["regularization", "rank"], "{}", P::NAME);
    let [regularization, rank] = &fitted.report.chosen[..] else { panic!() };
    assert_eq!(rank.value, fitted.rank() as f64);
    assert!(regularization.value > 0.0 && regularization.reason.contains("held-out rmse"));
    // The fit is the one with these values.
    let again = params.trial(rank.value as usize, regularization.value as f32).fit(data).unwrap();
    assert!(same(&fitted, &again), "{}", P::NAME);
    // Nothing but the fit's own parameters are kept: what was left out stays left out.
    let (of_rank, of_strength) = fitted.params.given();
    assert_eq!((of_rank, of_strength), (None, None), "{}", P::NAME);
}

#[test]
fn what_is_left_out_is_chosen_and_reported() {
    let data = made(2);
    with_each!(what_is_left_out_is_reported(&data));
    let watcher = Watcher::default();
    let fitted = Als::new().rank(3).fit_job(&data, &watcher.job()).unwrap();
    assert_eq!((names(&fitted), fitted.rank()), (vec!["regularization"], 3));
    let fitted = Als::new().regularization(0.9).fit_job(&data, &watcher.job()).unwrap();
    assert_eq!(names(&fitted), ["rank"]);
}

#[test]
fn many_iterations_do_not_make_the_choice_long() {
    let (few, many) = (Als::new(), Als::new().max_iter(1_000_000).restarts(7));
    assert_eq!(many.trial(3, 1.0), few.trial(3, 1.0));
    assert_eq!(Als::new().max_iter(2).trial(3, 1.0).max_iter, 2);
}

#[test]
fn the_choice_is_the_same_on_any_number_of_threads() {
    let data = made(3);
    let bytes = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let als = Als::new().max_iter(4).fit(&data).unwrap().to_bytes().unwrap();
            let sgd = Sgd::new().max_iter(4).fit(&data).unwrap().to_bytes().unwrap();
            let svdpp = Svdpp::new().max_iter(4).fit(&data).unwrap().to_bytes().unwrap();
            [als, sgd, svdpp]
        })
    };
    let one = bytes(1);
    assert!(one == bytes(2), "2 threads");
    assert!(one == bytes(7), "7 threads");
}

/// The held-out error of parameters.
fn error<P: Fit<Data = Ratings>>(params: &P, (train, test): &(Ratings, Ratings)) -> f64
where
    P::Model: Recommend,
{
    let fitted = params.fit(train).unwrap();
    let pairs: Vec<_> = test.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let predicted = fitted.model.predict(&pairs);
    let squares = predicted.iter().zip(test.iter()).map(|(p, r)| f64::from(p - r.value).powi(2));
    (squares.sum::<f64>() / test.len() as f64).sqrt()
}

#[test]
fn without_structure_the_factors_do_no_harm() {
    let spec = RatingsSpec { step: None, range: None, ..RatingsSpec::new(400, 150, 10_000) };
    let data = spec.rank(0).make(4).unwrap().ratings.partition(|at| at % 10 != 0);
    let bias = error(&Bias::new(), &data);
    for (name, found) in [
        ("als", error(&Als::new(), &data)),
        ("sgd", error(&Sgd::new(), &data)),
        ("svdpp", error(&Svdpp::new(), &data)),
    ] {
        assert!(found < 1.005 * bias, "{name}: {found} for {bias}");
    }
}

fn near_the_best_of_a_grid<P>(params: &P, data: &(Ratings, Ratings))
where
    P: Tunable + Fit<Model = LatentFactors>,
{
    let chosen = error(params, data);
    let mut best = f64::INFINITY;
    for rank in [4, 16, 64] {
        for by in [0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0] {
            best = best.min(error(&params.trial(rank, by * params.first_strength()), data));
        }
    }
    assert!(chosen < 1.02 * best, "{}: {chosen} for {best}", P::NAME);
}

#[test]
fn with_structure_the_choice_is_near_the_best_of_a_grid() {
    let spec = RatingsSpec { rank: 4, noise: 0.5, ..RatingsSpec::new(400, 150, 10_000) };
    let data = spec.make(5).unwrap().ratings.partition(|at| at % 10 != 0);
    near_the_best_of_a_grid(&Als::new(), &data);
    near_the_best_of_a_grid(&Sgd::new(), &data);
    near_the_best_of_a_grid(&Svdpp::new(), &data);
}

fn a_stop_ends_the_choice<P: Tunable + Fit<Model = LatentFactors>>(params: &P, data: &Ratings) {
    let watcher = Watcher { stop_at_trial: 2, ..Watcher::default() };
    let said = params.fit_job(data, &watcher.job()).err().unwrap().to_string();
    let expected = format!("{}: interrupted before the first iteration was done", P::NAME);
    assert_eq!((said, watcher.trials()), (expected, 2));
}

#[test]
fn a_stop_during_the_choice_is_one_before_the_first_iteration() {
    with_each!(a_stop_ends_the_choice(&made(6)));
}

fn fits_with_finite_predictions<P: Tunable + Fit<Model = LatentFactors>>(
    params: &P,
    name: &str,
    data: &Ratings,
) {
    let fitted = params.fit(data).unwrap_or_else(|error| panic!("{}, {name}: {error}", P::NAME));
    let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let predicted = fitted.predict(&pairs);
    assert!(predicted.iter().all(|p| p.is_finite()), "{}, {name}: {predicted:?}", P::NAME);
    assert_eq!(names(&fitted), ["regularization", "rank"], "{}, {name}", P::NAME);
}

#[test]
fn a_few_ratings_are_enough() {
    let one = |user: i64, item: i64, value: f32| (Id::Int(user), Id::Int(item), value);
    let some = |n: i64| {
        Ratings::from_triplets((0..n).map(|n| one(n % 4, n % 5, (n * n % 7) as f32))).unwrap()
    };
    let all: Vec<_> = some(19).iter().collect();
    let (users, items): (Vec<u32>, Vec<u32>) = all.iter().map(|r| (r.user, r.item)).unzip();
    let values: Vec<f32> = all.iter().map(|r| r.value).collect();
    let mut weights = vec![0.0; values.len()];
    weights[7] = 2.0;
    let ids = (Ids::range(4), Ids::range(5));
    let columns = (users.as_slice(), items.as_slice());
    let one_weighs =
        Ratings::from_indexed(ids, columns, &values, Some(&weights), Duplicates::Error).unwrap();
    for (name, data) in [
        ("3", some(3)),
        ("9", some(9)),
        ("11", some(11)),
        ("one user", Ratings::from_triplets((0..30).map(|n| one(1, n, n as f32))).unwrap()),
        ("one item", Ratings::from_triplets((0..30).map(|n| one(n, 1, n as f32))).unwrap()),
        ("equal", Ratings::from_triplets((0..30).map(|n| one(n % 5, n % 6, 3.0))).unwrap()),
        ("one weighs", one_weighs),
    ] {
        with_each!(fits_with_finite_predictions(name, &data));
    }
    // A part may have values of one kind where all have two.
    let two =
        Ratings::from_triplets((0..11).map(|n| one(n % 4, n % 5, if n == 3 { 5.0 } else { 1.0 })));
    let logistic = Sgd::new().loss(RatingLoss::Logistic).max_iter(3);
    assert!(logistic.fit(&two.unwrap()).is_ok());
}

#[test]
fn ratings_of_weight_zero_do_not_change_the_choice() {
    let data = made(7);
    let rows: Vec<_> = data.iter().collect();
    let (users, items): (Vec<u32>, Vec<u32>) = rows.iter().map(|r| (r.user, r.item)).unzip();
    let values: Vec<f32> = rows.iter().map(|r| r.value).collect();
    let weights: Vec<f32> = (0..rows.len()).map(|n| f32::from(u8::from(n % 4 != 0))).collect();
    let ids = (data.users().clone(), data.items().clone());
    let columns = (users.as_slice(), items.as_slice());
    let marked =
        Ratings::from_indexed(ids, columns, &values, Some(&weights), Duplicates::Error).unwrap();
    let absent = data.filter(|n| n % 4 != 0);
    let params = Als::new().max_iter(4);
    let [a, b] = [&marked, &absent].map(|data| choose(&params, data, &Job::default()).unwrap());
    assert_eq!(a.rank, b.rank);
    assert!(
        (a.regularization / b.regularization - 1.0).abs() < 1e-3,
        "{:?}",
        (a.choices, b.choices)
    );
}

#[test]
fn a_resumed_fit_goes_on_with_what_was_chosen() {
    let data = made(8);
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = |resume| {
        let path = folder.path().join("c");
        Some(Checkpoint { path, every: Duration::ZERO, resume })
    };
    let params = Als::new().tol(0.0).max_iter(4);
    let first = Watcher { stop_at_iteration: 2, ..Watcher::default() };
    let part = params.fit_job(&data, &Job { checkpoint: checkpoint(true), ..first.job() }).unwrap();
    assert_eq!(part.report.stop_reason, StopReason::Interrupted);
    // With more iterations another strength might be chosen; the fit is still the same one.
    let again = Watcher::default();
    let longer = params.clone().max_iter(9);
    let job = Job { checkpoint: checkpoint(true), ..again.job() };
    let whole = longer.fit_job(&data, &job).unwrap();
    assert_eq!((again.trials(), whole.report.iterations), (0, 9));
    assert_eq!(whole.report.chosen, part.report.chosen);
    let [regularization, rank] = &part.report.chosen[..] else { panic!() };
    let at_once =
        longer.trial(rank.value as usize, regularization.value as f32).fit(&data).unwrap();
    assert!(same(&whole, &at_once));
}

#[test]
fn a_resumed_fit_of_signs_of_interest_goes_on_with_all_that_was_chosen() {
    let data = made(9);
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = || {
        let path = folder.path().join("c");
        Some(Checkpoint { path, every: Duration::ZERO, resume: true })
    };
    let params = crate::Ials::new().tol(0.0).max_iter(4);
    let first = Watcher { stop_at_iteration: 2, ..Watcher::default() };
    let part = params.fit_job(&data, &Job { checkpoint: checkpoint(), ..first.job() }).unwrap();
    assert_eq!(part.report.stop_reason, StopReason::Interrupted);
    let again = Watcher::default();
    let whole = params.fit_job(&data, &Job { checkpoint: checkpoint(), ..again.job() }).unwrap();
    assert_eq!((again.trials(), whole.report.iterations), (0, 4));
    assert_eq!(whole.report.chosen, part.report.chosen);
    assert!(same(&whole, &params.fit(&data).unwrap()));
}
