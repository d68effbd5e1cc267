//! The start of the iterations: the units of the features, and the clusters of k-means.

use super::Covariance;
use super::rows::{Rows, Space};
use gradus_base::{Result, parallel};
use gradus_data::{Dense, Matrix};
use std::collections::HashSet;

/// The variance within clusters counts as at least this share of the variance of all samples: clusters may be a million
/// times as far apart as they are wide.
const LEAST: f64 = 1e-12;

/// Samples in the units in which a fit works, and the clusters it begins with.
pub(super) struct Prepared {
    pub(super) rows: Rows,
    pub(super) space: Space,
    pub(super) labels: Vec<u32>,
    /// Features that do not vary.
    pub(super) constant: Vec<usize>,
    /// Features whose spread is too small to be squared.
    pub(super) tiny: Vec<usize>,
    /// Features recorded in steps, as codes and counts are, whose variance is at least that of rounding to a step.
    pub(super) stepped: Vec<usize>,
}

/// A feature with more different values than this is not one recorded in steps.
const VALUES: usize = 1000;
/// Nor is one whose values are there fewer times, on average.
const REPEATS: usize = 10;

/// The step in which the values of a feature were recorded: all differences are multiples of it, and values repeat. `None` of
/// a feature that is not like that.
fn step(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut different, mut n) = (HashSet::new(), 0usize);
    for x in values.filter(|x| !x.is_nan()) {
        n += 1;
        // 0 and −0 are one value.
        different.insert((x + 0.0).to_bits());
        if different.len() > VALUES.min(REPEATS + n / 2) {
            return None;
        }
    }
    if different.len() < 2 || different.len() * REPEATS > n {
        return None;
    }
    let mut sorted: Vec<f64> = different.into_iter().map(f64::from_bits).collect();
    sorted.sort_by(f64::total_cmp);
    let gaps = || sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let least = gaps().fold(f64::INFINITY, f64::min);
    let is_multiple = |gap: f64| {
        let times = gap / least;
        (times - times.round()).abs() <= 1e-6 * times
    };
    (least > 0.0 && gaps().all(is_multiple)).then_some(least)
}

/// Measures the samples in units of their spread within the clusters of k-means, which begins from features of
/// variance 1. Kinds of covariances that know one variance for all features have one unit for all.
///
/// # Errors
/// If there are fewer samples than clusters.
pub(super) fn prepare(
    features: &Matrix,
    weights: Option<&[f64]>,
    kind: Covariance,
    (k, seed, floor): (usize, u64, f64),
) -> Result<Prepared> {
    let d = features.n_cols();
    let mut space = Space { centre: vec![0.0; d], scale: vec![1.0; d] };
    let about = |space: &Space| -> (Rows, Vec<f64>, Vec<f64>) {
        let rows = Rows::new(features, weights, space);
        let w = &rows.weights;
        let seen = rows.sum_by_feature(|row, _, _| w[row]);
        let sums = rows.sum_by_feature(|row, _, x| w[row] * x);
        let means = sums.iter().zip(&seen).map(|(sum, n)| if *n > 0.0 { sum / n } else { 0.0 });
        let means = means.collect();
        (rows, seen, means)
    };
    let (_, _, means) = about(&space);
    space.centre = means;
    // What the mean of large numbers is off is in the mean of the differences.
    let (rows, seen, means) = about(&space);
    let w = &rows.weights;
    let squares = rows.sum_by_feature(|row, j, x| w[row] * (x - means[j]).powi(2));
    space.centre.iter_mut().zip(&means).for_each(|(centre, mean)| *centre += mean);
    let variances: Vec<f64> =
        squares.iter().zip(&seen).map(|(sum, n)| if *n > 0.0 { sum / n } else { 0.0 }).collect();
    // A feature whose values differ by rounding alone does not vary.
    let rounding = |j: usize| (4.0 * f64::EPSILON * space.centre[j].abs()).powi(2);
    let (constant, varying): (Vec<usize>, Vec<usize>) =
        (0..d).partition(|&j| variances[j] <= rounding(j));
    let tiny = varying.iter().copied().filter(|&j| variances[j] < 1e-280).collect();
    let share = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let common = matches!(kind, Covariance::Spherical | Covariance::Unit);
    let mean_variance = share(&variances);
    for (j, variance) in variances.iter().enumerate() {
        let size = if space.centre[j] != 0.0 { space.centre[j].abs() } else { 1.0 };
        space.scale[j] = match (common, constant.contains(&j)) {
            (true, _) if constant.len() < d => mean_variance.sqrt(),
            (true, _) => 1.0,
            (false, true) => size,
            (false, false) => variance.sqrt(),
        };
    }
    let mut rows = Rows::new(features, weights, &space);
    let labels = labels(&rows, k, seed)?;
    if kind == Covariance::Unit {
        return Ok(Prepared { rows, space, labels, constant, tiny, stepped: Vec::new() });
    }
    let means = means_of(&rows, k, &labels);
    let w = &rows.weights;
    let within =
        rows.sum_by_feature(|row, j, x| w[row] * (x - means[labels[row] as usize * d + j]).powi(2));
    let mut within: Vec<f64> = within
        .iter()
        .zip(&seen)
        .enumerate()
        .map(|(j, (sum, n))| match constant.contains(&j) {
            true if !common => 1.0,
            _ if *n > 0.0 => sum / n,
            _ => 0.0,
        })
        .collect();
    if common {
        let mean = share(&within);
        within.fill(mean);
    }
    within.iter_mut().for_each(|x| *x = x.max(LEAST));
    // A value that was rounded to a step may have been anywhere within it: a variance below that of the step is one of the
    // rounding, not of the samples. Without this, a component of one code has no variance, and its likelihood is whatever the
    // floor says.
    let mut stepped = Vec::new();
    if !common && floor > 0.0 && !are_few(features) {
        let steps = parallel::map(0..d, |j| {
            let column = (0..features.n_rows()).map(|row| entry(features, row, j));
            step(column).filter(|_| !constant.contains(&j))
        });
        for (j, step) in steps.into_iter().enumerate() {
            let least = step.map_or(0.0, |step| (step / space.scale[j]).powi(2) / 12.0);
            if least > floor * within[j] {
                within[j] = least / floor;
                stepped.push(j);
            }
        }
    }
    let by: Vec<f64> = within.iter().map(|x| 1.0 / x.sqrt()).collect();
    rows.rescale(&by);
    space.scale.iter_mut().zip(&within).for_each(|(scale, within)| *scale *= within.sqrt());
    Ok(Prepared { rows, space, labels, constant, tiny, stepped })
}

/// Whether the samples are few different ones, each there many times: a component on one of them is a collapse, whatever the
/// features were recorded in.
fn are_few(features: &Matrix) -> bool {
    let (n, d) = features.shape();
    let mut different = HashSet::new();
    for row in 0..n {
        different.insert(
            (0..d).map(|j| (entry(features, row, j) + 0.0).to_bits()).collect::<Vec<u64>>(),
        );
        if different.len() * REPEATS > n {
            return false;
        }
    }
    true
}

fn entry(features: &Matrix, row: usize, column: usize) -> f64 {
    match features {
        Matrix::Dense(x) => x[(row, column)],
        Matrix::Sparse(x) => {
            let (columns, values) = x.row(row);
            columns.binary_search(&(column as u32)).map_or(0.0, |at| values[at])
        }
    }
}

/// The mean of each cluster, feature by feature over the entries that are there; that of all samples of a cluster
/// without any.
pub(super) fn means(rows: &Rows, k: usize, labels: &[u32]) -> Vec<f64> {
    means_of(rows, k, labels)
}

fn means_of(rows: &Rows, k: usize, labels: &[u32]) -> Vec<f64> {
    let d = rows.d;
    let (mut sums, mut seen) = (vec![0.0; k * d], vec![0.0; k * d]);
    for block in &rows.blocks {
        for row in block.rows.clone() {
            let (first, weight) = (labels[row] as usize * d, rows.weights[row]);
            let mut add = |j: usize, x: f64| {
                sums[first + j] += weight * x;
                seen[first + j] += weight;
            };
            let values = rows.row(row);
            match block.pattern {
                None => values.iter().enumerate().for_each(|(j, x)| add(j, *x)),
                Some(pattern) => {
                    rows.patterns[pattern].observed.iter().for_each(|&j| add(j, values[j]));
                }
            }
        }
    }
    sums.iter().zip(&seen).map(|(sum, n)| if *n > 0.0 { sum / n } else { 0.0 }).collect()
}

/// The cluster of each row by k-means, missing entries taken as the mean.
///
/// # Errors
/// If there are fewer rows than clusters.
pub(super) fn labels(rows: &Rows, k: usize, seed: u64) -> Result<Vec<u32>> {
    if k == 1 {
        return Ok(vec![0; rows.len()]);
    }
    let features = Matrix::from(Dense::new(rows.len(), rows.d, rows.values.clone())?);
    let alike = rows.weights.iter().all(|weight| *weight == rows.weights[0]);
    let weights = (!alike).then_some(rows.weights.as_slice());
    Ok(crate::kmeans::cluster(&features, weights, k, seed, 1)?.labels)
}
