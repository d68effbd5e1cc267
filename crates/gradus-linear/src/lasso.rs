//! Linear regression with a penalty on the absolute values of the coefficients.

use crate::fitting::check_lambdas;
use crate::sparse::PenaltyRule;
use crate::sparse::fit::{self, SparseRegression, Spec};
use crate::{ElasticNet, LinearModel};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_data::Samples;

gradus_core::params! { [crate::sparse::parameters::shared]
    /// The lasso: linear regression that leaves out the features it can do without.
    ///
    /// Minimises, with weights `w` that add up to `W`,
    ///
    /// `Σ w (y − b − x·β)² / 2W + λ ‖β‖₁`.
    ///
    /// Coordinate descent moves one coefficient at a time to where it is best, `β_j ←
    /// S(x_j·r + ‖x_j‖² β_j, λ) / ‖x_j‖²` with the soft threshold `S`, on a
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
    /// Use `elasticnet` where features are strongly correlated: the lasso then picks one of a group as
    /// chance has it. Use `ridge` where all features matter.
    ///
    /// References: Friedman, Hastie, Tibshirani: Regularization paths for generalized linear models via
    /// coordinate descent, 2010. Ndiaye, Fercoq, Gramfort, Salmon: Gap safe screening rules for sparsity
    /// enforcing penalties, 2017. Massias, Gramfort, Salmon: Celer: a fast solver for the lasso with
    /// dual extrapolation, 2018. Bertrand, Massias: Anderson acceleration of coordinate descent, 2021.
    ///
    /// ```
    /// use gradus_data::{Dense, Samples};
    /// use gradus_core::estimator::Fit;
    /// use gradus_linear::Lasso;
    /// // y = 2 x₁ + 1; the second feature has no part in it.
    /// let x = Dense::from_rows(&[[1.0, 1.0], [2.0, -1.0], [3.0, -1.0], [4.0, 1.0]]);
    /// let samples = Samples::regression(x, vec![3.0, 5.0, 7.0, 9.0])?;
    /// let fitted = Lasso::new().regularization(0.1).fit(&samples)?;
    /// let w = fitted.coefficients().row(0);
    /// assert!((w[0] - (2.0 - 0.1 / 1.25)).abs() < 1e-6 && w[1] == 0.0);
    /// assert!(fitted.report.certificate.as_ref().unwrap().holds());
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Lasso {
        [regularization, fit_intercept],

        /// Whether each feature is divided by its standard deviation before it is penalised, so that
        /// its unit does not matter. The coefficients are those of the features as given. Left out, it
        /// is done where the penalty is chosen by cross-validation, and not where `regularization` is
        /// given.
        pub standardize: Option<bool>,

        [positive, max_iter, tol, folds, n_lambdas, lambdas, rule, seed],
    }
}

impl Default for Lasso {
    fn default() -> Self {
        Self {
            regularization: None,
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

impl Params for Lasso {
    fn check_together(&self) -> Result<()> {
        check_lambdas(self.regularization, self.lambdas.as_deref())
    }
}

impl Fit for Lasso {
    const NAME: &'static str = "lasso";
    const CLASS: &'static str = "Lasso";
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

impl SparseRegression for Lasso {
    /// The lasso is the elastic net with ρ = 1.
    fn spec(&self) -> Spec {
        let net = ElasticNet {
            regularization: self.regularization,
            l1_ratio: 1.0,
            fit_intercept: self.fit_intercept,
            standardize: self.standardize,
            positive: self.positive,
            max_iter: self.max_iter,
            tol: self.tol,
            folds: self.folds,
            n_lambdas: self.n_lambdas,
            lambdas: self.lambdas.clone(),
            rule: self.rule,
            seed: self.seed,
        };
        net.spec()
    }
}
