//! What an embedding is asked: the names nearest to a name, analogies, the odd one out; and files of vectors.

use crate::App;
use gradus::text::{VectorFormat, read_vectors};
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Remarks;
use gradus_core::embed::{Analogy, Embed, Neighbour};
use gradus_core::estimator::{AnyFitted, Model};
use gradus_data::Id;
use gradus_file::output::FileKind;
use serde::Serialize;
use std::path::Path;

/// Names like a name.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarNames<'a> {
    /// The name, as it was asked for.
    pub name: String,
    /// The names nearest to it, nearest first.
    pub similar: Vec<SimilarName<'a>>,
}

/// A name with its similarity to another.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarName<'a> {
    /// The name.
    pub name: Id<'a>,
    /// The cosine of the two vectors; of an analogy by products its score.
    pub similarity: f64,
}

fn named<'a>(model: &'a dyn Embed, near: &[Neighbour]) -> Vec<SimilarName<'a>> {
    let name = |near: &Neighbour| SimilarName {
        name: model.names().get(near.at),
        similarity: near.similarity,
    };
    near.iter().map(name).collect()
}

/// The `n` names whose vectors are nearest to that of a name, without the name itself.
///
/// # Errors
/// If the model has no vector of the name.
pub fn similar_names<'a>(model: &'a dyn Embed, name: &str, n: usize) -> Result<SimilarNames<'a>> {
    let query = model.query(&[name], &[], n)?;
    let near = model.nearest(&query.vector, n, &query.except)?;
    Ok(SimilarNames { name: name.to_owned(), similar: named(model, &near) })
}

/// What completes an analogy.
#[derive(Clone, Debug, Serialize)]
pub struct AnalogyAnswer<'a> {
    /// The three names: the first is to the second as the answer to the third.
    pub names: [String; 3],
    /// The names that complete it, best first.
    pub answers: Vec<SimilarName<'a>>,
}

/// The names that complete "`a` is to `b` as the name to `c`".
///
/// # Errors
/// If the model has no vector of one of them.
pub fn analogy<'a>(
    model: &'a dyn Embed,
    names: [&str; 3],
    n: usize,
    rule: Analogy,
) -> Result<AnalogyAnswer<'a>> {
    let near = model.analogy(names, n, rule)?;
    Ok(AnalogyAnswer { names: names.map(str::to_owned), answers: named(model, &near) })
}

/// Vectors of names: those of a model of gradus, or of a file of another program.
pub enum Embedding {
    /// A model of gradus.
    Fitted(Box<AnyFitted>),
    /// A file of word2vec, GloVe or fastText.
    File(Box<dyn Model>),
}

impl Embedding {
    /// The vectors.
    ///
    /// # Errors
    /// If the model has none; the message says what it can do instead.
    pub fn vectors(&self) -> Result<&dyn Embed> {
        match self {
            Self::Fitted(fitted) => fitted.embedding(),
            Self::File(model) => model
                .embedding()
                .ok_or_else(|| Error::data(format!("the file cannot {}", Capability::Embed))),
        }
    }
}

impl App {
    /// Opens vectors of names: a model of gradus, or a file of vectors as word2vec, GloVe and fastText write them.
    ///
    /// # Errors
    /// If the file is broken, or of another kind.
    pub fn open_vectors(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Embedding> {
        match FileKind::of(path)? {
            Some(FileKind::Text | FileKind::Compressed | FileKind::Binary) => {
                Ok(Embedding::File(Box::new(read_vectors(path, None, remarks)?)))
            }
            _ => Ok(Embedding::Fitted(Box::new(self.registry.load(path)?))),
        }
    }
}

/// How a file of vectors may be written.
pub use gradus::text::export_vectors;

/// The format for a file: the one that was asked for, or by its name.
///
/// # Errors
/// If there is no format of this name.
pub fn vector_format(name: Option<&str>, path: &Path) -> Result<VectorFormat> {
    match name {
        None => Ok(VectorFormat::named(path)),
        Some("text") => Ok(VectorFormat::Text),
        Some("binary") => Ok(VectorFormat::Binary),
        Some("glove") => Ok(VectorFormat::Glove),
        Some(other) => Err(Error::UnknownName {
            what: "format of vectors",
            name: other.to_owned(),
            known: "text, binary, glove".to_owned(),
        }),
    }
}
