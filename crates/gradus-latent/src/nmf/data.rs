//! The data of a fit, the unit it is measured in, and its entries by rows and by columns.

use super::NmfLoss;
use gradus_base::{Error, Result, parallel};
use gradus_data::{Csr, Matrix, Samples};
use gradus_kernel::linalg;

/// Rows that a thread sums over at a time.
const ROWS: usize = 1024;

/// Refuses negative entries.
///
/// # Errors
/// Names the first one by row and column, both from 1.
pub(super) fn check_non_negative(features: &Matrix) -> Result<()> {
    let wrong = |x: &f64| *x < 0.0 || *x == f64::INFINITY;
    let Some(at) = features.values().iter().position(wrong) else { return Ok(()) };
    let (row, column) = match features {
        Matrix::Dense(matrix) => (at / matrix.n_cols(), at % matrix.n_cols()),
        Matrix::Sparse(matrix) => {
            let row = matrix.indptr().partition_point(|&start| start <= at) - 1;
            (row, matrix.indices()[at] as usize)
        }
    };
    let value = features.values()[at];
    let what =
        if value < 0.0 { "is negative; must be 0 or more" } else { "is not a finite number" };
    Err(Error::data(format!(
        "nmf: features: row {}, column {}: {value} {what}",
        row + 1,
        column + 1
    )))
}

/// Samples, their weights, and what their entries are divided by.
pub(super) struct Data<'a> {
    pub(super) features: &'a Matrix,
    pub(super) weights: Option<&'a [f64]>,
    /// The root of the mean square of the entries, or their mean for `kl`: 1 if that is 0.
    pub(super) unit: f64,
    /// The mean of the entries in that unit.
    pub(super) mean: f64,
    /// The sum of the squares of the entries in that unit, each with its weight.
    pub(super) squares: f64,
    /// The sum of the weights.
    pub(super) total: f64,
    /// The entries that count with their weights, if not all entries do alike.
    pub(super) observed: Option<Known>,
}

/// Entries, and a weight for each of them if they differ.
pub(super) type Known = (Csr<f64>, Option<Vec<f64>>);

impl<'a> Data<'a> {
    pub(super) fn new(samples: &'a Samples, loss: NmfLoss, observed: Option<Known>) -> Self {
        let (features, weights) = (samples.features(), samples.weights());
        let (n, d) = features.shape();
        let entry_weight = |at: usize| match &observed {
            Some((_, Some(weights))) => weights[at],
            _ => 1.0,
        };
        let total = weights.map_or(n as f64, |weights| weights.iter().sum());
        // Relative to the largest, so that no square leaves the range of numbers.
        let largest = features.values().iter().fold(0.0f64, |most, x| most.max(*x));
        let by = if largest > 0.0 { 1.0 / largest } else { 1.0 };
        let sums = parallel::map(parallel::blocks(n, ROWS), |rows| {
            let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
            for row in rows {
                let (mut s, mut q, mut c) = (0.0, 0.0, 0.0);
                match &observed {
                    None => {
                        for x in row_values(features, row) {
                            s += x * by;
                            q += (x * by) * (x * by);
                        }
                        c = d as f64;
                    }
                    Some((entries, _)) => {
                        for (at, x) in entries.range(row).zip(entries.row(row).1) {
                            let weight = entry_weight(at);
                            s += weight * (x * by);
                            q += weight * (x * by) * (x * by);
                            c += weight;
                        }
                    }
                }
                let weight = weights.map_or(1.0, |weights| weights[row]);
                sum += weight * s;
                squares += weight * q;
                count += weight * c;
            }
            (sum, squares, count)
        });
        let (sum, squares, count) = sums
            .into_iter()
            .fold((0.0, 0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1, all.2 + part.2));
        let count: f64 = count.max(f64::MIN_POSITIVE);
        let relative = match loss {
            NmfLoss::Frobenius => (squares / count).sqrt(),
            NmfLoss::Kl => sum / count,
        };
        let unit = if relative > 0.0 { largest * relative } else { 1.0 };
        let relative = if relative > 0.0 { relative } else { 1.0 };
        Self {
            features,
            weights,
            unit,
            mean: sum / count / relative,
            squares: squares / (relative * relative),
            total,
            observed,
        }
    }
}

fn row_values(features: &Matrix, row: usize) -> &[f64] {
    match features {
        Matrix::Dense(x) => x.row(row),
        Matrix::Sparse(x) => x.row(row).1,
    }
}

/// Entries by rows: those of the samples, or those of the features.
pub(super) enum Entries<'a> {
    Dense { width: usize, values: std::borrow::Cow<'a, [f64]> },
    Sparse(std::borrow::Cow<'a, Csr<f64>>),
}

impl<'a> Entries<'a> {
    pub(super) fn rows(features: &'a Matrix) -> Self {
        match features {
            Matrix::Dense(x) => Self::Dense { width: x.n_cols(), values: x.values().into() },
            Matrix::Sparse(x) => Self::Sparse(std::borrow::Cow::Borrowed(x)),
        }
    }

    /// The columns as rows, each entry times the weight of its sample.
    pub(super) fn columns(features: &Matrix, weights: Option<&[f64]>) -> Self {
        match features {
            Matrix::Dense(x) => {
                let n = x.n_rows();
                let mut values = x.transpose().into_values();
                if let Some(weights) = weights {
                    for row in values.chunks_exact_mut(n.max(1)) {
                        row.iter_mut().zip(weights).for_each(|(x, w)| *x *= w);
                    }
                }
                Self::Dense { width: n, values: values.into() }
            }
            Matrix::Sparse(x) => {
                let mut columns = x.transpose();
                if let Some(weights) = weights {
                    let weighted = columns.indices().iter().zip(columns.values());
                    let values = weighted.map(|(&row, x)| weights[row as usize] * x).collect();
                    columns = columns.with_values(values);
                }
                Self::Sparse(std::borrow::Cow::Owned(columns))
            }
        }
    }
}

/// `Fᵀ F` of a factor with rows of `k` values, in an order that depends on the sizes alone.
pub(super) fn gram(k: usize, factor: &[f64]) -> Vec<f64> {
    cross(k, factor, factor)
}

/// `Aᵀ B` of factors with rows of `k` values.
pub(super) fn cross(k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let pieces = a.chunks(ROWS * k).zip(b.chunks(ROWS * k));
    let parts = parallel::map(pieces, |(a, b)| {
        let mut part = vec![0.0; k * k];
        linalg::add_transposed_product((k, k, a.len() / k), a, b, &mut part);
        part
    });
    let mut sum = vec![0.0; k * k];
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    sum
}

/// The sum of the rows of a factor, each times its weight.
pub(super) fn column_sums(k: usize, factor: &[f64], weights: Option<&[f64]>) -> Vec<f64> {
    let mut sums = vec![0.0; k];
    for (row, z) in factor.chunks_exact(k).enumerate() {
        let weight = weights.map_or(1.0, |weights| weights[row]);
        sums.iter_mut().zip(z).for_each(|(sum, z)| *sum += weight * z);
    }
    sums
}

/// The rows of a factor times weights.
pub(super) fn weighted(k: usize, factor: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut scaled = factor.to_vec();
    for (z, weight) in scaled.chunks_exact_mut(k).zip(weights) {
        z.iter_mut().for_each(|z| *z *= weight);
    }
    scaled
}
