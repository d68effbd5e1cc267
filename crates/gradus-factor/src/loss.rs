//! Loss functions, for the solvers that follow a gradient.

use crate::fitting;
use crate::latent::{self, RatingLink};
use gradus_base::{Error, Result};
use gradus_data::Ratings;
use gradus_kernel::sgd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Loss function of the error `e = r − r̂`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RatingLoss {
    /// `e²`: predicts the mean.
    #[default]
    Squared,
    /// `|e|`: predicts the median; outliers count no more than others.
    Absolute,
    /// `e²` up to `|e| = delta`, then linear: a compromise of the two.
    Huber,
    /// Cross-entropy of a probability, for values from 0 to 1 or of two kinds: predictions pass through the logistic function.
    Logistic,
}

/// The units a fit works in: values divided by their standard deviation, so that one learning rate
/// serves ratings from 1 to 5 as well as prices in the thousands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Units {
    pub(crate) loss: sgd::ResidualLoss,
    pub(crate) link: RatingLink,
    /// A value in these units is `(value − offset) / scale`.
    offset: f64,
    pub(crate) scale: f64,
    /// The constant of all predictions that fits best, in these units.
    pub(crate) mean: f64,
}

impl Units {
    /// # Errors
    /// If the loss does not suit the data, or nothing has a weight.
    pub(crate) fn new(model: &str, loss: RatingLoss, delta: f32, data: &Ratings) -> Result<Self> {
        let (sum, weight) = fitting::total(model, data)?;
        let mean = sum / weight;
        if loss == RatingLoss::Logistic {
            let (low, high) = extremes(model, data)?;
            let share = (mean - f64::from(low)) / f64::from(high - low);
            // Where all values are equal the logit is infinite; this is certain enough.
            let share = share.clamp(1e-4, 1.0 - 1e-4);
            return Ok(Self {
                loss: sgd::ResidualLoss::Logistic,
                link: RatingLink::Logistic { low, high },
                offset: f64::from(low),
                scale: f64::from(high - low),
                mean: (share / (1.0 - share)).ln(),
            });
        }
        let squares: f64 =
            data.iter().map(|r| f64::from(r.weight) * (f64::from(r.value) - mean).powi(2)).sum();
        let spread = (squares / weight).sqrt();
        let scale = if spread > 0.0 && spread.is_finite() { spread } else { 1.0 };
        let (loss, middle) = match loss {
            RatingLoss::Absolute => (sgd::ResidualLoss::Absolute, median(data, weight)),
            RatingLoss::Huber => {
                (sgd::ResidualLoss::Huber((f64::from(delta) / scale) as f32), median(data, weight))
            }
            RatingLoss::Squared | RatingLoss::Logistic => (sgd::ResidualLoss::Squared, mean),
        };
        Ok(Self { loss, link: RatingLink::Identity, offset: 0.0, scale, mean: middle / scale })
    }

    /// A value in these units.
    pub(crate) fn value(&self, value: f32) -> f32 {
        ((f64::from(value) - self.offset) / self.scale) as f32
    }

    /// A value in these units is `(value − .0) · .1`.
    pub(crate) fn affine(&self) -> (f32, f32) {
        (self.offset as f32, (1.0 / self.scale) as f32)
    }

    /// The factor that brings scores and biases from these units to those of the data; latent factors
    /// take its root.
    pub(crate) fn score(&self) -> f64 {
        if self.link == RatingLink::Identity { self.scale } else { 1.0 }
    }

    /// The factor that brings the objective from these units to those of the data.
    pub(crate) fn objective(&self) -> f64 {
        match self.loss {
            sgd::ResidualLoss::Squared | sgd::ResidualLoss::Huber(_) => self.scale * self.scale,
            sgd::ResidualLoss::Absolute => self.scale,
            sgd::ResidualLoss::Logistic => 1.0,
        }
    }

    /// The penalty on factors in these units that equals λ in those of the data. The penalty on biases is [`score`](Self::score) times as large.
    pub(crate) fn penalty(&self, lambda: f64) -> f64 {
        lambda * self.score() / self.objective()
    }
}

/// The values that the logistic loss takes for 0 and 1.
fn extremes(model: &str, data: &Ratings) -> Result<(f32, f32)> {
    let (low, high) = latent::range(data);
    if low >= 0.0 && high <= 1.0 {
        return Ok((0.0, 1.0));
    }
    let values = data.by_user().values();
    match values.iter().find(|&&value| value != low && value != high) {
        None if low < high => Ok((low, high)),
        found => {
            let value = found.copied().unwrap_or(low);
            Err(Error::data(format!(
                "{model}: loss = logistic: a value is {value}; values must be from 0 to 1, or of \
                 exactly two kinds"
            )))
        }
    }
}

/// The weighted median.
fn median(data: &Ratings, weight: f64) -> f64 {
    let mut values: Vec<(f32, f32)> = data.iter().map(|r| (r.value, r.weight)).collect();
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    for &(value, w) in &values {
        below += f64::from(w);
        if below >= weight / 2.0 {
            return f64::from(value);
        }
    }
    values.last().map_or(0.0, |last| f64::from(last.0))
}
