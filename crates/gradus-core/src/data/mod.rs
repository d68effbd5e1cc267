//! Data as gradus holds it, and the ways in and out.
//!
//! | type | what it is |
//! |---|---|
//! | [`Ids`] | the users' own names for rows and columns, integer or text, kept sorted |
//! | [`Csr`] | a compressed sparse row matrix, `u32` indices, `f32` or `f64` values |
//! | [`Ratings`] | who rated what how much: [`Csr`] by user and by item, with both [`Ids`] |
//! | [`RatingsBuilder`] | collects columns of ids and values into [`Ratings`] |
//! | [`read_ratings`], [`read_pairs`] | from a file to [`Ratings`] or [`Pairs`] |
//! | [`Merged`] | new ratings added to others |
//! | [`Samples`] | features, a target and weights: what regression and classification learn from |
//! | [`Matrix`], [`Inputs`] | the features of samples, dense or sparse, and the columns they came from |
//! | [`Dense`], [`DenseView`] | a dense matrix by rows, owned or borrowed |
//! | [`Buffer`] | the numbers of a matrix, its own or lent by an array of another language |
//! | [`NpyArray`], [`Npz`] | NumPy's `.npy` and `.npz` |
//! | [`DenseText`] | a dense matrix from CSV or TSV |
//! | [`Libsvm`] | labels and sparse features, as libsvm and svmlight write them |
//! | `Table` | Arrow record batches from CSV, TSV, JSON Lines, Parquet (feature `tables`) |
//! | [`Sketch`] | a few hashes of rows, by which data is recognised |
//! | [`Titles`] | titles of items, for people to read beside ids |
//! | [`make`] | planted data, to try, test and time models on |

mod buffer;
mod builder;
mod dense;
mod dense_text;
mod fingerprint;
mod ids;
mod inputs;
mod libsvm;
pub mod make;
mod matrix;
mod merge;
mod npy;
mod npz;
pub(crate) mod open;
mod ratings;
mod read;
mod samples;
mod sketch;
mod sparse;
#[cfg(feature = "tables")]
mod table;
mod titles;

pub use buffer::Buffer;
pub use builder::RatingsBuilder;
pub use dense::{Dense, DenseView};
pub use dense_text::{DenseText, DenseTextOptions, Missing};
pub use ids::{Id, IdSlice, IdVec, Ids, TextIds};
#[cfg(feature = "tables")]
pub use inputs::{EncodeOptions, Encoded, Fill};
pub use inputs::{Input, InputKind, Inputs};
pub use libsvm::{Libsvm, LibsvmOptions};
pub use matrix::Matrix;
pub use merge::{Kept, Merged};
pub use npy::{NpyArray, NpyValue};
pub use npz::{Npz, NpzWriter};
pub use ratings::{Duplicates, Rating, Ratings};
pub use read::{
    Column, Columns, Format, OnError, Pairs, ReadOptions, ReadSummary, read_pairs, read_pairs_from,
    read_ratings, read_ratings_from,
};
#[cfg(feature = "tables")]
pub use samples::SamplesOptions;
pub use samples::{Samples, Target};
pub use sketch::{Sketch, rating_hash};
pub use sparse::Csr;
#[cfg(feature = "tables")]
pub use table::{Table, TableFormat, TableOptions};
pub use titles::Titles;
