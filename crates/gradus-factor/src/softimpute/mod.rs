//! Matrix completion with the nuclear norm.
//!
//! | file | what lives there |
//! |---|---|
//! | `solve.rs` | an iteration: sweeps of ridge regressions, balanced factors, new directions |
//! | `balance.rs` | factors turned into those of the singular value decomposition |
//! | `gap.rs` | the residual matrix, its largest singular values, the duality gap |
//! | `path.rs` | the strength that was left out: a path of strengths, evaluated on held-out ratings |

mod balance;
mod gap;
mod path;
mod solve;

use crate::als::solve::Plan;
use crate::baseline::Components;
use crate::fitting::{self, Iterative, Stopping};
use crate::half::Method;
use crate::latent::{LatentFactors, Normalised, Normalize, Scaling};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_core::report::Certificate;
use gradus_data::Ratings;

gradus_core::params! { [crate::parameters::shared]
    /// Matrix completion with the nuclear norm (soft-impute): the rank is found, not given.
    ///
    /// The model is `r̂ = α + β_u + β_i + x_ui`: a mean, a bias for each user and each item, and a matrix `X` of low
    /// rank. The fit minimises
    ///
    /// `½ Σ w (r − r̂)² + τ ‖X‖_* + ½ d_u Σ_u β_u² + ½ d_i Σ_i β_i²`
    ///
    /// over the ratings that are there. The nuclear norm `‖X‖_*` is the sum of the singular values; it makes all but some
    /// of them 0. The problem is convex: there is one optimal value, and the fit says how far it is from it at most (the
    /// duality gap, a share of the objective). `τ = λσ`, where `σ` is the standard deviation of the noise about the biases
    /// and λ the `regularization`; `d_u`, `d_i` are estimated from the data (see `bias`). So the result does not depend on
    /// the scale of the ratings.
    ///
    /// Since `‖X‖_* = min ½‖U‖² + ½‖V‖²` over all `X = U Vᵀ`, the fit alternates ridge regressions for the items and the
    /// users, biases included. After each sweep the factors are turned into those of the singular value decomposition,
    /// which lowers the penalty and leaves `X` as it is. An iteration is a sweep or two; then the largest singular values of
    /// the matrix of residuals are computed, and each that is above τ brings a factor in. None above τ means that the
    /// solution is optimal. The objective never rises. The result does not depend on the number of threads.
    ///
    /// Cost of an iteration: `4 n k²` operations for `n` ratings at rank `k`, and some 160 products of the sparse residuals
    /// with a vector. Nothing is as large as users × items.
    ///
    /// `als` has the same model with a penalty that grows with the number of ratings of a row (`scaling = sqrt`), and
    /// often predicts a little better; use `softimpute` for a solution that is certified, and for its rank.
    ///
    /// References: Mazumder, Hastie, Tibshirani: Spectral regularization algorithms for learning large incomplete matrices,
    /// 2010; Hastie, Mazumder, Lee, Zadeh: Matrix completion and low-rank SVD via fast alternating least squares, 2015.
    pub struct SoftImpute {
        /// Strength λ of the nuclear norm, in units of the standard deviation of the ratings about the biases. Left out, it
        /// is chosen on held-out ratings along a path of strengths, from the one at which the rank is 0 down, each
        /// fit starting from the one before. Of more than a million ratings the path is that of a sample of the users, and the
        /// strength found is multiplied by how much larger the spectral norm of pure noise is on all ratings than on the sample.
        #[schemars(range(min = 0.0))]
        pub regularization: Option<f32>,

        /// The largest rank. The fit finds the rank; where this is smaller, the result is a solution of this rank, and the
        /// duality gap says how much that costs. Left out, it is 256, or the rank at which a sweep takes 10¹¹ operations if
        /// that is less: 50 for ten million ratings. The report says if it is reached.
        #[schemars(range(min = 1, max = 4096))]
        pub max_rank: Option<usize>,

        [bias_regularization, biases, max_iter_of_one_start, tol, patience, clip, keep_history],

        /// Seed of the random numbers: of what is held out to choose the strength, and of the singular vectors.
        pub seed: u64,
    }
}

impl Default for SoftImpute {
    fn default() -> Self {
        Self {
            regularization: None,
            max_rank: None,
            bias_regularization: None,
            biases: true,
            max_iter: 100,
            tol: 1e-5,
            patience: 5,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for SoftImpute {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[
            ("regularization", self.regularization),
            ("bias_regularization", self.bias_regularization),
        ])
    }
}

impl SoftImpute {
    /// The largest rank of a fit to this many ratings.
    fn largest_rank(&self, ratings: usize) -> usize {
        let affordable = (SWEEP / (4.0 * ratings.max(1) as f64)).sqrt() as usize;
        self.max_rank.unwrap_or(affordable.clamp(1, LARGEST_RANK))
    }

    fn plan(&self, regularization: f32, components: &Components, ratings: usize) -> Plan {
        let Self { bias_regularization, biases, clip, keep_history, seed, .. } = *self;
        Plan {
            model: Self::NAME,
            rank: self.largest_rank(ratings),
            rule: components.rule(regularization, bias_regularization, Scaling::None, biases),
            unit: components.noise,
            method: Method::Cholesky,
            clip,
            keep_history,
            seed,
        }
    }
}

impl Iterative for SoftImpute {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, patience, seed, .. } = *self;
        Stopping { max_iter, tol, patience, restarts: 1, seed }
    }
}

impl Fit for SoftImpute {
    const NAME: &'static str = "softimpute";
    const CLASS: &'static str = "SoftImpute";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits { warm_path: true, ..Traits::UPDATING_RECOMMENDER };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = fitting::begin(self, data)?;
        let (regularization, choices) = path::choose(self, data, job)?;
        let input = Normalised::new(Normalize::None, data);
        let components = Components::estimate(data, self.biases, &job.stop);
        let plan = self.plan(regularization, &components, data.len());
        let solver = solve::Completion::new(plan, &input, job.validation, job.warm_model())?;
        let (state, mut report) = fitting::run(self, &solver, (started, choices), data, job)?;
        fitting::note_fallbacks(&mut report, "row solves", state.als.fallbacks);
        report.certificate = solver.certificate(&state)?.map(|gap| Certificate {
            name: "duality gap, a share of the objective".into(),
            value: gap,
            tolerance: GAP,
        });
        report.notes.extend(solver.notes(&state));
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// The largest rank by default, and the operations of a sweep at the largest rank by default.
const LARGEST_RANK: usize = 256;
const SWEEP: f64 = 1e11;
/// The duality gap, as a share of the objective, that a solution is to stay below. Solutions closer than this to the
/// best predict alike.
const GAP: f64 = 1e-2;

#[cfg(test)]
mod tests;
