//! A dense matrix from comma- or tab-separated numbers.

use super::Dense;
use super::open::open_decompressed;
use crate::{Error, Result};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// What to do with a value that is not there: an empty cell, `NA`, `NaN`, `null`, `?`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Refuse the data and name the row and column.
    #[default]
    Refuse,
    /// Put a NaN in its place.
    Nan,
}

/// How to read a matrix from text. By default everything is found out from the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenseTextOptions {
    /// What separates cells; `None` takes the first of tab, semicolon and comma that the first
    /// line has, or else blanks.
    pub separator: Option<u8>,
    /// Whether the first line has names; `None` says so if a cell of it is not a number.
    pub header: Option<bool>,
    /// What to do with missing values. Default refuse.
    pub missing: Missing,
}

/// A matrix of numbers and the names of its columns.
///
/// ```
/// use gradus_core::data::{DenseText, DenseTextOptions};
/// let table = DenseText::from_bytes(b"width,height\n1,2.5\n3,4\n", &DenseTextOptions::default())?;
/// assert_eq!(table.names.unwrap(), ["width", "height"]);
/// assert_eq!(table.matrix.row(0), [1.0, 2.5]);
/// # Ok::<(), gradus_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DenseText {
    /// The numbers.
    pub matrix: Dense<f64>,
    /// The names of the columns, if the file has a header.
    pub names: Option<Vec<String>>,
}

impl DenseText {
    /// Reads a file, compressed or not.
    ///
    /// # Errors
    /// If the file cannot be read, a line has more or fewer cells than the first, or a cell is
    /// not a finite number; the message names the file, the line and the column.
    pub fn read(path: impl AsRef<Path>, options: &DenseTextOptions) -> Result<Self> {
        let path = path.as_ref();
        from_buf_read(&mut open_decompressed(path)?, path, options)
    }

    /// Reads from memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_bytes(bytes: &[u8], options: &DenseTextOptions) -> Result<Self> {
        from_buf_read(&mut &bytes[..], Path::new("<memory>"), options)
    }

    /// Reads from any source. `name` is what errors call it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_reader(reader: impl Read, name: &Path, options: &DenseTextOptions) -> Result<Self> {
        from_buf_read(&mut BufReader::new(reader), name, options)
    }
}

fn from_buf_read(
    reader: &mut (impl BufRead + ?Sized),
    name: &Path,
    options: &DenseTextOptions,
) -> Result<DenseText> {
    let mut names: Option<Vec<String>> = None;
    let mut separator = options.separator;
    let (mut n_rows, mut n_cols) = (0usize, None);
    let mut values = Vec::new();
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let read = reader.read_until(b'\n', &mut line);
        if read.map_err(|source| Error::io(name, source))? == 0 {
            break;
        }
        let fault = |column: Option<String>, reason: String| Error::Row {
            file: name.display().to_string(),
            line: number,
            column,
            reason,
        };
        let text = std::str::from_utf8(&line).map_err(|_| fault(None, "not UTF-8 text".into()))?;
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            continue;
        }
        let separator = *separator.get_or_insert_with(|| guess_separator(text));
        if n_cols.is_none() {
            let cells: Vec<&str> = cells(text, separator).collect();
            n_cols = Some(cells.len());
            let is_number = |cell: &&str| cell.parse::<f64>().is_ok() || is_missing(cell);
            if options.header.unwrap_or_else(|| !cells.iter().all(is_number)) {
                names = Some(cells.into_iter().map(str::to_owned).collect());
                continue;
            }
        }
        let expected = n_cols.unwrap_or(0);
        let before = values.len();
        for cell in cells(text, separator) {
            let column = values.len() - before;
            let column_name = || {
                let named = names.as_ref().and_then(|names| names.get(column));
                Some(named.map_or_else(|| (column + 1).to_string(), |name| format!("`{name}`")))
            };
            match cell.parse::<f64>() {
                Ok(value) if value.is_finite() => values.push(value),
                _ if is_missing(cell) => match options.missing {
                    Missing::Nan => values.push(f64::NAN),
                    Missing::Refuse => {
                        return Err(fault(column_name(), format!("missing value `{cell}`")));
                    }
                },
                _ => {
                    let cell: String = cell.chars().take(40).collect();
                    return Err(fault(column_name(), format!("`{cell}` is not a finite number")));
                }
            }
        }
        let got = values.len() - before;
        if got != expected {
            let reason = format!("{got} cells, but the first line has {expected}");
            return Err(fault(None, reason));
        }
        n_rows += 1;
    }
    let n_cols = n_cols.ok_or_else(|| Error::format(name, "no rows"))?;
    Ok(DenseText { matrix: Dense::new(n_rows, n_cols, values)?, names })
}

/// Whether a cell stands for a value that is not there.
pub(crate) fn is_missing(cell: &str) -> bool {
    ["", "?", "na", "n/a", "nan", "null", "none"]
        .iter()
        .any(|spelling| cell.eq_ignore_ascii_case(spelling))
}

fn guess_separator(line: &str) -> u8 {
    *b"\t;,".iter().find(|&&separator| line.as_bytes().contains(&separator)).unwrap_or(&b' ')
}

/// The cells of a line without blanks and quotes around them. A quoted cell may hold the
/// separator; numbers never do, but names may.
fn cells(line: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(if separator == b' ' { line.trim() } else { line });
    std::iter::from_fn(move || {
        let text = rest?;
        let quoted = text.trim_start_matches(' ').starts_with('"');
        let from = if quoted {
            let open = text.find('"').unwrap_or(0) + 1;
            text[open..].find('"').map_or(text.len(), |close| open + close + 1)
        } else {
            0
        };
        let end = text[from..].bytes().position(|byte| byte == separator).map(|at| from + at);
        let cell = match end {
            Some(end) => {
                let after = &text[end + 1..];
                // Blanks separate in any number.
                rest = Some(if separator == b' ' { after.trim_start() } else { after });
                &text[..end]
            }
            None => {
                rest = None;
                text
            }
        };
        let cell = cell.trim();
        let unquoted = cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"'));
        Some(unquoted.unwrap_or(cell))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<DenseText> {
        DenseText::from_bytes(text.as_bytes(), &DenseTextOptions::default())
    }

    fn fault(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn the_first_line_tells_the_form() {
        let expected = Dense::from_rows(&[[1.0, -2.5], [3e2, 4.0]]);
        for text in [
            "1,-2.5\n3e2,4\n",
            "1\t-2.5\r\n3e2\t4",
            "1; -2.5\n\n3e2 ;4\n",
            " 1   -2.5\n3e2 4 \n",
            "\u{feff}\"1\",-2.5\n3e2,\"4\"\n",
        ] {
            let table = read(text).unwrap();
            assert_eq!((table.matrix, table.names), (expected.clone(), None), "{text:?}");
        }
        let table = read("\"a, first\",b\n1,-2.5\n300,4\n").unwrap();
        assert_eq!(table.names.unwrap(), ["a, first", "b"]);
        assert_eq!(table.matrix, expected);
        let options = DenseTextOptions { header: Some(true), ..Default::default() };
        let table = DenseText::from_bytes(b"1,2\n3,4\n", &options).unwrap();
        assert_eq!(table.names.unwrap(), ["1", "2"]);
        assert_eq!(read("a,b\n").unwrap().matrix.shape(), (0, 2));
    }

    #[test]
    fn a_bad_cell_is_named() {
        assert_eq!(fault("1,2\n3,x\n"), "<memory>, line 2, column 2: `x` is not a finite number");
        assert_eq!(fault("a,b\n3,\n"), "<memory>, line 2, column `b`: missing value ``");
        assert_eq!(fault("1,2\n\n3\n"), "<memory>, line 3: 1 cells, but the first line has 2");
        assert_eq!(
            fault("1\n1e999\n"),
            "<memory>, line 2, column 1: `1e999` is not a finite number"
        );
        assert!(fault("1,2\n3,inf\n").contains("`inf`"));
        assert!(fault("").contains("no rows"));
        assert!(fault("1,2,3\n1,2,3,4\n").contains("4 cells"));
        let not_text = DenseText::from_bytes(b"1\n\xff\n", &DenseTextOptions::default());
        assert!(not_text.unwrap_err().to_string().contains("line 2: not UTF-8"));
    }

    #[test]
    fn missing_values_become_nan_when_asked() {
        let options = DenseTextOptions { missing: Missing::Nan, ..Default::default() };
        let table = DenseText::from_bytes(b"a,b\n,2\nNA,?\n", &options).unwrap();
        assert!(table.matrix[(0, 0)].is_nan() && table.matrix[(1, 1)].is_nan());
        assert_eq!(table.matrix[(0, 1)], 2.0);
    }

    #[test]
    fn compressed_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv.gz");
        super::super::open::create_compressed(&path, |out| out.write_all(b"1,2\n")).unwrap();
        let table = DenseText::read(&path, &DenseTextOptions::default()).unwrap();
        assert_eq!(table.matrix.shape(), (1, 2));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a\",;\t \n.eE+-]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn numbers_round_trip(rows in prop::collection::vec(prop::array::uniform3(-1e9f64..1e9), 1..9)) {
            let text: String =
                rows.iter().map(|r| format!("{},{},{}\n", r[0], r[1], r[2])).collect();
            prop_assert_eq!(read(&text).unwrap().matrix, Dense::from_rows(&rows));
        }
    }
}
