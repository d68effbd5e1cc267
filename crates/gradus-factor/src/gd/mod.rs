//! Gradient descent on the whole objective at once.

mod optimizer;
mod solve;

use crate::fitting::{self, Iterative, Stopping};
use crate::latent::LatentFactors;
use crate::loss::{self, Problem};
use crate::tuning::{self, Tunable};
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

pub use crate::latent::Scaling;
pub use crate::loss::RatingLoss;
pub use optimizer::Optimizer;

/// Biased matrix factorisation by full gradient descent: to see what the other solvers gain.
///
/// The model is `r̂ = α + β_u + β_i + γ_u·γ_i`, and the fit minimises the objective of `als`, or of
/// `sgd` with the same loss:
///
/// `Σ w ℓ(r, r̂) + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`
///
/// One iteration computes the exact gradient over all ratings and moves everything once. The
/// gradient of a row is halved and divided by the number (the weight) of its ratings, or the rows
/// with many ratings would force tiny steps on all others. Values are divided by their standard
/// deviation meanwhile, so one `learning_rate` serves all scales. `optimizer` chooses how the
/// gradient becomes a step.
///
/// Under `gd`, `momentum` and `nesterov` the objective never rises: a step that would raise it is
/// halved until it does not (momentum starts again from nothing), and the length grows again when
/// all goes well. The others may rise now and then, but are stopped from running away.
///
/// Rows are worked on in parallel; the result does not depend on the number of threads. Cost of an
/// iteration: `8 n rank` operations for `n` ratings, and as much memory traffic as two passes.
/// It takes hundreds of them where `als` takes twenty and `sgd` some dozens: use those for results.
///
/// References: Nesterov 1983; Duchi, Hazan, Singer 2011 (adagrad); Tieleman, Hinton 2012 (rmsprop);
/// Kingma, Ba 2015 (adam); O'Donoghue, Candès 2015 (starting momentum again).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Gd {
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

    /// Whether users and items have biases.
    pub biases: bool,

    /// Loss function.
    pub loss: RatingLoss,

    /// The error from which the Huber loss is linear, in units of the standard deviation of the ratings
    /// about the biases (wild values drawn in).
    #[schemars(range(min = 1e-6))]
    pub delta: f32,

    /// How the gradient becomes a step.
    pub optimizer: Optimizer,

    /// Length of a step at first. 0 takes 1 for gd, momentum and nesterov, 0.1 for adagrad, and 0.02 for rmsprop and adam.
    #[schemars(range(min = 0.0))]
    pub learning_rate: f32,

    /// Share of the last move that goes on, for momentum, nesterov and adam.
    #[schemars(range(min = 0.0, max = 0.9999))]
    pub momentum: f32,

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

impl Default for Gd {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            bias_regularization: None,
            scaling: Scaling::Sqrt,
            biases: true,
            loss: RatingLoss::Squared,
            delta: 1.0,
            optimizer: Optimizer::Nesterov,
            learning_rate: 0.0,
            momentum: 0.9,
            max_iter: 200,
            tol: 1e-5,
            patience: 10,
            restarts: 1,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Gd {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("bias_regularization", self.bias_regularization),
        ])
    }
}

impl Gd {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Iterative for Gd {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, patience, restarts, seed, .. } = *self;
        Stopping { max_iter, tol, patience, restarts, seed }
    }
}

impl Tunable for Gd {
    fn given(&self) -> (Option<usize>, Option<f32>) {
        (self.rank, self.regularization)
    }

    fn first_strength(&self) -> f32 {
        tuning::first_strength(self.scaling)
    }

    fn trial(&self, rank: usize, regularization: f32) -> Self {
        let trial = self.clone().rank(rank).regularization(regularization);
        // Who asks for very many iterations wants the last digits of the fit, not of the choice.
        let trial = trial.max_iter(self.max_iter.min(Self::default().max_iter));
        trial.patience(0).restarts(1).keep_history(false)
    }
}

impl Fit for Gd {
    const NAME: &'static str = "gd";
    const CLASS: &'static str = "Gd";
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
        let warm = job.warm_model::<LatentFactors>();
        let chosen = tuning::choose(self, data, job)?;
        let Self { bias_regularization, scaling, biases, loss, delta, .. } = *self;
        let components = loss::components(loss, data, biases, &job.stop);
        let rule = components.rule(chosen.regularization, bias_regularization, scaling, biases);
        let problem = Problem::new(chosen.rank, (loss, delta), &rule, &components, data);
        let solver = solve::Solver::new(self, &problem, data, job.validation, warm)?;
        let options = fitting::loop_options(self, started, data, job).chosen(chosen.choices);
        let (state, mut report) = iterate::run(&solver, &options, job)?;
        fitting::compare_with_baselines(&mut report, data, job)?;
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
