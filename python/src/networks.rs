//! Networks of images and of texts: images as arrays, pairs of texts, texts that are written and scored.

use crate::data::Features;
use crate::error::raise;
use crate::fit::{from_warm, record, watched};
use crate::model::Model;
use crate::threads::inside;
use crate::topics::Corpus;
use gradus::data::{ImageShape, Images as ImageData, Matrix, Pixels};
use gradus::model::Sampling;
use gradus::nn::Vit;
use gradus::nn::lm::LmModel;
use gradus::text::TextPairs;
use gradus_core::capability::Capability;
use gradus_core::dataset::{Dataset, ImageSet};
use gradus_core::estimator::{Fit, Run};
use gradus_file::tensors::NamedTensor;
use numpy::{
    PyArray1, PyArray2, PyArrayDyn, PyArrayMethods as _, PyReadonlyArray4, PyReadonlyArrayDyn,
    PyUntypedArrayMethods as _,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often Python is asked whether someone pressed Ctrl-C while a text is written.
const LOOK: Duration = Duration::from_millis(50);

/// Images of one size, with their labels if they have any.
#[pyclass(frozen)]
pub struct Images {
    data: Arc<ImageSet>,
}

#[pymethods]
impl Images {
    /// An array of images × height × width × channels: bytes from 0 (black) to 255, or numbers of single precision.
    #[new]
    #[pyo3(signature = (array, labels=None))]
    fn new(array: &Bound<'_, PyAny>, labels: Option<Vec<String>>) -> PyResult<Self> {
        let shape_of = |shape: &[usize]| {
            (shape[0], ImageShape { height: shape[1], width: shape[2], channels: shape[3] })
        };
        let ((n, shape), pixels) = if let Ok(bytes) = array.extract::<PyReadonlyArray4<'_, u8>>() {
            let pixels = Pixels::Bytes(bytes.as_array().iter().copied().collect());
            (shape_of(bytes.shape()), pixels)
        } else {
            let floats = array.extract::<PyReadonlyArray4<'_, f32>>()?;
            let pixels = Pixels::Floats(floats.as_array().iter().copied().collect());
            (shape_of(floats.shape()), pixels)
        };
        let mut images = ImageData::new(n, shape, pixels).map_err(raise)?;
        if let Some(labels) = labels {
            images = images.with_labels(labels).map_err(raise)?;
        }
        Ok(Self { data: Arc::new(images.into()) })
    }

    fn __len__(&self) -> usize {
        self.data.len()
    }
}

/// Fits the model `name` to images.
#[pyfunction]
#[pyo3(signature = (name, params, images, progress=None, warm=None))]
pub fn fit_images(
    py: Python<'_>,
    name: &str,
    params: &str,
    images: &Images,
    progress: Option<Py<PyAny>>,
    warm: Option<&Model>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let data = Arc::clone(&images.data);
    let warm = warm.map(|warm| Arc::clone(&warm.fitted));
    let keep = Arc::clone(&data);
    let work = move |run: &Run<'_>| {
        let run = from_warm(run, warm.as_deref());
        model.fit(&params, data.as_ref(), None, &run)
    };
    let fitted = watched(py, false, progress, work, keep)?;
    Ok(Model { fitted: Arc::new(fitted) })
}

/// How much the class token of a vision transformer attends to each patch: images × blocks × heads × patch rows × patch columns.
#[pyfunction]
pub fn attention_maps<'py>(
    py: Python<'py>,
    model: &Model,
    features: &Features,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    let found = any
        .downcast_ref::<<Vit as Fit>::Model>()
        .ok_or_else(|| PyValueError::new_err("attention maps are those of a vision transformer"))?;
    let maps = inside(py, || found.attention(&features.matrix))?.map_err(raise)?;
    let (n, (blocks, heads), (rows, columns)) = (maps.len(), maps.blocks_and_heads(), maps.grid());
    let mut values = Vec::with_capacity(n * blocks * heads * rows * columns);
    for image in 0..n {
        for block in 0..blocks {
            for head in 0..heads {
                // The first row is that of the class token, and its first entry the token itself.
                values.extend_from_slice(&maps.weights(image, block, head)[1..=rows * columns]);
            }
        }
    }
    PyArray1::from_vec(py, values).reshape(vec![n, blocks, heads, rows, columns])
}

/// The same model with other weights: names, shapes and numbers.
#[pyfunction]
pub fn with_weights(
    py: Python<'_>,
    model: &Model,
    weights: Vec<(String, PyReadonlyArrayDyn<'_, f32>)>,
) -> PyResult<Model> {
    let tensor = |(name, array): (String, PyReadonlyArrayDyn<'_, f32>)| {
        let values = array.as_array().iter().copied().collect();
        NamedTensor { name, shape: array.shape().to_vec(), values }
    };
    let weights: Vec<NamedTensor> = weights.into_iter().map(tensor).collect();
    let found = inside(py, || gradus::registry().with_weights(&model.fitted, &weights))?;
    Ok(Model { fitted: Arc::new(found.map_err(raise)?.0) })
}

/// Fits the model `name` to pairs of texts.
#[pyfunction]
#[pyo3(signature = (name, params, sources, targets, progress=None))]
pub fn fit_pairs(
    py: Python<'_>,
    name: &str,
    params: &str,
    sources: Vec<PyBackedStr>,
    targets: Vec<PyBackedStr>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let pairs = Arc::new(pairs(&sources, &targets)?);
    let keep = Arc::clone(&pairs);
    let work = move |run: &Run<'_>| model.fit(&params, pairs.as_ref(), None, run);
    let fitted = watched(py, false, progress, work, keep)?;
    Ok(Model { fitted: Arc::new(fitted) })
}

fn pairs(sources: &[PyBackedStr], targets: &[PyBackedStr]) -> PyResult<TextPairs> {
    let [sources, targets] =
        [sources, targets].map(|all| all.iter().map(|text| &**text).collect::<Vec<&str>>());
    TextPairs::new(&sources, &targets).map_err(raise)
}

/// The target of each source.
#[pyfunction]
pub fn translate(
    py: Python<'_>,
    model: &Model,
    texts: Vec<PyBackedStr>,
    beams: usize,
) -> PyResult<Vec<String>> {
    let found = model
        .fitted
        .model
        .translator()
        .ok_or_else(|| raise(model.fitted.unsupported(Capability::Translate)))?;
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    inside(py, || found.translate(&texts, beams))?.map_err(raise)
}

/// The log probability of each unit, and the number of its tokens.
type Scored<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u64>>);

fn scored<'py>(py: Python<'py>, model: &Model, data: &dyn Dataset) -> PyResult<Scored<'py>> {
    let density = model.fitted.density().map_err(raise)?;
    let found = inside(py, || {
        let logs = density.log_density(data)?;
        Ok((logs, density.n_tokens(data).transpose()?.unwrap_or_default()))
    })?;
    let (logs, counts) = found.map_err(raise)?;
    let counts = counts.into_iter().map(|n| n as u64).collect();
    Ok((PyArray1::from_vec(py, logs), PyArray1::from_vec(py, counts)))
}

/// The log probability of each document by a language model, and the number of its tokens, the end included.
#[pyfunction]
pub fn score_documents<'py>(
    py: Python<'py>,
    model: &Model,
    corpus: &Corpus,
) -> PyResult<Scored<'py>> {
    scored(py, model, corpus.documents.as_ref())
}

/// The log probability of each target given its source, and the number of its tokens, the end included.
#[pyfunction]
pub fn score_pairs<'py>(
    py: Python<'py>,
    model: &Model,
    sources: Vec<PyBackedStr>,
    targets: Vec<PyBackedStr>,
) -> PyResult<Scored<'py>> {
    scored(py, model, &pairs(&sources, &targets)?)
}

/// Goes on with a text, at most so many tokens. `take` is called with what was written since its last call.
#[pyfunction]
#[pyo3(signature = (model, prompt, n_tokens, temperature, top_k, top_p, seed, take=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
pub fn continue_text(
    py: Python<'_>,
    model: &Model,
    prompt: &str,
    n_tokens: usize,
    temperature: f64,
    top_k: usize,
    top_p: f64,
    seed: u64,
    take: Option<Py<PyAny>>,
) -> PyResult<String> {
    let writer = model
        .fitted
        .model
        .generator()
        .and_then(|model| model.continuation())
        .ok_or_else(|| raise(model.fitted.unsupported(Capability::Generate)))?;
    let sampling = Sampling { temperature, top_k, top_p, seed };
    let (mut written, mut shown) = (Vec::new(), 0);
    let mut raised: Option<PyErr> = None;
    let mut next = Instant::now() + LOOK;
    // Whole characters only: the bytes of one may come in several tokens.
    let show = |written: &[u8], shown: &mut usize| -> PyResult<()> {
        let Some(take) = &take else { return Ok(()) };
        let new = &written[*shown..];
        let whole = match std::str::from_utf8(new) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&new[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => {
                *shown += new.len();
                let text = String::from_utf8_lossy(new).into_owned();
                return Python::attach(|py| take.call1(py, (text,)).map(drop));
            }
        };
        if whole.is_empty() {
            return Ok(());
        }
        *shown += whole.len();
        Python::attach(|py| take.call1(py, (whole,)).map(drop))
    };
    let done = inside(py, || {
        writer.continue_text(prompt, n_tokens, &sampling, &mut |bytes| {
            written.extend_from_slice(bytes);
            let mut look = || {
                show(&written, &mut shown)?;
                if Instant::now() < next {
                    return Ok(());
                }
                next = Instant::now() + LOOK;
                Python::attach(|py| py.check_signals())
            };
            match look() {
                Ok(()) => true,
                Err(error) => {
                    raised = Some(error);
                    false
                }
            }
        })
    })?;
    py.check_signals()?;
    match raised {
        Some(error) => Err(error),
        None => {
            done.map_err(raise)?;
            Ok(String::from_utf8_lossy(&written).into_owned())
        }
    }
}

fn language_model(model: &Model) -> PyResult<&LmModel> {
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    any.downcast_ref().ok_or_else(|| PyValueError::new_err("the model is no language model"))
}

/// The tokens of a text, by a language model.
#[pyfunction]
pub fn encode_tokens(model: &Model, text: &str) -> PyResult<Vec<u32>> {
    Ok(language_model(model)?.codec().encode(text.as_bytes()))
}

/// The text of tokens.
#[pyfunction]
pub fn decode_tokens(model: &Model, tokens: Vec<u32>) -> PyResult<String> {
    let codec = language_model(model)?.codec();
    if let Some(token) = tokens.iter().find(|token| **token as usize >= codec.len()) {
        let text = format!("tokens = {token}: must be below {}", codec.len());
        return Err(PyValueError::new_err(text));
    }
    Ok(String::from_utf8_lossy(&codec.decode(&tokens)).into_owned())
}

/// The logits of the token that comes after each of these.
#[pyfunction]
pub fn token_logits<'py>(
    py: Python<'py>,
    model: &Model,
    tokens: Vec<u32>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let found = language_model(model)?;
    let logits = inside(py, || found.logits(&tokens))?.map_err(raise)?;
    let (n, k) = logits.shape();
    PyArray1::from_vec(py, logits.into_values()).reshape([n, k])
}

/// Documents that a language model writes from nothing.
#[pyfunction]
pub fn generate_documents(
    py: Python<'_>,
    model: &Model,
    n: usize,
    seed: u64,
) -> PyResult<Vec<String>> {
    let found = model.fitted.model.generator();
    let found = found.ok_or_else(|| raise(model.fitted.unsupported(Capability::Generate)))?;
    let drawn = inside(py, || found.generate(n, seed))?.map_err(raise)?;
    let documents = drawn.downcast_ref::<gradus::text::Documents>();
    let documents =
        documents.ok_or_else(|| PyRuntimeError::new_err("the model writes no texts"))?;
    Ok(documents.texts().into_iter().map(str::to_owned).collect())
}

/// The probability of each class for each text, by a network that reads tokens.
pub fn network_probabilities<'py>(
    py: Python<'py>,
    model: &Model,
    texts: &[&str],
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let predictor = model.fitted.predictor().map_err(raise)?;
    let tokens = gradus::nn::supervised::tokens_of(predictor.inputs())
        .ok_or_else(|| PyValueError::new_err("the model does not predict classes of texts"))?;
    let found = inside(py, || predictor.probabilities(&Matrix::Sparse(tokens.encode(texts)?)))?;
    let found = found.map_err(raise)?.unwrap_or_default();
    let (n, k) = found.shape();
    PyArray1::from_vec(py, found.into_values()).reshape([n, k])
}
