//! How good predictions and rankings are.

pub mod ranking;
mod rating;

pub use rating::{RatingErrors, rating_errors};
