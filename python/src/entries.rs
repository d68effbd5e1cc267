//! A fit to entries of different weights.

use crate::data::Features;
use crate::error::raise;
use crate::fit::{record, watched};
use crate::model::Model;
use gradus::latent::Nmf;
use gradus_core::estimator::{Job, Run};
use gradus_core::params::Params as _;
use gradus_data::Samples;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use std::sync::Arc;

/// Fits non-negative matrix factorisation with a weight for each entry; 0 is a missing one.
#[pyfunction]
#[pyo3(signature = (params, features, entry_weights, weights=None, progress=None))]
pub fn fit_entries(
    py: Python<'_>,
    params: &str,
    features: &Features,
    entry_weights: &Features,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let params = Nmf::from_record(&record(params)?).map_err(raise)?;
    let weights = weights.map(|weights| weights.as_array().to_vec());
    let (matrix, inputs) = (features.matrix.clone(), features.inputs.clone());
    let of_entries = entry_weights.matrix.clone();
    let keep = Arc::new((matrix.clone(), of_entries.clone()));
    let work = move |run: &Run<'_>| {
        let mut samples = Samples::unlabelled(matrix)?;
        if let Some(inputs) = inputs {
            samples = samples.with_inputs(inputs)?;
        }
        if let Some(weights) = weights {
            samples = samples.with_weights(weights)?;
        }
        let job = Job { observer: run.observer, stop: run.stop.clone(), ..Job::default() };
        params.fit_entries(&samples, Some(&of_entries), &job).map(|fitted| fitted.into_any())
    };
    let fitted = watched(py, false, progress, work, keep)?;
    Ok(Model { fitted: Arc::new(fitted) })
}
