//! Tables as JSON: an object or array on each line, or one array of objects.

use super::cells::{Chunk, MISSING, is_spelling, number};
use super::delimited::MAX_ROW;
use super::options::{CellMode, TableOptions};
use crate::OnError;
use crate::read::blocks::{Record, record};
use crate::read::number::shown;
use crate::read::pipeline::{Bad, Parsed, Parser, too_long};
use hashbrown::HashMap;
use serde_json::Value;

/// Reads rows of JSON. Strings follow the rules of text cells.
pub(super) struct JsonParser {
    mode: CellMode,
    missing: Vec<Vec<u8>>,
}

impl JsonParser {
    pub(super) fn new(options: &TableOptions) -> Self {
        Self { mode: options.cells, missing: options.spellings() }
    }

    fn cell(&self, chunk: &mut Chunk, column: usize, text: &str) -> u64 {
        if self.mode != CellMode::Infer {
            return chunk.raw(column, text.as_bytes());
        }
        let text = text.trim().as_bytes();
        match number(text, 0, b'.').filter(|(_, end)| *end == text.len()) {
            Some(_) if is_spelling(&self.missing, text) => MISSING,
            Some((value, _)) => value.to_bits(),
            None => chunk.text(column, text, &self.missing),
        }
    }
}

/// Rows that bring their own names.
#[derive(Default)]
struct Rows {
    places: HashMap<String, usize>,
    columns: Vec<Vec<u64>>,
}

impl Rows {
    fn take(&mut self, chunk: &mut Chunk, row: Value, line: u64, parser: &JsonParser) -> bool {
        let cells: Vec<(String, Value)> = match row {
            Value::Object(map) => map.into_iter().collect(),
            Value::Array(values) => {
                (1..).zip(values).map(|(at, value)| (format!("column_{at}"), value)).collect()
            }
            _ => return false,
        };
        for (name, value) in cells {
            let at = *self.places.entry(name).or_insert_with_key(|name| {
                chunk.names.push(name.clone());
                self.columns.push(Vec::new());
                self.columns.len() - 1
            });
            chunk.start(self.columns.len());
            let text = match value {
                Value::Null => None,
                Value::String(text) => Some(text),
                other => Some(other.to_string()),
            };
            let cell = text.map_or(MISSING, |text| parser.cell(chunk, at, &text));
            let column = &mut self.columns[at];
            column.resize(chunk.n_rows, MISSING);
            column.push(cell);
        }
        chunk.end_row(line);
        true
    }

    fn finish(mut self, chunk: &mut Chunk) {
        chunk.start(self.columns.len());
        chunk.cells.clear();
        for column in &mut self.columns {
            column.resize(chunk.n_rows, MISSING);
            chunk.cells.extend_from_slice(column);
        }
    }
}

impl Parser<Chunk> for JsonParser {
    fn parse(&self, text: &[u8], room: Chunk, on_error: OnError) -> Parsed<Chunk> {
        let mut parsed = Parsed { rows: room, ..Parsed::default() };
        let mut rows = Rows::default();
        let mut at = 0;
        while at < text.len() {
            let (next, reason) = match record(text, at, None, true, MAX_ROW) {
                Record::Whole { end, next } => match text[at..end].trim_ascii() {
                    [] => (next, None),
                    line => match serde_json::from_slice(line) {
                        Ok(row) => {
                            let good = rows.take(&mut parsed.rows, row, parsed.lines, self);
                            let reason = || format!("`{}` is no object or array", shown(line));
                            (next, (!good).then(reason))
                        }
                        Err(error) => {
                            let full = error.to_string();
                            let reason = full.split(" at line ").next().unwrap_or(&full);
                            let reason = format!("`{}` is not a JSON row: {reason}", shown(line));
                            (next, Some(reason))
                        }
                    },
                },
                Record::TooLong { next } => (next, Some(too_long(0, MAX_ROW).reason)),
                Record::Cut => unreachable!("nothing follows the text"),
            };
            if let Some(reason) = reason
                && !parsed.note(on_error, Bad { line: parsed.lines, column: None, reason })
            {
                break;
            }
            parsed.lines += u64::from(text[next - 1] == b'\n');
            at = next;
        }
        rows.finish(&mut parsed.rows);
        parsed
    }
}

/// The rows of one array of objects.
pub(super) fn document(
    text: &[u8],
    options: &TableOptions,
) -> std::result::Result<Chunk, serde_json::Error> {
    let values: Vec<Value> = serde_json::from_slice(text)?;
    let (mut chunk, mut rows) = (Chunk::default(), Rows::default());
    let parser = JsonParser::new(options);
    for (line, value) in (0..).zip(values) {
        rows.take(&mut chunk, value, line, &parser);
    }
    rows.finish(&mut chunk);
    Ok(chunk)
}
