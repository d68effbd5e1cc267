//! Rows at random.

use super::{Kind, RowFolds, RowSplit, check_folds, check_rows, check_share};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};

/// Sets a random share of `n` rows aside.
///
/// Exactly `round(share · n)` rows are held out, each set of that size being equally likely.
///
/// # Errors
/// If `share` is not strictly between 0 and 1, or leaves one of the parts empty.
///
/// ```
/// let split = gradus_data::split::rows::holdout(10, 0.2, 1)?;
/// assert_eq!((split.train.len(), split.test.len()), (8, 2));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn holdout(n: usize, share: f64, seed: u64) -> Result<RowSplit> {
    check_rows(n)?;
    let wanted = check_share(share, n, "rows")?;
    let mut held_out = vec![false; n];
    for row in Stream::new(seed, "split.rows.holdout", 0).sample(n, wanted)? {
        held_out[row] = true;
    }
    Ok(RowSplit::of(n, |row| held_out[row]))
}

/// Cuts `n` rows into `k` random parts whose sizes differ by one at most, each held out in turn.
///
/// # Errors
/// If `k` is less than 2, or larger than the number of rows.
///
/// ```
/// let folds = gradus_data::split::rows::folds(7, 3, 1)?;
/// assert_eq!(folds.iter().map(|split| split.test.len()).sum::<usize>(), 7);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn folds(n: usize, k: usize, seed: u64) -> Result<RowFolds> {
    repeated_folds(n, k, 1, seed)
}

/// `k` folds, `repeats` times over, dealt anew each time: `k · repeats` splits.
///
/// # Errors
/// As [`folds`]; and if `repeats` is 0.
///
/// ```
/// let folds = gradus_data::split::rows::repeated_folds(10, 5, 3, 1)?;
/// assert_eq!(folds.len(), 15);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn repeated_folds(n: usize, k: usize, repeats: usize, seed: u64) -> Result<RowFolds> {
    check_rows(n)?;
    check_folds(k, n, "rows")?;
    if repeats == 0 {
        return Err(Error::parameter("repeats", repeats, "must be at least 1"));
    }
    let deal = |repeat: u64| {
        let mut parts: Vec<u32> = (0..k as u32).cycle().take(n).collect();
        Stream::new(seed, "split.rows.folds", repeat).shuffle(&mut parts);
        parts
    };
    let parts = (0..repeats as u64).map(deal).collect();
    Ok(RowFolds { kind: Kind::Parts(parts, k), scarce: Vec::new() })
}
