//! Rows of each class alike.

use super::{RowFolds, RowSplit, check_folds, check_rows, check_share};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use std::fmt;

/// A class with too few rows to be on both sides of every split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scarce {
    /// The class.
    pub class: u32,
    /// The number of rows of the class.
    pub rows: usize,
    /// The number of rows that the class would need.
    pub needed: usize,
}

impl fmt::Display for Scarce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, rows, needed } = self;
        let s = if *rows == 1 { "" } else { "s" };
        write!(
            f,
            "class {class} has {rows} row{s}: fewer than the {needed} it takes to be in the test of every split"
        )
    }
}

/// The rows of each class, in random order: by class, then shuffled.
fn by_class(classes: &[u32], stream: &mut Stream) -> Vec<(u32, Vec<u32>)> {
    let mut order: Vec<u32> = (0..classes.len() as u32).collect();
    order.sort_by_key(|&row| classes[row as usize]);
    let mut found = Vec::new();
    for rows in order.chunk_by(|&a, &b| classes[a as usize] == classes[b as usize]) {
        let mut rows = rows.to_vec();
        let class = classes[rows[0] as usize];
        stream.shuffle(&mut rows);
        found.push((class, rows));
    }
    found
}

/// Sets a share of the rows aside, of each class its share: the numbers of rows are rounded so that
/// they add up to `round(share · n)`. A class of two rows or more keeps one to learn from at least; a
/// single row is learned from. Also gives the classes that are not tested for want of rows.
///
/// # Errors
/// If `share` is not strictly between 0 and 1, or leaves one of the parts empty.
///
/// ```
/// use gradus_data::split::rows::stratified_holdout;
///
/// let classes: Vec<u32> = (0..100).map(|row| u32::from(row % 10 == 0)).collect();
/// let (split, scarce) = stratified_holdout(&classes, 0.2, 1)?;
/// let rare = split.test.iter().filter(|&&row| classes[row as usize] == 1).count();
/// assert_eq!((split.test.len(), rare, scarce.len()), (20, 2, 0));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn stratified_holdout(
    classes: &[u32],
    share: f64,
    seed: u64,
) -> Result<(RowSplit, Vec<Scarce>)> {
    check_rows(classes.len())?;
    let wanted = check_share(share, classes.len(), "rows")?;
    let mut stream = Stream::new(seed, "split.rows.stratified_holdout", 0);
    let groups = by_class(classes, &mut stream);
    // Largest remainders: whole rows first, then those nearest to one more.
    let most: Vec<usize> = groups.iter().map(|(_, rows)| rows.len() - 1).collect();
    let exact: Vec<f64> = groups.iter().map(|(_, rows)| share * rows.len() as f64).collect();
    let mut take: Vec<usize> =
        exact.iter().zip(&most).map(|(exact, &most)| (exact.floor() as usize).min(most)).collect();
    let mut next: Vec<usize> = (0..groups.len()).collect();
    stream.shuffle(&mut next);
    next.sort_by(|&a, &b| (exact[b] - take[b] as f64).total_cmp(&(exact[a] - take[a] as f64)));
    let mut missing = wanted.saturating_sub(take.iter().sum());
    while missing > 0 {
        let before = missing;
        for &class in &next {
            if missing > 0 && take[class] < most[class] {
                take[class] += 1;
                missing -= 1;
            }
        }
        if missing == before {
            break;
        }
    }
    let mut held_out = vec![false; classes.len()];
    for ((_, rows), &n) in groups.iter().zip(&take) {
        rows[..n].iter().for_each(|&row| held_out[row as usize] = true);
    }
    let scarce = groups
        .iter()
        .zip(&take)
        .filter(|(_, n)| **n == 0)
        .map(|((class, rows), _)| Scarce {
            class: *class,
            rows: rows.len(),
            needed: ((1.0 / share).ceil() as usize).max(2),
        })
        .collect();
    let split = RowSplit::of(classes.len(), |row| held_out[row]);
    if split.test.is_empty() {
        return Err(Error::data(format!(
            "holdout = {share}: each of the {} rows is the only one of its class, which leaves 0 to \
             test on",
            classes.len()
        )));
    }
    Ok((split, scarce))
}

/// Cuts the rows into `k` parts with the classes in the same proportions: the rows of a class differ
/// by one at most from part to part, and so do the sizes. Classes with fewer rows than parts are in
/// [`RowFolds::scarce`].
///
/// # Errors
/// If `k` is less than 2, or larger than the number of rows.
///
/// ```
/// use gradus_data::split::rows::stratified_folds;
///
/// let classes = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2];
/// let folds = stratified_folds(&classes, 3, 1)?;
/// for split in folds.iter() {
///     assert_eq!(split.test.iter().filter(|&&row| classes[row as usize] == 1).count(), 1);
/// }
/// assert_eq!(folds.scarce()[0].class, 2);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn stratified_folds(classes: &[u32], k: usize, seed: u64) -> Result<RowFolds> {
    check_rows(classes.len())?;
    check_folds(k, classes.len(), "rows")?;
    let mut stream = Stream::new(seed, "split.rows.stratified_folds", 0);
    // Which part gets one row more is by chance.
    let mut names: Vec<u32> = (0..k as u32).collect();
    stream.shuffle(&mut names);
    let groups = by_class(classes, &mut stream);
    let mut parts = vec![0; classes.len()];
    // One class goes on where the one before it ended, so that the sizes stay even.
    for (place, &row) in groups.iter().flat_map(|(_, rows)| rows).enumerate() {
        parts[row as usize] = names[place % k];
    }
    let mut folds = RowFolds::parts(parts, k);
    folds.scarce = groups
        .iter()
        .filter(|(_, rows)| rows.len() < k)
        .map(|(class, rows)| Scarce { class: *class, rows: rows.len(), needed: k })
        .collect();
    Ok(folds)
}
