//! Newton steps in the primal: their direction, from features or from samples, and their length.
//!
//! The matrix of a step is `D + Zᵀ H Z` over the samples of curvature `h_i`, with `z = (x, 1)` and
//! `D` the identity, or the penalty of the intercept. Where there are fewer such samples than
//! features, `(D + ZᵀHZ)⁻¹ g = D⁻¹ (g − Zᵀ y)` with `(H⁻¹ + Z D⁻¹ Zᵀ) y = Z D⁻¹ g` is cheaper. It
//! also keeps its digits where curvatures are so large that the identity is lost in `ZᵀHZ`: what
//! is left of `g` beside the samples is found by a difference, not by a pivot. A free intercept is
//! eliminated first, by centring the samples.

use super::problem::{Intercept, Problem, squared_norm};
use crate::parallel;
use gradus_data::Matrix;
use gradus_kernel::{Level, dense, solve_semidefinite};

/// Turns `g` (the intercept last, 0 if it is free) into the direction, for the samples `rows` of
/// curvature `h`.
pub(super) fn from_samples(problem: &Problem<'_>, rows: &[u32], h: &[f64], g: &mut [f64]) {
    let (d, m, level) = (problem.design.d(), rows.len(), Level::best());
    if m == 0 {
        match problem.intercept {
            Intercept::Penalized => g[d] /= problem.q(),
            Intercept::Free | Intercept::Absent => g[d] = 0.0,
        }
        return;
    }
    let mut x = gathered(problem, rows);
    let mut mean = vec![0.0; d];
    if problem.intercept == Intercept::Free {
        let total: f64 = h.iter().sum();
        for (x, h) in x.chunks_exact(d).zip(h) {
            dense::add_scaled(level, h / total, x, &mut mean);
        }
        x.chunks_exact_mut(d).for_each(|x| dense::add_scaled(level, -1.0, &mean, x));
    }
    let one = if problem.intercept == Intercept::Penalized { 1.0 / problem.q() } else { 0.0 };
    let mut matrix = vec![0.0; m * m];
    let fill = |(i, row): (usize, &mut [f64])| {
        dense::dots(level, &x[i * d..], &x[i * d..(i + 1) * d], &mut row[i..]);
        row[i..].iter_mut().for_each(|k| *k += one);
        row[i] += 1.0 / h[i];
    };
    parallel::each(matrix.chunks_exact_mut(m).enumerate().collect(), m * m * d, fill);
    let mut y = vec![0.0; m];
    dense::dots(level, &x, &g[..d], &mut y);
    y.iter_mut().for_each(|y| *y += one * g[d]);
    solve_semidefinite(m, &mut matrix, &mut y);
    for (x, y) in x.chunks_exact(d).zip(&y) {
        dense::add_scaled(level, -y, x, &mut g[..d]);
    }
    g[d] = match problem.intercept {
        Intercept::Absent => 0.0,
        Intercept::Penalized => one * (g[d] - y.iter().sum::<f64>()),
        Intercept::Free => -dense::dot(level, &mean, &g[..d]),
    };
}

/// Turns `g` (the intercept last) into the direction, for the upper triangle of `ZᵀHZ`.
pub(super) fn from_features(problem: &Problem<'_>, mut matrix: Vec<f64>, g: &mut [f64]) {
    let d = problem.design.d();
    let size = d + 1;
    for i in 0..d {
        matrix[i * size + i] += 1.0;
    }
    match problem.intercept {
        Intercept::Penalized => matrix[d * size + d] += problem.q(),
        Intercept::Free => {}
        Intercept::Absent => {
            (0..d).for_each(|i| matrix[i * size + d] = 0.0);
            matrix[d * size + d] = 1.0;
        }
    }
    solve_semidefinite(size, &mut matrix, g);
}

/// The objective along a direction from a point: the penalty is a parabola, and the losses come from
/// a function.
pub(super) struct Along<F> {
    linear: f64,
    square: f64,
    losses: F,
}

impl<F: Fn(f64) -> [f64; 2]> Along<F> {
    /// `losses` gives the first and second derivative of the losses by the length of the step.
    pub(super) fn new(
        problem: &Problem<'_>,
        (w, b): (&[f64], f64),
        direction: &[f64],
        losses: F,
    ) -> Self {
        let d = w.len();
        let mut linear: f64 = w.iter().zip(direction).map(|(w, d)| w * d).sum();
        let mut square = squared_norm(&direction[..d]);
        linear += problem.q() * b * direction[d];
        square += problem.q() * direction[d] * direction[d];
        Self { linear, square, losses }
    }

    /// The first and second derivative at a length `t`.
    pub(super) fn slope(&self, t: f64) -> (f64, f64) {
        let [slope, curvature] = (self.losses)(t);
        (slope + self.linear + t * self.square, curvature + self.square)
    }

    /// The length at which the slope is below `tol` times `first`, the slope at 0: Newton's method,
    /// with bisection where it leaves the bracket.
    pub(super) fn lowest(&self, first: f64, tol: f64, max_iter: usize) -> f64 {
        let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..max_iter {
            let (slope, curvature) = self.slope(t);
            if slope.abs() <= tol * first.abs() {
                break;
            }
            if slope < 0.0 {
                low = t;
            } else {
                high = t;
            }
            let next = t - slope / curvature;
            let next = if next > low && next < high {
                next
            } else if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * low
            };
            if !next.is_finite() || (next - t).abs() <= 1e-12 * t {
                break;
            }
            t = next;
        }
        t
    }
}

/// The samples as the design has them, one after another.
fn gathered(problem: &Problem<'_>, rows: &[u32]) -> Vec<f64> {
    let design = problem.design;
    let (d, center, scale) = (design.d(), design.center(), design.scale());
    let mut gathered = vec![0.0; rows.len() * d];
    for (to, &row) in gathered.chunks_exact_mut(d).zip(rows) {
        match design.matrix() {
            Matrix::Dense(x) => to.copy_from_slice(x.row(row as usize)),
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row as usize);
                columns.iter().zip(values).for_each(|(&j, x)| to[j as usize] = *x);
            }
        }
        for ((x, c), s) in to.iter_mut().zip(center).zip(scale) {
            *x = (*x - c) / s;
        }
    }
    gathered
}
