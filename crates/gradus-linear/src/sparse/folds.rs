//! Cross-validation along a path.

use super::path::{Path, PathOptions, Validation};
use super::problem::Problem;
use crate::parallel;
use gradus_base::{Error, Result};
use gradus_core::progress::Stop;
use gradus_data::{Dense, Matrix, Samples};

/// The fold of each sample, and how many folds there are.
///
/// Samples are put in an order that only their content and the seed decide, and dealt out in turn;
/// equal samples go to one fold. So a choice does not depend on the order of the samples, a weight
/// of 3 is as good as three equal samples, and no fold is scored on samples that others learn from.
/// Folds that the samples bring are taken as they are.
pub(super) fn assign(samples: &Samples, folds: usize, seed: u64) -> Result<(Vec<usize>, usize)> {
    if let Some(given) = samples.folds() {
        return of_given(samples, given);
    }
    let hashes: Vec<u64> = parallel::map((0..samples.len()).collect(), 8 * samples.len(), |row| {
        hash(samples, row, seed)
    });
    let counts = |row: &usize| samples.weights().is_none_or(|weights| weights[*row] > 0.0);
    let mut distinct: Vec<u64> = (0..samples.len()).filter(counts).map(|row| hashes[row]).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < 2 {
        return Err(Error::data(
            "cross-validation needs two different samples at least, and this is one sample; give \
             `regularization`",
        ));
    }
    let folds = folds.min(distinct.len());
    let fold = |hash: &u64| distinct.binary_search(hash).map_or(0, |rank| rank % folds);
    Ok((hashes.iter().map(fold).collect(), folds))
}

/// The folds that were given, numbered without gaps.
fn of_given(samples: &Samples, given: &[u32]) -> Result<(Vec<usize>, usize)> {
    let counts = |row: usize| samples.weights().is_none_or(|weights| weights[row] > 0.0);
    let mut used: Vec<u32> =
        given.iter().enumerate().filter(|(row, _)| counts(*row)).map(|(_, fold)| *fold).collect();
    used.sort_unstable();
    used.dedup();
    if used.len() < 2 {
        return Err(Error::data(
            "folds: cross-validation needs two folds at least with samples of a weight above 0",
        ));
    }
    // A fold without weight cannot be scored.
    let place = |fold: &u32| used.binary_search(fold).unwrap_or_default();
    Ok((given.iter().map(place).collect(), used.len()))
}

/// A hash of the content of a sample; entries that are 0 do not count, stored or not.
fn hash(samples: &Samples, row: usize, seed: u64) -> u64 {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut take = |word: u64| {
        let mut z = (state ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state = z ^ (z >> 29);
    };
    let mut entry = |column: usize, x: f64| {
        if x != 0.0 {
            take(column as u64);
            take(x.to_bits());
        }
    };
    match samples.features() {
        Matrix::Dense(x) => x.row(row).iter().enumerate().for_each(|(j, &x)| entry(j, x)),
        Matrix::Sparse(x) => {
            let (columns, values) = x.row(row);
            columns.iter().zip(values).for_each(|(&j, &x)| entry(j as usize, x));
        }
    }
    if let Ok(targets) = samples.values() {
        let d = samples.n_features();
        targets.row(row).iter().enumerate().for_each(|(t, &y)| entry(d + t, y));
    }
    state
}

/// The result of a fold, for each target.
pub(super) struct Fold {
    /// The mean squared error of each penalty on the fold, fitted to the others.
    pub(super) errors: Vec<Vec<f64>>,
    /// The coefficients for the last penalty.
    last: Vec<Vec<f64>>,
}

/// How each penalty of `grids` (one grid for each target) does on every fold when fitted to the
/// others. Shorter if it was stopped. Goes on from the folds `before`, if there are any.
pub(super) fn scores(
    samples: &Samples,
    targets: &Dense<f64>,
    options: &PathOptions,
    grids: &[Vec<f64>],
    (fold_of, folds): (&[usize], usize),
    before: Option<&[Fold]>,
    stop: &Stop,
) -> Vec<Fold> {
    let weight = |row: usize| samples.weights().map_or(1.0, |weights| weights[row]);
    gradus_base::parallel::map(0..folds, |fold| {
        let others: Vec<f64> = (0..samples.len())
            .map(|row| if fold_of[row] == fold { 0.0 } else { weight(row) })
            .collect();
        let problem = Problem::new(samples.features(), Some(&others), targets, options.setting());
        let rows: Vec<u32> =
            (0..samples.len() as u32).filter(|&row| fold_of[row as usize] == fold).collect();
        let held_out = samples.features().select_rows(&rows);
        let weights: Vec<f64> = rows.iter().map(|&row| weight(row as usize)).collect();
        let mut found = Fold { errors: Vec::new(), last: Vec::new() };
        for (t, grid) in grids.iter().enumerate() {
            let start = before.map(|before| before[fold].last[t].as_slice());
            let (path, _) = options.run(&problem, t, grid, start, stop, &mut |_| ());
            let y: Vec<f64> = rows.iter().map(|&row| targets[(row as usize, t)]).collect();
            found.errors.push(errors(&path, &held_out, &y, &weights));
            found.last.push(match path.lambdas.len() {
                0 => start.map(<[f64]>::to_vec).unwrap_or(vec![0.0; problem.d()]),
                n => path.dense(n - 1),
            });
        }
        found
    })
}

impl Fold {
    /// Adds the penalties that came after.
    pub(super) fn append(&mut self, later: Self) {
        for (errors, later) in self.errors.iter_mut().zip(later.errors) {
            errors.extend(later);
        }
        self.last = later.last;
    }
}

/// The mean squared error of each penalty of a path.
fn errors(path: &Path, features: &Matrix, y: &[f64], weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let n = path.lambdas.len();
    parallel::map((0..n).collect(), n * features.values().len(), |at| {
        let w = Dense::new(1, features.n_cols(), path.dense(at));
        let Ok(w) = w else { return f64::NAN };
        let scores = crate::model::scores(features, &w, &path.intercepts[at..=at]);
        let errors = scores.values().iter().zip(y).zip(weights);
        errors.map(|((score, y), w)| w * (y - score) * (y - score)).sum::<f64>() / total
    })
}

/// The choice by the errors of the folds.
pub(super) fn choose(errors: &[&[f64]], one_se: bool) -> Validation {
    let folds = errors.len() as f64;
    let reached = errors.iter().map(|fold| fold.len()).min().unwrap_or_default();
    let mean: Vec<f64> =
        (0..reached).map(|at| errors.iter().map(|fold| fold[at]).sum::<f64>() / folds).collect();
    let error: Vec<f64> = (0..reached)
        .map(|at| {
            let off = errors.iter().map(|fold| (fold[at] - mean[at]).powi(2));
            (off.sum::<f64>() / (folds - 1.0).max(1.0) / folds).sqrt()
        })
        .collect();
    // The largest penalty among equals: less than the solver's tolerance tells nothing apart.
    let mut best = 0;
    for at in 1..reached {
        if mean[at] < mean[best] * (1.0 - 1e-9) {
            best = at;
        }
    }
    let chosen = if one_se && reached > 0 {
        let bound = mean[best] + error[best];
        mean.iter().position(|mean| *mean <= bound).unwrap_or(best)
    } else {
        best
    };
    Validation { mean, error, chosen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_the_least_error_or_the_largest_penalty_near_it() {
        let errors: [&[f64]; 2] = [&[4.0, 2.6, 2.0, 2.5], &[6.0, 3.0, 3.0, 3.5]];
        let by_min = choose(&errors, false);
        assert_eq!((by_min.mean, by_min.chosen), (vec![5.0, 2.8, 2.5, 3.0], 2));
        assert_eq!(by_min.error[2], 0.5);
        assert_eq!(choose(&errors, true).chosen, 1);
        // A fold that was stopped early.
        assert_eq!(choose(&[&[4.0, 2.0], &[6.0]], false).mean, [5.0]);
        assert_eq!(choose(&[&[], &[6.0]], true).chosen, 0);
    }

    #[test]
    fn folds_depend_on_the_content_of_samples_alone() {
        let x = Dense::from_fn(40, 2, |row, column| ((row / 2) * (column + 1)) as f64);
        let y: Vec<f64> = (0..40).map(|row| (row / 2) as f64).collect();
        let samples = Samples::regression(x, y).unwrap();
        let (folds, n) = assign(&samples, 5, 0).unwrap();
        assert_eq!(n, 5);
        for fold in 0..5 {
            assert_eq!(folds.iter().filter(|f| **f == fold).count(), 8);
        }
        assert!(folds.chunks(2).all(|pair| pair[0] == pair[1]));
        let backwards: Vec<u32> = (0..40).rev().collect();
        let (other, _) = assign(&samples.select_rows(&backwards), 5, 0).unwrap();
        assert!(folds.iter().rev().eq(&other));
        assert_ne!(assign(&samples, 5, 1).unwrap().0, folds);
        assert!(assign(&samples.select_rows(&[0, 1]), 5, 0).is_err());
    }

    #[test]
    fn folds_that_are_given_are_taken() {
        let x = Dense::from_fn(4, 1, |row, _| row as f64);
        let samples = Samples::regression(x, vec![0.0; 4]).unwrap();
        assert!(samples.clone().with_folds(vec![0; 3]).is_err());
        let given = samples.with_folds(vec![7, 2, 7, 9]).unwrap();
        assert_eq!(assign(&given, 5, 0).unwrap(), (vec![1, 0, 1, 2], 3));
        // Those of a part of the samples, which may lack a fold.
        assert_eq!(assign(&given.select_rows(&[3, 0]), 5, 0).unwrap(), (vec![1, 0], 2));
        assert!(assign(&given.select_rows(&[0, 2]), 5, 0).is_err());
        let weighted = given.with_weights(vec![1.0, 0.0, 1.0, 1.0]).unwrap();
        assert_eq!(assign(&weighted, 5, 0).unwrap(), (vec![0, 0, 0, 1], 2));
    }
}
