//! Kernel functions, and rows of the kernel matrix.

use gradus_core::data::{Csr, Dense, Matrix};
use gradus_core::kernel::{Level, dense, exp_all};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How alike two samples are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// `x·y`: a linear machine, with coefficients.
    #[default]
    Linear,
    /// `exp(−γ‖x − y‖²)`.
    Rbf,
    /// `(γ x·y + c₀)^degree`.
    Polynomial,
}

/// A kernel with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelFunction {
    /// Which.
    pub kernel: Kernel,
    /// The γ of `rbf` and `polynomial`.
    pub gamma: f64,
    /// The c₀ of `polynomial`.
    pub coef0: f64,
    /// The degree of `polynomial`.
    pub degree: u32,
}

impl KernelFunction {
    /// Turns products into values of the kernel; `norm` and `norms` are the squared norms.
    fn finish(&self, level: Level, norm: f64, norms: impl Iterator<Item = f64>, out: &mut [f64]) {
        match self.kernel {
            Kernel::Linear => {}
            Kernel::Rbf => {
                for (out, other) in out.iter_mut().zip(norms) {
                    // Rounding may leave a little below 0 of a distance.
                    *out = -self.gamma * (norm + other - 2.0 * *out).max(0.0);
                }
                exp_all(level, out);
            }
            Kernel::Polynomial => {
                let degree = i32::try_from(self.degree).unwrap_or(i32::MAX);
                for out in out {
                    *out = (self.gamma * *out + self.coef0).powi(degree);
                }
            }
        }
    }
}

/// Samples among which a kernel is taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Points {
    pub(super) matrix: Matrix,
    norms: Vec<f64>,
}

/// Rows whose kernel values are computed together.
const BLOCK: usize = 1024;

impl Points {
    pub(super) fn new(matrix: Matrix) -> Self {
        let norms = (0..matrix.n_rows())
            .into_par_iter()
            .map(|row| match &matrix {
                Matrix::Dense(x) => x.row(row).iter().map(|x| x * x).sum(),
                Matrix::Sparse(x) => x.row(row).1.iter().map(|x| x * x).sum::<f64>(),
            })
            .collect();
        Self { matrix, norms }
    }

    /// `(x − c) / s` of every row; a sparse matrix is not centred.
    pub(super) fn prepared(matrix: &Matrix, center: &[f64], scale: &[f64]) -> Self {
        Self::new(match matrix {
            Matrix::Dense(x) => {
                let prepared =
                    |row: usize, column: usize| (x[(row, column)] - center[column]) / scale[column];
                Dense::from_fn(x.n_rows(), x.n_cols(), prepared).into()
            }
            Matrix::Sparse(x) => {
                let values = x.indices().iter().zip(x.values());
                x.with_values(values.map(|(&j, x)| x / scale[j as usize]).collect()).into()
            }
        })
    }

    pub(super) fn len(&self) -> usize {
        self.norms.len()
    }

    /// Writes a row into a vector of zeros, or takes it back.
    fn scatter(&self, row: usize, to: &mut Vec<f64>, back: bool) {
        match &self.matrix {
            Matrix::Dense(x) => {
                to.clear();
                to.extend_from_slice(x.row(row));
            }
            Matrix::Sparse(x) => {
                to.resize(x.n_cols(), 0.0);
                let (columns, values) = x.row(row);
                for (&column, value) in columns.iter().zip(values) {
                    to[column as usize] = if back { 0.0 } else { *value };
                }
            }
        }
    }

    /// The kernel of row `i` with every row of `others`, in single precision, by all threads.
    pub(super) fn row(
        &self,
        function: &KernelFunction,
        i: usize,
        others: &[u32],
        scratch: &mut Vec<f64>,
        out: &mut Vec<f32>,
    ) {
        let level = Level::best();
        self.scatter(i, scratch, false);
        out.clear();
        out.resize(others.len(), 0.0);
        let v: &[f64] = scratch;
        let one = |(others, out): (&[u32], &mut [f32])| {
            let mut values = [0.0; BLOCK];
            let values = &mut values[..others.len()];
            self.products(level, v, others, values);
            let norms = others.iter().map(|&j| self.norms[j as usize]);
            function.finish(level, self.norms[i], norms, values);
            for (out, value) in out.iter_mut().zip(&*values) {
                *out = *value as f32;
            }
        };
        if others.len() <= 2 * BLOCK {
            others.chunks(BLOCK).zip(out.chunks_mut(BLOCK)).for_each(one);
        } else {
            others.par_chunks(BLOCK).zip(out.par_chunks_mut(BLOCK)).for_each(one);
        }
        self.scatter(i, scratch, true);
    }

    /// Products of `v` with some rows.
    fn products(&self, level: Level, v: &[f64], rows: &[u32], out: &mut [f64]) {
        match &self.matrix {
            Matrix::Dense(x) => {
                let d = x.n_cols();
                let first = rows[0] as usize;
                if rows[rows.len() - 1] as usize - first == rows.len() - 1 {
                    let x = &x.values()[first * d..(first + rows.len()) * d];
                    return dense::dots(level, x, v, out);
                }
                for (&row, out) in rows.iter().zip(out) {
                    *out = dense::dot(level, x.row(row as usize), v);
                }
            }
            Matrix::Sparse(x) => sparse_products(x, v, rows, out),
        }
    }

    /// The kernel of a sample that is not among these with each of them.
    pub(super) fn against(
        &self,
        function: &KernelFunction,
        v: &[f64],
        all: &[u32],
        out: &mut [f64],
    ) {
        let level = Level::best();
        let norm = v.iter().map(|x| x * x).sum();
        for (rows, out) in all.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            self.products(level, v, rows, out);
            let norms = rows.iter().map(|&j| self.norms[j as usize]);
            function.finish(level, norm, norms, out);
        }
    }

    /// The kernel of every row with itself.
    pub(super) fn diagonal(&self, function: &KernelFunction) -> Vec<f64> {
        let one = |norm: &f64| {
            let mut value = [*norm];
            function.finish(Level::best(), *norm, std::iter::once(*norm), &mut value);
            value[0]
        };
        self.norms.iter().map(one).collect()
    }

    /// `Σ_j by_j k(i, j)` over the rows `of`, for each `i` of `rows`.
    pub(super) fn sums(
        &self,
        function: &KernelFunction,
        rows: &[u32],
        (of, by): (&[u32], &[f64]),
    ) -> Vec<f64> {
        let level = Level::best();
        rows.par_chunks(16)
            .flat_map_iter(|rows| {
                let (mut scratch, mut sums) = (Vec::new(), Vec::with_capacity(rows.len()));
                let mut values = vec![0.0; BLOCK];
                for &i in rows {
                    let i = i as usize;
                    self.scatter(i, &mut scratch, false);
                    let mut sum = 0.0;
                    for (of, by) in of.chunks(BLOCK).zip(by.chunks(BLOCK)) {
                        let values = &mut values[..of.len()];
                        self.products(level, &scratch, of, values);
                        let norms = of.iter().map(|&j| self.norms[j as usize]);
                        function.finish(level, self.norms[i], norms, values);
                        // Rounded as cached rows are, so that the sums belong to one matrix.
                        values.iter_mut().for_each(|x| *x = f64::from(*x as f32));
                        sum += dense::dot(level, values, by);
                    }
                    self.scatter(i, &mut scratch, true);
                    sums.push(sum);
                }
                sums
            })
            .collect()
    }
}

fn sparse_products(x: &Csr<f64>, v: &[f64], rows: &[u32], out: &mut [f64]) {
    for (&row, out) in rows.iter().zip(out) {
        let (columns, values) = x.row(row as usize);
        let mut sum = 0.0;
        for (&column, value) in columns.iter().zip(values) {
            sum += value * v[column as usize];
        }
        *out = sum;
    }
}
