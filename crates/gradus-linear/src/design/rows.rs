//! Sums over some of the rows, for solvers that look at few of them.

use super::{Design, Preparation};
use crate::parallel;
use gradus_base::parallel::blocks;
use gradus_data::Matrix;
use gradus_kernel::dense;
use std::ops::Range;

/// Rows whose products are summed in one part at least.
const LEAST: usize = 512;

/// Parts of the rows whose entries are added up side by side.
const SCATTERED: usize = 4;

/// Rows that are gathered together.
const GATHERED: usize = 128;

impl<'a> Design<'a> {
    /// The same preparation of the same columns, for a matrix with some of the rows.
    pub(crate) fn of_rows<'b>(&self, matrix: &'b Matrix) -> Design<'b> {
        let plain = Preparation { center: false, scale: false };
        let mut design = Design::new(matrix, None, plain);
        design.center.copy_from_slice(&self.center);
        design.scale.copy_from_slice(&self.scale);
        design
    }

    /// The same with these weights.
    pub(crate) fn with_weights<'b>(self, weights: &'b [f64]) -> Design<'b>
    where
        Self: 'b,
    {
        let mut design: Design<'b> = self;
        design.total = weights.iter().sum();
        design.weights = Some(weights);
        design
    }

    /// `Σ w_i z_i z_iᵀ` over the given rows, for `z = (x, 1)` with centred and scaled `x`: the upper
    /// triangle of a square matrix with one row more than there are features.
    pub(crate) fn gram_with_one(&self, rows: &[u32], weights: &[f64]) -> Vec<f64> {
        let (d, size) = (self.d(), self.d() + 1);
        // Wide sums are kept in few parts.
        let parts = 32.min((1 << 22) / (size * size)).max(4);
        let part = rows.len().div_ceil(parts).max(LEAST);
        let parts = rows.chunks(part).zip(weights.chunks(part)).collect();
        let operations = rows.len().saturating_mul(size * size);
        let sums: Vec<Vec<f64>> =
            parallel::map(parts, operations, |(rows, weights)| self.part_with_one(rows, weights));
        let mut total = vec![0.0; size * size];
        for sums in &sums {
            total.iter_mut().zip(sums).for_each(|(total, x)| *total += x);
        }
        if self.matrix.is_sparse() {
            // Σ w (x − c)(x − c)ᵀ = Σ w x xᵀ − s cᵀ − c sᵀ + W c cᵀ.
            let weight = total[d * size + d];
            let s: Vec<f64> = (0..d).map(|i| total[i * size + d]).collect();
            let c = &self.center;
            for i in 0..d {
                for j in i..d {
                    total[i * size + j] += weight * c[i] * c[j] - s[i] * c[j] - c[i] * s[j];
                }
                total[i * size + d] -= weight * c[i];
            }
        }
        for i in 0..d {
            for j in i..d {
                total[i * size + j] /= self.scale[i] * self.scale[j];
            }
            total[i * size + d] /= self.scale[i];
        }
        total
    }

    /// The same of raw rows; dense ones are centred before they are multiplied.
    fn part_with_one(&self, rows: &[u32], weights: &[f64]) -> Vec<f64> {
        let (d, size) = (self.d(), self.d() + 1);
        let mut sums = vec![0.0; size * size];
        match self.matrix() {
            Matrix::Dense(x) => {
                let mut center = self.center.clone();
                center.push(0.0);
                let mut gathered = vec![1.0; GATHERED * size];
                for (rows, weights) in rows.chunks(GATHERED).zip(weights.chunks(GATHERED)) {
                    for (to, &row) in gathered.chunks_exact_mut(size).zip(rows) {
                        to[..d].copy_from_slice(x.row(row as usize));
                    }
                    let gathered = &gathered[..rows.len() * size];
                    dense::gram(self.level, gathered, &center, Some(weights), &mut sums);
                }
            }
            Matrix::Sparse(x) => {
                for (&row, &weight) in rows.iter().zip(weights) {
                    let (columns, values) = x.row(row as usize);
                    for (at, (&i, a)) in columns.iter().zip(values).enumerate() {
                        let (by, to) = (weight * a, &mut sums[i as usize * size..][..size]);
                        for (&j, b) in columns[at..].iter().zip(&values[at..]) {
                            to[j as usize] += by * b;
                        }
                        to[d] += by;
                    }
                    sums[d * size + d] += weight;
                }
            }
        }
        sums
    }
}

impl Design<'_> {
    /// `Σ_i w_i x_ij²` of every column, for centred and scaled `x`.
    pub(crate) fn squares(&self, weights: &[f64]) -> Vec<f64> {
        let total: f64 = weights.iter().sum();
        // Row by row, also of a sparse matrix: who asks for this alone needs no transpose.
        let mut squares = match self.matrix() {
            Matrix::Dense(_) => {
                let (d, c) = (self.d().max(1), &self.center);
                self.sums(|rows, sums| {
                    let x = self.dense_rows(rows).unwrap_or_default();
                    for (row, x) in rows.clone().zip(x.chunks_exact(d)) {
                        for ((sum, x), c) in sums.iter_mut().zip(x).zip(c) {
                            *sum += weights[row] * (x - c) * (x - c);
                        }
                    }
                    0.0
                })
                .1
            }
            Matrix::Sparse(x) => {
                let (mut stored, mut sums) = (vec![0.0; self.d()], vec![0.0; self.d()]);
                for (row, &weight) in weights.iter().enumerate() {
                    let (columns, values) = x.row(row);
                    for (&column, x) in columns.iter().zip(values) {
                        let (j, off) = (column as usize, x - self.center[column as usize]);
                        stored[j] += weight;
                        sums[j] += weight * off * off;
                    }
                }
                for ((sum, stored), c) in sums.iter_mut().zip(&stored).zip(&self.center) {
                    *sum += (total - stored).max(0.0) * c * c;
                }
                sums
            }
        };
        squares.iter_mut().zip(&self.scale).for_each(|(x, s)| *x /= s * s);
        squares
    }
}

impl Design<'_> {
    /// `Σ_ij w_i x_ij²` of centred and scaled `x`.
    pub(crate) fn sum_of_squares(&self, weights: &[f64]) -> f64 {
        let plain = |(c, s): (&f64, &f64)| *c == 0.0 && *s == 1.0;
        match self.matrix() {
            // Row by row: sums for the columns would be anywhere in memory.
            Matrix::Sparse(x) if self.center.iter().zip(&self.scale).all(plain) => {
                let parts = parallel::map(self.blocks(), x.nnz(), |rows: Range<usize>| {
                    let of_row = |row: usize| x.row(row).1.iter().map(|x| x * x).sum::<f64>();
                    rows.map(|row| weights[row] * of_row(row)).sum::<f64>()
                });
                parts.iter().sum()
            }
            _ => self.squares(weights).iter().sum(),
        }
    }

    /// The rows of each block.
    fn blocks(&self) -> Vec<Range<usize>> {
        self.bounds.windows(2).map(|bound| bound[0]..bound[1]).collect()
    }

    /// `out = Xᵀ r`, once: a sparse matrix is not transposed for it.
    pub(crate) fn transposed_times_once(&self, r: &[f64], out: &mut [f64]) {
        let Matrix::Sparse(x) = self.matrix() else { return self.transposed_times(r, out) };
        let add = |rows: Range<usize>, out: &mut [f64]| {
            for (row, &by) in rows.clone().zip(&r[rows]).filter(|(_, by)| **by != 0.0) {
                let (columns, values) = x.row(row);
                for (&column, x) in columns.iter().zip(values) {
                    out[column as usize] += by * x;
                }
            }
        };
        out.fill(0.0);
        // Sums of their own for each part of the rows pay where entries are many.
        let bounds = &self.bounds;
        let step = (bounds.len() - 1).div_ceil(SCATTERED).max(1);
        if x.nnz() < 4 * self.d() || bounds.len() <= SCATTERED {
            add(0..self.n(), out);
        } else {
            let parts = blocks(bounds.len() - 1, step).collect();
            let parts = parallel::map(parts, x.nnz(), |part: Range<usize>| {
                let mut sums = vec![0.0; self.d()];
                add(bounds[part.start]..bounds[part.end], &mut sums);
                sums
            });
            for part in &parts {
                out.iter_mut().zip(part).for_each(|(out, x)| *out += x);
            }
        }
        self.finish_gradient(r.iter().sum(), out);
    }

    /// Divides every column by `by` besides.
    pub(crate) fn divided(mut self, by: f64) -> Self {
        self.scale.iter_mut().for_each(|scale| *scale *= by);
        if let Some((_, scale)) = &mut self.given {
            scale.iter_mut().for_each(|scale| *scale *= by);
        }
        self
    }
}
