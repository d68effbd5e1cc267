//! Cyclic coordinate descent for the biased latent factor model.

mod dimension;

use crate::als::solve::{self, Plan};
use crate::baseline::Components;
use crate::fitting::{self, Iterative, Stopping};
use crate::half::Method;
use crate::latent::{LatentFactors, Normalised, Normalize, Scaling};
use crate::tuning::{self, Chosen, Tunable};
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// In which order the coordinates are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One latent dimension at a time, over all items and then all users (CCD++): a dimension is the best rank-one fit of what the others leave.
    Dimension,
    /// One row at a time, over all its dimensions: each scalar is minimised in closed form, all others fixed.
    #[default]
    Element,
}

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Ccd {
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

    /// In which order the coordinates are visited.
    pub order: Order,

    /// How often the coordinates of a row (or of a dimension) are visited before the next ones.
    #[schemars(range(min = 1, max = 1000))]
    pub inner: usize,

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

impl Default for Ccd {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            bias_regularization: None,
            scaling: Scaling::Sqrt,
            biases: true,
            order: Order::Element,
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
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn plan(&self, chosen: &Chosen, components: &Components) -> Plan {
        let Self { scaling, biases, clip, keep_history, seed, .. } = *self;
        let rule =
            components.rule(chosen.regularization, self.bias_regularization, scaling, biases);
        let (rank, unit) = (chosen.rank, components.noise);
        let method = Method::Coordinates(self.inner);
        Plan { model: Self::NAME, rank, rule, unit, method, clip, keep_history, seed }
    }
}

impl Iterative for Ccd {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, patience, restarts, seed, .. } = *self;
        Stopping { max_iter, tol, patience, restarts, seed }
    }
}

impl Tunable for Ccd {
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
        let started = Instant::now();
        fitting::check(self, data)?;
        let warm = job.warm_model::<LatentFactors>();
        let input = Normalised::new(Normalize::None, data);
        let chosen = tuning::choose(self, data, job)?;
        let components = Components::estimate(data, self.biases, &job.stop);
        let plan = self.plan(&chosen, &components);
        let solver = solve::Solver::new(plan, &input, job.validation, warm)?;
        let options = fitting::loop_options(self, started, data, job).chosen(chosen.choices);
        let (solver, state, mut report) = match self.order {
            Order::Element => {
                let (state, report) = iterate::run(&solver, &options, job)?;
                (solver, state, report)
            }
            Order::Dimension => {
                let descent = dimension::Descent::new(solver, self.inner);
                let (state, report) = iterate::run(&descent, &options, job)?;
                (descent.solver, state, report)
            }
        };
        fitting::compare_with_baselines(&mut report, data, job)?;
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
