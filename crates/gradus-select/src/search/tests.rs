//! Searches over models of samples, by models made for it.

use super::*;
use gradus_core::dataset::{AnyKind, KindOf};
use gradus_core::estimator::{Model, Traits};
use gradus_core::params::{ParamKind, ParamSpec};
use gradus_core::predict::{Outputs, Predict};
use gradus_core::report::{Report, StopReason};
use gradus_data::{Dense, Id, Ids, Inputs, Matrix, Samples};
use gradus_file::{Reader, Writer};
use serde_json::json;
use std::sync::Mutex;

/// Predicts `slope · x`; of classes its sign, with the logistic probability if it is asked to.
struct Line {
    slope: f64,
    probable: bool,
    inputs: Inputs,
    outputs: Outputs,
}

impl Predict for Line {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }
    fn outputs(&self) -> &Outputs {
        &self.outputs
    }
    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        let scores = features.times(&[self.slope]);
        Dense::new(scores.len(), 1, scores)
    }
    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let scores = features.times(&[self.slope]);
        let p = |row: usize, class| {
            let p = 1.0 / (1.0 + (-scores[row]).exp());
            if class == 1 { p } else { 1.0 - p }
        };
        Ok(self.probable.then(|| Dense::from_fn(scores.len(), 2, p)))
    }
}

impl Model for Line {
    fn write<'a>(&'a self, _: &mut Writer<'a>) {}
    fn read(file: &mut Reader) -> Result<Self> {
        Err(file.broken("not for reading"))
    }
    fn summary(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    fn predictor(&self) -> Option<&dyn Predict> {
        Some(self)
    }
}

/// What the model was fitted on, and whether it was given anything else.
type Seen = Mutex<Vec<(Vec<f64>, bool, bool)>>;

/// A model that takes its slope as a parameter.
#[derive(Default)]
struct Given {
    probable: bool,
    seen: Seen,
    /// Whether it fits a path in one go, and how often it did.
    path: bool,
    paths: AtomicUsize,
}

impl Estimator for Given {
    fn name(&self) -> &'static str {
        "given"
    }
    fn class(&self) -> &'static str {
        "Counting"
    }

    fn family(&self) -> &'static str {
        "select"
    }

    fn docs(&self) -> (String, String) {
        Default::default()
    }
    fn specs(&self) -> Vec<ParamSpec> {
        let spec = |name: &str| ParamSpec {
            name: name.into(),
            doc: String::new(),
            kind: ParamKind::Number { min: None, max: None },
            default: Value::Null,
            optional: false,
        };
        vec![spec("slope"), spec("max_iter")]
    }
    fn data(&self) -> &'static dyn AnyKind {
        const { &KindOf::<Samples>::new() }
    }
    fn traits(&self) -> Traits {
        Traits::REGRESSION
    }
    fn fit(
        &self,
        params: &Map<String, Value>,
        data: &dyn Dataset,
        validation: Option<&dyn Dataset>,
        run: &Run<'_>,
    ) -> Result<AnyFitted> {
        let samples = data.of_kind::<Samples>()?;
        let x = samples.features().values().to_vec();
        self.seen.lock().unwrap().push((x, validation.is_some(), run.warm.is_some()));
        let outputs = match samples.labels() {
            Some(labels) => Outputs::Classes { name: "y".into(), labels: labels.clone() },
            None => Outputs::Values(vec!["y".into()]),
        };
        let model = Line {
            slope: params["slope"].as_f64().unwrap(),
            probable: self.probable,
            inputs: samples.inputs().clone(),
            outputs,
        };
        let report = Report {
            iterations: 7,
            stop_reason: StopReason::Solved,
            objective: 0.0,
            validation: None,
            metric: "other".into(),
            higher_is_better: false,
            best: 0,
            seed: 0,
            trace: Vec::new(),
            baselines: Vec::new(),
            certificate: None,
            chosen: Vec::new(),
            notes: Vec::new(),
            training: None,
            seconds: 0.0,
            clock: Vec::new(),
        };
        Ok(AnyFitted {
            kind: "given",
            params: params.clone(),
            report,
            model: Box::new(model),
            titles: None,
        })
    }
    fn fit_path(
        &self,
        chain: &[Map<String, Value>],
        data: &dyn Dataset,
        run: &Run<'_>,
    ) -> Option<Result<Vec<AnyFitted>>> {
        self.path.then(|| {
            self.paths.fetch_add(1, Ordering::Relaxed);
            chain.iter().map(|params| self.fit(params, data, None, run)).collect()
        })
    }
    fn read(&self, file: &mut Reader) -> Result<AnyFitted> {
        Err(file.broken("not for reading"))
    }
}

#[test]
fn a_model_that_fits_a_path_is_fitted_once_a_fold() {
    let data = numbers(60);
    let run = |path: bool| {
        let model = Given { path, ..Given::default() };
        let mut search = search(&model, &[2.0], Plan::Folds(3), Dependence::Independent);
        let values = vec![json!(0.1), json!(1.0), json!(10.0)];
        search.axes.push(Axis { name: "regularization".into(), values });
        let found = search.run(&data, &|_| {}).unwrap();
        (found, model.paths.into_inner())
    };
    let ((found, paths), (one_by_one, none)) = (run(true), run(false));
    assert_eq!((found, paths, none), (one_by_one, 3, 0));
}

fn search<'a>(model: &'a Given, slopes: &[f64], plan: Plan, rows: Dependence) -> Search<'a> {
    let values = slopes.iter().map(|&slope| slope.into()).collect();
    Search {
        model,
        fixed: Map::new(),
        axes: vec![Axis { name: "slope".into(), values }],
        plan,
        rows,
        seed: 1,
        warm: false,
        stop: Stop::new(),
    }
}

/// `y = 2x` and ±0.5 in turn, x from −2 to 2.
fn numbers(n: usize) -> Samples {
    let x: Vec<f64> = (0..n).map(|i| 4.0 * i as f64 / (n - 1) as f64 - 2.0).collect();
    let y = x.iter().enumerate().map(|(i, x)| 2.0 * x + [0.5, -0.5][i % 2]).collect();
    Samples::regression(Dense::new(n, 1, x).unwrap(), y).unwrap()
}

/// Class 1 where x is positive, except for every tenth.
fn classes(n: usize) -> Samples {
    let x: Vec<f64> = (0..n).map(|i| 4.0 * (i as f64 + 0.5) / n as f64 - 2.0).collect();
    let class = |(i, x): (usize, &f64)| Id::Int(i64::from((*x > 0.0) != (i % 10 == 0)));
    let classes: Vec<Id<'_>> = x.iter().enumerate().map(class).collect();
    Samples::classification(Dense::new(n, 1, x).unwrap(), classes).unwrap()
}

#[test]
fn numbers_are_evaluated_by_their_squared_error() {
    let (model, samples) = (Given::default(), numbers(200));
    for plan in [Plan::Folds(4), Plan::Holdout(0.3)] {
        let search = search(&model, &[1.0, 2.0, 5.0], plan, Dependence::Independent);
        let found = search.run(&samples.clone(), &|_| {}).unwrap();
        assert_eq!((found.metric.as_str(), found.higher_is_better), ("rmse", false));
        let best = &found.candidates[0];
        assert_eq!(best.params["slope"], 2.0);
        assert!((best.score.value - 0.5).abs() < 1e-12 && best.score.error < 1e-9);
        assert_eq!((best.iterations, &best.accuracy, found.accuracy_lead), (7.0, &None, None));
        let score = &found.candidates[1].score;
        assert!(score.interval.low < score.value && score.value < score.interval.high);
        assert!(found.lead.unwrap().is_sure() && found.lead.unwrap().guaranteed.is_none());
        // No early stopping, and the iterations of the folds are not those of the refit.
        assert!(model.seen.lock().unwrap().iter().all(|(_, validation, _)| !validation));
        let fitted = search.refit(&found, &samples.clone(), &Run::default()).unwrap();
        assert!(!fitted.params.contains_key("max_iter"));
    }
    // Every sample is held out once in four folds: the score is that of all of them.
    let search = search(&model, &[1.0], Plan::Folds(4), Dependence::Independent);
    let found = search.run(&samples.clone(), &|_| {}).unwrap();
    let y = samples.values().unwrap();
    let x = samples.features().values();
    let mse = (0..200).map(|i| (y[(i, 0)] - x[i]).powi(2)).sum::<f64>() / 200.0;
    assert!((found.candidates[0].score.value - mse.sqrt()).abs() < 1e-12);
    assert!(found.lead.is_none());
}

#[test]
fn classes_are_evaluated_by_probabilities_or_by_their_share() {
    let samples = classes(400);
    let plain = Given::default();
    let found = search(&plain, &[-1.0, 1.0], Plan::Folds(5), Dependence::Independent)
        .run(&samples, &|_| {})
        .unwrap();
    assert_eq!((found.metric.as_str(), found.higher_is_better), ("accuracy", true));
    let best = &found.candidates[0];
    assert!((best.score.value - 0.9).abs() < 1e-12 && best.params["slope"] == 1.0);
    // The mean of five intervals of 80 samples each, two candidates.
    let of_fold = gradus_metrics::bounds::proportion(8, 80, 1.0 - 0.05 / 10.0).unwrap().width();
    let interval = best.score.interval;
    assert!(
        interval.contains(0.9) && (interval.width() / of_fold - 1.0).abs() < 0.1,
        "{interval:?}"
    );
    // ln(2·2/0.05)·2/0.8² points are enough to tell 0.9 from 0.1.
    assert_eq!(found.lead.unwrap().guaranteed, Some(14));
    assert!(best.accuracy.is_none());

    let probable = Given { probable: true, ..Given::default() };
    let found = search(&probable, &[1.0, 2.0, 30.0], Plan::Folds(5), Dependence::Independent)
        .run(&samples, &|_| {})
        .unwrap();
    assert_eq!((found.metric.as_str(), found.higher_is_better), ("log loss", false));
    // All three answer alike, and differ in how sure they are.
    assert!(found.candidates.iter().all(|c| (c.accuracy.unwrap().value - 0.9).abs() < 1e-12));
    assert_eq!(found.candidates[2].params["slope"], 30.0);
    let scores: Vec<f64> = found.candidates.iter().map(|c| c.score.value).collect();
    assert!(scores.is_sorted() && scores[2] > 1.0, "{scores:?}");
    assert_eq!(found.accuracy_lead.unwrap().needed, None);
    assert_eq!(found.lead.unwrap().guaranteed, None);
}

#[test]
fn groups_stay_together_and_time_does_not_run_backwards() {
    let (model, samples) = (Given::default(), numbers(40));
    let data = samples.clone();
    let x = samples.features().values().to_vec();
    let place = |value: &f64| x.iter().position(|x| x == value).unwrap();
    let run = |plan, rows: Dependence| {
        model.seen.lock().unwrap().clear();
        search(&model, &[2.0], plan, rows).run(&data, &|_| {}).unwrap();
        let seen = model.seen.lock().unwrap();
        seen.iter().map(|(x, ..)| x.iter().map(place).collect()).collect::<Vec<Vec<usize>>>()
    };
    let groups = Dependence::Groups((0..40).map(|row| row / 4).collect());
    for plan in [Plan::Folds(5), Plan::Holdout(0.2)] {
        for train in run(plan, groups.clone()) {
            assert_eq!(train.len(), 32);
            assert!(
                (0..10).all(|g| [0, 4].contains(&train.iter().filter(|r| **r / 4 == g).count()))
            );
        }
    }
    // Backwards in time.
    let times = Dependence::Times((0..40).map(|row| -row).collect());
    let mut trains = run(Plan::Folds(4), times.clone());
    trains.sort_by_key(Vec::len);
    for (fold, train) in trains.iter().enumerate() {
        assert_eq!(*train, (40 - 8 * (fold + 1)..40).collect::<Vec<_>>());
    }
    assert_eq!(run(Plan::Holdout(0.25), times), [(10..40).collect::<Vec<_>>()]);
    let wrong = search(&model, &[2.0], Plan::Folds(2), Dependence::Groups(vec![1; 3]));
    let error = wrong.run(&data, &|_| {}).unwrap_err().to_string();
    assert!(error.contains("groups: expected 40"), "{error}");
}

#[test]
fn a_warm_start_is_passed_on_and_a_scarce_class_is_named() {
    let model = Given::default();
    let mut warm = search(&model, &[2.0], Plan::Holdout(0.5), Dependence::Independent);
    warm.axes.push(Axis { name: "regularization".into(), values: vec![json!(1), json!(2)] });
    warm.warm = true;
    warm.run(&numbers(10), &|_| {}).unwrap();
    let seen: Vec<bool> = model.seen.lock().unwrap().iter().map(|(.., warm)| *warm).collect();
    assert_eq!(seen, [false, true]);

    let x = Dense::from_rows(&[[1.0], [2.0], [3.0], [4.0], [5.0]]);
    let words = ["no", "no", "yes", "no", "no"].map(Id::Text);
    let few = Samples::classification(x, words).unwrap();
    assert!(matches!(few.labels(), Some(Ids::Text(_))));
    let search = search(&model, &[2.0], Plan::Folds(2), Dependence::Independent);
    let found = search.run(&few, &|_| {}).unwrap();
    assert_eq!(found.notes.len(), 1);
    assert!(found.notes[0].contains("class `yes` has 1 sample,"), "{:?}", found.notes);
}

#[test]
fn threads_do_not_matter() {
    let model = Given { probable: true, ..Given::default() };
    let run = || {
        let search = search(&model, &[0.5, 1.0, 2.0], Plan::Folds(5), Dependence::Independent);
        search.run(&classes(3000), &|_| {}).unwrap()
    };
    let on = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(run);
    assert_eq!(on(1), on(3));
}
