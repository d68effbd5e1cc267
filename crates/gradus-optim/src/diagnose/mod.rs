//! Looking at objectives and at runs: is the gradient right, is this a minimum, how fast should it
//! go and how fast did it go, is the function convex?

mod convexity;
mod gradient;
mod optimality;
mod rate;

pub use convexity::{Convexity, Witness, probe_convexity};
pub use gradient::{CoordinateCheck, GradientCheck, check_gradient, check_gradient_at};
pub use optimality::{Curvature, Optimality, Point, curvature, optimality};
pub use rate::{Rates, predicted_rate, rates, seen_rate};
