//! SVD++ by alternating least squares: ratings, and who rated what.

mod implicit;
mod solve;

use crate::baseline::Components;
use crate::fitting;
use crate::latent::{LatentFactors, Normalised, RowRule, Squares};
use crate::tuning::{self, Chosen, LatentParams as _, latent};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_data::Ratings;

pub use crate::latent::{Normalize, Scaling};

gradus_core::params! { [crate::parameters::shared]
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
    /// `Σ w (r − r̂)² + λσ Σ_u s_u ‖p_u‖² + λσ Σ_i s_i ‖q_i‖² + λ_y σ Σ_j s_j ‖y_j‖² + λ_y σ Σ_u s_u ‖x_u‖²`
    ///
    /// over the ratings that are there, `s` being the number of ratings of the row (`scaling = count`), its
    /// root (`sqrt`) or 1 (`none`), σ the standard deviation of the noise about the biases, and `λ_y` the
    /// multiple `implicit_regularization` of λ. The biases of a row's own are penalised as by `bias`, those that
    /// are received by `λ_y s c²`. α is not penalised. A rating counts once in `N`, whatever its weight, and not at all if its weight is 0.
    ///
    /// One iteration sets α to its optimum; takes `implicit_steps` steps of conjugate gradients for the
    /// users' implicit factors, then solves every item exactly; takes as many for the items' implicit
    /// factors, then solves every user exactly. Each lowers the objective, so it never rises. The
    /// result does not depend on the number of threads.
    ///
    /// Cost of an iteration: that of `als`, `2 n rank²` operations for `n` ratings and `rank³/3` for
    /// each user and item, and about `16 n rank` for each step of conjugate gradients.
    ///
    /// The fitted model is used like that of `als` at the same cost. It is more accurate where people
    /// choose what they rate, as they do with films; where others decide what they rate, as in a survey,
    /// the implicit factors have nothing to add and `als` is simpler. For clicks, plays or purchases,
    /// where nothing but the choice is known, use another model.
    ///
    /// Reference: Koren: Factorization meets the neighborhood, 2008 (the model; there fitted by
    /// stochastic gradients).
    pub struct Svdpp {
        [rank, regularization, bias_regularization],

        /// Strength of the penalty on the implicit factors, as a multiple of `regularization`. Many rows share
        /// them, so they need a stronger penalty than a row's own factors.
        #[schemars(range(min = 0.0))]
        pub implicit_regularization: f32,

        /// The growth of the penalties of a row with its number of ratings.
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
        pub implicit_steps: usize,

        /// Largest number of iterations (for each random start). The error hardly falls after 20.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub max_iter: usize,

        [tol, patience, restarts, clip, keep_history, seed],
    }
}

impl Default for Svdpp {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            bias_regularization: None,
            implicit_regularization: 3.0,
            scaling: Scaling::Sqrt,
            item_side: true,
            biases: true,
            normalize: Normalize::None,
            implicit_steps: 8,
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

impl Params for Svdpp {
    const RENAMED: &'static [(&'static str, &'static str)] =
        &[("voice_regularization", "implicit_regularization"), ("voice_steps", "implicit_steps")];

    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("bias_regularization", self.bias_regularization),
        ])
    }
}

/// The rank and the penalties, in the units of the ratings.
struct Problem {
    rank: usize,
    rule: Squares,
    /// The penalty on implicit factors and their biases.
    implicit: RowRule,
    /// The standard deviation of the noise about the biases.
    unit: f64,
}

impl Svdpp {
    fn problem(&self, chosen: &Chosen, components: &Components) -> Problem {
        let Self { scaling, biases, .. } = *self;
        let rule = self.squares(chosen, components);
        let implicit = self.implicit_regularization * rule.regularization;
        // Biases are in the units of the ratings, factors in the root of them.
        let ratio = biases.then_some((1.0 / components.noise) as f32);
        let implicit = RowRule::with_ratio(implicit, scaling, ratio);
        Problem { rank: chosen.rank, rule, implicit, unit: components.noise }
    }
}

latent! { Svdpp, {}, {
    /// Part of what the factors explain in `als` is explained by the implicit factors here.
    const STRENGTH: f32 = 1.25;
} }

impl Fit for Svdpp {
    const NAME: &'static str = "svdpp";
    const CLASS: &'static str = "Svdpp";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits::RECOMMENDER;

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = fitting::begin(self, data)?;
        let input = Normalised::new(self.normalize, data);
        let chosen = tuning::choose(self, data, job)?;
        let components = Components::estimate(input.data(), self.biases, &job.stop);
        let problem = self.problem(&chosen, &components);
        let sides = solve::sides(input.data());
        let solver =
            solve::Solver::new((self, &problem), &input, &sides, job.validation, job.warm_model())?;
        let (state, mut report) =
            fitting::run(self, &solver, (started, chosen.choices), data, job)?;
        fitting::note_fallbacks(&mut report, "row solves", state.fallbacks);
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
