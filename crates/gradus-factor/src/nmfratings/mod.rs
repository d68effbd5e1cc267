//! Non-negative matrix factorisation of ratings.

use crate::als::solve::{Plan, Solver};
use crate::baseline::Components;
use crate::fitting;
use crate::half::Method;
use crate::latent::{LatentFactors, Normalised, Normalize, Scaling};
use crate::tuning::{self, latent};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::params::Params;
use gradus_data::Ratings;

/// Rounds over the coordinates of a row in half an iteration.
const ROUNDS: usize = 2;

gradus_core::params! { [crate::parameters::shared]
    /// Non-negative matrix factorisation of ratings: factors of 0 or more that add up.
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
    pub struct NmfRatings {
        [rank, regularization, bias_regularization, scaling],

        /// Whether there are a mean and biases of users and items, which may be negative. Without them ratings must be 0 or more.
        pub biases: bool,

        [max_iter, tol, patience, restarts, clip, keep_history, seed],
    }
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

latent! { NmfRatings, {
    /// Factors are to be read; more are too many for that, and each doubling of the rank gains less.
    fn largest_rank(&self) -> usize {
        64
    }

    /// The best strength hardly changes with the rank.
    fn stronger_at_rank(&self) -> bool {
        false
    }
}, {
    /// Factors that cannot be negative shrink the fit more than those of `als`: less of a penalty is best.
    const STRENGTH: f32 = 1.0 / 1.5;

    /// Trials are compared long before their last digits settle.
    fn trial_limits() -> (usize, f64) {
        (40, 3e-4)
    }
} }

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
        let started = fitting::begin(self, data)?;
        if !self.biases {
            let negative = data.by_user().values().iter().find(|value| **value < 0.0);
            if let Some(value) = negative {
                return Err(Error::data(format!(
                    "{}: a rating of {value} is negative; without biases ratings must be 0 or more",
                    Self::NAME
                )));
            }
        }
        let input = Normalised::new(Normalize::None, data);
        let chosen = tuning::choose(self, data, job)?;
        let components = Components::estimate(input.data(), self.biases, &job.stop);
        let method = Method::NonNegative(ROUNDS);
        let plan = Plan::new(self, &chosen, &components, method);
        let solver = Solver::new(plan, &input, job.validation, job.warm_model())?;
        let (state, mut report) =
            fitting::run(self, &solver, (started, chosen.choices), data, job)?;
        fitting::note_fallbacks(&mut report, "row solves", state.fallbacks);
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
