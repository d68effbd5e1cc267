//! Least squares by an orthogonal triangle, without squaring the condition of the features.

use crate::design::Design;
use gradus_core::data::Matrix;
use gradus_core::linalg;
use gradus_core::{Error, Result};
use rayon::prelude::*;

/// Rows that become one triangle.
const ROWS: usize = 4096;

/// The smallest-norm solutions of a least squares problem.
pub(crate) struct MinimumNorm {
    /// One vector of coefficients for each target.
    pub(crate) coefficients: Vec<Vec<f64>>,
    /// The numerical rank.
    pub(crate) rank: usize,
    /// The diagonal of `(XᵀWX)⁺`.
    pub(crate) inverse_diagonal: Vec<f64>,
}

/// Solves for every target: of all best solutions the one with the smallest norm. Singular values
/// below `rows · ε` of the largest count as 0.
pub(crate) fn minimum_norm(design: &Design<'_>, targets: &[Vec<f64>]) -> Result<MinimumNorm> {
    let (n, d, t) = (design.n(), design.d(), targets.len());
    let width = d + t;
    // [X y] of a block of rows, each by the root of its weight.
    let formed = |rows: std::ops::Range<usize>| {
        let mut block = vec![0.0; rows.len() * width];
        for (row, out) in rows.zip(block.chunks_exact_mut(width)) {
            match design.matrix() {
                Matrix::Dense(x) => out[..d].copy_from_slice(x.row(row)),
                Matrix::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    columns.iter().zip(values).for_each(|(&c, v)| out[c as usize] += v);
                }
            }
            for ((x, c), s) in out[..d].iter_mut().zip(design.center()).zip(design.scale()) {
                *x = (*x - c) / s;
            }
            for (at, y) in targets.iter().enumerate() {
                out[d + at] = y[row];
            }
            let root = design.weight(row).sqrt();
            out.iter_mut().for_each(|x| *x *= root);
        }
        block
    };
    let step = ROWS.max(2 * width);
    let starts: Vec<usize> = (0..n).step_by(step).collect();
    let triangles: Vec<(usize, Vec<f64>)> = starts
        .par_iter()
        .map(|&start| {
            let end = n.min(start + step);
            let block = formed(start..end);
            let rows = (end - start).min(width);
            (rows, linalg::qr_upper(end - start, width, &block))
        })
        .collect();
    // Triangle on triangle, in order.
    let mut rows = 0;
    let mut triangle: Vec<f64> = Vec::new();
    for (more, next) in triangles {
        triangle.extend(next);
        rows += more;
        triangle = linalg::qr_upper(rows, width, &triangle);
        rows = rows.min(width);
    }
    if triangle.iter().any(|x| !x.is_finite()) {
        return Err(Error::data("the features are too large: their products are not finite"));
    }
    let (mut r, mut right) = (Vec::with_capacity(rows * d), vec![vec![0.0; rows]; t]);
    for (row, line) in triangle.chunks_exact(width).enumerate() {
        r.extend_from_slice(&line[..d]);
        (0..t).for_each(|at| right[at][row] = line[d + at]);
    }
    let svd = linalg::svd(rows, d, &r)?;
    let k = svd.s.len();
    let least = svd.s.first().copied().unwrap_or_default() * (n.max(d) as f64) * f64::EPSILON;
    let rank = svd.s.iter().filter(|s| **s > least).count();
    let coefficients = right
        .iter()
        .map(|y| {
            let mut out = vec![0.0; d];
            for j in 0..rank {
                let along: f64 = (0..rows).map(|row| svd.u[row * k + j] * y[row]).sum();
                let by = along / svd.s[j];
                (0..d).for_each(|i| out[i] += by * svd.v[i * k + j]);
            }
            out
        })
        .collect();
    let inverse_diagonal =
        (0..d).map(|i| (0..rank).map(|j| (svd.v[i * k + j] / svd.s[j]).powi(2)).sum()).collect();
    Ok(MinimumNorm { coefficients, rank, inverse_diagonal })
}
