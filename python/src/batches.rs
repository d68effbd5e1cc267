//! A fit to batches of samples, none of which is kept.

use crate::data::Features;
use crate::error::raise;
use crate::fit::record;
use crate::model::Model;
use crate::threads::inside;
use gradus::latent::pca::{self, Pca};
use gradus_core::params::Params as _;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::sync::Arc;

/// Batches of samples for principal component analysis.
#[pyclass(module = "gradus._gradus")]
pub struct Batches {
    batches: pca::IncrementalPca,
}

#[pymethods]
impl Batches {
    /// Batches of features like these, with parameters as JSON; `state` to go on from.
    #[new]
    #[pyo3(signature = (params, features, state=None))]
    fn new(
        params: &str,
        features: &Features,
        state: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let params = Pca::from_record(&record(params)?).map_err(raise)?;
        let mut batches =
            pca::IncrementalPca::new(&params, features.matrix.n_cols()).map_err(raise)?;
        if let Some(inputs) = &features.inputs {
            batches = batches.with_inputs(inputs.clone()).map_err(raise)?;
        }
        if let Some(state) = state {
            batches.restore(&state.as_array().to_vec()).map_err(raise)?;
        }
        Ok(Self { batches })
    }

    /// Adds a batch.
    #[pyo3(signature = (features, weights=None))]
    fn push(
        &mut self,
        py: Python<'_>,
        features: &Features,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        let weights = weights.map(|weights| weights.as_array().to_vec());
        let (batches, matrix) = (&mut self.batches, &features.matrix);
        inside(py, || batches.push_matrix(matrix, weights.as_deref()))?.map_err(raise)
    }

    /// Returns the state as numbers.
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.batches.to_numbers())
    }

    /// The model of all samples so far.
    fn finish(&self, py: Python<'_>) -> PyResult<Model> {
        let fitted = inside(py, || self.batches.finish())?.map_err(raise)?;
        Ok(Model { fitted: Arc::new(fitted.into_any()) })
    }
}
