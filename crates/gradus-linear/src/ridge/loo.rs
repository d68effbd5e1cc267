//! The leave-one-out error of every penalty from one factorisation.
//!
//! Leaving out a sample changes its residual from `r` to `r / (1 − h)`, where `h` is its leverage:
//! how much its own target counts in its prediction. Weights that are all whole numbers are counts: of
//! a sample that counts 3 one is left out, as of three samples that are alike. Others say how much a
//! sample is to be trusted, and it is left out as a whole.

// Several arrays share the index of a row or a penalty.
#![allow(clippy::needless_range_loop)]

use crate::design::Design;
use crate::parallel;
use crate::squares::Spectrum;
use gradus_base::parallel::blocks;
use gradus_data::Matrix;
use gradus_kernel::linalg::{self, Eigen};
use std::ops::Range;

/// Rows in a block.
const ROWS: usize = 512;

/// Penalties to try: at equal ratios, from one that shrinks everything to one that shrinks nothing.
pub(super) fn grid(largest: f64, total: f64, count: usize) -> Vec<f64> {
    let top = 10.0 * if largest > 0.0 { largest / (2.0 * total) } else { 1.0 };
    let step = |at: usize| at as f64 / (count - 1) as f64;
    (0..count).map(|at| top * 10f64.powf(-8.0 * step(at))).collect()
}

/// Penalties that go on from the last of these by the same ratio, four powers of ten more; none where
/// the last is nothing beside `size`, the largest eigenvalue in units of λ.
pub(super) fn further(lambdas: &[f64], size: f64) -> Vec<f64> {
    let &[.., before, last] = lambdas else { return Vec::new() };
    if !(last > 1e-16 * size && before > last) {
        return Vec::new();
    }
    let ratio = last / before;
    let mut next = vec![last * ratio];
    while next[next.len() - 1] > 1e-4 * last && next.len() < lambdas.len() {
        next.push(next[next.len() - 1] * ratio);
    }
    next
}

/// Whether the error is least for the last penalty.
pub(super) fn is_falling(errors: &[f64]) -> bool {
    let Some(&last) = errors.last() else { return false };
    errors.len() > 1 && errors[..errors.len() - 1].iter().all(|error| *error > last)
}

/// The best of them, the strongest of equals, and a note that says so.
pub(super) fn choose(lambdas: &[f64], scores: &[f64]) -> (usize, Vec<String>) {
    let best =
        (0..scores.len()).min_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or_default();
    let mut notes = vec![format!(
        "regularization {:.6e} chosen out of {} by the leave-one-out error, RMSE {:.6}",
        lambdas[best],
        lambdas.len(),
        scores[best].sqrt()
    )];
    if best + 1 == lambdas.len() && lambdas.len() > 1 {
        notes.push(
            "the weakest penalty tried was the best: plain least squares may do as well".into(),
        );
    }
    (best, notes)
}

/// The share of each sample that is left out.
fn shares(design: &Design<'_>) -> Vec<f64> {
    let weights: Vec<f64> = (0..design.n()).map(|row| design.weight(row)).collect();
    let counts = weights.iter().all(|weight| weight.fract() == 0.0);
    weights.iter().map(|weight| if counts && *weight > 1.0 { 1.0 / weight } else { 1.0 }).collect()
}

/// Mean squared leave-one-out errors, from the eigenvectors of `XᵀWX`; `turned` holds `XᵀWy` of the
/// targets along them.
pub(super) fn by_features(
    design: &Design<'_>,
    spectrum: &Spectrum,
    (targets, turned): (&[Vec<f64>], &[Vec<f64>]),
    lambdas: &[f64],
    intercept: bool,
) -> Vec<f64> {
    let (n, d, l) = (design.n(), design.d(), lambdas.len());
    let total = design.total();
    let values = &spectrum.eigen.values;
    let inverse = |j: usize, lambda: f64| {
        let size = values[j].max(0.0) + 2.0 * total * lambda;
        if size > 0.0 { 1.0 / size } else { 0.0 }
    };
    // d × l: 1 / (e + μ), and the same times the target along the eigenvector.
    let shrink: Vec<f64> = (0..d * l).map(|at| inverse(at / l, lambdas[at % l])).collect();
    let along: Vec<Vec<f64>> = turned
        .iter()
        .map(|right| (0..d * l).map(|at| right[at / l] * shrink[at]).collect())
        .collect();
    // Eigenvectors as columns.
    let mut vectors = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..d {
            vectors[j * d + i] = spectrum.eigen.vectors[i * d + j];
        }
    }
    let shares = shares(design);
    let blocks = blocks(n, ROWS).collect();
    let parts = parallel::map(blocks, n * d * (d + l), |rows: Range<usize>| {
        let Range { start, end } = rows;
        let mut z = vec![0.0; (end - start) * d];
        for (row, out) in (start..end).zip(z.chunks_exact_mut(d)) {
            formed(design, row, out);
        }
        let turned = linalg::product(end - start, d, d, &z, &vectors);
        let squares: Vec<f64> = turned.iter().map(|z| z * z).collect();
        let leverage = linalg::product(end - start, d, l, &squares, &shrink);
        let mut sums = vec![0.0; l];
        for (y, along) in targets.iter().zip(&along) {
            let predicted = linalg::product(end - start, d, l, &turned, along);
            for row in start..end {
                let weight = design.weight(row);
                let own = if intercept { weight / total } else { 0.0 };
                for at in 0..l {
                    let place = (row - start) * l + at;
                    let left = 1.0 - shares[row] * (own + weight * leverage[place]);
                    sums[at] += weight * square((y[row] - predicted[place]) / left.max(1e-10));
                }
            }
        }
        sums
    });
    added(parts, l).iter().map(|sum| sum / (total * targets.len() as f64)).collect()
}

/// The same from the eigenvectors of `W^½ X Xᵀ W^½`; `turned` holds the targets along them.
pub(super) fn by_samples(
    design: &Design<'_>,
    eigen: &Eigen,
    turned: &[Vec<f64>],
    targets: &[Vec<f64>],
    lambdas: &[f64],
    intercept: bool,
) -> Vec<f64> {
    let (n, total) = (design.n(), design.total());
    let shares = shares(design);
    parallel::map(lambdas.to_vec(), lambdas.len() * n * n, |lambda| {
        let penalty = 2.0 * total * lambda;
        let kept: Vec<f64> = eigen
            .values
            .iter()
            .map(|value| value.max(0.0) / (value.max(0.0) + penalty).max(f64::MIN_POSITIVE))
            .collect();
        let mut leverage = vec![0.0; n];
        for (u, kept) in eigen.vectors.chunks_exact(n).zip(&kept) {
            leverage.iter_mut().zip(u).for_each(|(h, u)| *h += kept * u * u);
        }
        let mut sum = 0.0;
        for (along, y) in turned.iter().zip(targets) {
            let mut fitted = vec![0.0; n];
            for ((u, kept), along) in eigen.vectors.chunks_exact(n).zip(&kept).zip(along) {
                fitted.iter_mut().zip(u).for_each(|(f, u)| *f += kept * along * u);
            }
            for row in 0..n {
                let weight = design.weight(row);
                let own = if intercept { weight / total } else { 0.0 };
                let left = (1.0 - shares[row] * (own + leverage[row])).max(1e-10);
                sum += square((weight.sqrt() * y[row] - fitted[row]) / left);
            }
        }
        sum / (total * targets.len() as f64)
    })
}

/// A row of the centred and scaled features.
fn formed(design: &Design<'_>, row: usize, out: &mut [f64]) {
    match design.matrix() {
        Matrix::Dense(x) => out.copy_from_slice(x.row(row)),
        Matrix::Sparse(x) => {
            out.fill(0.0);
            let (columns, values) = x.row(row);
            columns.iter().zip(values).for_each(|(&c, v)| out[c as usize] += v);
        }
    }
    for ((x, c), s) in out.iter_mut().zip(design.center()).zip(design.scale()) {
        *x = (*x - c) / s;
    }
}

fn added(parts: Vec<Vec<f64>>, width: usize) -> Vec<f64> {
    let mut total = vec![0.0; width];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(total, x)| *total += x);
    }
    total
}

fn square(x: f64) -> f64 {
    x * x
}
