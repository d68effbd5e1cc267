//! Which of a user's ratings carried a score.
//!
//! With the items fixed, a user's bias and factors are `x = A⁻¹ Σ_j w_j y_j v_j`, where `v_j` are
//! the item's factors with a 1 appended for the bias, `y_j` the rating less mean and item bias,
//! and `A = Σ_j w_j v_j v_jᵀ + λI`. So the score of item `i` is the sum
//! `α + β_i + Σ_j w_j y_j v_jᵀ A⁻¹ v_i`, one term for each rating: an exact account, no estimate.
//! Where a solver stopped short of that solution, the difference is left in the base.
//!
//! For signs of interest `w_j` is the confidence and `y_j` the target less the item bias, `A` has
//! `α₀ Σ v vᵀ` over all items besides, and what `α₀` asks for by way of the item biases is the
//! same for any history but for `A`: it is left in the base, too.

use super::{FoldIn, LatentFactors};
use gradus_core::kernel::solve_semidefinite;
use gradus_core::recommend::{Contribution, Explanation, Target};
use gradus_core::{Error, Result};

/// What someone's ratings come to: the system without them (upper triangle), and the weight and
/// target of each.
struct Account {
    system: Vec<f64>,
    biases: bool,
    weights: Vec<f64>,
    targets: Vec<f64>,
}

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
        let account = self.account(items, values, weights);
        let vector = |item: usize| -> Vec<f64> {
            let factors = self.item_factors(item).iter().map(|&x| f64::from(x));
            factors.chain(account.biases.then_some(1.0)).collect()
        };
        let mut system = account.system;
        let d = self.rank() + usize::from(account.biases);
        let vectors: Vec<Vec<f64>> = items.iter().map(|&j| vector(j as usize)).collect();
        for (at, v) in vectors.iter().enumerate() {
            for (row, &x) in system.chunks_exact_mut(d).zip(v) {
                let x = account.weights[at] * x;
                for (sum, &y) in row.iter_mut().zip(v) {
                    *sum += x * y;
                }
            }
        }
        let mut direction = vector(item);
        solve_semidefinite(d, &mut system, &mut direction);
        let mut contributions: Vec<Contribution> = vectors
            .iter()
            .enumerate()
            .map(|(at, v)| {
                let j = items[at];
                let along: f64 = v.iter().zip(&direction).map(|(a, b)| a * b).sum();
                let contribution = (account.weights[at] * account.targets[at] * along) as f32;
                Contribution { item: j, value: values[at], contribution }
            })
            .collect();
        let total: f64 = contributions.iter().map(|c| f64::from(c.contribution)).sum();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let (person, _) = self.person(target)?;
        let score = self.person_score(&person, item);
        // What no rating accounts for: mean and item bias, and what a solver left unsolved.
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions })
    }

    /// The system of someone's ratings, as far as it does not depend on which they are.
    fn account(&self, items: &[u32], values: &[f32], weights: Option<&[f32]>) -> Account {
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<f64>>();
        match &self.fold_in {
            FoldIn::Squares(rule) => Account {
                system: self.penalty(rule.lambda(items.len(), weights), rule.biases),
                biases: rule.biases,
                weights: weights.map_or(vec![1.0; items.len()], |w| wide(w.to_vec())),
                targets: items
                    .iter()
                    .zip(values)
                    .map(|(&j, &value)| {
                        f64::from(value) - self.mean - f64::from(self.item_bias[j as usize])
                    })
                    .collect(),
            },
            FoldIn::Implicit(rule) => {
                let lambda = rule.lambda(values, weights, self.items.len());
                let mut system = self.penalty(lambda, rule.biases);
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
                let (confidences, targets) = self.implicit_targets(rule, items, values, weights);
                Account {
                    system,
                    biases: rule.biases,
                    weights: wide(confidences),
                    targets: wide(targets),
                }
            }
        }
    }

    /// `λI`, with a row for the bias if there is one.
    fn penalty(&self, lambda: f32, biases: bool) -> Vec<f64> {
        let d = self.rank() + usize::from(biases);
        let mut system = vec![0.0; d * d];
        (0..d).for_each(|at| system[at * d + at] = f64::from(lambda));
        system
    }
}
