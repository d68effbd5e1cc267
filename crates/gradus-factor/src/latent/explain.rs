//! Which of a user's ratings carried a score.
//!
//! With the items fixed, a user's bias and factors are `x = A⁻¹ Σ_j w_j y_j v_j`, where `v_j` are
//! the item's factors with a 1 appended for the bias, `y_j` the rating less mean and item bias,
//! and `A = Σ_j w_j v_j v_jᵀ + λI`. So the score of item `i` is the sum
//! `α + β_i + Σ_j w_j y_j v_jᵀ A⁻¹ v_i`, one term for each rating: an exact account, no estimate.
//! Where users hear the items they rated (`z = s Σ_j c_j`, the centre of the penalty), the solution is
//! `x = z + A⁻¹ Σ_j w_j (y_j − v_j·z) v_j`, and since `A − Σ_j w_j v_j v_jᵀ = λI` the voice of `j` adds
//! `λ s c_jᵀ A⁻¹ v_i`. With normalised ratings all this is in normalised units, and each part is
//! brought back to the ratings' own. Where a solver stopped short of that solution, the difference
//! is left in the base.

use super::{FoldIn, LatentFactors, fold_in};
use gradus_core::kernel::solve_semidefinite;
use gradus_core::recommend::{Contribution, Explanation, Target};
use gradus_core::{Error, Result};

impl LatentFactors {
    pub(super) fn explain_item(&self, target: &Target<'_>, item: usize) -> Result<Explanation> {
        let (items, values, weights): (&[u32], &[f32], Option<&[f32]>) = match target {
            Target::User(user) => {
                let row = self.user_row(*user)?;
                let history = self.history.as_ref().ok_or_else(|| {
                    Error::data("the model was fitted with keep_history = false and cannot explain")
                })?;
                let (items, values) = history.ratings.row(row);
                let weights = history.weights.as_ref().map(|w| &w[history.ratings.range(row)]);
                (items, values, weights)
            }
            Target::Profile(profile) => {
                profile.check(self.items.len())?;
                (&profile.items, &profile.values, None)
            }
        };
        let rule = match &self.fold_in {
            FoldIn::Squares(rule) => rule,
            FoldIn::Projection(_) => {
                return self.explain_projection(target, (items, values, weights), item);
            }
        };
        let lambda = f64::from(rule.lambda(items.len(), weights));
        let vector = |item: usize| -> Vec<f64> {
            let factors = self.item_factors(item).iter().map(|&x| f64::from(x));
            factors.chain(rule.biases.then_some(1.0)).collect()
        };
        let d = self.rank() + usize::from(rule.biases);
        let mut system = vec![0.0; d * d];
        for at in 0..d {
            system[at * d + at] = lambda;
        }
        let vectors: Vec<Vec<f64>> = items.iter().map(|&j| vector(j as usize)).collect();
        let weight = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at]));
        for (at, v) in vectors.iter().enumerate() {
            for (row, &x) in system.chunks_exact_mut(d).zip(v) {
                let x = weight(at) * x;
                for (sum, &y) in row.iter_mut().zip(v) {
                    *sum += x * y;
                }
            }
        }
        let mut direction = vector(item);
        solve_semidefinite(d, &mut system, &mut direction);
        let (person, _) = self.person(target)?;
        let (_, free) = self.normalised(items, values, weights);
        // A score of 1 in the units of the fit.
        let unit = f64::from(person.normal.scale) * f64::from(self.item_normal(item).scale);
        let share = lambda * f64::from(fold_in::share(items.len(), weights));
        let voice = |at: usize| -> f64 {
            let Some(voices) = self.voices.as_ref().filter(|_| weight(at) > 0.0) else {
                return 0.0;
            };
            let j = items[at] as usize;
            let voice = voices.factors.row(j)[..self.rank()].iter().chain([&voices.bias[j]]);
            voice.zip(&direction).map(|(&c, d)| f64::from(c) * d).sum()
        };
        let mut contributions: Vec<Contribution> = vectors
            .iter()
            .enumerate()
            .map(|(at, v)| {
                let j = items[at];
                let y = f64::from(free[at]) - self.mean - f64::from(self.item_bias[j as usize]);
                let along: f64 = v.iter().zip(&direction).map(|(a, b)| a * b).sum();
                let part = weight(at) * y * along + share * voice(at);
                let contribution = (unit * part) as f32;
                Contribution { item: j, value: values[at], contribution }
            })
            .collect();
        let total: f64 = contributions.iter().map(|c| f64::from(c.contribution)).sum();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let score = self.person_score(&person, item);
        // What no rating accounts for: mean and item bias, and what a solver left unsolved.
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions })
    }

    /// With orthogonal item factors a rating of `j` adds `r_j Σ_t v_jt v_it / Σ v_t²` to item `i`.
    fn explain_projection(
        &self,
        target: &Target<'_>,
        (items, values, weights): (&[u32], &[f32], Option<&[f32]>),
        item: usize,
    ) -> Result<Explanation> {
        let inverse = self.inverse_lengths();
        let direction: Vec<f64> = self
            .item_factors(item)
            .iter()
            .zip(&inverse)
            .map(|(&x, by)| f64::from(x) * by)
            .collect();
        let rated = items.iter().zip(values).enumerate();
        let mut contributions: Vec<Contribution> = rated
            .map(|(at, (&item, &value))| {
                let weight = weights.map_or(1.0, |weights| weights[at]);
                let factors = self.item_factors(item as usize).iter().zip(&direction);
                let along: f64 = factors.map(|(&x, d)| f64::from(x) * d).sum();
                let contribution = (f64::from(value * weight) * along) as f32;
                Contribution { item, value, contribution }
            })
            .collect();
        let total: f64 = contributions.iter().map(|c| f64::from(c.contribution)).sum();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let (person, _) = self.person(target)?;
        let score = self.person_score(&person, item);
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions })
    }
}
