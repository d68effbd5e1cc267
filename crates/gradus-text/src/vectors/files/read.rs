//! Reading files of vectors. Nothing in a file is trusted: memory grows with what was read, not with what a header says.

use super::VectorFormat;
use crate::fasttext;
use crate::vectors::WordVectors;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_file::packing::open_decompressed;
use hashbrown::HashSet;
use std::io::{BufRead, Read};
use std::path::Path;

/// Vectors of more coordinates are refused.
const MOST_COORDINATES: usize = 65_536;

/// A longer word, or line of a header, is a sign of another format.
const LONGEST_WORD: usize = 4096;

/// Reads a file of vectors; compressed files (gzip, Zstandard) are unpacked. Without a `format` the file is looked at: a
/// header of two whole numbers means text or binary, none means GloVe's text; fastText's own files (`.bin`, `.ftz`) are read with
/// their n-grams. A word that is there twice keeps its first
/// vector, and is remarked on.
///
/// # Errors
/// If the file is broken; the message names the line (of a binary file the word) and the rule.
pub fn read_vectors(
    path: &Path,
    format: Option<VectorFormat>,
    remarks: &mut Remarks<'_>,
) -> Result<WordVectors> {
    let mut input = open_decompressed(path)?;
    let start = fill(&mut *input).map_err(|source| Error::io(path, source))?;
    if start.is_empty() {
        return Err(Error::format(path, "is empty: there are no vectors"));
    }
    if start.starts_with(&fasttext::binary::START) {
        let found = fasttext::binary::read(path, &mut *input)?;
        return fasttext::word_vectors(path, found, remarks);
    }
    let Some(format) = format.or_else(|| recognised(start)) else {
        let reason = "is not a gradus model file, nor vectors of words: its first line is neither two whole numbers nor a \
            word and numbers";
        return Err(Error::format(path, reason));
    };
    let mut found =
        Found { path, words: Vec::new(), seen: HashSet::new(), vectors: Vec::new(), repeated: 0 };
    match format {
        VectorFormat::Text => text(&mut *input, true, &mut found)?,
        VectorFormat::Glove => text(&mut *input, false, &mut found)?,
        VectorFormat::Binary => binary(&mut *input, &mut found)?,
    }
    if found.words.is_empty() {
        return Err(Error::format(path, "holds no vectors"));
    }
    if found.repeated > 0 {
        let n = grouped(found.repeated);
        remarks.push(format!(
            "{}: {n} words are there again; their first vectors are taken",
            path.display()
        ));
    }
    let model = WordVectors::new(&found.words, None, &found.vectors, None);
    model.map_err(|error| Error::format(path, error.to_string()))
}

fn fill(input: &mut dyn BufRead) -> std::io::Result<&[u8]> {
    input.fill_buf()
}

/// The format of a file by its first bytes; `None` if they are no vectors.
fn recognised(start: &[u8]) -> Option<VectorFormat> {
    let (first, rest) = line_of(start);
    let Some((_, k)) = std::str::from_utf8(first).ok().and_then(header) else {
        // A word that is not UTF-8 is an error of the line.
        let first = String::from_utf8_lossy(first);
        let last = first.split_ascii_whitespace().skip(1).last();
        return last.filter(|field| field.parse::<f32>().is_ok()).map(|_| VectorFormat::Glove);
    };
    let (second, _) = line_of(rest);
    let as_text = std::str::from_utf8(second).ok();
    let is_number = |field: &str| field.parse::<f32>().is_ok();
    let fits = as_text.is_some_and(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        fields.len() > k && fields[fields.len() - k..].iter().all(|field| is_number(field))
    });
    // Floats have bytes that no text has: control characters, or what is not UTF-8.
    let is_control = |byte: &u8| *byte < 9 || (14..32).contains(byte);
    let sample = &rest[..rest.len().min(4096)];
    let is_text = !sample.iter().any(is_control)
        && std::str::from_utf8(sample).map_or_else(|error| error.error_len().is_none(), |_| true);
    Some(if fits || is_text { VectorFormat::Text } else { VectorFormat::Binary })
}

fn line_of(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

/// The numbers of words and coordinates.
fn header(line: &str) -> Option<(u64, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (n, k) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    fields.next().is_none().then_some((n, k))
}

/// The content of a file.
struct Found<'a> {
    path: &'a Path,
    words: Vec<String>,
    seen: HashSet<String>,
    vectors: Vec<f32>,
    repeated: usize,
}

impl Found<'_> {
    fn bad(&self, line: u64, reason: String) -> Error {
        let file = self.path.display().to_string();
        Error::Row { file, line, column: None, reason }
    }

    /// Whether a word is new; one that is not is counted.
    fn is_new(&mut self, word: &str) -> bool {
        let is_new = self.seen.insert(word.to_owned());
        if is_new {
            self.words.push(word.to_owned());
        } else {
            self.repeated += 1;
        }
        is_new
    }

    fn check_header(&self, line: &str) -> Result<(u64, usize)> {
        let (n, k) = header(line).ok_or_else(|| {
            let shown: String = line.chars().take(60).collect();
            let rule = "a header of two whole numbers, the number of words and of coordinates";
            self.bad(1, format!("{shown:?} is not {rule}"))
        })?;
        if !(1..=MOST_COORDINATES).contains(&k) {
            return Err(self.bad(
                1,
                format!(
                    "the header says {k} coordinates; from 1 to {MOST_COORDINATES} are possible"
                ),
            ));
        }
        Ok((n, k))
    }

    fn check_number(&self, n: u64) -> Result<()> {
        let got = (self.words.len() + self.repeated) as u64;
        if got == n {
            return Ok(());
        }
        Err(Error::format(
            self.path,
            format!("its header says {n} words, and {got} follow: the file is cut off or damaged"),
        ))
    }
}

fn text(input: &mut dyn BufRead, has_header: bool, found: &mut Found<'_>) -> Result<()> {
    let path = found.path;
    let mut bytes = Vec::new();
    let (mut number, mut said, mut k) = (0u64, None, None);
    loop {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes).map_err(|source| Error::io(path, source))? == 0 {
            break;
        }
        number += 1;
        let Ok(line) = std::str::from_utf8(&bytes) else {
            let reason = "is not UTF-8 text; words must be UTF-8".to_owned();
            return Err(found.bad(number, reason));
        };
        let line = line.trim_end_matches(['\n', '\r', ' ', '\t']);
        if number == 1 && has_header {
            let (n, coordinates) = found.check_header(line)?;
            (said, k) = (Some(n), Some(coordinates));
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split([' ', '\t']).collect();
        let k = *k.get_or_insert(fields.len() - 1);
        if k == 0 || k > MOST_COORDINATES {
            return Err(
                found.bad(number, "holds no word and numbers, set apart by blanks".to_owned())
            );
        }
        if fields.len() < k + 1 {
            let got = fields.len() - 1;
            return Err(found.bad(
                number,
                format!("has {got} numbers after the word {:?}, and vectors have {k}", fields[0]),
            ));
        }
        // GloVe's files have words with blanks, such as `. . .`; a number too many is an error.
        let (word, numbers) = fields.split_at(fields.len() - k);
        if word.len() > 1 && word[1..].iter().all(|field| field.parse::<f32>().is_ok()) {
            let got = fields.len() - 1;
            return Err(found.bad(
                number,
                format!("has {got} numbers after the word {:?}, and vectors have {k}", fields[0]),
            ));
        }
        let word = word.join(" ");
        if word.trim().is_empty() {
            return Err(found.bad(number, "begins with no word".to_owned()));
        }
        let is_new = found.is_new(&word);
        for field in numbers {
            match field.parse::<f32>() {
                Ok(x) if x.is_finite() => {
                    if is_new {
                        found.vectors.push(x);
                    }
                }
                _ => {
                    return Err(found.bad(
                        number,
                        format!("{field:?} of the word {word:?} is not a finite number"),
                    ));
                }
            }
        }
    }
    said.map_or(Ok(()), |n| found.check_number(n))
}

fn binary(input: &mut dyn BufRead, found: &mut Found<'_>) -> Result<()> {
    let path = found.path;
    let io = |source: std::io::Error| Error::io(path, source);
    let mut bytes = Vec::new();
    let mut first = Read::take(&mut *input, LONGEST_WORD as u64);
    first.read_until(b'\n', &mut bytes).map_err(io)?;
    let line = String::from_utf8_lossy(&bytes).trim().to_owned();
    let (n, k) = found.check_header(&line)?;
    let mut floats = vec![0u8; 4 * k];
    for number in 1..=n {
        let bad = |reason: String| Error::format(path, format!("word {number} of {n}: {reason}"));
        bytes.clear();
        let mut of_word = Read::take(&mut *input, LONGEST_WORD as u64);
        let read = of_word.read_until(b' ', &mut bytes).map_err(io)?;
        if bytes.pop() != Some(b' ') {
            let reason = if read == LONGEST_WORD {
                format!("no blank ends it within {LONGEST_WORD} bytes")
            } else {
                "the file ends here: it is cut off or damaged".to_owned()
            };
            return Err(bad(reason));
        }
        let word = bytes.strip_prefix(b"\n").unwrap_or(&bytes);
        let Ok(word) = std::str::from_utf8(word) else {
            return Err(bad(format!("{:?} is not UTF-8", String::from_utf8_lossy(word))));
        };
        if word.is_empty() {
            return Err(bad("the word is empty".to_owned()));
        }
        if input.read_exact(&mut floats).is_err() {
            return Err(bad(format!(
                "the file ends within the {k} numbers of {word:?}: it is cut off or damaged"
            )));
        }
        let is_new = found.is_new(word);
        let (values, _) = floats.as_chunks::<4>();
        for value in values {
            let x = f32::from_le_bytes(*value);
            if !x.is_finite() {
                return Err(bad(format!("a number of {word:?} is {x}; all must be finite")));
            }
            if is_new {
                found.vectors.push(x);
            }
        }
    }
    let mut rest = Vec::new();
    input.read_to_end(&mut rest).map_err(io)?;
    if rest.iter().any(|byte| !byte.is_ascii_whitespace()) {
        let left = grouped(rest.len());
        return Err(Error::format(
            path,
            format!(
                "{left} bytes follow the last of {n} words: the number of coordinates does not fit"
            ),
        ));
    }
    Ok(())
}
