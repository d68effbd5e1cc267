//! Which solver a linear machine is given by default.

use super::Solver;
use super::newton::FORMED;
use gradus_core::data::Matrix;

/// The solver for features of this shape and density.
pub(super) fn choose(features: &Matrix, squared: bool) -> Solver {
    let (n, d) = features.shape();
    let small = n.min(d);
    if small > FORMED {
        return Solver::Dual;
    }
    let _ = squared;
    Solver::Primal
}
