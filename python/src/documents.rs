//! Classifiers of documents, vectors of words that a model makes of their parts, and files of fastText.

use crate::error::raise;
use crate::model::Model;
use crate::networks::network_probabilities;
use crate::threads::inside;
use crate::topics::Corpus;
use gradus::text::{Documents, FastTextModel, export_fasttext};
use gradus_file::output::Output;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::io::{self, BufWriter, Write as _};

/// Documents with these texts, each of one class or several.
#[pyfunction]
pub fn labelled_corpus(texts: Vec<PyBackedStr>, labels: Vec<Vec<String>>) -> PyResult<Corpus> {
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let documents = Documents::new(texts).with_several_classes("label", &labels).map_err(raise)?;
    Ok(Corpus::of(documents))
}

/// The classes of a classifier of documents, as text, in the order of its probabilities.
#[pyfunction]
pub fn document_labels(model: &Model) -> PyResult<Vec<String>> {
    let outputs = model.fitted.predictor().map_err(raise)?.outputs();
    let labels = outputs.labels().into_iter().flat_map(|labels| labels.iter());
    Ok(labels.map(|label| label.to_string()).collect())
}

/// The probability of each class for each text.
#[pyfunction]
pub fn document_probabilities<'py>(
    py: Python<'py>,
    model: &Model,
    texts: Vec<PyBackedStr>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    let Some(found) = any.downcast_ref::<FastTextModel>() else {
        return network_probabilities(py, model, &texts);
    };
    let k = document_labels(model)?.len();
    let ranked = inside(py, || found.predict(&texts, k))?;
    let mut values = vec![0.0; texts.len() * k];
    for (row, classes) in ranked.iter().enumerate() {
        classes.iter().for_each(|&(class, p)| values[row * k + class as usize] = p);
    }
    PyArray1::from_vec(py, values).reshape([texts.len(), k])
}

/// The vector of a word; of one that is no word of the model from its n-grams, if it has any.
#[pyfunction]
pub fn word_vector<'py>(
    py: Python<'py>,
    model: &Model,
    word: &str,
) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    let vector = match any.downcast_ref::<FastTextModel>() {
        Some(model) => model.word_vector(word),
        None => {
            let model = model.fitted.embedding().map_err(raise)?;
            let known = model.knows(word).then(|| model.vector_of(word));
            known.transpose().map_err(raise)?.map(|vector| vector.into_owned())
        }
    };
    Ok(vector.map(|vector| PyArray1::from_vec(py, vector)))
}

/// Writes a model as fastText's binary file.
#[pyfunction]
pub fn save_fasttext(py: Python<'_>, model: &Model, path: std::path::PathBuf) -> PyResult<()> {
    let written = inside(py, || {
        let named = (model.fitted.kind, &model.fitted.params);
        let output = Output::check(&path)?;
        output.write(|file| {
            let mut out = BufWriter::new(file);
            let written = export_fasttext(model.fitted.model.as_ref(), named, &mut out);
            written.map_err(io::Error::other)??;
            out.flush()
        })
    })?;
    written.map_err(raise)
}
