//! Updating a fitted model by new ratings, without fitting it again.

use crate::report::Report;
use gradus_base::Result;
use gradus_data::{Duplicates, Ratings};

/// How new ratings are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateOptions {
    /// The value of a pair that was rated before: the new rating (`last`, the default), the mean of the
    /// old and the new, or an error.
    pub duplicates: Duplicates,
    /// Whether known items with new ratings are solved again, too. By default they stay fixed: one more
    /// rating hardly moves an item that has many, and the factors of all its users would be slightly out
    /// of date.
    pub items: bool,
}

/// The result of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Updated {
    /// New ratings.
    pub events: usize,
    /// The number of new ratings whose pair was rated before.
    pub changed: usize,
    /// Users with new ratings, new users included.
    pub users: usize,
    /// Items with new ratings, new items included.
    pub items: usize,
    /// Users that the model did not know.
    pub new_users: usize,
    /// Items that the model did not know.
    pub new_items: usize,
    /// Rows of the model that were solved.
    pub rows_solved: usize,
    /// New ratings since the fit, these included.
    pub since_fit: u64,
}

/// A model that learns from new ratings without a new fit.
pub trait Update {
    /// Adds ratings: new pairs, changed values, new users, new items. The stored training data is
    /// extended, and the rows with new ratings are solved again. Everything else stays as it is, to the
    /// last bit. After an error the model is unchanged.
    ///
    /// # Errors
    /// If the model kept no history to add to, or a pair was rated before and that is not allowed.
    fn update(&mut self, events: &Ratings, how: &UpdateOptions) -> Result<Updated>;
}

/// Begins the note of a report that says how much was added.
const NOTE: &str = "since the fit, ratings were added: ";

/// Puts what was added into the report of the fit.
pub(crate) fn note(report: &mut Report, updated: &Updated) {
    report.notes.retain(|note| !note.starts_with(NOTE));
    if updated.since_fit > 0 {
        report.notes.push(format!("{NOTE}{}", updated.since_fit));
    }
}
