//! Baselines that know the target alone: the mean of numbers, the shares of classes.

use crate::fitting::{
    check_held_out, check_samples, class_weights, held_out_log_loss, held_out_rmse, loop_options,
    means,
};
use crate::{LinearModel, Link};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_core::report::Certificate;
use gradus_data::{Dense, Samples};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The mean of the target: predicts the same number for every sample.
///
/// `ŷ = Σ w y / Σ w`, which minimises `Σ w (y − ŷ)²` over all constants; of several targets, the mean of each.
/// Its R² is 0 on the data it was fitted to, so a regression that does not beat it has learned nothing.
/// scikit-learn's `DummyRegressor`. The features are not looked at; missing or useless ones do no harm.
///
/// Use it as the baseline of a regression, and `majority` as that of a classification. `gradus compare` takes both.
///
/// ```
/// use gradus_data::{Dense, Samples};
/// use gradus_core::{estimator::Fit, predict::Predict};
/// use gradus_linear::Constant;
/// let x = Dense::from_rows(&[[1.0], [2.0], [3.0]]);
/// let fitted = Constant::new().fit(&Samples::regression(x.clone(), vec![1.0, 1.0, 4.0])?)?;
/// assert_eq!(fitted.scores(&x.into())?.values(), [2.0, 2.0, 2.0]);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Constant {}

impl Params for Constant {}

impl Constant {
    /// The only setting.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Fit for Constant {
    const NAME: &'static str = "constant";
    const CLASS: &'static str = "Constant";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = LinearModel;
    const TRAITS: Traits = Traits { baseline: true, ..Traits::REGRESSION };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        check_samples(Self::NAME, samples)?;
        check_held_out(samples, job.validation)?;
        let values = samples.values()?;
        let options = loop_options(self, started, 1, 0, "rmse");
        let mut slope = 0.0;
        let (model, mut report) = iterate::direct(&options, job, || {
            let means = means(samples)?;
            if means.iter().any(|mean| !mean.is_finite()) {
                return Err(Error::data("constant: the mean of the target is not finite"));
            }
            let (mut squares, mut sizes, mut total) = (0.0, 0.0, 0.0);
            let mut slopes = vec![0.0; means.len()];
            for (row, y) in values.rows().enumerate() {
                let weight = samples.weights().map_or(1.0, |weights| weights[row]);
                for ((y, mean), slope) in y.iter().zip(&means).zip(&mut slopes) {
                    squares += weight * (y - mean).powi(2);
                    sizes += weight * (y.abs() + mean.abs());
                    *slope += weight * (y - mean);
                }
                total += weight;
            }
            slope = slopes.iter().map(|slope: &f64| slope.abs()).sum::<f64>();
            slope /= f64::max(sizes, f64::MIN_POSITIVE);
            let flat = Dense::full(means.len(), samples.n_features(), 0.0);
            let model = LinearModel::new(samples, Link::Identity, flat, means);
            let score = held_out_rmse(&model, samples, job)?;
            Ok((model, squares / (2.0 * total), score.map(|(score, _)| score)))
        })?;
        report.certificate = Some(certificate(slope));
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// The most frequent class: predicts the same class for every sample, with the shares of the classes as probabilities.
///
/// The probability of a class is its share of the weight, which minimises the log loss over all constants. A
/// classification that does not beat it has learned nothing: where nine of ten samples are of one class, an
/// accuracy of .9 is no merit. scikit-learn's `DummyClassifier`. The features are not looked at.
///
/// Use it as the baseline of a classification, and `constant` as that of a regression. `gradus compare` takes both.
///
/// ```
/// use gradus_data::{Dense, Id, Samples};
/// use gradus_core::{estimator::Fit, predict::Predict};
/// use gradus_linear::Majority;
/// let x = Dense::from_rows(&[[1.0], [2.0], [3.0], [4.0]]);
/// let classes = ["ham", "spam", "ham", "ham"].map(Id::Text);
/// let fitted = Majority::new().fit(&Samples::classification(x.clone(), classes)?)?;
/// let shares = fitted.probabilities(&x.into())?.unwrap();
/// assert!((shares[(0, 0)] - 0.75).abs() < 1e-12);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Majority {}

impl Params for Majority {}

impl Majority {
    /// The only setting.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The proof that no other constant is better: there the objective has no slope.
fn certificate(slope: f64) -> Certificate {
    let name = "gradient (as a share of its terms)".into();
    Certificate { name, value: slope, tolerance: 1e-9 }
}

/// The share of a class that is known and has no sample. It is above 0, so that its logarithm is finite.
const LEAST: f64 = f64::MIN_POSITIVE;

impl Fit for Majority {
    const NAME: &'static str = "majority";
    const CLASS: &'static str = "Majority";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = LinearModel;
    const TRAITS: Traits = Traits { baseline: true, ..Traits::CLASSIFICATION };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        samples.classes()?;
        check_samples(Self::NAME, samples)?;
        check_held_out(samples, job.validation)?;
        let sizes = class_weights(samples)?;
        let total: f64 = sizes.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err(Error::data("majority: no sample has a weight above 0"));
        }
        let options = loop_options(self, started, 1, 0, "log loss");
        let mut slope = 0.0;
        let (model, mut report) = iterate::direct(&options, job, || {
            let logs: Vec<f64> = sizes.iter().map(|size| (size / total).max(LEAST).ln()).collect();
            let loss: f64 = sizes.iter().zip(&logs).map(|(size, log)| -size / total * log).sum();
            let total_share: f64 = logs.iter().map(|log| log.exp()).sum();
            let errors =
                sizes.iter().zip(&logs).map(|(size, log)| size / total - log.exp() / total_share);
            slope = errors.map(f64::abs).sum();
            let (link, scores) = match logs[..] {
                [first, second] => (Link::Logistic, vec![second - first]),
                _ => (Link::Softmax, logs),
            };
            let flat = Dense::full(scores.len(), samples.n_features(), 0.0);
            let model = LinearModel::new(samples, link, flat, scores);
            let score = held_out_log_loss(&model, job)?;
            Ok((model, loss, score.map(|(score, _)| score)))
        })?;
        report.certificate = Some(certificate(slope));
        Ok(Fitted { params: self.clone(), model, report })
    }
}
