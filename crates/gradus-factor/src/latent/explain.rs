//! Which of a user's ratings carried a score.
//!
//! With the items fixed, a user's bias and factors are `x = A⁻¹ Σ_j w_j y_j v_j`, where `v_j` are
//! the item's factors with a 1 appended for the bias, `y_j` the rating less mean and item bias,
//! and `A = Σ_j w_j v_j v_jᵀ + λI`. So the score of item `i` is the sum
//! `α + β_i + Σ_j w_j y_j v_jᵀ A⁻¹ v_i`, one term for each rating: an exact account, no estimate.
//! Where a solver stopped short of that solution, the difference is left in the base.

use super::{FoldIn, LatentFactors, Person, Squares};
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
        let (person, _) = self.person(target)?;
        let parts = match &self.fold_in {
            FoldIn::Squares(rule) => {
                self.square_contributions(rule, &person, (items, values, weights), item)
            }
            FoldIn::Pairs(rule) => self.pair_contributions(rule, &person, items, item),
        };
        let part = |((&item, &value), part): ((&u32, &f32), &f64)| Contribution {
            item,
            value,
            contribution: *part as f32,
        };
        let mut contributions: Vec<Contribution> =
            items.iter().zip(values).zip(&parts).map(part).collect();
        let total: f64 = contributions.iter().map(|c| f64::from(c.contribution)).sum();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let score = self.person_score(&person, item);
        // What no rating accounts for: mean and item bias, and what a solver left unsolved.
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions })
    }

    /// What each rating adds to the score of an item.
    fn square_contributions(
        &self,
        rule: &Squares,
        person: &Person,
        (items, values, weights): (&[u32], &[f32], Option<&[f32]>),
        item: usize,
    ) -> Vec<f64> {
        let lambda = f64::from(rule.lambda(items.len(), weights));
        // Under a link the account is of the score, to first order.
        let (targets, weights) = self.working_ratings(person, items, values, weights);
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
        for (v, &weight) in vectors.iter().zip(&weights) {
            for (row, &x) in system.chunks_exact_mut(d).zip(v) {
                let x = f64::from(weight) * x;
                for (sum, &y) in row.iter_mut().zip(v) {
                    *sum += x * y;
                }
            }
        }
        let mut direction = vector(item);
        solve_semidefinite(d, &mut system, &mut direction);
        vectors
            .iter()
            .enumerate()
            .map(|(at, v)| {
                let bias = f64::from(self.item_bias[items[at] as usize]);
                let y = f64::from(targets[at]) - self.mean - bias;
                let along: f64 = v.iter().zip(&direction).map(|(a, b)| a * b).sum();
                f64::from(weights[at]) * y * along
            })
            .collect()
    }
}
