//! Reading tables from files: delimited text, JSON Lines, Parquet.

use super::cells::{Gathered, Lines};
use super::delimited::{DelimitedParser, Layout, MAX_ROW, layout};
use super::infer::{Stray, infer};
use super::json::{self, JsonParser};
use super::options::{CellMode, TableLayout, TableOptions, TableSource};
use super::{Column, Table, same_names};
use crate::Format;
use crate::read::detect;
use crate::read::pipeline::{Plan, Totals, run};
use crate::read::source::{self, Input};
use gradus_base::{Error, Result};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The number of stray cells shown for each column.
const SHOWN: usize = 3;

impl Table {
    /// Reads a file: delimited text, JSON Lines or Parquet, compressed or not; `-` is standard input.
    ///
    /// Text is read once, in blocks that are parsed in parallel; what is resident is 8 bytes a cell.
    /// Types come from the whole file: a column holds numbers if all its values are numbers, or all
    /// but a few ([`TableSource::strays`]), truth values if all are `true` or `false`, and otherwise
    /// words. Blanks around words do not count; numbers among words are spelled in their shortest
    /// form.
    ///
    /// # Errors
    /// If the file cannot be read, a row has more or fewer cells than the header, or two columns have
    /// the same name; the message names the file and the line.
    ///
    /// ```
    /// use gradus_data::{Column, Table, TableOptions};
    /// let text = "name;size;price\nnail;3;0,5\nscrew;4;n/a\n";
    /// let table = Table::read_from(text.as_bytes(), "parts.csv", &TableOptions::default())?;
    /// assert_eq!(table.names(), ["name", "size", "price"]);
    /// assert_eq!(table.column("size")?, &Column::Numbers(vec![3.0, 4.0]));
    /// assert!(table.column("price")?.is_missing(1));
    /// let layout = &table.source().unwrap().layout;
    /// assert_eq!(layout.to_string(), "delimiter `;`, header, decimal comma");
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn read(path: impl AsRef<Path>, options: &TableOptions) -> Result<Self> {
        source::open(path.as_ref(), |input| read(input, options))
    }

    /// Reads the first rows of a file, enough to tell its columns from; of a Parquet file all.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_head(path: impl AsRef<Path>, options: &TableOptions) -> Result<Self> {
        source::open(path.as_ref(), |input| {
            let format = detect::format(&input, options.format)?;
            if input.is_whole || format == Format::Parquet {
                return read(input, options);
            }
            let end = memchr::memrchr(b'\n', &input.sample).map_or(0, |at| at + 1);
            Self::read_from(&input.sample[..end], &input.name, options)
        })
    }

    /// Reads a table as [`read`](Self::read) does, from anything that reads; `name` stands for the file
    /// in messages, and its ending counts for the format.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_from(input: impl Read + Send, name: &str, options: &TableOptions) -> Result<Self> {
        source::wrap(Box::new(input), name, |input| read(input, options))
    }

    /// Reads a table from memory, with default options.
    ///
    /// # Errors
    /// If the bytes are not in this format.
    pub fn from_bytes(bytes: &[u8], format: Format) -> Result<Self> {
        Self::read_from(bytes, "<memory>", &TableOptions::format(format))
    }
}

pub(super) fn read(mut input: Input<'_>, options: &TableOptions) -> Result<Table> {
    if let Some(delimiter) = options.delimiter {
        delimiter.check()?;
    }
    match format(&input, options)? {
        Format::Parquet => parquet(input),
        Format::JsonLines => json(&mut input, options),
        Format::Adjacency => {
            let known = "csv, tsv, jsonl, parquet".to_owned();
            Err(Error::UnknownName { what: "format of a table", name: "adjacency".into(), known })
        }
        format @ (Format::Csv | Format::Tsv) => delimited(&mut input, options, format),
    }
}

/// The format of an input.
pub(super) fn format(input: &Input<'_>, options: &TableOptions) -> Result<Format> {
    // A list without entries is one.
    if options.cells != CellMode::Infer && input.sample.is_empty() {
        return Ok(Format::Csv);
    }
    match detect::format(input, options.format)? {
        Format::JsonLines if options.cells == CellMode::Line => Ok(Format::Csv),
        format => Ok(format),
    }
}

fn plan(options: &TableOptions, lines_before: u64) -> Plan {
    Plan {
        lines_before,
        quotes: None,
        limit: MAX_ROW,
        block: options.block,
        on_error: options.on_error,
    }
}

fn delimited(input: &mut Input<'_>, options: &TableOptions, format: Format) -> Result<Table> {
    let layout = layout(input, options, format)?;
    let mut remarks = Vec::new();
    if layout.preamble > 0 {
        let lines = if layout.preamble == 1 { "line" } else { "lines" };
        remarks.push(format!("{} {lines} before the table passed over", layout.preamble));
    }
    if layout.kinds > 0 {
        let n = layout.kinds;
        remarks
            .push(format!("{n} lines of types and roles of columns below the header passed over"));
    }
    let names = names(&layout, &input.name, &mut remarks)?;
    let header = if layout.names.is_some() { names.clone() } else { Vec::new() };
    let (gathered, totals) = gather(input, options, &layout, names, header)?;
    let delimiter = layout.dialect.delimiter;
    let found = TableLayout {
        format: if delimiter.byte == b'\t' { Format::Tsv } else { Format::Csv },
        delimiter: Some(delimiter.to_string()),
        header: layout.names.is_some(),
        decimal_comma: layout.mark == b',',
        plain_quotes: !layout.dialect.quotes,
        encoding: (!input.encoding.is_empty()).then(|| input.encoding.to_owned()),
        missing_values: added(options),
    };
    let unnamed = layout.names.as_ref().is_some_and(|names| names[0].is_empty());
    let blank_end = layout.names.as_ref().is_some_and(|n| n.len() > 1 && n[n.len() - 1].is_empty());
    let notes = Notes { mark: layout.mark, unnamed, blank_end, mode: options.cells };
    table(input, gathered, totals, found, notes, remarks)
}

/// The cells of delimited text without a header, with what is known of their columns.
pub(super) fn texts(
    input: &mut Input<'_>,
    options: &TableOptions,
    format: Format,
) -> Result<Gathered> {
    let layout = layout(input, options, format)?;
    let names = names(&layout, &input.name, &mut Vec::new())?;
    let (mut gathered, _) = gather(input, options, &layout, names, Vec::new())?;
    gathered.finish();
    check_rows(input, &gathered)?;
    Ok(gathered)
}

/// All cells of delimited text; `header` are the names in the file.
fn gather(
    input: &mut Input<'_>,
    options: &TableOptions,
    layout: &Layout,
    names: Vec<String>,
    header: Vec<String>,
) -> Result<(Gathered, Totals)> {
    let parser = DelimitedParser::new(layout, header, options);
    let mut gathered = Gathered::new(names);
    let quotes = (options.cells != CellMode::Line).then_some(layout.dialect);
    let plan = Plan { quotes, ..plan(options, layout.lines_before) };
    let totals = run(input, plan, &parser, &mut |chunk, before| gathered.take(chunk, before))?;
    Ok((gathered, totals))
}

/// Refuses more rows than can be counted.
fn check_rows(input: &Input<'_>, gathered: &Gathered) -> Result<()> {
    if u32::try_from(gathered.n_rows).is_err() {
        return Err(Error::format(&input.name, "has 2³² rows or more"));
    }
    Ok(())
}

/// The spellings of missing values to remember.
fn added(options: &TableOptions) -> Vec<String> {
    let like = options.like.iter().flat_map(|like| like.missing_values.iter());
    let mut all: Vec<String> = options.missing_values.iter().chain(like).cloned().collect();
    all.sort();
    all.dedup();
    all
}

/// The names of the columns; those without one are called by their position.
fn names(layout: &Layout, file: &str, remarks: &mut Vec<String>) -> Result<Vec<String>> {
    let by_position = |at: usize| format!("column_{}", at + 1);
    let Some(names) = &layout.names else {
        return Ok((0..layout.n_cols).map(by_position).collect());
    };
    let mut unnamed = Vec::new();
    let named: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            if name.is_empty() {
                unnamed.push(at);
                by_position(at)
            } else {
                name.clone()
            }
        })
        .collect();
    if let Some(reason) = same_names(named.iter().map(String::as_str)) {
        return Err(Error::format(file, reason));
    }
    let inner = unnamed.iter().filter(|&&at| at > 0 && at + 1 < names.len());
    let inner: Vec<&str> = inner.map(|&at| named[at].as_str()).collect();
    if !inner.is_empty() {
        remarks.push(format!("columns without a name are called {}", inner.join(", ")));
    }
    Ok(named)
}

fn json(input: &mut Input<'_>, options: &TableOptions) -> Result<Table> {
    let mut gathered = Gathered::new(Vec::new());
    let start = input.sample.trim_ascii_start();
    let is_document =
        start.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"));
    let totals = if is_document {
        let mut all = Vec::new();
        while !input.fill(&mut all, usize::MAX)? {}
        let mut chunk = json::document(&all, options)
            .map_err(|error| Error::format(&input.name, format!("is not JSON: {error}")))?;
        gathered.take(&mut chunk, 0)?;
        gathered.lines = Lines::default();
        Totals { rows: gathered.n_rows as u64, skipped: 0, first_errors: Vec::new() }
    } else {
        let parser = JsonParser::new(options);
        let sink = &mut |chunk: &mut _, before| gathered.take(chunk, before);
        run(input, plan(options, 0), &parser, sink)?
    };
    let found = TableLayout {
        format: Format::JsonLines,
        delimiter: None,
        header: true,
        decimal_comma: false,
        plain_quotes: false,
        encoding: (!input.encoding.is_empty()).then(|| input.encoding.to_owned()),
        missing_values: added(options),
    };
    let notes = Notes { mark: b'.', unnamed: false, blank_end: false, mode: options.cells };
    table(input, gathered, totals, found, notes, Vec::new())
}

/// Facts about cells besides their layout.
struct Notes {
    /// The decimal mark.
    mark: u8,
    /// Whether the header has no name for the first column.
    unnamed: bool,
    /// Whether it has none for the last.
    blank_end: bool,
    mode: CellMode,
}

/// The table of all cells.
fn table(
    input: &Input<'_>,
    mut gathered: Gathered,
    totals: Totals,
    mut layout: TableLayout,
    Notes { mark, unnamed, blank_end, mode }: Notes,
    mut remarks: Vec<String>,
) -> Result<Table> {
    gathered.finish();
    if gathered.n_rows == 0
        && let Some(first) = totals.first_errors.first()
    {
        let reason =
            format!("no row is left of {}; the first was left out: {first}", totals.skipped);
        return Err(Error::format(&input.name, reason));
    }
    check_rows(input, &gathered)?;
    if gathered.columns.is_empty() {
        return Err(Error::format(&input.name, "has no columns"));
    }
    if gathered.recoded.is_some() {
        layout.encoding.get_or_insert_with(|| "Windows-1252".to_owned());
    }
    if gathered.comments > 0 {
        remarks.push(format!("{} comment lines passed over", gathered.comments));
    }
    let lines = std::mem::take(&mut gathered.lines);
    let n_rows = gathered.n_rows;
    let (names, inferred) = infer(gathered, mark, mode)?;
    let mut strays = Vec::new();
    let mut columns = Vec::with_capacity(names.len());
    let n_cols = names.len();
    for (at, (name, inferred)) in names.into_iter().zip(inferred).enumerate() {
        let column = inferred.column;
        // What a delimiter at the end of every row leaves behind.
        if blank_end && at > 0 && at + 1 == n_cols && column.n_missing() == column.len() {
            continue;
        }
        if let Some(remark) = inferred.remark {
            remarks.push(format!("column `{name}`: {remark}"));
        }
        if !inferred.strays.is_empty() {
            let n = inferred.strays.len();
            let shown = inferred
                .strays
                .iter()
                .take(SHOWN)
                .map(|(row, text)| format!("`{text}` (line {})", lines.of(*row as usize)));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = if n > SHOWN { ", …" } else { "" };
            let are = if n == 1 {
                "1 cell is not a number and counts"
            } else {
                &format!("{n} cells are not numbers and count")
            };
            remarks.push(format!("column `{name}`: {are} as missing: {shown}{more}"));
            strays.extend(inferred.strays.into_iter().map(|(row, text)| Stray {
                column: name.clone(),
                row,
                text,
            }));
        }
        columns.push((name, column));
    }
    let mut table = Table::of(columns, n_rows).map_err(|error| match error {
        Error::Data(reason) => Error::format(&input.name, reason),
        other => other,
    })?;
    let index =
        table.columns.first().filter(|(_, column)| unnamed && n_cols > 1 && differs(column));
    let index = index.map(|(name, _)| name.clone());
    if index.is_some() {
        remarks.push(
            "the first column has no name and no value twice: it names the rows and is no input"
                .to_owned(),
        );
    }
    table.source = Some(Arc::new(TableSource {
        file: input.name.clone(),
        layout,
        remarks,
        strays,
        skipped: totals.skipped,
        first_errors: totals.first_errors,
        index,
        lines: Some(lines),
    }));
    Ok(table)
}

/// Whether no value is missing or occurs twice.
fn differs(column: &Column) -> bool {
    let n = column.len();
    match column {
        Column::Words { levels, .. } => levels.len() == n && column.n_missing() == 0,
        Column::Numbers(values) => {
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            values.iter().all(|value| value.fract() == 0.0)
                && sorted.windows(2).all(|pair| pair[0] < pair[1])
        }
        Column::Booleans(_) => false,
    }
}

#[cfg(feature = "parquet")]
fn parquet(mut input: Input<'_>) -> Result<Table> {
    let (file, _) = crate::parquet::ParquetFile::open(&mut input)?;
    let (columns, remarks) = file.columns()?;
    let mut table = Table::from_columns(columns).map_err(|error| match error {
        Error::Data(reason) => Error::format(&input.name, reason),
        other => other,
    })?;
    table.source = Some(Arc::new(TableSource {
        file: input.name.clone(),
        layout: TableLayout {
            format: Format::Parquet,
            delimiter: None,
            header: true,
            decimal_comma: false,
            plain_quotes: false,
            encoding: None,
            missing_values: Vec::new(),
        },
        remarks,
        strays: Vec::new(),
        skipped: 0,
        first_errors: Vec::new(),
        index: None,
        lines: None,
    }));
    Ok(table)
}

#[cfg(not(feature = "parquet"))]
fn parquet(input: Input<'_>) -> Result<Table> {
    Err(Error::format(input.name, "Parquet needs the feature `parquet`, left out of this build"))
}
