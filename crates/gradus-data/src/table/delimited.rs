//! Tables as delimited text: how a file is laid out, and its rows.

use super::cells::{Chunk, MISSING, decode, is_missing, is_spelling, number};
use super::options::{CellMode, TableOptions};
use crate::read::blocks::{Dialect, Record, record};
use crate::read::csv::unescape;
use crate::read::number::shown;
use crate::read::pipeline::{Bad, Parsed, Parser};
use crate::read::source::Input;
use crate::{Delimiter, Format, OnError};
use gradus_base::{Error, Result};
use memchr::{memchr, memchr2};
use std::borrow::Cow;
use std::fmt;

/// The longest row of a table.
pub(super) const MAX_ROW: usize = 1 << 26;
/// The number of rows at the start that are examined.
const LOOKED_AT: usize = 200;

/// How the rows of a file are laid out.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub dialect: Dialect,
    /// The names in the header, if there is one; of columns without a name, empty.
    pub names: Option<Vec<String>>,
    pub n_cols: usize,
    /// Lines up to and with the header.
    pub lines_before: u64,
    /// The decimal mark.
    pub mark: u8,
    /// Lines before the table that belong to nothing.
    pub preamble: u64,
    /// Lines below the header that say what kind each column is, as Orange writes them.
    pub kinds: u64,
    /// Bytes up to the first row.
    pub start: usize,
}

impl Layout {
    /// The layout of words in one column without a header.
    fn plain() -> Self {
        Self {
            dialect: Dialect::new(Delimiter::single(b',')),
            names: None,
            n_cols: 1,
            lines_before: 0,
            mark: b'.',
            preamble: 0,
            kinds: 0,
            start: 0,
        }
    }
}

/// A row at the start of a file.
struct Row {
    cells: Vec<String>,
    /// The start of the next record.
    end: usize,
    is_comment: bool,
}

/// Finds out how a file is laid out, and takes what comes before the rows off the input.
pub(super) fn layout(
    input: &mut Input<'_>,
    options: &TableOptions,
    format: Format,
) -> Result<Layout> {
    if options.cells == CellMode::Line {
        return Ok(Layout::plain());
    }
    input.grow_sample(30, MAX_ROW)?;
    let mut lines_before = 0;
    let mut offset = 0;
    let mut given = options.delimiter;
    // Spreadsheets write `sep=;` as the first line, and take it away when they read it.
    let first = memchr(b'\n', &input.sample).unwrap_or(input.sample.len());
    let line = input.sample[..first].trim_ascii_end();
    if let Some(rest) = line.strip_prefix(b"sep=")
        && let [byte] = rest
    {
        given = given.or(Some(Delimiter::single(*byte)));
        offset = (first + 1).min(input.sample.len());
        input.sample.drain(..offset);
        lines_before = 1;
    }
    let delimiter = match given {
        Some(given) => given,
        None => sniff(input, format, options),
    };
    let mut dialect = Dialect::of(delimiter, &input.sample);
    let usual_quotes = options.like.as_ref().is_none_or(|like| !like.plain_quotes);
    dialect.quotes = match options.quotes {
        Some(quotes) => quotes,
        None => usual_quotes && !has_plain_quotes(input, dialect, options.cells),
    };
    let mut rows = sample(input, dialect, options.cells);
    let usual = usual(&rows);
    let skipped = rows.iter().take_while(|row| {
        let odd = row.cells.len() != usual;
        odd && (row.is_comment || (row.cells.len() == 1 && usual > 1))
    });
    let skipped = skipped.count();
    let mut start = if skipped > 0 { rows[skipped - 1].end } else { 0 };
    rows.drain(..skipped);
    if rows.is_empty() {
        if options.cells == CellMode::Text && input.is_whole {
            return Ok(Layout::plain());
        }
        let what = if skipped > 0 { "comments" } else { "blank lines" };
        let reason = if input.is_whole {
            format!("holds nothing but {what}")
        } else {
            format!("the first line is longer than {} MiB: is this a text file?", MAX_ROW >> 20)
        };
        return Err(Error::format(&input.name, reason));
    }
    if rows[0].is_comment {
        // A header behind a comment sign has as many cells as the rows.
        let cell = &mut rows[0].cells[0];
        *cell = cell.trim_start_matches(['#', '%']).trim().to_owned();
    }
    let has_header = options.header.unwrap_or_else(|| is_header(&rows, options));
    let mut names = None;
    if has_header {
        let header = rows.remove(0);
        start = header.end;
        let mut cells = header.cells;
        // Row names without a name of their own: one cell more in every row.
        let wider = |row: &Row| {
            row.cells.len() == cells.len() + 1 && row.cells.last().is_some_and(|c| !c.is_empty())
        };
        if !rows.is_empty() && rows.iter().filter(|row| !row.is_comment).all(wider) {
            cells.insert(0, String::new());
        }
        names = Some(cells);
    }
    let mut kinds = 0;
    if has_header && are_kinds(&rows) {
        start = rows[1].end;
        rows.drain(..2);
        kinds = 2;
    }
    let mut n_cols = names.as_ref().map_or(usual, Vec::len);
    // Without a header: a delimiter at the end of every row is none between columns.
    let ends_blank = |row: &Row| row.cells.len() == n_cols && row.cells[n_cols - 1].is_empty();
    if names.is_none() && n_cols > 1 && rows.iter().all(ends_blank) {
        n_cols -= 1;
    }
    let before: Vec<u8> = input.sample.drain(..start).collect();
    lines_before += memchr::memchr_iter(b'\n', &before).count() as u64;
    let mark = match options.decimal_comma {
        Some(comma) => {
            if comma {
                b','
            } else {
                b'.'
            }
        }
        None => decimal_mark(&rows, options),
    };
    let preamble = skipped as u64;
    let start = offset + start;
    Ok(Layout { dialect, names, n_cols, lines_before, mark, preamble, kinds, start })
}

/// The rows at the start of the input.
fn sample(input: &Input<'_>, dialect: Dialect, mode: CellMode) -> Vec<Row> {
    let text = &input.sample;
    let (mut rows, mut at) = (Vec::new(), 0);
    while at < text.len() && rows.len() < LOOKED_AT {
        let Record::Whole { end, next } = record(text, at, Some(dialect), input.is_whole, MAX_ROW)
        else {
            break;
        };
        let line = &text[at..end];
        at = next;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut cells = Vec::new();
        let _ = split(line, dialect, mode, &mut |cell, _| {
            cells.push(decode(cell.trim_ascii()).0.into_owned());
        });
        let is_comment = matches!(line.first(), Some(b'#' | b'%'));
        rows.push(Row { cells, end: next, is_comment });
    }
    rows
}

/// Whether quotes are characters of the text, as in `"All the world's a stage" begins it`: there are cells that
/// quotes cannot hold together, and all rows have equally many cells without that.
fn has_plain_quotes(input: &Input<'_>, dialect: Dialect, mode: CellMode) -> bool {
    let text = &input.sample;
    // Tab-separated files have no quotes by rights; in others one that is not closed is a fault.
    let without_close = dialect.delimiter.byte == b'\t';
    let is_broken = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match split(line, dialect, mode, &mut |_, _| ()) {
            Ok(()) => false,
            Err(QuoteFault::NotClosed(_)) => without_close,
            Err(QuoteFault::TextAfter(_)) => true,
        }
    };
    let (mut broken, mut at, mut n_rows) = (false, 0, 0);
    while at < text.len() && n_rows < LOOKED_AT && !broken {
        match record(text, at, Some(dialect), input.is_whole, MAX_ROW) {
            Record::Whole { end, next } => {
                broken = is_broken(&text[at..end]);
                (at, n_rows) = (next, n_rows + 1);
            }
            // A quote that is not closed.
            Record::TooLong { .. } => broken = without_close,
            Record::Cut => break,
        }
    }
    if !broken {
        return false;
    }
    let rows = sample(input, Dialect { quotes: false, ..dialect }, mode);
    let n = usual(&rows);
    rows.iter().all(|row| row.is_comment || row.cells.len() == n)
}

/// How many cells most rows have.
fn usual(rows: &[Row]) -> usize {
    let mut counts = std::collections::BTreeMap::<usize, usize>::new();
    for row in rows {
        *counts.entry(row.cells.len()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(cells, rows)| (rows, cells)).map_or(1, |(cells, _)| cells)
}

fn is_number(cell: &str) -> bool {
    [b'.', b',']
        .into_iter()
        .any(|mark| number(cell.as_bytes(), 0, mark).is_some_and(|(_, end)| end == cell.len()))
        || (cell.len() > 1 && cell.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the first row names the columns. It does if a cell of it is no number where all below are;
/// it does not if it is a number there, or a word that occurs below.
fn is_header(rows: &[Row], options: &TableOptions) -> bool {
    let Some((first, below)) = rows.split_first() else { return false };
    let like = options.like.as_ref();
    // A column may be named by its position, and a row hold that number: numbers are names if all are there.
    let is_position = |cell: &String| cell.parse::<i64>().is_ok();
    let known = |cell: &String| options.names.contains(cell) && !is_position(cell);
    let all_known = options.names.len() > 1
        && options.names.iter().all(|name| first.cells.contains(name))
        && first.cells.iter().all(is_position);
    if all_known || first.cells.iter().any(known) {
        return true;
    }
    if like.is_some_and(|like| !like.header) {
        return false;
    }
    let mut against = false;
    for (at, cell) in first.cells.iter().enumerate() {
        let mut values = below.iter().filter_map(|row| row.cells.get(at));
        let mut values_again =
            values.clone().filter(|value| !is_missing(value.as_bytes())).peekable();
        let any = values_again.peek().is_some();
        let numeric = values_again.all(|value| is_number(value));
        if is_missing(cell.as_bytes()) {
            continue;
        }
        match (is_number(cell), any && numeric) {
            (false, true) => return true,
            (true, true) => against = true,
            (true, false) => against |= !any,
            (false, false) => against |= values.any(|value| value == cell),
        }
    }
    !against
}

/// Whether the first two rows are those that Orange writes below a header: the type of each column, and its role.
fn are_kinds(rows: &[Row]) -> bool {
    const TYPES: [&str; 12] = [
        "c",
        "continuous",
        "numeric",
        "n",
        "d",
        "discrete",
        "categorical",
        "s",
        "string",
        "text",
        "t",
        "time",
    ];
    const ROLES: [&str; 7] = ["class", "meta", "ignore", "weight", "c", "m", "i"];
    let [types, roles, ..] = rows else { return false };
    let mut given = roles.cells.iter().filter(|cell| !cell.is_empty()).peekable();
    types.cells.len() > 1
        && types.cells.iter().all(|cell| TYPES.contains(&cell.as_str()))
        && given.peek().is_some()
        && given.all(|cell| ROLES.contains(&cell.as_str()))
}

/// The mark before fractions: a comma if more numbers have one than a point.
fn decimal_mark(rows: &[Row], options: &TableOptions) -> u8 {
    let (mut points, mut commas) = (0usize, 0usize);
    for cell in rows.iter().flat_map(|row| &row.cells) {
        let whole = |mark: u8| {
            let at = memchr(mark, cell.as_bytes())?;
            let (_, end) = number(cell.as_bytes(), 0, mark)?;
            (end == cell.len()).then_some(cell.len() - at - 1)
        };
        points += usize::from(whole(b'.').is_some());
        // Three digits after it may be a group of thousands: no evidence.
        commas += usize::from(whole(b',').is_some_and(|digits| digits != 3));
    }
    let usual = options.like.as_ref().is_some_and(|like| like.decimal_comma);
    if commas > points || (usual && points == 0) { b',' } else { b'.' }
}

/// The delimiter that cuts the first rows into equally many cells, most of them numbers.
fn sniff(input: &Input<'_>, format: Format, options: &TableOptions) -> Delimiter {
    let [tab, comma, semicolon, bar] = [b'\t', b',', b';', b'|'].map(Delimiter::single);
    let usual = options.like.as_ref().and_then(|like| like.delimiter());
    let is_text = options.cells == CellMode::Text;
    let score = |delimiter: Delimiter| {
        let rows = sample(input, Dialect::of(delimiter, &input.sample), options.cells);
        let n = self::usual(&rows);
        if n < 2 {
            return None;
        }
        let rows: Vec<&Row> = rows.iter().filter(|row| !row.is_comment).collect();
        let same = rows.iter().filter(|row| row.cells.len() == n).count() as f64;
        let cells = || rows.iter().flat_map(|row| &row.cells);
        let numbers = cells().filter(|cell| is_number(cell)).count() as f64;
        let n_cells = cells().count().max(1) as f64;
        // In twentieths: one odd row does not decide.
        let same = (20.0 * same / rows.len().max(1) as f64).round();
        Some((same, (20.0 * numbers / n_cells).round(), n))
    };
    if format == Format::Tsv && score(tab).is_some() {
        return tab;
    }
    if let Some(usual) = usual
        && score(usual).is_some_and(|(same, ..)| same >= 19.0)
    {
        return usual;
    }
    let mut best: Option<(Delimiter, (f64, f64, usize))> = None;
    let colons = Delimiter::twice(b':');
    // Commas are common inside text: any other delimiter that cuts as well is the right one there.
    let candidates = if is_text {
        [colons, tab, bar, semicolon, comma]
    } else {
        [tab, comma, semicolon, bar, colons]
    };
    for delimiter in candidates {
        if let Some(score) = score(delimiter)
            && best.is_none_or(|(_, best)| score > best)
        {
            best = Some((delimiter, score));
        }
    }
    // Decimal commas cut rows as evenly as delimiters do: another delimiter that leaves a comma in
    // nothing but numbers is the right one.
    if best.is_some_and(|(best, _)| best == comma) {
        let is_decimal = |cell: &String| !cell.contains(',') || is_number(cell);
        let fits = |&delimiter: &Delimiter| {
            score(delimiter).is_some_and(|(same, ..)| same >= 19.0) && {
                let rows = sample(input, Dialect::of(delimiter, &input.sample), options.cells);
                rows.iter()
                    .filter(|row| !row.is_comment)
                    .all(|row| row.cells.iter().all(is_decimal))
            }
        };
        if let Some(delimiter) = [semicolon, tab, bar].into_iter().find(fits) {
            return delimiter;
        }
    }
    if is_text {
        return best.map_or(comma, |(delimiter, _)| delimiter);
    }
    // Blanks are common inside text: they count where nothing else does, or where they alone make
    // numbers of the cells.
    match (best, score(Delimiter::BLANKS)) {
        (None, Some((same, numbers, _))) if same >= 19.0 || (same >= 12.0 && numbers >= 5.0) => {
            Delimiter::BLANKS
        }
        (Some((_, (_, numbers, _))), Some((same, more, _)))
            if same >= 19.0 && more > numbers + 5.0 =>
        {
            Delimiter::BLANKS
        }
        (best, _) => best.map_or(comma, |(delimiter, _)| delimiter),
    }
}

/// A fault in the quotes of a row, and the text from there on.
enum QuoteFault {
    NotClosed(String),
    TextAfter(String),
}

impl fmt::Display for QuoteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotClosed(text) => write!(f, "the quote of `{text}` is not closed")?,
            Self::TextAfter(text) => write!(f, "text after the closing quote in `{text}`")?,
        }
        f.write_str(" (option `quotes` = false takes quotes as characters)")
    }
}

/// Hands the cells of a row on, with whether they were quoted; or says what is wrong.
fn split(
    line: &[u8],
    dialect: Dialect,
    mode: CellMode,
    take: &mut dyn FnMut(&[u8], bool),
) -> std::result::Result<(), QuoteFault> {
    let delimiter = dialect.delimiter;
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t') && *byte != delimiter.byte;
    let is_gap = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut at = 0;
    if delimiter.run {
        at = line.iter().take_while(|byte| is_gap(byte)).count();
    }
    loop {
        let mut open = at;
        while line.get(open).is_some_and(is_blank) {
            open += 1;
        }
        let is_quoted = dialect.quotes && line.get(open) == Some(&b'"');
        let (cell, quoted, mut end): (Cow<'_, [u8]>, _, _) = if is_quoted {
            let Some(close) = dialect.closing_quote(line, open + 1) else {
                return Err(QuoteFault::NotClosed(shown(&line[open..]).into_owned()));
            };
            let mut end = close + 1;
            while line.get(end).is_some_and(is_blank) {
                end += 1;
            }
            let done = end >= line.len()
                || if delimiter.run { is_gap(&line[end]) } else { delimiter.is_at(line, end) };
            if done {
                (unescape(&line[open + 1..close], dialect.backslash), true, end)
            } else if mode == CellMode::Infer {
                return Err(QuoteFault::TextAfter(shown(&line[open..]).into_owned()));
            } else {
                // As in `"Great Performances" Cats`: the quotes belong to the text.
                let end = delimiter.find(line, close + 1).unwrap_or(line.len());
                (Cow::Borrowed(&line[open..end]), false, end)
            }
        } else {
            let end = if delimiter.run {
                memchr2(b' ', b'\t', &line[open..]).map_or(line.len(), |found| open + found)
            } else {
                delimiter.find(line, open).unwrap_or(line.len())
            };
            (Cow::Borrowed(&line[open..end]), false, end)
        };
        take(&cell, quoted);
        if delimiter.run {
            while line.get(end).is_some_and(is_gap) {
                end += 1;
            }
            if end >= line.len() {
                return Ok(());
            }
            at = end;
        } else if end >= line.len() {
            return Ok(());
        } else {
            at = end + delimiter.len();
        }
    }
}

/// Reads rows of delimited text.
pub(super) struct DelimitedParser {
    dialect: Dialect,
    mark: u8,
    n_cols: usize,
    names: Vec<String>,
    mode: CellMode,
    /// Further spellings of missing values.
    missing: Vec<Vec<u8>>,
}

/// A fault of a row: a column, if one is to blame, and the reason.
type Fault = (Option<String>, String);

impl DelimitedParser {
    pub(super) fn new(layout: &Layout, names: Vec<String>, options: &TableOptions) -> Self {
        Self {
            dialect: layout.dialect,
            mark: layout.mark,
            n_cols: layout.n_cols,
            names,
            mode: options.cells,
            missing: options.spellings(),
        }
    }

    /// Whether a line holds nothing.
    pub(super) fn is_blank(&self, line: &[u8]) -> bool {
        let delimiter = (self.mode != CellMode::Line).then_some(self.dialect.delimiter.byte);
        let blank = |byte: &u8| byte.is_ascii_whitespace() && Some(*byte) != delimiter;
        line.iter().all(|byte| blank(byte) || *byte == b' ')
    }

    /// Whether a line that is not blank is a comment: it starts as one and is no row.
    pub(super) fn is_comment(&self, line: &[u8]) -> bool {
        if self.mode == CellMode::Line || !matches!(line.first(), Some(b'#' | b'%')) {
            return false;
        }
        let (mut n, mut last_is_empty) = (0, false);
        let outcome = split(line, self.dialect, self.mode, &mut |cell, _| {
            (n, last_is_empty) = (n + 1, cell.trim_ascii().is_empty());
        });
        outcome.is_err() || n - usize::from(n == self.n_cols + 1 && last_is_empty) != self.n_cols
    }

    /// Reads the rows from `at` on that are plain (numbers and unquoted texts); gives where it stopped
    /// and on which line.
    fn fast(&self, text: &[u8], mut at: usize, mut line: u64, chunk: &mut Chunk) -> (usize, u64) {
        let delimiter = self.dialect.delimiter;
        if delimiter.run {
            return (at, line);
        }
        'rows: while at < text.len() {
            let (row, start) = (chunk.cells.len(), at);
            let mut column = 0;
            loop {
                while text.get(at) == Some(&b' ') {
                    at += 1;
                }
                let plain = match self.mode {
                    CellMode::Infer => number(text, at, self.mark),
                    CellMode::Text | CellMode::Line => None,
                };
                let (mut end, cell) = match plain {
                    Some((_, end)) if is_spelling(&self.missing, &text[at..end]) => {
                        (end, Some(MISSING))
                    }
                    Some((value, end)) => (end, Some(value.to_bits())),
                    None => (at, None),
                };
                while text.get(end) == Some(&b' ') {
                    end += 1;
                }
                let is_end = |at: usize| {
                    matches!(text.get(at), None | Some(b'\n' | b'\r')) || delimiter.is_at(text, at)
                };
                let cell = match cell.filter(|_| is_end(end)) {
                    Some(cell) => cell,
                    None => {
                        if text.get(at) == Some(&b'"') || column == self.n_cols {
                            chunk.cells.truncate(row);
                            at = start;
                            break 'rows;
                        }
                        end = at;
                        while !is_end(end) {
                            end += 1 + memchr2(delimiter.byte, b'\n', &text[end + 1..])
                                .unwrap_or(text.len() - end - 1);
                        }
                        let whole = text[at..end].trim_ascii();
                        match self.mode {
                            CellMode::Infer => chunk.text(column, whole, &self.missing),
                            // It may be a blank line.
                            CellMode::Text | CellMode::Line
                                if self.n_cols == 1 && whole.is_empty() =>
                            {
                                MISSING
                            }
                            CellMode::Text | CellMode::Line => chunk.raw(column, whole),
                        }
                    }
                };
                if column == self.n_cols {
                    chunk.cells.truncate(row);
                    at = start;
                    break 'rows;
                }
                chunk.cells.push(cell);
                column += 1;
                match text.get(end) {
                    Some(b'\n') => {
                        end += 1;
                        at = end;
                        break;
                    }
                    None => {
                        at = end;
                        break;
                    }
                    Some(b'\r') if matches!(text.get(end + 1), None | Some(b'\n')) => {
                        at = (end + 2).min(text.len());
                        break;
                    }
                    _ if delimiter.is_at(text, end) => at = end + delimiter.len(),
                    _ => {
                        chunk.cells.truncate(row);
                        at = start;
                        break 'rows;
                    }
                }
            }
            if column != self.n_cols || (column == 1 && chunk.cells[row] == MISSING) {
                chunk.cells.truncate(row);
                return (start, line);
            }
            chunk.end_row(line);
            line += 1;
        }
        (at, line)
    }

    /// Reads one row of any kind; tells whether there was one.
    fn row(&self, line: &[u8], chunk: &mut Chunk) -> std::result::Result<bool, Fault> {
        let start = chunk.cells.len();
        let (mut n, mut last_is_empty) = (0, false);
        let mut take = |whole: &[u8], quoted: bool| {
            let cell = whole.trim_ascii();
            last_is_empty = cell.is_empty();
            if n < self.n_cols && self.mode != CellMode::Infer {
                let cell = chunk.raw(n, if quoted { whole } else { cell });
                chunk.cells.push(cell);
            } else if n < self.n_cols {
                let plain = number(cell, 0, self.mark).filter(|(_, end)| *end == cell.len());
                let cell = match plain {
                    Some(_) if is_spelling(&self.missing, cell) => MISSING,
                    Some((value, _)) => value.to_bits(),
                    None => chunk.text(n, cell, &self.missing),
                };
                chunk.cells.push(cell);
            }
            n += 1;
        };
        let outcome = split(line, self.dialect, self.mode, &mut take);
        // A delimiter at the end of a row is none between columns.
        if n == self.n_cols + 1 && last_is_empty {
            n -= 1;
        }
        if outcome.is_ok() && n == self.n_cols {
            return Ok(true);
        }
        if matches!(line.first(), Some(b'#' | b'%')) {
            chunk.cells.truncate(start);
            chunk.comments += 1;
            return Ok(false);
        }
        if outcome.is_ok() && self.mode != CellMode::Infer {
            chunk.cells.resize(start + self.n_cols, MISSING);
            return Ok(true);
        }
        chunk.cells.truncate(start);
        outcome.map_err(|fault| (None, fault.to_string()))?;
        let first = if self.names.is_empty() { "first row" } else { "header" };
        let more = if n > self.n_cols { "more" } else { "fewer" };
        Err((
            None,
            format!("{n} cells, {more} than the {} of the {first}: `{}`", self.n_cols, shown(line)),
        ))
    }
}

impl Parser<Chunk> for DelimitedParser {
    fn parse(&self, text: &[u8], mut room: Chunk, on_error: OnError) -> Parsed<Chunk> {
        room.start(self.n_cols);
        let mut parsed = Parsed { rows: room, ..Parsed::default() };
        let mut at = 0;
        if self.mode == CellMode::Line {
            for line in text.split_inclusive(|&byte| byte == b'\n') {
                let cell = line.trim_ascii();
                if !cell.is_empty() {
                    let cell = parsed.rows.raw(0, cell);
                    parsed.rows.cells.push(cell);
                    parsed.rows.end_row(parsed.lines);
                }
                parsed.lines += u64::from(line.ends_with(b"\n"));
            }
            at = text.len();
        }
        while at < text.len() {
            (at, parsed.lines) = self.fast(text, at, parsed.lines, &mut parsed.rows);
            if at >= text.len() {
                break;
            }
            let (next, outcome) = match record(text, at, Some(self.dialect), true, MAX_ROW) {
                Record::Whole { end, next } => {
                    let line = text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]);
                    (
                        next,
                        if self.is_blank(line) {
                            Ok(false)
                        } else {
                            self.row(line, &mut parsed.rows)
                        },
                    )
                }
                Record::TooLong { next } => {
                    let bad = crate::read::pipeline::too_long(0, MAX_ROW);
                    (next, Err((None, bad.reason)))
                }
                Record::Cut => unreachable!("nothing follows the text"),
            };
            match outcome {
                Ok(true) => parsed.rows.end_row(parsed.lines),
                Ok(false) => {}
                Err((column, reason)) => {
                    if !parsed.note(on_error, Bad { line: parsed.lines, column, reason }) {
                        break;
                    }
                }
            }
            parsed.lines += memchr::memchr_iter(b'\n', &text[at..next]).count() as u64;
            at = next;
        }
        parsed.rows.transpose();
        parsed
    }
}
