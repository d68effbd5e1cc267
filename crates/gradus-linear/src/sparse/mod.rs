//! Lasso and elastic net: one solver for one penalty, a path of them, and cross-validation.

mod anderson;
pub(crate) mod fit;
mod folds;
pub(crate) mod parameters;
pub(crate) mod path;
pub(crate) mod penalty;
mod positive;
pub(crate) mod problem;
mod quadratic;
mod residual;
pub(crate) mod solve;

pub use fit::{PenaltyRule, lambda_max};
pub use path::{Path, PathOptions, Validation, path};
pub(crate) use positive::non_negative;

#[cfg(test)]
mod tests;
