//! Comparing models: who wins, what is said of ties, failures and limits, and that the clock decides
//! nothing where there is no budget.

use gradus::data::make::RatingsSpec;
use gradus::data::{Dense, Ratings, Samples};
use gradus::model::{
    AnyFitted, AnyKind, Dataset, Estimator, ParamSpec, Reader, Run, Stop, StopReason, Traits,
};
use gradus::select::compare::{
    Compare, Compared, FitOutcome, FitStage, Metric, RaceStep, Task, Unranked,
};
use gradus::select::search::Dependence;
use gradus::{Error, Result, find};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// A linear model whose predictions are off by a constant, and that can be slow or fail.
struct Shifted {
    name: &'static str,
    shift: f64,
    /// Seconds for 100,000 samples.
    slow: f64,
    fails: bool,
}

impl Shifted {
    const fn by(name: &'static str, shift: f64) -> Self {
        Self { name, shift, slow: 0.0, fails: false }
    }
}

impl Estimator for Shifted {
    fn name(&self) -> &'static str {
        self.name
    }
    fn class(&self) -> &'static str {
        "Shifted"
    }
    fn family(&self) -> &'static str {
        "tests"
    }
    fn docs(&self) -> (String, String) {
        Default::default()
    }
    fn specs(&self) -> Vec<ParamSpec> {
        Vec::new()
    }
    fn data(&self) -> &'static dyn AnyKind {
        find("linear").unwrap().data()
    }
    fn traits(&self) -> Traits {
        Traits::REGRESSION
    }
    fn fit(
        &self,
        params: &Map<String, Value>,
        data: &dyn Dataset,
        _: Option<&dyn Dataset>,
        run: &Run<'_>,
    ) -> Result<AnyFitted> {
        if self.fails {
            return Err(Error::data("too many items for this model"));
        }
        let samples = data.of_kind::<Samples>()?;
        let until =
            Instant::now() + Duration::from_secs_f64(self.slow * samples.len() as f64 / 100_000.0);
        while Instant::now() < until {
            if run.stop.requested() {
                return Err(Error::data("interrupted"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let y = samples.values()?.values().iter().map(|y| y + self.shift).collect();
        let shifted = Samples::regression(samples.features().clone(), y)?;
        let fitted = find("linear")?.fit(params, &shifted, None, run)?;
        Ok(AnyFitted { kind: self.name, ..fitted })
    }
    fn read(&self, file: &mut Reader) -> Result<AnyFitted> {
        find("linear")?.read(file)
    }
}

fn samples(n: usize) -> Samples {
    let mut stream = gradus::model::Stream::new(1, "compare.tests", 0);
    let x = Dense::from_fn(n, 2, |_, _| stream.normal());
    let y = x.rows().map(|row| row[0] - 2.0 * row[1] + stream.normal()).collect();
    Samples::regression(x, y).unwrap()
}

fn compare<'a>(models: Vec<&'a dyn Estimator>, metric: Metric) -> Compare<'a> {
    Compare {
        models,
        metric,
        holdout: 0.2,
        split: "random".into(),
        rows: Dependence::Independent,
        seed: 0,
        budget: None,
        refit: true,
        stop: Stop::new(),
    }
}

fn taking_part(task: Task) -> Vec<&'static dyn Estimator> {
    let all = gradus::models().iter().copied();
    all.filter(|model| task.takes(model.data().name(), &model.traits())).collect()
}

fn silent(_: &RaceStep<'_>) {}

fn planted() -> Ratings {
    RatingsSpec::new(300, 120, 12_000).make(3).unwrap().ratings
}

#[test]
fn who_takes_part_follows_from_what_models_declare() {
    let names = |task| taking_part(task).iter().map(|model| model.name()).collect::<Vec<_>>();
    assert!(names(Task::Ratings).contains(&"als") && names(Task::Ratings).contains(&"bias"));
    assert!(names(Task::Ranking).contains(&"popular") && !names(Task::Ranking).contains(&"als"));
    assert!(names(Task::Values).contains(&"ridge") && names(Task::Classes).contains(&"logistic"));
    let all: usize = [Task::Ratings, Task::Ranking, Task::Values, Task::Classes]
        .map(|t| names(t).len())
        .iter()
        .sum();
    assert!(all <= gradus::models().len());
    assert!(Task::Classes.metric(Some("log-loss")).is_ok());
    let error = Task::Ranking.metric(Some("rmse")).unwrap_err().to_string();
    assert!(error.contains("ndcg") && error.contains("rmse"), "{error}");
}

#[test]
fn planted_factors_beat_the_baselines() {
    let data = planted();
    let models = ["als", "mean", "bias"].map(|name| find(name).unwrap()).to_vec();
    let Compared { comparison, best } = compare(models, Metric::Rmse).run(&data, &silent).unwrap();
    assert_eq!(comparison.winner.as_deref(), Some("als"));
    assert_eq!(comparison.not_distinguished, ["als"]);
    assert_eq!(comparison.rows.len(), 3);
    assert!(comparison.rows[1].distinguished && comparison.rows[1].baseline);
    assert!(comparison.rows[1].difference.interval.low > 0.0);
    assert_eq!((comparison.units, comparison.parts.test), ("users", 2400));
    assert!(comparison.rows.iter().all(|row| row.interval.contains(row.score) && row.bytes > 0));
    // The winner is fitted on all the data.
    let best = best.unwrap();
    assert!(comparison.best_on_all_data && best.kind == "als");
    assert_eq!(best.model.recommend().unwrap().history().unwrap().indices().len(), data.len());
    assert_eq!(comparison.fits.last().unwrap().stage, FitStage::Refit);
    // The score is that of the model fitted on the training part, on the test part.
    let (train, test) = gradus::data::split::holdout(&data, 0.2, 0).unwrap();
    let fitted = find("als").unwrap().fit(&Map::new(), &train, None, &Run::default()).unwrap();
    let model = fitted.model.recommend().unwrap();
    let pairs: Vec<_> = test.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let off = test.iter().zip(model.predict(&pairs)).map(|(r, p)| f64::from(r.value - p).powi(2));
    let rmse = (off.sum::<f64>() / test.len() as f64).sqrt();
    assert!((rmse - comparison.rows[0].score).abs() < 1e-6, "{rmse}");
}

#[test]
fn signs_of_interest_are_ranked() {
    let data = planted().map_values(|_| 1.0);
    let models = ["ials", "ease", "popular"].map(|name| find(name).unwrap()).to_vec();
    let found = compare(models, Metric::Ndcg).run(&data, &silent).unwrap().comparison;
    assert_eq!((found.title.as_str(), found.higher_is_better), ("NDCG@20", true));
    assert_eq!(found.rows.len(), 3);
    assert!(found.rows.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!(found.rows[2].difference.value <= 0.0);
    // Signs of interest are no opinions.
    let error = Task::of(&data, false).unwrap_err().to_string();
    assert!(error.contains("option `implicit`"), "{error}");
}

#[test]
fn equal_models_are_not_distinguished_and_the_first_wins() {
    let data = samples(400);
    let (a, b, c) = (Shifted::by("a", 0.0), Shifted::by("b", 0.0), Shifted::by("c", 3.0));
    let found = compare(vec![&c, &b, &a], Metric::Rmse).run(&data, &silent).unwrap().comparison;
    assert_eq!(found.winner.as_deref(), Some("b"));
    assert_eq!(found.not_distinguished, ["b", "a"]);
    let second = &found.rows[1];
    assert_eq!((second.difference.value, second.distinguished), (0.0, false));
    assert!(found.rows[2].distinguished && found.rows[2].difference.value > 1.0);
    assert!(found.not_distinguished.contains(found.fastest.as_ref().unwrap()));
    assert!(found.not_distinguished.contains(found.smallest.as_ref().unwrap()));
}

#[test]
fn a_model_that_fails_is_reported_and_the_others_go_on() {
    let data = samples(300);
    let good = Shifted::by("good", 0.0);
    let bad = Shifted { fails: true, ..Shifted::by("bad", 0.0) };
    let found = compare(vec![&bad, &good], Metric::Mae).run(&data, &silent).unwrap().comparison;
    assert_eq!(found.winner.as_deref(), Some("good"));
    assert_eq!(found.others.len(), 1);
    assert_eq!(found.others[0].reason, "not fitted: too many items for this model");
    let outcome = FitOutcome::Failed("too many items for this model".into());
    assert!(found.fits.iter().any(|fit| fit.outcome == outcome));
    // Without any that works, the reasons are the error.
    let error = compare(vec![&bad], Metric::Mae).run(&data, &silent).err().unwrap().to_string();
    assert!(
        error.contains("no model could be tested") && error.contains("too many items"),
        "{error}"
    );
}

#[test]
fn a_tiny_budget_leaves_the_baselines_and_none_is_an_error() {
    let data = planted();
    let tiny = Some(Duration::from_millis(1));
    let comparing = Compare { budget: tiny, ..compare(taking_part(Task::Ratings), Metric::Rmse) };
    let started = Instant::now();
    let Compared { comparison, best } = comparing.run(&data, &silent).unwrap();
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(comparison.rows.iter().all(|row| row.baseline));
    assert!(comparison.others.iter().all(|one| one.reason.contains("budget")));
    assert_eq!(comparison.rows.len() + comparison.others.len(), comparing.models.len());
    assert_eq!(best.unwrap().kind, comparison.winner.unwrap());
    // Without a baseline nothing is done in time.
    let slow = Shifted { slow: 1e6, ..Shifted::by("slow", 0.0) };
    let comparing = Compare { budget: tiny, ..compare(vec![&slow], Metric::Rmse) };
    let error = comparing.run(&samples(300), &silent).err().unwrap().to_string();
    assert!(error.contains("option `budget`"), "{error}");
    let zero = Compare { budget: Some(Duration::ZERO), ..compare(vec![&slow], Metric::Rmse) };
    let error = zero.run(&samples(300), &silent).err().unwrap().to_string();
    assert!(error.contains("greater than 0"), "{error}");
}

#[test]
fn a_slow_model_is_stopped_and_the_budget_holds() {
    let data = samples(1000);
    let slow = Shifted { slow: 1e6, ..Shifted::by("slow", 0.0) };
    let quick = Shifted::by("quick", 1.0);
    let budget = Some(Duration::from_secs(1));
    // However many slow ones come before it, the quick one is fitted.
    let slower = Shifted { slow: 1e6, ..Shifted::by("slower", 0.0) };
    let slowest = Shifted { slow: 1e6, ..Shifted::by("slowest", 0.0) };
    let models: Vec<&dyn Estimator> = vec![&slow, &slower, &slowest, &quick];
    let comparing = Compare { budget, ..compare(models, Metric::Rmse) };
    let started = Instant::now();
    let found = comparing.run(&data, &silent).unwrap().comparison;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!(found.winner.as_deref(), Some("quick"));
    assert_eq!(found.others.len(), 3);
    let stopped = |one: &Unranked| one.reason.starts_with("stopped by the budget");
    assert!(found.others.iter().all(stopped), "{:?}", found.others);
    assert!(found.fits.iter().any(|fit| fit.outcome == FitOutcome::OutOfTime));
}

/// Seven models of which all cannot be fitted on everything in time: the worst are left behind on a
/// part of the data.
#[test]
fn the_race_keeps_the_better_ones() {
    let data = samples(100_000);
    let models: Vec<Shifted> = ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]
        .into_iter()
        .enumerate()
        .map(|(at, name)| Shifted { slow: 0.7, ..Shifted::by(name, 3.0 - 0.5 * at as f64) })
        .collect();
    let models: Vec<&dyn Estimator> = models.iter().map(|model| model as _).collect();
    let budget = Some(Duration::from_secs(5));
    let comparing = Compare { budget, refit: false, ..compare(models, Metric::Rmse) };
    let started = Instant::now();
    let found = comparing.run(&data, &silent).unwrap().comparison;
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert_eq!(found.winner.as_deref(), Some("m6"), "{found:#?}");
    assert!(found.rows.len() < 7 && found.parts.validation > 0);
    let worst = found.others.iter().find(|one| one.model == "m0").unwrap();
    assert!(worst.score.is_some() && worst.share == Some(1.0 / 3.0), "{worst:?}");
    assert!(found.fits.iter().filter(|fit| fit.stage == FitStage::Race).count() >= 4);
    assert!(!found.best_on_all_data);
}

#[test]
fn an_interruption_keeps_what_is_complete() {
    let data = samples(500);
    let (a, b, c) = (Shifted::by("a", 1.0), Shifted::by("b", 0.0), Shifted::by("c", 0.5));
    let comparing = compare(vec![&a, &b, &c], Metric::Rmse);
    let stop = comparing.stop.clone();
    let tell = |step: &RaceStep<'_>| {
        if step.model == "c" {
            stop.request();
        }
    };
    let Compared { comparison, best } = comparing.run(&data, &tell).unwrap();
    assert!(comparison.interrupted && !comparison.best_on_all_data);
    assert_eq!(comparison.rows.len(), 2);
    assert_eq!(comparison.winner.as_deref(), Some("b"));
    assert_eq!(
        (comparison.others[0].model.as_str(), comparison.others[0].reason.as_str()),
        ("c", "interrupted")
    );
    let best = best.unwrap();
    assert_eq!(best.kind, "b");
    assert_ne!(best.report.stop_reason, StopReason::Interrupted);
    // Before anything is complete there is nothing, and that is no error.
    let comparing = compare(vec![&a], Metric::Rmse);
    comparing.stop.request();
    let Compared { comparison, best } = comparing.run(&data, &silent).unwrap();
    assert!(comparison.rows.is_empty() && comparison.winner.is_none() && best.is_none());
}

#[test]
fn without_a_budget_threads_and_clock_do_not_matter() {
    let data = planted();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let models = ["als", "sgd", "bias"].map(|name| find(name).unwrap()).to_vec();
        let found = pool.install(|| compare(models, Metric::Rmse).run(&data, &silent).unwrap());
        let rows: Vec<_> = found.comparison.rows;
        let rows = rows.into_iter().map(|row| (row.model, row.score, row.interval, row.difference));
        (rows.collect::<Vec<_>>(), found.best.unwrap().to_bytes().unwrap())
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one.0, three.0);
    assert!(one.1 == three.1, "the winner's file depends on the number of threads");
}
