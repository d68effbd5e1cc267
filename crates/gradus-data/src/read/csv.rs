//! Rows of text with a delimiter between columns.
//!
//! A row of plain integers and short decimals takes the fast road, without looking for its ends
//! first. Anything else (quotes, text, spaces, faults) takes the general one.

use super::RatingRows;
use super::blocks::{Dialect, MAX_RECORD, Record, record};
use super::delimiter::Delimiter;
use super::detect::{ByRole, Layout, Role};
use super::number::{id, number, number_with_comma, short_decimal, short_int, shown, weight};
use super::options::OnError;
use super::pipeline::{Bad, Parsed, Parser, too_long};
use super::time::{plain_time, time};
use crate::IdVec;
use memchr::{memchr, memchr2, memchr3};
use std::borrow::Cow;

pub(super) struct CsvParser {
    delimiter: Delimiter,
    dialect: Dialect,
    /// Cells of a row.
    n_columns: usize,
    /// The wanted columns from left to right: how many to pass over before each, and what it is.
    steps: Vec<(usize, Role)>,
    /// The same columns by place.
    wanted: Vec<(usize, Role)>,
    names: ByRole<Option<String>>,
    /// Whether numbers may have a decimal comma.
    decimal_comma: bool,
}

impl CsvParser {
    /// Unless it is given, a comma is a decimal one where it does not stand between columns.
    pub(super) fn new(layout: &Layout, decimal_comma: Option<bool>) -> Self {
        let mut wanted: Vec<(usize, Role)> = layout.positions().collect();
        wanted.sort();
        let mut next = 0;
        let steps = wanted
            .iter()
            .map(|&(at, role)| {
                let step = (at.saturating_sub(next), role);
                next = at + 1;
                step
            })
            .collect();
        let dialect = layout.dialect;
        let (delimiter, n_columns) = (dialect.delimiter, layout.n_columns);
        let decimal_comma = decimal_comma.unwrap_or(delimiter.byte != b',');
        Self { delimiter, dialect, n_columns, steps, wanted, names: layout.names(), decimal_comma }
    }

    fn number(&self, text: &[u8]) -> Result<f32, String> {
        if self.decimal_comma { number_with_comma(text) } else { number(text) }
    }

    /// Reads rows from `at` on while they are plain, and tells where it stopped and after how many.
    fn fast(&self, text: &[u8], mut at: usize, table: &mut RatingRows) -> (usize, u64) {
        let (IdVec::Int(users), IdVec::Int(items)) = (&mut table.users, &mut table.items) else {
            return (at, 0);
        };
        let mut n = 0;
        while let Some((row, next)) = self.fast_row(text, at) {
            users.push(row.user);
            items.push(row.item);
            if let Some(value) = row.value {
                table.values.push(value);
            }
            if let Some(weight) = row.weight {
                table.weights.push(weight);
            }
            if let Some(time) = row.time {
                table.times.push(time);
            }
            at = next;
            n += 1;
        }
        (at, n)
    }

    #[inline(always)]
    fn fast_row(&self, text: &[u8], mut at: usize) -> Option<(FastRow, usize)> {
        let start = at;
        let mut row = FastRow::default();
        let delimiter = self.delimiter;
        for (k, &(over, role)) in self.steps.iter().enumerate() {
            if k > 0 {
                if !delimiter.is_at(text, at) {
                    return None;
                }
                at += delimiter.len();
            }
            for _ in 0..over {
                at = self.pass(text, at)?;
            }
            match role {
                Role::User => (row.user, at) = short_int(text, at)?,
                Role::Item => (row.item, at) = short_int(text, at)?,
                Role::Rating => {
                    let (value, end) = short_decimal(text, at)?;
                    (row.value, at) = (Some(value), end);
                }
                Role::Weight => {
                    let (value, end) = short_decimal(text, at)?;
                    (row.weight, at) = (Some(value), end);
                }
                Role::Time => {
                    let (time, end) = plain_time(text, at)?;
                    (row.time, at) = (Some(time), end);
                }
            }
        }
        let seen = self.wanted.last().map_or(0, |&(place, _)| place + 1);
        let rest = self.n_columns.checked_sub(seen)?;
        if rest > 0 {
            if !delimiter.is_at(text, at) {
                return None;
            }
            at += delimiter.len();
            for _ in 1..rest {
                at = self.pass(text, at)?;
            }
            at += memchr3(delimiter.byte, b'\n', b'"', &text[at..])?;
            at -= usize::from(text[at] == b'\n' && text[at - 1] == b'\r');
        }
        let end = match *text.get(at)? {
            b'\n' => at,
            b'\r' => at + 1,
            _ => return None,
        };
        (text.get(end) == Some(&b'\n') && end - start <= MAX_RECORD).then_some((row, end + 1))
    }

    /// Returns the start of the field after the one at `at`, if neither a quote nor a line end is in the way.
    fn pass(&self, text: &[u8], at: usize) -> Option<usize> {
        let end = self.delimiter.find(text, at)?;
        memchr2(b'\n', b'"', &text[at..end]).is_none().then_some(end + self.delimiter.len())
    }

    /// Reads one row of any kind.
    fn row(&self, line: &[u8], table: &mut RatingRows) -> Result<(), (Option<Role>, String)> {
        let mut fields = Fields { text: line, at: Some(0), dialect: self.dialect };
        let mut found: ByRole<Option<Field<'_>>> = Default::default();
        let mut n = 0;
        for &(place, role) in &self.wanted {
            while n < place
                && let Some(field) = fields.next()
            {
                field.map_err(|reason| (None, reason))?;
                n += 1;
            }
            let Some(field) = fields.next() else { return Err((None, self.odd(n, line))) };
            n += 1;
            found[role as usize] = Some(field.map_err(|reason| (Some(role), reason))?);
        }
        // A fault in a field nobody wants may have swallowed rows.
        let mut last_is_empty = false;
        for field in fields {
            let field = field.map_err(|reason| (None, reason))?;
            last_is_empty = field.text.trim_ascii().is_empty();
            n += 1;
        }
        // A delimiter at the end of a row is none between columns.
        let ends_blank = n == self.n_columns + 1 && last_is_empty;
        if n != self.n_columns && !ends_blank {
            return Err((None, self.odd(n, line)));
        }
        let [user, item, value, weight_field, time_field] = &found;
        let blame = |role| move |reason| (Some(role), reason);
        let (Some(user), Some(item)) = (user, item) else {
            return Err((None, "no user or item column".to_owned()));
        };
        let user = id(&user.text, user.quoted).map_err(blame(Role::User))?;
        let item = id(&item.text, item.quoted).map_err(blame(Role::Item))?;
        let value = value.as_ref().map(|field| self.number(&field.text)).transpose();
        let value = value.map_err(blame(Role::Rating))?;
        let weight = weight_field
            .as_ref()
            .map(|field| self.number(&field.text).and_then(weight))
            .transpose();
        let weight = weight.map_err(blame(Role::Weight))?;
        let time = time_field.as_ref().map(|field| time(&field.text)).transpose();
        let time = time.map_err(blame(Role::Time))?;
        table.users.push(user);
        table.items.push(item);
        table.values.extend(value);
        table.weights.extend(weight);
        table.times.extend(time);
        Ok(())
    }

    /// Describes the fault of a row of this many cells.
    fn odd(&self, n: usize, line: &[u8]) -> String {
        let more = if n > self.n_columns { "more" } else { "fewer" };
        let expected = self.n_columns;
        format!("{n} cells, {more} than the {expected} of the first row: `{}`", shown(line))
    }

    /// Whether a line holds nothing.
    fn is_blank(&self, line: &[u8]) -> bool {
        line.iter().all(|&byte| byte.is_ascii_whitespace() && byte != self.delimiter.byte)
    }
}

impl Parser<RatingRows> for CsvParser {
    fn parse(&self, text: &[u8], room: RatingRows, on_error: OnError) -> Parsed<RatingRows> {
        let mut parsed = Parsed { rows: room, ..Parsed::default() };
        let mut at = 0;
        while at < text.len() {
            let (next, n) = self.fast(text, at, &mut parsed.rows);
            (at, parsed.lines) = (next, parsed.lines + n);
            if at == text.len() {
                break;
            }
            let (next, outcome) = match record(text, at, Some(self.dialect), true, MAX_RECORD) {
                Record::Whole { end, next } => {
                    let line = text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]);
                    if self.is_blank(line) {
                        (next, Ok(()))
                    } else {
                        (next, self.row(line, &mut parsed.rows))
                    }
                }
                Record::TooLong { next } => (next, Err((None, too_long(0, MAX_RECORD).reason))),
                Record::Cut => unreachable!("nothing follows the text"),
            };
            if let Err((role, reason)) = outcome {
                let column = role.and_then(|role| self.names[role as usize].clone());
                if !parsed.note(on_error, Bad { line: parsed.lines, column, reason }) {
                    break;
                }
            }
            parsed.lines += memchr::memchr_iter(b'\n', &text[at..next]).count() as u64;
            at = next;
        }
        parsed
    }
}

#[derive(Default)]
struct FastRow {
    user: i64,
    item: i64,
    value: Option<f32>,
    weight: Option<f32>,
    time: Option<i64>,
}

/// A field without its quotes.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub text: Cow<'a, [u8]>,
    pub quoted: bool,
}

/// The fields of one record, or why one cannot be read.
pub(crate) struct Fields<'a> {
    pub text: &'a [u8],
    /// The start of the next field.
    pub at: Option<usize>,
    pub dialect: Dialect,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.text;
        let start = self.at?;
        let mut open = start;
        while text.get(open) == Some(&b' ') && self.dialect.delimiter.byte != b' ' {
            open += 1;
        }
        let quoted = self.dialect.quotes && text.get(open) == Some(&b'"');
        let outside = if quoted {
            match self.dialect.closing_quote(text, open + 1) {
                Some(close) => close + 1,
                None => {
                    self.at = None;
                    return Some(Err(format!(
                        "the quote of `{}` is not closed",
                        shown(&text[open..])
                    )));
                }
            }
        } else {
            start
        };
        let delimiter = self.dialect.delimiter;
        let end = delimiter.find(text, outside);
        self.at = end.map(|end| end + delimiter.len());
        let end = end.unwrap_or(text.len());
        if !quoted {
            return Some(Ok(Field { text: Cow::Borrowed(&text[start..end]), quoted }));
        }
        if !text[outside..end].trim_ascii().is_empty() {
            return Some(Err(format!(
                "text after the closing quote in `{}`",
                shown(&text[open..end])
            )));
        }
        let inside = &text[open + 1..outside - 1];
        Some(Ok(Field { text: unescape(inside, self.dialect.backslash), quoted }))
    }
}

/// Two quotes stand for one; with `backslash` a backslash before a quote or a backslash goes, too.
pub(crate) fn unescape(text: &[u8], backslash: bool) -> Cow<'_, [u8]> {
    if memchr(b'"', text).is_none() && !(backslash && memchr(b'\\', text).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().peekable();
    while let Some(&byte) = bytes.next() {
        let twice = match (byte, bytes.peek()) {
            (b'"', Some(b'"')) => true,
            (b'\\', Some(b'"' | b'\\')) => backslash,
            _ => false,
        };
        plain.push(if twice { *bytes.next().unwrap_or(&byte) } else { byte });
    }
    Cow::Owned(plain)
}
