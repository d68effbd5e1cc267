//! The link function: from the score of a model to its prediction.

use serde::{Deserialize, Serialize};

/// Link function: turns the score `α + β_u + β_i + γ_u·γ_i` into a prediction. It rises with the score, so
/// the order of recommendations is that of the scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RatingLink {
    /// The score is the prediction.
    #[default]
    Identity,
    /// `low + (high − low) / (1 + e^−score)`.
    Logistic {
        /// The prediction for a score of minus infinity.
        low: f32,
        /// The prediction for a score of infinity.
        high: f32,
    },
}

impl RatingLink {
    /// The prediction for a score.
    pub fn predict(self, score: f32) -> f32 {
        match self {
            RatingLink::Identity => score,
            RatingLink::Logistic { low, high } => low + (high - low) * sigmoid(score),
        }
    }

    pub(crate) fn is_identity(&self) -> bool {
        *self == RatingLink::Identity
    }

    pub(crate) fn makes_sense(&self) -> bool {
        match self {
            RatingLink::Identity => true,
            RatingLink::Logistic { low, high } => low < high && (high - low).is_finite(),
        }
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Target and weight of the least-squares fit that takes one of Newton's steps towards the least
/// cross-entropy from a score: `z = x + (y − σ)/σ(1−σ)`, `w = σ(1−σ)/2` (the
/// half because the penalty counts whole and the loss counts with half its gradient).
pub(super) fn working(low: f32, high: f32, value: f32, score: f32) -> (f32, f32) {
    let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
    let predicted = sigmoid(score);
    // Far out the loss is flat; without a floor one step would leap over everything.
    let curvature = (predicted * (1.0 - predicted)).max(1e-3);
    (score + (share - predicted) / curvature, curvature / 2.0)
}
