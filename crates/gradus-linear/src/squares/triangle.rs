//! Least squares by an orthogonal triangle, without squaring the condition of the features.

use crate::design::Design;
use crate::parallel;
use gradus_base::parallel::blocks;
use gradus_base::{Error, Result};
use gradus_data::Matrix;
use gradus_kernel::linalg;
use std::ops::Range;

/// Rows that become one triangle.
const ROWS: usize = 4096;

/// The smallest-norm solutions of a least squares problem, the norm being that of the coefficients
/// for the features as they were given.
pub(crate) struct MinimumNorm {
    /// One vector of coefficients for each target.
    pub(crate) coefficients: Vec<Vec<f64>>,
    /// The numerical rank.
    pub(crate) rank: usize,
    /// The diagonal of `(XᵀWX)⁺`.
    pub(crate) inverse_diagonal: Vec<f64>,
}

/// Solves for every target: of all best solutions the one whose coefficients are smallest in the units
/// of the features as they were given. Singular values of the design that rounding errors of the features
/// explain count as 0: the rank does not depend on those units if the design is scaled.
pub(crate) fn minimum_norm(design: &Design<'_>, targets: &[Vec<f64>]) -> Result<MinimumNorm> {
    let (n, d, t) = (design.n(), design.d(), targets.len());
    let width = d + t;
    // [X y] of a block of rows, each by the root of its weight.
    let formed = |rows: Range<usize>| {
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
    let blocks = blocks(n, ROWS.max(2 * width)).collect();
    let triangles = parallel::map(blocks, n * width * width, |rows: Range<usize>| {
        let n_rows = rows.len();
        (n_rows.min(width), linalg::qr_upper(n_rows, width, &formed(rows)))
    });
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
    // Centring leaves rounding errors in units of the mean: [1000, 1001] has three digits less than [0, 1].
    let offset = design.given_center().iter().zip(design.given_scale());
    let offset = offset.map(|(c, s)| (c / s).abs());
    // A column that is a small difference of others carries their rounding errors, enlarged when it is scaled.
    let noise = 64.0 * (n.max(d) as f64) * f64::EPSILON * offset.fold(1.0, f64::max);
    let least = svd.s.first().copied().unwrap_or_default() * noise;
    let rank = svd.s.iter().filter(|s| **s > least).count();
    // Along the singular vectors: w = S⁻¹ Uᵀ y.
    let along: Vec<Vec<f64>> = right
        .iter()
        .map(|y| {
            let along = |j: usize| (0..rows).map(|row| svd.u[row * k + j] * y[row]).sum::<f64>();
            (0..rank).map(|j| along(j) / svd.s[j]).collect()
        })
        .collect();
    let scale = design.given_scale();
    let unit = Units::new(&svd.v, k, rank, scale)?;
    let coefficients = along
        .iter()
        .map(|along| {
            let mut out = vec![0.0; d];
            for (j, by) in along.iter().enumerate() {
                (0..d).for_each(|i| out[i] += by * svd.v[i * k + j]);
            }
            unit.as_ref().map_or(out.clone(), |unit| unit.smallest(&out, along))
        })
        .collect();
    let inverse_diagonal =
        (0..d).map(|i| (0..rank).map(|j| (svd.v[i * k + j] / svd.s[j]).powi(2)).sum()).collect();
    Ok(MinimumNorm { coefficients, rank, inverse_diagonal })
}

/// Finds among the solutions for scaled features, `z = D x`, the one with the smallest `‖x‖`: of
/// `Vᵀ D x = w`, with the right singular vectors `V` of the scaled features.
///
/// The basis is taken apart by its singular values: normal equations would square the ratio of the
/// lengths `D`, and lengths of 0.001 and 1000 in one table are common.
struct Units {
    /// The lengths `D`, as shares of the largest.
    scale: Vec<f64>,
    basis: Basis,
    width: usize,
    /// The singular value decomposition of the basis, `features × width`.
    svd: linalg::Svd,
}

enum Basis {
    /// Solutions differ by `D⁻¹ V₂ c`, with the vectors `V₂` of the null space.
    Null,
    /// The smallest solution is in the range of `D V`.
    Range,
}

impl Units {
    /// `None` if there is one solution only, or all scales are the same.
    fn new(v: &[f64], k: usize, rank: usize, given: &[f64]) -> Result<Option<Self>> {
        let d = given.len();
        let largest = given.iter().copied().fold(0.0, f64::max);
        if rank == 0 || rank >= d || given.iter().all(|s| *s == largest) {
            return Ok(None);
        }
        let scale: Vec<f64> = given.iter().map(|s| s / largest).collect();
        // The smaller basis; of more features than rows the null space is not at hand.
        let null = k == d && d - rank <= rank;
        let (basis, first, width) =
            if null { (Basis::Null, rank, d - rank) } else { (Basis::Range, 0, rank) };
        let mut columns = Vec::with_capacity(d * width);
        for (i, scale) in scale.iter().enumerate() {
            let by = if null { 1.0 / scale } else { *scale };
            columns.extend((0..width).map(|j| v[i * k + first + j] * by));
        }
        if columns.iter().any(|x| !x.is_finite()) {
            return Ok(None);
        }
        Ok(Some(Self { scale, basis, width, svd: linalg::svd(d, width, &columns)? }))
    }

    /// The solution with the smallest `‖x‖`, as `z = D x`; `z` is another one and `along` its `w`.
    fn smallest(&self, z: &[f64], along: &[f64]) -> Vec<f64> {
        let width = self.width;
        let directions = || self.svd.u.chunks_exact(width);
        let times = |c: &[f64]| -> Vec<f64> {
            directions().map(|row| row.iter().zip(c).map(|(x, c)| x * c).sum()).collect()
        };
        let mut x: Vec<f64>;
        match self.basis {
            Basis::Null => {
                x = z.iter().zip(&self.scale).map(|(z, s)| z / s).collect();
                // Twice is enough: the second time takes off what rounding left.
                for _ in 0..2 {
                    let mut c = vec![0.0; width];
                    for (row, x) in directions().zip(&x) {
                        c.iter_mut().zip(row).for_each(|(c, u)| *c += u * x);
                    }
                    x.iter_mut().zip(times(&c)).for_each(|(x, off)| *x -= off);
                }
            }
            Basis::Range => {
                let c: Vec<f64> = (0..width)
                    .map(|j| {
                        let part = |i: usize| self.svd.v[i * width + j] * along[i];
                        (0..width).map(part).sum::<f64>() / self.svd.s[j]
                    })
                    .collect();
                x = times(&c);
            }
        }
        let out: Vec<f64> = x.iter().zip(&self.scale).map(|(x, s)| x * s).collect();
        // Lengths that differ by more than double precision resolves: another solution has to do.
        if out.iter().all(|x| x.is_finite()) { out } else { z.to_vec() }
    }
}
