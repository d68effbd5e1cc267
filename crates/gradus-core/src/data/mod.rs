//! Data as gradus holds it, and the ways in and out.
//!
//! | type | what it is |
//! |---|---|
//! | [`Ids`] | the users' own names for rows and columns, integer or text, kept sorted |
//! | [`Csr`] | a compressed sparse row matrix, `u32` indices, `f32` values |
//! | [`Ratings`] | who rated what how much: [`Csr`] by user and by item, with both [`Ids`] |
//! | [`RatingsBuilder`] | collects columns of ids and values into [`Ratings`] |
//! | [`read_ratings`], [`read_pairs`] | from a file to [`Ratings`] or [`Pairs`] |

mod builder;
mod ids;
mod ratings;
mod read;
mod sparse;

pub use builder::RatingsBuilder;
pub use ids::{Id, IdSlice, IdVec, Ids, TextIds};
pub use ratings::{Duplicates, Rating, Ratings};
pub use read::{
    Column, Columns, Format, OnError, Pairs, ReadOptions, ReadSummary, read_pairs, read_pairs_from,
    read_ratings, read_ratings_from,
};
pub use sparse::Csr;
