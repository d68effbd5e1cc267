//! Loss functions, for the solvers that follow a gradient.

use crate::baseline::Components;
use crate::fitting;
use crate::latent::{self, FoldIn, RatingLink, Robust, Squares};
use crate::tuning::{Chosen, LatentParams};
use gradus_base::{Error, Result};
use gradus_core::progress::Stop;
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

/// The problem of a gradient solver: the rank, the loss and the penalty, in the units of the ratings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Problem {
    pub(crate) rank: usize,
    pub(crate) loss: RatingLoss,
    /// The error from which the Huber loss is linear.
    pub(crate) delta: f32,
    pub(crate) rule: Squares,
}

/// A value this many times the spread of the others from their median is taken for wild.
const WILD: f64 = 5.0;

/// The variances that penalties and `delta` are measured by. Under a robust loss a few wild values must
/// not set the units of all others, so they are drawn in first.
fn components(loss: RatingLoss, data: &Ratings, biases: bool, stop: &Stop) -> Components {
    let robust = matches!(loss, RatingLoss::Absolute | RatingLoss::Huber);
    let weight: f64 = data.iter().map(|r| f64::from(r.weight)).sum();
    if !robust || weight <= 0.0 {
        return Components::estimate(data, biases, stop);
    }
    let middle = median(data, weight);
    let deviation = |value: f32| (f64::from(value) - middle).abs() as f32;
    // As wide as the standard deviation, for normal values.
    let width = 1.4826 * median(&data.map_values(|rating| deviation(rating.value)), weight);
    let (low, high) = ((middle - WILD * width) as f32, (middle + WILD * width) as f32);
    if width <= 0.0 || data.iter().all(|r| (low..=high).contains(&r.value)) {
        return Components::estimate(data, biases, stop);
    }
    let drawn_in = data.map_values(|rating| rating.value.clamp(low, high));
    Components::estimate(&drawn_in, biases, stop)
}

impl Problem {
    /// The problem with the penalty that least squares would have, brought to the units of the loss: as a
    /// prior, the penalty stays what it is, and losses are the negative logarithms of other densities.
    pub(crate) fn new<P: LatentParams>(
        params: &P,
        chosen: &Chosen,
        (loss, delta): (RatingLoss, f32),
        data: &Ratings,
        stop: &Stop,
    ) -> Self {
        let components = components(loss, data, params.has_biases(), stop);
        let (squares, noise) = (params.squares(chosen, &components), components.noise);
        // What squares, divided by twice the variance of the noise, have to be multiplied by.
        let (of_factors, of_biases) = match loss {
            RatingLoss::Squared | RatingLoss::Huber => (1.0, 1.0),
            // Laplace noise of this variance has the density exp(−√2 |e| / σ).
            RatingLoss::Absolute => {
                let unit = 1.0 / (2.0 * f64::sqrt(2.0) * noise);
                (unit, unit)
            }
            // To first order a score is the value over `range · c`, where c = p (1 − p) is the curvature.
            RatingLoss::Logistic => {
                let (low, high) = latent::range(data);
                let (low, high) = if low >= 0.0 && high <= 1.0 { (0.0, 1.0) } else { (low, high) };
                let range = f64::from(high - low).max(f64::from(f32::MIN_POSITIVE));
                let curvature = (noise / range).powi(2).clamp(1e-4, 0.25);
                (0.5 * curvature.sqrt() / noise, 0.5 * curvature)
            }
        };
        let rule = Squares {
            regularization: (f64::from(squares.regularization) * of_factors) as f32,
            bias_regularization: squares
                .bias_regularization
                .map(|sides| sides.map(|lambda| (f64::from(lambda) * of_biases) as f32)),
            ..squares
        };
        Self { rank: chosen.rank, loss, delta: (f64::from(delta) * noise) as f32, rule }
    }

    /// How a single row is solved: under the loss of the fit.
    pub(crate) fn fold_in(&self) -> FoldIn {
        let Squares { regularization, scaling, biases, bias_regularization } = self.rule;
        let Self { loss, delta, .. } = *self;
        match loss {
            // The logistic loss is that of the link, by which squares are reweighted.
            RatingLoss::Squared | RatingLoss::Logistic => FoldIn::Squares(self.rule),
            RatingLoss::Absolute | RatingLoss::Huber => FoldIn::Robust(Robust {
                regularization,
                scaling,
                biases,
                loss,
                delta,
                bias_regularization,
            }),
        }
    }
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
    pub(crate) fn new(model: &str, problem: &Problem, data: &Ratings) -> Result<Self> {
        let Problem { loss, delta, .. } = *problem;
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

    /// The penalty on factors in these units that equals λ in those of the data.
    pub(crate) fn penalty(&self, lambda: f32) -> f64 {
        f64::from(lambda) * self.score() / self.objective()
    }

    /// The same for the penalty on a bias; 0 without one.
    pub(crate) fn bias_penalty(&self, lambda: Option<f32>) -> f64 {
        f64::from(lambda.unwrap_or(0.0)) * self.score().powi(2) / self.objective()
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
