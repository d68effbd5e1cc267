//! The byte ranges of the rows of a text table.

use super::delimited::{DelimitedParser, MAX_ROW, layout};
use super::options::{CellMode, TableOptions};
use crate::Format;
use crate::read::blocks::{Block, Blocks, Record, record};
use crate::read::pipeline::Plan;
use crate::read::{detect, source};
use gradus_base::{Error, Result};
use std::ops::Range;
use std::path::Path;

/// The byte ranges of the rows of a text table, without their line ends.
///
/// Rows are cut as [`Table::read`](super::Table::read) cuts them: a quoted field may hold line ends,
/// and blank lines and comments are no rows.
///
/// ```
/// use gradus_data::{TableOptions, TableRecords};
/// let text = b"name,size\n\"two\nlines\",3\n\nnail,4\n";
/// let records = TableRecords::find(text, "parts.csv", &TableOptions::default())?;
/// assert_eq!(records.head, Some(0..9));
/// assert_eq!(&text[records.rows[0].clone()], b"\"two\nlines\",3");
/// assert_eq!(&text[records.rows[1].clone()], b"nail,4");
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRecords {
    /// The lines above the first row: the header, if there is one, and the lines before it.
    pub head: Option<Range<usize>>,
    /// The rows.
    pub rows: Vec<Range<usize>>,
}

impl TableRecords {
    /// Finds the rows of a text; `name` stands for the file in messages. With [`CellMode::Line`] every
    /// line that is not blank is a row.
    ///
    /// # Errors
    /// If the text is compressed, in UTF-16 or no text, or has no rows, or one of more than 64 MiB.
    pub fn find(text: &[u8], name: impl AsRef<Path>, options: &TableOptions) -> Result<Self> {
        let name = name.as_ref().display().to_string();
        if gradus_file::packing::Packing::of(text).is_some() {
            return Err(Error::format(&name, "is compressed; its rows can be cut when unpacked"));
        }
        source::wrap(Box::new(text), &name, |mut input| {
            let format = detect::format(&input, options.format)?;
            if format == Format::Parquet {
                return Err(Error::format(&name, "is a Parquet file; it has no lines of text"));
            }
            if !input.encoding.is_empty() {
                let reason = format!("is in {}; its rows can be cut in UTF-8", input.encoding);
                return Err(Error::format(&name, reason));
            }
            let mark = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            let is_lines = options.cells == CellMode::Line || format == Format::JsonLines;
            let cells = if is_lines { CellMode::Line } else { options.cells };
            let options = &TableOptions { cells, ..options.clone() };
            let layout = layout(&mut input, options, format)?;
            let parser = DelimitedParser::new(&layout, Vec::new(), options);
            let quotes = (!is_lines).then_some(layout.dialect);
            let mut offset = mark + layout.start;
            let mut found = Self { head: head(&text[..offset]), rows: Vec::new() };
            let (limit, block) = (MAX_ROW, options.block);
            let on_error = options.on_error;
            let plan = Plan { lines_before: 0, quotes, limit, block, on_error };
            let mut blocks = Blocks::new(&mut input, plan);
            let too_long = || Error::format(&name, "has a row of more than 64 MiB");
            while let Some(block) = blocks.next(Vec::new())? {
                let Block::Text(block) = block else { return Err(too_long()) };
                let mut at = 0;
                while at < block.len() {
                    let Record::Whole { end, next } = record(&block, at, quotes, true, limit)
                    else {
                        return Err(too_long());
                    };
                    let line = block[at..end].strip_suffix(b"\r").unwrap_or(&block[at..end]);
                    if !parser.is_blank(line) && !parser.is_comment(line) {
                        found.rows.push(offset + at..offset + at + line.len());
                    }
                    at = next;
                }
                offset += block.len();
            }
            Ok(found)
        })
    }
}

/// Returns the lines above the first row, without the last line end.
fn head(text: &[u8]) -> Option<Range<usize>> {
    let end = text.trim_ascii_end().len();
    (end > 0 && text != b"\xef\xbb\xbf").then_some(0..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OnError, Table};

    fn rows<'a>(text: &'a [u8], options: &TableOptions) -> (Option<&'a [u8]>, Vec<&'a [u8]>) {
        let TableRecords { head, rows } = TableRecords::find(text, "x.csv", options).unwrap();
        let part = |range: Range<usize>| &text[range];
        (head.map(part), rows.into_iter().map(part).collect())
    }

    #[test]
    fn quoted_line_ends_do_not_end_a_row() {
        let text = b"a,b\r\n1,\"x\ny\"\n\n2,\"he said \"\"no\"\"\"";
        let (head, found) = rows(text, &TableOptions::default());
        assert_eq!(head, Some(&b"a,b"[..]));
        assert_eq!(found, [&b"1,\"x\ny\""[..], b"2,\"he said \"\"no\"\"\""]);
        let lines = TableOptions { cells: CellMode::Line, ..TableOptions::default() };
        assert_eq!(rows(b"{\"a\n\n1 2:\"\n", &lines).1.len(), 2);
        // A quote inside a field opens nothing: it once joined the rows up to the next quote.
        let text = b"size,name\n7,7\" disc\n12,12\" disc\n5,tape\n";
        assert_eq!(rows(text, &TableOptions::default()).1.len(), 3);
        // A mark of the encoding and lines before the table stay with the header.
        let text = b"\xef\xbb\xbfsep=;\nname;size\n\nnail;3\n# note\nscrew;4\n";
        let (head, found) = rows(text, &TableOptions::default());
        assert_eq!(head, Some(&b"\xef\xbb\xbfsep=;\nname;size"[..]));
        assert_eq!(found, [&b"nail;3"[..], b"screw;4"]);
        let (head, found) = rows(b"\xef\xbb\xbf1;2\r3;4\r", &TableOptions::default());
        assert_eq!((head, found), (None, vec![&b"1;2"[..], b"3;4"]));
    }

    #[test]
    fn rows_are_those_of_the_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../gradus/tests/dirty");
        let mut n = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if !matches!(ending, Some("csv" | "txt" | "data" | "dat" | "jsonl")) {
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            let options = TableOptions { on_error: OnError::Skip, ..TableOptions::default() };
            let Ok(table) = Table::read(&path, &options) else { continue };
            for block in [1, 64, 1 << 20] {
                let options = TableOptions { block, ..options.clone() };
                let Ok(records) = TableRecords::find(&text, &path, &options) else {
                    assert!(text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff"));
                    continue;
                };
                let skipped = table.source().unwrap().skipped as usize;
                assert_eq!(records.rows.len(), table.n_rows() + skipped, "{path:?}");
                n += 1;
            }
        }
        assert!(n > 100, "{n}");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for text in [&[0x1f, 0x8b, 8, 0][..], b"PAR1....", b"\xff\xfea\0\n\0", b""] {
            assert!(TableRecords::find(text, "x", &TableOptions::default()).is_err(), "{text:?}");
        }
    }
}
