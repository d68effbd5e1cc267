//! Setting rows aside: splits of any data with rows, as lists of row indices.
//!
//! | split | what is held out | for |
//! |---|---|---|
//! | [`holdout`], [`folds`] | rows at random | rows that are independent |
//! | [`stratified_holdout`], [`stratified_folds`] | rows of each class alike | classes, the more so the rarer one is |
//! | [`grouped_holdout`], [`grouped_folds`] | whole groups | rows that belong together: of one patient, user, document |
//! | [`ordered_folds`] | what comes later | rows in time |
//! | [`content_folds`] | samples by their content | a choice that does not depend on their order; equal samples stay together |
//! | [`repeated_folds`] | rows at random, several times | few rows: a score less a matter of luck |
//!
//! A split depends on the number of rows (their classes, groups or times) and the seed alone. The
//! rows of each part are in ascending order.
//!
//! ```
//! use gradus_data::split::rows;
//!
//! for split in rows::folds(10, 5, 1)?.iter() {
//!     assert_eq!((split.train.len(), split.test.len()), (8, 2));
//! }
//! # Ok::<(), gradus_base::Error>(())
//! ```

mod classes;
mod content;
mod groups;
mod plain;
mod time;

pub use classes::{Scarce, stratified_folds, stratified_holdout};
pub use content::content_folds;
pub use groups::{grouped_folds, grouped_holdout};
pub use plain::{folds, holdout, repeated_folds};
pub use time::ordered_folds;

use gradus_base::{Error, Result};

/// The rows to learn from and the rows to test on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSplit {
    /// Rows to learn from, ascending.
    pub train: Vec<u32>,
    /// Rows to test on, ascending.
    pub test: Vec<u32>,
}

impl RowSplit {
    /// Splits by whether each row is held out.
    fn of(n: usize, held_out: impl Fn(usize) -> bool) -> Self {
        let (test, train) = (0..n as u32).partition(|&row| held_out(row as usize));
        Self { train, test }
    }
}

/// Several splits of the same rows. One is made when it is asked for: memory for one at a time.
#[derive(Clone, Debug)]
pub struct RowFolds {
    kind: Kind,
    scarce: Vec<Scarce>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The part of each row, for each repetition, and the number of parts.
    Parts(Vec<Vec<u32>>, usize),
    /// Rows by time, and for each split where training ends, and where the test begins and ends.
    Times(Vec<u32>, Vec<(usize, usize, usize)>),
}

impl RowFolds {
    fn parts(parts: Vec<u32>, k: usize) -> Self {
        Self { kind: Kind::Parts(vec![parts], k), scarce: Vec::new() }
    }

    /// How many splits there are.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Parts(parts, k) => parts.len() * k,
            Kind::Times(_, cuts) => cuts.len(),
        }
    }

    /// Whether there are none, which is never so.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Classes with fewer rows than folds: some folds test without them. Empty unless the folds
    /// are stratified.
    pub fn scarce(&self) -> &[Scarce] {
        &self.scarce
    }

    /// One split.
    ///
    /// # Errors
    /// If there is no such split; they count from 0.
    pub fn get(&self, fold: usize) -> Result<RowSplit> {
        if fold >= self.len() {
            return Err(Error::parameter("fold", fold, format!("must be below {}", self.len())));
        }
        Ok(self.split(fold))
    }

    /// All splits in turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RowSplit> + '_ {
        (0..self.len()).map(|fold| self.split(fold))
    }

    fn split(&self, fold: usize) -> RowSplit {
        match &self.kind {
            Kind::Parts(parts, k) => {
                let (parts, held_out) = (&parts[fold / k], fold % k);
                RowSplit::of(parts.len(), |row| parts[row] as usize == held_out)
            }
            Kind::Times(order, cuts) => {
                let (train, start, end) = cuts[fold];
                let sorted = |rows: &[u32]| {
                    let mut rows = rows.to_vec();
                    rows.sort_unstable();
                    rows
                };
                RowSplit { train: sorted(&order[..train]), test: sorted(&order[start..end]) }
            }
        }
    }
}

/// The number of rows, as long as an index fits into 32 bits.
fn check_rows(n: usize) -> Result<()> {
    if n <= u32::MAX as usize {
        return Ok(());
    }
    Err(Error::parameter("rows", n, "must be less than 2^32"))
}

/// The number of folds: from 2 to the number of `what` there are.
fn check_folds(k: usize, n: usize, what: &str) -> Result<()> {
    if (2..=n).contains(&k) {
        return Ok(());
    }
    Err(Error::parameter("folds", k, format!("must be from 2 to the number of {what}, {n}")))
}

/// Returns the number of things in a share of `n`; some must be left on both sides.
fn check_share(share: f64, n: usize, what: &str) -> Result<usize> {
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::parameter("holdout", share, "must be greater than 0 and less than 1"));
    }
    let held_out = (share * n as f64).round() as usize;
    if held_out == 0 || held_out >= n {
        return Err(Error::data(format!(
            "holdout = {share}: of {n} {what} that leaves {} to learn from and {held_out} to test on",
            n - held_out.min(n)
        )));
    }
    Ok(held_out)
}

#[cfg(test)]
mod tests;
