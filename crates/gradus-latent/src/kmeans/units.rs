//! Whether features are in unlike units, so that few of them decide alone which centre is nearest.

use super::data::weighted_mean;
use gradus_base::parallel;
use gradus_data::Matrix;

/// One feature with more than this share of the variance outweighs the rest.
const ONE: f64 = 0.9;
/// The share from which on a few features together outweigh the others.
const SEVERAL: f64 = 0.99;
/// One in this many is few. Of pixels about half have that share, in the same unit.
const FEW: usize = 3;
/// Rows that a remark is based on.
const ROWS: usize = 20_000;

/// Names the features that outweigh all others, and their share, in words; `None` where features are in like units.
pub(super) fn outweighing(deviations: &[f64], names: &[String]) -> Option<String> {
    let variances: Vec<f64> = deviations.iter().map(|s| s * s).collect();
    let total: f64 = variances.iter().sum();
    if total.is_nan() || total <= 0.0 || total.is_infinite() {
        return None;
    }
    let mut order: Vec<usize> = (0..variances.len()).collect();
    order.sort_by(|&a, &b| variances[b].total_cmp(&variances[a]).then(a.cmp(&b)));
    let name = |at: &usize| format!("`{}`", names.get(*at).map_or("", String::as_str));
    let first = variances[order[0]] / total;
    if first > ONE {
        return Some(format!("feature {} has {:.1} %", name(&order[0]), 100.0 * first));
    }
    let varying = variances.iter().filter(|v| **v > 0.0).count();
    let (mut share, mut n) = (0.0, 0);
    while n < varying && share < SEVERAL {
        share += variances[order[n]] / total;
        n += 1;
    }
    if n * FEW > varying {
        return None;
    }
    let some: Vec<String> = order[..n.min(5)].iter().map(name).collect();
    let more = if n > 5 { ", …" } else { "" };
    Some(format!(
        "{n} of {} features ({}{more}) have {:.1} %",
        variances.len(),
        some.join(", "),
        100.0 * share
    ))
}

/// The weighted standard deviation of each feature, from at most `ROWS` rows spread over the data: enough for a remark.
pub(super) fn about(features: &Matrix, weights: Option<&[f64]>) -> Vec<f64> {
    let n = features.n_rows();
    if n <= ROWS {
        return deviations(features, weights);
    }
    let rows: Vec<u32> = (0..ROWS).map(|at| (at * n / ROWS) as u32).collect();
    let weights: Option<Vec<f64>> =
        weights.map(|weights| rows.iter().map(|&row| weights[row as usize]).collect());
    deviations(&features.select_rows(&rows), weights.as_deref())
}

/// The weighted standard deviation of each feature.
pub(super) fn deviations(features: &Matrix, weights: Option<&[f64]>) -> Vec<f64> {
    let (n, d) = features.shape();
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let total: f64 = weights.map_or(n as f64, |weights| weights.iter().sum());
    match features {
        Matrix::Dense(x) => {
            let mean = weighted_mean(x, weights, total);
            let parts = parallel::map(parallel::blocks(n, 1024), |rows| {
                let mut squares = vec![0.0; d];
                for row in rows {
                    let weight = weight(row);
                    for ((square, x), mean) in squares.iter_mut().zip(x.row(row)).zip(&mean) {
                        *square += weight * (x - mean) * (x - mean);
                    }
                }
                squares
            });
            let mut variances = vec![0.0; d];
            for part in &parts {
                variances.iter_mut().zip(part).for_each(|(v, part)| *v += part);
            }
            variances.into_iter().map(|v| (v / total).sqrt()).collect()
        }
        Matrix::Sparse(x) => {
            let (mut sums, mut stored) = (vec![0.0; d], vec![0.0; d]);
            for row in 0..n {
                let (columns, values) = x.row(row);
                for (&at, x) in columns.iter().zip(values) {
                    sums[at as usize] += weight(row) * x;
                    stored[at as usize] += weight(row);
                }
            }
            let means: Vec<f64> = sums.iter().map(|sum| sum / total).collect();
            // Entries that are not stored differ from the mean by the mean.
            let mut variances: Vec<f64> =
                means.iter().zip(&stored).map(|(m, stored)| (total - stored) * m * m).collect();
            for row in 0..n {
                let (columns, values) = x.row(row);
                for (&at, x) in columns.iter().zip(values) {
                    let difference = x - means[at as usize];
                    variances[at as usize] += weight(row) * difference * difference;
                }
            }
            variances.into_iter().map(|v| (v / total).max(0.0).sqrt()).collect()
        }
    }
}
