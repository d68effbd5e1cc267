//! Comparing models while Python goes on.

use crate::app::app;
use crate::data::{Features, Ratings, labels, lend};
use crate::error::raise;
use crate::model::Model;
use crate::threads::Place;
use gradus_app::compare::{CompareOptions, compare_json, compare_page, parse_budget};
use gradus_base::Error;
use gradus_core::dataset::{Dataset, number_of_classes};

use gradus_core::progress::Stop;
use gradus_data::{Buffer, Dense, Samples, Target};
use gradus_select::compare::{Compared, FitStage, RaceStep};
use gradus_select::search::Dependence;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often Python is asked whether someone pressed Ctrl-C, and progress is shown.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a target of numbers looks like classes.
#[pyfunction]
pub fn looks_like_classes(target: PyReadonlyArray1<'_, f64>) -> bool {
    let values: Vec<f64> = target.as_array().iter().copied().collect();
    number_of_classes(&values).is_some()
}

/// The result of a comparison: the leaderboard as JSON, the winner, its page and remarks.
type Answer = (String, Option<Model>, String, Vec<String>);

/// The progress for Python to show: model, stage, share of the data, which one of how many.
type Latest = Arc<Mutex<Option<(String, &'static str, f64, usize, usize)>>>;

/// Compares the models of gradus on ratings (`implicit` for signs of interest) or on samples. `options` are
/// those of the application layer as JSON, with the budget as people write it.
///
/// After Ctrl-C it gives what is complete, if anything is; the second Ctrl-C ends the wait.
#[pyfunction]
#[pyo3(signature = (options, ratings=None, implicit=false, features=None, y=None, codes=None, classes=None, weights=None, target=None, groups=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
pub fn compare(
    py: Python<'_>,
    options: &str,
    ratings: Option<&Ratings>,
    implicit: bool,
    features: Option<&Features>,
    y: Option<PyReadonlyArray2<'_, f64>>,
    codes: Option<PyReadonlyArray1<'_, u32>>,
    classes: Option<&Bound<'_, PyAny>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    target: Option<Vec<String>>,
    groups: Option<PyReadonlyArray1<'_, u32>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Answer> {
    let mut record: serde_json::Map<String, serde_json::Value> = serde_json::from_str(options)
        .map_err(|error| PyRuntimeError::new_err(format!("options: {error}")))?;
    if let Some(text) = record.get("budget").and_then(|budget| budget.as_str()) {
        let seconds = parse_budget(text).map_err(raise)?;
        record.insert("budget".into(), seconds.into());
    }
    let how: CompareOptions = serde_json::from_value(record.into())
        .map_err(|error| PyRuntimeError::new_err(format!("options: {error}")))?;
    let rows = groups
        .map_or(Dependence::Independent, |groups| Dependence::Groups(groups.as_array().to_vec()));
    let make: Box<dyn FnOnce() -> gradus::Result<Arc<dyn Dataset>> + Send> =
        match (ratings, features) {
            (Some(ratings), _) => {
                let data = Arc::clone(&ratings.data);
                Box::new(move || Ok(data as Arc<dyn Dataset>))
            }
            (None, Some(features)) => {
                let values = match (y, codes, classes) {
                    (Some(y), _, _) => {
                        let (n, k) = (y.shape()[0], y.shape()[1]);
                        let values = lend(&y).unwrap_or_else(|| {
                            let copied: Vec<f64> = y.as_array().iter().copied().collect();
                            Buffer::lent(Arc::new(copied))
                        });
                        Target::Values(Dense::from_buffer(n, k, values).map_err(raise)?)
                    }
                    (None, Some(codes), Some(classes)) => Target::Classes {
                        codes: codes.as_array().to_vec(),
                        labels: labels(classes)?,
                    },
                    _ => return Err(PyRuntimeError::new_err("neither numbers nor classes")),
                };
                let weights = weights.map(|weights| weights.as_array().to_vec());
                let (matrix, inputs) = (features.matrix.clone(), features.inputs.clone());
                Box::new(move || {
                    let mut samples = Samples::new(matrix, values)?;
                    if let Some(inputs) = inputs {
                        samples = samples.with_inputs(inputs)?;
                    }
                    if let Some(weights) = weights {
                        samples = samples.with_weights(weights)?;
                    }
                    if let Some(names) = target {
                        samples = samples.with_target_names(names)?;
                    }
                    Ok(Arc::new(samples) as Arc<dyn Dataset>)
                })
            }
            (None, None) => return Err(PyRuntimeError::new_err("neither ratings nor samples")),
        };
    let (stop, latest) = (Stop::new(), Latest::default());
    let (own_stop, own_latest) = (stop.clone(), Arc::clone(&latest));
    let work = move || -> gradus::Result<Answer> {
        let data = make()?;
        let (compare, remarks) = app().compare(&how, data.as_ref(), rows, implicit, own_stop)?;
        let tell = |step: &RaceStep<'_>| {
            let stage = match step.stage {
                FitStage::Race => "race",
                FitStage::Test => "test",
                FitStage::Refit => "refit",
            };
            let answer = (step.model.to_owned(), stage, step.share, step.of.0, step.of.1);
            *own_latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        };
        let Compared { comparison, best } = compare.run(data.as_ref(), &tell)?;
        let page = compare_page(&comparison, "Models compared", &data.describe());
        let json = serde_json::Value::from(compare_json(&comparison, data.as_ref())).to_string();
        let best = best.map(|fitted| Model { fitted: Arc::new(fitted) });
        Ok((json, best, page, remarks))
    };
    let place = Place::new(false)?;
    let (give, result) = channel();
    place.spawn(move || {
        // Nobody waits for the result after a second interruption.
        let _ = give.send(std::panic::catch_unwind(AssertUnwindSafe(work)));
    });
    let show = |py: Python<'_>| -> PyResult<()> {
        let answer = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (&progress, answer) {
            (Some(progress), Some(answer)) => progress.call1(py, answer).map(drop),
            _ => Ok(()),
        }
    };
    let shown = &show;
    let (outcome, raised) = py.detach(move || {
        let mut raised: Option<PyErr> = None;
        loop {
            match result.recv_timeout(LOOK) {
                Ok(outcome) => {
                    place.give_back();
                    return Ok((outcome, raised));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the comparison ended without a result"));
                }
            }
            match Python::attach(|py| py.check_signals().and_then(|()| shown(py))) {
                Ok(()) => {}
                Err(error) if raised.is_none() => {
                    raised = Some(error);
                    stop.request();
                }
                Err(error) => {
                    place.abandon();
                    return Err(error);
                }
            }
        }
    })?;
    let answer = outcome
        .map_err(|_| PyRuntimeError::new_err("this is a fault of gradus, please report it"))?;
    match (answer, raised) {
        (Ok(answer), Some(_)) if answer.1.is_some() => Ok(answer),
        (_, Some(raised)) => Err(raised),
        (answer, None) => answer.map_err(|error: Error| raise(error)),
    }
}
