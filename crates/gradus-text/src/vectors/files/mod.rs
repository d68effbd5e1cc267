//! Files of vectors: those of word2vec (text and binary), GloVe and fastText (`.vec`).
//!
//! | format | header | a word |
//! |---|---|---|
//! | text (word2vec, fastText's `.vec`) | a line with the numbers of words and coordinates | a line: word and numbers, set apart by blanks |
//! | GloVe | none | the same |
//! | binary (word2vec) | as text | the word, a blank, the coordinates as 32-bit floats (little endian) |

mod read;
mod write;

pub use read::read_vectors;
pub use write::{check_export, export_vectors};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format of a file of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VectorFormat {
    /// Text of word2vec and of fastText's .vec: a header, then a line for each word
    Text,
    /// Binary form of word2vec
    Binary,
    /// Text of GloVe: as text, without a header
    Glove,
}

impl VectorFormat {
    /// The format for a file of this name: binary if it ends in `.bin`, else text. The ending of a compressed file (`.gz`,
    /// `.zst`) is left aside.
    pub fn named(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        if plain.ends_with(".bin") { Self::Binary } else { Self::Text }
    }
}

#[cfg(test)]
mod tests;
