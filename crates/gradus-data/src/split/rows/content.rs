//! Samples by their content, whatever their order.

use crate::{Matrix, Samples};
use gradus_base::{Error, Result, parallel};

/// Folds by the content of samples: the fold of each sample, and how many folds there are.
///
/// Samples are put in an order that only their content and the seed decide, and dealt out in turn;
/// equal samples go to one fold. So a choice does not depend on the order of the samples, a weight
/// of 3 is as good as three equal samples, and no fold is scored on samples that others learn from.
/// Folds that the samples bring are taken as they are. There are fewer folds than asked for where
/// there are fewer different samples.
///
/// # Errors
/// If there is one sample only, or one fold only with samples of a weight above 0.
pub fn content_folds(samples: &Samples, folds: usize, seed: u64) -> Result<(Vec<usize>, usize)> {
    if let Some(given) = samples.folds() {
        return of_given(samples, given);
    }
    let hashes = hashes(samples, seed);
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

/// The hashes of all samples.
fn hashes(samples: &Samples, seed: u64) -> Vec<u64> {
    const BLOCK: usize = 4096;
    let n = samples.len();
    let of_block = |block: usize| -> Vec<u64> {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
        rows.map(|row| hash(samples, row, seed)).collect()
    };
    // Few samples are not worth other threads.
    if n <= BLOCK { of_block(0) } else { parallel::map(0..n.div_ceil(BLOCK), of_block).concat() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dense;

    #[test]
    fn folds_depend_on_the_content_of_samples_alone() {
        let x = Dense::from_fn(40, 2, |row, column| ((row / 2) * (column + 1)) as f64);
        let y: Vec<f64> = (0..40).map(|row| (row / 2) as f64).collect();
        let samples = Samples::regression(x, y).unwrap();
        let (folds, n) = content_folds(&samples, 5, 0).unwrap();
        assert_eq!(n, 5);
        for fold in 0..5 {
            assert_eq!(folds.iter().filter(|f| **f == fold).count(), 8);
        }
        assert!(folds.chunks(2).all(|pair| pair[0] == pair[1]));
        let backwards: Vec<u32> = (0..40).rev().collect();
        let (other, _) = content_folds(&samples.select_rows(&backwards), 5, 0).unwrap();
        assert!(folds.iter().rev().eq(&other));
        assert_ne!(content_folds(&samples, 5, 1).unwrap().0, folds);
        assert!(content_folds(&samples.select_rows(&[0, 1]), 5, 0).is_err());
    }

    #[test]
    fn folds_that_are_given_are_taken() {
        let x = Dense::from_fn(4, 1, |row, _| row as f64);
        let samples = Samples::regression(x, vec![0.0; 4]).unwrap();
        assert!(samples.clone().with_folds(vec![0; 3]).is_err());
        let given = samples.with_folds(vec![7, 2, 7, 9]).unwrap();
        assert_eq!(content_folds(&given, 5, 0).unwrap(), (vec![1, 0, 1, 2], 3));
        // Those of a part of the samples, which may lack a fold.
        assert_eq!(content_folds(&given.select_rows(&[3, 0]), 5, 0).unwrap(), (vec![1, 0], 2));
        assert!(content_folds(&given.select_rows(&[0, 2]), 5, 0).is_err());
        let weighted = given.with_weights(vec![1.0, 0.0, 1.0, 1.0]).unwrap();
        assert_eq!(content_folds(&weighted, 5, 0).unwrap(), (vec![0, 0, 0, 1], 2));
    }
}
