//! Optimisers: losses, objectives, solvers, schedules, diagnostics.
//!
//! Everything works on one trait, [`Objective`]: a function of many numbers with its gradient. The
//! models of gradus implement it; a closure of your own becomes one with
//! [`objective::from_fn`]. Every run gives an [`Outcome`]: the point, the value, why it ended, and
//! its whole course.
//!
//! ```
//! use gradus_optim::{Lbfgs, Optimizer, objective};
//!
//! let f = objective::from_fn(
//!     2,
//!     |x| (x[0] - 1.0).powi(2) + 10.0 * (x[1] - x[0]).powi(2),
//!     |x, g| {
//!         g[0] = 2.0 * (x[0] - 1.0) - 20.0 * (x[1] - x[0]);
//!         g[1] = 20.0 * (x[1] - x[0]);
//!     },
//! );
//! let found = Lbfgs::new().minimize(&f, &[0.0, 0.0])?;
//! assert!(found.converged() && (found.x[1] - 1.0).abs() < 1e-6);
//! # Ok::<(), gradus_core::Error>(())
//! ```

pub mod control;
mod lbfgs;
pub mod line_search;
pub mod loss;
mod newton;
pub mod objective;
pub mod outcome;
pub mod problem;
pub mod vector;

pub use control::{Control, Iterate, Optimizer, Watch};
pub use lbfgs::Lbfgs;
pub use loss::Loss;
pub use newton::Newton;
pub use objective::{FiniteSum, Hessian, Objective};
pub use outcome::{Evaluations, Outcome, Reason, Trace, TracePoint};
