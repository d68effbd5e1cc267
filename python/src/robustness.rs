//! Audits of robustness: of models of gradus, and of any classifier that is a function of Python.

use crate::app::to_json;
use crate::data::Features;
use crate::error::raise;
use crate::model::Model;
use crate::threads::attended;
use gradus::audit::robustness::{
    Access, Category, Certified, Classifier, ModelClassifier, Norm, Robustness, RobustnessOptions,
    Smoothing, Space, Stoppable, audit, certify,
};
use gradus_base::Error;
use gradus_core::progress::Stop;
use gradus_core::transform::{ScoresAndGradient, Weigh};
use gradus_data::{Dense, Matrix};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

/// A classifier that is one function of Python for decisions, and perhaps one for scores.
struct Callback {
    n_features: usize,
    n_classes: usize,
    decide: Py<PyAny>,
    scores: Option<Py<PyAny>>,
    /// The first exception that a function raised.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Callback {
    /// Calls a function with the features as an array.
    fn call<T>(
        &self,
        function: &Py<PyAny>,
        features: &Matrix,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> gradus::Result<T> {
        Python::attach(|py| -> PyResult<T> {
            py.check_signals()?;
            let (n, d) = features.shape();
            let values = match features {
                Matrix::Dense(dense) => PyArray1::from_slice(py, dense.values()),
                Matrix::Sparse(_) => PyArray1::from_vec(py, features.to_dense().into_values()),
            };
            read(&function.bind(py).call1((values.reshape([n, d])?,))?)
        })
        .map_err(|error| {
            let text = error.to_string();
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            Error::data(format!("the classifier failed: {text}"))
        })
    }
}

impl Classifier for Callback {
    fn n_features(&self) -> usize {
        self.n_features
    }

    fn n_classes(&self) -> usize {
        self.n_classes
    }

    fn access(&self) -> Access {
        if self.scores.is_some() { Access::Scores } else { Access::Decisions }
    }

    fn decide(&self, features: &Matrix) -> gradus::Result<Vec<u32>> {
        let found = self.call(&self.decide, features, |found| {
            let codes: PyReadonlyArray1<'_, u32> = found.extract()?;
            Ok(codes.as_array().to_vec())
        })?;
        let n = features.n_rows();
        if found.len() != n || found.iter().any(|&class| class as usize >= self.n_classes) {
            return Err(Error::Shape {
                what: "predicted classes".into(),
                expected: format!("{n} of {} classes", self.n_classes),
                got: found.len().to_string(),
            });
        }
        Ok(found)
    }

    fn scores(&self, features: &Matrix) -> gradus::Result<Dense<f64>> {
        let Some(scores) = &self.scores else {
            return Err(Error::data("the classifier gives no scores"));
        };
        let (shape, values) = self.call(scores, features, |found| {
            let array: PyReadonlyArray2<'_, f64> = found.extract()?;
            Ok(((array.shape()[0], array.shape()[1]), array.as_array().iter().copied().collect()))
        })?;
        let expected = (features.n_rows(), self.n_classes);
        if shape != expected {
            return Err(Error::Shape {
                what: "scores".into(),
                expected: format!("{expected:?}"),
                got: format!("{shape:?}"),
            });
        }
        Dense::new(shape.0, shape.1, values)
    }

    fn scores_and_gradient(
        &self,
        _features: &Matrix,
        _weigh: &mut Weigh<'_>,
    ) -> gradus::Result<ScoresAndGradient> {
        Err(Error::data("the classifier gives no gradients"))
    }
}

/// What may change, as Python says it.
#[derive(Deserialize)]
struct Asked {
    norm: String,
    low: Option<Vec<f64>>,
    high: Option<Vec<f64>>,
    unit: Option<Vec<f64>>,
    standardize: bool,
    integer: Vec<usize>,
    categories: Vec<Vec<usize>>,
    smoothing: Option<f64>,
    options: RobustnessOptions,
}

impl Asked {
    fn space(
        &self,
        inputs: Option<&gradus_data::Inputs>,
        features: &Dense<f64>,
    ) -> gradus::Result<Space> {
        let d = features.n_cols();
        let norm = Norm::parse(&self.norm)?;
        let mut space = match inputs {
            Some(inputs) => Space::of_inputs(norm, inputs),
            None => Space::new(norm, d),
        };
        if self.standardize {
            space.scale_by_deviation(features);
        }
        let fit = |what: &str, given: &Option<Vec<f64>>, own: &mut Vec<f64>| match given {
            Some(given) if given.len() != d => Err(Error::Shape {
                what: what.into(),
                expected: d.to_string(),
                got: given.len().to_string(),
            }),
            Some(given) => {
                own.clone_from(given);
                Ok(())
            }
            None => Ok(()),
        };
        fit("bounds", &self.low, &mut space.low)?;
        fit("bounds", &self.high, &mut space.high)?;
        if let Some(budget) = &self.unit {
            if budget.len() != d {
                fit("budget", &self.unit, &mut space.unit)?;
            }
            space.unit.iter_mut().zip(budget).for_each(|(unit, by)| *unit *= by);
        }
        for &at in &self.integer {
            let Some(place) = space.integer.get_mut(at) else {
                return Err(Error::parameter(
                    "integer",
                    at,
                    format!("must be below {d}, the number of features"),
                ));
            };
            *place = true;
        }
        for group in &self.categories {
            let (first, last) =
                (group.first().copied().unwrap_or(0), group.last().copied().unwrap_or(0));
            let follows = group.windows(2).all(|pair| pair[1] == pair[0] + 1);
            if group.len() < 2 || !follows || last >= d {
                let shown = format!("{group:?}");
                let rule = format!("must be two or more columns in a row, below {d}");
                return Err(Error::parameter("categories", shown, rule));
            }
            space.categories.push(Category {
                features: first..last + 1,
                cost: 1.0,
                implicit: false,
            });
        }
        Ok(space)
    }
}

/// The result as JSON, certificates as JSON, and the changed rows, one after another, of the rows named.
type Answer<'py> = (String, Option<String>, Vec<usize>, Bound<'py, PyArray1<f64>>);

/// Audits a model of gradus (`model`), or functions of Python (`decide`, `scores`). Classes are numbers; −1 is a class
/// that the model does not know.
#[pyfunction]
#[pyo3(signature = (asked, features, codes, n_classes, model=None, decide=None, scores=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
pub fn audit_robustness<'py>(
    py: Python<'py>,
    asked: &str,
    features: &Features,
    codes: PyReadonlyArray1<'_, i64>,
    n_classes: usize,
    model: Option<&Model>,
    decide: Option<Py<PyAny>>,
    scores: Option<Py<PyAny>>,
) -> PyResult<Answer<'py>> {
    let asked: Asked = serde_json::from_str(asked)
        .map_err(|error| PyRuntimeError::new_err(format!("options: {error}")))?;
    let truth: Vec<Option<u32>> =
        codes.as_array().iter().map(|&code| u32::try_from(code).ok()).collect();
    // A copy: what Python lent is not let go by another thread.
    let x = Dense::from_fn(features.matrix.n_rows(), features.matrix.n_cols(), {
        let dense = features.matrix.to_dense();
        move |row, column| dense[(row, column)]
    });
    let fitted = model.map(|model| Arc::clone(&model.fitted));
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let own = Arc::clone(&raised);
    let work = move |stop: &Stop| -> gradus::Result<(Robustness, Option<Certified>)> {
        let run = |victim: &dyn Classifier, space: Space| {
            let stopped = || stop.requested();
            let victim = &Stoppable::new(victim, &stopped);
            let found = audit(victim, &space, &x, &truth, &asked.options, &stopped)?;
            let Some(sigma) = asked.smoothing else { return Ok((found, None)) };
            let smoothing = Smoothing { sigma, seed: asked.options.seed, ..Smoothing::default() };
            let space = Space { norm: Norm::L2, ..space };
            let radii: Vec<f64> = (0..=8).map(|step| 0.5 * sigma * f64::from(step)).collect();
            let certified = certify(victim, &space, &x, &truth, &radii, &smoothing)?;
            Ok((found, Some(certified)))
        };
        match (&fitted, decide) {
            (Some(fitted), _) => {
                let inputs = fitted.predictor()?.inputs();
                inputs.check_width(x.n_cols())?;
                run(&ModelClassifier::new(fitted)?, asked.space(Some(inputs), &x)?)
            }
            (None, Some(decide)) => {
                let n_features = x.n_cols();
                let victim = Callback { n_features, n_classes, decide, scores, raised: own };
                run(&victim, asked.space(None, &x)?)
            }
            (None, None) => Err(Error::data("neither a model nor a function")),
        }
    };
    let found = attended(py, work)?;
    // A signal may have come after the last look.
    py.check_signals()?;
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    let (found, certified) = found.map_err(raise)?;
    let certified = certified.as_ref().map(to_json).transpose()?;
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for (row, example) in found.examples.iter().enumerate() {
        if let Some(example) = example {
            rows.push(row);
            values.extend_from_slice(example);
        }
    }
    Ok((to_json(&found)?, certified, rows, PyArray1::from_vec(py, values)))
}
