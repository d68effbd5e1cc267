//! Texts as features.

use crate::error::raise;
use crate::fit::record;
use crate::model::Model;
use crate::threads::inside;
use gradus::text::{Counts, Documents, FitTransform, TextModel, Tfidf};
use gradus_base::Error;
use gradus_core::capability::Capability;
use gradus_core::estimator::{AnyFitted, Fit, Job};
use gradus_data::Csr;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The values, column indices and row starts of a sparse matrix, and its number of columns.
pub type Sparse<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyAny>, Bound<'py, PyAny>, usize);

/// Converts to SciPy's form, with the integers that it takes without a copy: of 32 bits, unless there are too many
/// entries for them.
fn to_python(py: Python<'_>, matrix: Csr<f64>) -> Sparse<'_> {
    fn whole<T: numpy::Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyAny> {
        PyArray1::from_vec(py, values).into_any()
    }
    let (indices, starts) = (matrix.indices(), matrix.indptr());
    // No column is above 2³¹: a vocabulary of that size has more entries.
    let (indices, starts) = if i32::try_from(matrix.nnz()).is_ok() {
        let indices: Vec<i32> = indices.iter().map(|&at| at.cast_signed()).collect();
        (whole(py, indices), whole(py, starts.iter().map(|&at| at as i32).collect()))
    } else {
        let indices: Vec<i64> = indices.iter().map(|&at| at.into()).collect();
        (whole(py, indices), whole(py, starts.iter().map(|&at| at as i64).collect()))
    };
    (PyArray1::from_slice(py, matrix.values()), indices, starts, matrix.n_cols())
}

fn learn<P: FitTransform>(
    params: &Map<String, Value>,
    texts: &[&str],
) -> gradus::Result<(AnyFitted, Csr<f64>)> {
    let job: Job<'_, Documents> = Job::default();
    let (fitted, features) = P::from_record(params)?.fit_transform("text", texts, &job)?;
    Ok((fitted.into_any(), features))
}

/// Fits the model `name` to texts; gives the model and the features of the texts.
#[pyfunction]
pub fn fit_texts<'py>(
    py: Python<'py>,
    name: &str,
    params: &str,
    texts: Vec<PyBackedStr>,
) -> PyResult<(Model, Sparse<'py>)> {
    let params = record(params)?;
    let found = inside(py, || {
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        match name {
            Counts::NAME => learn::<Counts>(&params, &texts),
            Tfidf::NAME => learn::<Tfidf>(&params, &texts),
            name => Err(Error::data(format!("model `{name}` does not learn from texts"))),
        }
    })?;
    let (fitted, features) = found.map_err(raise)?;
    Ok((Model { fitted: Arc::new(fitted) }, to_python(py, features)))
}

/// The features of texts.
#[pyfunction]
pub fn transform_texts<'py>(
    py: Python<'py>,
    model: &Model,
    texts: Vec<PyBackedStr>,
) -> PyResult<Sparse<'py>> {
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    let text_model = any
        .downcast_ref::<TextModel>()
        .ok_or_else(|| raise(model.fitted.unsupported(Capability::Transform)))?;
    let found = inside(py, || {
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        text_model.vectorizer().encode(&texts)
    })?;
    Ok(to_python(py, found.map_err(raise)?))
}
