//! How good predictions and rankings are.
//!
//! | module | of what |
//! |---|---|
//! | [`regression`] | predicted numbers |
//! | [`classification`] | predicted classes, scores and probabilities |
//! | [`ranking`] | lists of items |
//!
//! All of them take plain slices, one value a row, and weights where the rows do not count alike. A
//! weight of 2 is worth the row twice, a weight of 0 is worth no row.

pub mod classification;
pub mod ranking;
mod rating;
pub mod regression;
pub(crate) mod rows;

pub use rating::{RatingErrors, rating_errors};
