//! Support vector regression.

use super::{Kernel, Score, SvmModel, SvmSolver, fit_machines, learn, problem};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_core::predict::Predict as _;
use gradus_data::Samples;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

gradus_core::params! { [crate::svm::parameters::shared]
    /// Support vector regression: numbers by a tube that most samples lie in, linear or with a kernel.
    ///
    /// `½‖w‖² + C Σ_i s_i ℓ(y_i − f(x_i))` is minimised, for `f(x) = w·x + b`, the weight
    /// `s_i` of a sample, and the loss `ℓ(e) = max(0, |e| − ε)` or its square. Errors below ε cost
    /// nothing; the loss of larger ones is linear, unless squared, so that outliers have little influence.
    /// Samples on the tube or outside are the support vectors. Several targets have a machine each.
    ///
    /// Solvers and certificates are those of `svm`: Newton steps in the primal, one
    /// sample after another in the dual, pairs of samples for kernels. The intercept is not penalised
    /// unless `penalize_intercept` asks for it. The result does not depend on the number of threads.
    ///
    /// For an estimate with standard errors, or the mean instead of something close to the median, use
    /// linear regression.
    ///
    /// References: Smola, Schölkopf: A tutorial on support vector regression, 2004. Ho, Lin: Large-scale
    /// linear support vector regression, 2012.
    ///
    /// ```
    /// use gradus_data::{Dense, Samples};
    /// use gradus_core::estimator::Fit;
    /// use gradus_linear::Svr;
    /// let x = Dense::from_fn(20, 1, |row, _| row as f64);
    /// // A line, and one measurement gone wrong.
    /// let y = (0..20).map(|i| if i == 7 { 1000.0 } else { 3.0 * i as f64 + 1.0 }).collect();
    /// let fitted = Svr::new().c(10.0).epsilon(0.0).fit(&Samples::regression(x, y)?)?;
    /// assert!((fitted.linear().unwrap().coefficients()[(0, 0)] - 3.0).abs() < 1e-3);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Svr {
        /// The cost C of the losses against the flatness of the function, for the target in its own
        /// units. Left out, it is the standard deviation of the target, or 1 if the loss is squared:
        /// what C = 1 means for a target of deviation 1, so that the unit of the target does not matter.
        #[schemars(extend("exclusiveMinimum" = 0.0))]
        pub c: Option<f64>,

        /// Errors up to this cost nothing. In the units of the target. Left out, it is a tenth of the
        /// standard deviation of the target.
        #[schemars(range(min = 0.0))]
        pub epsilon: Option<f64>,

        /// The loss of an error beyond ε.
        pub loss: InsensitiveLoss,

        [kernel, gamma, degree, coef0, fit_intercept, penalize_intercept, standardize, cache, solver],

        /// Linear: end when the gap to the dual is below this share of the objective, by default 1e-6.
        /// Kernels: when no condition of optimality is violated by more than this, in the units of the
        /// target; by default about 1e-3 of its standard deviation.
        #[schemars(range(min = 0.0))]
        pub tol: Option<f64>,

        [max_iter],

        /// Seed of the random order in which samples are visited.
        pub seed: u64,
    }
}

/// The loss of an error beyond ε.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsensitiveLoss {
    /// The part beyond ε: outliers have no more influence than other samples outside the tube.
    #[default]
    Insensitive,
    /// The square of that part: smooth, and faster to solve.
    SquaredInsensitive,
}

impl Default for Svr {
    fn default() -> Self {
        Self {
            c: None,
            epsilon: None,
            loss: InsensitiveLoss::Insensitive,
            kernel: Kernel::Linear,
            gamma: None,
            degree: 3,
            coef0: 0.0,
            fit_intercept: true,
            penalize_intercept: false,
            standardize: false,
            cache: 200,
            solver: SvmSolver::Auto,
            tol: None,
            max_iter: 10_000,
            seed: 0,
        }
    }
}

impl Params for Svr {
    fn check_together(&self) -> Result<()> {
        super::check_kernel(self.kernel, self.fit_intercept, self.standardize)
    }
}

impl Fit for Svr {
    const NAME: &'static str = "svr";
    const CLASS: &'static str = "Svr";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = SvmModel;
    const TRAITS: Traits = Traits { iterative: true, warm_start: true, ..Traits::REGRESSION };

    fn fit_job(&self, data: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let options = learn::Options {
            name: Self::NAME,
            c: self.c,
            loss: problem::Loss {
                classes: false,
                squared: self.loss == InsensitiveLoss::SquaredInsensitive,
                epsilon: 0.0,
            },
            epsilon: self.epsilon,
            l1: false,
            adversary: None,
            kernel: self.kernel,
            gamma: self.gamma,
            degree: self.degree,
            coef0: self.coef0,
            crammer_singer: false,
            balanced: false,
            fit_intercept: self.fit_intercept,
            penalize_intercept: self.penalize_intercept,
            standardize: self.standardize,
            cache: self.cache << 20,
            solver: self.solver,
            tol: self.tol,
            max_iter: self.max_iter,
            seed: self.seed,
        };
        let score = Score { metric: "rmse", higher_is_better: false, of: rmse };
        fit_machines(self, &options, data, job, score, |fit_loop| {
            learn::values(&options, data, job.warm_model(), &mut learn::Guided(fit_loop))
        })
    }
}

/// The root mean squared error, by weight, over all targets.
pub(super) fn rmse(model: &SvmModel, data: &Samples) -> Result<f64> {
    let (values, scores) = (data.values()?, model.scores(data.features())?);
    if values.n_cols() != scores.n_cols() {
        return Err(Error::Shape {
            what: "targets of the held-out data".into(),
            expected: scores.n_cols().to_string(),
            got: values.n_cols().to_string(),
        });
    }
    let (mut sum, mut total) = (0.0, 0.0);
    for (row, (y, f)) in values.rows().zip(scores.rows()).enumerate() {
        let weight = data.weights().map_or(1.0, |weights| weights[row]);
        total += weight * y.len() as f64;
        sum += weight * y.iter().zip(f).map(|(y, f)| (y - f) * (y - f)).sum::<f64>();
    }
    Ok(if total > 0.0 { (sum / total).sqrt() } else { 0.0 })
}
