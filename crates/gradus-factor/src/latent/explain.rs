//! Explanations of scores by the ratings of the user.
//!
//! With the items fixed, a user's bias and factors are `x = A⁻¹ Σ_j w_j y_j v_j`, where `v_j` are
//! the item's factors with a 1 appended for the bias, `y_j` the rating less mean and item bias,
//! and `A = Σ_j w_j v_j v_jᵀ + λI`. So the score of item `i` is the sum
//! `α + β_i + Σ_j w_j y_j v_jᵀ A⁻¹ v_i`, one term for each rating: an exact account, no estimate.
//! Where items have implicit factors `c_j` (SVD++), the centre of the penalty is `z = s Σ_j c_j`, and the
//! solution is `x = z + A⁻¹ Σ_j w_j (y_j − v_j·z) v_j`; since `A − Σ_j w_j v_j v_jᵀ = λI`, the implicit
//! factors of `j` add `λ s c_jᵀ A⁻¹ v_i`. With normalised ratings all this is in normalised units, and each part is
//! brought back to the ratings' own. Where a solver stopped short of that solution, the difference
//! is left in the base.
//!
//! Under the absolute and the Huber loss a user is the solution of least squares whose weights follow
//! from its errors; with these weights the account is the same.
//!
//! For signs of interest `w_j` is the confidence and `y_j` the target less the item bias, `A` has
//! `α₀ Σ v vᵀ` over all items besides, and what `α₀` asks for by way of the item biases is the
//! same for any history but for `A`: it is left in the base, too.

use super::{FactorVector, FoldIn, Implicit, LatentFactors, Squares, fold_in};
use gradus_base::{Error, Result};
use gradus_core::recommend::{Contribution, Explanation, Profile, Recipient};
use gradus_data::Entity;
use gradus_kernel::solve_semidefinite;

/// The ratings of a user: items, values, weights.
pub(super) type Rated<'a> = (&'a [u32], &'a [f32], Option<&'a [f32]>);

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

impl LatentFactors {
    pub(super) fn explain_item(&self, target: &Recipient<'_>, item: usize) -> Result<Explanation> {
        let sorted;
        let mut features = None;
        let rated: Rated<'_> = match target {
            Recipient::User(user) => {
                let row = self.user_row(*user)?;
                let history = self.history.as_ref().ok_or_else(|| {
                    Error::data("the model was fitted with keep_history = false and cannot explain")
                })?;
                let (items, values) = history.ratings.row(row);
                let weights = history.weights.as_ref().map(|w| &w[history.ratings.range(row)]);
                features = self.features_of_user(row);
                (items, values, weights)
            }
            Recipient::Profile(profile) => {
                sorted = profile.sorted(self.items.len())?;
                (&sorted.items, &sorted.values, None)
            }
            Recipient::Described { features: row, rated } => {
                let none = Profile::default();
                features = Some((&row.indices[..], &row.values[..]));
                sorted = match rated {
                    Some(profile) => profile.sorted(self.items.len())?,
                    None => none,
                };
                (&sorted.items, &sorted.values, None)
            }
        };
        let (vector, _) = self.query_vector(target)?;
        let parts = match &self.fold_in {
            FoldIn::Squares(rule) => {
                let (_, free) = self.normalised(rated.0, rated.1, rated.2);
                // Under a link the account is of the score, to first order.
                let (targets, weights) = self.working_ratings(&vector, rated.0, &free, rated.2);
                self.square_contributions(rule, &vector, rated, (&targets, &weights), item)
            }
            FoldIn::NonNegative(rule) => {
                let weights: Vec<f32> = rated.2.map_or(vec![1.0; rated.0.len()], <[f32]>::to_vec);
                let rule = &rule.non_negative;
                self.square_contributions(rule, &vector, rated, (rated.1, &weights), item)
            }
            FoldIn::Robust(rule) => {
                let weights = self.robust_weights(rule, &vector, rated.0, rated.1, rated.2);
                let squares = rule.squares();
                self.square_contributions(&squares, &vector, rated, (rated.1, &weights), item)
            }
            FoldIn::Implicit(rule) => self.implicit_contributions(rule, rated, item),
            FoldIn::Pairs(rule) => self.pair_contributions(rule, &vector, rated.0, item),
            FoldIn::Projection(_) => self.projected_contributions(rated, item),
        };
        let part = |((&item, &value), part): ((&u32, &f32), &f64)| Contribution {
            item,
            value,
            contribution: *part as f32,
        };
        let mut contributions: Vec<Contribution> =
            rated.0.iter().zip(rated.1).zip(&parts).map(part).collect();
        let unit = f64::from(vector.normal.scale) * f64::from(self.item_normal(item).scale);
        let user_features = features
            .map_or_else(Vec::new, |features| self.user_features(features, rated, item, unit));
        let item_features = self.item_features_for(&vector, item, unit);
        let of_features = user_features.iter().map(|c| f64::from(c.contribution));
        let of_ratings = contributions.iter().map(|c| f64::from(c.contribution));
        let total: f64 = of_ratings.chain(of_features).sum();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let score = self.score_of_item(&vector, item);
        // What no rating accounts for: mean and item bias, and what a solver left unsolved.
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions, user_features, item_features })
    }

    /// Returns the contribution of each rating to the score of an item, where users are least squares with these
    /// targets and weights.
    fn square_contributions(
        &self,
        rule: &Squares,
        vector: &FactorVector,
        (items, _, given): Rated<'_>,
        (targets, weights): (&[f32], &[f32]),
        item: usize,
    ) -> Vec<f64> {
        let (lambda, of_bias) = rule.of_users().of(items.len(), given);
        let (lambda, of_bias) = (f64::from(lambda), of_bias.map(f64::from));
        let (weights, mut vectors) = (wide(weights), self.vectors(items, rule.biases));
        if let FoldIn::NonNegative(_) = self.fold_in {
            // Factors that are held at 0 have no part in the account; the others are least squares.
            let at_zero = vector.factors[..self.rank()].iter().map(|x| *x <= 0.0);
            let at_zero: Vec<usize> =
                at_zero.enumerate().filter(|(_, at_zero)| *at_zero).map(|(t, _)| t).collect();
            vectors.iter_mut().for_each(|v| at_zero.iter().for_each(|&t| v[t] = 0.0));
        }
        let system = self.ridge(lambda, of_bias);
        let direction = self.direction(system, &vectors, &weights, item, rule.biases);
        // A score of 1 in the units of the fit.
        let unit = f64::from(vector.normal.scale) * f64::from(self.item_normal(item).scale);
        let share = f64::from(fold_in::implicit_scale(items.len(), given));
        let implicit = |at: usize| -> f64 {
            let Some(all) = self.implicit_factors.as_ref().filter(|_| weights[at] > 0.0) else {
                return 0.0;
            };
            let j = items[at] as usize;
            let factors = all.factors.row(j)[..self.rank()].iter().zip(&direction);
            let along: f64 = factors.map(|(&c, d)| f64::from(c) * d).sum();
            let bias =
                of_bias.map_or(0.0, |of| of * f64::from(all.bias[j]) * direction[self.rank()]);
            lambda * along + bias
        };
        vectors
            .iter()
            .enumerate()
            .map(|(at, v)| {
                let bias = f64::from(self.item_bias[items[at] as usize]);
                let y = f64::from(targets[at]) - self.mean - bias;
                let along: f64 = v.iter().zip(&direction).map(|(a, b)| a * b).sum();
                unit * (weights[at] * y * along + share * implicit(at))
            })
            .collect()
    }

    /// Returns the contribution of each sign of interest to the score of an item.
    fn implicit_contributions(
        &self,
        rule: &Implicit,
        (items, values, given): Rated<'_>,
        item: usize,
    ) -> Vec<f64> {
        let system = self.implicit_system(rule, (items, values, given));
        let (confidences, targets) = self.implicit_targets(rule, items, values, given);
        let (weights, vectors) = (wide(&confidences), self.vectors(items, rule.biases));
        let direction = self.direction(system, &vectors, &weights, item, rule.biases);
        let parts = vectors.iter().zip(&weights).zip(&targets);
        parts
            .map(|((v, weight), &y)| {
                let along: f64 = v.iter().zip(&direction).map(|(a, b)| a * b).sum();
                weight * f64::from(y) * along
            })
            .collect()
    }

    /// The penalty of a user and `α₀ Σ v vᵀ` over all items.
    fn implicit_system(&self, rule: &Implicit, (_, values, given): Rated<'_>) -> Vec<f64> {
        let lambda = f64::from(rule.lambda(values, given, self.n_observed(Entity::Item)));
        let mut system = self.ridge(lambda, rule.biases.then_some(lambda));
        let base = self.items_base(rule);
        let (k, stride) = (self.rank(), self.item_factors.stride());
        let d = k + usize::from(rule.biases);
        for i in 0..k {
            for j in i..k {
                system[i * d + j] += f64::from(base.matrix()[i * stride + j]);
            }
            if rule.biases {
                system[i * d + k] += f64::from(base.vectors().1[i]);
            }
        }
        if rule.biases {
            system[k * d + k] += base.sums().0;
        }
        system
    }

    /// `λ A⁻¹ v_i`, or `v_i` for a user of whom nothing was observed; the last entry is that of the bias.
    pub(super) fn implicit_prior_direction(
        &self,
        rule: &Implicit,
        rated: Rated<'_>,
        item: usize,
    ) -> Vec<f64> {
        let (items, values, given) = rated;
        let (confidences, _) = self.implicit_targets(rule, items, values, given);
        let mut direction = self.vectors(&[item as u32], rule.biases).pop().unwrap_or_default();
        if confidences.iter().any(|&c| c > 0.0) {
            let system = self.implicit_system(rule, rated);
            let (weights, vectors) = (wide(&confidences), self.vectors(items, rule.biases));
            let lambda = f64::from(rule.lambda(values, given, self.n_observed(Entity::Item)));
            direction = self.direction(system, &vectors, &weights, item, rule.biases);
            direction.iter_mut().for_each(|x| *x *= lambda);
        }
        direction.resize(self.rank() + 1, 0.0);
        direction
    }

    /// The factors of items, each with a 1 for the bias if there is one.
    fn vectors(&self, items: &[u32], biases: bool) -> Vec<Vec<f64>> {
        let vector = |&item: &u32| -> Vec<f64> {
            let factors = self.item_factors(item as usize).iter().map(|&x| f64::from(x));
            factors.chain(biases.then_some(1.0)).collect()
        };
        items.iter().map(vector).collect()
    }

    /// `λI`, with a row for the bias if there is one.
    fn ridge(&self, lambda: f64, of_bias: Option<f64>) -> Vec<f64> {
        let diagonal = (0..self.rank()).map(|_| lambda).chain(of_bias);
        let d = self.rank() + usize::from(of_bias.is_some());
        let mut system = vec![0.0; d * d];
        diagonal.enumerate().for_each(|(at, x)| system[at * d + at] = x);
        system
    }

    /// `A⁻¹ v_i`, where `A` is the system with the items that a user rated added to it.
    fn direction(
        &self,
        mut system: Vec<f64>,
        vectors: &[Vec<f64>],
        weights: &[f64],
        item: usize,
        biases: bool,
    ) -> Vec<f64> {
        let d = self.rank() + usize::from(biases);
        for (v, &weight) in vectors.iter().zip(weights) {
            for (row, &x) in system.chunks_exact_mut(d).zip(v) {
                let x = weight * x;
                for (sum, &y) in row.iter_mut().zip(v) {
                    *sum += x * y;
                }
            }
        }
        let mut direction = self.vectors(&[item as u32], biases).pop().unwrap_or_default();
        solve_semidefinite(d, &mut system, &mut direction);
        direction
    }

    /// Returns contributions for orthogonal item factors, where a rating of `j` adds `r_j Σ_t v_jt v_it / Σ v_t²` to
    /// item `i`.
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
