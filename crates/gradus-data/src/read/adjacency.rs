//! Adjacency lists: a line a user, with the items the user is connected to.

use super::RatingRows;
use super::blocks::{Dialect, MAX_RECORD, Record, record};
use super::number::{id, shown};
use super::options::OnError;
use super::pipeline::{Bad, Parsed, Parser, too_long};

pub(super) struct AdjacencyParser {
    pub dialect: Dialect,
}

impl AdjacencyParser {
    /// Reads the line of one user. One without items is none to learn from, but not wrong.
    fn line(&self, line: &[u8], rows: &mut RatingRows) -> Result<(), String> {
        let delimiter = self.dialect.delimiter.byte;
        let is_blank = delimiter == b' ' || delimiter == b'\t';
        let cells =
            line.split(|&byte| byte == delimiter || is_blank && (byte == b' ' || byte == b'\t'));
        let mut cells = cells.map(<[u8]>::trim_ascii).filter(|cell| !cell.is_empty());
        let Some(first) = cells.next() else { return Ok(()) };
        let user = id(first, false)?;
        // Nothing of a bad line is kept.
        let items: Result<Vec<_>, String> = cells.map(|cell| id(cell, false)).collect();
        let items =
            items.map_err(|reason| format!("{reason} in the list of user `{}`", shown(first)))?;
        for item in items {
            rows.users.push(user);
            rows.items.push(item);
        }
        Ok(())
    }
}

impl Parser<RatingRows> for AdjacencyParser {
    fn parse(&self, text: &[u8], room: RatingRows, on_error: OnError) -> Parsed<RatingRows> {
        let mut parsed = Parsed { rows: room, ..Parsed::default() };
        let mut at = 0;
        while at < text.len() {
            let (next, outcome) = match record(text, at, None, true, MAX_RECORD) {
                Record::Whole { end, next } => (next, self.line(&text[at..end], &mut parsed.rows)),
                Record::TooLong { next } => (next, Err(too_long(0, MAX_RECORD).reason)),
                Record::Cut => unreachable!("nothing follows the text"),
            };
            if let Err(reason) = outcome
                && !parsed.note(on_error, Bad { line: parsed.lines, column: None, reason })
            {
                break;
            }
            parsed.lines += u64::from(text[next - 1] == b'\n');
            at = next;
        }
        parsed
    }
}
