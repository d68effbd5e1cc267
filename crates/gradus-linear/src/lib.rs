//! Linear models: regression, classification, and the margins between.
//!
//! | module | what lives there |
//! |---|---|
//! | `design.rs` | the features as solvers see them: centred and scaled without being copied, with deterministic parallel products |
//! | `model.rs` | [`LinearModel`], what all but kernel machines learn |
//! | `squares.rs` | least squares: normal equations, orthogonal triangle, conjugate gradients |
//! | `linear/` | [`Linear`]: least squares with its inference, and losses that gross errors do not move |
//! | `logistic/` | [`Logistic`]: two classes or more, with L2, L1 or both |
//! | `ridge/` | [`Ridge`] with the leave-one-out error of a whole path |

mod design;
mod fitting;
mod linear;
mod logistic;
mod model;
mod ridge;
mod squares;
#[cfg(test)]
mod testing;

pub use linear::{Linear, Loss};
pub use logistic::{ClassWeight, Logistic, LogisticSolver};
pub use model::{Column, LinearModel, Link};
pub use ridge::Ridge;
