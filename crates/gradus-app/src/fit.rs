//! Fitting a model.

use crate::App;
use crate::data::{Opened, Source};
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::{Dataset, HoldOut, RANDOM, Remarks, is_npy};
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_data::{NpyRows, RowBlocks as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A fit: the model, its parameters and the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FitRequest {
    /// The name of the model.
    pub model: String,
    /// The parameters; those left out take their defaults.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The data.
    pub data: Source,
    /// How much of the data to hold out: scored after every iteration, reason to stop early.
    #[serde(default)]
    pub holdout: Option<f64>,
    /// The hold-out scheme; see the schemes of the kind of data.
    #[serde(default = "random")]
    pub split: String,
    /// Held-out data from a file of its own.
    #[serde(default)]
    pub validation: Option<Source>,
}

fn random() -> String {
    RANDOM.0.to_owned()
}

/// The data of a fit, as answers tell it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FitData {
    /// The file.
    pub file: String,
    /// The size of the training data.
    #[serde(flatten)]
    pub size: Map<String, Value>,
    /// The number of units that were held out.
    pub held_out: Option<usize>,
    /// The hold-out scheme, if data was held out.
    pub split: Option<String>,
    /// Bad rows that were left out.
    pub skipped: u64,
    /// How long reading took.
    pub load_seconds: f64,
}

/// A fit that is ready to run: its data is there.
pub struct Fit {
    model: &'static dyn Estimator,
    params: Map<String, Value>,
    train: Training,
    /// The held-out data that scores the fit.
    pub validation: Option<Box<dyn Dataset>>,
    /// All data that was read, in words.
    pub description: String,
    /// The description of the data in the answer.
    pub data: FitData,
}

/// The training data of a fit.
enum Training {
    InMemory(Box<dyn Dataset>),
    /// A matrix that is read while the fit runs.
    Streamed(PathBuf),
    /// A file that is read in parts while the fit runs.
    Parts(Source),
}

impl App {
    /// Reads the data of a fit, and holds out what is asked for.
    ///
    /// # Errors
    /// If there is no such model, or the data cannot be used.
    pub fn prepare_fit(&self, request: &FitRequest, remarks: &mut Remarks<'_>) -> Result<Fit> {
        let model = self.registry.find(&request.model)?;
        if let Some(fit) = streamed(model, request)? {
            return Ok(fit);
        }
        if let Some(fit) = in_parts(model, request)? {
            return Ok(fit);
        }
        let times = request.holdout.is_some() && request.split == "last";
        let Opened { data, seconds } = request.data.open(model, None, times, remarks)?;
        let description = data.describe();
        let seed = request.params.get("seed").and_then(Value::as_u64).unwrap_or(0);
        let (train, validation) = match (request.holdout, &request.validation) {
            (Some(amount), _) => {
                let HoldOut { train, held_out } = data.hold_out(&request.split, amount, seed)?;
                (train, Some(held_out))
            }
            (None, Some(source)) => {
                let held_out = source.open(model, Some(data.as_ref()), false, remarks)?.data;
                (data, Some(held_out))
            }
            (None, None) => (data, None),
        };
        let data = FitData {
            file: request.data.path.display().to_string(),
            size: train.summary(),
            held_out: validation.as_ref().map(|data| data.len()),
            split: request.holdout.map(|_| request.split.clone()),
            skipped: remarks.skipped,
            load_seconds: seconds,
        };
        let train = Training::InMemory(train);
        Ok(Fit { model, params: request.params.clone(), train, validation, description, data })
    }
}

/// The fit of a model that need not keep its data in memory to a matrix of NumPy, of which nothing is held out.
fn streamed(model: &'static dyn Estimator, request: &FitRequest) -> Result<Option<Fit>> {
    let path = &request.data.path;
    let all = request.holdout.is_none() && request.validation.is_none();
    // Options name columns, which the reader of matrices refuses.
    let plain = request.data.options.is_empty();
    if !(model.traits().streams && is_npy(path) && all && plain) {
        return Ok(None);
    }
    // An array of images has more dimensions; it is read as samples are.
    if !NpyRows::is_matrix(path)? {
        return Ok(None);
    }
    let rows = NpyRows::open(path)?;
    let (n, d) = (rows.n_rows(), rows.n_cols());
    let mut size = Map::new();
    size.insert("samples".into(), n.into());
    size.insert("features".into(), d.into());
    let description =
        format!("{} samples, {} features, read while the model is fitted", grouped(n), grouped(d));
    let file = path.display().to_string();
    let data = FitData { file, size, held_out: None, split: None, skipped: 0, load_seconds: 0.0 };
    let train = Training::Streamed(path.clone());
    let params = request.params.clone();
    Ok(Some(Fit { model, params, train, validation: None, description, data }))
}

/// The fit of a model that need not keep its data in memory to a file that is read in parts, of which nothing is held out.
fn in_parts(model: &'static dyn Estimator, request: &FitRequest) -> Result<Option<Fit>> {
    let Source { path, options } = &request.data;
    let all = request.holdout.is_none() && request.validation.is_none();
    if !(all && model.takes_parts(&request.params, path, options)?) {
        return Ok(None);
    }
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let description = format!(
        "{:.1} MB of {}, read while the model is fitted",
        bytes as f64 / 1e6,
        model.data().name()
    );
    let mut size = Map::new();
    size.insert("bytes".into(), bytes.into());
    let file = path.display().to_string();
    let data = FitData { file, size, held_out: None, split: None, skipped: 0, load_seconds: 0.0 };
    let train = Training::Parts(request.data.clone());
    let params = request.params.clone();
    Ok(Some(Fit { model, params, train, validation: None, description, data }))
}

impl Fit {
    /// Whether the data is read while the model is fitted. Such a fit keeps no checkpoint.
    pub fn is_streamed(&self) -> bool {
        !matches!(self.train, Training::InMemory(_))
    }

    /// Fits the model. It remembers a sketch of its training data, so that an evaluation can tell
    /// when it is given that data.
    ///
    /// # Errors
    /// If a parameter is outside its range, or the data cannot be used.
    pub fn run(&self, run: &Run<'_>) -> Result<AnyFitted> {
        let validation = self.validation.as_deref();
        match &self.train {
            Training::InMemory(train) => {
                let mut fitted = self.model.fit(&self.params, train.as_ref(), validation, run)?;
                fitted.report.training = Some(train.sketch());
                Ok(fitted)
            }
            Training::Streamed(path) => {
                let mut rows = NpyRows::open(path)?;
                let fitted = self.model.fit_rows(&self.params, &mut rows, run);
                fitted
                    .ok_or_else(|| Error::data(format!("{} holds its data", self.model.name())))?
            }
            Training::Parts(source) => {
                self.model.fit_parts(&self.params, &source.path, &source.options, run)
            }
        }
    }
}
