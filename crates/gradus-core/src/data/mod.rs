//! Data as gradus holds it, and the ways in and out.
//!
//! | type | what it is |
//! |---|---|
//! | [`Ids`] | the users' own names for rows and columns, integer or text, kept sorted |
//! | [`Csr`] | a compressed sparse row matrix, `u32` indices, `f32` values |
//! | [`Ratings`] | who rated what how much: [`Csr`] by user and by item, with both [`Ids`] |

mod dense;
mod ids;
pub mod make;
mod ratings;
mod sparse;

pub use dense::{Dense, DenseView};
pub use ids::{Id, Ids, TextIds};
pub use ratings::{Duplicates, Rating, Ratings};
pub use sparse::Csr;
