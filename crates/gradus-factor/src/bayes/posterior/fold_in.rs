//! A user described by ratings: folding in, and which ratings a score comes from.
//!
//! Given the items of one draw, a user with ratings `y_j` has the Gaussian posterior of mean
//! `x = m + A⁻¹ τ Σ_j w_j (y_j − v_j·m) v_j` with `A = τ Σ_j w_j v_j v_jᵀ + Λ`, where `v_j` are the
//! item's factors with a 1 for the bias, and `m` is the mean before any rating is looked at: that of
//! all users, and what the list of rated items adds (without ratings: that of the typical user). A user folded in has that mean in every draw.
//! The score of item `i` is then `α + b_i + v_i·m`, its base, and for each rating the part
//! `τ w_j (y_j − v_j·m) v_jᵀ A⁻¹ v_i`; both are averaged over the draws. A user of the model has the
//! same means, so the account is exact for them too.

use super::Posterior;
use super::features::Described;
use crate::bayes::implicit;
use gradus_base::{Error, Result, parallel};
use gradus_core::recommend::{Contribution, Explanation, Profile, Recipient};
use gradus_data::{Entity, FeatureRow};
use gradus_kernel::{padded, solve_semidefinite};

/// The ratings of a user, in ascending order of the items.
#[derive(Clone, Copy)]
struct Rated<'a> {
    items: &'a [u32],
    values: &'a [f32],
    weights: Option<&'a [f32]>,
    /// The features of the user, if they are known.
    features: Option<Described<'a>>,
}

impl<'a> Rated<'a> {
    fn of(profile: &'a Profile, features: Option<&'a FeatureRow>) -> Self {
        let features = features.map(|row| (&row.indices[..], &row.values[..]));
        Self { items: &profile.items, values: &profile.values, weights: None, features }
    }
}

/// The least squares problem that the ratings of a user make, given one draw.
struct Conditional {
    /// `m`, the bias last.
    mean: Vec<f64>,
    /// `v_j` of each rating.
    vectors: Vec<Vec<f64>>,
    /// `τ w_j (y_j − v_j·m)` of each rating.
    residuals: Vec<f64>,
    /// `A`.
    system: Vec<f64>,
}

impl Posterior {
    /// A new user from a handful of ratings, sorted by item: for each draw of the items the mean of the
    /// user's factors and bias given it, side by side as dot products take them.
    fn fold_in(&self, profile: &Profile, features: Option<&FeatureRow>) -> Vec<f32> {
        let rated = Rated::of(profile, features);
        let (k, d) = (self.rank, self.d());
        let mut vector = vec![0.0; padded(self.wide())];
        let samples = vector.chunks_mut(k + 2).take(self.samples()).enumerate();
        parallel::each(samples, |(sample, to)| {
            let Conditional { mean, vectors, residuals, mut system } =
                self.condition(sample, &rated);
            let mut x = vec![0.0; d];
            for (residual, v) in residuals.iter().zip(&vectors) {
                x.iter_mut().zip(v).for_each(|(x, v)| *x += residual * v);
            }
            solve_semidefinite(d, &mut system, &mut x);
            for ((to, x), mean) in to.iter_mut().zip(&x).zip(&mean) {
                *to = (x + mean) as f32;
            }
            to[k + 1] = 1.0;
        });
        vector
    }

    /// The vector of the user that a target stands for, and the items that the user rated, sorted.
    pub(super) fn query_vector(
        &self,
        target: &Recipient<'_>,
    ) -> Result<(Vec<f32>, Option<Vec<u32>>)> {
        match target {
            Recipient::User(user) => {
                let row = self.user_row(*user)?;
                let seen = self.history.as_ref().map(|h| h.ratings.row(row).0.to_vec());
                Ok((self.user_vector(Some(row)), seen))
            }
            Recipient::Profile(profile) => {
                let profile = profile.sorted(self.items.len())?;
                Ok((self.fold_in(&profile, None), Some(profile.items)))
            }
            Recipient::Described { features, rated } => {
                self.check_features(features)?;
                let profile = match rated {
                    Some(profile) => profile.sorted(self.items.len())?,
                    None => Profile::default(),
                };
                Ok((self.fold_in(&profile, Some(features)), Some(profile.items)))
            }
        }
    }

    pub(super) fn explain_item(&self, target: &Recipient<'_>, item: usize) -> Result<Explanation> {
        let sorted;
        let rated = match target {
            Recipient::User(user) => {
                let row = self.user_row(*user)?;
                let history = self.history.as_ref().ok_or_else(|| {
                    Error::data("the model was fitted with keep_history = false and cannot explain")
                })?;
                let (items, values) = history.ratings.row(row);
                let weights = history.weights.as_ref().map(|w| &w[history.ratings.range(row)]);
                Rated { items, values, weights, features: self.features_of(Entity::User, row) }
            }
            Recipient::Profile(profile) => {
                sorted = profile.sorted(self.items.len())?;
                Rated::of(&sorted, None)
            }
            Recipient::Described { features, rated } => {
                self.check_features(features)?;
                sorted = match rated {
                    Some(profile) => profile.sorted(self.items.len())?,
                    None => Profile::default(),
                };
                Rated::of(&sorted, Some(features))
            }
        };
        // The account of the ratings is that of a user without features, to which the features add.
        let plain = Rated { features: None, ..rated };
        let (per_draw, directions): (Vec<Vec<f64>>, Vec<Vec<f64>>) =
            parallel::map(0..self.samples(), |sample| {
                let Conditional { vectors, residuals, mut system, .. } =
                    self.condition(sample, &plain);
                let mut direction = self.item_vector(sample, item).0;
                solve_semidefinite(self.d(), &mut system, &mut direction);
                let along = |v: &[f64]| v.iter().zip(&direction).map(|(a, b)| a * b).sum::<f64>();
                let parts = residuals.iter().zip(&vectors);
                let parts: Vec<f64> = parts.map(|(residual, v)| residual * along(v)).collect();
                // What a prior mean adds: `Λ A⁻¹ v_i`.
                let precision = &self.user_priors[sample * self.d() * (self.d() + 1)..][self.d()..];
                let of_prior = |row: &[f32]| -> f64 {
                    row.iter().zip(&direction).map(|(&a, b)| f64::from(a) * b).sum()
                };
                let rows = precision.chunks_exact(self.d()).take(self.d());
                let prior: Vec<f64> = rows.map(of_prior).collect();
                (parts, prior)
            })
            .into_iter()
            .unzip();
        let user_features = rated.features.map_or_else(Vec::new, |features| {
            self.feature_contributions(Entity::User, features, &directions)
        });
        let share = self.scale / self.samples() as f64;
        let mut contributions: Vec<Contribution> = (0..rated.items.len())
            .map(|at| Contribution {
                item: rated.items[at],
                value: rated.values[at],
                contribution: (share * per_draw.iter().map(|parts| parts[at]).sum::<f64>()) as f32,
            })
            .collect();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let (vector, _) = self.query_vector(target)?;
        let mut wide = vec![0.0; padded(self.wide())];
        self.widen_item(Some(item), &mut wide);
        let score = self.rating(gradus_kernel::dot(self.level, &vector, &wide));
        // By way of the item's own prior mean, for this user as they are in each draw.
        let (k, step) = (self.rank, self.rank + 2);
        let item_features =
            self.features_of(Entity::Item, item).map_or_else(Vec::new, |features| {
                let users = vector.chunks_exact(step).take(self.samples());
                let users = users.map(|user| {
                    let factors = user[..k].iter().map(|&x| f64::from(x));
                    factors.chain([1.0]).collect()
                });
                self.feature_contributions(
                    Entity::Item,
                    features,
                    &users.collect::<Vec<Vec<f64>>>(),
                )
            });
        let of_ratings = contributions.iter().map(|c| f64::from(c.contribution));
        let of_features = user_features.iter().map(|c| f64::from(c.contribution));
        let total: f64 = of_ratings.chain(of_features).sum();
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions, user_features, item_features })
    }

    /// An item of one draw: its factors with a 1 for the user's bias, and its own bias.
    fn item_vector(&self, sample: usize, item: usize) -> (Vec<f64>, f64) {
        let (k, d) = (self.rank, self.d());
        let row = &self.item_rows[(item * self.samples() + sample) * d..][..d];
        let factors = row[..k].iter().map(|x| f64::from(x.get()));
        (factors.chain([1.0]).collect(), f64::from(row[k].get()))
    }

    fn condition(&self, sample: usize, rated: &Rated<'_>) -> Conditional {
        let (d, s) = (self.d(), self.samples());
        let prior = &self.user_priors[sample * d * (d + 1)..][..d * (d + 1)];
        // A user without ratings is not at the mean of the prior: see `typical.rs`.
        let base = match rated.items.is_empty() {
            true => self.typical(Entity::User, sample, rated.features.is_some()),
            false => &prior[..d],
        };
        let mut mean: Vec<f64> = base.iter().map(|&x| f64::from(x)).collect();
        if let Some(lists) = &self.list_rows {
            let scale = f64::from(implicit::scale(rated.items.len()));
            for &item in rated.items {
                let row = &lists[(item as usize * s + sample) * d..][..d];
                mean.iter_mut().zip(row).for_each(|(m, y)| *m += scale * f64::from(y.get()));
            }
        }
        if let (Some(side), Some(features)) = (&self.side[Entity::User as usize], rated.features) {
            let gain = side.gain(sample, features, d);
            mean.iter_mut().zip(gain).for_each(|(m, x)| *m += x);
        }
        let tau = self.noise[sample];
        let mut system: Vec<f64> = prior[d..].iter().map(|&x| f64::from(x)).collect();
        let (mut vectors, mut residuals) = (Vec::new(), Vec::new());
        for (at, (&item, &value)) in rated.items.iter().zip(rated.values).enumerate() {
            let (v, bias) = self.item_vector(sample, item as usize);
            let weight = tau * rated.weights.map_or(1.0, |weights| f64::from(weights[at]));
            for (row, &x) in system.chunks_exact_mut(d).zip(&v) {
                row.iter_mut().zip(&v).for_each(|(sum, &y)| *sum += weight * x * y);
            }
            let expected: f64 = v.iter().zip(&mean).map(|(a, b)| a * b).sum();
            let y = (f64::from(value) - self.mean) / self.scale - bias;
            residuals.push(weight * (y - expected));
            vectors.push(v);
        }
        Conditional { mean, vectors, residuals, system }
    }
}
