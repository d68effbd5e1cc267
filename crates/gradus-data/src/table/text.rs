//! Some columns of a file, as text.

use super::options::{CellMode, TableOptions};
use super::{Column, Table, listed};
use crate::Format;
use crate::ids::parse_canonical_int;
use gradus_base::{Error, Result};
use std::borrow::Cow;
use std::path::Path;

/// A column to take from a file.
#[derive(Clone, Copy, Debug)]
pub struct TextColumn<'a> {
    /// What it holds, for messages: `users`.
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
    table: Table,
    /// The places of the columns.
    places: Vec<usize>,
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
        // Whether there is a header is decided here, by names.
        let options = TableOptions { cells, header: Some(false), ..TableOptions::default() };
        Self::of(Table::read(path, &options)?, wanted)
    }

    /// Finds the columns of a table without a header.
    pub(crate) fn of(table: Table, wanted: &[TextColumn<'_>]) -> Result<Self> {
        let source = table.source();
        let file = source.map_or("", |source| source.file.as_str());
        let is_text =
            source.is_some_and(|source| matches!(source.layout.format, Format::Csv | Format::Tsv));
        let names: Vec<String> = if is_text {
            let first = table.columns.iter().map(|(_, column)| text(column, 0));
            first.map(|name| name.unwrap_or_default().trim().to_owned()).collect()
        } else {
            table.names().iter().map(|name| (*name).to_owned()).collect()
        };
        let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let n_cols = names.len();
        let mut places = vec![None; wanted.len()];
        let (mut has_header, mut is_told) = (false, false);
        for (place, column) in places.iter_mut().zip(wanted) {
            let found = match (column.given, column.given.and_then(position)) {
                (Some(given), Some(at)) if at > n_cols => {
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
                (Some(given), None) => Some(look_up(given, &names).ok_or_else(|| {
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
            is_told |= column.given.is_some();
            has_header |= found.is_some();
            *place = found;
        }
        // A title may be called `Name`: where a number stands for an id, the row is no header.
        let is_number = |at: usize| {
            names.get(at).is_some_and(|name| parse_canonical_int(name.as_bytes()).is_some())
        };
        let by_place = (0..wanted.len()).filter(|&at| places[at].is_none());
        if is_text && has_header && !is_told && by_place.clone().any(is_number) {
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
            && table.n_rows > 0
        {
            let columns =
                if n_cols == 1 { "1 column".to_owned() } else { format!("{n_cols} columns") };
            let reason = format!("has {columns}, and none for the {}", wanted[at].what);
            return Err(Error::format(file, reason));
        }
        Ok(Self { table, places, first: usize::from(is_text && has_header) })
    }

    /// Number of rows, without the header.
    pub fn n_rows(&self) -> usize {
        self.table.n_rows.saturating_sub(self.first)
    }

    /// The cells of a row, in the order in which the columns were asked for.
    ///
    /// # Errors
    /// If the row has no such cell; the message names the file and the line.
    ///
    /// # Panics
    /// If `row` is not below `n_rows()`.
    pub fn row(&self, row: usize) -> Result<Vec<Cow<'_, str>>> {
        let row = row + self.first;
        let cell = |&place: &usize| {
            let (own, column) = &self.table.columns[place];
            text(column, row).ok_or_else(|| {
                let name = if self.first > 0 { text(column, 0) } else { None };
                let name = name.unwrap_or(Cow::Borrowed(own));
                self.table.fault(row, &name, "the row has no such cell")
            })
        };
        self.places.iter().map(cell).collect()
    }
}

/// The text of a cell; `None` where the column has no such row.
fn text(column: &Column, row: usize) -> Option<Cow<'_, str>> {
    if row < column.len() { column.text(row) } else { None }
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
