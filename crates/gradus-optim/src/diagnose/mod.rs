//! Diagnostics of objectives and runs: gradient check, optimality conditions, convergence rates,
//! convexity.

mod convexity;
mod gradient;
mod optimality;
mod rate;

pub use convexity::{Convexity, Witness, probe_convexity};
pub use gradient::{CoordinateCheck, GradientCheck, check_gradient, check_gradient_at};
pub use optimality::{Curvature, Optimality, Point, curvature, optimality};
pub use rate::{Rates, observed_rate, predicted_rate, rates};
