//! A quick first look at many dot products: which of them can still be large.
//!
//! [`Screen`] holds rows (items) rounded to seven bits, [`Queries`] others (users) rounded to eight;
//! [`Screen::pass`] multiplies them in integers, four products to an instruction lane and a quarter
//! of the memory, and tells which items *may* reach a query's limit. It never loses one: with the
//! rounded rows `x̂` and `ŷ`,
//!
//! `x·y = x̂·ŷ + (x − x̂)·ŷ + x·(y − ŷ) ≤ x̂·ŷ + ‖x − x̂‖ ‖ŷ‖ + ‖x‖ ‖y − ŷ‖`,
//!
//! where `x̂·ŷ` is exact (a sum of integers times two scales) and the three norms are computed in
//! double precision from what was lost. What passes is to be scored in full; of rows in no special
//! direction the slack is under 2 % of `‖x‖ ‖y‖`, so that few pass in vain.
//!
//! # Rounding
//! The score that is compared in the end, `constant + bias + x·y`, is a single-precision sum, and so
//! is the comparison here. Both are covered: `‖y − ŷ‖` is enlarged by `δ ‖y‖`, with `δ` the bound on
//! the relative error of a single-precision dot product of this length, and the limit is lowered by
//! `2⁻²⁰` of the sizes of constant, limit and largest bias, sixteen times what the few additions
//! can lose. A comparison that overflows to something that is not a number counts as passed.

mod code;
mod pass;

pub use code::{Queries, Screen};

/// Items in a panel: their codes lie side by side.
pub const PANEL: usize = 16;
/// Queries in a tile, which are multiplied together.
pub const TILE: usize = 8;
/// Panels that are multiplied together; the items are padded to a multiple.
const WIDE: usize = 3;

#[cfg(test)]
mod tests;
