//! Splits by time: the held-out rows come after the training rows.

use super::{Kind, RowFolds, check_rows};
use gradus_base::{Error, Result};

/// Splits by time, each testing on what comes after what it learns from: the rows are cut, in order
/// of time, into `k + 1` blocks of nearly one size; split `i` learns from the first `i + 1` of them
/// and tests on the next one. (The window expands, as it does in use.)
///
/// With a `gap`, rows less than that much time before the test are not learned from: for values that
/// take time to be known, or that linger. Rows of one time stay together, so blocks may differ in
/// size. Rows that are merely in order have their indices as times, and a gap in rows.
///
/// # Errors
/// If `k` is 0, `gap` is negative, there are fewer than `k + 1` different times, or the gap leaves
/// nothing to learn from.
///
/// ```
/// use gradus_data::split::rows::ordered_folds;
///
/// let times: Vec<i64> = (0..6).collect();
/// let folds = ordered_folds(&times, 2, 1)?;
/// let split = folds.get(1)?;
/// assert_eq!((split.train, split.test), (vec![0, 1, 2], vec![4, 5]));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn ordered_folds(times: &[i64], k: usize, gap: i64) -> Result<RowFolds> {
    let n = times.len();
    check_rows(n)?;
    if gap < 0 {
        return Err(Error::parameter("gap", gap, "must be at least 0"));
    }
    if k == 0 || k >= n {
        let rule =
            format!("must be from 1 to the number of rows less one, {}", n.saturating_sub(1));
        return Err(Error::parameter("folds", k, rule));
    }
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&row| times[row as usize]);
    let time = |place: usize| times[order[place] as usize];
    // The test blocks are of one size; the first block gets what is left over.
    let size = n / (k + 1);
    let starts: Vec<usize> = (0..k)
        .map(|fold| {
            let first = time(n - (k - fold) * size);
            order.partition_point(|&row| times[row as usize] < first)
        })
        .collect();
    let mut cuts = Vec::with_capacity(k);
    for (fold, &start) in starts.iter().enumerate() {
        let end = starts.get(fold + 1).copied().unwrap_or(n);
        if start == 0 || start == end {
            return Err(Error::parameter("folds", k, "there are too few different times for it"));
        }
        let limit = time(start).saturating_sub(gap);
        let train = order.partition_point(|&row| times[row as usize] < limit);
        if train == 0 {
            let rule =
                format!("leaves nothing to learn from before the test of split {}", fold + 1);
            return Err(Error::parameter("gap", gap, rule));
        }
        cuts.push((train, start, end));
    }
    Ok(RowFolds { kind: Kind::Times(order, cuts), scarce: Vec::new() })
}
