//! The default solver of a linear machine.
//!
//! Newton steps cost the cube of the features, or of the samples where these are fewer (see
//! `rowspace.rs`), and need a few dozen steps whatever the cost `C`. Coordinates of the dual cost the
//! number of entries for a pass, and need the more passes the larger `C` is. So the primal is the
//! choice as long as a matrix of second derivatives is small, and the dual elsewhere: the primal by
//! conjugate gradients, which forms no matrix, is the slower one on text and on dense features that
//! outnumber the samples. `bench/run svmgrid` measures both over a grid of shapes.

use super::SvmSolver;
use super::newton::FORMED;
use gradus_data::Matrix;

/// The solver for features of this shape.
pub(super) fn choose(features: &Matrix) -> SvmSolver {
    let (n, d) = features.shape();
    // Products of all samples with each other cost more than the passes of the dual where rows are
    // long: 500 × 5,000 took .23 s by the primal and .10 s by the dual.
    let wide = n < d && n * d > 1 << 20;
    if n.min(d) <= FORMED && !wide { SvmSolver::Primal } else { SvmSolver::Dual }
}
