//! How good predictions and rankings are, measured on what a model has not seen.
//!
//! | module | of what |
//! |---|---|
//! | [`regression`] | predicted numbers |
//! | [`classification`] | predicted classes, scores and probabilities |
//! | [`clustering`] | clusters, by the samples themselves or by classes that are known |
//! | [`generation`] | samples of generative models |
//! | [`ranking`] | lists of items |
//! | [`topics`] | topics of documents |
//! | [`bounds`] | how far a score can be from the truth, and how many points it would take |
//!
//! The measures take plain slices, one value a row, and weights where the rows do not count alike. A
//! weight of 2 is worth the row twice, a weight of 0 is worth no row.

pub mod bounds;
pub mod classification;
pub mod clustering;
pub mod generation;
mod rank;
pub mod ranking;
mod rating;
pub mod regression;
pub mod rows;
pub mod topics;

pub use rank::spearman;
pub use rating::{RatingErrors, rating_errors};
