//! A transformer: features with mean 0 and standard deviation 1.

use gradus::data::{Dense, Inputs, Matrix, Samples};
use gradus::model::{
    Fit, Fitted, Job, LoopOptions, Model, Params, Reader, Traits, Transform, Writer, direct, record,
};
use gradus::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Standardises features: each has mean 0 and standard deviation 1 in training.
///
/// A feature `x` becomes `(x − μ) / σ` with the mean `μ` and the standard deviation `σ` of training,
/// where `σ` is that of the population (the sum of squares divided by the number of samples). A
/// constant feature becomes 0. Samples count by their weights. The objective in the report is the mean
/// variance of the features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Standardize {
    /// Whether features are divided by their standard deviation; otherwise they are only centred.
    pub scale: bool,
}

impl Default for Standardize {
    fn default() -> Self {
        Self { scale: true }
    }
}

impl Params for Standardize {}

/// The means and scales of features.
#[derive(Clone, Debug, PartialEq)]
pub struct Standardized {
    inputs: Inputs,
    means: Vec<f64>,
    scales: Vec<f64>,
}

impl Fit for Standardize {
    const NAME: &'static str = "standardize";
    const CLASS: &'static str = "Standardize";
    const FAMILY: &'static str = "transform";
    type Data = Samples;
    type Model = Standardized;
    const TRAITS: Traits = Traits::TRANSFORMER;

    fn fit_job(&self, data: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        self.check()?;
        if data.is_empty() {
            return Err(Error::data("standardize: there are no samples to learn from"));
        }
        let options =
            LoopOptions { model: Self::NAME, params: record(self), ..LoopOptions::default() };
        let (model, report) = direct(&options, job, || {
            let x = data.features().to_dense();
            let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
            let total: f64 = (0..x.n_rows()).map(weight).sum();
            let mean = |column: usize, of: &dyn Fn(f64) -> f64| {
                let values = x.column(column).enumerate();
                values.map(|(row, x)| weight(row) * of(x)).sum::<f64>() / total
            };
            let means: Vec<f64> = (0..x.n_cols()).map(|column| mean(column, &|x| x)).collect();
            let variances: Vec<f64> = (0..x.n_cols())
                .map(|column| mean(column, &|x| (x - means[column]).powi(2)))
                .collect();
            let objective = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
            let scale = |&variance: &f64| {
                if self.scale && variance > 0.0 { variance.sqrt() } else { 1.0 }
            };
            let scales = variances.iter().map(scale).collect();
            let model = Standardized { inputs: data.inputs().clone(), means, scales };
            Ok((model, objective, None))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

impl Transform for Standardized {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        self.inputs.feature_names()
    }

    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        let x = features.to_dense();
        Ok(Dense::from_fn(x.n_rows(), x.n_cols(), |row, column| {
            (x[(row, column)] - self.means[column]) / self.scales[column]
        }))
    }

    fn inverse(&self, z: &Dense<f64>) -> Option<Result<Dense<f64>>> {
        Some(self.inputs.check_width(z.n_cols()).map(|()| {
            Dense::from_fn(z.n_rows(), z.n_cols(), |row, column| {
                z[(row, column)] * self.scales[column] + self.means[column]
            })
        }))
    }
}

impl Model for Standardized {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.tensor("means", &[self.means.len()], &self.means);
        file.tensor("scales", &[self.scales.len()], &self.scales);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let n = inputs.n_features();
        let (means, scales) = (file.finite("means", &[n])?, file.finite("scales", &[n])?);
        Ok(Self { inputs, means, scales })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("features", self.means.len().to_string())]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}
