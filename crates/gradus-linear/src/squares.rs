//! Weighted least squares with and without a penalty on the squares of the coefficients.
//!
//! | file | what it does |
//! |---|---|
//! | `normal.rs` | the normal equations, factored once, polished by the true residual |
//! | `dual.rs` | the normal equations of the samples, for more features than samples |
//! | `triangle.rs` | the orthogonal triangle, for features so alike that the normal equations fail |
//! | `conjugate.rs` | conjugate gradients, for matrices too large to factor |

mod conjugate;
mod dual;
mod normal;
mod triangle;

pub(crate) use conjugate::{Scaling, conjugate};
pub(crate) use dual::Dual;
pub(crate) use normal::{Normal, Spectrum, norm};
pub(crate) use triangle::minimum_norm;

/// Matrices with more rows and more columns than this are not factored.
pub(crate) const FACTORED: usize = 4096;
