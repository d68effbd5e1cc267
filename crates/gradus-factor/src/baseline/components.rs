//! Variance components: how much users differ, how much items differ, and how much is noise.

use super::bias::{Side, sum};
use crate::latent::{Scaling, Squares};
use crate::tuning;
use gradus_base::parallel;
use gradus_core::progress::Stop;
use gradus_data::Ratings;

/// The variances of this many ratings are known to more digits than any fit needs.
const ENOUGH: usize = 4_000_000;
/// A sample of fewer users says too little of how much they differ.
const LEAST_USERS: usize = 1000;
/// Largest number of steps of EM.
const STEPS: usize = 200;
/// EM has converged when no ratio of variances changes by more than this share.
const STILL: f64 = 1e-3;
/// The ratio of variances that EM starts from.
const START: f64 = 5.0;
/// The largest ratio of variances: biases of that side are as good as 0.
const MOST: f64 = 1e6;

/// The variances of `r = α + β_u + β_i + ε`, with `β_u`, `β_i` and `ε` normal and independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Components {
    /// The standard deviation σ of ε, in the units of the ratings.
    pub(crate) noise: f64,
    /// `σ² / Var β_u` and `σ² / Var β_i`: what the penalty on a bias has to be, and the number of ratings
    /// that the prior of a bias is worth.
    pub(crate) damping: [f64; 2],
}

impl Components {
    /// The penalty of least squares of a strength λ, relative to the noise, with biases of the variances
    /// found or of a given penalty.
    pub(crate) fn rule(
        &self,
        regularization: f32,
        bias_regularization: Option<f32>,
        scaling: Scaling,
        biases: bool,
    ) -> Squares {
        let estimated = self.damping.map(|damping| damping as f32);
        let of_biases = bias_regularization.map_or(estimated, |lambda| [lambda; 2]);
        Squares {
            regularization: (f64::from(regularization) * self.noise) as f32,
            scaling,
            biases,
            bias_regularization: biases.then_some(of_biases),
        }
    }

    /// Estimates the variances by EM, with the posterior covariance of the biases taken for diagonal.
    /// Without biases, σ is the standard deviation of the ratings.
    ///
    /// σ is never 0: ratings that are all explained have the unit of a millionth of their spread. Of more than
    /// [`ENOUGH`] ratings those of a sample of the users are taken: EM would take longer than the fit.
    pub(crate) fn estimate(data: &Ratings, biases: bool, stop: &Stop) -> Self {
        let sample = (data.len() > ENOUGH).then(|| tuning::sample(data, 0));
        match sample {
            Some(Ok(Some(sample))) if sample.n_users() >= LEAST_USERS && has_weight(&sample) => {
                Self::of_all(&sample, biases, stop)
            }
            _ => Self::of_all(data, biases, stop),
        }
    }

    fn of_all(data: &Ratings, biases: bool, stop: &Stop) -> Self {
        let weight: f64 = data.iter().map(|r| f64::from(r.weight)).sum();
        let mut mean: f64 =
            data.iter().map(|r| f64::from(r.weight) * f64::from(r.value)).sum::<f64>() / weight;
        let squares: f64 =
            data.iter().map(|r| f64::from(r.weight) * (f64::from(r.value) - mean).powi(2)).sum();
        let spread = (squares / weight).sqrt();
        let spread = if spread > 0.0 && spread.is_finite() { spread } else { 1.0 };
        let mut damping = [START; 2];
        if !biases {
            return Self { noise: spread, damping };
        }
        let mut noise = spread;
        let (mut users, mut items) = (vec![0.0; data.n_users()], vec![0.0; data.n_items()]);
        for _ in 0..STEPS {
            if stop.requested() {
                break;
            }
            let of_users = Side::new(data.by_user(), data.weights_by_user(), mean, damping[0]);
            let of_items = Side::new(data.by_item(), data.weights_by_item(), mean, damping[1]);
            items = of_items.solve(&users);
            let (errors, squares);
            (users, errors, squares) = of_users.solve_with_errors(&items);
            mean += errors / weight;
            // What the parameters take of the degrees of freedom.
            let [free_users, free_items] = [&of_users, &of_items].map(Side::freedom);
            let left = (weight - 1.0 - free_users - free_items).max(1.0);
            noise = (squares / left).sqrt().max(1e-6 * spread);
            let variance = |side: &Side<'_>, biases: &[f64]| {
                let of = |row: usize| {
                    let weight = side.weight(row);
                    let bias = biases[row];
                    if weight > 0.0 {
                        (1.0, bias * bias + noise * noise / (weight + side.damping))
                    } else {
                        (0.0, 0.0)
                    }
                };
                let each = parallel::map_below(biases.len(), 256, of);
                let (count, total) = each.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
                total / count
            };
            let next = [variance(&of_users, &users), variance(&of_items, &items)]
                .map(|variance| (noise * noise / variance).clamp(1.0 / MOST, MOST));
            let moved = (0..2).map(|at| (next[at] / damping[at]).ln().abs()).fold(0.0, f64::max);
            damping = next;
            if moved < STILL {
                break;
            }
        }
        debug_assert!(sum(&users).is_finite() && sum(&items).is_finite());
        Self { noise, damping }
    }
}

/// Whether some rating counts.
fn has_weight(data: &Ratings) -> bool {
    data.weights_by_user().is_none_or(|weights| weights.iter().any(|&weight| weight > 0.0))
}
