//! Cyclic coordinate descent for the biased latent factor model.

mod dimension;

use crate::als::solve::{self, Plan};
use crate::baseline::Components;
use crate::fitting;
use crate::half::Method;
use crate::latent::{LatentFactors, Normalised, Normalize, Scaling};
use crate::tuning::{self, Chosen, latent};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order in which the coordinates are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CcdOrder {
    /// One latent dimension at a time, over all items and then all users (CCD++): a dimension is the best rank-one fit of what the others leave.
    Dimension,
    /// One row at a time, over all its dimensions: each scalar is minimised in closed form, all others fixed.
    #[default]
    Element,
}

gradus_core::params! { [crate::parameters::shared]
    /// Biased matrix factorisation by cyclic coordinate descent: one number at a time, each in closed form.
    ///
    /// Model and objective are those of `als`: `r̂ = α + β_u + β_i + γ_u·γ_i` and
    ///
    /// `Σ w (r − r̂)² + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`.
    ///
    /// With the errors `e` of the ratings at hand, the best value of one factor is
    /// `γ_ut ← (Σ w e γ_it + γ_ut Σ w γ_it²) / (λσ s_u + Σ w γ_it²)`, and the errors follow; a bias is one
    /// more factor whose other side is 1. No update can raise the objective. With `order = element` all
    /// factors of an item are visited, then those of the next; then the users. With `order = dimension`
    /// the first factor of all items and of all users is visited `inner` times, then the second. Rows
    /// are independent of each other and done in parallel; the result does not depend on the number of
    /// threads.
    ///
    /// Cost of an iteration: `12 n rank` operations for `n` ratings and each inner round. `als` lowers the
    /// objective further in the same time, at a large rank with `solver = cg`; use it unless you want
    /// this method.
    ///
    /// References: Pilászy, Zibriczky, Tikk: Fast ALS-based matrix factorization, 2010 (element); Yu,
    /// Hsieh, Si, Dhillon: Scalable coordinate descent approaches to parallel matrix factorization,
    /// 2012 (dimension).
    pub struct Ccd {
        [rank, regularization, bias_regularization, scaling, biases],

        /// The order in which the coordinates are visited.
        pub order: CcdOrder,

        /// How often the coordinates of a row (or of a dimension) are visited before the next ones.
        #[schemars(range(min = 1, max = 1000))]
        pub inner: usize,

        [max_iter, tol, patience, restarts, clip, keep_history, seed],
    }
}

impl Default for Ccd {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            bias_regularization: None,
            scaling: Scaling::Sqrt,
            biases: true,
            order: CcdOrder::Element,
            inner: 1,
            max_iter: 40,
            tol: 1e-4,
            patience: 3,
            restarts: 1,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Ccd {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("bias_regularization", self.bias_regularization),
        ])
    }
}

impl Ccd {
    fn plan(&self, chosen: &Chosen, components: &Components) -> Plan {
        Plan::new(self, chosen, components, Method::Coordinates(self.inner))
    }
}

latent! { Ccd }

impl Fit for Ccd {
    const NAME: &'static str = "ccd";
    const CLASS: &'static str = "Ccd";
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
        let input = Normalised::new(Normalize::None, data);
        let chosen = tuning::choose(self, data, job)?;
        let components = Components::estimate(data, self.biases, &job.stop);
        let plan = self.plan(&chosen, &components);
        let solver = solve::Solver::new(plan, &input, job.validation, job.warm_model())?;
        let start = (started, chosen.choices);
        let (solver, state, mut report) = match self.order {
            CcdOrder::Element => {
                let (state, report) = fitting::run(self, &solver, start, data, job)?;
                (solver, state, report)
            }
            CcdOrder::Dimension => {
                let descent = dimension::Descent::new(solver, self.inner);
                let (state, report) = fitting::run(self, &descent, start, data, job)?;
                (descent.solver, state, report)
            }
        };
        if state.fallbacks > 0 {
            report.notes.push(format!(
                "{} rows left the range of single precision and were solved exactly",
                state.fallbacks
            ));
        }
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
