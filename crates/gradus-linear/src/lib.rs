//! Linear models: regression, classification, and the margins between.
//!
//! | module | what lives there |
//! |---|---|
//! | `design.rs` | the features as solvers see them: centred and scaled without being copied, with deterministic parallel products |
//! | `lasso.rs`, `elasticnet.rs` | the estimators [`Lasso`] and [`ElasticNet`] |
//! | `sparse/` | their solver, [paths](path) of penalties, cross-validation |
//! | `constant.rs` | the baselines [`Constant`] and [`Majority`] |
//! | `adversarial/` | classifiers that learn against perturbations of their features |
//! | `conjugate.rs` | conjugate gradients, for least squares and Newton steps of many features |
//! | `parallel.rs` | small work on the caller's thread, large work on all |
//! | `model.rs` | [`LinearModel`], what all but kernel machines learn |
//! | `squares.rs` | least squares: normal equations, orthogonal triangle, conjugate gradients |
//! | `linear/` | [`Linear`]: least squares with its inference, and losses that gross errors do not move |
//! | `logistic/` | [`Logistic`]: two classes or more, with L2, L1 or both |
//! | `ridge/` | [`Ridge`] with the leave-one-out error of a whole path |
//! | `svm/` | [`Svm`] and [`Svr`], support vector machines |

mod adversarial;
mod conjugate;
mod constant;
mod design;
mod elasticnet;
mod fitting;
mod lasso;
mod linear;
mod logistic;
mod model;
mod moments;
mod parallel;
mod ridge;
mod sparse;
mod squares;
mod svm;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

/// Paths of lasso and elastic net: the coefficients for one penalty after another.
pub mod path {
    pub use crate::sparse::{Path, PathOptions, Validation, lambda_max, path};
}

pub use constant::{Constant, Majority};
pub use elasticnet::ElasticNet;
pub use gradus_optim::AdversarialNorm;
pub use lasso::Lasso;
pub use linear::{Linear, RegressionLoss};
pub use logistic::{ClassWeight, Logistic, LogisticSolver, PenalizedFit};
pub use model::{CoefficientStatistic, LinearModel, Link};
pub use ridge::Ridge;
pub use sparse::PenaltyRule;
pub use svm::{
    HingeLoss, InsensitiveLoss, Kernel, KernelFunction, KernelMachine, Machine, MultiClass,
    Support, Svm, SvmModel, SvmPenalty, SvmSolver, Svr,
};
