//! Reading options of tables.

use super::Remarks;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_data::{Column, Delimiter, Format, Inputs, OnError, Table, TableOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// A line a row, columns set apart by commas or another delimiter
    Csv,
    /// The same with tabs
    Tsv,
    /// A JSON object or array on each line
    Jsonl,
    /// Apache Parquet
    Parquet,
    /// `user item item …`, a line a user; for ratings
    Adjacency,
    /// `label index:value …`, as libsvm and svmlight write it; for features
    Libsvm,
}

/// How a table is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TableFile {
    /// Format of the file; by default by its content, then its name.
    pub format: Option<FileFormat>,
    /// The delimiter of columns: a character, one twice (`::`), `tab` or `blanks`; detected by default.
    pub delimiter: Option<String>,
    /// Whether the first row holds names; detected by default.
    pub header: Option<bool>,
    /// Whether numbers are written with a decimal comma; detected by default.
    pub decimal_comma: Option<bool>,
    /// Whether quotes hold cells together, or are characters like any other; detected by default.
    pub quotes: Option<bool>,
    /// Further words that mean a missing value, besides NA, N/A, NaN, null, None, ?, - and the like.
    pub missing_values: Vec<String>,
    /// The treatment of a row that cannot be read: fail at the first, or skip and count them.
    pub on_error: OnError,
    /// Column of the weights.
    pub weight_column: Option<String>,
    /// File of the labels of images: IDX, a NumPy array, or a label a line; `coarse` for the coarse labels of CIFAR-100. By
    /// default sub-folders are labels, the labels in files of CIFAR, or the IDX file of labels beside the IDX file of images.
    pub labels: Option<String>,
}

impl crate::params::Params for TableFile {}

impl TableFile {
    /// Returns the delimiter of columns.
    ///
    /// # Errors
    /// If it is not a delimiter.
    pub fn delimiter(&self) -> Result<Option<Delimiter>> {
        let parse = |text: &String| {
            text.parse().map_err(|error| match error {
                Error::Parameter { rule, .. } => {
                    Error::data(format!("option `delimiter` = {text}: {rule}"))
                }
                other => other,
            })
        };
        self.delimiter.as_ref().map(parse).transpose()
    }

    /// Reads a table. `inputs` are those of a model, if there is one, and `names` are columns that
    /// the user names.
    ///
    /// # Errors
    /// If the file is no table.
    pub fn table(&self, path: &Path, inputs: Option<&Inputs>, names: &[String]) -> Result<Table> {
        Table::read(path, &self.options(inputs, names)?)
    }

    /// Reads the first rows of a table.
    ///
    /// # Errors
    /// If the file is no table.
    pub fn head(&self, path: &Path) -> Result<Table> {
        Table::read_head(path, &self.options(None, &[])?)
    }

    /// The options by which a table is read; `inputs` and `names` as in [`table`](Self::table).
    ///
    /// # Errors
    /// If the delimiter is none.
    pub fn options(&self, inputs: Option<&Inputs>, names: &[String]) -> Result<TableOptions> {
        let mut names = names.to_vec();
        if let Some(Inputs::Columns(columns)) = inputs {
            names.extend(columns.iter().map(|column| column.name.clone()));
        }
        Ok(TableOptions {
            format: self.format.map(|format| match format {
                FileFormat::Tsv => Format::Tsv,
                FileFormat::Jsonl => Format::JsonLines,
                FileFormat::Parquet => Format::Parquet,
                FileFormat::Csv | FileFormat::Libsvm | FileFormat::Adjacency => Format::Csv,
            }),
            delimiter: self.delimiter()?,
            header: self.header,
            decimal_comma: self.decimal_comma,
            quotes: self.quotes,
            missing_values: self.missing_values.clone(),
            on_error: self.on_error,
            names,
            like: inputs.and_then(Inputs::layout).cloned(),
            ..TableOptions::default()
        })
    }
}

/// Remarks on what was noticed when a table was read.
pub fn remark_on_source(path: &Path, table: &Table, remarks: &mut Remarks<'_>) {
    let Some(source) = table.source() else { return };
    let path = path.display();
    if !source.layout.is_usual() {
        remarks.push(format!("{path}: {}", source.layout));
    }
    remarks.skipped += source.skipped;
    if source.skipped > 0 {
        let n = grouped(source.skipped as usize);
        remarks.push(format!("{path}: {n} bad rows left out, the first:"));
        remarks.extend(source.first_errors.iter().take(3).map(|error| format!("  {error}")));
    }
    remarks.extend(source.remarks.iter().take(10).map(|remark| format!("{path}: {remark}")));
    if let Some(more) = source.remarks.len().checked_sub(11) {
        remarks.push(format!("{path}: and {} more such remarks", more + 1));
    }
}

/// The place of each row's value among the different values of a column, in ascending order.
///
/// # Errors
/// If there is no such column, or a value is missing.
pub fn ranks(table: &Table, name: &str) -> Result<Vec<u32>> {
    let column = table.column(name)?;
    if let Some(row) = (0..column.len()).find(|&row| column.is_missing(row)) {
        return Err(table.missing(row, name));
    }
    match column {
        Column::Numbers(numbers) => Ok(ranks_of(numbers)),
        Column::Booleans(values) => {
            Ok(values.iter().map(|value| u32::from(*value == Some(true))).collect())
        }
        Column::Words { codes, levels } => {
            let mut order: Vec<u32> = (0..levels.len() as u32).collect();
            order.sort_unstable_by_key(|&code| &levels[code as usize]);
            let mut places = vec![0; levels.len()];
            for (place, code) in (0..).zip(order) {
                places[code as usize] = place;
            }
            Ok(codes.iter().map(|&code| places[code as usize]).collect())
        }
    }
}

/// The place of each number among the different ones.
pub(super) fn ranks_of(numbers: &[f64]) -> Vec<u32> {
    let mut all = numbers.to_vec();
    all.sort_by(f64::total_cmp);
    all.dedup();
    numbers.iter().map(|x| all.partition_point(|other| other < x) as u32).collect()
}
