//! Fitting with Python looking on: without the GIL, with progress, and with Ctrl-C.

use crate::data::{Features, Ratings, labels};
use crate::error::raise;
use crate::model::Model;
use crate::threads;
use gradus::core::estimator::{AnyData, AnyFitted, Run};
use gradus::core::progress::{Event, Observer, Stop};
use gradus::data::{Dense, Samples, Target};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often Python is asked whether someone pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a fit may take to stop by itself.
const GRACE: Duration = Duration::from_millis(600);

/// A step of the fit, for Python to show.
struct Step {
    iteration: usize,
    max_iterations: usize,
    objective: f64,
    validation: Option<f64>,
    metric: String,
    seconds: f64,
}

struct Teller {
    sender: Sender<Step>,
    most: std::sync::atomic::AtomicUsize,
    done: std::sync::atomic::AtomicUsize,
}

impl Observer for Teller {
    fn notice(&self, event: &Event<'_>) {
        use std::sync::atomic::Ordering::Relaxed;
        match event {
            Event::Started { max_iterations, .. } => self.most.store(*max_iterations, Relaxed),
            Event::Iteration { point, metric, seconds } => {
                let iteration = self.done.fetch_add(1, Relaxed) + 1;
                // Nobody listens any more after an interruption.
                let _ = self.sender.send(Step {
                    iteration,
                    max_iterations: self.most.load(Relaxed),
                    objective: point.objective,
                    validation: point.validation,
                    metric: (*metric).to_owned(),
                    seconds: *seconds,
                });
            }
            _ => {}
        }
    }
}

/// Does long work in the pool; the calling thread only listens to it and to Python's signals.
///
/// After a signal the work has a moment to stop by itself. What is in the middle of a factorisation
/// cannot: it is left to end in its own time, in threads that nobody else uses any more.
fn watched(
    py: Python<'_>,
    told: Option<Py<PyAny>>,
    work: impl FnOnce(&Run<'_>) -> gradus::Result<AnyFitted> + Send + 'static,
) -> PyResult<AnyFitted> {
    let pool = threads::pool()?;
    let stop = Stop::new();
    let run_stop = stop.clone();
    let (sender, steps) = channel();
    let (give, result) = channel();
    let spawned = std::thread::Builder::new().name("gradus-fit".into()).spawn(move || {
        let teller = Teller { sender, most: 0.into(), done: 0.into() };
        let run = Run { observer: &teller, stop: run_stop, ..Run::default() };
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&run))));
        // Nobody waits for it after an interruption.
        let _ = give.send(outcome);
    });
    spawned.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    let outcome = py.detach(move || {
        let raised = loop {
            let step = match steps.recv_timeout(PATIENCE) {
                Ok(step) => Some(step),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(result.recv()),
            };
            if step.is_some() && told.is_none() {
                continue;
            }
            let outcome = Python::attach(|py| {
                py.check_signals()?;
                match (&told, step) {
                    (Some(told), Some(step)) => tell(py, told, &step),
                    _ => Ok(()),
                }
            });
            if let Err(error) = outcome {
                break error;
            }
        };
        stop.request();
        if result.recv_timeout(GRACE).is_err() {
            threads::abandon();
        }
        Err(raised)
    })?;
    // A signal may have come after the last look.
    py.check_signals()?;
    match outcome {
        Ok(Ok(fitted)) => fitted.map_err(raise),
        Ok(Err(panic)) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            let message = format!("this is a fault of gradus, please report it: {text}");
            Err(PyRuntimeError::new_err(message))
        }
        Err(_) => Err(PyRuntimeError::new_err("the fit ended without a result")),
    }
}

fn tell(py: Python<'_>, told: &Py<PyAny>, step: &Step) -> PyResult<()> {
    let arguments = (
        step.iteration,
        step.max_iterations,
        step.objective,
        step.validation,
        step.metric.as_str(),
        step.seconds,
    );
    told.call1(py, arguments).map(drop)
}

fn record(params: &str) -> PyResult<Map<String, Value>> {
    serde_json::from_str(params)
        .map_err(|error| PyRuntimeError::new_err(format!("parameters: {error}")))
}

/// Fits the model `name` to samples. `y` holds numbers (samples × targets), or codes of `classes`.
#[pyfunction]
#[pyo3(signature = (name, params, features, y=None, codes=None, classes=None, weights=None, target=None, told=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
pub fn fit(
    py: Python<'_>,
    name: &str,
    params: &str,
    features: &Features,
    y: Option<PyReadonlyArray2<'_, f64>>,
    codes: Option<PyReadonlyArray1<'_, u32>>,
    classes: Option<&Bound<'_, PyAny>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    target: Option<Vec<String>>,
    told: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let target_values = match (y, codes, classes) {
        (Some(y), _, _) => {
            let (n, k) = (y.shape()[0], y.shape()[1]);
            let values = y.as_array().iter().copied().collect();
            Target::Values(Dense::new(n, k, values).map_err(raise)?)
        }
        (None, Some(codes), Some(classes)) => {
            Target::Classes { codes: codes.as_array().to_vec(), labels: labels(classes)? }
        }
        _ => return Err(PyRuntimeError::new_err("neither numbers nor classes to predict")),
    };
    let mut samples = Samples::new(features.matrix.clone(), target_values).map_err(raise)?;
    if let Some(inputs) = &features.inputs {
        samples = samples.with_inputs(inputs.clone()).map_err(raise)?;
    }
    if let Some(weights) = weights {
        samples = samples.with_weights(weights.as_array().to_vec()).map_err(raise)?;
    }
    if let Some(names) = target {
        samples = samples.with_target_names(names).map_err(raise)?;
    }
    let data = AnyData::Samples(samples);
    let fitted = watched(py, told, move |run| model.fit(&params, &data, None, run))?;
    Ok(Model { fitted })
}

/// Fits the model `name` to ratings, with held-out ones to judge it by if there are any.
#[pyfunction]
#[pyo3(signature = (name, params, ratings, validation=None, told=None))]
pub fn fit_ratings(
    py: Python<'_>,
    name: &str,
    params: &str,
    ratings: &Ratings,
    validation: Option<&Ratings>,
    told: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let data = AnyData::Ratings(ratings.ratings.clone());
    let held = validation.map(|held| AnyData::Ratings(held.ratings.clone()));
    let fitted = watched(py, told, move |run| model.fit(&params, &data, held.as_ref(), run))?;
    Ok(Model { fitted })
}
