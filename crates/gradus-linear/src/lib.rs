//! Linear models: regression, classification, and the margins between.
//!
//! | module | what lives there |
//! |---|---|
//! | `design.rs` | the features as solvers see them: centred and scaled without being copied, with deterministic parallel products |
//! | `model.rs` | [`LinearModel`], what all but kernel machines learn |
//! | `svm/` | [`Svm`] and [`Svr`], support vector machines |

mod design;
mod model;
mod svm;

pub use model::{Column, LinearModel, Link};
pub use svm::{
    ClassWeight, HingeLoss, InsensitiveLoss, Kernel, KernelFunction, KernelMachine, Machine,
    MultiClass, Solver, Support, Svm, SvmModel, Svr,
};
