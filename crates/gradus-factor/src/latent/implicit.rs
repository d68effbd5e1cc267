//! Signs of interest: how a row is solved when the other side is known.

use super::features::PriorMean;
use super::fold_in::Fixed;
use super::{Affine, FactorVector, LatentFactors};
use gradus_data::Entity;
use gradus_kernel::gram::Gram;
use gradus_kernel::{RowProblem, RowSolver, Totals, padded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How the confidence in an observed pair grows with its value. A value of 0 has no confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// c(r) = 1: it matters whether there was interest, not how often.
    #[default]
    Constant,
    /// c(r) = αr: proportional to the value.
    Linear,
    /// c(r) = α ln(1 + r/ε): large values level off.
    Log,
}

/// The pairs that have the weight α₀ of what was not observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnobservedOn {
    /// All pairs: the target of an observed pair is c/(c + α₀), with weight c + α₀.
    #[default]
    All,
    /// All other pairs: the target of an observed pair is 1, with weight c + α₀.
    Rest,
}

/// Least squares on signs of interest:
/// `Σ_observed w c(r) (1 − s)² + α₀ Σ_all s² + λ_row (‖x‖² + β²)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Implicit {
    /// Strength λ of the penalty.
    pub regularization: f32,
    /// The power ν of the row's size by which it grows.
    pub exponent: f32,
    /// The weight α₀ of a pair that was not observed.
    pub unobserved: f32,
    /// The pairs that have this weight.
    pub unobserved_on: UnobservedOn,
    /// How confidence grows with the value.
    pub confidence: Confidence,
    /// The weight α.
    pub alpha: f32,
    /// The offset ε.
    pub epsilon: f32,
    /// Whether there is a bias to solve for.
    pub biases: bool,
}

impl Implicit {
    /// The confidence `c(r)`.
    pub(crate) fn confidence(&self, value: f32) -> f32 {
        match self.confidence {
            _ if value <= 0.0 => 0.0,
            Confidence::Constant => 1.0,
            Confidence::Linear => self.alpha * value,
            Confidence::Log => self.alpha * (value / self.epsilon).ln_1p(),
        }
    }

    /// Whether the target of an observed pair depends on its confidence.
    pub(crate) fn has_targets(&self) -> bool {
        self.unobserved_on == UnobservedOn::Rest
    }

    /// The target, with weight `c`, of a pair observed with confidence `c`, on top of the weight α₀
    /// towards zero that all pairs have: `(c + α₀)(1 − s)² = c (t − s)² + α₀ s² + constant`.
    pub(crate) fn target(&self, confidence: f32) -> f32 {
        match self.unobserved_on {
            UnobservedOn::Rest if confidence > 0.0 => {
                ((confidence + self.unobserved) / confidence).min(f32::MAX)
            }
            _ => 1.0,
        }
    }

    /// The constant of [`target`](Self::target), which the objective has besides the squares.
    pub(crate) fn constant(&self, confidence: f32) -> f64 {
        match self.unobserved_on {
            UnobservedOn::Rest if confidence > 0.0 => {
                let (c, unobserved) = (f64::from(confidence), f64::from(self.unobserved));
                -unobserved * (c + unobserved) / c
            }
            _ => 0.0,
        }
    }

    /// The penalty of a row with these values; the other side has `n_others` rows.
    pub(crate) fn lambda(&self, values: &[f32], weights: Option<&[f32]>, n_others: usize) -> f32 {
        let observed: f64 = match weights {
            None => values.iter().filter(|&&value| value > 0.0).count() as f64,
            Some(weights) => {
                let pairs = values.iter().zip(weights).filter(|(value, _)| **value > 0.0);
                pairs.map(|(_, &weight)| f64::from(weight)).sum()
            }
        };
        let size = observed + f64::from(self.unobserved) * n_others as f64;
        (f64::from(self.regularization) * size.powf(f64::from(self.exponent))) as f32
    }
}

/// The confidence in each observation, and what its score less the other's bias should be.
fn targets(
    rule: &Implicit,
    bias: &[f32],
    indices: &[u32],
    values: &[f32],
    weights: Option<&[f32]>,
) -> (Vec<f32>, Vec<f32>) {
    let confidence = |at: usize| weights.map_or(1.0, |w| w[at]) * rule.confidence(values[at]);
    let confidences: Vec<f32> = (0..values.len()).map(confidence).collect();
    let target = |(&index, &c): (&u32, &f32)| rule.target(c) - bias[index as usize];
    let targets = indices.iter().zip(&confidences).map(target).collect();
    (confidences, targets)
}

impl LatentFactors {
    /// The normal equations of the items with the weight of a pair that was not observed; computed
    /// once.
    pub(super) fn items_base(&self, rule: &Implicit) -> Arc<Gram> {
        let base = self.items_base.get_or_init(|| {
            let totals = self.observed_totals(Entity::Item);
            Arc::new(totals.base(self.level, f64::from(rule.unobserved)))
        });
        Arc::clone(base)
    }

    /// The number of users or of items, without those known by their features alone.
    pub(super) fn n_observed(&self, of: Entity) -> usize {
        let n = if of == Entity::User { self.user_bias.len() } else { self.item_bias.len() };
        let unobserved = self.unobserved[of as usize].as_ref();
        n - unobserved.map_or(0, |rows| rows.which.iter().filter(|&&which| which).count())
    }

    /// The sums over the rows of a side that were observed.
    fn observed_totals(&self, of: Entity) -> Totals {
        let (bias, rows) = match of {
            Entity::User => (&self.user_bias, &self.user_factors),
            Entity::Item => (&self.item_bias, &self.item_factors),
        };
        let unobserved = self.unobserved[of as usize].as_ref();
        let Some(unobserved) = unobserved.filter(|rows| rows.which.contains(&true)) else {
            return Totals::of(self.level, rows, bias);
        };
        let (mut bias, mut rows) = (bias.clone(), rows.clone());
        for row in (0..bias.len()).filter(|&row| unobserved.which[row]) {
            rows.row_mut(row).fill(0.0);
            bias[row] = 0.0;
        }
        Totals::of(self.level, &rows, &bias)
    }

    /// The confidence in each observation, and what its score less the item's bias should be.
    pub(super) fn implicit_targets(
        &self,
        rule: &Implicit,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> (Vec<f32>, Vec<f32>) {
        targets(rule, &self.item_bias, items, values, weights)
    }

    /// The same of the users.
    pub(super) fn users_base(&self, rule: &Implicit) -> Arc<Gram> {
        let base = self.users_base.get_or_init(|| {
            let totals = self.observed_totals(Entity::User);
            Arc::new(totals.base(self.level, f64::from(rule.unobserved)))
        });
        Arc::clone(base)
    }

    pub(super) fn solve_implicit_row(
        &self,
        rule: &Implicit,
        fixed: &Fixed<'_>,
        base: &Gram,
        (indices, values, weights): (&[u32], &[f32], Option<&[f32]>),
        (n_others, prior): (usize, Option<PriorMean>),
    ) -> FactorVector {
        let (confidences, targets) = targets(rule, fixed.bias, indices, values, weights);
        let lambda = rule.lambda(values, weights, n_others);
        // Where all are 1 the fit sums without weights: the same bits here.
        let plain = confidences.iter().all(|&c| c == 1.0);
        let prior = prior.map(|(bias, mut row)| {
            row.iter_mut().for_each(|x| *x *= lambda);
            (lambda * bias, row)
        });
        let mut factors = vec![0.0; padded(self.rank())];
        let solution = RowSolver::new(self.rank(), self.level).solve(
            &RowProblem {
                factors: fixed.factors.as_slice(),
                indices,
                targets: &targets,
                weights: (!plain).then_some(&confidences[..]),
                lambda,
                bias: rule.biases.then_some(lambda),
                base: Some(base),
                linear: prior.as_ref().map(|(bias, row)| (&row[..], *bias)),
                residuals: false,
                upcoming: &[],
            },
            &mut factors,
        );
        FactorVector { bias: solution.bias, factors, normal: Affine::IDENTITY }
    }
}
