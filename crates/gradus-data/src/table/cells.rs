//! The cells of text tables while their types are not known yet.
//!
//! A cell is a number, a text or missing. All three fit into the 64 bits of an `f64`: a text is a NaN
//! that carries its code. So a column takes 8 bytes a row whatever it turns out to hold, and what it
//! holds is decided when all rows have been seen.

use super::column::Interner;
use crate::TextIds;
use crate::read::pipeline::Rows;
use gradus_base::Result;
use hashbrown::HashMap;
use std::borrow::Cow;

/// A missing value: the usual NaN.
pub(super) const MISSING: u64 = 0x7ff8_0000_0000_0000;
/// A text: the upper half of a NaN that no arithmetic makes; the lower half is the code.
const TEXT: u64 = 0x7ffc_0000;

/// The cell of a text.
pub(super) fn text_cell(code: u32) -> u64 {
    (TEXT << 32) | u64::from(code)
}

/// The code of a text, if the cell is one.
#[inline(always)]
pub(super) fn code(cell: u64) -> Option<u32> {
    (cell >> 32 == TEXT).then_some(cell as u32)
}

/// Powers of ten that are exact in `f64`.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The number that starts at `at`, and where it ends; `mark` stands before the fraction.
///
/// An integer with zeros in front, or with so many digits that an `f64` cannot hold them, is not
/// taken: it may be a code. What follows the number is for the caller to look at.
#[inline(always)]
pub(super) fn number(text: &[u8], at: usize, mark: u8) -> Option<(f64, usize)> {
    let (mut at, negative) = match text.get(at)? {
        b'-' => (at + 1, true),
        b'+' => (at + 1, false),
        _ => (at, false),
    };
    let first = at;
    let mut mantissa = 0u64;
    while let Some(digit @ 0..=9) = text.get(at).map(|byte| byte.wrapping_sub(b'0')) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    let whole = at - first;
    let mut digits = whole;
    let mut exponent = 0i64;
    let mut is_integer = true;
    if text.get(at) == Some(&mark) {
        at += 1;
        let begin = at;
        while let Some(digit @ 0..=9) = text.get(at).map(|byte| byte.wrapping_sub(b'0')) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        digits += at - begin;
        exponent = -((at - begin) as i64);
        is_integer = false;
    }
    if digits == 0 {
        return None;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let sign = matches!(text.get(at + 1), Some(b'+' | b'-'));
        let begin = at + 1 + usize::from(sign);
        let mut end = begin;
        let mut power = 0i64;
        while let Some(digit @ 0..=9) = text.get(end).map(|byte| byte.wrapping_sub(b'0')) {
            power = (10 * power + i64::from(digit)).min(99_999);
            end += 1;
        }
        if end == begin {
            return None;
        }
        exponent += if text[at + 1] == b'-' { -power } else { power };
        is_integer = false;
        at = end;
    }
    if is_integer && (whole > 15 || (whole > 1 && text[first] == b'0')) {
        return None;
    }
    let value = if digits <= 19 && mantissa <= 1 << 53 && exponent.unsigned_abs() <= 22 {
        // Both operands are exact, so the result is correctly rounded.
        let power = POWERS[exponent.unsigned_abs() as usize];
        if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power }
    } else {
        let exact = &text[first..at];
        let exact = std::str::from_utf8(exact).ok()?;
        if mark == b'.' {
            exact.parse().ok()?
        } else {
            exact.replace(char::from(mark), ".").parse().ok()?
        }
    };
    Some((if negative { -value } else { value }, at))
}

/// Whether a trimmed cell says that there is no value.
#[inline]
pub(crate) fn is_missing(cell: &[u8]) -> bool {
    match cell.len() {
        0 => true,
        1 => matches!(cell[0], b'-' | b'.' | b'?'),
        2 => cell.eq_ignore_ascii_case(b"na") || cell == b"\\N",
        3 => cell.eq_ignore_ascii_case(b"nan") || cell.eq_ignore_ascii_case(b"n/a"),
        4 => [&b"null"[..], b"none", b"#n/a", b"<na>", b"n.a."]
            .iter()
            .any(|spelling| cell.eq_ignore_ascii_case(spelling)),
        _ => false,
    }
}

/// Whether a cell is one of a user's own spellings of a missing value.
#[inline]
pub(super) fn is_spelling(spellings: &[Vec<u8>], cell: &[u8]) -> bool {
    spellings.iter().any(|spelling| spelling == cell)
}

/// Text as UTF-8; bytes that are not are taken as Windows-1252, the superset of Latin-1.
pub(crate) fn decode(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => {
            const UPPER: [char; 32] = [
                '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}',
                'Ž', '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›',
                'œ', '\u{9d}', 'ž', 'Ÿ',
            ];
            let decoded = bytes.iter().map(|&byte| match byte {
                0x80..=0x9f => UPPER[usize::from(byte - 0x80)],
                byte => char::from(byte),
            });
            (Cow::Owned(decoded.collect()), true)
        }
    }
}

/// The texts of one column in one block.
#[derive(Default)]
pub(super) struct Texts {
    codes: HashMap<Box<[u8]>, u32>,
    levels: Vec<Box<[u8]>>,
    /// Texts that are kept as they are, one after another, and where each ends. They are not looked
    /// up: nearly all of a list of ids are different.
    raw: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn code(&mut self, text: &[u8]) -> u32 {
        match self.codes.get(text) {
            Some(&code) => code,
            None => {
                let code = self.levels.len() as u32;
                self.codes.insert(text.into(), code);
                self.levels.push(text.into());
                code
            }
        }
    }
}

/// The rows of one block.
#[derive(Default)]
pub(super) struct Chunk {
    /// The names of the columns, where rows bring their own (JSON objects).
    pub names: Vec<String>,
    pub n_cols: usize,
    pub n_rows: usize,
    /// Cells by row while they are read, then by column.
    pub cells: Vec<u64>,
    pub texts: Vec<Texts>,
    /// Row and line, counted from 0 at the start of the block, wherever a line is not the one after
    /// that of the row before.
    pub lines: Vec<(usize, u64)>,
    /// Lines passed over as comments.
    pub comments: u64,
    last_line: Option<u64>,
}

impl Chunk {
    /// Makes room for this many columns.
    pub(super) fn start(&mut self, n_cols: usize) {
        self.n_cols = n_cols;
        self.texts.resize_with(n_cols, Texts::default);
    }

    /// The cell of a trimmed text that is not a plain number.
    #[inline]
    pub(super) fn text(&mut self, column: usize, text: &[u8], spellings: &[Vec<u8>]) -> u64 {
        if is_missing(text) || is_spelling(spellings, text) {
            return MISSING;
        }
        text_cell(self.texts[column].code(text))
    }

    /// The cell of a text that is kept as it is.
    #[inline]
    pub(super) fn raw(&mut self, column: usize, text: &[u8]) -> u64 {
        let texts = &mut self.texts[column];
        texts.raw.extend_from_slice(text);
        texts.ends.push(texts.raw.len());
        text_cell(texts.ends.len() as u32 - 1)
    }

    /// Ends a row that stands on this line.
    #[inline]
    pub(super) fn end_row(&mut self, line: u64) {
        if self.last_line.is_none_or(|last| last + 1 != line) {
            self.lines.push((self.n_rows, line));
        }
        self.last_line = Some(line);
        self.n_rows += 1;
    }

    /// Puts the cells into the order of columns.
    pub(super) fn transpose(&mut self) {
        const TILE: usize = 64;
        let (n, d) = (self.n_rows, self.n_cols);
        let mut columns = vec![0u64; n * d];
        for rows in (0..n).step_by(TILE) {
            for column in 0..d {
                let end = n.min(rows + TILE);
                let out = &mut columns[column * n + rows..column * n + end];
                for (row, cell) in (rows..end).zip(out) {
                    *cell = self.cells[row * d + column];
                }
            }
        }
        self.cells = columns;
    }
}

impl Rows for Chunk {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn cleared(mut self) -> Self {
        self.cells.clear();
        Self { cells: self.cells, ..Self::default() }
    }
}

/// The line of each row.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Vec<(usize, u64)>);

impl Lines {
    /// The line of a row, from 1.
    pub(super) fn of(&self, row: usize) -> u64 {
        let at = self.0.partition_point(|(first, _)| *first <= row);
        match at.checked_sub(1).map(|at| self.0[at]) {
            Some((first, line)) => line + (row - first) as u64,
            None => row as u64 + 1,
        }
    }
}

/// A column of all blocks so far.
#[derive(Clone, Debug, Default)]
pub(super) struct RawColumn {
    pub cells: Vec<u64>,
    pub interner: Interner,
    /// The texts by code, where they are kept as they are.
    pub raw: TextIds,
}

impl RawColumn {
    /// The text of a row, where texts are kept as they are.
    pub(super) fn text(&self, row: usize) -> Option<&str> {
        self.cells.get(row).and_then(|&cell| code(cell)).map(|code| self.raw.get(code as usize))
    }
}

/// All blocks so far.
#[derive(Default)]
pub(super) struct Gathered {
    pub names: Vec<String>,
    places: HashMap<String, usize>,
    pub columns: Vec<RawColumn>,
    pub n_rows: usize,
    pub lines: Lines,
    pub comments: u64,
    /// The first row with text that is not UTF-8.
    pub recoded: Option<usize>,
}

impl Gathered {
    /// Makes a collector for columns of these names; there may come more.
    pub(super) fn new(names: Vec<String>) -> Self {
        let columns = names.iter().map(|_| RawColumn::default()).collect();
        let places = names.iter().enumerate().map(|(at, name)| (name.clone(), at)).collect();
        Self { names, places, columns, ..Self::default() }
    }

    /// Appends the rows of a block that has this many lines before it.
    pub(super) fn take(&mut self, chunk: &mut Chunk, lines_before: u64) -> Result<()> {
        let named = !chunk.names.is_empty();
        let (before, n) = (self.n_rows, chunk.n_rows);
        let Self { names, places, columns, recoded, .. } = self;
        for (at, texts) in chunk.texts.iter().enumerate().take(chunk.n_cols) {
            let place = if named {
                *places.entry_ref(chunk.names[at].as_str()).or_insert_with(|| {
                    names.push(chunk.names[at].clone());
                    columns.push(RawColumn::default());
                    columns.len() - 1
                })
            } else {
                at
            };
            let column = &mut columns[place];
            // A name that came up late has no value in the rows before.
            column.cells.resize(before, MISSING);
            let cells = &chunk.cells[at * n..(at + 1) * n];
            if !texts.ends.is_empty() {
                let mut start = 0;
                let first = column.raw.len() as u32;
                for &end in &texts.ends {
                    let (text, is_recoded) = decode(&texts.raw[start..end]);
                    if is_recoded && recoded.is_none() {
                        *recoded = Some(before);
                    }
                    column.raw.push(&text);
                    start = end;
                }
                let recode = |&cell: &u64| match code(cell) {
                    Some(code) => text_cell(first.wrapping_add(code)),
                    None => cell,
                };
                column.cells.extend(cells.iter().map(recode));
                continue;
            }
            if texts.levels.is_empty() {
                column.cells.extend_from_slice(cells);
                continue;
            }
            let mut codes = Vec::with_capacity(texts.levels.len());
            for level in &texts.levels {
                let (word, is_recoded) = decode(level);
                if is_recoded && recoded.is_none() {
                    *recoded = Some(before);
                }
                codes.push(column.interner.code(&word)?);
            }
            let recode = |&cell: &u64| match code(cell) {
                Some(code) => text_cell(codes[code as usize]),
                None => cell,
            };
            column.cells.extend(cells.iter().map(recode));
        }
        for &(row, line) in &chunk.lines {
            let (row, line) = (before + row, lines_before + line + 1);
            if self.lines.of(row) != line || self.lines.0.is_empty() {
                self.lines.0.push((row, line));
            }
        }
        self.n_rows += n;
        self.comments += chunk.comments;
        Ok(())
    }

    /// Ends: every column gets its full length.
    pub(super) fn finish(&mut self) {
        for column in &mut self.columns {
            column.cells.resize(self.n_rows, MISSING);
        }
    }
}
