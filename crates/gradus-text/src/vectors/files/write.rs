//! Writing files of vectors.

use super::VectorFormat;
use crate::vectors::WordVectors;
use gradus_base::{Error, Result};
use gradus_core::embed::Embed;
use std::io::{self, Write};

/// Refuses names that a file of vectors cannot hold.
///
/// # Errors
/// If a name has a blank or a line end in it: a file of vectors sets words and numbers apart by blanks.
pub fn check_export(model: &dyn Embed) -> Result<()> {
    let is_bad = |name: &String| name.chars().any(char::is_whitespace);
    match model.names().iter().map(|name| name.to_string()).find(is_bad) {
        None => Ok(()),
        Some(name) => Err(Error::data(format!(
            "the {} {name:?} has a blank in it, which a file of vectors cannot hold",
            model.what()
        ))),
    }
}

/// Writes vectors, the most frequent names first. Numbers in text are as short as they can be without being read as others.
/// [`check_export`] says whether the names can be written.
///
/// # Errors
/// Those of the writer.
pub fn export_vectors(
    model: &dyn Embed,
    format: VectorFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    if format != VectorFormat::Glove {
        writeln!(out, "{} {}", model.names().len(), model.dimension())?;
    }
    let mut line = Vec::new();
    for &at in &*model.ranking() {
        let at = at as usize;
        line.clear();
        write!(line, "{}", model.names().get(at))?;
        match format {
            VectorFormat::Binary => {
                line.push(b' ');
                line.extend(model.vector(at).iter().flat_map(|x| x.to_le_bytes()));
            }
            VectorFormat::Text | VectorFormat::Glove => {
                for x in model.vector(at) {
                    write!(line, " {x}")?;
                }
            }
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

impl WordVectors {
    /// [`check_export`] of these vectors.
    ///
    /// # Errors
    /// If a word has a blank in it.
    pub fn check_export(&self) -> Result<()> {
        check_export(self)
    }

    /// [`export_vectors`] of these vectors.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn export(&self, format: VectorFormat, out: &mut dyn Write) -> io::Result<()> {
        export_vectors(self, format, out)
    }
}
