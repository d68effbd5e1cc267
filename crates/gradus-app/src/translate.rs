//! Makes texts of texts.

use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_core::estimator::AnyFitted;
use gradus_data::TextFile;
use serde::Serialize;
use std::path::Path;

/// A text and its translation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Translation {
    /// The text.
    pub source: String,
    /// What the model makes of it.
    pub target: String,
}

/// The translations of texts, by a search with so many beams.
///
/// # Errors
/// If the model cannot translate, or a text is too long for it.
pub fn translate(fitted: &AnyFitted, texts: &[&str], beams: usize) -> Result<Vec<Translation>> {
    let found = fitted.translator()?.translate(texts, beams)?;
    let both = texts.iter().zip(found);
    Ok(both.map(|(source, target)| Translation { source: (*source).to_owned(), target }).collect())
}

/// The lines of a file, each a text; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, or holds no text.
pub fn lines(path: &Path, remarks: &mut Remarks<'_>) -> Result<Vec<String>> {
    let Some(file) = TextFile::read(path)? else {
        return Err(Error::format(path, "holds no text: there is a zero byte in it"));
    };
    if let Some(encoding) = file.encoding {
        remarks.push(format!("{}: read as {encoding}", path.display()));
    }
    Ok(file.text.lines().map(str::to_owned).collect())
}
