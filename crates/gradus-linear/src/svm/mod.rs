//! Support vector machines.
//!
//! | file | what it holds |
//! |---|---|
//! | `adversarial.rs` | squared hinge against perturbations of the features |
//! | `problem.rs` | the convex problem of a linear machine, its dual, the gap |
//! | `newton.rs` | squared losses in the primal: semismooth Newton |
//! | `multipliers.rs` | other losses in the primal: the method of multipliers |
//! | `dual.rs` | the dual one sample at a time |
//! | `subgradient.rs` | the primal by stochastic subgradients |
//! | `crammer.rs` | all classes at once |
//! | `kernel.rs` | kernel functions and rows of the kernel matrix |
//! | `gradient.rs` | the gradient of the scores of a kernel machine by the features |
//! | `smo.rs` | kernel machines by sequential minimal optimisation |
//! | `direction.rs` | Newton directions from few samples |
//! | `rowspace.rs` | fewer samples than features |
//! | `l1.rs` | squared hinge with an L1 penalty |
//! | `units.rs` | features and targets of unit size |
//! | `auto.rs` | which solver is the default |
//! | `learn.rs` | from samples to machines, for classes and numbers alike |
//! | `linear.rs`, `kernels.rs` | linear machines, kernel machines |
//! | `platt.rs` | probabilities from scores |
//! | `model.rs` | what is learned |
//! | `svr.rs` | [`Svr`], regression |

mod adversarial;
mod auto;
mod crammer;
mod direction;
mod dual;
mod gradient;
mod kernel;
mod kernels;
mod l1;
mod learn;
mod linear;
mod model;
mod multipliers;
mod newton;
pub(crate) mod parameters;
mod platt;
mod problem;
mod rowspace;
mod smo;
mod subgradient;
mod svr;
mod units;

use crate::adversarial::{Adversary, check_radius};
use crate::{ClassWeight, fitting};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions, LoopOutcome, OwnLoop};
use gradus_core::params::{self, Params};
use gradus_core::predict::Predict as _;
use gradus_data::Samples;
use gradus_optim::AdversarialNorm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

pub(crate) use dual::Prepared;
pub use kernel::{Kernel, KernelFunction};
pub use model::{KernelMachine, Machine, Support, SvmModel};
pub use svr::{InsensitiveLoss, Svr};

gradus_core::params! { [crate::svm::parameters::shared]
    /// Support vector machines: classes by the widest margin, linear or with a kernel.
    ///
    /// Two classes `y = ±1` are separated by the sign of `f(x) = w·x + b`, and
    ///
    /// `½‖w‖² + C Σ_i s_i ℓ(y_i f(x_i))`
    ///
    /// is minimised, with the weight `s_i` of a sample and the loss `ℓ(m) = max(0, 1 − m)`
    /// (`hinge`) or its square (`squared_hinge`). Samples whose margin `m` is not above 1 are the
    /// support vectors; `1 − m` is their slack. More classes are separated each from the rest, all at
    /// once (`crammer_singer`), or, with a kernel, in pairs that vote.
    ///
    /// The intercept is not penalised, unless `penalize_intercept` asks for it: then the objective is
    /// that of LIBLINEAR and `LinearSVC`, with `½b²` more. `crammer_singer` always penalises it.
    ///
    /// Linear machines take Newton steps in the primal (`primal`): with squared hinge each costs
    /// `O(a d²)` for `a` samples whose margin crossed 1 since the last, and `d³/6`; from 1024 features
    /// on, conjugate gradients of `O(nnz)` each. Hinge is smoothed around dual coefficients that follow
    /// (the method of multipliers), and `a` counts samples near their margin. With fewer samples than
    /// features both work in the space of the samples, after `O(n² d)` for its products. With many
    /// samples and many features one sample after another is visited in the dual (`dual`), `O(nnz)` for
    /// a pass over all. `subgradient` takes stochastic steps in the primal (Pegasos): quick to a rough
    /// answer, slow to an exact one. Kernel machines move two dual coefficients at a time (sequential
    /// minimal optimisation), `O(n)` for a step and `O(nnz)` for a row of the kernel matrix that memory
    /// no longer holds. The penalty `l1` visits one feature after another, `O(nnz)` for a pass.
    ///
    /// `adversarial` learns against perturbations of the features (adversarial training): a perturbation within the radius ε lowers
    /// a margin by `ε ‖u∘w‖*` at most, with the units `u` of the features and the dual norm, and each machine takes that off every
    /// margin: exact, and still convex. For linear machines with squared hinge, each class against the rest; solved by
    /// accelerated proximal gradients with Newton steps at the end.
    ///
    /// Features are brought to unit length inside, so that only `C` times their squared length says how
    /// hard a problem is; large costs are approached from smaller ones.
    ///
    /// The report ends with a certificate. Of linear machines it is the gap between the primal and the
    /// dual objective, as a share of the primal one: the objective is at most so far from the best. Of
    /// kernel machines it is the largest violation of the conditions of optimality; the gap is in the
    /// notes. The result does not depend on the number of threads.
    ///
    /// Margins are not probabilities: `probability` learns them from held-out margins, five more fits.
    /// If probabilities are what matters, use logistic regression.
    ///
    /// References: Cortes, Vapnik: Support-vector networks, 1995. Hsieh et al.: A dual coordinate descent
    /// method for large-scale linear SVM, 2008. Keerthi, DeCoste: A modified finite Newton method for
    /// fast solution of large scale linear SVMs, 2005. Fan, Chen, Lin: Working set selection using
    /// second order information, 2005. Crammer, Singer: On the algorithmic implementation of multiclass
    /// kernel-based vector machines, 2001. Platt: Probabilistic outputs for support vector machines, 1999.
    ///
    /// ```
    /// use gradus_data::{Dense, Id, Samples};
    /// use gradus_core::estimator::Fit;
    /// use gradus_linear::Svm;
    /// let x = Dense::from_rows(&[[0.0], [1.0], [3.0], [4.0]]);
    /// let samples = Samples::classification(x, ["no", "no", "yes", "yes"].map(Id::Text))?;
    /// let fitted = Svm::new().c(1e4).fit(&samples)?;
    /// // The margin is as wide as can be: from 1 to 3.
    /// let linear = fitted.linear().unwrap();
    /// assert!((linear.coefficients()[(0, 0)] - 1.0).abs() < 1e-3);
    /// assert!((linear.intercepts()[0] + 2.0).abs() < 1e-3);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Svm {
        /// The cost C of the losses against the width of the margin; more fits the samples closer. From
        /// a cost on that depends on the data the solution no longer changes: that of separable classes
        /// has no slack. 1.7e308 stands for infinity.
        #[schemars(extend("exclusiveMinimum" = 0.0))]
        pub c: f64,

        /// The loss of a margin below 1.
        pub loss: HingeLoss,

        /// The penalty on the coefficients of a linear machine.
        pub penalty: SvmPenalty,

        [kernel, gamma, degree, coef0],

        /// How linear machines separate more than two classes. Kernel machines compare them in pairs.
        pub multi_class: MultiClass,

        /// Weights of the classes, multiplied with the weights of the samples.
        pub class_weight: ClassWeight,

        [fit_intercept, penalize_intercept, standardize],

        /// Whether to learn probabilities, from the margins of samples left out of five more fits.
        pub probability: bool,

        /// Radius ε of perturbations to learn against, of linear machines: of images in units of pixels from 0 to 1, of tables
        /// in standard deviations of the features; 0 for none. The worst perturbation is known exactly.
        #[schemars(range(min = 0.0))]
        pub adversarial: f64,

        /// Norm of these perturbations.
        pub adversarial_norm: AdversarialNorm,

        [cache, solver],

        /// Linear: end when the gap to the dual is below this share of the objective, by default 1e-6.
        /// Kernels: when no condition of optimality is violated by more than this, by default 1e-3.
        #[schemars(range(min = 0.0))]
        pub tol: Option<f64>,

        [max_iter],

        /// Seed of the random order in which samples are visited, and of the parts for probabilities.
        pub seed: u64,
    }
}

/// The loss of a margin below 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HingeLoss {
    /// Squared hinge for linear machines, hinge for kernel machines.
    #[default]
    Auto,
    /// `1 − m`: fewer support vectors.
    Hinge,
    /// `(1 − m)²`: smooth, and faster to solve.
    SquaredHinge,
}

/// The penalty on the coefficients of a linear machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SvmPenalty {
    /// `½‖w‖²`: the widest margin.
    #[default]
    L2,
    /// `‖w‖₁`: few features. Squared hinge loss, by coordinate descent over the features.
    L1,
}

/// How a linear machine separates more than two classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MultiClass {
    /// A machine for each class against the rest.
    #[default]
    OneVsRest,
    /// One machine for all: the true class is to score 1 more than any other. Hinge loss, by the
    /// dual; the intercepts are penalised.
    CrammerSinger,
}

/// The solver of a linear machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SvmSolver {
    /// The primal if there are up to 1024 features, or samples and a million values; else the dual.
    #[default]
    Auto,
    /// Newton steps in the primal; losses that are not squared by the method of multipliers.
    Primal,
    /// One sample after another in the dual.
    Dual,
    /// Stochastic subgradients in the primal.
    Subgradient,
}

impl Default for Svm {
    fn default() -> Self {
        Self {
            c: 1.0,
            loss: HingeLoss::Auto,
            penalty: SvmPenalty::L2,
            kernel: Kernel::Linear,
            gamma: None,
            degree: 3,
            coef0: 0.0,
            multi_class: MultiClass::OneVsRest,
            class_weight: ClassWeight::None,
            fit_intercept: true,
            penalize_intercept: false,
            standardize: false,
            probability: false,
            adversarial: 0.0,
            adversarial_norm: AdversarialNorm::Linf,
            cache: 200,
            solver: SvmSolver::Auto,
            tol: None,
            max_iter: 10_000,
            seed: 0,
        }
    }
}

impl Params for Svm {
    fn check_together(&self) -> Result<()> {
        check_radius(self.adversarial)?;
        if self.adversarial > 0.0 {
            self.check_adversarial()?;
        }
        if self.kernel == Kernel::Linear {
            if self.multi_class == MultiClass::CrammerSinger
                && (self.loss == HingeLoss::SquaredHinge
                    || matches!(self.solver, SvmSolver::Primal | SvmSolver::Subgradient))
            {
                return Err(Error::parameter(
                    "multi_class",
                    "crammer_singer",
                    "has hinge loss and is solved by the dual",
                ));
            }
            if self.penalty == SvmPenalty::L1 {
                if self.multi_class == MultiClass::CrammerSinger {
                    return Err(Error::parameter(
                        "penalty",
                        "l1",
                        "is for machines of one class against the rest",
                    ));
                }
                if self.loss == HingeLoss::Hinge {
                    return Err(Error::parameter("penalty", "l1", "needs squared hinge loss"));
                }
                if self.solver != SvmSolver::Auto {
                    return Err(Error::parameter(
                        "solver",
                        params::record(self).get("solver").and_then(|s| s.as_str()).unwrap_or(""),
                        "must be auto with the penalty l1, which has a solver of its own",
                    ));
                }
            }
            return Ok(());
        }
        if self.penalty == SvmPenalty::L1 {
            return Err(Error::parameter("penalty", "l1", "is for linear machines"));
        }
        check_kernel(self.kernel, self.fit_intercept, self.standardize)
    }
}

impl Svm {
    /// Refuses what does not go together with perturbations.
    fn check_adversarial(&self) -> Result<()> {
        let rule = if self.kernel != Kernel::Linear {
            "is for linear machines, whose worst perturbation is known"
        } else if self.multi_class == MultiClass::CrammerSinger {
            "is for machines of one class against the rest"
        } else if self.loss == HingeLoss::Hinge {
            "needs squared hinge loss"
        } else if self.solver != SvmSolver::Auto {
            "has a solver of its own: `solver` must be auto"
        } else if self.penalty == SvmPenalty::L1 && self.penalize_intercept {
            "does not go together with the penalty l1 and `penalize_intercept`"
        } else {
            return Ok(());
        };
        Err(Error::parameter("adversarial", self.adversarial, rule))
    }

    fn squared(&self) -> bool {
        match self.loss {
            HingeLoss::Auto => {
                self.kernel == Kernel::Linear && self.multi_class == MultiClass::OneVsRest
            }
            HingeLoss::Hinge => false,
            HingeLoss::SquaredHinge => true,
        }
    }

    fn options(&self) -> learn::Options {
        learn::Options {
            name: Self::NAME,
            c: Some(self.c),
            loss: problem::Loss { classes: true, squared: self.squared(), epsilon: 0.0 },
            epsilon: Some(0.0),
            l1: self.penalty == SvmPenalty::L1,
            adversary: (self.adversarial > 0.0)
                .then_some(Adversary { radius: self.adversarial, norm: self.adversarial_norm }),
            kernel: self.kernel,
            gamma: self.gamma,
            degree: self.degree,
            coef0: self.coef0,
            crammer_singer: self.multi_class == MultiClass::CrammerSinger,
            balanced: self.class_weight == ClassWeight::Balanced,
            fit_intercept: self.fit_intercept,
            penalize_intercept: self.penalize_intercept,
            standardize: self.standardize,
            cache: self.cache << 20,
            solver: self.solver,
            tol: self.tol,
            max_iter: self.max_iter,
            seed: self.seed,
        }
    }
}

impl Fit for Svm {
    const NAME: &'static str = "svm";
    const CLASS: &'static str = "Svm";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = SvmModel;
    const TRAITS: Traits = Traits { iterative: true, warm_start: true, ..Traits::CLASSIFICATION };

    fn fit_job(&self, data: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let options = self.options();
        let score = Score { metric: "accuracy", higher_is_better: true, of: accuracy };
        fit_machines(self, &options, data, job, score, |fit_loop| {
            let (mut model, mut ending) =
                learn::classes(&options, data, job.warm_model(), &mut learn::Guided(fit_loop))?;
            if self.probability {
                let (sigmoids, caution) = platt::sigmoids(&options, data, &model, fit_loop)?;
                model.sigmoids = sigmoids;
                ending.notes.extend(caution);
            }
            Ok((model, ending))
        })
    }
}

/// Refuses parameters that kernel machines do not support.
fn check_kernel(kernel: Kernel, fit_intercept: bool, standardize: bool) -> Result<()> {
    if kernel == Kernel::Linear {
        return Ok(());
    }
    if !fit_intercept {
        return Err(Error::parameter(
            "fit_intercept",
            false,
            "machines of a kernel always have an intercept",
        ));
    }
    if kernel == Kernel::Precomputed && standardize {
        return Err(Error::parameter(
            "standardize",
            true,
            "values of a precomputed kernel are no features",
        ));
    }
    Ok(())
}

/// How a model is scored on validation data.
struct Score {
    metric: &'static str,
    higher_is_better: bool,
    of: fn(&SvmModel, &Samples) -> Result<f64>,
}

/// Checks parameters and data, runs `learn`, and scores the model on the validation data.
fn fit_machines<P: Fit<Data = Samples, Model = SvmModel>>(
    params: &P,
    options: &learn::Options,
    data: &Samples,
    job: &Job<'_, Samples>,
    score: Score,
    learn: impl FnOnce(&mut OwnLoop<'_>) -> Result<(SvmModel, LoopOutcome)>,
) -> Result<Fitted<P>> {
    let started = Instant::now();
    params.check()?;
    fitting::check_samples(P::NAME, data)?;
    fitting::check_held_out(data, job.validation)?;
    let rules = LoopOptions {
        higher_is_better: score.higher_is_better,
        tol: options.tol.unwrap_or_default(),
        ..fitting::loop_options(params, started, options.max_iter, options.seed, score.metric)
    };
    let (model, report) = iterate::own_loop(&rules, job, |fit_loop| {
        let (model, mut ending) = learn(fit_loop)?;
        ending.validation = job.validation.map(|data| (score.of)(&model, data)).transpose()?;
        Ok((model, ending))
    })?;
    Ok(Fitted { params: params.clone(), model, report })
}

/// The share of samples, by weight, whose class is predicted.
fn accuracy(model: &SvmModel, data: &Samples) -> Result<f64> {
    let (codes, labels) = data.classes()?;
    let own = model.outputs().labels();
    let predicted = model.classes(data.features())?;
    let (mut right, mut total) = (0.0, 0.0);
    for (row, (&code, &class)) in codes.iter().zip(&predicted).enumerate() {
        let weight = data.weights().map_or(1.0, |weights| weights[row]);
        let same = own.is_some_and(|own| own.get(class as usize) == labels.get(code as usize));
        total += weight;
        right += if same { weight } else { 0.0 };
    }
    Ok(if total > 0.0 { right / total } else { 0.0 })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_kernel;
#[cfg(test)]
mod tests_units;
