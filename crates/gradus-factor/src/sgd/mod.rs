//! Stochastic gradient descent for the biased latent factor model.

mod solve;

use crate::fitting;
use crate::latent::LatentFactors;
use crate::loss::Problem;
use crate::tuning::{self, latent};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::latent::Scaling;
pub use crate::loss::RatingLoss;

/// How the length of a step changes as the fit goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepSchedule {
    /// Shorter for each row the more gradient it has seen (`η / √(1 + Σ mean g²)`): quick from the first epoch on.
    Adaptive,
    /// `η` in every epoch.
    Constant,
    /// `η` at first, then falling along a half cosine, to nothing after `max_iter` epochs.
    #[default]
    Cosine,
}

impl StepSchedule {
    /// The length of a step in an epoch, counted from 0.
    pub(crate) fn rate(self, rate: f32, epoch: usize, epochs: usize) -> f32 {
        match self {
            Self::Adaptive | Self::Constant => rate,
            // The first epoch has the full length; the last one is short, but not nothing.
            Self::Cosine => {
                let done = (epoch as f64 / epochs as f64).min(1.0);
                (f64::from(rate) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())) as f32
            }
        }
    }
}

gradus_core::params! { [crate::parameters::shared]
    /// Biased matrix factorisation by stochastic gradient descent: predicts ratings, recommends items.
    ///
    /// The model is `r̂ = α + β_u + β_i + γ_u·γ_i`: a mean, a bias for each user and each item, and a
    /// vector of `rank` factors for each. The fit minimises
    ///
    /// `Σ w ℓ(r, r̂) + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`
    ///
    /// over the ratings that are there, with a loss `ℓ` of choice, where `s` is the number of ratings
    /// of the row (`scaling = count`), its root (`sqrt`) or 1 (`none`). The constant α is the one that fits best
    /// without the rest, and stays.
    ///
    /// An epoch takes one step for each rating, along half the gradient of its share of the objective:
    /// `γ_u ← (γ_u + η g γ_i) / (1 + η λ)`, and likewise for `γ_i` and the biases, where `g` is the
    /// error (for the squared loss) as it will be after the step. Such steps never overshoot, however
    /// large `learning_rate` is. They are taken on values divided by their standard deviation, so one
    /// learning rate serves all scales. With several values (`batch`) the rows move together.
    ///
    /// Users and items are assigned at random to groups, and the ratings cut into a grid of blocks; blocks
    /// that share no user and no item run in parallel. The result does not depend on the number of
    /// threads. The objective reported for an epoch takes each loss just before its step, so it lags a
    /// little behind that of the model at the end.
    ///
    /// A new user is folded in, and new ratings are added, by solving the user's row under the same loss.
    ///
    /// Cost of an epoch: `11 n rank` operations for `n` ratings, a small part of an iteration of `als`,
    /// of which it needs a few times as many. Use `als` where the result should not depend on a
    /// learning rate, and another model for clicks, plays or purchases.
    ///
    /// References: Gemulla, Nijkamp, Haas, Sismanis: Large-scale matrix factorization with distributed
    /// stochastic gradient descent, 2011 (the grid); Chin, Zhuang, Juan, Lin: A learning-rate schedule
    /// for stochastic gradient methods to matrix factorization, 2015 (adaptive steps by row); Toulis,
    /// Airoldi: Asymptotic and finite-sample properties of estimators based on stochastic gradients,
    /// 2017 (implicit steps).
    pub struct Sgd {
        [rank, regularization, bias_regularization, scaling, biases, loss, delta],

        /// Length η of a step, for ratings of standard deviation 1. 0.03 to 0.07 do equally well with
        /// `schedule = cosine`; 0.1 suits `adaptive`.
        #[schemars(range(min = 1e-9))]
        pub learning_rate: f32,

        /// How the length of a step changes as the fit goes on.
        pub schedule: StepSchedule,

        /// Ratings (of one block) whose gradients are gathered before the rows move; 1 is plain SGD.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub batch: usize,

        /// Largest number of epochs (for each random start).
        #[schemars(range(min = 1, max = 1_000_000))]
        pub max_iter: usize,

        /// Stop when an epoch lowers the objective by less than this share of it; 0 turns this off.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub tol: f64,

        /// The number of epochs without a better error on held-out ratings after which the fit stops; 0 turns this off.
        #[schemars(range(max = 1_000_000))]
        pub patience: usize,

        [restarts, clip, keep_history, seed],
    }
}

impl Default for Sgd {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            bias_regularization: None,
            scaling: Scaling::Sqrt,
            biases: true,
            loss: RatingLoss::Squared,
            delta: 1.0,
            learning_rate: 0.05,
            schedule: StepSchedule::Cosine,
            batch: 1,
            max_iter: 30,
            tol: 0.0,
            patience: 5,
            restarts: 1,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Sgd {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("bias_regularization", self.bias_regularization),
        ])
    }
}

latent! { Sgd }

impl Fit for Sgd {
    const NAME: &'static str = "sgd";
    const CLASS: &'static str = "Sgd";
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
        let chosen = tuning::choose(self, data, job)?;
        let problem = Problem::new(self, &chosen, (self.loss, self.delta), data, &job.stop);
        let solver = solve::Solver::new(self, &problem, data, job.validation, job.warm_model())?;
        let (state, report) = fitting::run(self, &solver, (started, chosen.choices), data, job)?;
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
