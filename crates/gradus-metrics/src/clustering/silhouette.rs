//! The silhouette: how much nearer a sample is to its own cluster than to the next one.

use super::shape::{check, numbered};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_data::{Dense, Matrix};
use gradus_kernel::linalg;
use serde::Serialize;

/// Samples whose distances to all others are found together.
const ROWS: usize = 64;

/// Others that they are compared with at a time.
const OTHERS: usize = 512;

/// The silhouette of each sample: `(b − a) / max(a, b)`, with `a` the mean distance to the other samples of its cluster
/// and `b` the least mean distance to those of another cluster; 0 of a sample that is alone in its cluster.
///
/// Cost: a product for each pair of samples, `n² d` operations, in blocks that need little memory.
///
/// # Errors
/// If there is not a label for each sample, there is one cluster, or as many as samples; or a feature is not finite.
pub fn silhouettes(features: &Matrix, labels: &[u32]) -> Result<Vec<f64>> {
    let (labels, counts) = check(features, labels)?;
    let (n, k) = (labels.len(), counts.len());
    let features = centred(features);
    let norms: Vec<f64> = (0..n).map(|row| norm(&features, row)).collect();
    let parts = parallel::map(parallel::blocks(n, ROWS), |rows| {
        let mut sums = vec![0.0; rows.len() * k];
        for others in parallel::blocks(n, OTHERS) {
            let products = products(&features, rows.clone(), others.clone());
            for (at, row) in rows.clone().enumerate() {
                let sums = &mut sums[at * k..][..k];
                let products = &products[at * others.len()..][..others.len()];
                for (product, other) in products.iter().zip(others.clone()) {
                    if other != row {
                        let square = norms[row] + norms[other] - 2.0 * product;
                        sums[labels[other] as usize] += square.max(0.0).sqrt();
                    }
                }
            }
        }
        let of_row = |(at, row)| of(labels[row], &sums[at * k..][..k], &counts);
        rows.enumerate().map(of_row).collect::<Vec<f64>>()
    });
    Ok(parts.into_iter().flatten().collect())
}

/// The silhouette of a sample, by the sums of its distances to the samples of each cluster.
fn of(label: u32, sums: &[f64], counts: &[usize]) -> f64 {
    let own = label as usize;
    if counts[own] == 1 {
        return 0.0;
    }
    let a = sums[own] / (counts[own] - 1) as f64;
    let others = (0..sums.len()).filter(|&at| at != own).map(|at| sums[at] / counts[at] as f64);
    let b = others.fold(f64::INFINITY, f64::min);
    let larger = a.max(b);
    if larger > 0.0 { (b - a) / larger } else { 0.0 }
}

/// The distances of some samples to each other, for the silhouettes of many clusterings of them.
#[derive(Clone, Debug)]
pub struct Distances {
    n: usize,
    /// Samples × samples.
    values: Vec<f64>,
}

impl Distances {
    /// Measures all of them: `n² d` operations, and `n²` numbers to keep.
    ///
    /// # Errors
    /// If a feature is not finite.
    pub fn new(features: &Matrix) -> Result<Self> {
        features.check_finite()?;
        let n = features.n_rows();
        if n == 0 {
            return Ok(Self { n, values: Vec::new() });
        }
        let features = centred(features);
        let norms: Vec<f64> = (0..n).map(|row| norm(&features, row)).collect();
        let parts = parallel::map(parallel::blocks(n, ROWS), |rows| {
            let mut values = products(&features, rows.clone(), 0..n);
            for (values, row) in values.chunks_exact_mut(n).zip(rows) {
                for (value, norm) in values.iter_mut().zip(&norms) {
                    *value = (norms[row] + norm - 2.0 * *value).max(0.0).sqrt();
                }
                values[row] = 0.0;
            }
            values
        });
        Ok(Self { n, values: parts.into_iter().flatten().collect() })
    }

    /// The silhouette of each sample, as [`silhouettes`] finds it: `n²` operations.
    ///
    /// # Errors
    /// As [`silhouettes`].
    pub fn silhouettes(&self, labels: &[u32]) -> Result<Vec<f64>> {
        let (labels, counts) = numbered(self.n, labels)?;
        let mut sums = vec![0.0; counts.len()];
        let rows = self.values.chunks_exact(self.n.max(1)).zip(&labels);
        let of_row = |(distances, &label): (&[f64], &u32)| {
            sums.fill(0.0);
            for (distance, &other) in distances.iter().zip(&labels) {
                sums[other as usize] += distance;
            }
            of(label, &sums, &counts)
        };
        Ok(rows.map(of_row).collect())
    }
}

/// The mean silhouette of clusters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Silhouette {
    /// The mean over samples.
    pub mean: f64,
    /// The mean of each cluster, by its label; `None` of one that no sample has.
    pub clusters: Vec<Option<f64>>,
    /// The number of samples that were measured: all of them, or some drawn at random.
    pub samples: usize,
    /// The number of samples in all.
    pub of: usize,
    /// The samples it was measured on.
    #[serde(skip)]
    pub rows: Vec<u32>,
    /// The silhouette of each of them.
    #[serde(skip)]
    pub values: Vec<f64>,
}

impl Silhouette {
    /// Samples that are measured exactly by default; of more, this many are drawn.
    pub const MOST: usize = 10_000;

    /// Measures all samples, or `most` drawn at random where there are more.
    ///
    /// # Errors
    /// As [`silhouettes`].
    pub fn new(features: &Matrix, labels: &[u32], most: usize, seed: u64) -> Result<Self> {
        check(features, labels)?;
        let n = labels.len();
        let rows: Vec<u32> = match n > most {
            true => {
                let drawn = Stream::new(seed, "silhouette", 0).sample(n, most)?;
                drawn.into_iter().map(|row| row as u32).collect()
            }
            false => (0..n as u32).collect(),
        };
        let of_rows: Vec<u32> = rows.iter().map(|&row| labels[row as usize]).collect();
        let values = match rows.len() == n {
            true => silhouettes(features, &of_rows)?,
            false => silhouettes(&features.select_rows(&rows), &of_rows)?,
        };
        let k = labels.iter().max().map_or(0, |&most| most as usize + 1);
        let (mut sums, mut counts) = (vec![0.0; k], vec![0usize; k]);
        for (&label, value) in of_rows.iter().zip(&values) {
            sums[label as usize] += value;
            counts[label as usize] += 1;
        }
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let of = |(sum, &count): (&f64, &usize)| (count > 0).then(|| sum / count as f64);
        let clusters = sums.iter().zip(&counts).map(of).collect();
        Ok(Self { mean, clusters, samples: rows.len(), of: n, rows, values })
    }
}

/// Dense features less their means, which changes no distance but keeps the digits of products.
fn centred(features: &Matrix) -> Matrix {
    let Matrix::Dense(x) = features else { return features.clone() };
    let (n, d) = x.shape();
    let first = x.row(0);
    let mut means = vec![0.0; d];
    for row in x.rows() {
        for ((mean, x), first) in means.iter_mut().zip(row).zip(first) {
            *mean += (x - first) / n as f64;
        }
    }
    means.iter_mut().zip(first).for_each(|(mean, first)| *mean += first);
    Dense::from_fn(n, d, |row, at| x[(row, at)] - means[at]).into()
}

fn norm(features: &Matrix, row: usize) -> f64 {
    let row = match features {
        Matrix::Dense(x) => x.row(row),
        Matrix::Sparse(x) => x.row(row).1,
    };
    row.iter().map(|x| x * x).sum()
}

/// The products of some rows with others.
fn products(
    features: &Matrix,
    rows: std::ops::Range<usize>,
    others: std::ops::Range<usize>,
) -> Vec<f64> {
    let (n, m) = (rows.len(), others.len());
    match features {
        Matrix::Dense(x) => {
            let d = x.n_cols();
            let slice = |rows: std::ops::Range<usize>| &x.values()[rows.start * d..rows.end * d];
            linalg::product_transposed(n, m, d, slice(rows), slice(others))
        }
        Matrix::Sparse(x) => {
            let mut products = vec![0.0; n * m];
            let mut dense = vec![0.0; x.n_cols()];
            for (at, row) in rows.enumerate() {
                let (columns, values) = x.row(row);
                columns.iter().zip(values).for_each(|(&c, v)| dense[c as usize] += v);
                for (to, other) in products[at * m..][..m].iter_mut().zip(others.clone()) {
                    let (columns, values) = x.row(other);
                    *to = columns.iter().zip(values).map(|(&c, v)| v * dense[c as usize]).sum();
                }
                columns.iter().for_each(|&c| dense[c as usize] = 0.0);
            }
            products
        }
    }
}
