//! Non-negative matrix factorisation of ratings.

use crate::als::solve::{Plan, Solver};
use crate::baseline::Components;
use crate::fitting::{self, Iterative, Stopping};
use crate::half::Method;
use crate::latent::{LatentFactors, Normalised, Normalize, Scaling};
use crate::tuning::{self, Tunable};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Rounds over the coordinates of a row in half an iteration.
const ROUNDS: usize = 2;
/// The most iterations of a trial by which λ and the rank are chosen, and the share of the objective at which it ends:
/// trials are compared long before their last digits settle.
const TRIAL_ITERATIONS: usize = 40;
const TRIAL_TOL: f64 = 3e-4;

/// Non-negative matrix factorisation of ratings: tastes that only add up.
///
/// The model is that of `als`, `r̂ = α + β_u + β_i + γ_u·γ_i`, with factors of 0 or more, and the fit minimises
///
/// `Σ w (r − r̂)² + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`   over   `γ ≥ 0`
///
/// and over the ratings that are there. Nothing can be subtracted: each factor is a group of items, a user has some share of
/// each group, and what an item gains from a group is never taken back by another. So factors can be read, which
/// those of `als` cannot: the items with the largest entries are what the factor is about. With `biases = false` the model
/// is the plain product `r̂ = γ_u·γ_i` of Lee and Seung (ratings must then be 0 or more), as in LIBMF and Surprise;
/// biases make it more accurate on almost all ratings.
///
/// `σ`, `d_u` and `d_i` are as for `als`, and λ and the rank (up to 64) are chosen on held-out ratings likewise. The signs cost
/// accuracy: where factors need not be read, `als` is better.
///
/// One iteration improves every item and then every user by two rounds of coordinate descent over its bias and its
/// factors (hierarchical alternating least squares on the ratings observed): each becomes the best number of 0 or more, all others held fixed, so that
/// the objective never rises. The problem is not convex: another seed may end elsewhere. Cost of an iteration: `24 n rank`
/// operations for `n` ratings. Users are folded in by the same descent, to its end.
///
/// References: Lee, Seung: Learning the parts of objects by non-negative matrix factorization, 1999. Cichocki, Phan: Fast
/// local algorithms for large scale nonnegative matrix and tensor factorizations, 2009. Hsieh, Dhillon: Fast coordinate
/// descent methods with variable selection for non-negative matrix factorization, 2011.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct NmfRatings {
    /// Number of latent factors of each user and item. Left out, it is chosen on held-out ratings, as by `als`.
    #[schemars(range(min = 1, max = 4096))]
    pub rank: Option<usize>,

    /// Strength λ of the penalty on factors, in units of the standard deviation of the ratings about the
    /// biases. Left out, it is chosen on held-out ratings, as by `als`.
    #[schemars(range(min = 0.0))]
    pub regularization: Option<f32>,

    /// Strength of the penalty on biases: the number of ratings at the mean that every user and item
    /// has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
    #[schemars(range(min = 0.0))]
    pub bias_regularization: Option<f32>,

    /// How the penalty of a row grows with its number of ratings.
    pub scaling: Scaling,

    /// Whether there are a mean and biases of users and items, which may be negative. Without them ratings must be 0 or more.
    pub biases: bool,

    /// Largest number of iterations (for each random start).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// With held-out ratings: stop when their error has not fallen for this many iterations; 0 turns this off.
    #[schemars(range(max = 1_000_000))]
    pub patience: usize,

    /// Number of random starts; the best is kept, by held-out error if there is any, else by objective.
    #[schemars(range(min = 1, max = 1000))]
    pub restarts: usize,

    /// Whether predictions are clipped to the range of the training ratings.
    pub clip: bool,

    /// Whether the model keeps the training ratings, to leave out what a user has seen and to explain.
    pub keep_history: bool,

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for NmfRatings {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            bias_regularization: None,
            scaling: Scaling::Sqrt,
            biases: true,
            max_iter: 60,
            tol: 1e-4,
            patience: 5,
            restarts: 1,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for NmfRatings {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("bias_regularization", self.bias_regularization),
        ])
    }
}

impl NmfRatings {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Iterative for NmfRatings {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, patience, restarts, seed, .. } = *self;
        Stopping { max_iter, tol, patience, restarts, seed }
    }
}

impl Tunable for NmfRatings {
    fn given(&self) -> (Option<usize>, Option<f32>) {
        (self.rank, self.regularization)
    }

    /// Factors that cannot be negative shrink the fit more than those of `als`: less of a penalty is best.
    fn first_strength(&self) -> f32 {
        tuning::first_strength(self.scaling) / 1.5
    }

    /// Factors are to be read; more are too many for that, and each doubling of the rank gains less.
    fn largest_rank(&self) -> usize {
        64
    }

    /// The best strength hardly changes with the rank.
    fn stronger_at_rank(&self) -> bool {
        false
    }

    fn trial(&self, rank: usize, regularization: f32) -> Self {
        let trial = self.clone().rank(rank).regularization(regularization);
        // Who asks for very many iterations wants the last digits of the fit, not of the choice.
        let trial =
            trial.max_iter(self.max_iter.min(TRIAL_ITERATIONS)).tol(self.tol.max(TRIAL_TOL));
        trial.patience(0).restarts(1).keep_history(false)
    }
}

impl Fit for NmfRatings {
    const NAME: &'static str = "nmfratings";
    const CLASS: &'static str = "NmfRatings";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits {
        recommender: Some(RecommenderTraits {
            exact_fold_in: false,
            ..RecommenderTraits::EXPLICIT
        }),
        ..Traits::UPDATING_RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        fitting::check(self, data)?;
        if !self.biases {
            let negative = data.by_user().values().iter().find(|value| **value < 0.0);
            if let Some(value) = negative {
                return Err(Error::data(format!(
                    "{}: a rating of {value} is negative; without biases ratings must be 0 or more",
                    Self::NAME
                )));
            }
        }
        let warm = job.warm_model::<LatentFactors>();
        let input = Normalised::new(Normalize::None, data);
        let chosen = tuning::choose(self, data, job)?;
        let components = Components::estimate(input.data(), self.biases, &job.stop);
        let Self { bias_regularization, scaling, biases, clip, keep_history, seed, .. } = *self;
        let plan = Plan {
            model: Self::NAME,
            rank: chosen.rank,
            rule: components.rule(chosen.regularization, bias_regularization, scaling, biases),
            unit: components.noise,
            method: Method::NonNegative(ROUNDS),
            clip,
            keep_history,
            seed,
        };
        let solver = Solver::new(plan, &input, job.validation, warm)?;
        let options = fitting::loop_options(self, started, data, job).chosen(chosen.choices);
        let (state, mut report) = iterate::run(&solver, &options, job)?;
        fitting::compare_with_baselines(&mut report, data, job)?;
        fitting::note_fallbacks(&mut report, "row solves", state.fallbacks);
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
