//! Plain tables: Arrow record batches from CSV, TSV, JSON Lines and Parquet.

use super::dense_text::is_missing;
use super::open::open_decompressed;
use super::{Dense, Missing};
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::io::{BufRead, Read as _};
use std::path::Path;
use std::sync::Arc;

/// Rows per batch.
const BATCH: usize = 8192;

/// The format of a file of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON object a line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// The format that a file name ends in, compression apart: `x.csv`, `x.tsv.gz`, `x.jsonl`,
    /// `x.parquet`.
    ///
    /// # Errors
    /// If the ending is not one of those known.
    pub fn from_path(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        match plain.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "csv" => Ok(Self::Csv),
            "tsv" | "tab" => Ok(Self::Tsv),
            "jsonl" | "ndjson" | "json" => Ok(Self::JsonLines),
            "parquet" | "pq" => Ok(Self::Parquet),
            ending => Err(Error::UnknownName {
                what: "table format",
                name: ending.to_owned(),
                known: "csv, tsv, jsonl, parquet (and .gz or .zst after them)".to_owned(),
            }),
        }
    }
}

/// How to read a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// The format; `None` goes by the file name.
    pub format: Option<TableFormat>,
    /// Whether CSV and TSV have no header; columns are then called `column_1`, `column_2`, ….
    pub no_header: bool,
    /// What separates the cells of CSV; `None` is the comma (the tab for TSV).
    pub separator: Option<u8>,
}

/// A table in memory: a schema and the record batches that have it.
///
/// The types of text formats are found out from the whole file, which is therefore read twice: a
/// column of integers with one fraction in its last row is a column of floats.
///
/// ```
/// use gradus_core::data::{Missing, Table, TableFormat};
/// let text = b"name,size,price\nnail,3,0.5\nscrew,4,\n";
/// let table = Table::from_bytes(text, TableFormat::Csv)?;
/// assert_eq!(table.names(), ["name", "size", "price"]);
/// let x = table.to_dense(&["size", "price"], Missing::Nan)?;
/// assert_eq!(x.row(0), [3.0, 0.5]);
/// assert!(x.row(1)[1].is_nan());
/// # Ok::<(), gradus_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of these batches.
    ///
    /// # Errors
    /// If a batch has another schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        for batch in &batches {
            if batch.schema().fields() != schema.fields() {
                return Err(Error::Shape {
                    what: "columns of a record batch".into(),
                    expected: format!("{:?}", schema.fields()),
                    got: format!("{:?}", batch.schema().fields()),
                });
            }
        }
        Ok(Self { schema, batches })
    }

    /// Reads a file, compressed or not.
    ///
    /// # Errors
    /// If the format is not known or the file is not in it; the message names the file.
    pub fn read(path: impl AsRef<Path>, options: &TableOptions) -> Result<Self> {
        let path = path.as_ref();
        let format = options.format.map_or_else(|| TableFormat::from_path(path), Ok)?;
        if format == TableFormat::Parquet {
            let mut start = [0; 4];
            let mut file = std::fs::File::open(path).map_err(|source| Error::io(path, source))?;
            if file.read_exact(&mut start).is_ok() && &start == b"PAR1" {
                return read_parquet(file, path);
            }
        }
        read_table(&|| open_decompressed(path), path, format, options)
    }

    /// Reads a table from memory, with default options.
    ///
    /// # Errors
    /// If the bytes are not in this format.
    pub fn from_bytes(bytes: &[u8], format: TableFormat) -> Result<Self> {
        Self::from_bytes_with(bytes, &TableOptions { format: Some(format), ..Default::default() })
    }

    /// Reads a table from memory.
    ///
    /// # Errors
    /// If `options` names no format, or the bytes are not in it.
    pub fn from_bytes_with(bytes: &[u8], options: &TableOptions) -> Result<Self> {
        let rule = "must be given for bytes in memory";
        let format = options.format.ok_or_else(|| Error::parameter("format", "none", rule))?;
        let open = || Ok(Box::new(bytes) as Box<dyn BufRead + Send + '_>);
        read_table(&open, Path::new("<memory>"), format, options)
    }

    /// The columns' names and types.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows, in batches.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.schema.fields().len()
    }

    /// The columns' names.
    pub fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The names of the columns that hold numbers or truth values.
    pub fn numeric_names(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        let numeric = fields.filter(|field| is_number(field.data_type()));
        numeric.map(|field| field.name().as_str()).collect()
    }

    /// The column `name`, in one piece for each batch.
    ///
    /// # Errors
    /// If there is no such column; the message lists those there are.
    pub fn column(&self, name: &str) -> Result<Vec<&ArrayRef>> {
        let index = self.schema.index_of(name).map_err(|_| Error::UnknownName {
            what: "column",
            name: name.to_owned(),
            known: self.names().join(", "),
        })?;
        Ok(self.batches.iter().map(|batch| batch.column(index)).collect())
    }

    /// The numbers of column `name`. Text is read as numbers where all of it is.
    ///
    /// # Errors
    /// If there is no such column, a value is missing and `missing` refuses that, or a value is
    /// not a finite number; the message names row (from 1) and column.
    pub fn numbers(&self, name: &str, missing: Missing) -> Result<Vec<f64>> {
        let mut numbers = Vec::with_capacity(self.n_rows());
        for piece in self.column(name)? {
            let row = numbers.len() + 1;
            let fault = |at: usize, what: String| {
                Error::data(format!("row {}, column `{name}`: {what}", row + at))
            };
            let mut push = |at: usize, value: Option<f64>| match (value, missing) {
                (Some(value), _) if value.is_infinite() => {
                    Err(fault(at, value.to_string() + " is not finite"))
                }
                (Some(value), _) if !value.is_nan() => {
                    numbers.push(value);
                    Ok(())
                }
                (_, Missing::Nan) => {
                    numbers.push(f64::NAN);
                    Ok(())
                }
                (_, Missing::Refuse) => Err(fault(at, "missing value".into())),
            };
            if is_number(piece.data_type()) {
                let floats = cast(piece, &DataType::Float64)
                    .map_err(|error| Error::data(format!("column `{name}`: {error}")))?;
                for (at, value) in floats.as_primitive::<Float64Type>().iter().enumerate() {
                    push(at, value)?;
                }
            } else if let Some(texts) = as_text(piece) {
                let texts = texts.as_string::<i32>();
                for (at, text) in texts.iter().enumerate() {
                    let text = text.map(str::trim).filter(|text| !is_missing(text));
                    let value = text.map(str::parse::<f64>).transpose().map_err(|_| {
                        fault(at, format!("`{}` is not a number", text.unwrap_or_default()))
                    })?;
                    push(at, value)?;
                }
            } else if piece.data_type() == &DataType::Null {
                (0..piece.len()).try_for_each(|at| push(at, None))?;
            } else {
                let kind = piece.data_type();
                return Err(Error::data(format!("column `{name}` is of type {kind}, not numbers")));
            }
        }
        Ok(numbers)
    }

    /// The text of column `name`; numbers and dates as they print, `None` where missing.
    ///
    /// # Errors
    /// If there is no such column, or its type has no text form (a list, a record).
    pub fn texts(&self, name: &str) -> Result<Vec<Option<String>>> {
        let mut texts = Vec::with_capacity(self.n_rows());
        for piece in self.column(name)? {
            let piece = cast(piece, &DataType::Utf8)
                .map_err(|error| Error::data(format!("column `{name}`: {error}")))?;
            texts.extend(piece.as_string::<i32>().iter().map(|text| text.map(str::to_owned)));
        }
        Ok(texts)
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
            for (row, number) in self.numbers(name, missing)?.into_iter().enumerate() {
                values[row * n_cols + column] = number;
            }
        }
        Dense::new(n_rows, n_cols, values)
    }
}

fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_number(values),
        kind => kind.is_numeric() || kind == &DataType::Boolean,
    }
}

/// The array as plain text, if it is some kind of text.
fn as_text(piece: &ArrayRef) -> Option<ArrayRef> {
    let kind = match piece.data_type() {
        DataType::Dictionary(_, values) => values,
        kind => kind,
    };
    let is_text = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if is_text { cast(piece, &DataType::Utf8).ok() } else { None }
}

/// Opens the source from its beginning.
type Open<'a> = dyn Fn() -> Result<Box<dyn BufRead + Send + 'a>> + 'a;

fn read_table<'a>(
    open: &Open<'a>,
    name: &Path,
    format: TableFormat,
    options: &TableOptions,
) -> Result<Table> {
    let fault = |error: ArrowError| match error {
        ArrowError::IoError(_, source) => Error::io(name, source),
        other => Error::format(name, other.to_string()),
    };
    match format {
        TableFormat::Parquet => {
            let mut bytes = Vec::new();
            open()?.read_to_end(&mut bytes).map_err(|source| Error::io(name, source))?;
            read_parquet(bytes::Bytes::from(bytes), name)
        }
        TableFormat::JsonLines => {
            let (schema, _) =
                arrow_json::reader::infer_json_schema(open()?, None).map_err(fault)?;
            let schema = Arc::new(schema);
            let reader = arrow_json::ReaderBuilder::new(schema.clone())
                .with_batch_size(BATCH)
                .build(open()?)
                .map_err(fault)?;
            Ok(Table { schema, batches: reader.collect::<Result<_, _>>().map_err(fault)? })
        }
        TableFormat::Csv | TableFormat::Tsv => {
            let usual = if format == TableFormat::Tsv { b'\t' } else { b',' };
            let format = arrow_csv::reader::Format::default()
                .with_header(!options.no_header)
                .with_delimiter(options.separator.unwrap_or(usual));
            let (schema, _) = format.infer_schema(skip_mark(open()?)?, None).map_err(fault)?;
            let schema = Arc::new(schema);
            if schema.fields().is_empty() {
                return Err(Error::format(name, "no columns"));
            }
            let reader = arrow_csv::ReaderBuilder::new(schema.clone())
                .with_format(format)
                .with_batch_size(BATCH)
                .build_buffered(skip_mark(open()?)?)
                .map_err(fault)?;
            Ok(Table { schema, batches: reader.collect::<Result<_, _>>().map_err(fault)? })
        }
    }
}

/// Passes over the byte order mark that spreadsheets put first; it would become part of a name.
fn skip_mark<'a>(mut reader: Box<dyn BufRead + Send + 'a>) -> Result<Box<dyn BufRead + Send + 'a>> {
    let start = reader.fill_buf().map_err(|source| Error::io("<table>", source))?;
    if start.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    Ok(reader)
}

fn read_parquet(
    source: impl parquet::file::reader::ChunkReader + 'static,
    name: &Path,
) -> Result<Table> {
    let fault = |error: String| Error::format(name, error);
    let builder = ParquetRecordBatchReaderBuilder::try_new(source)
        .map_err(|error| fault(error.to_string()))?;
    let schema = builder.schema().clone();
    let reader =
        builder.with_batch_size(BATCH).build().map_err(|error| fault(error.to_string()))?;
    let batches = reader.collect::<Result<_, _>>().map_err(|error| fault(error.to_string()))?;
    Ok(Table { schema, batches })
}

#[cfg(test)]
mod tests;
