//! The normal equations of the samples, `(W^½ X Xᵀ W^½ + μ) a = W^½ y` with `β = Xᵀ W^½ a`: for more
//! features than samples. Without a penalty `β` is the smallest of all exact solutions.

use super::normal::{Solved, norm};
use crate::design::Design;
use crate::parallel;
use gradus_base::parallel::blocks;
use gradus_data::{Dense, Matrix};
use gradus_kernel::linalg;
use gradus_kernel::{Level, dense};
use std::ops::Range;

/// The number of blocks of rows in which the matrix is multiplied.
const BLOCKS: usize = 8;

/// Samples whose products are summed over blocks of features: the sums stay in a cache.
const FEW: usize = 384;

/// Features in a block of them.
const FEATURES: usize = 256;

/// Samples that are copied together.
const LINE: usize = 8;

/// The largest number of partial sums over blocks of features.
const PARTS: usize = 32;

/// The smallest pivot, in units of the diagonal, down to which a factor is trusted.
const PIVOT: f64 = 1e-9;

/// The matrix of products between samples.
pub(crate) struct Dual<'d, 'a> {
    design: &'d Design<'a>,
    /// The roots of the weights.
    pub(crate) roots: Vec<f64>,
    /// `W^½ X Xᵀ W^½`, both triangles.
    pub(crate) kernel: Vec<f64>,
}

/// A factored system.
pub(crate) struct DualFactor {
    lower: Vec<f64>,
    scale: Vec<f64>,
    penalty: f64,
}

impl<'d, 'a> Dual<'d, 'a> {
    pub(crate) fn new(design: &'d Design<'a>) -> Self {
        let roots: Vec<f64> = (0..design.n()).map(|row| design.weight(row).sqrt()).collect();
        let kernel = kernel(design, &roots);
        Self { design, roots, kernel }
    }

    /// Factors `W^½ X Xᵀ W^½ + μ`; `None` if it is too near to a singular matrix. With a centred
    /// design (`centred`) the matrix has the roots of the weights in its null space, which no centred
    /// target has a part in; that direction is filled up.
    pub(crate) fn factor(&self, penalty: f64, centred: bool) -> Option<DualFactor> {
        let n = self.design.n();
        let mut matrix = self.kernel.clone();
        let total: f64 = self.roots.iter().map(|root| root * root).sum();
        let trace: f64 = (0..n).map(|i| self.kernel[i * n + i]).sum();
        if centred && total > 0.0 {
            let by = trace / n as f64 / total;
            for (i, row) in matrix.chunks_exact_mut(n).enumerate() {
                let by = by * self.roots[i];
                row.iter_mut().zip(&self.roots).for_each(|(x, root)| *x += by * root);
            }
        }
        for i in 0..n {
            // A sample without weight takes no part.
            matrix[i * n + i] += if self.roots[i] > 0.0 { penalty } else { 1.0 };
        }
        let scale: Vec<f64> = (0..n)
            .map(|i| if matrix[i * n + i] > 0.0 { 1.0 / matrix[i * n + i].sqrt() } else { 1.0 })
            .collect();
        for (i, row) in matrix.chunks_exact_mut(n).enumerate() {
            row.iter_mut().zip(&scale).for_each(|(x, s)| *x *= scale[i] * s);
        }
        let lower = linalg::cholesky(n, &matrix)?;
        let safe = (0..n).all(|i| lower[i * n + i] * lower[i * n + i] > PIVOT);
        safe.then_some(DualFactor { lower, scale, penalty })
    }

    /// Solves for one target (centred if the design is), and polishes by the residual of the data
    /// itself until it gets no smaller.
    pub(crate) fn solve(&self, factor: &DualFactor, y: &[f64]) -> Solved {
        let (n, d) = (self.design.n(), self.design.d());
        let start = || -> Vec<f64> { y.iter().zip(&self.roots).map(|(y, r)| y * r).collect() };
        let size = norm(&start()).max(f64::MIN_POSITIVE);
        let mut a = vec![0.0; n];
        let mut coefficients = vec![0.0; d];
        let mut off = start();
        let mut margins = vec![0.0; n];
        for _ in 0..5 {
            let before = norm(&off);
            if before <= 1e-14 * size {
                break;
            }
            let mut step = off.clone();
            factor.solve(&mut step);
            let next: Vec<f64> = a.iter().zip(&step).map(|(a, s)| a + s).collect();
            let weighted: Vec<f64> = next.iter().zip(&self.roots).map(|(a, r)| a * r).collect();
            let mut better = vec![0.0; d];
            self.design.transposed_times(&weighted, &mut better);
            self.design.times(&better, 0.0, &mut margins);
            let after: Vec<f64> = (0..n)
                .map(|row| self.roots[row] * (y[row] - margins[row]) - factor.penalty * next[row])
                .collect();
            if norm(&after) >= 0.5 * before {
                break;
            }
            (a, coefficients, off) = (next, better, after);
        }
        // XᵀW(y − Xβ) − μβ = Xᵀ W^½ (W^½ (y − Xβ) − μ a).
        let mut gradient = vec![0.0; d];
        let weigh =
            |v: &[f64]| -> Vec<f64> { v.iter().zip(&self.roots).map(|(x, r)| x * r).collect() };
        self.design.transposed_times(&weigh(&off), &mut gradient);
        let left = norm(&gradient);
        self.design.transposed_times(&weigh(&start()), &mut gradient);
        let residual = left / norm(&gradient).max(f64::MIN_POSITIVE);
        // W^½ (y − Xβ) is what is off and μ a.
        let squares = off.iter().zip(&a).map(|(off, a)| (off + factor.penalty * a).powi(2)).sum();
        Solved { coefficients, residual, squares }
    }
}

impl DualFactor {
    fn solve(&self, b: &mut [f64]) {
        b.iter_mut().zip(&self.scale).for_each(|(b, s)| *b *= s);
        linalg::cholesky_solve(b.len(), &self.lower, b);
        b.iter_mut().zip(&self.scale).for_each(|(b, s)| *b *= s);
    }
}

/// The same for few samples with many features: no copy of the features is made.
fn kernel_of_few(design: &Design<'_>, x: &Dense<f64>, roots: &[f64]) -> Vec<f64> {
    let ((n, d), values) = (x.shape(), x.values());
    let level = Level::best();
    let origin = vec![0.0; n];
    let part = d.div_ceil(FEATURES).div_ceil(PARTS) * FEATURES;
    let parts = blocks(d, part.max(1)).collect();
    let found: Vec<Vec<f64>> = parallel::map(parts, n * n * d, |part: Range<usize>| {
        let mut sums = vec![0.0; n * n];
        let mut columns = vec![0.0; FEATURES * n];
        let (mut center, mut by) = ([0.0; FEATURES], [0.0; FEATURES]);
        for features in blocks(part.len(), FEATURES) {
            let start = part.start + features.start;
            let features = start..part.start + features.end;
            for (at, j) in features.clone().enumerate() {
                center[at] = design.center()[j];
                by[at] = 1.0 / design.scale()[j];
            }
            // A line of memory of each column at a time.
            for rows in blocks(n, LINE) {
                for (at, columns) in columns.chunks_exact_mut(n).take(features.len()).enumerate() {
                    for (row, to) in rows.clone().zip(&mut columns[rows.clone()]) {
                        *to = roots[row] * by[at] * (values[row * d + start + at] - center[at]);
                    }
                }
            }
            dense::gram(level, &columns[..features.len() * n], &origin, None, &mut sums);
        }
        sums
    });
    let mut kernel = vec![0.0; n * n];
    for sums in &found {
        kernel.iter_mut().zip(sums).for_each(|(kernel, x)| *kernel += x);
    }
    for i in 0..n {
        for j in 0..i {
            kernel[i * n + j] = kernel[j * n + i];
        }
    }
    kernel
}

/// `W^½ X Xᵀ W^½`.
fn kernel(design: &Design<'_>, roots: &[f64]) -> Vec<f64> {
    let (n, d) = (design.n(), design.d());
    let mut kernel = vec![0.0; n * n];
    match design.matrix() {
        Matrix::Dense(x) if n <= FEW => return kernel_of_few(design, x, roots),
        Matrix::Dense(x) => {
            let mut z = x.values().to_vec();
            let rows = z.chunks_exact_mut(d.max(1)).enumerate().collect();
            parallel::each(rows, n * d, |(row, z): (usize, &mut [f64])| {
                for ((x, c), s) in z.iter_mut().zip(design.center()).zip(design.scale()) {
                    *x = roots[row] * (*x - c) / s;
                }
            });
            // The blocks of the upper triangle.
            let parts: Vec<Range<usize>> = blocks(n, n.div_ceil(BLOCKS).max(1)).collect();
            let pairs: Vec<(usize, usize)> =
                (0..parts.len()).flat_map(|a| (a..parts.len()).map(move |b| (a, b))).collect();
            let found: Vec<Vec<f64>> = parallel::map(pairs.clone(), n * n * d, |(a, b)| {
                let (a, b) = (&parts[a], &parts[b]);
                let samples = |part: &Range<usize>| &z[part.start * d..part.end * d];
                linalg::product_transposed(a.len(), b.len(), d, samples(a), samples(b))
            });
            for (&(a, b), found) in pairs.iter().zip(&found) {
                let (a, b) = (&parts[a], &parts[b]);
                for (i, row) in a.clone().zip(found.chunks_exact(b.len())) {
                    for (j, x) in b.clone().zip(row) {
                        kernel[i * n + j] = *x;
                        kernel[j * n + i] = *x;
                    }
                }
            }
        }
        Matrix::Sparse(x) => {
            let rows = kernel.chunks_exact_mut(n.max(1)).enumerate().collect();
            parallel::each(rows, n * x.nnz(), |(row, out): (usize, &mut [f64])| {
                let mut z: Vec<f64> =
                    design.center().iter().zip(design.scale()).map(|(c, s)| -c / s).collect();
                let (columns, values) = x.row(row);
                for (&column, value) in columns.iter().zip(values) {
                    z[column as usize] += value / design.scale()[column as usize];
                }
                design.times(&z, 0.0, out);
                out.iter_mut().zip(roots).for_each(|(k, root)| *k *= roots[row] * root);
            });
        }
    }
    kernel
}
