//! Setting data aside: ratings here, the rows of anything else in [`rows`].
//!
//! | split | what is held out | asks how the model does … |
//! |---|---|---|
//! | [`holdout`] | a share of all ratings | … on missing ratings of everyone alike |
//! | [`folds`] | each rating in one of `k` parts | … the same, with every rating tested once |
//! | [`per_user`] | a share or a number of each user's ratings | … for users, the busy and the others alike |
//! | [`leave_last_out`] | the last ratings of each user by time | … on what comes next |
//! | [`cold_users`] | some users altogether, each with a part to fold in by | … for users it was not trained on |
//! | [`cold_items`] | some items altogether | … for items that are new |
//!
//! A split depends on the ratings and the seed alone: not on the order of the rows in a file, nor
//! on the number of threads. All parts keep all ids (see [`Ratings::partition`]), so a user whose
//! ratings all went to one part is still known to the others. Weights and times go along.

mod random;
pub mod rows;
mod users;

pub use random::{Folds, folds, holdout};
pub use users::{Amount, ColdUsers, cold_items, cold_users, leave_last_out, per_user};

#[cfg(doc)]
use crate::Ratings;

#[cfg(test)]
mod tests;
