//! Implicit feedback by alternating least squares.

mod blocks;
mod pilot;
mod rows;
mod side;
mod solve;
mod start;

use crate::fitting::{self, iterative};
use crate::latent::{Implicit, LatentFactors};
use crate::ranking::HeldOutItems;
use crate::tuning::{self, Tunable};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_data::{Entity, Ratings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::latent::{Confidence, UnobservedOn};

gradus_core::params! { [crate::parameters::shared]
    /// Implicit feedback by alternating least squares: recommends items from clicks, plays, purchases.
    ///
    /// A value `r` is a sign of interest, and a pair without one is a weak sign of none. The model
    /// scores a pair by `s = β_u + β_i + γ_u·γ_i` and minimises
    ///
    /// `Σ_observed w c(r) (1 − s)² + α₀ Σ_all s² + Σ_u λ_u (β_u² + ‖γ_u‖²) + Σ_i λ_i (β_i² + ‖γ_i‖²)`
    ///
    /// with the confidence `c(r)`, the weight `α₀` (`unobserved`) of each of all `users × items`
    /// pairs, and `λ_u = λ (n_u + α₀ · items)^ν`, `λ_i = λ (n_i + α₀ · users)^ν`, where `n` counts what
    /// was observed of the row. Values cannot be negative; a value of 0 is no sign of interest: the
    /// pair counts as not observed, but is not recommended either.
    ///
    /// This is the objective of Rendle et al. as it stands. That of Hu, Koren and Volinsky, with weight
    /// `1 + αr` towards 1 where observed and weight 1 towards 0 elsewhere, is `confidence = linear`,
    /// `alpha = α`, `unobserved = 1`, `unobserved_on = rest`, `exponent = 0`.
    ///
    /// One iteration solves the items with the users held fixed, then the users with the items held
    /// fixed; the pairs that were not observed enter by one `rank × rank` matrix, so the cost does
    /// not grow with `users × items`. The objective, taken over all pairs, never rises. Solvers:
    /// `cholesky` solves each row exactly (`2 n rank²` operations for `n` observations and `rank³/3`
    /// for each row); `cg` takes a few steps of conjugate gradients from the last solution (`16 n rank`
    /// and `8 rank²`); `blocks` solves `block` coordinates at a time (`2 n rank · block`, `rank ·
    /// block²/3` and `rank²`), which wins by far for large ranks. The result does not depend on the
    /// number of threads.
    ///
    /// With features of users or items (side information) the prior mean of a row is a linear map of its features,
    /// `λ_u ‖γ_u − Wᵀx_u‖²` in place of `λ_u ‖γ_u‖²`, and the maps are learned together with the rows under a penalty of
    /// their own, chosen for each column of features. Users and items without interactions are then known by
    /// their features: they are at the mean row moved by what their features say, and no pair of theirs counts as
    /// not observed. `blocks` is then solved as `cg`.
    ///
    /// Held-out data is scored by NDCG@20: all items but those seen in training are ranked for each
    /// user (for 20,000 of them, if there are more).
    ///
    /// Use `als` for ratings that say how much something was liked.
    ///
    /// References: Hu, Koren, Volinsky: Collaborative filtering for implicit feedback datasets, 2008.
    /// Rendle, Krichene, Zhang, Koren: Revisiting the performance of iALS on item recommendation
    /// benchmarks, 2022. Rendle, Krichene, Zhang, Koren: iALS++: speeding up matrix factorization with
    /// subspace optimization, 2021.
    pub struct Ials {
        /// Number of latent factors of each user and item. More rank better, if slower, up to many
        /// hundreds on sparse data. Left out, it is chosen on held-out data, up to 256.
        #[schemars(range(min = 1, max = 4096))]
        pub rank: Option<usize>,

        /// Strength λ of the penalty on factors and biases. Left out, it is chosen on held-out data. With ν = 1
        /// the best is mostly between 0.002 and 0.05; with ν = 0 it is larger by the number of observations of a
        /// row.
        #[schemars(range(min = 0.0))]
        pub regularization: Option<f32>,

        /// Strength of the penalty on the maps from features to factors (with features of users or items): the
        /// number of rows at the mean that each feature has in addition. Left out, it is estimated from the data
        /// for each column of features, and a column that says nothing is left out.
        #[schemars(range(min = 0.0))]
        pub feature_regularization: Option<f32>,

        /// The weight α₀ of a pair that was not observed, against 1 for one that was. Less makes the model
        /// bolder. Left out, all pairs together weigh 8 times as much as the observed ones, but none more than
        /// 1; where λ is left out as well, 4, 16, … times are tried on held-out data.
        #[schemars(range(min = 0.0))]
        pub unobserved: Option<f32>,

        /// The pairs that have the weight α₀.
        pub unobserved_on: UnobservedOn,

        /// The confidence c(r) in an observed pair as a function of its value.
        pub confidence: Confidence,

        /// The α of the confidence; a constant one does not look at it.
        #[schemars(range(min = 0.0))]
        pub alpha: f32,

        /// The ε of the logarithmic confidence: the value around which it starts to level off.
        #[schemars(range(min = 0.000001))]
        pub epsilon: f32,

        /// The exponent ν by which the penalty of a row grows with what was observed of it: 1 in full,
        /// 0 not at all.
        #[schemars(range(min = 0.0, max = 2.0))]
        pub exponent: f32,

        [biases],

        /// How a row is solved.
        pub solver: IalsSolver,

        /// Coordinates solved together by `blocks`: more take fewer iterations, each of them slower.
        #[schemars(range(min = 1, max = 4096))]
        pub block: usize,

        /// Steps of conjugate gradients by `cg` for each row and iteration.
        #[schemars(range(min = 1, max = 1000))]
        pub steps: usize,

        [max_iter, tol],

        /// The number of iterations without a better score on held-out data after which the fit stops; 0 turns this
        /// off.
        #[schemars(range(max = 1_000_000))]
        pub patience: usize,

        [restarts, keep_history, seed],
    }
}

/// How a row is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IalsSolver {
    /// Cholesky up to rank 32, cg up to 512, blocks above: the quickest to a given quality.
    #[default]
    Auto,
    /// Exactly.
    Cholesky,
    /// A few steps of conjugate gradients from the last solution.
    Cg,
    /// A block of coordinates after another (iALS++).
    Blocks,
}

/// How much all pairs weigh together at first, against the observed ones. The best was 5 to 20 on
/// data of very different density (MovieLens 1M, Gowalla).
const UNOBSERVED: f64 = 8.0;

/// The strength that is tried first, and the power of the weight of all pairs by which the best one falls.
const STRENGTH: f32 = 0.012;
const STRENGTH_POWER: f32 = -0.7;

/// The number of users or of items. Those known by their features alone do not count: they are not there while
/// the model is fitted.
fn counted(data: &Ratings, of: Entity) -> usize {
    let rows = if of == Entity::User { data.by_user() } else { data.by_item() };
    match data.features(of) {
        None => rows.n_rows(),
        Some(_) => (0..rows.n_rows()).filter(|&row| !rows.range(row).is_empty()).count(),
    }
}

/// The smallest rank that is tried.
const FIRST_RANK: usize = 32;

/// The largest rank at which `auto` solves rows exactly, and the largest at which it takes
/// conjugate gradients. At rank 16 and 32 an exact solve costs as much as three steps do; at 64
/// these take 0.6 of its time and at 128 0.35, to the same NDCG (MovieLens 1M, Gowalla). Blocks take
/// 1.7 times as long as conjugate gradients to the same objective at rank 200, slightly longer at 512
/// and 0.6 of the time at 1024 (Gowalla).
const EXACT_RANK: usize = 32;
const CG_RANK: usize = 512;

impl Default for Ials {
    fn default() -> Self {
        Self {
            rank: None,
            regularization: None,
            feature_regularization: None,
            unobserved: None,
            unobserved_on: UnobservedOn::All,
            confidence: Confidence::Constant,
            alpha: 1.0,
            epsilon: 1.0,
            exponent: 1.0,
            biases: false,
            solver: IalsSolver::Auto,
            block: 64,
            steps: 3,
            max_iter: 16,
            tol: 1e-4,
            patience: 3,
            restarts: 1,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Ials {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("feature_regularization", self.feature_regularization),
            ("unobserved", self.unobserved),
        ])
    }
}

impl Ials {
    fn rule(&self, data: &Ratings) -> Implicit {
        let mut rule = Implicit {
            regularization: self.regularization.unwrap_or(STRENGTH),
            exponent: self.exponent,
            unobserved: 0.0,
            unobserved_on: self.unobserved_on,
            confidence: self.confidence,
            alpha: self.alpha,
            epsilon: self.epsilon,
            biases: self.biases,
        };
        rule.unobserved = self.unobserved.unwrap_or_else(|| {
            let observed: f64 = data
                .iter()
                .map(|rating| f64::from(rating.weight) * f64::from(rule.confidence(rating.value)))
                .sum();
            let pairs = counted(data, Entity::User) as f64 * counted(data, Entity::Item) as f64;
            (UNOBSERVED * observed / pairs).min(1.0) as f32
        });
        rule
    }

    /// The number of factors.
    fn size(&self) -> usize {
        self.rank.unwrap_or(FIRST_RANK)
    }

    /// The solver that is used.
    fn chosen(&self) -> IalsSolver {
        match self.solver {
            IalsSolver::Auto if self.size() <= EXACT_RANK => IalsSolver::Cholesky,
            IalsSolver::Auto if self.size() <= CG_RANK => IalsSolver::Cg,
            IalsSolver::Auto => IalsSolver::Blocks,
            chosen => chosen,
        }
    }
}

iterative! { Ials }

impl Tunable for Ials {
    fn given(&self) -> (Option<usize>, Option<f32>) {
        (self.rank, self.regularization)
    }

    fn first_strength(&self) -> f32 {
        STRENGTH
    }

    fn first_rank(&self) -> usize {
        FIRST_RANK
    }

    fn largest_rank(&self) -> usize {
        256
    }

    fn ratio(&self) -> f32 {
        1.6
    }

    fn gain(&self) -> f64 {
        0.01
    }

    fn stronger_at_rank(&self) -> bool {
        false
    }

    fn further(&self) -> Option<&'static str> {
        let open = self.unobserved.is_none() && self.regularization.is_none();
        open.then_some("unobserved")
    }

    fn variant(&self, data: &Ratings, step: i32) -> (Self, f32, f32) {
        let times = 2_f32.powi(step);
        let unobserved = self.unobserved.unwrap_or_else(|| {
            let first = self.rule(data).unobserved;
            (first * times).min(1.0)
        });
        let along = if self.unobserved.is_none() { times.powf(STRENGTH_POWER) } else { 1.0 };
        (self.clone().unobserved(unobserved), unobserved, along)
    }

    fn trial(&self, rank: usize, regularization: f32) -> Self {
        let trial = self.clone().rank(rank).regularization(regularization);
        let trial = trial.max_iter(self.max_iter.min(Self::default().max_iter));
        trial.patience(0).restarts(1).keep_history(false)
    }
}

impl Fit for Ials {
    const NAME: &'static str = "ials";
    const CLASS: &'static str = "Ials";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    /// Folding in is exact where the rows are: with `solver = cholesky`, which `auto` takes up to rank
    /// 32. Rows of `cg` and `blocks` end near enough to it for the same recommendations.
    const TRAITS: Traits = Traits {
        warm_path: true,
        recommender: Some(RecommenderTraits { features: true, ..RecommenderTraits::IMPLICIT }),
        ..Traits::UPDATING_RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = fitting::begin(self, data)?;
        let held_out =
            job.validation.map(|held_out| HeldOutItems::new(held_out, data)).transpose()?;
        let mut chosen = tuning::choose(self, data, job)?;
        let (params, ..) = self.variant(data, chosen.further);
        let params = params.rank(chosen.rank).regularization(chosen.regularization);
        let strengths = pilot::strengths(&params, data, job)?;
        strengths.tell(self.biases, data, &mut chosen.choices);
        let solver = solve::Problem::new(&params, data, held_out.as_ref(), job.warm_model())?
            .with_features(|of, encoder, typical| strengths.of(of, encoder, typical));
        let options = fitting::loop_options(self, started, data, job).chosen(chosen.choices);
        let (state, mut report) = iterate::run(&solver, &options, job)?;
        if let Some(held_out) = held_out.as_ref().filter(|_| job.baselines) {
            report.compare_with(held_out.baselines(data));
            report.notes.extend(held_out.note());
        }
        fitting::note_fallbacks(&mut report, "row solves", state.fallbacks);
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
