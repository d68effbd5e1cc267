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

use super::{FoldIn, LatentFactors, Person, Squares, fold_in};
use gradus_core::kernel::solve_semidefinite;
use gradus_core::recommend::{Contribution, Explanation, Target};
use gradus_core::{Error, Result};

/// What someone rated: items, values, weights.
type Rated<'a> = (&'a [u32], &'a [f32], Option<&'a [f32]>);

impl LatentFactors {
    pub(super) fn explain_item(&self, target: &Target<'_>, item: usize) -> Result<Explanation> {
        let rated: Rated<'_> = match target {
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
            FoldIn::Squares(rule) => self.square_contributions(rule, &person, rated, item),
            FoldIn::Pairs(rule) => self.pair_contributions(rule, &person, rated.0, item),
            FoldIn::Projection(_) => self.projected_contributions(rated, item),
        };
        let part = |((&item, &value), part): ((&u32, &f32), &f64)| Contribution {
            item,
            value,
            contribution: *part as f32,
        };
        let mut contributions: Vec<Contribution> =
            rated.0.iter().zip(rated.1).zip(&parts).map(part).collect();
        let total: f64 = contributions.iter().map(|c| f64::from(c.contribution)).sum();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let score = self.person_score(&person, item);
        // What no rating accounts for: mean and item bias, and what a solver left unsolved.
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions })
    }

    /// What each rating adds to the score of an item, where users are least squares.
    fn square_contributions(
        &self,
        rule: &Squares,
        person: &Person,
        (items, values, given): Rated<'_>,
        item: usize,
    ) -> Vec<f64> {
        let lambda = f64::from(rule.lambda(items.len(), given));
        let (_, free) = self.normalised(items, values, given);
        // Under a link the account is of the score, to first order.
        let (targets, weights) = self.working_ratings(person, items, &free, given);
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
        // A score of 1 in the units of the fit.
        let unit = f64::from(person.normal.scale) * f64::from(self.item_normal(item).scale);
        let share = lambda * f64::from(fold_in::share(items.len(), given));
        let voice = |at: usize| -> f64 {
            let Some(voices) = self.voices.as_ref().filter(|_| weights[at] > 0.0) else {
                return 0.0;
            };
            let j = items[at] as usize;
            let voice = voices.factors.row(j)[..self.rank()].iter().chain([&voices.bias[j]]);
            voice.zip(&direction).map(|(&c, d)| f64::from(c) * d).sum()
        };
        vectors
            .iter()
            .enumerate()
            .map(|(at, v)| {
                let bias = f64::from(self.item_bias[items[at] as usize]);
                let y = f64::from(targets[at]) - self.mean - bias;
                let along: f64 = v.iter().zip(&direction).map(|(a, b)| a * b).sum();
                unit * (f64::from(weights[at]) * y * along + share * voice(at))
            })
            .collect()
    }

    /// With orthogonal item factors a rating of `j` adds `r_j Σ_t v_jt v_it / Σ v_t²` to item `i`.
    fn projected_contributions(
        &self,
        (items, values, weights): Rated<'_>,
        item: usize,
    ) -> Vec<f64> {
        let lengths = self.inverse_lengths();
        let factors = self.item_factors(item).iter().zip(&lengths);
        let direction: Vec<f64> = factors.map(|(&x, by)| f64::from(x) * by).collect();
        let rated = items.iter().zip(values).enumerate();
        rated
            .map(|(at, (&item, &value))| {
                let weight = weights.map_or(1.0, |weights| weights[at]);
                let factors = self.item_factors(item as usize).iter().zip(&direction);
                let along: f64 = factors.map(|(&x, d)| f64::from(x) * d).sum();
                f64::from(value * weight) * along
            })
            .collect()
    }
}
