//! The best approximation of rank one, by alternating power steps.

use super::matrix::Matrix;
use super::{Options, check};
use gradus_base::Result;
use gradus_base::random::Stream;

/// The best approximation of rank one, `A ≈ s u vᵀ`.
#[derive(Clone, Debug, PartialEq)]
pub struct RankOne {
    /// The left singular vector, of length 1.
    pub u: Vec<f64>,
    /// The largest singular value.
    pub s: f64,
    /// The right singular vector, of length 1.
    pub v: Vec<f64>,
    /// `‖A − s u vᵀ‖_F`, from `‖A‖_F² − s²`.
    pub error: f64,
    /// The squared error `‖A‖_F² − s²` after each step; it never rises.
    pub trace: Vec<f64>,
    /// Whether the tolerance was reached.
    pub converged: bool,
}

/// The largest singular value of a matrix and its vectors, by alternating power steps:
/// `u ← A v / ‖A v‖`, then `v ← Aᵀ u / ‖Aᵀ u‖`, each the exact minimum of `‖A − s u vᵀ‖_F` over one
/// side with the other fixed.
///
/// Done when a step raises `s` by less than `tol s` (`max_iter` steps at most; the error falls by
/// `(σ₂/σ₁)⁴` a step, so `truncated` is faster where the two are close).
///
/// Cost: two products with the matrix a step.
///
/// # Errors
/// If the matrix is empty, an entry is not finite, or an option is outside its range.
pub fn rank_one(matrix: &dyn Matrix, options: &Options) -> Result<RankOne> {
    let total = check(matrix, 1, options)?;
    let (m, n) = matrix.shape();
    let mut stream = Stream::new(options.seed, "svd.rank_one", 0);
    let mut v: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
    normalise(&mut v);
    let (mut u, mut s, mut trace, mut converged) = (vec![0.0; m], 0.0, Vec::new(), false);
    while !converged && trace.len() < options.max_iter {
        matrix.times(1, &v, &mut u);
        normalise(&mut u);
        matrix.transposed_times(1, &u, &mut v);
        let before = s;
        s = normalise(&mut v);
        // Rounding may lower it in the last digits.
        trace.push((total - s * s).max(0.0).min(trace.last().copied().unwrap_or(f64::INFINITY)));
        converged = s - before <= options.tol * s;
    }
    Ok(RankOne { u, s, v, error: (total - s * s).max(0.0).sqrt(), trace, converged })
}

/// Scales to length 1 and gives the length; a vector of zeros becomes the first axis.
fn normalise(x: &mut [f64]) -> f64 {
    let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    if norm > 0.0 {
        x.iter_mut().for_each(|x| *x /= norm);
    } else if let Some(first) = x.first_mut() {
        *first = 1.0;
    }
    norm
}
