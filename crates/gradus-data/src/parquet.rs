//! Columns of a Parquet file, decoded without Arrow.
//!
//! Arrow's crates take longer to build than all of gradus, for one thing only: to turn the pages of a column into
//! numbers or text. The `parquet` crate does that by itself, column chunk by column chunk.

use super::read::source::Input;
use super::table::{Column, Interner, MISSING_WORD};
use gradus_base::{Error, Result, parallel};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows decoded at a time: enough to keep the threads busy, few enough to bound the memory.
const BATCH: usize = 1 << 18;

/// The meaning of the cells of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Unsigned,
    Float,
    Text,
    /// Days since 1970.
    Date,
    /// Parts of a second since 1970, and whether they are in UTC.
    Timestamp {
        per_second: i64,
        utc: bool,
    },
    /// Anything else (a list, a record, a time of day), by the name that messages use.
    Other(String),
}

impl Kind {
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Bool | Self::Int | Self::Unsigned | Self::Float)
    }

    /// Seconds since 1970 of a stored point in time.
    pub(crate) fn seconds(&self, stored: i64) -> i64 {
        match self {
            Self::Date => stored.saturating_mul(86_400),
            Self::Timestamp { per_second, .. } => stored.div_euclid(*per_second),
            _ => stored,
        }
    }

    /// A stored point in time in the form of ISO 8601.
    fn moment(&self, stored: i64) -> String {
        let seconds = self.seconds(stored);
        let (year, month, day) = super::read::civil(seconds.div_euclid(86_400));
        let date = format!("{year:04}-{month:02}-{day:02}");
        let Self::Timestamp { per_second, utc } = self else { return date };
        let at = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (at / 3600, at / 60 % 60, at % 60);
        let part = match stored.rem_euclid(*per_second) {
            0 => String::new(),
            part => {
                let digits = per_second.ilog10() as usize;
                format!(".{part:0digits$}").trim_end_matches('0').to_owned()
            }
        };
        let zone = if *utc { "Z" } else { "" };
        format!("{date}T{hour:02}:{minute:02}:{second:02}{part}{zone}")
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bool => "booleans",
            Self::Int | Self::Unsigned => "integers",
            Self::Float => "numbers",
            Self::Text => "text",
            Self::Date => "dates",
            Self::Timestamp { .. } => "timestamps",
            Self::Other(name) => name,
        })
    }
}

/// A column of the file.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The position among the leaves of the schema.
    leaf: usize,
    /// The divisor of stored integers of a decimal; [`HALF`] for numbers in half precision.
    divisor: i64,
    /// The level of a cell that holds a value; 0 if all do.
    optional: i16,
    /// Whether pandas wrote it as a category: its values are words, whatever they look like.
    category: bool,
}

/// Stands for a divisor where numbers are stored in half precision.
const HALF: i64 = -1;

/// The values of some rows of a column; those of missing cells mean nothing.
#[derive(Debug)]
pub(crate) enum Values {
    /// Integers, booleans, and points in time as they are stored.
    Int(Vec<i64>),
    Unsigned(Vec<u64>),
    Single(Vec<f32>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Unsigned(values) => values.len(),
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }
}

/// Some cells of a column.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) values: Values,
    /// Whether each cell holds a value; `None` if all do.
    pub(crate) valid: Option<Vec<bool>>,
}

impl Cells {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.valid.as_ref().is_some_and(|valid| !valid[row])
    }

    /// The cell as a number, NaN if it is missing or text.
    pub(crate) fn number(&self, row: usize) -> f64 {
        if self.is_null(row) {
            return f64::NAN;
        }
        match &self.values {
            Values::Int(values) => values[row] as f64,
            Values::Unsigned(values) => values[row] as f64,
            Values::Single(values) => values[row].into(),
            Values::Double(values) => values[row],
            Values::Text(_) => f64::NAN,
        }
    }

    /// The text of the cell, if the column holds text.
    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        match &self.values {
            // Checked when it was decoded.
            Values::Text(values) if !self.is_null(row) => values[row].as_utf8().ok(),
            _ => None,
        }
    }
}

/// An open Parquet file.
pub(crate) struct ParquetFile {
    name: String,
    reader: Box<dyn FileReader>,
    fields: Vec<Field>,
}

impl ParquetFile {
    /// Opens the file behind an input. The format needs to jump about in the file: an input that cannot (a pipe,
    /// a compressed file) is first read into memory as a whole. Gives the number of bytes, too.
    pub(crate) fn open(input: &mut Input<'_>) -> Result<(Self, u64)> {
        let name = input.name.clone();
        match input.file.take() {
            Some(file) => {
                let bytes = file.metadata().map_err(|error| Error::io(&name, error))?.len();
                Ok((Self::new(SharedFile { file: Arc::new(file), bytes }, &name)?, bytes))
            }
            None => {
                let mut all = Vec::new();
                while !input.fill(&mut all, usize::MAX)? {}
                let bytes = all.len() as u64;
                Ok((Self::new(bytes::Bytes::from(all), &name)?, bytes))
            }
        }
    }

    fn new(input: impl ChunkReader + 'static, name: &str) -> Result<Self> {
        let reader = guarded(name, || SerializedFileReader::new(input))?;
        let metadata = reader.metadata().file_metadata();
        let frame = Frame::new(metadata.key_value_metadata());
        let schema = metadata.schema_descr();
        let mut fields: Vec<Field> = Vec::new();
        for (leaf, column) in schema.columns().iter().enumerate() {
            let root = schema.get_column_root(leaf);
            let name = root.name().to_owned();
            if frame.index.contains(&name) {
                continue;
            }
            let plain = root.is_primitive() && column.max_rep_level() == 0;
            if !plain && fields.last().is_some_and(|last| last.name == name) {
                // Another leaf of a list or a record: they are one column.
                continue;
            }
            let (kind, divisor) = match plain {
                true => meaning(column),
                false => (Kind::Other("lists or records".into()), 1),
            };
            let category = frame.categories.contains(&name);
            let optional = column.max_def_level();
            fields.push(Field { name, kind, leaf, divisor, optional, category });
        }
        Ok(Self { name: name.to_owned(), reader: Box::new(reader), fields })
    }

    /// The columns in file order, but for the index of a pandas frame.
    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Decodes some columns, a batch of rows after the other. The cells come in the order of `fields`.
    pub(crate) fn read(
        &self,
        fields: &[&Field],
        mut take: impl FnMut(Vec<Cells>) -> Result<()>,
    ) -> Result<()> {
        let mut before = 0;
        for group in 0..self.reader.num_row_groups() {
            let rows = self.reader.metadata().row_group(group).num_rows();
            let mut rows = usize::try_from(rows).unwrap_or(0);
            let reader = guarded(&self.name, || self.reader.get_row_group(group))?;
            let columns = fields
                .iter()
                .map(|field| guarded(&self.name, || reader.get_column_reader(field.leaf)));
            let mut columns: Vec<_> = columns.collect::<Result<_>>()?;
            while rows > 0 {
                let n = rows.min(BATCH);
                take(parallel::try_map(columns.iter_mut().zip(fields), |(column, field)| {
                    self.decode(column, field, n, before)
                })?)?;
                rows -= n;
                before += n;
            }
        }
        Ok(())
    }

    /// The next `n` cells of a column.
    fn decode(
        &self,
        column: &mut ColumnReader,
        field: &Field,
        n: usize,
        before: usize,
    ) -> Result<Cells> {
        let optional = field.optional;
        let integers = |values: Vec<i64>| match field.kind {
            Kind::Float => {
                let number = |value: i64| value as f64 / field.divisor as f64;
                Values::Double(values.into_iter().map(number).collect())
            }
            Kind::Unsigned => Values::Unsigned(values.into_iter().map(|x| x as u64).collect()),
            _ => Values::Int(values),
        };
        let (values, valid) = match column {
            ColumnReader::BoolColumnReader(reader) => {
                let (values, valid) = guarded(&self.name, || spaced(reader, n, optional, false))?;
                (Values::Int(values.into_iter().map(i64::from).collect()), valid)
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let (values, valid) = guarded(&self.name, || spaced(reader, n, optional, 0))?;
                let widen = |value: i32| match field.kind {
                    // A negative number is the upper half of an unsigned one.
                    Kind::Unsigned => i64::from(value as u32),
                    _ => i64::from(value),
                };
                (integers(values.into_iter().map(widen).collect()), valid)
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let (values, valid) = guarded(&self.name, || spaced(reader, n, optional, 0))?;
                (integers(values), valid)
            }
            ColumnReader::Int96ColumnReader(reader) => {
                let (values, valid) =
                    guarded(&self.name, || spaced(reader, n, optional, Int96::new()))?;
                (Values::Int(values.iter().map(Int96::to_nanos).collect()), valid)
            }
            ColumnReader::FloatColumnReader(reader) => {
                let (values, valid) = guarded(&self.name, || spaced(reader, n, optional, 0.0))?;
                (Values::Single(values), valid)
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let (values, valid) = guarded(&self.name, || spaced(reader, n, optional, 0.0))?;
                (Values::Double(values), valid)
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let absent = ByteArray::from(Vec::new());
                let (values, valid) = guarded(&self.name, || spaced(reader, n, optional, absent))?;
                (self.bytes(field, values, before)?, valid)
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                let absent = FixedLenByteArray::from(ByteArray::from(Vec::new()));
                let (values, valid) = guarded(&self.name, || spaced(reader, n, optional, absent))?;
                let values = values.into_iter().map(ByteArray::from).collect();
                (self.bytes(field, values, before)?, valid)
            }
        };
        if values.len() != n {
            let reason =
                format!("bad Parquet file: column `{}` ends before the others", field.name);
            return Err(Error::format(&self.name, reason));
        }
        Ok(Cells { values, valid })
    }

    /// Cells that are stored as bytes: text, decimals or numbers in half precision.
    fn bytes(&self, field: &Field, cells: Vec<ByteArray>, before: usize) -> Result<Values> {
        if field.kind == Kind::Float {
            let number = |cell: &ByteArray| match (cell.data(), field.divisor) {
                ([low, high], HALF) => half(u16::from_le_bytes([*low, *high])),
                (bytes, divisor) => big_endian(bytes) / divisor as f64,
            };
            return Ok(Values::Double(cells.iter().map(number).collect()));
        }
        if let Some(row) = cells.iter().position(|cell| cell.as_utf8().is_err()) {
            return Err(Error::Row {
                file: self.name.clone(),
                line: (before + row) as u64 + 1,
                column: Some(field.name.clone()),
                reason: "the text is not UTF-8".into(),
            });
        }
        Ok(Values::Text(cells))
    }

    /// The columns of the whole file under their names, and remarks on those that hold neither numbers nor words.
    pub(crate) fn columns(&self) -> Result<(Vec<NamedColumn>, Vec<String>)> {
        let readable = |field: &&Field| !matches!(field.kind, Kind::Other(_));
        let fields: Vec<&Field> = self.fields.iter().filter(readable).collect();
        let mut growing: Vec<Growing> = fields.iter().map(|field| Growing::new(field)).collect();
        self.read(&fields, |cells| {
            let pairs = growing.iter_mut().zip(&fields).zip(cells);
            let pushed =
                parallel::try_map(pairs, |((column, field), cells)| column.push(field, cells));
            pushed.map(|_| ())
        })?;
        let remarks =
            self.fields.iter().filter(|field| !readable(field)).map(|field| {
                format!("column `{}` is left out: it holds {}", field.name, field.kind)
            });
        let columns = fields.iter().zip(growing);
        let columns = columns.map(|(field, column)| (field.name.clone(), column.finish()));
        Ok((columns.collect(), remarks.collect()))
    }
}

/// A column of a table under its name.
type NamedColumn = (String, Column);

/// A column of a table that grows batch by batch.
enum Growing {
    Numbers(Vec<f64>),
    Booleans(Vec<Option<bool>>),
    Words { codes: Vec<u32>, interner: Interner },
}

impl Growing {
    fn new(field: &Field) -> Self {
        match field.kind {
            Kind::Bool if !field.category => Self::Booleans(Vec::new()),
            ref kind if kind.is_number() && !field.category => Self::Numbers(Vec::new()),
            _ => Self::Words { codes: Vec::new(), interner: Interner::default() },
        }
    }

    fn push(&mut self, field: &Field, cells: Cells) -> Result<()> {
        let rows = 0..cells.len();
        match self {
            Self::Numbers(numbers) => match cells {
                Cells { values: Values::Double(values), valid: None } if numbers.is_empty() => {
                    *numbers = values;
                }
                cells => numbers.extend(rows.map(|row| cells.number(row))),
            },
            Self::Booleans(values) => values
                .extend(rows.map(|row| (!cells.is_null(row)).then(|| cells.number(row) != 0.0))),
            Self::Words { codes, interner } => {
                codes.reserve(rows.len());
                for row in rows {
                    codes.push(match &cells.values {
                        _ if cells.is_null(row) => MISSING_WORD,
                        Values::Text(_) => interner.code(cells.text(row).unwrap_or_default())?,
                        Values::Int(values) => match field.kind {
                            Kind::Date | Kind::Timestamp { .. } => {
                                interner.code(&field.kind.moment(values[row]))?
                            }
                            Kind::Bool => {
                                interner.code(["false", "true"][(values[row] != 0) as usize])?
                            }
                            _ => interner.code(&values[row].to_string())?,
                        },
                        Values::Unsigned(values) => interner.code(&values[row].to_string())?,
                        Values::Single(values) => interner.code(&values[row].to_string())?,
                        Values::Double(values) => interner.code(&values[row].to_string())?,
                    });
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Column {
        match self {
            Self::Numbers(values) => Column::Numbers(values),
            Self::Booleans(values) => Column::Booleans(values),
            Self::Words { codes, interner } => {
                Column::Words { codes, levels: interner.into_levels() }
            }
        }
    }
}

/// The notes of pandas about the frame that a file was written from.
#[derive(Default)]
struct Frame {
    /// The columns that hold the index.
    index: Vec<String>,
    /// The columns that are categories.
    categories: Vec<String>,
}

impl Frame {
    fn new(notes: Option<&Vec<parquet::file::metadata::KeyValue>>) -> Self {
        let note = notes.into_iter().flatten().find(|note| note.key == "pandas");
        let text = note.and_then(|note| note.value.as_deref()).unwrap_or_default();
        let Ok(frame) = serde_json::from_str::<serde_json::Value>(text) else {
            return Self::default();
        };
        let list = |key: &str| frame[key].as_array().cloned().unwrap_or_default();
        // A range is noted as an object and stored nowhere.
        let index = list("index_columns")
            .iter()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect();
        let categories = list("columns")
            .iter()
            .filter(|column| column["pandas_type"] == "categorical")
            .filter_map(|column| {
                let name = column["field_name"].as_str().or(column["name"].as_str());
                name.map(str::to_owned)
            })
            .collect();
        Self { index, categories }
    }
}

/// Calls the decoder, which trusts lengths in damaged pages and may panic: that is an error of the file.
fn guarded<T>(name: &str, decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    let bad = |reason: String| Error::format(name, format!("bad Parquet file: {reason}"));
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| bad(error.to_string())),
        Err(_) => Err(bad("a page does not hold what its header says".to_owned())),
    }
}

/// A file that several threads read at places of their own. (`File` as the `parquet` crate takes it has one position
/// for all.)
struct SharedFile {
    file: Arc<File>,
    bytes: u64,
}

/// A reader of a [`SharedFile`] with a position of its own.
struct Positioned {
    file: Arc<File>,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&*self.file, buffer, self.at)?;
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(&*self.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for SharedFile {
    type T = io::BufReader<Positioned>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(Positioned { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} are not there")));
        }
        let mut bytes = vec![0; length];
        Positioned { file: self.file.clone(), at: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Returns the meaning of a column, and the divisor of its stored integers.
fn meaning(column: &ColumnDescriptor) -> (Kind, i64) {
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    };
    let timestamp = |per_second, utc| (Kind::Timestamp { per_second, utc }, 1);
    let other = |name: &str| (Kind::Other(name.to_owned()), 1);
    let scaled = || {
        let scale = u32::try_from(column.type_scale()).unwrap_or(0);
        match 10i64.checked_pow(scale) {
            Some(divisor) => (Kind::Float, divisor),
            None => (Kind::Other(format!("decimals with {scale} places")), 1),
        }
    };
    let by_logical = column.logical_type_ref().and_then(|logical| {
        Some(match logical {
            LogicalType::String | LogicalType::Enum | LogicalType::Json => (Kind::Text, 1),
            LogicalType::Decimal(_) => scaled(),
            LogicalType::Date => (Kind::Date, 1),
            LogicalType::Timestamp(time) => {
                timestamp(per_second(&time.unit), time.is_adjusted_to_u_t_c)
            }
            LogicalType::Time(_) => other("times of day"),
            LogicalType::Integer(int) if !int.is_signed => (Kind::Unsigned, 1),
            LogicalType::Integer(_) => (Kind::Int, 1),
            LogicalType::Float16 => (Kind::Float, HALF),
            LogicalType::Uuid | LogicalType::Bson => other("bytes"),
            _ => return None,
        })
    });
    let by_converted = || {
        Some(match column.converted_type() {
            ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => (Kind::Text, 1),
            ConvertedType::DECIMAL => scaled(),
            ConvertedType::DATE => (Kind::Date, 1),
            ConvertedType::TIMESTAMP_MILLIS => timestamp(1_000, true),
            ConvertedType::TIMESTAMP_MICROS => timestamp(1_000_000, true),
            ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS | ConvertedType::INTERVAL => {
                other("times of day")
            }
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => (Kind::Unsigned, 1),
            _ => return None,
        })
    };
    by_logical.or_else(by_converted).unwrap_or_else(|| match column.physical_type() {
        Physical::BOOLEAN => (Kind::Bool, 1),
        Physical::INT32 | Physical::INT64 => (Kind::Int, 1),
        Physical::INT96 => timestamp(1_000_000_000, false),
        Physical::FLOAT | Physical::DOUBLE => (Kind::Float, 1),
        Physical::BYTE_ARRAY => (Kind::Text, 1),
        Physical::FIXED_LEN_BYTE_ARRAY => other("bytes"),
    })
}

/// A value a row, and which rows hold one; `None` if all do.
type Spaced<T> = (Vec<T>, Option<Vec<bool>>);

/// The next `n` cells of a column chunk, `absent` where there is no value, and which of them hold one.
fn spaced<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n: usize,
    optional: i16,
    absent: T::T,
) -> Result<Spaced<T::T>, ParquetError> {
    let (mut values, mut levels) = (Vec::with_capacity(n), Vec::new());
    let mut read = 0;
    while read < n {
        let levels = (optional > 0).then_some(&mut levels);
        let (records, _, _) = reader.read_records(n - read, levels, None, &mut values)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    if optional == 0 || values.len() == levels.len() {
        return Ok((values, None));
    }
    let mut dense = values.into_iter();
    let valid: Vec<bool> = levels.iter().map(|&level| level == optional).collect();
    let spread = valid.iter().map(|&there| match there {
        true => dense.next().unwrap_or_else(|| absent.clone()),
        false => absent.clone(),
    });
    Ok((spread.collect(), Some(valid)))
}

/// A two's complement number, the most significant byte first.
fn big_endian(bytes: &[u8]) -> f64 {
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { -1.0 } else { 0.0 };
    bytes.iter().fold(sign, |number, &byte| number * 256.0 + f64::from(byte))
}

/// A number in half precision.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
