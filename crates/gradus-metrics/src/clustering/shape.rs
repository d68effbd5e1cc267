//! Clusters by their samples alone, in time that grows with the number of samples.

use super::{renumbered, same_length};
use gradus_base::{Error, Result};
use gradus_data::Matrix;
use serde::Serialize;

/// How narrow clusters are, and how far from each other.
///
/// ```
/// use gradus_data::{Dense, Matrix};
/// use gradus_metrics::clustering::Shape;
/// let x = Matrix::from(Dense::from_rows(&[[0.0], [2.0], [10.0], [12.0]]));
/// let shape = Shape::new(&x, &[0, 0, 1, 1])?;
/// assert_eq!((shape.davies_bouldin, shape.calinski_harabasz), (0.2, 50.0));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// The mean over clusters of the largest ratio of two widths to the distance of the two means; smaller is better.
    pub davies_bouldin: f64,
    /// The variance between clusters over that within them, each over its degrees of freedom; larger is better.
    pub calinski_harabasz: f64,
}

/// Refuses numbers of clusters that these measures have no value for.
pub(super) fn check(features: &Matrix, labels: &[u32]) -> Result<(Vec<u32>, Vec<usize>)> {
    features.check_finite()?;
    numbered(features.n_rows(), labels)
}

/// The labels of this many samples, renumbered, and how many have each.
pub(super) fn numbered(n_samples: usize, labels: &[u32]) -> Result<(Vec<u32>, Vec<usize>)> {
    same_length("labels", n_samples, labels.len())?;
    let (labels, counts) = renumbered(labels);
    let (n, k) = (labels.len(), counts.len());
    if k < 2 || k >= n {
        return Err(Error::data(format!(
            "{k} clusters of {n} samples have no measure of their shape: it takes 2 clusters at least, and fewer than samples"
        )));
    }
    Ok((labels, counts))
}

impl Shape {
    /// Measures the clusters that the labels name.
    ///
    /// # Errors
    /// If there is not a label for each sample, there is one cluster, or as many as samples; or a feature is not finite.
    pub fn new(features: &Matrix, labels: &[u32]) -> Result<Self> {
        let (labels, counts) = check(features, labels)?;
        let (n, d, k) = (labels.len(), features.n_cols(), counts.len());
        // About the first sample, so that features far from 0 keep their digits.
        let base = match features {
            Matrix::Dense(x) => x.row(0).to_vec(),
            Matrix::Sparse(_) => vec![0.0; d],
        };
        let mut means = vec![0.0; k * d];
        let mut all = vec![0.0; d];
        for (row, &label) in labels.iter().enumerate() {
            let to = &mut means[label as usize * d..][..d];
            each(features, row, &base, |at, x| to[at] += x);
        }
        for (mean, &count) in means.chunks_exact_mut(d.max(1)).zip(&counts) {
            all.iter_mut().zip(&*mean).for_each(|(all, sum)| *all += sum / n as f64);
            mean.iter_mut().for_each(|sum| *sum /= count as f64);
        }
        let squares: Vec<f64> =
            means.chunks_exact(d.max(1)).map(|mean| mean.iter().map(|m| m * m).sum()).collect();
        let (mut widths, mut within) = (vec![0.0; k], 0.0);
        for (row, &label) in labels.iter().enumerate() {
            let label = label as usize;
            let mean = &means[label * d..][..d];
            let square = match features {
                Matrix::Dense(x) => {
                    let parts = x.row(row).iter().zip(&base).zip(mean);
                    parts.map(|((x, base), mean)| (x - base - mean).powi(2)).sum::<f64>()
                }
                // Only the entries that are stored differ from a square of the mean.
                Matrix::Sparse(_) => {
                    let mut square = squares[label];
                    each(features, row, &base, |at, x| square += x * (x - 2.0 * mean[at]));
                    square.max(0.0)
                }
            };
            within += square;
            widths[label] += square.sqrt() / counts[label] as f64;
        }
        let distance =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let mean = |at: usize| &means[at * d..(at + 1) * d];
        let between: f64 = (0..k).map(|at| counts[at] as f64 * distance(mean(at), &all)).sum();
        let mut worst = vec![0.0f64; k];
        for a in 0..k {
            for b in 0..a {
                let apart = distance(mean(a), mean(b)).sqrt();
                let ratio = if apart > 0.0 { (widths[a] + widths[b]) / apart } else { 0.0 };
                (worst[a], worst[b]) = (worst[a].max(ratio), worst[b].max(ratio));
            }
        }
        let calinski_harabasz = match within > 0.0 {
            true => between * (n - k) as f64 / (within * (k - 1) as f64),
            false => 1.0,
        };
        Ok(Self { davies_bouldin: worst.iter().sum::<f64>() / k as f64, calinski_harabasz })
    }
}

/// Every entry of a row that is stored, less the base.
fn each(features: &Matrix, row: usize, base: &[f64], mut with: impl FnMut(usize, f64)) {
    match features {
        Matrix::Dense(x) => {
            let entries = x.row(row).iter().zip(base).enumerate();
            entries.for_each(|(at, (x, base))| with(at, x - base));
        }
        Matrix::Sparse(x) => {
            let (columns, values) = x.row(row);
            columns.iter().zip(values).for_each(|(&at, x)| with(at as usize, *x));
        }
    }
}
