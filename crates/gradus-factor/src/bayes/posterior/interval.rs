//! How certain a prediction is: standard deviations and intervals.

use super::{PAIRS, Posterior, known};
use crate::bayes::dense::Matrix;
use crate::bayes::samples::SPARSE;
use gradus_base::random::normal_quantile;
use gradus_base::{Error, Result, parallel};
use gradus_core::recommend::PredictionInterval;
use gradus_kernel::padded;

/// Mean and standard deviations of the posterior of a rating, before clipping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean over the draws.
    pub mean: f32,
    /// Standard deviation of the expected rating.
    pub deviation_of_mean: f32,
    /// Standard deviation of a rating that is given: of the expected rating, and of the noise.
    pub deviation: f32,
}

/// Covariances of the users' and the items' prior in each draw, for users and items that training never
/// saw.
type Covariances = Vec<(Matrix, Matrix)>;

impl Posterior {
    /// Returns the posterior spread of each pair. `None` stands for a user or item the model does not know, whose
    /// spread is that of the prior.
    ///
    /// # Shapes
    /// One spread for each pair.
    pub fn spread(&self, pairs: &[(Option<u32>, Option<u32>)]) -> Vec<Spread> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|&(user, item)| (known(user, &self.users), known(item, &self.items)))
            .collect();
        let unobserved = |item: &Option<usize>| {
            item.is_none_or(|item| self.unobserved_items.get(item).copied().unwrap_or(false))
        };
        let strange = pairs.iter().any(|(user, item)| user.is_none() || unobserved(item));
        let covariances = if strange { self.covariances() } else { Vec::new() };
        let noise: f64 =
            self.noise.iter().map(|tau| 1.0 / tau).sum::<f64>() / self.samples() as f64;
        let wide = || vec![0.0; padded(self.wide())];
        let spread =
            |user: &mut [f32], item: &mut [f32], (u, i): (Option<usize>, Option<usize>)| {
                self.widen_user(u, user);
                self.widen_item(i, item);
                let (mut mean, mut variance) = self.moments(user, item);
                if u.is_none() && i.is_none() {
                    // As in `of_unknown_pair`.
                    mean = 0.0;
                }
                variance += u.map_or(0.0, |u| self.within_user(u, item));
                // An item without ratings is at its mean; it has the spread of the prior.
                let i = i.filter(|&i| !self.unobserved_items.get(i).copied().unwrap_or(false));
                if u.is_none() || i.is_none() {
                    variance += self.newcomer(&covariances, (user, u), (item, i));
                }
                let deviation = |variance: f64| (self.scale * variance.sqrt()) as f32;
                Spread {
                    mean: self.rating(mean),
                    deviation_of_mean: deviation(variance),
                    deviation: deviation(variance + noise),
                }
            };
        let spreads = parallel::map(pairs.chunks(PAIRS), |pairs| {
            let (mut user, mut item) = (wide(), wide());
            pairs.iter().map(|&pair| spread(&mut user, &mut item, pair)).collect::<Vec<_>>()
        });
        spreads.concat()
    }

    /// The interval that holds the rating of each pair with probability `level`, taking the sum of
    /// uncertainty and noise for normal.
    pub(super) fn intervals(
        &self,
        pairs: &[(Option<u32>, Option<u32>)],
        level: f64,
    ) -> Result<Vec<PredictionInterval>> {
        let inside = level > 0.0 && level < 1.0;
        if !inside {
            return Err(Error::parameter("level", level, "must be greater than 0 and less than 1"));
        }
        let reach = normal_quantile(0.5 + level / 2.0) as f32;
        let ends = |spread: Spread| PredictionInterval {
            low: self.clipped(spread.mean - reach * spread.deviation),
            high: self.clipped(spread.mean + reach * spread.deviation),
        };
        Ok(self.spread(pairs).into_iter().map(ends).collect())
    }

    /// The sum of the products over all draws, as [`gradus_kernel::dot`] gives it, and the variance of the
    /// draws.
    fn moments(&self, user: &[f32], item: &[f32]) -> (f32, f64) {
        let (step, s) = (self.rank + 2, self.samples());
        let sum = gradus_kernel::dot(self.level, user, item);
        let mean = f64::from(sum) / s as f64;
        let draws = user.chunks_exact(step).zip(item.chunks_exact(step)).take(s);
        let squares: f64 = draws
            .map(|(user, item)| {
                let off = f64::from(gradus_kernel::dot(self.level, user, item)) - mean;
                off * off
            })
            .sum();
        (sum, if s > 1 { squares / (s - 1) as f64 } else { 0.0 })
    }

    /// The variance of a user's score about its mean given the items: the mean square over the draws
    /// whose users were kept.
    fn within_user(&self, user: usize, item: &[f32]) -> f64 {
        let (k, d, step) = (self.rank, self.d(), self.rank + 2);
        let count = self.samples().div_ceil(SPARSE);
        let drawn = self.user_deviations[user * count * d..][..count * d].chunks_exact(d);
        let squares: f64 = drawn
            .zip(item.chunks_exact(step).step_by(SPARSE))
            .map(|(off, item)| {
                let along: f32 = off[..k].iter().zip(item).map(|(x, v)| x.get() * v).sum();
                f64::from(along + off[k].get()).powi(2)
            })
            .sum();
        squares / count as f64
    }

    fn covariances(&self) -> Covariances {
        let d = self.d();
        let inverse = |prior: &[f32]| {
            let values = prior[d..].iter().map(|&x| f64::from(x)).collect();
            let precision = Matrix { n: d, values };
            // A broken file may hold anything; a precision that is none says nothing.
            precision.cholesky().map_or_else(
                || Matrix::zeros(d),
                |l| {
                    let l = l.inverse_lower();
                    l.transposed().times(&l)
                },
            )
        };
        let of = |priors: &[f32]| parallel::map(priors.chunks(d * (d + 1)), inverse);
        of(&self.user_priors).into_iter().zip(of(&self.item_priors)).collect()
    }

    /// The variance that not knowing a user or an item adds, mean over the draws.
    ///
    /// With independent `p ~ (m, Σ_u)` and `q ~ (n, Σ_i)` the variance of `p·q` is
    /// `nᵀΣ_u n + mᵀΣ_i m + tr(Σ_u Σ_i)`.
    fn newcomer(
        &self,
        covariances: &Covariances,
        (user, known_user): (&[f32], Option<usize>),
        (item, known_item): (&[f32], Option<usize>),
    ) -> f64 {
        let (k, step) = (self.rank, self.rank + 2);
        let along = |covariance: &Matrix, v: &[f32]| -> f64 {
            // The factors, and a 1 in the place of the bias.
            let v: Vec<f64> = v[..k].iter().map(|&x| f64::from(x)).chain([1.0]).collect();
            covariance.apply(&v).iter().zip(&v).map(|(a, b)| a * b).sum()
        };
        // What is uncertain of both sides at once: tr(Σ_u Σ_i) over the factors. A known item is a
        // draw itself in the sum below, which has that part already; a known user is a mean.
        let both = match (known_user, known_item) {
            (Some(user), None) => self.within_both(user, covariances),
            _ => 0.0,
        };
        let draws = user.chunks_exact(step).zip(item.chunks_exact(step)).zip(covariances);
        let total: f64 = draws
            .map(|((user, item), (of_users, of_items))| {
                let mut sum = 0.0;
                if known_user.is_none() {
                    sum += along(of_users, item);
                }
                if known_item.is_none() {
                    sum += along(of_items, user);
                }
                if known_user.is_none() && known_item.is_none() {
                    let both = |i: usize| -> f64 {
                        let pairs = of_users.row(i)[..k].iter().zip(&of_items.row(i)[..k]);
                        pairs.map(|(a, b)| a * b).sum()
                    };
                    sum += (0..k).map(both).sum::<f64>();
                }
                sum
            })
            .sum();
        total / self.samples() as f64 + both
    }

    /// `tr(Σ_u Σ_i)` of a known user and an unknown item: the mean over the draws whose users were
    /// kept of `oᵀ Σ_i o`, where `o` is what the user's factors as drawn differ from their mean.
    fn within_both(&self, user: usize, covariances: &Covariances) -> f64 {
        let (k, d) = (self.rank, self.d());
        let count = self.samples().div_ceil(SPARSE);
        let drawn = self.user_deviations[user * count * d..][..count * d].chunks_exact(d);
        let squares = drawn.zip(covariances.iter().step_by(SPARSE)).map(|(off, (_, of_items))| {
            let off: Vec<f64> = off[..k].iter().map(|x| f64::from(x.get())).collect();
            let along =
                |i: usize| of_items.row(i)[..k].iter().zip(&off).map(|(a, b)| a * b).sum::<f64>();
            (0..k).map(|i| off[i] * along(i)).sum::<f64>()
        });
        squares.sum::<f64>() / count as f64
    }
}

#[cfg(test)]
mod tests;
