//! Topic models: documents as texts, or as counts of words.

use crate::data::Features;
use crate::error::raise;
use crate::fit::{record, watched};
use crate::model::Model;
use crate::threads::inside;
use gradus::latent::lda::OnlineLda;
use gradus::latent::{Lda, TopicModel};
use gradus::text::Documents;
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::Run;
use gradus_core::params::Params as _;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::sync::Arc;

/// Documents for a topic model.
#[pyclass(frozen)]
pub struct Corpus {
    documents: Arc<Documents>,
}

impl Corpus {
    pub(crate) fn of(documents: Documents) -> Self {
        Self { documents: Arc::new(documents) }
    }
}

#[pymethods]
impl Corpus {
    /// Documents with these texts.
    #[staticmethod]
    fn texts(texts: Vec<PyBackedStr>) -> Self {
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        Self { documents: Arc::new(Documents::new(texts)) }
    }

    /// Documents with these counts of terms, a row for each.
    #[staticmethod]
    fn counts(features: &Features, terms: Vec<String>) -> PyResult<Self> {
        let counts = features.matrix.clone().into_sparse().map_err(raise)?;
        let documents = Documents::counted(&terms, counts).map_err(raise)?;
        Ok(Self { documents: Arc::new(documents) })
    }

    fn __len__(&self) -> usize {
        self.documents.len()
    }
}

/// Fits the model `name` to documents.
#[pyfunction]
#[pyo3(signature = (name, params, corpus, progress=None))]
pub fn fit_documents(
    py: Python<'_>,
    name: &str,
    params: &str,
    corpus: &Corpus,
    progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let documents = Arc::clone(&corpus.documents);
    let keep = Arc::clone(&documents);
    let work = move |run: &Run<'_>| model.fit(&params, documents.as_ref(), None, run);
    let fitted = watched(py, false, progress, work, keep)?;
    Ok(Model { fitted: Arc::new(fitted) })
}

fn topics(model: &Model) -> PyResult<&TopicModel> {
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    any.downcast_ref().ok_or_else(|| raise(model.fitted.unsupported(Capability::Topics)))
}

/// The mixture of topics of each document.
#[pyfunction]
pub fn topic_mixtures<'py>(
    py: Python<'py>,
    model: &Model,
    corpus: &Corpus,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let topics = topics(model)?;
    let found =
        inside(py, || topics.mixtures_of_counts(&topics.encode(corpus.documents.as_ref())?))?;
    let found = found.map_err(raise)?;
    let (n, k) = found.shape();
    PyArray1::from_vec(py, found.into_values()).reshape([n, k])
}

/// The features of each document, by any model that transforms documents.
#[pyfunction]
pub fn transform_documents<'py>(
    py: Python<'py>,
    model: &Model,
    corpus: &Corpus,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let transformer = model.fitted.transformer().map_err(raise)?;
    let found = inside(py, || transformer.transform_data(corpus.documents.as_ref()))?;
    let found = found.map_err(raise)?.to_dense();
    let (n, k) = found.shape();
    PyArray1::from_vec(py, found.into_values()).reshape([n, k])
}

/// The log probability of each document given its own mixture and its number of words; or, of its second half given the
/// first.
#[pyfunction]
pub fn topic_scores(
    py: Python<'_>,
    model: &Model,
    corpus: &Corpus,
    completion: bool,
) -> PyResult<Vec<(f64, f64)>> {
    let topics = topics(model)?;
    let found = inside(py, || {
        let counts = topics.encode(corpus.documents.as_ref())?;
        if completion {
            return Ok(topics.completion_of_counts(&counts)?.documents);
        }
        let logs = topics.log_likelihood(&counts)?;
        let n = |row: usize| counts.row(row).1.iter().sum();
        Ok(logs.into_iter().enumerate().map(|(row, log)| (log, n(row))).collect())
    })?;
    found.map_err(raise)
}

/// A fit of `lda` to batches of documents, none of which is kept.
#[pyclass(module = "gradus._gradus")]
pub struct TopicBatches {
    batches: OnlineLda,
}

#[pymethods]
impl TopicBatches {
    #[new]
    fn new(params: &str, n_total: u64) -> PyResult<Self> {
        let params = Lda::from_record(&record(params)?).map_err(raise)?;
        Ok(Self { batches: OnlineLda::new(&params, n_total).map_err(raise)? })
    }

    /// Adds a batch.
    fn push(&mut self, py: Python<'_>, corpus: &Corpus) -> PyResult<()> {
        let (batches, documents) = (&mut self.batches, Arc::clone(&corpus.documents));
        inside(py, || batches.push(&documents))?.map_err(raise)
    }

    /// The model of all documents so far.
    fn finish(&self, py: Python<'_>) -> PyResult<Model> {
        let batches = &self.batches;
        let fitted = inside(py, || batches.finish())?.map_err(raise)?;
        Ok(Model { fitted: Arc::new(fitted.into_any()) })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyRuntimeError::new_err("batches cannot be pickled"))
    }
}
