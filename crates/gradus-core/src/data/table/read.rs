//! Reading tables from files.

use super::{Column, Table};
use crate::data::dense_text::is_missing;
use crate::data::open::open_decompressed;
use crate::{Error, Result};
use arrow_schema::{ArrowError, DataType, Schema};
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

impl Table {
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
}

/// The rules of text: blanks around words, words that mean "missing", words that are numbers.
fn from_text(schema: &Schema, table: Table) -> Result<Table> {
    let types = schema.fields().iter().map(|field| (field.name().clone(), field.data_type()));
    let types: std::collections::HashMap<String, &DataType> = types.collect();
    let mut columns = table.columns;
    for (name, column) in &mut columns {
        let Column::Words { codes, levels } = column else { continue };
        if !types[name.as_str()].eq(&DataType::Utf8) {
            continue;
        }
        let word = |code: &u32| {
            let word = levels.get(*code as usize).map(|word| word.trim());
            word.filter(|word| !is_missing(word))
        };
        let words = || codes.iter().map(word);
        let numeric = words().flatten().all(|word| word.parse::<f64>().is_ok());
        *column = if numeric && words().flatten().next().is_some() {
            let parse = |word: &str| word.parse().unwrap_or(f64::NAN);
            Column::Numbers(words().map(|word| word.map_or(f64::NAN, parse)).collect())
        } else {
            Column::from_words(words())?
        };
    }
    Table::from_columns(columns)
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
            let batches = reader.map(|batch| batch.map_err(fault));
            from_text(&schema, Table::from_record_batches(&schema, batches)?)
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
            let batches = reader.map(|batch| batch.map_err(fault));
            from_text(&schema, Table::from_record_batches(&schema, batches)?)
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
    let batches = reader.map(|batch| batch.map_err(|error| fault(error.to_string())));
    Table::from_record_batches(&schema, batches)
}
