//! Fitting while Python goes on: without the GIL, with progress, and with Ctrl-C.

use crate::data::{Features, Ratings, SMALL, labels, lend};
use crate::error::raise;
use crate::model::Model;
use crate::threads::{Place, works_alone};
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{AnyFitted, Run};
use gradus_core::progress::{Event, Observer, Stop};
use gradus_data::{Buffer, Dense, Samples, Target};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often Python is asked whether someone pressed Ctrl-C, and progress is shown.
const LOOK: Duration = Duration::from_millis(50);

/// How long a fit may take to stop by itself.
const GRACE: Duration = Duration::from_millis(600);

/// An iteration of the fit, for Python to show.
struct Step {
    iteration: usize,
    max_iterations: usize,
    objective: f64,
    validation: Option<f64>,
    metric: String,
    seconds: f64,
}

/// Keeps the latest iteration. Iterations may be much faster than a terminal.
#[derive(Default)]
struct Latest {
    step: Mutex<Option<Step>>,
    max_iterations: AtomicUsize,
    done: AtomicUsize,
}

impl Latest {
    fn take(&self) -> Option<Step> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Observer for Latest {
    fn notice(&self, event: &Event<'_>) {
        match event {
            Event::Started { max_iterations, .. } => {
                self.max_iterations.store(*max_iterations, Ordering::Relaxed);
            }
            Event::Iteration { point, metric, seconds } => {
                let step = Step {
                    iteration: self.done.fetch_add(1, Ordering::Relaxed) + 1,
                    max_iterations: self.max_iterations.load(Ordering::Relaxed),
                    objective: point.objective,
                    validation: point.validation,
                    metric: (*metric).to_owned(),
                    seconds: *seconds,
                };
                *self.step.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
            }
            _ => {}
        }
    }
}

/// Asks Python for signals now and then, from the iterations of a fit on the thread that called.
struct Signals {
    stop: Stop,
    next: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
}

impl Observer for Signals {
    fn notice(&self, _: &Event<'_>) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() < *next {
            return;
        }
        *next = Instant::now() + LOOK;
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.stop.request();
        }
    }
}

/// Does a small fit on the calling thread: to wake another takes as long as the fit.
fn here(
    py: Python<'_>,
    work: impl FnOnce(&Run<'_>) -> gradus::Result<AnyFitted> + Send,
) -> PyResult<AnyFitted> {
    let stop = Stop::new();
    let next = Mutex::new(Instant::now() + LOOK);
    let signals = Signals { stop: stop.clone(), next, raised: Mutex::default() };
    let outcome = py.detach(|| {
        let run = Run { stop, observer: &signals, ..Run::default() };
        std::panic::catch_unwind(AssertUnwindSafe(|| work(&run)))
    });
    if let Some(error) = signals.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    finished(outcome)
}

/// Does a fit in a pool; the calling thread waits for it and looks after Python's signals.
///
/// `data` is what `work` reads, kept until the work is done.
///
/// After a signal the fit has a moment to stop by itself. What is in the middle of a factorisation
/// cannot: it is left to end in its own time, in threads that nobody else uses any more.
pub fn watched(
    py: Python<'_>,
    small: bool,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Run<'_>) -> gradus::Result<AnyFitted> + Send + 'static,
    data: Arc<dyn Send + Sync>,
) -> PyResult<AnyFitted> {
    let place = Place::new(small)?;
    let stop = Stop::new();
    let run_stop = stop.clone();
    let latest = progress.as_ref().map(|_| Arc::new(Latest::default()));
    let observer = latest.clone();
    let (give, result) = channel();
    place.spawn(move || {
        let mut run = Run { stop: run_stop, ..Run::default() };
        if let Some(observer) = &observer {
            run.observer = observer.as_ref();
        }
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| work(&run)));
        // Nobody waits for the result after an interruption.
        let _ = give.send(outcome);
    });
    let show = |py: Python<'_>| match (&progress, latest.as_ref().and_then(|latest| latest.take()))
    {
        (Some(progress), Some(step)) => call(py, progress, &step),
        _ => Ok(()),
    };
    let shown = &show;
    let outcome = py.detach(move || {
        let raised = loop {
            match result.recv_timeout(LOOK) {
                Ok(outcome) => {
                    place.give_back();
                    return Ok(outcome);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let message = "the fit ended without a result";
                    return Err(PyRuntimeError::new_err(message));
                }
            }
            let looked = Python::attach(|py| py.check_signals().and_then(|()| shown(py)));
            if let Err(error) = looked {
                break error;
            }
        };
        stop.request();
        match result.recv_timeout(GRACE) {
            Err(RecvTimeoutError::Timeout) => place.abandon(),
            _ => place.give_back(),
        }
        Err(raised)
    })?;
    // Arrays that lent their memory are let go here, by a thread that holds the GIL: without it their
    // release takes a lock, which a fork at that moment would leave taken in the child.
    drop(data);
    // A signal may have come after the last look.
    py.check_signals()?;
    show(py)?;
    finished(outcome)
}

/// Returns the outcome of a fit, or its error.
fn finished(outcome: std::thread::Result<gradus::Result<AnyFitted>>) -> PyResult<AnyFitted> {
    outcome
        .map_err(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            PyRuntimeError::new_err(format!("this is a fault of gradus, please report it: {text}"))
        })?
        .map_err(raise)
}

fn call(py: Python<'_>, progress: &Py<PyAny>, step: &Step) -> PyResult<()> {
    let arguments = (
        step.iteration,
        step.max_iterations,
        step.objective,
        step.validation,
        step.metric.as_str(),
        step.seconds,
    );
    progress.call1(py, arguments).map(drop)
}

pub fn record(params: &str) -> PyResult<Map<String, Value>> {
    serde_json::from_str(params)
        .map_err(|error| PyRuntimeError::new_err(format!("parameters: {error}")))
}

/// Fits the model `name` to samples. `y` holds numbers (samples × targets), or codes of `classes`; neither for a
/// model that does not predict.
/// `warm` is a model of the same kind to start from, `folds` the fold of each sample where the model
/// chooses by cross-validation.
#[pyfunction]
#[pyo3(signature = (name, params, features, y=None, codes=None, classes=None, weights=None, target=None, progress=None, warm=None, folds=None))]
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
    progress: Option<Py<PyAny>>,
    warm: Option<&Model>,
    folds: Option<PyReadonlyArray1<'_, u32>>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let values = match (y, codes, classes) {
        (Some(y), _, _) => {
            let (n, k) = (y.shape()[0], y.shape()[1]);
            let values = lend(&y).unwrap_or_else(|| {
                // By rows, whatever their order in memory: `as_slice` gives that of columns as it lies.
                Buffer::lent(Arc::new(y.as_array().iter().copied().collect::<Vec<f64>>()))
            });
            Target::Values(Dense::from_buffer(n, k, values).map_err(raise)?)
        }
        (None, Some(codes), Some(classes)) => {
            Target::Classes { codes: codes.as_array().to_vec(), labels: labels(classes)? }
        }
        // Transformers, clusterings and the like learn from features alone.
        _ if !model.traits().predicts() => {
            let nothing = Dense::new(features.matrix.n_rows(), 0, Vec::new());
            Target::Values(nothing.map_err(raise)?)
        }
        _ => return Err(PyRuntimeError::new_err("neither numbers nor classes to predict")),
    };
    let weights = weights.map(|weights| weights.as_array().to_vec());
    let folds = folds.map(|folds| folds.as_array().to_vec());
    let (matrix, inputs) = (features.matrix.clone(), features.inputs.clone());
    let small = matrix.values().len() + matrix.n_rows() + matrix.n_cols() <= SMALL;
    let warm = warm.map(|warm| Arc::clone(&warm.fitted));
    let lent = if let Target::Values(y) = &values { Some(y.clone()) } else { None };
    let keep = Arc::new((matrix.clone(), lent));
    let work = move |run: &Run<'_>| {
        // Here and not before: checking the features takes threads, too.
        let mut samples = match model.traits().missing && !model.traits().predicts() {
            true => Samples::with_missing(matrix)?,
            false => Samples::new(matrix, values)?,
        };
        if let Some(inputs) = inputs {
            samples = samples.with_inputs(inputs)?;
        }
        if let Some(weights) = weights {
            samples = samples.with_weights(weights)?;
        }
        if let Some(folds) = folds {
            samples = samples.with_folds(folds)?;
        }
        if let Some(names) = target {
            samples = samples.with_target_names(names)?;
        }
        let run = from_warm(run, warm.as_deref());
        model.fit(&params, &samples, None, &run)
    };
    let fitted = if small && progress.is_none() && works_alone() {
        here(py, work)?
    } else {
        watched(py, small, progress, work, keep)?
    };
    Ok(Model { fitted: Arc::new(fitted) })
}

/// Fits the model `name` to ratings, with held-out ones to evaluate it by if there are any.
#[pyfunction]
#[pyo3(signature = (name, params, ratings, validation=None, progress=None, warm=None))]
pub fn fit_ratings(
    py: Python<'_>,
    name: &str,
    params: &str,
    ratings: &Ratings,
    validation: Option<&Ratings>,
    progress: Option<Py<PyAny>>,
    warm: Option<&Model>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let data = Arc::clone(&ratings.data);
    let held_out = validation.map(|held_out| Arc::clone(&held_out.data));
    let warm = warm.map(|warm| Arc::clone(&warm.fitted));
    let keep = Arc::clone(&data);
    let work = move |run: &Run<'_>| {
        let run = from_warm(run, warm.as_deref());
        let held_out = held_out.as_deref().map(|held_out| held_out as &dyn Dataset);
        model.fit(&params, data.as_ref(), held_out, &run)
    };
    let fitted = watched(py, false, progress, work, keep)?;
    Ok(Model { fitted: Arc::new(fitted) })
}

pub fn from_warm<'a>(run: &Run<'a>, warm: Option<&'a AnyFitted>) -> Run<'a> {
    Run {
        warm: warm.map(|warm| warm.model.as_ref()),
        observer: run.observer,
        stop: run.stop.clone(),
        checkpoint: None,
    }
}
