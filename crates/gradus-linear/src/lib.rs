//! Linear models: regression, classification, and the margins between.
//!
//! | module | what lives there |
//! |---|---|
//! | `design.rs` | the features as solvers see them: centred and scaled without being copied, with deterministic parallel products |
//! | `lasso.rs`, `elasticnet.rs` | the estimators [`Lasso`] and [`ElasticNet`] |
//! | `sparse/` | their solver, [paths](path) of penalties, cross-validation |
//! | `model.rs` | [`LinearModel`], what all but kernel machines learn |

mod design;
mod elasticnet;
mod lasso;
mod model;
mod sparse;

/// Paths of lasso and elastic net: the coefficients for one penalty after another.
pub mod path {
    pub use crate::sparse::{Path, PathOptions, Validation, lambda_max, path};
}

pub use elasticnet::ElasticNet;
pub use lasso::Lasso;
pub use sparse::Rule;

pub use model::{Column, LinearModel, Link};
