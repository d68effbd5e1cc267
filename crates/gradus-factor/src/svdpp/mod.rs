//! SVD++ by alternating least squares: ratings, and who rated what.

mod implicit;
mod solve;

use crate::fitting::{self, Iterative, Stopping};
use crate::latent::{LatentFactors, Normalised, Squares};
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

pub use crate::latent::{Normalize, Scaling};

/// SVD++: predicts ratings from ratings and from who rated what, by alternating least squares.
///
/// That someone rated a film at all says something about them, whatever the rating was. Each item `j`
/// has implicit factors `y_j` with a bias `c_j`, and a user receives those of the items `N(u)` that
/// the user rated: `z_u = |N(u)|^-½ Σ_{j ∈ N(u)} y_j`. With `item_side`, users have implicit factors
/// `x_u` too, and an item receives those of the users who rated it. The model is
///
/// `r̂ = α + β_u + β_i + (p_u + z_u)·(q_i + z_i)`
///
/// where the biases include what is received of `c`, and the fit minimises
///
/// `Σ w (r − r̂)² + λ Σ_u s_u ‖p_u‖² + λ Σ_i s_i ‖q_i‖² + λ_y Σ_j s_j ‖y_j‖² + λ_y Σ_u s_u ‖x_u‖²`
///
/// (each norm with the square of the bias that goes with it) over the ratings that are there, `s`
/// being the number of ratings of the row (`scaling = count`) or 1 (`scaling = none`). α is not
/// penalised. A rating counts once in `N`, whatever its weight, and not at all if its weight is 0.
///
/// One iteration sets α to its optimum; takes `voice_steps` steps of conjugate gradients for the
/// users' implicit factors, then solves every item exactly; takes as many for the items' implicit
/// factors, then solves every user exactly. Each lowers the objective, so it never rises. The
/// result does not depend on the number of threads.
///
/// Cost of an iteration: that of `als`, `2 n rank²` operations for `n` ratings and `rank³/3` for
/// each user and item, and about `16 n rank` for each step of conjugate gradients.
///
/// The fitted model is used like that of `als` at the same cost. It is more accurate where people
/// choose what they rate, as they do with films; where they are told what to rate, as in a survey,
/// the implicit factors have nothing to add and `als` is simpler. For clicks, plays or purchases,
/// where nothing but the choice is known, use another model.
///
/// Reference: Koren: Factorization meets the neighborhood, 2008 (the model; there fitted by
/// stochastic gradients).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct Svdpp {
    /// Number of latent factors of each user and item. 64 is a little better than 32 on data of the
    /// size of MovieLens.
    #[schemars(range(min = 1, max = 4096))]
    pub rank: usize,

    /// Strength λ of the penalty on the users' and items' own factors and biases. 0.18 is near the
    /// best for ratings on a five-point scale (0.25 for a hundred thousand, 0.14 for a million); on
    /// a wider scale use more.
    #[schemars(range(min = 0.0))]
    pub regularization: f32,

    /// Strength λ_y of the penalty on the implicit factors. Many rows share them, so they need a stronger
    /// penalty than a row's own factors: about three times `regularization`. Scaled in the same way.
    #[schemars(range(min = 0.0))]
    pub voice_regularization: f32,

    /// How the penalties of a row grow with its number of ratings.
    pub scaling: Scaling,

    /// Whether items receive implicit factors of the users who rated them, as users do of items. Without
    /// it the model is Koren's; with it the error is clearly lower, at twice the steps of conjugate
    /// gradients.
    pub item_side: bool,

    /// Whether users and items have biases, and implicit factors a part that adds to the biases.
    pub biases: bool,

    /// Whether ratings are brought to a common mean and spread before the fit (and back on
    /// prediction).
    pub normalize: Normalize,

    /// Steps of conjugate gradients that an iteration takes for the implicit factors of each side. They
    /// go on from where they were, so few are enough; with fewer than 8 the error falls more slowly.
    #[schemars(range(min = 1, max = 10_000))]
    pub voice_steps: usize,

    /// Largest number of iterations (for each random start). The error hardly falls after 20.
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

impl Default for Svdpp {
    fn default() -> Self {
        Self {
            rank: 64,
            regularization: 0.18,
            voice_regularization: 0.5,
            scaling: Scaling::Count,
            item_side: true,
            biases: true,
            normalize: Normalize::None,
            voice_steps: 8,
            max_iter: 20,
            tol: 1e-4,
            patience: 3,
            restarts: 1,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Svdpp {}

impl Svdpp {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn rule(&self) -> Squares {
        Squares { regularization: self.regularization, scaling: self.scaling, biases: self.biases }
    }

    fn implicit_rule(&self) -> Squares {
        Squares { regularization: self.voice_regularization, ..self.rule() }
    }
}

impl Iterative for Svdpp {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, patience, restarts, seed, .. } = *self;
        Stopping { max_iter, tol, patience, restarts, seed }
    }
}

impl Fit for Svdpp {
    const NAME: &'static str = "svdpp";
    const CLASS: &'static str = "Svdpp";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits::RECOMMENDER;

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        fitting::check(self, data)?;
        let warm = job.warm_model::<LatentFactors>();
        let input = Normalised::new(self.normalize, data);
        let sides = solve::sides(input.data());
        let solver = solve::Solver::new(self, &input, &sides, job.validation, warm)?;
        let options = fitting::loop_options(self, started, data, job);
        let (state, mut report) = iterate::run(&solver, &options, job)?;
        fitting::compare_with_baselines(&mut report, data, job)?;
        fitting::note_fallbacks(&mut report, "row solves", state.fallbacks);
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
