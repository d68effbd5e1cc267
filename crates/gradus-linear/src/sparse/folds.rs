//! Cross-validation along a path.

use super::path::{Path, PathOptions, Validation};
use super::problem::Problem;
use crate::parallel;
use gradus_core::progress::Stop;
use gradus_data::{Dense, Matrix, Samples};

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
}
