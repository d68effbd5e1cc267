//! Folding a user into a model of pairs, and explaining a score there.
//!
//! Their factors `p` minimise `Σ_i mean_j −ln σ(x_i − x_j) + n λ/2 ‖p‖²` over their `n` items `i`
//! and a fixed sample of other items `j`, where `x = β + p·q`: a convex problem. At its solution
//! `p = Σ_i c_i / nλ` with `c_i = mean_j (1 − σ(x_i − x_j)) (q_i − q_j)`: so a score is a sum of one
//! term for each item.

use super::{Affine, FactorVector, LatentFactors};
use gradus_base::random::Stream;
use gradus_kernel::padded;
use serde::{Deserialize, Serialize};

/// Other items that each item of a profile is compared with.
const OTHERS: usize = 256;
/// Steps of accelerated gradient descent at most, and the slope, as a share of what the penalty
/// alone has, at which they end.
const STEPS: usize = 500;
const FLAT: f32 = 1e-3;
/// Without a penalty there would be no solution where the items can be distinguished.
const LEAST_PENALTY: f32 = 1e-4;

/// A model fitted to pairs: what a user has should rank above what the user does not have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    /// Strength λ of the penalty for each pair.
    pub pair_regularization: f32,
}

/// The weight of each item in the gradient, of those in a profile and of the others: `Σ` of `1 − σ` over
/// its pairs, divided by the number of the others.
struct PairWeights {
    items: Vec<f32>,
    others: Vec<f32>,
    /// The weight of each pair, item by item.
    pairs: Vec<f32>,
}

impl LatentFactors {
    /// A fixed sample of the items that are not in the profile, sorted.
    fn others(&self, items: &[u32]) -> Vec<u32> {
        let mut known = items.to_vec();
        known.sort_unstable();
        let free = |item: &u32| known.binary_search(item).is_err();
        let n = self.items.len();
        if n <= 2 * OTHERS {
            return (0..n as u32).filter(free).collect();
        }
        let mut stream = Stream::new(0, "latent.others", 0);
        let mut others: Vec<u32> = (0..2 * OTHERS).map(|_| stream.index(n) as u32).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(free);
        others
    }

    fn pair_weights(&self, factors: &[f32], items: &[u32], others: &[u32]) -> PairWeights {
        let score = |item: &u32| {
            let row = self.item_factors.row(*item as usize);
            self.item_bias[*item as usize] + gradus_kernel::dot(self.level, factors, row)
        };
        let other_scores: Vec<f32> = others.iter().map(score).collect();
        let mut weights = PairWeights {
            items: Vec::with_capacity(items.len()),
            others: vec![0.0; others.len()],
            pairs: Vec::with_capacity(items.len() * others.len()),
        };
        for item in items {
            let own = score(item);
            let mut sum = 0.0;
            for (other, total) in other_scores.iter().zip(&mut weights.others) {
                let weight = 1.0 / (1.0 + (own - other).exp()) / others.len() as f32;
                *total += weight;
                sum += weight;
                weights.pairs.push(weight);
            }
            weights.items.push(sum);
        }
        weights
    }

    fn penalty(rule: &Pairs, items: &[u32]) -> f32 {
        rule.pair_regularization.max(LEAST_PENALTY) * items.len() as f32
    }

    pub(super) fn solve_pairs(&self, rule: &Pairs, items: &[u32]) -> FactorVector {
        let mut factors = vec![0.0; padded(self.rank())];
        let others = self.others(items);
        if others.is_empty() {
            return FactorVector { bias: 0.0, factors, normal: Affine::IDENTITY };
        }
        let penalty = Self::penalty(rule, items);
        let norm = |items: &[u32]| {
            let norms = items.iter().map(|&item| {
                let row = self.item_factors.row(item as usize);
                gradus_kernel::dot(self.level, row, row)
            });
            norms.sum::<f32>() / items.len() as f32
        };
        // A quarter of Σ_i mean_j ‖q_i − q_j‖² bounds the curvature; twice the sum of the mean
        // squared norms bounds that.
        let curvature = 0.5 * items.len() as f32 * (norm(items) + norm(&others)) + penalty;
        let shrink = (penalty / curvature).sqrt();
        let momentum = (1.0 - shrink) / (1.0 + shrink);
        let mut ahead = factors.clone();
        for _ in 0..STEPS {
            let weights = self.pair_weights(&ahead, items, &others);
            let mut gradient: Vec<f32> = ahead.iter().map(|x| penalty * x).collect();
            let signed = items.iter().zip(weights.items.iter().map(|weight| -weight));
            for (&item, weight) in signed.chain(others.iter().zip(weights.others)) {
                let row = self.item_factors.row(item as usize);
                for (sum, x) in gradient.iter_mut().zip(row) {
                    *sum += weight * x;
                }
            }
            let norm = |v: &[f32]| gradus_kernel::dot(self.level, v, v).sqrt();
            if norm(&gradient) <= FLAT * penalty * norm(&ahead) {
                break;
            }
            for ((x, ahead), slope) in factors.iter_mut().zip(&mut ahead).zip(gradient) {
                let next = *ahead - slope / curvature;
                *ahead = next + momentum * (next - *x);
                *x = next;
            }
        }
        FactorVector { bias: 0.0, factors, normal: Affine::IDENTITY }
    }

    /// Returns the contribution of each item of a profile to the score of another.
    pub(super) fn pair_contributions(
        &self,
        rule: &Pairs,
        vector: &FactorVector,
        items: &[u32],
        item: usize,
    ) -> Vec<f64> {
        let others = self.others(items);
        if others.is_empty() {
            return vec![0.0; items.len()];
        }
        let weights = self.pair_weights(&vector.factors, items, &others);
        let penalty = f64::from(Self::penalty(rule, items));
        let target = self.item_factors.row(item);
        let along = |item: &u32| {
            f64::from(gradus_kernel::dot(self.level, self.item_factors.row(*item as usize), target))
        };
        let other_along: Vec<f64> = others.iter().map(along).collect();
        items
            .iter()
            .zip(weights.items.iter().zip(weights.pairs.chunks_exact(others.len())))
            .map(|(own, (sum, pairs))| {
                let against: f64 = pairs
                    .iter()
                    .zip(&other_along)
                    .map(|(weight, along)| f64::from(*weight) * along)
                    .sum();
                (f64::from(*sum) * along(own) - against) / penalty
            })
            .collect()
    }
}
