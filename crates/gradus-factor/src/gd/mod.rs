//! Gradient descent on the whole objective at once.

mod optimizer;
mod solve;

use crate::fitting;
use crate::latent::LatentFactors;
use crate::loss::Problem;
use crate::tuning::{self, latent};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::params::Params;
use gradus_data::Ratings;

pub use crate::latent::Scaling;
pub use crate::loss::RatingLoss;
pub use optimizer::GdOptimizer;

gradus_core::params! { [crate::parameters::shared]
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
    pub struct Gd {
        [rank, regularization, bias_regularization, scaling, biases, loss, delta],

        /// How the gradient becomes a step.
        pub optimizer: GdOptimizer,

        /// Length of a step at first. 0 takes 1 for gd, momentum and nesterov, 0.1 for adagrad, and 0.02 for rmsprop and adam.
        #[schemars(range(min = 0.0))]
        pub learning_rate: f32,

        /// Share of the last move that goes on, for momentum, nesterov and adam.
        #[schemars(range(min = 0.0, max = 0.9999))]
        pub momentum: f32,

        [max_iter, tol, patience, restarts, clip, keep_history, seed],
    }
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
            optimizer: GdOptimizer::Nesterov,
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

latent! { Gd }

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
