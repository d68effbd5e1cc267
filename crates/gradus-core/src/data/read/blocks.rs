//! Cuts text into blocks of whole records.

use super::source::Input;
use crate::Result;
use memchr::{memchr, memchr2, memrchr};

/// The longest record read. A longer one is a bad row; this bounds the memory for a file that has no
/// line ends, or a quote that is never closed.
pub(super) const MAX_RECORD: usize = 1 << 20;

/// What stands between columns: a byte, or the same byte twice (`::`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delimiter {
    pub byte: u8,
    pub double: bool,
}

impl Delimiter {
    pub(super) const fn single(byte: u8) -> Self {
        Self { byte, double: false }
    }

    pub(super) fn len(self) -> usize {
        1 + usize::from(self.double)
    }

    /// Whether there is one at `at`.
    #[inline(always)]
    pub(super) fn is_at(self, text: &[u8], at: usize) -> bool {
        text.get(at) == Some(&self.byte) && (!self.double || text.get(at + 1) == Some(&self.byte))
    }

    /// The first one from `at` on.
    pub(super) fn find(self, text: &[u8], mut at: usize) -> Option<usize> {
        while let Some(found) = memchr(self.byte, &text[at..]) {
            if self.is_at(text, at + found) {
                return Some(at + found);
            }
            at += found + 1;
        }
        None
    }
}

/// A record: where its text ends and where the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Whole {
        end: usize,
        next: usize,
    },
    /// Longer than [`MAX_RECORD`]: what follows is skipped up to a line end.
    TooLong {
        next: usize,
    },
    /// The text stops before the record does.
    Cut,
}

/// The record that starts at `start`. Quotes are looked at if there is a delimiter: a field that
/// starts with one goes on to the closing one, over delimiters and line ends. `last` tells whether
/// nothing follows the text.
pub(super) fn record(text: &[u8], start: usize, quotes: Option<Delimiter>, last: bool) -> Record {
    let limit = start + MAX_RECORD;
    let end = match quotes {
        None => memchr(b'\n', &text[start..]).map(|at| start + at),
        Some(delimiter) => quoted_end(text, start, limit, delimiter),
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
fn quoted_end(text: &[u8], start: usize, limit: usize, delimiter: Delimiter) -> Option<usize> {
    let mut at = start;
    loop {
        // At the start of a field.
        while text.get(at) == Some(&b' ') && delimiter.byte != b' ' {
            at += 1;
        }
        if text.get(at) == Some(&b'"') {
            at = closing_quote(text, at + 1)? + 1;
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

/// The closing quote of a field whose text starts at `at`.
pub(super) fn closing_quote(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr(b'"', text.get(at..)?)?;
        if text.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// A stretch of text.
#[derive(Debug)]
pub(super) enum Block {
    /// Whole records; the last one of the file may lack its line end.
    Text(Vec<u8>),
    /// One record that is too long, with the number of line ends in it.
    TooLong(u64),
}

/// Cuts an input into blocks.
pub(super) struct Blocks<'a, 'b> {
    input: &'a mut Input<'b>,
    quotes: Option<Delimiter>,
    size: usize,
    /// Read, but not handed out: the start of a record.
    carry: Vec<u8>,
    /// Inside a record that is too long: the line ends in it so far.
    skipping: Option<u64>,
}

impl<'a, 'b> Blocks<'a, 'b> {
    pub(super) fn new(input: &'a mut Input<'b>, quotes: Option<Delimiter>, size: usize) -> Self {
        Self { input, quotes, size, carry: Vec::new(), skipping: None }
    }

    /// The next block, written into `spare` if that is text.
    pub(super) fn next(&mut self, spare: Vec<u8>) -> Result<Option<Block>> {
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
            if text.len() > MAX_RECORD {
                self.skipping = Some(memchr::memchr_iter(b'\n', &text).count() as u64);
                text.clear();
            } else {
                goal = text.len() + text.len().max(self.size);
            }
        }
    }

    /// How far the whole records in `text` go.
    fn whole(&self, text: &[u8]) -> usize {
        if self.quotes.is_none() || memchr(b'"', text).is_none() {
            return memrchr(b'\n', text).map_or(0, |at| at + 1);
        }
        let mut start = 0;
        loop {
            match record(text, start, self.quotes, false) {
                Record::Whole { next, .. } | Record::TooLong { next } => start = next,
                Record::Cut => return start,
            }
        }
    }
}
