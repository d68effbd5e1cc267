//! Tables: named columns of numbers, truth values and words.

mod cells;
mod column;
mod delimited;
mod infer;
mod json;
mod options;
mod read;
mod records;
mod text;

#[cfg(feature = "parquet")]
pub(crate) use cells::decode;
pub(crate) use column::Interner;
pub use column::{Column, MISSING_WORD};
pub use infer::Stray;
pub use options::{CellMode, TableLayout, TableOptions, TableSource};
pub use records::TableRecords;
pub use text::{TextColumn, TextColumns};

use super::Dense;
use gradus_base::{Error, Result};
use hashbrown::{HashMap, HashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// The treatment of a missing value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Refuse the data and name the row and column.
    #[default]
    Refuse,
    /// Put a NaN in its place.
    Nan,
}

/// A table in memory: named columns of equal length.
///
/// The values of a column have one type, and a missing value is marked as such: no rule of text
/// (which words mean "missing", whether digits are a number) applies once a table is made. Such rules
/// belong to the reader of text files.
///
/// ```
/// use gradus_data::{Column, Missing, Table};
/// let table = Table::from_columns(vec![
///     ("name".into(), Column::from_words([Some("nail"), Some("screw")])?),
///     ("size".into(), Column::Numbers(vec![3.0, 4.0])),
///     ("price".into(), Column::Numbers(vec![0.5, f64::NAN])),
/// ])?;
/// assert_eq!(table.names(), ["name", "size", "price"]);
/// let x = table.to_dense(&["size", "price"], Missing::Nan)?;
/// assert_eq!(x.row(0), [3.0, 0.5]);
/// assert!(x.row(1)[1].is_nan());
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Column)>,
    /// The place of each name: a search would take seconds for tens of thousands of columns.
    places: HashMap<String, usize>,
    n_rows: usize,
    source: Option<Arc<TableSource>>,
    /// The rows of the source; `None` is all of them.
    rows: Option<Vec<u32>>,
}

impl Table {
    /// A table of these columns.
    ///
    /// # Errors
    /// If columns differ in length, two have the same name, or a column of words contradicts itself.
    pub fn from_columns(columns: Vec<(String, Column)>) -> Result<Self> {
        let n_rows = columns.first().map_or(0, |(_, column)| column.len());
        for (name, column) in &columns {
            if column.len() != n_rows {
                return Err(Error::Shape {
                    what: format!("rows of column `{name}`"),
                    expected: format!("{n_rows} (as in column `{}`)", columns[0].0),
                    got: column.len().to_string(),
                });
            }
            column.check(name)?;
        }
        Self::of(columns, n_rows)
    }

    /// A table of columns that are known to be sound.
    fn of(columns: Vec<(String, Column)>, n_rows: usize) -> Result<Self> {
        if let Some(reason) = same_names(columns.iter().map(|(name, _)| name.as_str())) {
            return Err(Error::data(reason));
        }
        let places = columns.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        Ok(Self { columns, places, n_rows, source: None, rows: None })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.columns.len()
    }

    /// The columns with their names.
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// The columns' names.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The names of the columns that hold numbers or truth values.
    pub fn numeric_names(&self) -> Vec<&str> {
        let numeric = self.columns.iter().filter(|(_, c)| !matches!(c, Column::Words { .. }));
        numeric.map(|(name, _)| name.as_str()).collect()
    }

    /// The column `name`.
    ///
    /// # Errors
    /// If there is no such column; the message lists those there are.
    pub fn column(&self, name: &str) -> Result<&Column> {
        let found = self.places.get(name);
        found.map(|&at| &self.columns[at].1).ok_or_else(|| self.unknown(name))
    }

    /// The name of a column given by its name or, if none is called so, by its position: from 1, or
    /// from the end with a minus (`-1` is the last).
    ///
    /// # Errors
    /// If there is no such column; the message lists those there are.
    pub fn resolve(&self, column: &str) -> Result<&str> {
        if let Some(&at) = self.places.get(column) {
            return Ok(&self.columns[at].0);
        }
        let n = self.n_cols() as i64;
        let at = match column.trim().parse::<i64>() {
            Ok(at) if (1..=n).contains(&at) => Some(at - 1),
            Ok(at) if (-n..0).contains(&at) => Some(n + at),
            _ => None,
        };
        match at {
            Some(at) => Ok(&self.columns[at as usize].0),
            None => Err(self.unknown(column)),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let known = listed(&self.names());
        Error::UnknownName { what: "column", name: name.to_owned(), known }
    }

    /// The rows that lack no value, the columns `except` apart.
    pub fn complete_rows(&self, except: &[String]) -> Vec<u32> {
        let used = self.columns.iter().filter(|(name, _)| !except.contains(name));
        let used: Vec<&Column> = used.map(|(_, column)| column).collect();
        super::inputs::complete(self.n_rows, &used)
    }

    /// The numbers of column `name`: truth values as 0 and 1, words where all of them are numbers.
    ///
    /// # Errors
    /// If there is no such column, a value is missing and `missing` refuses that, or a value is
    /// not a finite number; the message names row and column.
    pub fn numbers(&self, name: &str, missing: Missing) -> Result<Cow<'_, [f64]>> {
        let numbers = match self.column(name)? {
            Column::Numbers(values) => Cow::Borrowed(values.as_slice()),
            Column::Booleans(values) => values
                .iter()
                .map(|value| value.map_or(f64::NAN, |value| f64::from(u8::from(value))))
                .collect(),
            Column::Words { codes, levels } => {
                let parsed: Vec<Option<f64>> =
                    levels.iter().map(|word| word.trim().parse().ok()).collect();
                let mut numbers = Vec::with_capacity(codes.len());
                for (row, &code) in codes.iter().enumerate() {
                    numbers.push(match parsed.get(code as usize) {
                        None => f64::NAN,
                        Some(Some(number)) => *number,
                        Some(None) => {
                            let reason = format!("`{}` is not a number", levels[code as usize]);
                            return Err(self.fault(row, name, reason));
                        }
                    });
                }
                numbers.into()
            }
        };
        if let Some(row) = numbers.iter().position(|value| value.is_infinite()) {
            return Err(self.fault(row, name, format!("{} is not finite", numbers[row])));
        }
        if missing == Missing::Refuse
            && let Some(row) = numbers.iter().position(|value| value.is_nan())
        {
            return Err(self.missing(row, name));
        }
        Ok(numbers)
    }

    /// The text of column `name`; numbers and truth values as they print, `None` where missing.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn texts(&self, name: &str) -> Result<Vec<Option<String>>> {
        let column = self.column(name)?;
        Ok((0..self.n_rows).map(|row| column.text(row).map(|text| text.into_owned())).collect())
    }

    /// The matrix of the columns `names`, in that order.
    ///
    /// # Shapes
    /// `n_rows() × names.len()`.
    ///
    /// # Errors
    /// As [`numbers`](Self::numbers).
    pub fn to_dense(&self, names: &[&str], missing: Missing) -> Result<Dense<f64>> {
        let (n_rows, n_cols) = (self.n_rows(), names.len());
        let mut values = vec![0.0; n_rows * n_cols];
        for (column, name) in names.iter().enumerate() {
            for (row, number) in self.numbers(name, missing)?.iter().enumerate() {
                values[row * n_cols + column] = *number;
            }
        }
        Dense::new(n_rows, n_cols, values)
    }

    /// Returns the source of the table, if a file was read.
    pub fn source(&self) -> Option<&TableSource> {
        self.source.as_deref()
    }

    /// The column `name` as words: numbers and truth values as they print, a stray cell in a column of
    /// numbers as it stood in the file.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn words(&self, name: &str) -> Result<Cow<'_, Column>> {
        let column = self.column(name)?;
        if let Column::Words { .. } = column {
            return Ok(Cow::Borrowed(column));
        }
        let strays = self.strays(name);
        let word = |row: usize| match strays.get(&self.origin(row)) {
            Some(text) => Some(Cow::Borrowed(*text)),
            None => column.text(row),
        };
        Column::from_words((0..self.n_rows).map(word)).map(Cow::Owned)
    }

    /// The stray cells of a column by their row in the source.
    fn strays(&self, name: &str) -> HashMap<usize, &str> {
        let strays = self.source.iter().flat_map(|source| &source.strays);
        let here = strays.filter(|stray| stray.column == name);
        here.map(|stray| (stray.row as usize, stray.text.as_str())).collect()
    }

    /// The row of the source that a row is.
    fn origin(&self, row: usize) -> usize {
        self.rows.as_ref().map_or(row, |rows| rows[row] as usize)
    }

    /// The rows `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below `n_rows()`.
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        let columns = self.columns.iter();
        let columns = columns.map(|(name, column)| (name.clone(), column.select_rows(rows)));
        Self {
            columns: columns.collect(),
            places: self.places.clone(),
            n_rows: rows.len(),
            source: self.source.clone(),
            rows: Some(rows.iter().map(|&row| self.origin(row as usize) as u32).collect()),
        }
    }

    /// The error about a missing value, or a stray cell that counts as one.
    pub fn missing(&self, row: usize, column: &str) -> Error {
        match self.strays(column).get(&self.origin(row)) {
            Some(text) => {
                let reason = format!(
                    "`{text}` is not a number, as nearly all of the column are; it counts as a missing value"
                );
                self.fault(row, column, reason)
            }
            None => self.fault(row, column, "missing value"),
        }
    }

    /// An error about one value of the table: with file and line if the table was read from text.
    pub fn fault(&self, row: usize, column: &str, reason: impl std::fmt::Display) -> Error {
        let row = self.origin(row);
        let at = format!("row {}, column `{column}`: {reason}", row + 1);
        match self.source() {
            None => Error::data(at),
            Some(source) => match &source.lines {
                None => Error::format(&source.file, at),
                Some(lines) => Error::Row {
                    file: source.file.clone(),
                    line: lines.of(row),
                    column: Some(format!("`{column}`")),
                    reason: reason.to_string(),
                },
            },
        }
    }
}

/// Returns the error if two of the names are the same.
pub(crate) fn same_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let mut seen = HashSet::new();
    for name in names.clone() {
        if !seen.insert(name) {
            let positions: Vec<String> = names
                .enumerate()
                .filter(|(_, other)| *other == name)
                .map(|(at, _)| (at + 1).to_string())
                .collect();
            return Some(format!(
                "columns {} are called `{name}`: every column needs a name of its own",
                positions.join(" and ")
            ));
        }
    }
    None
}

/// Names for a message: the first few of them.
pub(crate) fn listed(names: &[&str]) -> String {
    const MOST: usize = 30;
    let mut list = names.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        list.push_str(&format!(", … ({} in all)", names.len()));
    }
    list
}

#[cfg(test)]
mod tests;
