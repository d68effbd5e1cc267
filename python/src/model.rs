//! A fitted model, whatever its kind.

use crate::app::{app, to_json};
use crate::data::{Array, Features, Ratings, SMALL, ids, ids_to_python, which};
use crate::error::raise;
use crate::lists::{Lists, filter, found, lists};
use crate::side::{Columns, feature_rows};
use crate::threads::inside;
use gradus::latent::KMeans;
use gradus::linear::path::Path;
use gradus::linear::{LinearModel, Link, SvmModel};
use gradus::nn::autoencoder::DeepAutoencoder;
use gradus_app::evaluate::RankingRequest;
use gradus_app::report::{ReportRequest, report};
use gradus_core::capability::Capability;
use gradus_core::cluster::numbers;
use gradus_core::dataset::Remarks;
use gradus_core::density::{Draw, Prefix};
use gradus_core::estimator::{AnyFitted, Job};
use gradus_core::predict::Predict;
use gradus_core::recommend::{FeatureContribution, Profile, Recipient, Recommend, Scored};
use gradus_core::update::UpdateOptions;
use gradus_data::{Dense, Input, Inputs, Matrix, Samples};
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;

/// Whether a linear model takes no other thread for this many samples and features.
fn few(n: usize, d: usize) -> bool {
    n <= 4096 && n * d <= SMALL
}

/// The type, shape and bytes of a tensor.
type Tensor<'py> = (&'static str, Vec<usize>, Bound<'py, PyBytes>);

/// Score, base, item, value and contribution of each rating, and the contributions of features of the user
/// and of the item.
type Explained = (f32, f32, Vec<(u32, f32, f32)>, Vec<(String, f32)>, Vec<(String, f32)>);

/// A fitted model.
#[pyclass(module = "gradus._gradus")]
pub struct Model {
    /// Shared by copies until one of them takes in new ratings.
    pub fitted: Arc<AnyFitted>,
}

fn to_array(py: Python<'_>, values: Dense<f64>) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let (n, k) = values.shape();
    let array = PyArray1::from_vec(py, values.into_values());
    array.reshape([n, k])
}

impl Model {
    /// Returns the inputs of the model, if it is a model of features.
    pub fn inputs(&self) -> PyResult<&Inputs> {
        let model = self.fitted.model.as_ref();
        let transforms = || model.transformer().map(|model| model.inputs());
        let clusters = || model.clusterer().map(|model| model.inputs());
        let inputs = model.predictor().map(|model| model.inputs());
        let density = || model.density().and_then(|model| model.inputs());
        let drawn = || model.generator().and_then(|model| model.inputs());
        match inputs.or_else(transforms).or_else(clusters).or_else(density).or_else(drawn) {
            Some(inputs) => Ok(inputs),
            None => Err(raise(self.fitted.unsupported(Capability::PredictValues))),
        }
    }

    pub fn recommender(&self) -> PyResult<&dyn Recommend> {
        self.fitted.recommend().map_err(raise)
    }

    /// Does work on features: in the pool, or here where it would take no other thread anyway.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        features: &Features,
        work: impl FnOnce(&dyn Predict, &Matrix) -> gradus::Result<T> + Send,
    ) -> PyResult<T> {
        let (model, matrix) = (self.fitted.predictor().map_err(raise)?, &features.matrix);
        let (n, d) = matrix.shape();
        if few(n, d) && self.linear().is_some() {
            return work(model, matrix).map_err(raise);
        }
        inside(py, || work(model, matrix))?.map_err(raise)
    }

    /// The model whose scores are sums over the features of a row, if this is one or holds one.
    fn linear(&self) -> Option<&LinearModel> {
        let any: &dyn std::any::Any = self.fitted.model.as_ref();
        let of_machine = || any.downcast_ref::<SvmModel>().and_then(SvmModel::linear);
        any.downcast_ref().or_else(of_machine)
    }

    /// Indices of users and items; `None` for those the model does not know.
    fn pairs(
        &self,
        users: &Bound<'_, PyAny>,
        items: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<(Option<u32>, Option<u32>)>> {
        let model = self.recommender()?;
        let (users, items) = (ids(users)?, ids(items)?);
        if users.len() != items.len() {
            let message =
                format!("items: expected {} (one for each user), got {}", users.len(), items.len());
            return Err(PyValueError::new_err(message));
        }
        let pair = |at| (model.users().find(users.get(at)), model.items().find(items.get(at)));
        Ok((0..users.len()).map(pair).collect())
    }
}

/// A model of k-means with these centres, for a fit to start from.
#[pyfunction]
pub fn centres_model(centres: PyReadonlyArray2<'_, f64>) -> PyResult<Model> {
    let (k, d) = (centres.shape()[0], centres.shape()[1]);
    let centres = Dense::new(k, d, centres.as_slice()?.to_vec()).map_err(raise)?;
    let samples = Samples::unlabelled(centres.clone()).map_err(raise)?;
    // Of the centres themselves, each is a cluster.
    let params = KMeans::new().n_clusters(k).standardize(false).max_iter(1);
    let fitted = params.fit_from(&samples, &centres, &Job::default()).map_err(raise)?;
    Ok(Model { fitted: Arc::new(fitted.into_any()) })
}

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        let fitted = inside(py, || gradus::load(path))?.map_err(raise)?;
        Ok(Self { fitted: Arc::new(fitted) })
    }

    /// Reads a model from the bytes of its file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Self> {
        let fitted = inside(py, || gradus::from_bytes(bytes))?.map_err(raise)?;
        Ok(Self { fitted: Arc::new(fitted) })
    }

    /// The bytes that `save` writes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.fitted.to_bytes().map_err(raise)?))
    }

    /// Saves the model; a crash leaves the old file or the new one.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        py.detach(|| self.fitted.save(path)).map_err(raise)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        Ok((slf.getattr("from_bytes")?, (slf.borrow().to_bytes(py)?,)))
    }

    /// The same model, which goes its own way when new ratings are added to it.
    fn __copy__(&self) -> Self {
        Self { fitted: Arc::clone(&self.fitted) }
    }

    /// The name of its kind.
    #[getter]
    fn kind(&self) -> &'static str {
        self.fitted.kind
    }

    /// Returns the parameters as JSON.
    #[getter]
    fn params(&self) -> String {
        serde_json::Value::Object(self.fitted.params.clone()).to_string()
    }

    /// Returns the report of the fit as JSON.
    #[getter]
    fn report(&self) -> String {
        self.fitted.report.to_json().to_string()
    }

    /// Returns the shape of the model in a few words and numbers.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = PyDict::new(py);
        for (name, value) in self.fitted.model.summary() {
            summary.set_item(name, value)?;
        }
        Ok(summary)
    }

    /// The page of the model, as `gradus report` writes it.
    fn page(&self, py: Python<'_>, title: &str) -> PyResult<String> {
        let request = ReportRequest { title: title.to_owned(), ..ReportRequest::default() };
        inside(py, || report(&self.fitted, &request, &mut Remarks::ignored()))?.map_err(raise)
    }

    /// Describes the model, as `gradus info --json` prints it.
    fn info(&self) -> PyResult<String> {
        to_json(&gradus_app::info::model(&self.fitted, None))
    }

    /// Returns a tensor by its name in the model file: `(dtype, shape, bytes)`, or `None`.
    fn tensor<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Tensor<'py>>> {
        let file = self.fitted.to_writer();
        Ok(file
            .get(name)
            .map(|(dtype, shape, bytes)| (dtype, shape.to_vec(), PyBytes::new(py, bytes))))
    }

    /// The names of what it learned.
    fn tensors(&self) -> Vec<String> {
        self.fitted.to_writer().names().map(str::to_owned).collect()
    }

    // Models of features.

    /// Returns the number of features.
    #[getter]
    fn n_features(&self) -> PyResult<usize> {
        Ok(self.inputs()?.n_features())
    }

    /// Height, width and channels of the images it was fitted to, if they were images.
    #[getter]
    fn image_shape(&self) -> PyResult<Option<(usize, usize, usize)>> {
        Ok(match self.inputs()? {
            Inputs::Images(shape) => Some((shape.height, shape.width, shape.channels)),
            _ => None,
        })
    }

    /// The columns of the table it was fitted to, if it was one.
    #[getter]
    fn columns(&self) -> PyResult<Option<Vec<String>>> {
        Ok(match self.inputs()? {
            Inputs::Plain(_) | Inputs::Images(_) => None,
            Inputs::Columns(columns) => {
                Some(columns.iter().map(|column| column.name.clone()).collect())
            }
        })
    }

    /// Whether it makes its features of columns: of words, or of numbers that may be missing.
    #[getter]
    fn encodes(&self) -> PyResult<bool> {
        let inputs = self.inputs()?;
        let plain = |input: &Input| *input == Input::number(input.name.as_str());
        Ok(matches!(inputs, Inputs::Columns(columns) if !columns.iter().all(plain)))
    }

    /// The name of every feature, `colour=red` for a word of a column.
    #[getter]
    fn feature_names(&self) -> PyResult<Vec<String>> {
        Ok(self.inputs()?.feature_names())
    }

    /// The paths that the penalties of the targets were chosen from, if they were.
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let any: &dyn std::any::Any = self.fitted.model.as_ref();
        let paths = any.downcast_ref::<LinearModel>().map_or(&[][..], LinearModel::paths);
        let to_python = |path: &Path| {
            let found = PyDict::new(py);
            found.set_item("regularizations", PyArray1::from_slice(py, &path.lambdas))?;
            found.set_item("intercepts", PyArray1::from_slice(py, &path.intercepts))?;
            let starts: Vec<i64> = path.coefficients.indptr().iter().map(|&at| at as i64).collect();
            let columns: Vec<i64> =
                path.coefficients.indices().iter().map(|&at| at.into()).collect();
            let parts = (
                PyArray1::from_slice(py, path.coefficients.values()),
                PyArray1::from_vec(py, columns),
                PyArray1::from_vec(py, starts),
            );
            found.set_item("coefficients", parts)?;
            if let Some(validation) = &path.validation {
                found.set_item("cv_error", PyArray1::from_slice(py, &validation.mean))?;
                found.set_item("cv_standard_error", PyArray1::from_slice(py, &validation.error))?;
                found.set_item("chosen", validation.chosen)?;
            }
            Ok(found)
        };
        paths.iter().map(to_python).collect()
    }

    /// The classes it tells apart, if it does.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let labels = self.fitted.predictor().map_err(raise)?.outputs().labels();
        labels.map(|labels| ids_to_python(py, labels)).transpose()
    }

    /// Predicted numbers, or one decision score for each class.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        to_array(py, self.with(py, features, |model, x| model.scores(x))?)
    }

    /// The same of an array as it comes: `float64` or `float32`, in any order.
    fn scores_of<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let Some(model) = self.linear() else {
            return self.scores(py, &Features::dense(array)?);
        };
        let array = Array::new(array)?;
        if let Some(scores) = array.affine(py, model.coefficients(), model.intercepts())? {
            return to_array(py, scores);
        }
        to_array(py, array.work(py, |x| model.scores(x))?)
    }

    /// The same in single precision, of an array of single precision that a linear model can take as it lies; else
    /// `None`.
    fn single_scores_of<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        let Some(model) = self.linear() else { return Ok(None) };
        Array::new(array)?.single_affine(py, model.coefficients(), model.intercepts())
    }

    /// The decision between each pair of classes, or `None` of a model that does not decide by pairs.
    fn pair_decisions<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let found = self.with(py, features, |model, x| model.pair_decisions(x))?;
        found.map(|values| to_array(py, values)).transpose()
    }

    /// The class predicted of each sample, as an index.
    fn codes<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let codes = self.with(py, features, |model, x| model.classes(x))?;
        Ok(PyArray1::from_vec(py, codes))
    }

    /// The probability of each class, or `None` of a model that does not know it.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let found = self.with(py, features, |model, x| model.probabilities(x))?;
        found.map(|values| to_array(py, values)).transpose()
    }

    /// The same of an array as it comes: `float64` or `float32`, in any order.
    fn probabilities_of<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let any: &dyn std::any::Any = self.fitted.model.as_ref();
        let linear = any.downcast_ref::<LinearModel>();
        let Some(model) = linear.filter(|m| !matches!(m.link(), Link::Identity | Link::Margin))
        else {
            return self.probabilities(py, &Features::dense(array)?);
        };
        let found = Array::new(array)?
            .work(py, |x| model.probabilities(x).map(Option::unwrap_or_default))?;
        to_array(py, found).map(Some)
    }

    // Transformers and clusterings.

    /// The words of a topic model.
    #[getter]
    fn words(&self) -> PyResult<Vec<String>> {
        Ok(self.fitted.topics().map_err(raise)?.words().to_vec())
    }

    /// The names of the features that it transforms to.
    #[getter]
    fn output_names(&self) -> PyResult<Vec<String>> {
        Ok(self.fitted.transformer().map_err(raise)?.output_names())
    }

    /// The transformed features, a row for each row.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = self.fitted.transformer().map_err(raise)?;
        to_array(py, inside(py, || model.transform(&features.matrix))?.map_err(raise)?)
    }

    /// The features that are transformed into these, or the nearest to that; `None` of a model that cannot
    /// go back.
    fn inverse_transform<'py>(
        &self,
        py: Python<'py>,
        transformed: &Features,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let model = self.fitted.transformer().map_err(raise)?;
        let back = inside(py, || match &transformed.matrix {
            Matrix::Dense(dense) => model.inverse(dense),
            sparse @ Matrix::Sparse(_) => model.inverse(&sparse.to_dense()),
        })?;
        back.map(|back| to_array(py, back.map_err(raise)?)).transpose()
    }

    /// The mean squared error of the reconstruction of each sample by an autoencoder, in standard deviations.
    fn reconstruction_errors<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let any: &dyn std::any::Any = self.fitted.model.as_ref();
        let model: &DeepAutoencoder = any
            .downcast_ref()
            .ok_or_else(|| PyValueError::new_err("the model is no autoencoder of layers"))?;
        let errors = inside(py, || model.reconstruction_errors(&features.matrix))?;
        Ok(PyArray1::from_vec(py, errors.map_err(raise)?))
    }

    /// The natural logarithm of the density of each sample.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let model = self.fitted.density().map_err(raise)?;
        let matrix = features.matrix.clone();
        // Missing entries are refused by the model, unless it takes them.
        let logs = inside(py, || model.log_density(&Samples::with_missing(matrix)?))?;
        Ok(PyArray1::from_vec(py, logs.map_err(raise)?))
    }

    /// The features with missing entries filled in by their mean given the others; `None` of a model that does not know it.
    fn impute<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let model = self.fitted.density().map_err(raise)?;
        let filled = inside(py, || model.impute(&features.matrix))?;
        filled.map(|filled| to_array(py, filled.map_err(raise)?)).transpose()
    }

    /// New samples like those of training.
    fn generate<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = self.fitted.generator().map_err(raise)?;
        let drawn = inside(py, || {
            let drawn = model.generate(n, seed)?;
            Ok(drawn.of_kind::<Samples>()?.features().to_dense())
        })?;
        to_array(py, drawn.map_err(raise)?)
    }

    /// New samples, with the options of generative models.
    #[expect(clippy::too_many_arguments)]
    #[pyo3(signature = (n, seed, temperature, steps, class_, guidance, begun, keep))]
    fn draw<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        temperature: Option<f64>,
        steps: Option<usize>,
        class_: Option<&str>,
        guidance: Option<f64>,
        begun: Option<&Features>,
        keep: f64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = self.fitted.generator().map_err(raise)?;
        let drawn = inside(py, || {
            let begun = begun.map(|begun| Samples::unlabelled(begun.matrix.clone())).transpose()?;
            let complete = begun.as_ref().map(|data| Prefix { data, keep });
            let options = Draw {
                class: class_,
                guidance,
                steps,
                temperature,
                complete,
                ..Draw::new(n, seed)
            };
            let drawn = model.draw(&options)?;
            Ok(drawn.of_kind::<Samples>()?.features().to_dense())
        })?;
        to_array(py, drawn.map_err(raise)?)
    }

    /// Samples along paths between codes.
    fn interpolate<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        steps: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = self.fitted.generator().map_err(raise)?;
        let drawn = inside(py, || {
            let lacks = || gradus::Error::data(format!("`{}` has no codes", self.fitted.kind));
            let drawn = model.interpolate(n, steps, seed).ok_or_else(lacks)??;
            Ok(drawn.of_kind::<Samples>()?.features().to_dense())
        })?;
        to_array(py, drawn.map_err(raise)?)
    }

    /// The number of clusters.
    #[getter]
    fn n_clusters(&self) -> PyResult<usize> {
        Ok(self.fitted.clusterer().map_err(raise)?.n_clusters())
    }

    /// The number of training samples in each cluster.
    #[getter]
    fn cluster_sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(PyArray1::from_vec(py, self.fitted.clusterer().map_err(raise)?.sizes()))
    }

    /// The clusters of the training samples, of a model that was just fitted and remembers them.
    fn training_labels<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        let labels = self.fitted.clusterer().map_err(raise)?.training_labels();
        Ok(labels.map(|labels| PyArray1::from_vec(py, numbers(&labels))))
    }

    /// The cluster of each sample; −1 of one that belongs to none.
    fn labels<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let model = self.fitted.clusterer().map_err(raise)?;
        let labels = inside(py, || model.labels(&features.matrix))?.map_err(raise)?;
        Ok(PyArray1::from_vec(py, numbers(&labels)))
    }

    /// The distance of each sample to each cluster, or `None` of a model without distances.
    fn distances<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let model = self.fitted.clusterer().map_err(raise)?;
        let found = inside(py, || model.distances(&features.matrix))?.map_err(raise)?;
        found.map(|values| to_array(py, values)).transpose()
    }

    /// The probability that each sample belongs to each cluster, or `None` of a model that does not know it.
    fn memberships<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let model = self.fitted.clusterer().map_err(raise)?;
        let found = inside(py, || model.memberships(&features.matrix))?.map_err(raise)?;
        found.map(|values| to_array(py, values)).transpose()
    }

    // Recommenders.

    /// The users of the training data.
    #[getter]
    fn users<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ids_to_python(py, self.recommender()?.users())
    }

    /// The items of the training data.
    #[getter]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ids_to_python(py, self.recommender()?.items())
    }

    /// The places of these users among those of training; −1 of one it does not know.
    fn find_users<'py>(
        &self,
        py: Python<'py>,
        users: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        Ok(PyArray1::from_vec(py, found(self.recommender()?.users(), &ids(users)?)))
    }

    /// The places of these items among those of training; −1 of one it does not know.
    fn find_items<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        Ok(PyArray1::from_vec(py, found(self.recommender()?.items(), &ids(items)?)))
    }

    /// Predicts the rating of each pair.
    fn predict_pairs<'py>(
        &self,
        py: Python<'py>,
        users: &Bound<'py, PyAny>,
        items: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let pairs = self.pairs(users, items)?;
        let model = self.recommender()?;
        Ok(PyArray1::from_vec(py, inside(py, || model.predict(&pairs))?))
    }

    /// The interval that holds the rating of each pair with probability `level`, pairs × 2; `None` of
    /// a model that does not know how sure it is.
    fn intervals<'py>(
        &self,
        py: Python<'py>,
        users: &Bound<'py, PyAny>,
        items: &Bound<'py, PyAny>,
        level: f64,
    ) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        let pairs = self.pairs(users, items)?;
        let model = self.recommender()?;
        let Some(intervals) = inside(py, || model.interval(&pairs, level))?.map_err(raise)? else {
            return Ok(None);
        };
        let flat: Vec<f32> = intervals.iter().flat_map(|i| [i.low, i.high]).collect();
        Ok(Some(PyArray1::from_vec(py, flat).reshape([intervals.len(), 2])?))
    }

    /// How well it ranks held-out ratings, by lists of length `at`: means over users by name. `rated` tells
    /// whether the ratings have values; by default those of the upper quarter of the scale are relevant.
    #[pyo3(signature = (held_out, at, threshold=None, rated=true))]
    fn ranking(
        &self,
        py: Python<'_>,
        held_out: &Ratings,
        at: usize,
        threshold: Option<f32>,
        rated: bool,
    ) -> PyResult<Vec<(&'static str, f64)>> {
        let held_out = held_out.ratings();
        let how = RankingRequest { at: vec![at], threshold, ..RankingRequest::default() };
        let ranking =
            inside(py, || app().rank(&self.fitted, held_out, rated, &how))?.map_err(raise)?;
        let found = ranking
            .report
            .at
            .first()
            .ok_or_else(|| PyRuntimeError::new_err("no length of list was evaluated"))?;
        Ok(vec![
            ("precision", found.precision.mean),
            ("recall", found.recall.mean),
            ("ndcg", found.ndcg.mean),
            ("map", found.map.mean),
            ("mrr", found.mrr.mean),
            ("hit_rate", found.hit_rate.mean),
        ])
    }

    /// The best `n` items for each of these users, by index.
    #[pyo3(signature = (users, n, include_seen=false, allow=None, deny=Vec::new(), min_count=0, max_count=None, categories=None))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
    fn top<'py>(
        &self,
        py: Python<'py>,
        users: PyReadonlyArray1<'py, i64>,
        n: usize,
        include_seen: bool,
        allow: Option<Vec<u32>>,
        deny: Vec<u32>,
        min_count: usize,
        max_count: Option<usize>,
        categories: Option<(Vec<Option<u32>>, usize)>,
    ) -> PyResult<Lists<'py>> {
        let model = self.recommender()?;
        let filter = filter(
            model.items().len(),
            include_seen,
            allow,
            deny,
            min_count,
            max_count,
            categories,
        )?;
        let users: Vec<u32> = users.as_array().iter().map(|&user| user as u32).collect();
        lists(py, &inside(py, || model.top_many(&users, n, &filter))?.map_err(raise)?)
    }

    /// The best `n` items for someone described by ratings of items, by index.
    #[pyo3(signature = (items, values, n, include_seen=false, allow=None, deny=Vec::new(), min_count=0, max_count=None, categories=None))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
    fn top_for<'py>(
        &self,
        py: Python<'py>,
        items: Vec<u32>,
        values: Vec<f32>,
        n: usize,
        include_seen: bool,
        allow: Option<Vec<u32>>,
        deny: Vec<u32>,
        min_count: usize,
        max_count: Option<usize>,
        categories: Option<(Vec<Option<u32>>, usize)>,
    ) -> PyResult<Lists<'py>> {
        let model = self.recommender()?;
        let profile = Profile { items, values };
        profile.check(model.items().len()).map_err(raise)?;
        let filter = filter(
            model.items().len(),
            include_seen,
            allow,
            deny,
            min_count,
            max_count,
            categories,
        )?;
        let list =
            inside(py, || model.top(&Recipient::Profile(&profile), n, &filter))?.map_err(raise)?;
        lists(py, &[list])
    }

    /// The best `n` items for people described by features, and by ratings if there are any.
    #[pyo3(signature = (columns, rated, n, include_seen=false, allow=None, deny=Vec::new(), min_count=0, max_count=None, categories=None))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
    fn top_described<'py>(
        &self,
        py: Python<'py>,
        columns: Columns<'py>,
        rated: Option<(Vec<u32>, Vec<f32>)>,
        n: usize,
        include_seen: bool,
        allow: Option<Vec<u32>>,
        deny: Vec<u32>,
        min_count: usize,
        max_count: Option<usize>,
        categories: Option<(Vec<Option<u32>>, usize)>,
    ) -> PyResult<Lists<'py>> {
        let model = self.recommender()?;
        let rows = feature_rows(self, &columns)?;
        let profile = rated.map(|(items, values)| Profile { items, values });
        let filter = filter(
            model.items().len(),
            include_seen,
            allow,
            deny,
            min_count,
            max_count,
            categories,
        )?;
        let list = |features| {
            model.top(&Recipient::Described { features, rated: profile.as_ref() }, n, &filter)
        };
        let found: gradus::Result<Vec<_>> = inside(py, || rows.iter().map(list).collect())?;
        lists(py, &found.map_err(raise)?)
    }

    /// The `n` items most like each of these, by index.
    fn similar_items<'py>(
        &self,
        py: Python<'py>,
        items: Vec<u32>,
        n: usize,
    ) -> PyResult<Lists<'py>> {
        let model = self.recommender()?;
        let found: gradus::Result<Vec<_>> =
            inside(py, || items.iter().map(|&item| model.similar_items(item, n)).collect())?;
        lists(py, &found.map_err(raise)?)
    }

    /// The `n` users most like each of these, by index.
    fn similar_users<'py>(
        &self,
        py: Python<'py>,
        users: Vec<u32>,
        n: usize,
    ) -> PyResult<Lists<'py>> {
        let model = self.recommender()?;
        let found: gradus::Result<Vec<Vec<_>>> =
            inside(py, || users.iter().map(|&user| model.similar_users(user, n)).collect())?;
        let as_items = |list: Vec<gradus_core::recommend::ScoredUser>| {
            list.into_iter().map(|s| Scored { item: s.user, score: s.score }).collect()
        };
        let found: Vec<Vec<Scored>> = found.map_err(raise)?.into_iter().map(as_items).collect();
        lists(py, &found)
    }

    /// Why the score of an item for a user is what it is: score, base, and for each of their ratings
    /// its item, value and contribution.
    fn explain(&self, py: Python<'_>, user: u32, item: u32) -> PyResult<Explained> {
        let model = self.recommender()?;
        let why = inside(py, || model.explain(&Recipient::User(user), item))?.map_err(raise)?;
        let parts = why.contributions.iter().map(|c| (c.item, c.value, c.contribution)).collect();
        let named = |parts: Vec<FeatureContribution>| {
            parts.into_iter().map(|part| (part.feature, part.contribution)).collect()
        };
        let (of_user, of_item) = (named(why.user_features), named(why.item_features));
        Ok((why.score, why.base, parts, of_user, of_item))
    }

    /// Adds ratings without fitting again; says what came of it, as JSON.
    #[pyo3(signature = (ratings, duplicates="last", items=false))]
    fn add(
        &mut self,
        py: Python<'_>,
        ratings: &Ratings,
        duplicates: &str,
        items: bool,
    ) -> PyResult<String> {
        let how = UpdateOptions { duplicates: which(duplicates)?, items };
        if Arc::get_mut(&mut self.fitted).is_none() {
            // A copy of the estimator, or a fit that starts from it, keeps what it has.
            let copied = inside(py, || self.fitted.to_bytes().and_then(gradus::from_bytes))?;
            self.fitted = Arc::new(copied.map_err(raise)?);
        }
        let fitted = Arc::get_mut(&mut self.fitted)
            .ok_or_else(|| PyRuntimeError::new_err("the model is in use"))?;
        let ratings = ratings.ratings();
        let updated = inside(py, || fitted.update(ratings, &how))?.map_err(raise)?;
        to_json(&updated)
    }

    fn __repr__(&self) -> String {
        format!("<gradus model {}>", self.fitted.kind)
    }
}
