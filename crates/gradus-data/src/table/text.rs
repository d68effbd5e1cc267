//! Some columns of a file, as text.

use super::cells::{Lines, MISSING, RawColumn, text_cell};
use super::options::{CellMode, TableOptions};
use super::read::{format, read, texts};
use super::{Table, listed};
use crate::ids::parse_canonical_int;
use crate::read::source::{self, Input};
use crate::{Format, TextIds};
use gradus_base::{Error, Result};
use std::path::Path;

/// A column to take from a file.
#[derive(Clone, Copy, Debug)]
pub struct TextColumn<'a> {
    /// The content of the file, for messages: `users`.
    pub what: &'a str,
    /// Names it goes by in a header, best first; in lower case, without spaces, `_` and `-`.
    pub names: &'a [&'a str],
    /// The column as the user named it, by name or position from 1.
    pub given: Option<&'a str>,
}

/// Columns of a file as text, each cell as it stands there.
///
/// The first row is a header if it names one of the columns. Columns that are neither named there nor
/// given are taken by their place.
///
/// ```
/// use gradus_data::{CellMode, TextColumn, TextColumns};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("parts.csv");
/// std::fs::write(&path, "size;Part No\n1.50;007\n").unwrap();
/// let part = TextColumn { what: "parts", names: &["part", "partno"], given: None };
/// let columns = TextColumns::read(&path, &[part], CellMode::Text)?;
/// assert_eq!(columns.row(0)?, ["007"]);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextColumns {
    file: String,
    columns: Vec<RawColumn>,
    names: Vec<String>,
    n_rows: usize,
    /// The line of each row, in a file of text.
    lines: Option<Lines>,
    /// The first row below the header.
    first: usize,
}

impl TextColumns {
    /// Reads columns of a file as [`Table::read`] takes it; `-` is standard input. A file of text may
    /// be empty.
    ///
    /// # Errors
    /// If the file cannot be read, or has no such columns.
    pub fn read(
        path: impl AsRef<Path>,
        wanted: &[TextColumn<'_>],
        cells: CellMode,
    ) -> Result<Self> {
        source::open(path.as_ref(), |input| Self::all(input, cells))?.select(wanted)
    }

    /// Reads all columns of a file.
    pub(crate) fn all(mut input: Input<'_>, cells: CellMode) -> Result<Self> {
        // Whether there is a header is decided later, by names.
        let options = TableOptions { cells, header: Some(false), ..TableOptions::default() };
        let file = input.name.clone();
        let format = format(&input, &options)?;
        if !matches!(format, Format::Csv | Format::Tsv) {
            let table = read(input, &options)?;
            let names = table.names().iter().map(|name| (*name).to_owned()).collect();
            let columns = (0..table.n_cols()).map(|place| raw(&table, place)).collect();
            return Ok(Self { file, columns, names, n_rows: table.n_rows, lines: None, first: 0 });
        }
        let gathered = texts(&mut input, &options, format)?;
        Ok(Self {
            file,
            columns: gathered.columns,
            names: gathered.names,
            n_rows: gathered.n_rows,
            lines: Some(gathered.lines),
            first: 0,
        })
    }

    /// Finds the wanted columns among all, and the header.
    pub(crate) fn select(mut self, wanted: &[TextColumn<'_>]) -> Result<Self> {
        let file = &self.file;
        let is_text = self.lines.is_some();
        if is_text {
            let first = self.columns.iter().map(|column| column.text(0).unwrap_or_default());
            self.names = first.map(|name| name.trim().to_owned()).collect();
        }
        let names = &self.names;
        let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let n_cols = names.len();
        let mut places = vec![None; wanted.len()];
        let (mut has_header, mut is_given) = (false, false);
        for (place, column) in places.iter_mut().zip(wanted) {
            let found = match (column.given, column.given.and_then(position)) {
                (Some(given), Some(at)) if at > n_cols && self.n_rows > 0 => {
                    let reason = format!(
                        "has no column {given} for the {}: there are {n_cols}",
                        column.what
                    );
                    return Err(Error::format(file, reason));
                }
                (_, Some(at)) => {
                    *place = Some(at - 1);
                    continue;
                }
                (Some(given), None) => Some(look_up(given, names).ok_or_else(|| {
                    let known: Vec<&str> = names.iter().map(String::as_str).collect();
                    let reason = format!(
                        "has no column `{given}` for the {}; the columns are {}",
                        column.what,
                        listed(&known)
                    );
                    Error::format(file, reason)
                })?),
                (None, None) => {
                    column.names.iter().find_map(|name| plain.iter().position(|n| n == name))
                }
            };
            is_given |= column.given.is_some();
            has_header |= found.is_some();
            *place = found;
        }
        // A title may be called `Name`: where a number stands for an id, the row is no header.
        let is_number = |at: usize| {
            names.get(at).is_some_and(|name| parse_canonical_int(name.as_bytes()).is_some())
        };
        let by_place = (0..wanted.len()).filter(|&at| places[at].is_none());
        if is_text && has_header && !is_given && by_place.clone().any(is_number) {
            has_header = false;
            places.iter_mut().for_each(|place| *place = None);
        }
        for at in 0..wanted.len() {
            if places[at].is_none() {
                let is_free = |place: &usize| !places.contains(&Some(*place));
                let place = std::iter::once(at).chain(0..).find(is_free).unwrap_or(at);
                places[at] = Some(place);
            }
        }
        let places: Vec<usize> = places.into_iter().flatten().collect();
        if let Some(at) = places.iter().position(|&place| place >= n_cols)
            && self.n_rows > 0
        {
            let columns =
                if n_cols == 1 { "1 column".to_owned() } else { format!("{n_cols} columns") };
            let reason = format!("has {columns}, and none for the {}", wanted[at].what);
            return Err(Error::format(file, reason));
        }
        self.first = usize::from(is_text && has_header);
        let name = |&place: &usize| match names.get(place) {
            Some(name) if !is_text || has_header => name.clone(),
            _ => (place + 1).to_string(),
        };
        self.names = places.iter().map(name).collect();
        let mut all = std::mem::take(&mut self.columns);
        let mut column = |(at, &place): (usize, &usize)| match all.get_mut(place) {
            Some(column) if places[at + 1..].contains(&place) => column.clone(),
            Some(column) => std::mem::take(column),
            None => RawColumn::default(),
        };
        self.columns = places.iter().enumerate().map(&mut column).collect();
        Ok(self)
    }

    /// Number of columns.
    pub(crate) fn n_cols(&self) -> usize {
        self.columns.len()
    }

    /// The file as messages call it.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Number of rows, without the header.
    pub fn n_rows(&self) -> usize {
        self.n_rows.saturating_sub(self.first)
    }

    /// The cells of a row, in the order in which the columns were asked for.
    ///
    /// # Errors
    /// If the row has no such cell; the message names the file and the line.
    ///
    /// # Panics
    /// If `row` is not below `n_rows()`.
    pub fn row<'a>(&'a self, row: usize) -> Result<Vec<&'a str>> {
        let row = row + self.first;
        let cell = |(column, name): (&'a RawColumn, &String)| {
            column.text(row).ok_or_else(|| match &self.lines {
                Some(lines) => Error::Row {
                    file: self.file.clone(),
                    line: lines.of(row),
                    column: Some(format!("`{name}`")),
                    reason: "the row has no such cell".to_owned(),
                },
                None => {
                    let reason = format!("row {}, column `{name}`: no value", row + 1);
                    Error::format(&self.file, reason)
                }
            })
        };
        self.columns.iter().zip(&self.names).map(cell).collect()
    }
}

/// A column of a table that is no text.
fn raw(table: &Table, place: usize) -> RawColumn {
    let (mut cells, mut texts) = (Vec::with_capacity(table.n_rows), TextIds::new());
    for row in 0..table.n_rows {
        cells.push(match table.columns[place].1.text(row) {
            Some(text) => {
                texts.push(&text);
                text_cell(texts.len() as u32 - 1)
            }
            None => MISSING,
        });
    }
    RawColumn { cells, raw: texts, ..RawColumn::default() }
}

/// A position from 1.
fn position(given: &str) -> Option<usize> {
    given.parse().ok().filter(|&position| position > 0)
}

/// The column of this name, by its letters in any case if none is spelled so.
fn look_up(name: &str, names: &[String]) -> Option<usize> {
    let exact = names.iter().position(|known| known == name);
    exact.or_else(|| names.iter().position(|known| known.to_lowercase() == name.to_lowercase()))
}

/// A name in lower case, without spaces, `_` and `-`.
fn plain(name: &str) -> String {
    let kept = name.chars().filter(|c| !matches!(c, ' ' | '_' | '-'));
    kept.flat_map(char::to_lowercase).collect()
}
