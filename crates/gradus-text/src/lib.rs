//! Documents, and models that turn them into features.
//!
//! | type | what it is |
//! |---|---|
//! | [`Documents`] | texts, with ids, classes and times if they have any: a kind of data |
//! | [`DocumentsFile`] | how they are read: from a folder, the lines of a file, or a column of a table |
//! | [`Counts`] | how often each word occurs in each document |
//! | [`Tfidf`] | the same, weighted by how rare a word is |
//! | [`TextModel`] | what these two learn |
//! | [`Corpus`] | documents as sequences of numbered words, with their vocabulary |
//! | [`cooccurrence`] | how often words occur near each other, and their mutual information |
//! | [`Ppmi`], [`Glove`] | vectors of words from these counts |
//! | [`Skipgram`], [`Cbow`] | vectors of words by predicting words from their neighbours |
//! | [`FastText`] | classes of documents from vectors of words and n-grams |
//! | [`Sif`] | vectors of documents from the vectors of their words |
//! | [`Doc2Vec`] | vectors of documents by predicting their words |
//! | [`WordVectors`] | vectors of words: what models of words learn |
//! | [`FitTransform`] | a fit that gives the features of its documents as well |
//!
//! How text is cut into words and counted is [`gradus_data::Vectorizer`], which columns of text in tables use as well.
//!
//! ```
//! use gradus_core::estimator::Fit;
//! use gradus_core::transform::Transform;
//! use gradus_text::{Documents, Tfidf};
//! let documents = Documents::new(["cheap pills, cheap!", "the minutes of the meeting"]);
//! let fitted = Tfidf::new().fit(&documents)?;
//! let features = fitted.model.transform_data(&documents)?;
//! assert_eq!((features.shape(), features.is_sparse()), ((2, 6), true));
//! # Ok::<(), gradus_base::Error>(())
//! ```

pub mod cooccurrence;
mod corpus;
mod counts;
mod doc2vec;
mod documents;
mod fasttext;
mod file;
mod glove;
mod pairs;
mod parameters;
mod ppmi;
mod sif;
mod skipgram;
mod text_input;
mod vectorize;
mod vectors;
mod word2vec;

pub use corpus::{Corpus, PhraseScore, Phrases, Words};
pub use doc2vec::{Doc2Vec, ParagraphVectors};
pub use documents::{DocumentClasses, Documents};
pub use fasttext::{
    FastText, FastTextLoss, FastTextModel, export_fasttext, is_fasttext, open_fasttext,
};
pub use file::DocumentsFile;
pub use glove::{Glove, GloveSolver};
pub use pairs::{TextPairs, TextPairsFile};
pub use ppmi::Ppmi;
pub use sif::{SentenceVectors, SentenceWeights, Sif};
pub use skipgram::{Cbow, Skipgram};
pub use vectorize::{Counts, FitTransform, TextModel, Tfidf};
pub use vectors::{
    Subwords, VectorFormat, WordVectors, check_export, export_vectors, read_vectors,
};
pub use word2vec::Word2vecLoss;
