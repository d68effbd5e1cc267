//! Newton directions from few samples.
//!
//! The matrix of a step is `D + Zᵀ H Z` over the samples of curvature `h_i`, with `z = (x, 1)` and
//! `D` the identity, or the penalty of the intercept. Where there are fewer such samples than
//! features, `(D + ZᵀHZ)⁻¹ g = D⁻¹ (g − Zᵀ y)` with `(H⁻¹ + Z D⁻¹ Zᵀ) y = Z D⁻¹ g` is cheaper. It
//! also keeps its digits where curvatures are so large that the identity is lost in `ZᵀHZ`: what
//! is left of `g` beside the samples is found by a difference, not by a pivot. A free intercept is
//! eliminated first, by centring the samples.

use super::problem::{Intercept, Problem};
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
