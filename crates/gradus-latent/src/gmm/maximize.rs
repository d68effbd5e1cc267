//! The maximisation step: the mixture of the sums, with variances held above a floor.

use super::Covariance;
use super::expect::Stats;
use super::mixture::{Mixture, inverse_factor};
use gradus_base::Result;
use gradus_kernel::linalg;

/// A component with less than this share of the weight of all samples is left where it is, without weight.
const EMPTY: f64 = 1e-14;
/// The largest eigenvalue of a covariance over the smallest one: beyond, its factorisation would break down.
const CONDITION: f64 = 1e13;

/// A mixture, and in how many directions the variance of each component is held at the floor.
pub(super) struct Maximum {
    pub(super) mixture: Mixture,
    pub(super) floored: Vec<usize>,
}

/// The mixture that maximises the expected log-likelihood among those whose variances are at least `floor` in every
/// direction, in the units of the space.
///
/// Clipping the eigenvalues of the covariance of maximum likelihood from below gives exactly that maximum, so that the
/// likelihood of the data does not fall. A ridge added to the covariances, as is common, has no such property.
pub(super) fn maximize(old: &Mixture, stats: &Stats, floor: f64) -> Result<Maximum> {
    let (kind, k, d) = (old.kind, old.k, old.d);
    let total: f64 = stats.mass.iter().sum();
    let mut new = old.clone();
    let mut floored = vec![0; k];
    let mut shared = if kind == Covariance::Tied { stats.second.clone() } else { Vec::new() };
    for (c, floored) in floored.iter_mut().enumerate() {
        let mass = stats.mass[c];
        new.weights[c] = mass / total;
        let first = &stats.first[c * d..(c + 1) * d];
        if mass <= EMPTY * total {
            new.weights[c] = 0.0;
            continue;
        }
        let means = &mut new.means[c * d..(c + 1) * d];
        means.iter_mut().zip(first).for_each(|(mean, first)| *mean += first / mass);
        match kind {
            Covariance::Full => {
                let size = d * d;
                let matrix = &mut new.covariances[c * size..(c + 1) * size];
                matrix.copy_from_slice(&stats.second[c * size..(c + 1) * size]);
                take_off(matrix, first, mass);
                matrix.iter_mut().for_each(|x| *x /= mass);
                *floored = clip(d, matrix, floor)?;
            }
            Covariance::Tied => take_off(&mut shared, first, mass),
            Covariance::Diag | Covariance::Spherical => {
                let second = &stats.second[c * d..(c + 1) * d];
                let variance = |j: usize| (second[j] / mass - (first[j] / mass).powi(2)).max(0.0);
                if kind == Covariance::Diag {
                    for (j, to) in new.covariances[c * d..(c + 1) * d].iter_mut().enumerate() {
                        *to = variance(j);
                        *floored += usize::from(*to < floor);
                        *to = to.max(floor);
                    }
                } else {
                    let mean = (0..d).map(variance).sum::<f64>() / d as f64;
                    *floored = usize::from(mean < floor);
                    new.covariances[c] = mean.max(floor);
                }
            }
            Covariance::Unit => {}
        }
    }
    if kind == Covariance::Tied {
        shared.iter_mut().for_each(|x| *x /= total);
        let clipped = clip(d, &mut shared, floor)?;
        floored.fill(clipped);
        new.covariances = shared;
    }
    Ok(Maximum { mixture: new, floored })
}

/// Takes `m mᵀ / mass` from an upper triangle, which is then about the new mean.
fn take_off(matrix: &mut [f64], first: &[f64], mass: f64) {
    let d = first.len();
    for (i, row) in matrix.chunks_exact_mut(d).enumerate() {
        let by = first[i] / mass;
        row[i..].iter_mut().zip(&first[i..]).for_each(|(x, first)| *x -= by * first);
    }
}

/// Makes a symmetric matrix of its upper triangle and raises eigenvalues that are below the floor; says how many.
fn clip(d: usize, matrix: &mut [f64], floor: f64) -> Result<usize> {
    for i in 0..d {
        for j in 0..i {
            matrix[i * d + j] = matrix[j * d + i];
        }
    }
    // Most often nothing is below the floor, which one factorisation shows.
    let mut above = matrix.to_vec();
    (0..d).for_each(|i| above[i * d + i] -= floor);
    if inverse_factor(d, &above).is_some() && inverse_factor(d, matrix).is_some() {
        return Ok(0);
    }
    let eigen = linalg::symmetric_eigen(d, matrix)?;
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    // Clusters a million times as far apart as they are wide, and not found: the floor is raised for the factorisation.
    let floor = floor.max(largest / CONDITION);
    let floored = eigen.values.iter().filter(|value| **value < floor).count();
    matrix.fill(0.0);
    for (value, vector) in eigen.values.iter().zip(eigen.vectors.chunks_exact(d)) {
        let value = value.max(floor);
        for (i, row) in matrix.chunks_exact_mut(d).enumerate() {
            let by = value * vector[i];
            row.iter_mut().zip(vector).for_each(|(x, v)| *x += by * v);
        }
    }
    for i in 0..d {
        for j in 0..i {
            matrix[i * d + j] = matrix[j * d + i];
        }
    }
    Ok(floored)
}
