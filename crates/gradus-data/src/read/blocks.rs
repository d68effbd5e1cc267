//! Cuts text into blocks of whole records.

use super::delimiter::Delimiter;
use super::pipeline::Plan;
use super::source::Input;
use gradus_base::Result;
use memchr::{memchr, memchr2, memrchr};

/// The longest record read. A longer one is a bad row; this bounds the memory for a file that has no
/// line ends, or a quote that is never closed.
pub(crate) const MAX_RECORD: usize = 1 << 20;

/// How delimited text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub delimiter: Delimiter,
    /// Whether a backslash before a quote makes it a character of the text (`\"`); two quotes do so
    /// in any case.
    pub backslash: bool,
    /// Whether quotes hold fields together; otherwise they are characters like any other.
    pub quotes: bool,
}

impl Dialect {
    pub(crate) const fn new(delimiter: Delimiter) -> Self {
        Self { delimiter, backslash: false, quotes: true }
    }

    /// The dialect with this delimiter of a text that starts so. Quotes are escaped by backslashes if
    /// there is such a quote where none could close a field.
    pub(crate) fn of(delimiter: Delimiter, sample: &[u8]) -> Self {
        let escaped = |at: usize| {
            let next = sample.get(at + 2);
            next.is_some_and(|byte| !matches!(byte, b'"' | b'\r' | b'\n' | b' '))
                && !delimiter.is_at(sample, at + 2)
        };
        let backslash = memchr::memmem::find_iter(sample, b"\\\"").any(escaped);
        Self { delimiter, backslash, quotes: true }
    }

    /// The closing quote of a field whose text starts at `at`.
    pub(crate) fn closing_quote(self, text: &[u8], mut at: usize) -> Option<usize> {
        let start = at;
        loop {
            at += memchr(b'"', text.get(at..)?)?;
            if self.backslash {
                let slashes = text[start..at].iter().rev().take_while(|&&b| b == b'\\').count();
                if slashes % 2 == 1 {
                    at += 1;
                    continue;
                }
            }
            if text.get(at + 1) != Some(&b'"') {
                return Some(at);
            }
            at += 2;
        }
    }
}

/// A record: where its text ends and where the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Whole {
        end: usize,
        next: usize,
    },
    /// Longer than the limit: what follows is skipped up to a line end.
    TooLong {
        next: usize,
    },
    /// The text stops before the record does.
    Cut,
}

/// The record that starts at `start`. Quotes are looked at if there is a delimiter: a field that
/// starts with one goes on to the closing one, over delimiters and line ends. `last` tells whether
/// nothing follows the text.
pub(crate) fn record(
    text: &[u8],
    start: usize,
    quotes: Option<Dialect>,
    last: bool,
    limit: usize,
) -> Record {
    let limit = start + limit;
    let end = match quotes {
        None => memchr(b'\n', &text[start..]).map(|at| start + at),
        Some(dialect) => quoted_end(text, start, limit, dialect),
    };
    match end {
        Some(end) if end <= limit => Record::Whole { end, next: end + 1 },
        None if last && text.len() <= limit => Record::Whole { end: text.len(), next: text.len() },
        _ => match text.get(limit..).and_then(|rest| memchr(b'\n', rest)) {
            Some(at) => Record::TooLong { next: limit + at + 1 },
            None if last => Record::TooLong { next: text.len() },
            None => Record::Cut,
        },
    }
}

/// The line end outside quotes that closes the record, if one is found before `limit` is passed.
fn quoted_end(text: &[u8], start: usize, limit: usize, dialect: Dialect) -> Option<usize> {
    let delimiter = dialect.delimiter;
    let mut at = start;
    loop {
        // At the start of a field.
        while text.get(at) == Some(&b' ') && delimiter.byte != b' ' {
            at += 1;
        }
        if dialect.quotes && text.get(at) == Some(&b'"') {
            at = dialect.closing_quote(text, at + 1)? + 1;
        }
        // Somewhere in a field, outside quotes.
        loop {
            at += memchr2(delimiter.byte, b'\n', text.get(at..)?)?;
            if text[at] == b'\n' {
                return Some(at);
            }
            if delimiter.is_at(text, at) {
                at += delimiter.len();
                break;
            }
            at += 1;
        }
        if at > limit {
            return None;
        }
    }
}

/// A stretch of text.
#[derive(Debug)]
pub(crate) enum Block {
    /// Whole records; the last one of the file may lack its line end.
    Text(Vec<u8>),
    /// One record that is too long, with the number of line ends in it.
    TooLong(u64),
}

/// Cuts an input into blocks.
pub(crate) struct Blocks<'a, 'b> {
    input: &'a mut Input<'b>,
    quotes: Option<Dialect>,
    limit: usize,
    size: usize,
    /// Read, but not handed out: the start of a record.
    carry: Vec<u8>,
    /// Inside a record that is too long: the line ends in it so far.
    skipping: Option<u64>,
}

impl<'a, 'b> Blocks<'a, 'b> {
    pub(crate) fn new(input: &'a mut Input<'b>, plan: Plan) -> Self {
        let Plan { quotes, limit, block: size, .. } = plan;
        Self { input, quotes, limit, size, carry: Vec::new(), skipping: None }
    }

    /// The next block, written into `spare` if that is text.
    pub(crate) fn next(&mut self, spare: Vec<u8>) -> Result<Option<Block>> {
        let mut text = spare;
        text.clear();
        text.append(&mut self.carry);
        let mut goal = self.size;
        loop {
            // A closing quote is one only if no other follows: the block's last byte is undecided
            // until the next is seen, so it stays with the carry (`record` finds it cut).
            let last = self.input.fill(&mut text, goal)?;
            if let Some(line_ends) = self.skipping {
                match memchr(b'\n', &text) {
                    Some(at) => {
                        self.carry.extend_from_slice(&text[at + 1..]);
                        self.skipping = None;
                        return Ok(Some(Block::TooLong(line_ends + 1)));
                    }
                    None if last => {
                        self.skipping = None;
                        return Ok(Some(Block::TooLong(line_ends)));
                    }
                    None => text.clear(),
                }
                continue;
            }
            if last {
                return Ok((!text.is_empty()).then_some(Block::Text(text)));
            }
            let end = self.whole(&text);
            if end > 0 {
                self.carry.extend_from_slice(&text[end..]);
                text.truncate(end);
                return Ok(Some(Block::Text(text)));
            }
            if text.len() > self.limit {
                self.skipping = Some(memchr::memchr_iter(b'\n', &text).count() as u64);
                text.clear();
            } else {
                goal = text.len() + text.len().max(self.size);
            }
        }
    }

    /// How far the whole records in `text` go.
    fn whole(&self, text: &[u8]) -> usize {
        if self.quotes.is_none_or(|dialect| !dialect.quotes) || memchr(b'"', text).is_none() {
            return memrchr(b'\n', text).map_or(0, |at| at + 1);
        }
        let mut start = 0;
        loop {
            match record(text, start, self.quotes, false, self.limit) {
                Record::Whole { next, .. } | Record::TooLong { next } => start = next,
                Record::Cut => return start,
            }
        }
    }
}
