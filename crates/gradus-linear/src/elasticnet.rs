//! Linear regression with a penalty on the absolute values and the squares of the coefficients.

use crate::LinearModel;
use crate::fitting::check_lambdas;
use crate::sparse::PenaltyRule;
use crate::sparse::fit::{self, SparseRegression, Spec};
use crate::sparse::path::PathOptions;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_data::Samples;

gradus_core::params! { [crate::sparse::parameters::shared]
    /// The elastic net: linear regression that leaves out features, and keeps correlated ones together.
    ///
    /// Minimises, with weights `w` that add up to `W`,
    ///
    /// `Σ w (y − b − x·β)² / 2W + λ (ρ ‖β‖₁ + (1 − ρ)/2 ‖β‖²)`.
    ///
    /// Coordinate descent moves one coefficient at a time to where it is best, `β_j ←
    /// S(x_j·r + ‖x_j‖² β_j, λρ) / (‖x_j‖² + λ(1 − ρ))` with the soft threshold `S`, on a
    /// working set of the features that a solution is likely to need; Anderson extrapolation leads long
    /// valleys to their end. Dense samples with up to some hundred features (some thousand on a path)
    /// are read once, for their Gram matrix, and passes then cost features². Otherwise a pass over all
    /// features costs as many operations as there are entries, and products between the features of the
    /// working set are kept along the path; a sparse matrix stays sparse, though it is centred. Features
    /// that a gap safe sphere rules out are not looked at again.
    ///
    /// The fit ends when the duality gap is small: the report's certificate is a proof of how far above
    /// the least objective the model can be. The result does not depend on the number of threads.
    ///
    /// Without `regularization`, a path of `n_lambdas` penalties (or of `lambdas`) is fitted, and
    /// `folds`-fold cross-validation chooses one; the model keeps the path and its errors. The path is
    /// made longer while the error still falls at its end. Features are then standardised unless
    /// `standardize` says otherwise, so that the choice does not depend on units. Samples are dealt out to
    /// folds by their content, so that the choice does not depend on their order. Several targets are
    /// fitted one by one.
    ///
    /// Use `lasso` for the fewest features, and `ridge` where all of them matter: with ρ = 0 this is
    /// ridge regression by a slower way, whose λ is half of this one (`ridge` minimises `… + λ ‖β‖²`).
    ///
    /// References: Friedman, Hastie, Tibshirani: Regularization paths for generalized linear models via
    /// coordinate descent, 2010. Ndiaye, Fercoq, Gramfort, Salmon: Gap safe screening rules for sparsity
    /// enforcing penalties, 2017. Massias, Gramfort, Salmon: Celer: a fast solver for the lasso with
    /// dual extrapolation, 2018. Bertrand, Massias: Anderson acceleration of coordinate descent, 2021.
    ///
    /// ```
    /// use gradus_data::{Dense, Samples};
    /// use gradus_core::estimator::Fit;
    /// use gradus_linear::ElasticNet;
    /// // Two equal features share what the lasso would give to one of them.
    /// let x = Dense::from_rows(&[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]);
    /// let samples = Samples::regression(x, vec![3.0, 5.0, 7.0, 9.0])?;
    /// let fitted = ElasticNet::new().regularization(0.1).tol(1e-12).fit(&samples)?;
    /// let w = fitted.coefficients().row(0);
    /// assert!((w[0] - w[1]).abs() < 1e-4 && w[0] > 0.9);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct ElasticNet {
        [regularization],

        /// The share ρ of the 1-norm in the penalty; scikit-learn's `l1_ratio`. 1 is the lasso, 0 is
        /// ridge regression with half of this λ.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub l1_ratio: f64,

        [fit_intercept],

        /// Whether each feature is divided by its standard deviation σ before it is penalised, and the
        /// square norm by that of the target, so that units do not matter: the penalty is then
        /// `λ (ρ ‖σβ‖₁ + (1 − ρ) / (2 σ_y) ‖σβ‖²)` (for ρ = 0 without the `σ_y`). The coefficients are those
        /// of the features as given. Left out, it is done where the penalty is chosen by
        /// cross-validation, and not where `regularization` is given.
        pub standardize: Option<bool>,

        [positive, max_iter, tol, folds, n_lambdas, lambdas, rule, seed],
    }
}

impl Default for ElasticNet {
    fn default() -> Self {
        Self {
            regularization: None,
            l1_ratio: 0.5,
            fit_intercept: true,
            standardize: None,
            positive: false,
            max_iter: 100_000,
            tol: 1e-6,
            folds: 5,
            n_lambdas: 100,
            lambdas: None,
            rule: PenaltyRule::Min,
            seed: 0,
        }
    }
}

impl Params for ElasticNet {
    fn check_together(&self) -> Result<()> {
        check_lambdas(self.regularization, self.lambdas.as_deref())
    }
}

impl Fit for ElasticNet {
    const NAME: &'static str = "elasticnet";
    const CLASS: &'static str = "ElasticNet";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = LinearModel;
    const TRAITS: Traits = Traits { iterative: true, warm_start: true, ..Traits::REGRESSION };

    fn fit_job(&self, data: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        fit::fit_job(self, data, job)
    }

    fn fit_path(
        chain: &[Self],
        data: &Samples,
        job: &Job<'_, Samples>,
    ) -> Option<Result<Vec<Fitted<Self>>>> {
        fit::fit_path(chain, data, job)
    }
}

impl SparseRegression for ElasticNet {
    fn spec(&self) -> Spec {
        let mut lambdas = self.lambdas.clone().unwrap_or_default();
        lambdas.sort_unstable_by(|a, b| b.total_cmp(a));
        Spec {
            regularization: self.regularization,
            options: PathOptions {
                l1_ratio: self.l1_ratio,
                fit_intercept: self.fit_intercept,
                standardize: self.standardize.unwrap_or(self.regularization.is_none()),
                positive: self.positive,
                lambdas,
                n_lambdas: self.n_lambdas,
                tol: self.tol,
                max_iter: self.max_iter,
                ..PathOptions::default()
            },
            folds: self.folds,
            rule: self.rule,
            seed: self.seed,
            unit: 1.0,
        }
    }
}
