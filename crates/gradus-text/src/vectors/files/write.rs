//! Writing files of vectors.

use super::VectorFormat;
use crate::vectors::WordVectors;
use gradus_base::{Error, Result};
use gradus_core::embed::Embed as _;
use std::io::{self, Write};

impl WordVectors {
    /// Refuses words that a file of vectors cannot hold.
    ///
    /// # Errors
    /// If a word has a blank or a line end in it: a file of vectors sets words and numbers apart by blanks.
    pub fn check_export(&self) -> Result<()> {
        let is_bad = |word: &&str| word.chars().any(char::is_whitespace);
        match (0..self.len()).map(|at| self.word(at)).find(is_bad) {
            None => Ok(()),
            Some(word) => Err(Error::data(format!(
                "the word {word:?} has a blank in it, which a file of vectors cannot hold"
            ))),
        }
    }

    /// Writes the vectors, the most frequent words first. Numbers in text are as short as they can be without being
    /// read as others.
    ///
    /// # Errors
    /// Those of the writer. [`check_export`](Self::check_export) says whether the words can be written.
    pub fn export(&self, format: VectorFormat, out: &mut dyn Write) -> io::Result<()> {
        if format != VectorFormat::Glove {
            writeln!(out, "{} {}", self.len(), self.dimension())?;
        }
        let mut line = Vec::new();
        for &at in &*self.ranking() {
            let at = at as usize;
            line.clear();
            line.extend_from_slice(self.word(at).as_bytes());
            match format {
                VectorFormat::Binary => {
                    line.push(b' ');
                    line.extend(self.vector(at).iter().flat_map(|x| x.to_le_bytes()));
                }
                VectorFormat::Text | VectorFormat::Glove => {
                    for x in self.vector(at) {
                        write!(line, " {x}")?;
                    }
                }
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
        Ok(())
    }
}
