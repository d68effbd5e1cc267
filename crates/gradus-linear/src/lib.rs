//! Linear models: regression, classification, and the margins between.
//!
//! | module | what lives there |
//! |---|---|
//! | `design.rs` | the features as solvers see them: centred and scaled without being copied, with deterministic parallel products |
//! | `model.rs` | [`LinearModel`], what all but kernel machines learn |

mod design;
mod model;

pub use model::{Column, LinearModel, Link};
