//! The kind of an existing file, by its content.

use crate::packing::Packing;
use gradus_base::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How many bytes are looked at.
const START: u64 = 4096;

/// The kind of a file, recognised by its first bytes and not by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A model file.
    Model,
    /// The state of a fit.
    Checkpoint,
    /// An HTML page.
    Page,
    /// An SVG drawing.
    Drawing,
    /// A PNG picture.
    Picture,
    /// Text: CSV and its relatives, libsvm, JSON.
    Text,
    /// gzip or Zstandard.
    Compressed,
    /// Anything else.
    Binary,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "a gradus model",
            Self::Checkpoint => "a checkpoint of a fit",
            Self::Page => "an HTML page",
            Self::Drawing => "an SVG drawing",
            Self::Picture => "a PNG picture",
            Self::Text => "a text file",
            Self::Compressed => "a compressed file",
            Self::Binary => "a binary file",
        })
    }
}

impl FileKind {
    /// The kind of the file at `path`; `None` if there is none, or an empty one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        match path.metadata() {
            // Opening a pipe would wait, and take from it what is looked at.
            Ok(found) if !found.is_file() => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        let mut start = Vec::new();
        File::open(path)
            .and_then(|file| file.take(START).read_to_end(&mut start))
            .map_err(|error| Error::io(path, error))?;
        Ok(Self::of_start(&start))
    }

    /// The kind of text that is written to a file of this name: compressed where the name ends in
    /// `.gz` or `.zst`.
    pub fn of_text_named(path: &Path) -> Self {
        match Packing::named(path) {
            Some(_) => Self::Compressed,
            None => Self::Text,
        }
    }

    /// The kind of a file that begins with these bytes; `None` if there are none.
    fn of_start(start: &[u8]) -> Option<Self> {
        if start.is_empty() {
            return None;
        }
        if Packing::of(start).is_some() {
            return Some(Self::Compressed);
        }
        if start.starts_with(b"\x89PNG") {
            return Some(Self::Picture);
        }
        // Eight bytes of length, then the header as every version of the writer begins it. A
        // damaged model is still one, so nothing more is checked.
        if start.get(8..).is_some_and(|rest| rest.starts_with(br#"{"__metadata__":{"gradus":""#)) {
            let text = String::from_utf8_lossy(start);
            let kind = text.split(r#"\"kind\":\""#).nth(1).and_then(|rest| rest.split('\\').next());
            let checkpoint = kind.is_some_and(|kind| kind.ends_with(".checkpoint"));
            return Some(if checkpoint { Self::Checkpoint } else { Self::Model });
        }
        if start.contains(&0) || start.starts_with(b"PAR1") {
            return Some(Self::Binary);
        }
        let text = String::from_utf8_lossy(start).to_ascii_lowercase();
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let xml_with = |root: &str| text.starts_with("<?xml") && text.contains(root);
        if text.starts_with("<!doctype html") || text.starts_with("<html") || xml_with("<html") {
            return Some(Self::Page);
        }
        if text.starts_with("<svg") || text.starts_with("<!doctype svg") || xml_with("<svg") {
            return Some(Self::Drawing);
        }
        // Latin-1 and its relatives are text too, so a byte that is not UTF-8 proves nothing.
        let strange =
            start.iter().filter(|&&byte| byte < 0x20 && !b"\t\n\r\x0c\x1b".contains(&byte));
        Some(if strange.count() * 50 > start.len() { Self::Binary } else { Self::Text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;

    #[test]
    fn kinds_are_recognised_by_content() {
        let model = Writer::new("als").to_bytes().unwrap();
        let checkpoint = Writer::new("als.checkpoint").to_bytes().unwrap();
        let cases: &[(&[u8], Option<FileKind>)] = &[
            (b"", None),
            (&model, Some(FileKind::Model)),
            (&model[..100], Some(FileKind::Model)),
            (&checkpoint, Some(FileKind::Checkpoint)),
            (b"user,item\n1,2\n", Some(FileKind::Text)),
            (b"caf\xe9;1\n", Some(FileKind::Text)),
            (b"\xef\xbb\xbf<!DOCTYPE html><html>", Some(FileKind::Page)),
            (b"<svg xmlns=", Some(FileKind::Drawing)),
            (b"\x89PNG\r\n\x1a\n\0\0", Some(FileKind::Picture)),
            (b"<?xml version=\"1.0\"?>\n<svg ", Some(FileKind::Drawing)),
            (&[0x1f, 0x8b, 8, 0], Some(FileKind::Compressed)),
            (b"PAR1abc", Some(FileKind::Binary)),
            (b"\x7fELF\0\0\0", Some(FileKind::Binary)),
        ];
        for (start, expected) in cases {
            assert_eq!(FileKind::of_start(start), *expected, "{start:?}");
        }
    }
}
