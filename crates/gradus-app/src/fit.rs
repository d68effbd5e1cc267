//! Fitting a model.

use crate::App;
use crate::data::{Opened, Source};
use gradus_base::Result;
use gradus_core::dataset::{Dataset, Held, RANDOM, Remarks};
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What to fit, and to what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FitRequest {
    /// The name of the model.
    pub model: String,
    /// Its parameters; what is left out takes its default.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The data.
    pub data: Source,
    /// How much of the data to hold out: scored after every iteration, reason to stop early.
    #[serde(default)]
    pub holdout: Option<f64>,
    /// What is held out; see the schemes of the kind of data.
    #[serde(default = "random")]
    pub split: String,
    /// Held-out data in a file of its own.
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
    pub facts: Map<String, Value>,
    /// The number of units that were held out.
    pub held_out: Option<usize>,
    /// What was held out, if anything was.
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
    /// What it learns from.
    pub train: Box<dyn Dataset>,
    /// What it is scored on.
    pub validation: Option<Box<dyn Dataset>>,
    /// All data that was read, in words.
    pub description: String,
    /// What is told of the data.
    pub data: FitData,
}

impl App {
    /// Reads the data of a fit, and holds out what is asked for.
    ///
    /// # Errors
    /// If there is no such model, or the data cannot be used.
    pub fn prepare_fit(&self, request: &FitRequest, remarks: &mut Remarks<'_>) -> Result<Fit> {
        let model = self.registry.find(&request.model)?;
        let times = request.holdout.is_some() && request.split == "last";
        let Opened { data, seconds } = request.data.open(model, None, times, remarks)?;
        let description = data.describe();
        let seed = request.params.get("seed").and_then(Value::as_u64).unwrap_or(0);
        let (train, validation) = match (request.holdout, &request.validation) {
            (Some(amount), _) => {
                let Held { train, held_out } = data.hold_out(&request.split, amount, seed)?;
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
            facts: train.summary(),
            held_out: validation.as_ref().map(|data| data.len()),
            split: request.holdout.map(|_| request.split.clone()),
            skipped: remarks.skipped,
            load_seconds: seconds,
        };
        Ok(Fit { model, params: request.params.clone(), train, validation, description, data })
    }
}

impl Fit {
    /// Fits the model. It remembers a sketch of its training data, so that an evaluation can tell
    /// when it is given that data.
    ///
    /// # Errors
    /// If a parameter is outside its range, or the data cannot be used.
    pub fn run(&self, run: &Run<'_>) -> Result<AnyFitted> {
        let validation = self.validation.as_deref();
        let mut fitted = self.model.fit(&self.params, self.train.as_ref(), validation, run)?;
        fitted.report.training = Some(self.train.sketch());
        Ok(fitted)
    }
}
