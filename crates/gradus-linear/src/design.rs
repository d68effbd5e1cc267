//! The features as a solver sees them: `(X − 1 cᵀ) diag(s)⁻¹`, never formed.
//!
//! Centring and scaling are applied to the vectors that the matrix is multiplied with, so that a
//! sparse matrix stays sparse and a dense one is not copied. Rows are cut into blocks that depend on
//! the shape alone and what blocks give is added in order: results do not depend on the number of
//! threads.

use crate::moments::{Moments, moments};
use crate::parallel;
use gradus_data::{Csr, Dense, Matrix};
use gradus_kernel::{Level, dense};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

mod rows;

/// Dense rows are processed in blocks of about this many values, which stay in the cache between two
/// passes over them.
const BLOCK: usize = 1 << 15;

/// Sparse rows are processed in blocks of about this many entries.
const SPARSE_BLOCK: usize = 1 << 14;

/// A mean that is this many deviations from 0 is subtracted from the column itself.
const FAR: f64 = 100.0;

/// Columns whose sums over the rows are made together, where there are many columns.
const COLUMNS: usize = 1024;

/// Features up to which means and Gram matrix are made in one look.
const GRAM_AT_ONCE: usize = 512;

/// The largest number of partial sums over all dense rows.
const PARTS: usize = 64;

/// The features of samples, centred and scaled on the fly.
pub(crate) struct Design<'a> {
    matrix: Cow<'a, Matrix>,
    /// Weights of the samples, if they do not all weigh 1.
    weights: Option<&'a [f64]>,
    /// The sum of the weights.
    total: f64,
    /// The centre of each column; 0 without centring.
    center: Vec<f64>,
    /// The scale of each column; 1 without scaling.
    scale: Vec<f64>,
    /// The centre and scale for the columns as given: as above, unless the matrix was copied.
    given: Option<(Vec<f64>, Vec<f64>)>,
    /// `Xᵀ diag(w) X` of the centred columns and the weights of the samples, if it is known.
    gram: Option<Vec<f64>>,
    /// `Xᵀ diag(w) y` of the centred columns and each target around its mean, if it is known.
    products: Option<Vec<Vec<f64>>>,
    /// The transpose of a sparse matrix, made when first asked for.
    by_column: OnceLock<Csr<f64>>,
    /// Row bounds of the blocks.
    bounds: Vec<usize>,
    level: Level,
}

/// `Σ x v[place]` over the entries of a sparse row or column, in four sums side by side.
#[inline]
pub(crate) fn sparse_dot(places: &[u32], values: &[f64], v: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (fours, rest) = places.as_chunks::<4>();
    let (value_fours, value_rest) = values.as_chunks::<4>();
    for (places, x) in fours.iter().zip(value_fours) {
        for i in 0..4 {
            sums[i] += x[i] * v[places[i] as usize];
        }
    }
    for (&place, x) in rest.iter().zip(value_rest) {
        sums[0] += x * v[place as usize];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// The sum of many values, in eight sums side by side.
pub(crate) fn sum(values: &[f64]) -> f64 {
    let (eights, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for values in eights {
        sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

/// How the columns of a design are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preparation {
    /// Take the mean off each column, as a model with an intercept may.
    pub(crate) center: bool,
    /// Divide each column by its standard deviation; a constant one by 1.
    pub(crate) scale: bool,
}

impl<'a> Design<'a> {
    pub(crate) fn new(
        matrix: &'a Matrix,
        weights: Option<&'a [f64]>,
        preparation: Preparation,
    ) -> Self {
        let mut design = Self::bare(matrix, weights);
        if preparation.center || preparation.scale {
            let means = design.means();
            // A sparse matrix is never copied, so that its deviations are asked for by scaling alone.
            let is_asked = preparation.scale || !matrix.is_sparse();
            let deviations = if is_asked { design.deviations(&means) } else { Vec::new() };
            design.prepare(preparation, means, deviations);
        }
        design
    }

    /// The same for a solver that asks for the Gram matrix and for the products with targets, which have these
    /// means: where samples are many and features few, all of it comes from one look at the samples.
    pub(crate) fn with_gram(
        matrix: &'a Matrix,
        weights: Option<&'a [f64]>,
        preparation: Preparation,
        (y, y_means): (&Dense<f64>, &[f64]),
    ) -> Self {
        let x = match matrix {
            Matrix::Dense(x) if preparation.center && x.n_rows() >= 2 * x.n_cols() => x,
            _ => return Self::new(matrix, weights, preparation),
        };
        if x.n_cols() > GRAM_AT_ONCE {
            return Self::new(matrix, weights, preparation);
        }
        let mut design = Self::bare(matrix, weights);
        let total = design.total.max(f64::MIN_POSITIVE);
        let Moments { means, mut gram, mut products } =
            moments(x, weights, y, y_means, total, true);
        gram.iter_mut().chain(products.iter_mut().flatten()).for_each(|x| *x *= total);
        let d = x.n_cols();
        let squares: Vec<f64> = (0..d).map(|j| gram[j * d + j]).collect();
        let deviations = deviations(&squares, &means, total);
        (design.gram, design.products) = (Some(gram), Some(products));
        design.prepare(preparation, means, deviations);
        design
    }

    /// Centres and scales by what is known of the columns.
    fn prepare(&mut self, preparation: Preparation, means: Vec<f64>, deviations: Vec<f64>) {
        let far = means.iter().zip(&deviations).any(|(mean, s)| mean.abs() > FAR * s);
        if preparation.scale {
            self.scale = deviations;
        }
        if preparation.center {
            self.center = means;
            if far {
                self.copy_centred();
            }
        }
    }

    /// The design without centre and scale.
    fn bare(matrix: &'a Matrix, weights: Option<&'a [f64]>) -> Self {
        let (n, d) = matrix.shape();
        let bounds = match matrix {
            Matrix::Dense(_) => {
                let step = (BLOCK / d.max(1)).max(1);
                (0..n).step_by(step).chain([n]).collect()
            }
            Matrix::Sparse(x) => {
                let mut bounds = vec![0];
                let mut filled = 0;
                for row in 0..n {
                    filled += x.range(row).len() + 4;
                    if filled >= SPARSE_BLOCK {
                        bounds.push(row + 1);
                        filled = 0;
                    }
                }
                if bounds.last() != Some(&n) {
                    bounds.push(n);
                }
                bounds
            }
        };
        let total = weights.map_or(n as f64, |weights| weights.iter().sum());
        Self {
            matrix: Cow::Borrowed(matrix),
            weights,
            total,
            center: vec![0.0; d],
            scale: vec![1.0; d],
            given: None,
            gram: None,
            products: None,
            by_column: OnceLock::new(),
            bounds,
            level: Level::best(),
        }
    }

    /// Centres and scales a copy of a dense matrix: where means are far larger than deviations,
    /// taking them off products would leave few digits.
    fn copy_centred(&mut self) {
        let Matrix::Dense(x) = self.matrix.as_ref() else { return };
        let (n, d) = x.shape();
        let mut values = x.values().to_vec();
        let blocks = values.chunks_mut(BLOCK / d.max(1) * d.max(1) + d.max(1)).collect();
        parallel::each(blocks, n * d, |rows: &mut [f64]| {
            for row in rows.chunks_exact_mut(d.max(1)) {
                for ((x, c), s) in row.iter_mut().zip(&self.center).zip(&self.scale) {
                    *x = (*x - c) / s;
                }
            }
        });
        if let Ok(copy) = Dense::new(n, d, values) {
            self.matrix = Cow::Owned(copy.into());
            (self.gram, self.products) = (None, None);
            let (center, scale) = (vec![0.0; d], vec![1.0; d]);
            self.given = Some((
                std::mem::replace(&mut self.center, center),
                std::mem::replace(&mut self.scale, scale),
            ));
        }
    }

    /// Number of samples.
    pub(crate) fn n(&self) -> usize {
        self.matrix.n_rows()
    }

    /// Number of features.
    pub(crate) fn d(&self) -> usize {
        self.matrix.n_cols()
    }

    /// The matrix that centre and scale are still to be applied to.
    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// The centres of the columns as given.
    pub(crate) fn given_center(&self) -> &[f64] {
        self.given.as_ref().map_or(&self.center, |(center, _)| center)
    }

    /// The scales of the columns as given.
    pub(crate) fn given_scale(&self) -> &[f64] {
        self.given.as_ref().map_or(&self.scale, |(_, scale)| scale)
    }

    /// Weights of the samples, if they do not all weigh 1.
    pub(crate) fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// The weight of a sample.
    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// The sum of the weights.
    pub(crate) fn total(&self) -> f64 {
        self.total
    }

    /// The centre of each column.
    pub(crate) fn center(&self) -> &[f64] {
        &self.center
    }

    /// The scale of each column.
    pub(crate) fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// The columns of a sparse matrix, as rows of the transpose; `None` of a dense one.
    pub(crate) fn columns(&self) -> Option<&Csr<f64>> {
        match self.matrix.as_ref() {
            Matrix::Dense(_) => None,
            Matrix::Sparse(x) => Some(self.by_column.get_or_init(|| x.transpose())),
        }
    }

    /// The number of stored values.
    pub(crate) fn size(&self) -> usize {
        match self.matrix.as_ref() {
            Matrix::Dense(x) => x.values().len(),
            Matrix::Sparse(x) => x.nnz(),
        }
    }

    /// The rows of a block of a dense matrix.
    fn dense_rows(&self, rows: &Range<usize>) -> Option<&[f64]> {
        match self.matrix.as_ref() {
            Matrix::Dense(x) => Some(&x.values()[rows.start * x.n_cols()..rows.end * x.n_cols()]),
            Matrix::Sparse(_) => None,
        }
    }

    /// Cuts a vector with a place for each row into the blocks.
    fn cut<'v>(&self, mut values: &'v mut [f64]) -> Vec<(Range<usize>, &'v mut [f64])> {
        let mut parts = Vec::with_capacity(self.bounds.len());
        for bound in self.bounds.windows(2) {
            let (part, after) = values.split_at_mut(bound[1] - bound[0]);
            parts.push((bound[0]..bound[1], part));
            values = after;
        }
        parts
    }

    /// `out = X v + b`, for centred and scaled `X`.
    pub(crate) fn times(&self, v: &[f64], b: f64, out: &mut [f64]) {
        let (v, shift) = self.unscaled(v);
        parallel::each(self.cut(out), self.size(), |(rows, out): (Range<usize>, &mut [f64])| {
            self.raw_times(&rows, &v, out);
            out.iter_mut().for_each(|x| *x += b - shift);
        });
    }

    /// `out = Xᵀ r`, for centred and scaled `X`.
    pub(crate) fn transposed_times(&self, r: &[f64], out: &mut [f64]) {
        self.raw_transposed(r, out);
        self.finish_gradient(sum(r), out);
    }

    /// One look at every sample: `look(rows, margins)` gets the margins `X v + b` of a block of
    /// rows, puts what is to be summed in their place, and gives a number to be summed as well.
    ///
    /// Gives the sum of the numbers and of what was put; `out` becomes `Xᵀ` times what was put.
    /// Dense rows are read once.
    pub(crate) fn sweep(
        &self,
        v: &[f64],
        b: f64,
        out: &mut [f64],
        look: impl Fn(Range<usize>, &mut [f64]) -> f64 + Sync,
    ) -> (f64, f64) {
        let (v, shift) = self.unscaled(v);
        let margins = |rows: &Range<usize>, put: &mut [f64]| {
            self.raw_times(rows, &v, put);
            put.iter_mut().for_each(|x| *x += b - shift);
            look(rows.clone(), put)
        };
        let (value, sum) = match self.columns() {
            None => {
                let (value, mut sums) = self.sums_with(self.d() + 1, |rows, sums| {
                    let mut put = vec![0.0; rows.len()];
                    let value = margins(rows, &mut put);
                    let (gradient, sum) = sums.split_at_mut(self.d());
                    let x = self.dense_rows(rows).unwrap_or_default();
                    dense::add_rows(self.level, x, &put, gradient);
                    sum[0] += put.iter().sum::<f64>();
                    value
                });
                let sum = sums.pop().unwrap_or_default();
                out.copy_from_slice(&sums);
                (value, sum)
            }
            Some(columns) => {
                let mut put = vec![0.0; self.n()];
                let blocks = self.cut(&mut put);
                let values = parallel::map(blocks, self.size(), |(rows, put)| margins(&rows, put));
                self.gather(columns, &put, out);
                (values.iter().sum(), put.iter().sum())
            }
        };
        self.finish_gradient(sum, out);
        (value, sum)
    }

    /// `Xᵀ diag(w) X` for centred and scaled `X`, both triangles, and `Xᵀ w`; all weights 1 if there
    /// are none. For matrices of not too many columns.
    pub(crate) fn gram(&self, weights: Option<&[f64]>) -> (Vec<f64>, Vec<f64>) {
        let d = self.d();
        let total = weights.map_or(self.n() as f64, |weights| weights.iter().sum());
        let c = &self.center;
        if let Some(gram) = self.gram.as_ref().filter(|_| weights == self.weights) {
            let mut gram = gram.clone();
            self.finish_gram(&mut gram);
            return (gram, vec![0.0; d]);
        }
        let (mut gram, mut sums) = match self.matrix.as_ref() {
            Matrix::Dense(_) => {
                let (_, mut gram) = self.sums_with(d * d + d, |rows, sums| {
                    let x = self.dense_rows(rows).unwrap_or_default();
                    let weights = weights.map(|weights| &weights[rows.clone()]);
                    let (gram, linear) = sums.split_at_mut(d * d);
                    dense::gram(self.level, x, c, weights, gram);
                    match weights {
                        Some(weights) => dense::add_rows(self.level, x, weights, linear),
                        None => dense::add_rows(self.level, x, &vec![1.0; rows.len()], linear),
                    }
                    0.0
                });
                let sums = gram.split_off(d * d);
                (gram, sums)
            }
            Matrix::Sparse(x) => {
                let (mut gram, sums) = sparse_gram(x, self.columns(), weights);
                // Σ w (x − c)(x − c)ᵀ = Σ w x xᵀ − s cᵀ − c sᵀ + W c cᵀ.
                for i in 0..d {
                    for j in i..d {
                        gram[i * d + j] += total * c[i] * c[j] - sums[i] * c[j] - c[i] * sums[j];
                    }
                }
                (gram, sums)
            }
        };
        self.finish_gram(&mut gram);
        self.finish_gradient(total, &mut sums);
        (gram, sums)
    }

    /// `Xᵀ diag(w) y` for centred and scaled `X`, of a target of those that the design was made with, if it is known.
    pub(crate) fn product(&self, target: usize) -> Option<Vec<f64>> {
        let product = self.products.as_ref()?.get(target)?;
        Some(product.iter().zip(&self.scale).map(|(x, scale)| x / scale).collect())
    }

    /// Scales a centred Gram matrix and fills its lower triangle.
    fn finish_gram(&self, gram: &mut [f64]) {
        let (d, scale) = (self.d(), &self.scale);
        for i in 0..d {
            for j in i..d {
                let x = gram[i * d + j] / (scale[i] * scale[j]);
                gram[i * d + j] = x;
                gram[j * d + i] = x;
            }
        }
    }

    /// Coefficients and intercept for the features as they were given, from those for the design.
    pub(crate) fn restore(&self, v: &[f64], b: f64) -> (Vec<f64>, f64) {
        let v: Vec<f64> = v.iter().zip(self.given_scale()).map(|(v, s)| v / s).collect();
        let shift: f64 = v.iter().zip(self.given_center()).map(|(v, c)| v * c).sum();
        (v, b - shift)
    }

    /// Coefficients and intercept for the design, from those for the features as they were given.
    pub(crate) fn prepared(&self, w: &[f64], b: f64) -> (Vec<f64>, f64) {
        let shift: f64 = w.iter().zip(self.given_center()).map(|(w, c)| w * c).sum();
        (w.iter().zip(self.given_scale()).map(|(w, s)| w * s).collect(), b + shift)
    }

    /// `v / s`, and what centring takes off every product with it.
    fn unscaled(&self, v: &[f64]) -> (Vec<f64>, f64) {
        let v: Vec<f64> = v.iter().zip(&self.scale).map(|(v, s)| v / s).collect();
        let shift = v.iter().zip(&self.center).map(|(v, c)| v * c).sum();
        (v, shift)
    }

    fn finish_gradient(&self, sum: f64, out: &mut [f64]) {
        for ((x, c), s) in out.iter_mut().zip(&self.center).zip(&self.scale) {
            *x = (*x - c * sum) / s;
        }
    }

    fn raw_times(&self, rows: &Range<usize>, v: &[f64], out: &mut [f64]) {
        match self.matrix.as_ref() {
            Matrix::Dense(_) => {
                let x = self.dense_rows(rows).unwrap_or_default();
                dense::dots(self.level, x, v, out);
            }
            Matrix::Sparse(x) => {
                for (row, out) in rows.clone().zip(out) {
                    let (columns, values) = x.row(row);
                    *out = sparse_dot(columns, values, v);
                }
            }
        }
    }

    fn gather(&self, columns: &Csr<f64>, r: &[f64], out: &mut [f64]) {
        let blocks = out.chunks_mut(256).enumerate().collect();
        parallel::each(blocks, self.size(), |(block, out): (usize, &mut [f64])| {
            for (at, out) in out.iter_mut().enumerate() {
                let (rows, values) = columns.row(256 * block + at);
                *out = sparse_dot(rows, values, r);
            }
        });
    }

    /// Sums over all rows of what a look at a block adds to a vector with a place for each column.
    fn sums(&self, look: impl Fn(&Range<usize>, &mut [f64]) -> f64 + Sync) -> (f64, Vec<f64>) {
        self.sums_with(self.d(), look)
    }

    fn sums_with(
        &self,
        width: usize,
        look: impl Fn(&Range<usize>, &mut [f64]) -> f64 + Sync,
    ) -> (f64, Vec<f64>) {
        let n_blocks = self.bounds.len() - 1;
        let blocks: Vec<Range<usize>> = self.bounds.windows(2).map(|b| b[0]..b[1]).collect();
        // Wide sums are kept in few parts.
        let parts = PARTS.min((1 << 22) / width.max(1)).max(4);
        let part = n_blocks.div_ceil(parts).max(1);
        let operations = self.n().saturating_mul(width);
        let chunks = blocks.chunks(part).collect();
        let parts: Vec<(f64, Vec<f64>)> = parallel::map(chunks, operations, |blocks: &[_]| {
            let mut sums = vec![0.0; width];
            let values = blocks.iter().map(|rows| look(rows, &mut sums));
            (values.sum(), sums)
        });
        let mut total = (0.0, vec![0.0; width]);
        for (value, sums) in parts {
            total.0 += value;
            total.1.iter_mut().zip(&sums).for_each(|(total, x)| *total += x);
        }
        total
    }

    /// The weighted mean of each column.
    fn means(&self) -> Vec<f64> {
        let total = self.total.max(f64::MIN_POSITIVE);
        let mut sums = vec![0.0; self.d()];
        match self.weights {
            Some(weights) => self.raw_transposed(weights, &mut sums),
            None => self.raw_transposed(&vec![1.0; self.n()], &mut sums),
        }
        sums.iter().map(|sum| sum / total).collect()
    }

    fn raw_transposed(&self, r: &[f64], out: &mut [f64]) {
        match self.columns() {
            None if self.is_wide() => self.by_columns(out, |row, x, out| {
                dense::add_scaled(self.level, r[row], x, out);
            }),
            None => {
                let (_, sums) = self.sums(|rows, sums| {
                    let x = self.dense_rows(rows).unwrap_or_default();
                    dense::add_rows(self.level, x, &r[rows.clone()], sums);
                    0.0
                });
                out.copy_from_slice(&sums);
            }
            Some(columns) => self.gather(columns, r, out),
        }
    }

    /// Whether sums over rows are made for some of the columns at a time: sums of all columns for
    /// each block of rows would take longer than the rows.
    fn is_wide(&self) -> bool {
        self.d() >= 4 * COLUMNS && self.n() <= self.d()
    }

    /// Sums over the rows of a dense matrix: `add(row, x, out)` adds what some columns of a row give
    /// to their sums.
    fn by_columns(&self, out: &mut [f64], add: impl Fn(usize, &[f64], &mut [f64]) + Sync) {
        let Matrix::Dense(x) = self.matrix.as_ref() else { return };
        let parts = out.chunks_mut(COLUMNS).enumerate().collect();
        parallel::each(parts, self.size(), |(part, out): (usize, &mut [f64])| {
            out.fill(0.0);
            let columns = part * COLUMNS..part * COLUMNS + out.len();
            for row in 0..x.n_rows() {
                add(row, &x.row(row)[columns.clone()], out);
            }
        });
    }

    /// The weighted standard deviation of each column around `means`; 1 where it is constant.
    fn deviations(&self, means: &[f64]) -> Vec<f64> {
        let total = self.total.max(f64::MIN_POSITIVE);
        let squares: Vec<f64> = match self.columns() {
            None if self.is_wide() => {
                let mut squares = vec![0.0; self.d()];
                let Matrix::Dense(x) = self.matrix.as_ref() else { return squares };
                let parts = squares.chunks_mut(COLUMNS).zip(means.chunks(COLUMNS)).enumerate();
                parallel::each(parts.collect(), self.size(), |(part, (out, means))| {
                    for row in 0..x.n_rows() {
                        let (weight, x) = (self.weight(row), &x.row(row)[part * COLUMNS..]);
                        for ((sum, x), mean) in out.iter_mut().zip(x).zip(means) {
                            *sum += weight * (x - mean) * (x - mean);
                        }
                    }
                });
                squares
            }
            None => {
                let d = self.d();
                self.sums(|rows, sums| {
                    let x = self.dense_rows(rows).unwrap_or_default();
                    for (row, x) in rows.clone().zip(x.chunks_exact(d.max(1))) {
                        let weight = self.weight(row);
                        for ((sum, x), mean) in sums.iter_mut().zip(x).zip(means) {
                            *sum += weight * (x - mean) * (x - mean);
                        }
                    }
                    0.0
                })
                .1
            }
            Some(columns) => {
                parallel::map((0..self.d()).collect(), self.size(), |column: usize| {
                    let (rows, values) = columns.row(column);
                    let mean = means[column];
                    let (mut stored, mut sum) = (0.0, 0.0);
                    for (&row, x) in rows.iter().zip(values) {
                        let weight = self.weight(row as usize);
                        stored += weight;
                        sum += weight * (x - mean) * (x - mean);
                    }
                    sum + (total - stored).max(0.0) * mean * mean
                })
            }
        };
        deviations(&squares, means, total)
    }
}

/// Standard deviations from sums of squares; 1 of a constant column.
fn deviations(squares: &[f64], means: &[f64], total: f64) -> Vec<f64> {
    let deviation = |(square, mean): (&f64, &f64)| {
        let deviation = (square / total).sqrt();
        // What rounding leaves of a constant column is none.
        if deviation > 1e-14 * mean.abs() && deviation.is_normal() { deviation } else { 1.0 }
    };
    squares.iter().zip(means).map(deviation).collect()
}

/// `Σ w x xᵀ` (upper triangle) and `Σ w x` of the rows of a sparse matrix.
fn sparse_gram(
    x: &Csr<f64>,
    columns: Option<&Csr<f64>>,
    weights: Option<&[f64]>,
) -> (Vec<f64>, Vec<f64>) {
    let d = x.n_cols();
    let weight = |row: u32| weights.map_or(1.0, |weights| weights[row as usize]);
    let mut gram = vec![0.0; d * d];
    let Some(columns) = columns else { return (gram, vec![0.0; d]) };
    // Row `i` of the result: the rows of the matrix that have column `i`, weighted and added up.
    let rows = gram.chunks_exact_mut(d.max(1)).enumerate().collect();
    let operations = x.nnz() * (x.nnz() / x.n_rows().max(1) + 1);
    parallel::each(rows, operations, |(i, out): (usize, &mut [f64])| {
        let (rows, values) = columns.row(i);
        for (&row, &value) in rows.iter().zip(values) {
            let by = weight(row) * value;
            let (others, entries) = x.row(row as usize);
            for (&j, entry) in others.iter().zip(entries) {
                out[j as usize] += by * entry;
            }
        }
    });
    let sums = parallel::map_below(d, x.nnz(), |column| {
        let (rows, values) = columns.row(column);
        rows.iter().zip(values).map(|(&row, x)| weight(row) * x).sum()
    });
    (gram, sums)
}

mod many;
/// The matrix `[XᵀDX, XᵀD1; 1ᵀDX, 1ᵀD1] / total` from its parts: `border` is `XᵀD1` and `1ᵀD1`. Without a
/// border the last row and column are those of the identity.
pub(crate) fn bordered(gram: &[f64], border: Option<(&[f64], f64)>, total: f64) -> Vec<f64> {
    let d = gram.len().isqrt();
    let m = d + 1;
    let mut matrix = vec![0.0; m * m];
    for (to, row) in matrix.chunks_exact_mut(m).zip(gram.chunks_exact(d.max(1))) {
        to.iter_mut().zip(row).for_each(|(to, x)| *to = x / total);
    }
    matrix[m * m - 1] = 1.0;
    if let Some((sums, sum)) = border {
        for (i, x) in sums.iter().enumerate() {
            matrix[i * m + d] = x / total;
            matrix[d * m + i] = x / total;
        }
        matrix[m * m - 1] = sum / total;
    }
    matrix
}

pub(crate) use many::Curved;
#[cfg(test)]
mod tests;
