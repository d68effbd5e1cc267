//! The text of a file.

use crate::read::source;
use crate::table::decode;
use gradus_base::Result;
use std::path::Path;

/// The text of a file: decompressed (gzip, Zstandard), and decoded.
///
/// UTF-8 with or without a mark at its start, UTF-16 with one; bytes that are not UTF-8 are taken as Windows-1252, as
/// the readers of tables do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The text.
    pub text: String,
    /// The encoding of the file, if not UTF-8.
    pub encoding: Option<&'static str>,
}

impl TextFile {
    /// Reads a file; `-` is standard input. `None` of a file that is [binary](is_binary).
    ///
    /// # Errors
    /// If the file cannot be read or unpacked.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        source::open(path, |mut input| {
            if input.encoding.is_empty() && is_binary(&input.sample) {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            while !input.fill(&mut bytes, usize::MAX)? {}
            let encoding = (!input.encoding.is_empty()).then_some(input.encoding);
            Ok(Some(match String::from_utf8(bytes) {
                Ok(text) => Self { text, encoding },
                Err(error) => Self {
                    text: decode(error.as_bytes()).0.into_owned(),
                    encoding: Some("Windows-1252"),
                },
            }))
        })
    }
}

/// Whether bytes from the start of a file are no text: they hold a zero byte.
pub fn is_binary(start: &[u8]) -> bool {
    memchr::memchr(0, start).is_some()
}
