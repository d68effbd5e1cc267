//! Options of reading a table, and what was detected.

use super::cells::Lines;
use super::infer::Stray;
use crate::{Delimiter, Format, OnError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The interpretation of the cells of a text table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellMode {
    /// A column holds numbers, truth values or words, as inferred from all its cells.
    #[default]
    Infer,
    /// Every column holds words, spelled as in the file: `007` and `1.50` stay as they are, and `NA`
    /// is a word. An empty cell is an empty word. A row may have more cells than the others, which
    /// are left out, or fewer: only those that it lacks are missing.
    Text,
    /// Every line that is not blank is one word, delimiters and quotes included.
    Line,
}

/// How to read a table. Everything not set is found out from the file.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The format; `None` goes by the content and the name of the file.
    pub format: Option<Format>,
    /// The delimiter; `None` takes the one of tab, comma, semicolon, bar, `::` and blanks that cuts the first rows into
    /// equally many cells.
    pub delimiter: Option<Delimiter>,
    /// Whether the first row names the columns; `None` says so unless it looks like the rows below.
    /// Without names, columns are called `column_1`, `column_2`, ….
    pub header: Option<bool>,
    /// Whether a comma stands before the fraction of a number; `None` says so if that is how most
    /// fractions at the start of the file are written.
    pub decimal_comma: Option<bool>,
    /// Whether quotes hold cells together; `None` says so unless they cannot at the start of the file: text follows
    /// closing quotes, and the rows have equally many cells if quotes are characters like any other.
    pub quotes: Option<bool>,
    /// Further spellings of missing values, besides the empty cell, `NA`, `N/A`, `#N/A`, `n.a.`, `NaN`,
    /// `null`, `None`, `<NA>` (in any case), `\N`, `-`, `.` and `?`.
    pub missing_values: Vec<String>,
    /// The treatment of a row that cannot be read.
    pub on_error: OnError,
    /// Names of columns that are expected: if the first row has one of them, it is a header.
    pub names: Vec<String>,
    /// How a file of the same kind was laid out, that a model was trained on. It decides where the
    /// file leaves a choice.
    pub like: Option<TableLayout>,
    /// The interpretation of cells. Parquet files have types of their own.
    pub cells: CellMode,
    /// Bytes in a block of text. Nothing but speed and memory depends on it.
    #[doc(hidden)]
    pub block: usize,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            header: None,
            decimal_comma: None,
            quotes: None,
            missing_values: Vec::new(),
            on_error: OnError::Fail,
            names: Vec::new(),
            like: None,
            cells: CellMode::Infer,
            block: 1 << 20,
        }
    }
}

impl TableOptions {
    /// Options with a format.
    pub fn format(format: Format) -> Self {
        Self { format: Some(format), ..Self::default() }
    }

    /// The further spellings of missing values.
    pub(super) fn spellings(&self) -> Vec<Vec<u8>> {
        let like = self.like.iter().flat_map(|like| &like.missing_values);
        let all = self.missing_values.iter().chain(like);
        all.map(|spelling| spelling.trim().as_bytes().to_vec()).collect()
    }
}

/// The layout of a file. A model keeps the layout of the file it was trained on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLayout {
    /// The format.
    pub format: Format,
    /// The delimiter, for text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Whether the first row named the columns.
    pub header: bool,
    /// Whether a comma stood before the fraction of a number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decimal_comma: bool,
    /// Whether quotes were characters like any other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_quotes: bool,
    /// How the text was encoded, if not in UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Further spellings of missing values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_values: Vec<String>,
}

impl TableLayout {
    /// Returns the delimiter.
    pub(super) fn delimiter(&self) -> Option<Delimiter> {
        self.delimiter.as_deref().and_then(|delimiter| delimiter.parse().ok())
    }

    /// Whether it is what one expects of a CSV file.
    pub fn is_usual(&self) -> bool {
        let delimiter = self.delimiter.as_deref().unwrap_or(",");
        let usual = delimiter == "," || (delimiter == "tab" && self.format == Format::Tsv);
        let odd = self.decimal_comma || self.plain_quotes || self.encoding.is_some();
        usual && self.header && !odd
    }
}

impl fmt::Display for TableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.delimiter.as_deref() {
            None => write!(f, "{}", self.format)?,
            Some(delimiter @ ("tab" | "blanks")) => write!(f, "delimiter {delimiter}")?,
            Some(delimiter) => write!(f, "delimiter `{delimiter}`")?,
        }
        if self.delimiter.is_some() {
            f.write_str(if self.header { ", header" } else { ", no header" })?;
        }
        if self.decimal_comma {
            f.write_str(", decimal comma")?;
        }
        if self.plain_quotes {
            f.write_str(", quotes taken as characters")?;
        }
        match &self.encoding {
            Some(encoding) => write!(f, ", {encoding}"),
            None => Ok(()),
        }
    }
}

/// The source of a table, and remarks from reading it.
#[derive(Clone, Debug)]
pub struct TableSource {
    /// The file as messages call it.
    pub file: String,
    /// The layout of the file.
    pub layout: TableLayout,
    /// Remarks for the user: how columns with odd cells were taken.
    pub remarks: Vec<String>,
    /// Cells that are not numbers in columns of numbers; they count as missing.
    pub strays: Vec<Stray>,
    /// Bad rows left out.
    pub skipped: u64,
    /// The first few of them, in words.
    pub first_errors: Vec<String>,
    /// The column that only numbers or names the rows: the first, if it has no name and no value
    /// twice. It is no input of a model.
    pub index: Option<String>,
    pub(super) lines: Option<Lines>,
}
