//! Queries to an embedding: the names nearest to a name, analogies, the odd one out; and files of vectors.

use crate::App;
use gradus::text::{
    FastTextModel, VectorFormat, WordVectors, check_export, export_fasttext, open_fasttext,
    read_vectors,
};
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Remarks;
use gradus_core::embed::{Analogy, Embed, Neighbour};
use gradus_core::estimator::{AnyFitted, Model};
use gradus_data::Id;
use gradus_file::output::FileKind;
use serde::Serialize;
use serde_json::Map;
use std::io::{self, Write};
use std::path::Path;

/// Names like a name.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarNames<'a> {
    /// The name, as it was asked for.
    pub name: String,
    /// The nearest names, nearest first.
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

/// The names that complete an analogy.
#[derive(Clone, Debug, Serialize)]
pub struct AnalogyAnswer<'a> {
    /// The three names: the first is to the second as the answer to the third.
    pub names: [String; 3],
    /// The names that complete the analogy, best first.
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

impl App {
    /// Opens a model to write it to a file of another program: as [`open_vectors`](Self::open_vectors), and classifiers of
    /// fastText.
    ///
    /// # Errors
    /// If the file is broken, or of another kind.
    pub fn open_to_export(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Embedding> {
        match open_fasttext(path) {
            Some(found) => Ok(Embedding::Fitted(Box::new(found?))),
            None => self.open_vectors(path, remarks),
        }
    }
}

/// The format of a file that a model is exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A file of vectors.
    Vectors(VectorFormat),
    /// fastText's binary model.
    FastText,
}

impl ExportFormat {
    /// Whether it is text.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Vectors(VectorFormat::Text | VectorFormat::Glove))
    }
}

impl Embedding {
    fn model(&self) -> &dyn Model {
        match self {
            Self::Fitted(fitted) => fitted.model.as_ref(),
            Self::File(model) => model.as_ref(),
        }
    }

    /// Whether the model has more than vectors of words: vectors of n-grams, or classes.
    fn is_fasttext(&self) -> bool {
        let any: &dyn std::any::Any = self.model();
        let words: Option<&WordVectors> = any.downcast_ref();
        any.is::<FastTextModel>() || words.is_some_and(|words| words.subwords().is_some())
    }

    /// The format for a file: the one that was asked for, or by its name. A name that ends in `.ftz`, or in `.bin` where the
    /// model has n-grams or classes, means fastText's binary model.
    ///
    /// # Errors
    /// If there is no format of this name.
    pub fn export_format(&self, name: Option<&str>, path: &Path) -> Result<ExportFormat> {
        let vectors = |format: VectorFormat| Ok(ExportFormat::Vectors(format));
        match name {
            None => {
                let format = VectorFormat::named(path);
                let is_ftz = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("ftz"));
                let is_binary = format == VectorFormat::Binary && self.is_fasttext();
                if is_ftz || is_binary { Ok(ExportFormat::FastText) } else { vectors(format) }
            }
            Some("text") => vectors(VectorFormat::Text),
            Some("binary") => vectors(VectorFormat::Binary),
            Some("glove") => vectors(VectorFormat::Glove),
            Some("fasttext") => Ok(ExportFormat::FastText),
            Some(other) => Err(Error::UnknownName {
                what: "format of vectors",
                name: other.to_owned(),
                known: "text, binary, glove, fasttext".to_owned(),
            }),
        }
    }

    /// Writes the model to a file of another program.
    ///
    /// # Errors
    /// If the format cannot hold it; else those of the writer.
    pub fn export(&self, format: ExportFormat, out: &mut dyn Write) -> Result<io::Result<()>> {
        match format {
            ExportFormat::Vectors(format) => {
                let vectors = self.vectors()?;
                check_export(vectors)?;
                Ok(gradus::text::export_vectors(vectors, format, out))
            }
            ExportFormat::FastText => {
                let (none, model) = (Map::new(), self.model());
                let (kind, of) = match self {
                    Self::Fitted(fitted) => (fitted.kind, &fitted.params),
                    Self::File(_) => ("vectors", &none),
                };
                export_fasttext(model, (kind, of), out)
            }
        }
    }

    /// Returns the number of vectors and of their coordinates, for people to read.
    pub fn size(&self) -> (usize, usize) {
        let any: &dyn std::any::Any = self.model();
        if let Some(model) = any.downcast_ref::<FastTextModel>() {
            return (model.bag().words().len(), model.dimension());
        }
        self.vectors().map_or((0, 0), |vectors| (vectors.names().len(), vectors.dimension()))
    }
}
