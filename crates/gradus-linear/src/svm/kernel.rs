//! Kernel functions, and rows of the kernel matrix.

use super::dual::squared_norms;
use gradus_base::parallel;
use gradus_data::{Csr, Dense, Matrix};
use gradus_kernel::{Level, dense, eight, exp_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel: a similarity of two samples.
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
    /// `tanh(γ x·y + c₀)`. Not positive semidefinite: what is found is a local optimum.
    Sigmoid,
    /// The features are kernel values: of training between all samples, of a prediction between
    /// each sample and all samples of training, in their order.
    Precomputed,
}

/// A kernel with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelFunction {
    /// The kind of kernel.
    pub kernel: Kernel,
    /// The γ of `rbf`, `polynomial` and `sigmoid`.
    pub gamma: f64,
    /// The c₀ of `polynomial` and `sigmoid`.
    pub coef0: f64,
    /// The degree of `polynomial`.
    pub degree: u32,
}

impl KernelFunction {
    /// Turns products into values of the kernel; `norm` and `norms` are the squared norms.
    fn finish(&self, level: Level, norm: f64, norms: impl Iterator<Item = f64>, out: &mut [f64]) {
        match self.kernel {
            Kernel::Linear | Kernel::Precomputed => {}
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
            Kernel::Sigmoid => {
                for out in out {
                    *out = (self.gamma * *out + self.coef0).tanh();
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
        let norms = squared_norms(&matrix);
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

    /// Support vectors of a precomputed kernel: unit vectors, which pick their columns.
    pub(super) fn columns(rows: &[u32], n_columns: usize) -> Self {
        let indptr = (0..=rows.len()).collect();
        let ones = vec![1.0; rows.len()];
        let picks = Csr::new(n_columns, indptr, rows.to_vec(), ones);
        Self::new(picks.expect("one entry in each row").into())
    }

    pub(super) fn len(&self) -> usize {
        self.norms.len()
    }

    /// The entry of a row in a column.
    fn entry(&self, row: usize, column: u32) -> f64 {
        match &self.matrix {
            Matrix::Dense(x) => x[(row, column as usize)],
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                columns.binary_search(&column).map_or(0.0, |at| values[at])
            }
        }
    }

    /// Up to eight rows side by side, the rest zeros.
    fn interleaved(&self, rows: &[u32]) -> Vec<f64> {
        let mut vectors = vec![0.0; 8 * self.matrix.n_cols()];
        for (lane, &row) in rows.iter().enumerate() {
            match &self.matrix {
                Matrix::Dense(x) => {
                    for (j, x) in x.row(row as usize).iter().enumerate() {
                        vectors[8 * j + lane] = *x;
                    }
                }
                Matrix::Sparse(x) => {
                    let (columns, values) = x.row(row as usize);
                    for (&j, x) in columns.iter().zip(values) {
                        vectors[8 * j as usize + lane] = *x;
                    }
                }
            }
        }
        vectors
    }

    /// The kernel of `others` with eight vectors of these squared norms; results of one row of
    /// `others` side by side.
    fn eight(
        &self,
        function: &KernelFunction,
        (vectors, norms): (&[f64], &[f64; 8]),
        others: &[u32],
        out: &mut [f64],
    ) {
        let level = Level::best();
        match &self.matrix {
            Matrix::Dense(x) => eight::dense(level, x.values(), others, vectors, out),
            Matrix::Sparse(x) => {
                eight::sparse(level, (x.indptr(), x.indices(), x.values()), others, vectors, out);
            }
        }
        match function.kernel {
            Kernel::Rbf => {
                for (&row, out) in others.iter().zip(out.as_chunks_mut::<8>().0) {
                    let other = self.norms[row as usize];
                    for (out, norm) in out.iter_mut().zip(norms) {
                        *out = -function.gamma * (norm + other - 2.0 * *out).max(0.0);
                    }
                }
                exp_all(level, out);
            }
            Kernel::Linear | Kernel::Polynomial | Kernel::Sigmoid | Kernel::Precomputed => {
                function.finish(level, 0.0, std::iter::empty(), out);
            }
        }
    }

    fn norms_of(&self, rows: &[u32]) -> [f64; 8] {
        let mut norms = [0.0; 8];
        norms.iter_mut().zip(rows).for_each(|(norm, &row)| *norm = self.norms[row as usize]);
        norms
    }

    /// The kernel of row `i` with every row of `others`, in single precision, by all threads.
    pub(super) fn row(
        &self,
        function: &KernelFunction,
        i: usize,
        others: &[u32],
        out: &mut Vec<f32>,
    ) {
        if function.kernel == Kernel::Precomputed {
            out.clear();
            out.extend(others.iter().map(|&j| self.entry(i, j) as f32));
            return;
        }
        let level = Level::best();
        let norm = self.norms[i];
        let mut spread = Vec::new();
        let vector: &[f64] = match &self.matrix {
            Matrix::Dense(x) => x.row(i),
            Matrix::Sparse(x) => {
                spread.resize(x.n_cols(), 0.0);
                let (columns, values) = x.row(i);
                columns.iter().zip(values).for_each(|(&j, x)| spread[j as usize] = *x);
                &spread
            }
        };
        out.clear();
        out.resize(others.len(), 0.0);
        let one = |(others, out): (&[u32], &mut [f32])| {
            let mut values = [0.0; BLOCK];
            let values = &mut values[..others.len()];
            match &self.matrix {
                Matrix::Dense(x) => dense_products(level, x, vector, others, values),
                Matrix::Sparse(x) => sparse_products(x, vector, others, values),
            }
            let norms = others.iter().map(|&j| self.norms[j as usize]);
            function.finish(level, norm, norms, values);
            for (out, value) in out.iter_mut().zip(&*values) {
                *out = *value as f32;
            }
        };
        if others.len() <= 2 * BLOCK {
            others.chunks(BLOCK).zip(out.chunks_mut(BLOCK)).for_each(one);
        } else {
            parallel::each(others.chunks(BLOCK).zip(out.chunks_mut(BLOCK)), one);
        }
    }

    /// The kernel of every one of these with up to eight other samples, given side by side; so are
    /// the results.
    pub(super) fn against(
        &self,
        function: &KernelFunction,
        vectors: &[f64],
        all: &[u32],
        out: &mut [f64],
    ) {
        let mut norms = [0.0; 8];
        for v in vectors.as_chunks::<8>().0 {
            norms.iter_mut().zip(v).for_each(|(norm, x)| *norm += x * x);
        }
        for (rows, out) in all.chunks(BLOCK).zip(out.chunks_mut(8 * BLOCK)) {
            self.eight(function, (vectors, &norms), rows, out);
        }
    }

    /// The kernel of every row with itself.
    pub(super) fn diagonal(&self, function: &KernelFunction) -> Vec<f64> {
        if function.kernel == Kernel::Precomputed {
            return (0..self.len()).map(|i| self.entry(i, i as u32)).collect();
        }
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
        if function.kernel == Kernel::Precomputed {
            let sum = |&i: &u32| -> f64 {
                let each = of.iter().zip(by);
                each.map(|(&j, by)| by * f64::from(self.entry(i as usize, j) as f32)).sum()
            };
            return parallel::map(rows, sum);
        }
        let eights = parallel::map(rows.chunks(8), |rows| {
            let (vectors, norms) = (self.interleaved(rows), self.norms_of(rows));
            let (mut values, mut sums) = (vec![0.0; 8 * BLOCK], [0.0; 8]);
            for (of, by) in of.chunks(BLOCK).zip(by.chunks(BLOCK)) {
                let values = &mut values[..8 * of.len()];
                self.eight(function, (&vectors, &norms), of, values);
                for (values, by) in values.as_chunks::<8>().0.iter().zip(by) {
                    for (sum, value) in sums.iter_mut().zip(values) {
                        // Rounded as cached rows are, so that the sums belong to one matrix.
                        *sum += by * f64::from(*value as f32);
                    }
                }
            }
            sums
        });
        let mut sums = eights.concat();
        sums.truncate(rows.len());
        sums
    }
}

/// Products of `v` with some rows, ascending.
fn dense_products(level: Level, x: &Dense<f64>, v: &[f64], rows: &[u32], out: &mut [f64]) {
    let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return };
    let (first, d) = (first as usize, x.n_cols());
    if last as usize - first == rows.len() - 1 {
        // One after another: many of them at a time.
        return dense::dots(level, &x.values()[first * d..(first + rows.len()) * d], v, out);
    }
    for (&row, out) in rows.iter().zip(out) {
        *out = dense::dot(level, x.row(row as usize), v);
    }
}

/// Products of `v` with some rows.
fn sparse_products(x: &Csr<f64>, v: &[f64], rows: &[u32], out: &mut [f64]) {
    for (&row, out) in rows.iter().zip(out) {
        let (columns, values) = x.row(row as usize);
        // Two sums, so that one addition need not wait for the other.
        let (mut even, mut odd) = (0.0, 0.0);
        let ((columns, last), (values, rest)) = (columns.as_chunks::<2>(), values.as_chunks::<2>());
        for (columns, values) in columns.iter().zip(values) {
            even += values[0] * v[columns[0] as usize];
            odd += values[1] * v[columns[1] as usize];
        }
        for (&column, value) in last.iter().zip(rest) {
            even += value * v[column as usize];
        }
        *out = even + odd;
    }
}
