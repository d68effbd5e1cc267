//! Data as gradus holds it, and the ways in and out.
//!
//! | type | what it is |
//! |---|---|
//! | [`Ids`] | the users' own names for rows and columns, integer or text, kept sorted |
//! | [`Csr`] | a compressed sparse row matrix, `u32` indices, `f32` or `f64` values |
//! | [`Ratings`] | who rated what how much: [`Csr`] by user and by item, with both [`Ids`] |
//! | [`RatingsBuilder`] | collects columns of ids and values into [`Ratings`] |
//! | [`read_ratings`], [`read_pairs`] | from a file to [`Ratings`] or [`Pairs`] |
//! | [`SideTable`], [`Features`] | side information: features of users and of items, beside [`Ratings`] |
//! | [`Merged`] | new ratings added to others |
//! | [`Samples`] | features, a target and weights: what regression and classification learn from |
//! | [`Matrix`], [`Inputs`] | the features of samples, dense or sparse, and the columns they came from |
//! | [`Images`] | images of one size, from a folder of pictures, IDX or `.npy` |
//! | [`Dense`], [`DenseView`] | a dense matrix by rows, owned or borrowed |
//! | [`Buffer`] | the numbers of a matrix, its own or lent by an array of another language |
//! | [`NpyArray`], [`NpyRows`], [`Npz`] | NumPy's `.npy`, whole or row by row, and `.npz` |
//! | [`Libsvm`] | labels and sparse features, as libsvm and svmlight write them |
//! | [`Table`], [`Column`] | named columns of numbers, truth values and words, from memory or from CSV, TSV, JSON Lines, Parquet |
//! | [`Vectorizer`] | documents as counts of their words, or tf-idf |
//! | [`TextColumns`], [`TableRecords`] | columns of a file as text, and where its rows begin and end |
//! | [`Sketch`] | a few hashes of rows, by which data is recognised |
//! | [`Titles`] | titles of items, for people to read beside ids |
//! | [`split`] | setting ratings or rows aside |
//! | [`make`] | planted data, to try, test and time models on |

mod buffer;
mod builder;
mod dense;
mod fingerprint;
mod folder;
mod ids;
mod images;
mod inputs;
mod libsvm;
pub mod make;
mod matrix;
mod merge;
mod npy;
mod npz;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod ratings;
mod read;
mod samples;
mod side;
mod sketch;
mod sparse;
pub mod split;
mod stored;
mod table;
mod text;
mod titles;

pub use buffer::Buffer;
pub use builder::RatingsBuilder;
pub use dense::{Dense, DenseView};
pub use folder::files_under;
pub use ids::{Id, IdSlice, IdVec, Ids, TextIds};
pub use images::{ImageShape, Images, Pixels};
pub use inputs::{
    EncodeOptions, Encoded, Fill, Input, InputColumns, InputKind, Inputs, LIST_SEPARATOR,
    MissingWord,
};
pub use libsvm::{Libsvm, LibsvmOptions};
pub use matrix::Matrix;
pub use merge::{Kept, Merged};
pub use npy::{NpyArray, NpyRows, NpyValue, RowBlocks};
pub use npz::{Npz, NpzWriter};
pub use ratings::{Duplicates, Rating, Ratings};
pub use read::{
    ColumnRef, Columns, Delimiter, Format, OnError, Pairs, ReadOptions, ReadSummary,
    rating_columns, read_pairs, read_pairs_from, read_ratings, read_ratings_from,
};
pub use samples::{Samples, SamplesOptions, Target, numbered};
pub use side::{Entity, FeatureEncoder, FeatureRow, Features, SideTable};
pub use sketch::{Sketch, rating_hash};
pub use sparse::Csr;
pub use table::{
    CellMode, Column, MISSING_WORD, Missing, Stray, Table, TableLayout, TableOptions, TableRecords,
    TableSource, TextColumn, TextColumns,
};
pub use text::{
    BagOptions, Bags, CharNgrams, END_TOKEN, ENGLISH_STOP_WORDS, LINE_END, TextBag, TextFile,
    TextNorm, TextOptions, TextWeights, TokenCodec, TokenDecoder, TokenInput, TokenKind, TokenRule,
    Tokenizer, Vectorizer, fasttext_hash, is_binary, text_blocks, text_hash,
};
pub use titles::Titles;

/// Zeros for a matrix, or an error if the memory for them cannot be had.
pub(crate) fn zeros(n_rows: usize, n_cols: usize) -> gradus_base::Result<Vec<f64>> {
    let too_large = || {
        gradus_base::Error::data(format!(
            "a matrix of {n_rows} × {n_cols} numbers does not fit into memory"
        ))
    };
    let len = n_rows.checked_mul(n_cols).ok_or_else(too_large)?;
    // Reserving first: `vec!` would end the process.
    let mut probe = Vec::<f64>::new();
    probe.try_reserve_exact(len).map_err(|_| too_large())?;
    drop(probe);
    Ok(vec![0.0; len])
}
