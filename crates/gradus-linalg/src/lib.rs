//! Linear operators and their truncated singular value decomposition.
//!
//! An [`Operator`] is anything that multiplies a block of columns from both sides: a dense or a sparse
//! matrix, one that is centred or scaled without a copy, a sparse matrix plus one of low rank.
//! [`truncated`] gives the best approximation of a rank of any of them.
//!
//! | file | what lives there |
//! |---|---|
//! | `operator.rs` | [`Operator`], dense and [`Sparse`] matrices, [`Transposed`] |
//! | `composed.rs` | operators made of others: [`Centred`], [`Scaled`], [`LowRankSum`] |
//! | `svd.rs` | [`truncated`]: values, vectors and the error of Eckart and Young |
//! | `power.rs` | [`rank_one`]: the same of rank 1 by alternating power steps |
//! | `lanczos.rs` | the method: block Lanczos with restarts from a random block |
//! | `basis.rs`, `small.rs` | orthonormal columns that grow; small dense eigenproblems |
//!
//! ```
//! use gradus_data::Dense;
//! use gradus_linalg::{Centred, Options, truncated};
//! let x = Dense::from_rows(&[[1.0, 9.0], [2.0, 10.0], [3.0, 11.0]]);
//! let centred = Centred::columns(&x, vec![2.0, 10.0]);
//! let best = truncated(&centred, 1, &Options::default())?;
//! assert!((best.s[0] - 2.0).abs() < 1e-12 && best.error < 1e-7);
//! # Ok::<(), gradus_base::Error>(())
//! ```

mod basis;
mod composed;
mod lanczos;
mod operator;
mod power;
mod small;
mod svd;
#[cfg(test)]
mod tests;

pub use basis::Basis;
pub use composed::{Centred, LowRankSum, Scaled};
pub use lanczos::{Aim, Lanczos};
pub use operator::{Operator, Sparse, Transposed};
pub use power::{RankOne, rank_one};
pub use small::symmetric_eigen;
pub use svd::{Options, REAL, Svd, right_vectors, truncated, truncated_from, truncated_until};
