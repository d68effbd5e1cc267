//! Samples as the solver of lasso and elastic net sees them: gradients, and products of columns.
//!
//! Sums over samples are weighted and divided by the sum of the weights throughout.

use crate::design::{Design, Preparation, sparse_dot};
use crate::moments::moments;
use crate::parallel;
use gradus_base::{Error, Result};
use gradus_data::{Csr, Dense, Matrix};
use gradus_kernel::{Level, dense};
use std::sync::OnceLock;

/// Columns up to which a Gram matrix of all of them is made for one penalty.
const GRAM_FOR_ONE: usize = 512;

/// Columns up to which a Gram matrix of all of them is made for a path of penalties.
const GRAM_FOR_PATH: usize = 4096;

/// Relative error of a product in the Gram matrix: sums in blocks lose less.
const ROUNDING: f64 = 256.0 * f64::EPSILON;

/// Entries of columns that are worked on together.
const BLOCK: usize = 1 << 14;

/// How the samples are prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) fit_intercept: bool,
    pub(crate) standardize: bool,
    /// Many penalties will be asked for.
    pub(crate) path: bool,
}

/// One number to predict.
pub(super) struct Response {
    /// The (weighted) mean; 0 without intercept.
    pub(super) mean: f64,
    /// The values less the mean.
    pub(super) y: Vec<f64>,
    /// `⟨y, y⟩`.
    pub(super) yy: f64,
    /// `Xᵀy`.
    pub(super) q: Vec<f64>,
}

/// Features and targets, prepared.
pub(crate) struct Problem<'a> {
    matrix: &'a Matrix,
    weights: Option<&'a [f64]>,
    setting: Setting,
    total: f64,
    /// The share of a weight of 1 in all weights.
    one: f64,
    pub(super) means: Vec<f64>,
    pub(super) scale: Vec<f64>,
    /// The square of each column; 0 of one without spread, which takes no part.
    pub(super) squares: Vec<f64>,
    pub(super) responses: Vec<Response>,
    /// The Gram matrix of all columns, if it was made.
    pub(super) gram: Option<Vec<f64>>,
    design: OnceLock<Design<'a>>,
    /// Blocks of columns of a sparse matrix with about as many entries each.
    bounds: Vec<usize>,
    level: Level,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(
        matrix: &'a Matrix,
        weights: Option<&'a [f64]>,
        targets: &Dense<f64>,
        setting: Setting,
    ) -> Self {
        let (n, d) = matrix.shape();
        let total = weights.map_or(n as f64, |weights| weights.iter().sum());
        let share = |row: usize| weights.map_or(1.0, |weights| weights[row]) / total;
        let means: Vec<f64> = (0..targets.n_cols())
            .map(|t| {
                if !setting.fit_intercept {
                    return 0.0;
                }
                // Around the first value: a mean far larger than the spread keeps its digits.
                let first = targets.column(t).next().unwrap_or_default();
                let off = targets.column(t).enumerate().map(|(row, y)| share(row) * (y - first));
                first + off.sum::<f64>()
            })
            .collect();
        let response = |(t, &mean): (usize, &f64)| {
            let y: Vec<f64> = targets.column(t).map(|y| y - mean).collect();
            let mut yy: f64 = y.iter().enumerate().map(|(row, y)| share(row) * y * y).sum();
            // What rounding leaves of a constant target is nothing to explain.
            if yy.sqrt() <= 1e-14 * mean.abs() {
                yy = 0.0;
            }
            Response { mean, y, yy, q: vec![0.0; d] }
        };
        let responses: Vec<Response> = means.iter().enumerate().map(response).collect();
        let mut problem = Self {
            matrix,
            weights,
            setting,
            total,
            one: 1.0 / total,
            means: vec![0.0; d],
            scale: vec![1.0; d],
            squares: vec![0.0; d],
            responses,
            gram: None,
            design: OnceLock::new(),
            bounds: Vec::new(),
            level: Level::best(),
        };
        let widest = if setting.path { GRAM_FOR_PATH } else { GRAM_FOR_ONE };
        match matrix {
            Matrix::Dense(x) if d <= widest && d <= n => problem.prepare_gram(x, targets, &means),
            _ => problem.prepare_columns(),
        }
        problem
    }

    /// Refuses numbers whose products overflow: nothing could be said of a solution.
    pub(crate) fn check(&self, model: &str) -> Result<()> {
        let finite = |values: &[f64]| values.iter().all(|x| x.is_finite());
        let responses = self.responses.iter();
        let sound = finite(&self.means)
            && finite(&self.scale)
            && finite(&self.squares)
            && self.gram.as_deref().is_none_or(finite)
            && responses
                .into_iter()
                .all(|r| r.yy.is_finite() && r.mean.is_finite() && finite(&r.q));
        if sound {
            return Ok(());
        }
        Err(Error::data(format!(
            "{model}: the features or the target are too large: their products are not finite; \
             divide them by a constant first"
        )))
    }

    fn prepare_gram(&mut self, x: &Dense<f64>, targets: &Dense<f64>, means: &[f64]) {
        let d = x.n_cols();
        let center = self.setting.fit_intercept || self.setting.standardize;
        let mut found = moments(x, self.weights, targets, means, self.total, center);
        let spread: Vec<f64> = (0..d).map(|j| found.gram[j * d + j]).collect();
        let flat: Vec<bool> =
            (0..d).map(|j| is_flat(spread[j], if center { found.means[j] } else { 0.0 })).collect();
        if self.setting.standardize {
            self.scale = (0..d).map(|j| if flat[j] { 1.0 } else { spread[j].sqrt() }).collect();
        }
        if center && !self.setting.fit_intercept {
            // Scaled but not centred: back to products around 0.
            found = moments(x, self.weights, targets, means, self.total, false);
        }
        self.means = found.means;
        for i in 0..d {
            for j in 0..d {
                found.gram[i * d + j] /= self.scale[i] * self.scale[j];
            }
            let square = found.gram[i * d + i];
            let flat = if self.setting.fit_intercept { flat[i] } else { square == 0.0 };
            self.squares[i] = if flat { 0.0 } else { square };
        }
        for (response, mut products) in self.responses.iter_mut().zip(found.products) {
            products.iter_mut().zip(&self.scale).for_each(|(q, scale)| *q /= scale);
            response.q = products;
        }
        self.gram = Some(found.gram);
    }

    fn prepare_columns(&mut self) {
        let design = self.new_design();
        self.bounds = design.columns().map(balanced).unwrap_or_default();
        self.means = design.given_center().to_vec();
        self.scale = design.given_scale().to_vec();
        let (n, d) = (design.n(), design.d());
        let share = |row: usize| self.share(row);
        self.squares = match design.columns() {
            None => {
                let Matrix::Dense(x) = self.matrix else { return };
                let chunk = n.div_ceil(64).max(1);
                let parts = x.values().chunks(chunk * d.max(1)).enumerate().collect();
                let parts: Vec<Vec<f64>> =
                    parallel::map(parts, n * d, |(part, rows): (usize, &[f64])| {
                        let mut sums = vec![0.0; d];
                        for (at, row) in rows.chunks_exact(d.max(1)).enumerate() {
                            let share = share(part * chunk + at);
                            for ((sum, x), mean) in sums.iter_mut().zip(row).zip(&self.means) {
                                *sum += share * (x - mean) * (x - mean);
                            }
                        }
                        sums
                    });
                let mut squares = vec![0.0; d];
                for part in &parts {
                    squares.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
                }
                squares
            }
            Some(columns) => parallel::map_below(d, columns.nnz(), |j| {
                let (rows, values) = columns.row(j);
                let mean = self.means[j];
                let (mut stored, mut sum) = (0.0, 0.0);
                for (&row, x) in rows.iter().zip(values) {
                    let share = share(row as usize);
                    stored += share;
                    sum += share * (x - mean) * (x - mean);
                }
                // A full column has no zeros; rounding must not find some.
                let zeros = if rows.len() == n { 0.0 } else { (1.0 - stored).max(0.0) };
                sum + zeros * mean * mean
            }),
        };
        for (j, square) in self.squares.iter_mut().enumerate() {
            let flat = is_flat(*square, self.means[j]);
            *square = if flat { 0.0 } else { *square / (self.scale[j] * self.scale[j]) };
        }
        let _ = self.design.set(design);
        for t in 0..self.responses.len() {
            let mut q = vec![0.0; d];
            self.gradient(t, &[], &vec![0.0; d], &mut q, None);
            self.responses[t].q = q;
        }
    }

    fn new_design(&self) -> Design<'a> {
        let Setting { fit_intercept: center, standardize: scale, .. } = self.setting;
        Design::new(self.matrix, self.weights, Preparation { center, scale })
    }

    pub(super) fn design(&self) -> &Design<'a> {
        self.design.get_or_init(|| self.new_design())
    }

    /// Number of features.
    pub(crate) fn d(&self) -> usize {
        self.squares.len()
    }

    /// Number of targets.
    pub(crate) fn n_targets(&self) -> usize {
        self.responses.len()
    }

    /// Whether many penalties will be asked for.
    pub(super) fn is_path(&self) -> bool {
        self.setting.path
    }

    /// The share of a sample in all weights.
    pub(super) fn share(&self, row: usize) -> f64 {
        self.weights.map_or(self.one, |weights| weights[row] * self.one)
    }

    /// Weights of the samples, if they do not all weigh 1.
    pub(super) fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// Whether columns can be had one by one at the cost of their entries.
    pub(super) fn sparse_columns(&self) -> Option<&Csr<f64>> {
        if self.matrix.is_sparse() { self.design().columns() } else { None }
    }

    /// Entries of a column.
    pub(super) fn entries(&self, column: u32) -> usize {
        self.sparse_columns().map_or(self.matrix.n_rows(), |x| x.range(column as usize).len())
    }

    /// `g = Xᵀ(y − Xβ)`, and `‖y − Xβ‖²`. `support` has all places where `beta` is not 0.
    /// With a sparse matrix, the places that are not `alive` stay as they are.
    pub(super) fn gradient(
        &self,
        t: usize,
        support: &[u32],
        beta: &[f64],
        g: &mut [f64],
        alive: Option<&[bool]>,
    ) -> f64 {
        let response = &self.responses[t];
        match self.matrix {
            Matrix::Dense(_) => {
                self.design()
                    .sweep(beta, 0.0, g, |rows, margins| {
                        let mut rest = 0.0;
                        for (row, margin) in rows.zip(margins) {
                            let (share, r) = (self.share(row), response.y[row] - *margin);
                            rest += share * r * r;
                            *margin = share * r;
                        }
                        rest
                    })
                    .0
            }
            Matrix::Sparse(_) => {
                let mut r = self.residuals(t, support, beta);
                let mut rest = 0.0;
                for (row, r) in r.iter_mut().enumerate() {
                    let share = self.share(row);
                    rest += share * *r * *r;
                    *r *= share;
                }
                self.gather(&r, g, alive);
                rest
            }
        }
    }

    /// The same from the Gram matrix of all columns, and a bound on the error of the gap by rounding.
    pub(super) fn gradient_by_gram(
        &self,
        t: usize,
        support: &[u32],
        beta: &[f64],
        g: &mut [f64],
    ) -> (f64, f64) {
        let (d, response) = (self.d(), &self.responses[t]);
        let Some(gram) = &self.gram else { return (f64::NAN, f64::INFINITY) };
        g.copy_from_slice(&response.q);
        let (mut along, mut size) = (0.0, response.yy.sqrt());
        for &j in support {
            let j = j as usize;
            dense::add_scaled(self.level, -beta[j], &gram[j * d..(j + 1) * d], g);
            size += beta[j].abs() * self.squares[j].sqrt();
        }
        for &j in support {
            let j = j as usize;
            along += beta[j] * (response.q[j] + g[j]);
        }
        // A gradient is off by at most rounding · ‖x_j‖ · (‖y‖ + Σ |β| ‖x‖).
        ((response.yy - along).max(0.0), ROUNDING * size * size)
    }

    /// `y − Xβ` of a sparse matrix.
    pub(super) fn residuals(&self, t: usize, support: &[u32], beta: &[f64]) -> Vec<f64> {
        let response = &self.responses[t];
        let Some(columns) = self.sparse_columns() else {
            let mut r = vec![0.0; response.y.len()];
            self.design().times(beta, 0.0, &mut r);
            r.iter_mut().zip(&response.y).for_each(|(r, y)| *r = y - *r);
            return r;
        };
        let stored: usize = support.iter().map(|&j| columns.range(j as usize).len()).sum();
        if stored * 4 > columns.nnz() {
            let mut r = vec![0.0; response.y.len()];
            self.design().times(beta, 0.0, &mut r);
            r.iter_mut().zip(&response.y).for_each(|(r, y)| *r = y - *r);
            return r;
        }
        let mut r = response.y.clone();
        let mut shift = 0.0;
        for &j in support {
            let j = j as usize;
            let by = beta[j] / self.scale[j];
            shift += by * self.means[j];
            let (rows, values) = columns.row(j);
            for (&row, x) in rows.iter().zip(values) {
                r[row as usize] -= by * x;
            }
        }
        if shift != 0.0 {
            r.iter_mut().for_each(|r| *r += shift);
        }
        r
    }

    /// `Xᵀv` of a sparse matrix, at the places that are alive.
    fn gather(&self, v: &[f64], g: &mut [f64], alive: Option<&[bool]>) {
        let Some(columns) = self.sparse_columns() else { return };
        let sum: f64 = v.iter().sum();
        let mut parts = Vec::with_capacity(self.bounds.len());
        let mut rest = g;
        for bound in self.bounds.windows(2) {
            let (part, after) = rest.split_at_mut(bound[1] - bound[0]);
            parts.push((bound[0], part));
            rest = after;
        }
        parallel::each(parts, columns.nnz(), |(first, part): (usize, &mut [f64])| {
            for (j, g) in (first..).zip(part) {
                if alive.is_none_or(|alive| alive[j]) {
                    let (rows, values) = columns.row(j);
                    *g = (sparse_dot(rows, values, v) - self.means[j] * sum) / self.scale[j];
                }
            }
        });
    }

    /// Products of the columns at the places from `first` on with those of all places.
    pub(super) fn products(
        &self,
        columns: &[u32],
        place: &[u32],
        first: usize,
        out: &mut [f64],
        stride: usize,
        copies: &mut Vec<Vec<f64>>,
    ) {
        let d = self.d();
        match (self.matrix, &self.gram) {
            (_, Some(gram)) => {
                for (at, out) in (first..).zip(out.chunks_exact_mut(stride)) {
                    let from = &gram[columns[at] as usize * d..][..d];
                    for (out, &j) in out.iter_mut().zip(columns) {
                        *out = from[j as usize];
                    }
                }
            }
            (Matrix::Dense(_), None) => {
                copies.extend(self.copied(&columns[first..]));
                let copies = &*copies;
                let operations = out.len() * self.matrix.n_rows();
                let rows = out.chunks_exact_mut(stride).enumerate().collect();
                parallel::each(rows, operations, |(at, out): (usize, &mut [f64])| {
                    for (out, other) in out.iter_mut().zip(&copies[..=first + at]) {
                        *out = dense::dot(self.level, &copies[first + at], other);
                    }
                });
                // What is above the diagonal among the new ones comes from the others' rows.
                for at in first..columns.len() {
                    for other in at + 1..columns.len() {
                        out[(at - first) * stride + other] = out[(other - first) * stride + at];
                    }
                }
            }
            (Matrix::Sparse(rows), None) => {
                let Some(by_column) = self.sparse_columns() else { return };
                let size = |columns: &[u32]| -> usize {
                    columns.iter().map(|&j| by_column.range(j as usize).len()).sum()
                };
                let (new, all) = (size(&columns[first..]), size(columns));
                // Rows that hold the chosen columns alone cost a sort of their entries, and save
                // looking at all others.
                let per_row = |entries: usize| entries / rows.n_rows().max(1) + 1;
                let pays = new * per_row(rows.nnz()) > 2 * all + new * per_row(all);
                let chosen = pays.then(|| chosen_rows(by_column, columns));
                let operations = out.len() + new * per_row(if pays { all } else { rows.nnz() });
                let lines = out.chunks_exact_mut(stride).enumerate().collect();
                parallel::each(lines, operations, |(at, out): (usize, &mut [f64])| {
                    let j = columns[first + at] as usize;
                    out.fill(0.0);
                    match &chosen {
                        Some(chosen) => self.chosen_products(chosen, by_column, j, out),
                        None => self.sparse_products(rows, by_column, j, place, out),
                    }
                    let (mean, scale) = (self.means[j], self.scale[j]);
                    for (out, &other) in out.iter_mut().zip(columns) {
                        let other = other as usize;
                        let product = *out - mean * self.means[other];
                        *out = product / (scale * self.scale[other]);
                    }
                });
            }
        }
        for (at, out) in (first..columns.len()).zip(out.chunks_exact_mut(stride)) {
            out[at] = self.squares[columns[at] as usize];
        }
    }

    /// Adds the products of column `j` with those that have a place.
    fn sparse_products(
        &self,
        rows: &Csr<f64>,
        by_column: &Csr<f64>,
        j: usize,
        place: &[u32],
        out: &mut [f64],
    ) {
        let (at, values) = by_column.row(j);
        for (&row, x) in at.iter().zip(values) {
            let by = x * self.share(row as usize);
            let (others, entries) = rows.row(row as usize);
            for (&other, entry) in others.iter().zip(entries) {
                if let Some(out) = out.get_mut(place[other as usize] as usize) {
                    *out += by * entry;
                }
            }
        }
    }

    /// The same from rows of places.
    fn chosen_products(
        &self,
        (starts, entries): &(Vec<u32>, Vec<(u32, f64)>),
        by_column: &Csr<f64>,
        j: usize,
        out: &mut [f64],
    ) {
        let (at, values) = by_column.row(j);
        for (&row, x) in at.iter().zip(values) {
            let by = x * self.share(row as usize);
            let row = row as usize;
            for &(place, entry) in &entries[starts[row] as usize..starts[row + 1] as usize] {
                out[place as usize] += by * entry;
            }
        }
    }

    /// Copies of columns of a dense matrix, centred and scaled, each entry times the root of the
    /// share of its sample.
    pub(super) fn copied(&self, columns: &[u32]) -> Vec<Vec<f64>> {
        let Matrix::Dense(x) = self.matrix else { return Vec::new() };
        parallel::map(columns.to_vec(), columns.len() * x.n_rows(), |j: u32| {
            let j = j as usize;
            let (mean, scale) = (self.means[j], self.scale[j]);
            let one = |(row, x)| self.share(row).sqrt() * (x - mean) / scale;
            x.column(j).enumerate().map(one).collect()
        })
    }

    /// Coefficients and intercept for the features as they were given.
    pub(crate) fn restore(&self, t: usize, beta: &[f64]) -> (Vec<f64>, f64) {
        let w: Vec<f64> = beta.iter().zip(&self.scale).map(|(b, s)| b / s).collect();
        let shift: f64 = w.iter().zip(&self.means).map(|(w, m)| w * m).sum();
        let intercept =
            if self.setting.fit_intercept { self.responses[t].mean - shift } else { 0.0 };
        (w, intercept)
    }
}

/// Whether a column is constant but for rounding.
fn is_flat(square: f64, mean: f64) -> bool {
    !(square.sqrt() > 1e-14 * mean.abs() && square > 0.0)
}

/// Bounds of blocks of rows with about [`BLOCK`] entries each.
fn balanced(x: &Csr<f64>) -> Vec<usize> {
    let mut bounds = vec![0];
    let mut filled = 0;
    for row in 0..x.n_rows() {
        filled += x.range(row).len() + 4;
        if filled >= BLOCK {
            bounds.push(row + 1);
            filled = 0;
        }
    }
    if bounds.last() != Some(&x.n_rows()) {
        bounds.push(x.n_rows());
    }
    bounds
}

/// The rows of a sparse matrix with the chosen columns alone: where each begins, and its entries,
/// with the place of the column.
fn chosen_rows(by_column: &Csr<f64>, columns: &[u32]) -> (Vec<u32>, Vec<(u32, f64)>) {
    let mut starts = vec![0u32; by_column.n_cols() + 1];
    for &j in columns {
        for &row in by_column.row(j as usize).0 {
            starts[row as usize + 1] += 1;
        }
    }
    for row in 1..starts.len() {
        starts[row] += starts[row - 1];
    }
    let mut next = starts.clone();
    let mut entries = vec![(0, 0.0); starts.last().copied().unwrap_or_default() as usize];
    for (place, &j) in (0..).zip(columns) {
        let (rows, values) = by_column.row(j as usize);
        for (&row, &x) in rows.iter().zip(values) {
            let slot = &mut next[row as usize];
            entries[*slot as usize] = (place, x);
            *slot += 1;
        }
    }
    (starts, entries)
}
