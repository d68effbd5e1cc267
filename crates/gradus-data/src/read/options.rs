//! Options of reading a file, and the summary of a read.

use super::delimiter::Delimiter;
use crate::Duplicates;
use gradus_base::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The format of a file of rows.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// A line a row, columns set apart by commas or another delimiter, RFC 4180 quotes.
    Csv,
    /// The same with tabs.
    Tsv,
    /// A JSON object or array on each line.
    #[serde(rename = "jsonl")]
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// A line a user: the user, then the items, blanks or another delimiter between them.
    Adjacency,
}

impl Format {
    /// All formats by name.
    const NAMES: [(&'static str, Self); 5] = [
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
        ("jsonl", Self::JsonLines),
        ("parquet", Self::Parquet),
        ("adjacency", Self::Adjacency),
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, format)| format == self).map_or("", |(n, _)| n);
        name.fmt(f)
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, format)| format).ok_or_else(
            || Error::UnknownName {
                what: "format",
                name: name.to_owned(),
                known: Self::NAMES.map(|(known, _)| known).join(", "),
            },
        )
    }
}

/// The treatment of a bad row.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// Stop, and name it.
    #[default]
    Fail,
    /// Leave it out, and count it.
    Skip,
}

/// A column, by its name in the header or by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// The name, as the header spells it (or in another case, if no column is spelled so).
    Name(String),
    /// The place, from 1.
    Position(usize),
}

impl fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Position(position) => position.fmt(f),
        }
    }
}

impl From<&str> for ColumnRef {
    /// A number is a position, anything else a name.
    fn from(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Position)
    }
}

impl From<String> for ColumnRef {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<usize> for ColumnRef {
    fn from(position: usize) -> Self {
        Self::Position(position)
    }
}

/// How to read a file. Everything not set is found out from the file.
///
/// ```
/// use gradus_data::{OnError, ReadOptions};
///
/// let options = ReadOptions::new()
///     .user("customer")
///     .item("article")
///     .rating(5)
///     .delimiter(b';')
///     .on_error(OnError::Skip);
/// ```
#[derive(Clone, Debug)]
pub struct ReadOptions {
    pub(super) format: Option<Format>,
    pub(super) delimiter: Option<Delimiter>,
    pub(super) header: Option<bool>,
    pub(super) user: Option<ColumnRef>,
    pub(super) item: Option<ColumnRef>,
    pub(super) rating: Option<ColumnRef>,
    pub(super) weight: Option<ColumnRef>,
    pub(super) time: Option<ColumnRef>,
    pub(super) times: bool,
    pub(super) implicit: bool,
    pub(super) decimal_comma: Option<bool>,
    pub(super) quotes: Option<bool>,
    pub(super) optional_rating: bool,
    pub(super) on_error: OnError,
    pub(super) duplicates: Duplicates,
    /// Bytes in a block of text. Nothing but speed and memory depends on it.
    pub(super) block: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            header: None,
            user: None,
            item: None,
            rating: None,
            weight: None,
            time: None,
            times: false,
            implicit: false,
            decimal_comma: None,
            quotes: None,
            optional_rating: false,
            on_error: OnError::default(),
            duplicates: Duplicates::default(),
            block: 1 << 20,
        }
    }
}

impl ReadOptions {
    /// Options that leave everything to be found out.
    pub fn new() -> Self {
        Self::default()
    }

    /// The format; by default what the name and the content of the file say.
    pub fn format(mut self, format: impl Into<Option<Format>>) -> Self {
        self.format = format.into();
        self
    }

    /// Sets the delimiter; by default the one of tab, comma, semicolon, bar, `::` and space that cuts the first lines
    /// into equally many columns.
    pub fn delimiter(mut self, delimiter: impl Into<Delimiter>) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }

    /// Whether the first line names the columns; by default it does if it holds no number where the
    /// next line does, or holds names known for a column.
    pub fn header(mut self, header: impl Into<Option<bool>>) -> Self {
        self.header = header.into();
        self
    }

    /// The column of users.
    pub fn user(mut self, column: impl Into<ColumnRef>) -> Self {
        self.user = Some(column.into());
        self
    }

    /// The column of items.
    pub fn item(mut self, column: impl Into<ColumnRef>) -> Self {
        self.item = Some(column.into());
        self
    }

    /// The column of ratings.
    pub fn rating(mut self, column: impl Into<ColumnRef>) -> Self {
        self.rating = Some(column.into());
        self
    }

    /// The column of weights; by default one called so, or none.
    pub fn weight(mut self, column: impl Into<ColumnRef>) -> Self {
        self.weight = Some(column.into());
        self
    }

    /// The column of times, and that they are to be read.
    pub fn time(mut self, column: impl Into<ColumnRef>) -> Self {
        self.time = Some(column.into());
        self.times(true)
    }

    /// Whether to read the times of the ratings, if the file has them; by default not, for they
    /// take 8 bytes each and no fit looks at them.
    ///
    /// Their column is the one [named](Self::time), one called `timestamp`, `time`, `date` and the
    /// like, or, without a header, the fourth, if it holds integers or dates. An integer or decimal
    /// number is taken as it stands, a fraction dropped downwards; a date in the order of ISO 8601
    /// (`2001-12-31T23:59:59+01:00`, the time of day and the zone may be left out) becomes seconds
    /// since 1970.
    pub fn times(mut self, read: bool) -> Self {
        self.times = read;
        self
    }

    /// The columns given, in the order of their roles.
    pub(super) fn columns(&self) -> [&Option<ColumnRef>; 5] {
        [&self.user, &self.item, &self.rating, &self.weight, &self.time]
    }

    /// Whether ratings and weights are written with a decimal comma; by default they may be where
    /// no comma stands between columns.
    pub fn decimal_comma(mut self, decimal_comma: impl Into<Option<bool>>) -> Self {
        self.decimal_comma = decimal_comma.into();
        self
    }

    /// Whether quotes hold fields together, which they do by default, or are characters like any other.
    pub fn quotes(mut self, quotes: impl Into<Option<bool>>) -> Self {
        self.quotes = quotes.into();
        self
    }

    /// Whether to read no rating column and take every row as an interaction of value 1.
    pub fn implicit(mut self, implicit: bool) -> Self {
        self.implicit = implicit;
        self
    }

    /// Whether a file without a column of ratings (pairs of user and item, an adjacency list) is taken
    /// as interactions of value 1; by default such a file is refused.
    pub fn optional_rating(mut self, optional: bool) -> Self {
        self.optional_rating = optional;
        self
    }

    /// Sets the treatment of a bad row; by default reading fails.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Sets the treatment of a pair that occurs more than once; by default the last row counts.
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// The size of a block of text, for tests.
    #[doc(hidden)]
    pub fn block_bytes(mut self, block: usize) -> Self {
        self.block = block.max(1);
        self
    }

    /// Validates everything that can be validated without a file.
    ///
    /// # Errors
    /// If a position is 0, the delimiter is a quote or a line end, or `implicit` meets a rating
    /// column.
    pub fn check(&self) -> Result<()> {
        let columns = [
            ("user", &self.user),
            ("item", &self.item),
            ("rating", &self.rating),
            ("weight", &self.weight),
            ("time", &self.time),
        ];
        for (name, column) in columns {
            if column == &Some(ColumnRef::Position(0)) {
                return Err(Error::parameter(name, 0, "columns are counted from 1"));
            }
        }
        if let Some(delimiter) = self.delimiter {
            delimiter.check()?;
        }
        match &self.rating {
            Some(column) if self.implicit => Err(Error::parameter(
                "rating",
                column,
                "`implicit` takes every row as 1 and reads no rating column",
            )),
            _ => Ok(()),
        }
    }
}

/// The columns that were read, by name, or by position where there are no names.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Columns {
    /// The column of users.
    pub user: String,
    /// The column of items.
    pub item: String,
    /// The column of ratings, if one was read.
    pub rating: Option<String>,
    /// The column of weights, if one was read.
    pub weight: Option<String>,
    /// The column of times, if one was read.
    pub time: Option<String>,
}

/// A summary of reading a file.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct ReadSummary {
    /// Rows read, duplicates included.
    pub rows: u64,
    /// Rows whose pair of user and item is in another row, too: they were merged with it.
    pub merged: u64,
    /// Bad rows left out.
    pub skipped: u64,
    /// The first few of them, in words.
    pub first_errors: Vec<String>,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// Seconds spent, the building of the matrices included.
    pub seconds: f64,
    /// Seconds spent on sorting ids and building the matrices, included in `seconds`.
    pub build_seconds: f64,
    /// The format of the file.
    pub format: Format,
    /// The columns read.
    pub columns: Columns,
}
