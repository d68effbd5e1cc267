//! Alternating least squares for the biased latent factor model.

mod pilot;
pub(crate) use pilot::strengths;
pub(crate) mod solve;

use crate::baseline::Components;
use crate::fitting;
use crate::latent::{LatentFactors, Normalised};
use crate::tuning::{self, Chosen, latent};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::half::Method;
pub use crate::latent::{Normalize, Scaling};
use solve::Plan;

/// How a row is solved while the other side is held fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RowMethod {
    /// Exactly, by a Cholesky factor of its normal equations: users folded in get their very factors.
    #[default]
    Cholesky,
    /// A few conjugate gradient steps from the last solution: cheaper from a rank of about 64 on.
    Cg,
}

gradus_core::params! { [crate::parameters::shared]
    /// Biased matrix factorisation by alternating least squares: predicts ratings, recommends items.
    ///
    /// The model is `r̂ = α + β_u + β_i + γ_u·γ_i`: a mean, a bias for each user and each item, and a
    /// vector of `rank` factors for each. The fit minimises
    ///
    /// `Σ w (r − r̂)² + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`
    ///
    /// over the ratings that are there, where `s` is the root of the number of ratings of the row (`scaling =
    /// sqrt`), that number (`count`) or 1 (`none`). The mean α is not penalised.
    ///
    /// `σ` is the standard deviation of the noise about the biases, and `d_u`, `d_i` are the penalties on
    /// biases; both are estimated from the data (see `bias`), so that the result does not depend on the scale of the
    /// ratings. Where λ or the rank is left out, it is chosen by the error on held-out ratings, and the report
    /// says what was tried. Where ratings are too thin for factors, that makes them 0 and the model `bias`.
    ///
    /// With features of users or items (side information) the prior mean of a row is a linear map of its features,
    /// `λσ s_u ‖γ_u − Wᵀx_u‖²` in place of `λσ s_u ‖γ_u‖²` and likewise for biases, and the maps are learned together with the rows under
    /// a penalty of their own, chosen for each column of features. Users and items without ratings are then
    /// known by their features.
    ///
    /// One iteration sets α to its optimum, then solves every item's bias and factors jointly and
    /// exactly with the users held fixed, then every user's with the items held fixed; so the
    /// objective never rises. Rows are solved in parallel and in single precision; a row whose system
    /// is too ill-conditioned for that is redone in double precision. The result does not depend on
    /// the number of threads.
    ///
    /// Cost of an iteration: `2 n rank²` operations for `n` ratings and `rank³/3` for each user and
    /// item; with `solver = cg` `8 n rank` and as much again for each of the `cg_steps`. Conjugate
    /// gradients improve each row instead of solving it, from where the last iteration left it; the
    /// objective still never rises, and three steps lower it almost as far as an exact solve does. From
    /// a rank of about 64 on that is the faster way.
    ///
    /// Where people choose what they rate, `svdpp` makes use of that and is more accurate, at two to
    /// three times the cost. Use another model for clicks, plays or purchases, where what is *not*
    /// there also means something. For pure ranking quality at the same speed that other model is better, too.
    ///
    /// Reference: Zhou, Wilkinson, Schreiber, Pan: Large-scale parallel collaborative filtering for
    /// the Netflix Prize, 2008 (with the count-scaled penalty).
    pub struct Als {
        /// Number of latent factors of each user and item. Left out, it is chosen on held-out ratings: 16, or
        /// more or fewer where that pays. With a penalty of the right strength more factors hardly overfit.
        #[schemars(range(min = 1, max = 4096))]
        pub rank: Option<usize>,

        /// Strength λ of the penalty on factors, in units of the standard deviation of the ratings about the
        /// biases: one value means the same on any scale. Left out, it is chosen on held-out ratings; with
        /// `scaling = sqrt` the best is between 1 and 2 on almost all data.
        #[schemars(range(min = 0.0))]
        pub regularization: Option<f32>,

        [bias_regularization],

        /// Strength of the penalty on the maps from features to biases and factors (with features of users or
        /// items): the number of rows at the mean that each feature has in addition. Left out, it is estimated
        /// from the data for each column of features, and a column that says nothing is left out.
        #[schemars(range(min = 0.0))]
        pub feature_regularization: Option<f32>,

        /// How the penalty of a row grows with its number of ratings. The root beats the two others on
        /// thin and dense ratings alike: a row with few ratings needs more than its count of penalty.
        pub scaling: Scaling,

        [biases],

        /// Whether ratings are brought to a common mean and spread before the fit (and back on
        /// prediction). With biases there is little left for it to do; it is for people who use the
        /// scale very differently, and for models without biases.
        pub normalize: Normalize,

        /// How a row is solved while the other side is held fixed.
        pub solver: RowMethod,

        /// Conjugate gradient steps for each row in an iteration (`solver = cg`).
        #[schemars(range(min = 1, max = 1000))]
        pub cg_steps: usize,

        /// Largest number of iterations (for each random start). The error hardly falls after 20.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub max_iter: usize,

        [tol, patience, restarts, clip, keep_history, seed],
    }
}

impl Default for Als {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            bias_regularization: None,
            feature_regularization: None,
            scaling: Scaling::Sqrt,
            biases: true,
            normalize: Normalize::None,
            solver: RowMethod::Cholesky,
            cg_steps: 3,
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

impl Params for Als {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("bias_regularization", self.bias_regularization),
            ("feature_regularization", self.feature_regularization),
        ])
    }
}

impl Als {
    fn plan(&self, chosen: &Chosen, components: &Components) -> Plan {
        let method = match self.solver {
            RowMethod::Cholesky => Method::Cholesky,
            RowMethod::Cg => Method::Cg(self.cg_steps),
        };
        Plan::new(self, chosen, components, method)
    }
}

latent! { Als }

impl Fit for Als {
    const NAME: &'static str = "als";
    const CLASS: &'static str = "Als";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits {
        recommender: Some(RecommenderTraits { features: true, ..RecommenderTraits::EXPLICIT }),
        ..Traits::UPDATING_RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = fitting::begin(self, data)?;
        let input = Normalised::new(self.normalize, data);
        let mut chosen = tuning::choose(self, data, job)?;
        let components = Components::estimate(input.data(), self.biases, &job.stop);
        let known = (&input, Some(&components));
        let strengths = pilot::strengths(self, known, job, Self::NAME)?;
        strengths.tell(self.biases, input.data(), &mut chosen.choices);
        let plan = self.plan(&chosen, &components);
        let solver = solve::Solver::new(plan, &input, job.validation, job.warm_model())?;
        let solver =
            solver.with_features(|of, encoder, typical| strengths.of(of, encoder, typical));
        let (state, mut report) =
            fitting::run(self, &solver, (started, chosen.choices), data, job)?;
        fitting::note_fallbacks(&mut report, "row solves", state.fallbacks);
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
