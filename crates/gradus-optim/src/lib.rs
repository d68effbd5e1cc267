//! Optimisers: losses, objectives, solvers, schedules, diagnostics.
//!
//! Everything works on one trait, [`Objective`]: a function of many numbers with its gradient. The
//! models of gradus implement it; a closure of your own becomes one with
//! [`objective::from_fn`]. Every run returns an [`Outcome`]: the point, the value, why it ended, and
//! its trace.
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
//! # Ok::<(), gradus_base::Error>(())
//! ```
//!
//! | what | where |
//! |---|---|
//! | smooth functions | [`Lbfgs`], [`Newton`], [`Descent`] (gd, momentum, Nesterov, AdaGrad, RMSProp, Adam, AdamW) |
//! | means over many samples | [`Stochastic`] |
//! | functions with kinks | [`Subgradient`]; [`Proximal`] where the kinks are a simple penalty |
//! | constraints | [`Projected`] onto a [`project::Set`]; [`penalty::PenaltyMethod`] for any others |
//! | a coordinate at a time | [`Coordinate`] |
//! | many minima | [`MultiStart`] |
//! | steps and their lengths | [`step::UpdateRule`], [`Schedule`], [`line_search`] |
//! | checks of gradients, optimality, rates, convexity | [`diagnose`] |
//! | losses of predictions | [`Loss`] |
//! | test functions | [`problem`] |

mod adversarial;
pub mod control;
mod coordinate;
mod descent;
pub mod diagnose;
mod lbfgs;
pub mod line_search;
pub mod loss;
mod multistart;
mod newton;
pub mod objective;
pub mod outcome;
pub mod penalty;
pub mod problem;
pub mod project;
pub mod proximal;
pub mod schedule;
pub mod step;
mod stochastic;
mod subgradient;
pub mod vector;

pub use adversarial::AdversarialNorm;
pub use control::{Callback, Control, Iterate, Optimizer};
pub use coordinate::{Coordinate, CoordinateWise, Order};
pub use descent::{Descent, StepSize};
pub use lbfgs::Lbfgs;
pub use loss::Loss;
pub use multistart::{MultiOutcome, MultiStart};
pub use newton::Newton;
pub use objective::{FiniteSum, Hessian, Objective};
pub use outcome::{Evaluations, Outcome, Reason, Trace, TracePoint};
pub use proximal::{Projected, Proximal};
pub use schedule::Schedule;
pub use step::{Stepper, UpdateRule};
pub use stochastic::Stochastic;
pub use subgradient::Subgradient;
