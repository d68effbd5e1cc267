//! The solution of one row under the absolute or the Huber loss, with the other side fixed.
//!
//! The row minimises `Σ w ℓ(y − x·v − β) + λ_row ‖x‖² + λ_β β²`, a convex problem, by iteratively
//! reweighted least squares. Both losses are linear beyond some width `W`, and there
//! `ℓ(e) ≤ c e² / |e₀| + constant` with equality at `e = e₀`: so a least-squares row with the weights
//! `w c / max(|e₀|, W)` never raises the objective. The absolute loss has no width of its own; it
//! is rounded off within a small share of the mean error. Widths start large and are halved,
//! which takes the first steps out of the reach of single ratings.

use super::fold_in::Fixed;
use super::{Affine, FactorVector, LatentFactors, RowRule, Scaling, Squares};
use crate::loss::RatingLoss;
use gradus_kernel::padded;
use serde::{Deserialize, Serialize};

/// The absolute loss is rounded off within this share of the mean error of a row of zeros.
const ROUNDED: f32 = 1e-4;

/// Least-squares solves at most, and the relative fall of the objective at which they end.
const SOLVES: usize = 100;
const FLAT: f64 = 1e-7;

/// Least squares whose loss grows like the error itself beyond some width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Robust {
    /// Strength of the penalty.
    pub regularization: f32,
    /// The growth of the penalty with the row.
    pub scaling: Scaling,
    /// Whether there is a bias to solve for.
    pub biases: bool,
    /// The loss: absolute or Huber.
    pub loss: RatingLoss,
    /// The error from which the Huber loss is linear.
    pub delta: f32,
    /// The penalty on the biases of users and of items, as for [`Squares`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_regularization: Option<[f32; 2]>,
}

/// The loss of one row: `c e² / W` up to `|e| = W`, then `c (2|e| − W)`.
#[derive(Clone, Copy, Debug)]
struct Rounded {
    /// Half the slope of the linear parts.
    slope: f32,
    width: f32,
}

impl Rounded {
    /// The weight of the least squares that touch the loss at this error.
    fn weight(self, error: f32) -> f32 {
        self.slope / error.abs().max(self.width)
    }

    fn of(self, error: f32) -> f64 {
        let (slope, width, e) =
            (f64::from(self.slope), f64::from(self.width), f64::from(error.abs()));
        if e <= width { slope * e * e / width } else { slope * (2.0 * e - width) }
    }
}

impl Robust {
    /// The same penalty on least squares.
    pub(crate) fn squares(&self) -> Squares {
        let Self { regularization, scaling, biases, bias_regularization, .. } = *self;
        Squares { regularization, scaling, biases, bias_regularization }
    }

    /// The loss with no width smaller than `least`; `scale` is the mean error of a row of zeros.
    fn rounded(&self, scale: f32, least: f32) -> Rounded {
        let (slope, width) = match self.loss {
            RatingLoss::Absolute => (0.5, ROUNDED * scale),
            _ => (self.delta, self.delta),
        };
        // A width of zero would divide by zero where the error is none.
        Rounded { slope, width: width.max(least).max(f32::MIN_POSITIVE) }
    }
}

/// The weighted mean size of the values.
fn mean_size(values: &[f32], weights: Option<&[f32]>) -> f32 {
    let weight = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at]));
    let total: f64 = (0..values.len()).map(weight).sum();
    let sum: f64 = values.iter().enumerate().map(|(at, x)| weight(at) * f64::from(x.abs())).sum();
    if total > 0.0 { (sum / total) as f32 } else { 0.0 }
}

impl LatentFactors {
    /// Solves a row under its loss. `targets` are what is left of the values for it to explain.
    pub(super) fn solve_robust(
        &self,
        (rule, row): (&Robust, &RowRule),
        fixed: &Fixed<'_>,
        indices: &[u32],
        targets: &[f32],
        weights: Option<&[f32]>,
    ) -> FactorVector {
        let factors = vec![0.0; padded(self.rank())];
        let mut vector = FactorVector { bias: 0.0, factors, normal: Affine::IDENTITY };
        let scale = mean_size(targets, weights);
        if scale == 0.0 {
            return vector;
        }
        let (lambda, bias_lambda) = row.of(indices.len(), weights);
        let row = row.fixed(indices.len(), weights);
        let goal = rule.rounded(scale, 0.0);
        let (mut least, mut before) = (scale, f64::INFINITY);
        let mut errors = targets.to_vec();
        for _ in 0..SOLVES {
            let loss = rule.rounded(scale, least);
            let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
            let each = errors.iter().enumerate();
            let touching: Vec<f32> = each.map(|(at, &e)| weight(at) * loss.weight(e)).collect();
            vector = self.solve_row(&row, fixed, indices, targets, Some(&touching));
            self.row_errors(fixed, &vector, indices, targets, &mut errors);
            if loss.width > goal.width {
                least /= 2.0;
                continue;
            }
            let each = errors.iter().enumerate();
            let sum: f64 = each.map(|(at, &e)| f64::from(weight(at)) * loss.of(e)).sum();
            let norm: f64 = vector.factors.iter().map(|&x| f64::from(x).powi(2)).sum();
            let of_bias = f64::from(bias_lambda.unwrap_or(0.0)) * f64::from(vector.bias).powi(2);
            let objective = sum + f64::from(lambda) * norm + of_bias;
            let settled = before - objective <= FLAT * objective;
            if settled {
                break;
            }
            before = objective;
        }
        vector
    }

    /// The residuals of a row.
    fn row_errors(
        &self,
        fixed: &Fixed<'_>,
        vector: &FactorVector,
        indices: &[u32],
        targets: &[f32],
        errors: &mut [f32],
    ) {
        gradus_kernel::dots(self.level, fixed.factors.as_slice(), indices, &vector.factors, errors);
        for (error, target) in errors.iter_mut().zip(targets) {
            *error = target - vector.bias - *error;
        }
    }

    /// The weights of the least squares problem that has a user's row as its solution, if the row comes
    /// from [`solve_robust`](Self::solve_robust).
    pub(super) fn robust_weights(
        &self,
        rule: &Robust,
        vector: &FactorVector,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> Vec<f32> {
        let fixed = Fixed { factors: &self.item_factors, bias: &self.item_bias };
        let targets = self.targets(&fixed, items, values);
        let loss = rule.rounded(mean_size(&targets, weights), 0.0);
        let mut errors = vec![0.0; items.len()];
        self.row_errors(&fixed, vector, items, &targets, &mut errors);
        let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
        errors.iter().enumerate().map(|(at, &e)| weight(at) * loss.weight(e)).collect()
    }
}

#[cfg(test)]
mod tests;
