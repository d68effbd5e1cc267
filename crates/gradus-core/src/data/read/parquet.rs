//! Parquet files.

use super::blocks::Dialect;
use super::delimiter::Delimiter;
use super::detect::{ByRole, Guess, Layout, Need, Role, choose};
use super::number::shown;
use super::options::{Columns, Format, OnError, ReadOptions, ReadSummary};
use super::pipeline::TOLD;
use super::source::Input;
use super::time::{time, whole};
use super::{RatingRows, Sink};
use crate::data::{Id, IdVec};
use crate::{Error, Result};
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::ChunkReader;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};

/// Rows decoded at a time.
const BATCH: usize = 1 << 16;

/// Reads a Parquet file into the sink. The format needs to jump about in the file: an input that
/// cannot (standard input, compressed) is first read into memory as a whole.
pub(super) fn read(
    mut input: Input<'_>,
    options: &ReadOptions,
    need: Need,
    sink: Sink<'_>,
) -> Result<ReadSummary> {
    let name = input.name.clone();
    match input.file.take() {
        Some(file) => {
            let bytes = file.metadata().map_err(|error| Error::io(&name, error))?.len();
            read_from(file, bytes, &name, options, need, sink)
        }
        None => {
            let mut all = Vec::new();
            while !input.fill(&mut all, usize::MAX)? {}
            let size = all.len() as u64;
            read_from(bytes::Bytes::from(all), size, &name, options, need, sink)
        }
    }
}

fn read_from<R: ChunkReader + 'static>(
    input: R,
    bytes: u64,
    name: &str,
    options: &ReadOptions,
    need: Need,
    sink: Sink<'_>,
) -> Result<ReadSummary> {
    let broken = |error: ParquetError| Error::format(name, format!("bad Parquet file: {error}"));
    let metadata = ArrowReaderMetadata::load(&input, Default::default()).map_err(broken)?;
    let schema: SchemaRef = metadata.schema().clone();
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let chosen = choose(name, options, need, Some(&names), names.len(), Guess::default())?;
    let layout = Layout {
        format: Format::Parquet,
        dialect: Dialect::new(Delimiter::single(b',')),
        lines_before: 0,
        by_name: true,
        chosen,
    };
    for (position, role) in layout.positions() {
        check_type(name, role, &names[position], schema.field(position).data_type())?;
    }
    let mask = ProjectionMask::roots(
        metadata.metadata().file_metadata().schema_descr(),
        layout.positions().map(|(position, _)| position),
    );
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata)
        .with_projection(mask)
        .with_batch_size(BATCH)
        .build()
        .map_err(broken)?;
    let mut summary = ReadSummary {
        rows: 0,
        skipped: 0,
        first_errors: Vec::new(),
        bytes,
        seconds: 0.0,
        build_seconds: 0.0,
        format: Format::Parquet,
        columns: Columns::from(&layout),
    };
    for batch in reader {
        let batch =
            batch.map_err(|error| Error::format(name, format!("bad Parquet file: {error}")))?;
        let mut table = convert(&batch, &layout, name, options.on_error, &mut summary)?;
        summary.rows += table.len() as u64;
        sink(&mut table, 0)?;
    }
    Ok(summary)
}

fn check_type(file: &str, role: Role, name: &str, data: &DataType) -> Result<()> {
    let inner = match data {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    let fits = match role {
        Role::User | Role::Item => inner.is_integer() || is_text(inner),
        Role::Rating | Role::Weight => inner.is_numeric() || inner == &DataType::Boolean,
        Role::Time => {
            inner.is_numeric() || inner.is_temporal() && !is_clock(inner) || is_text(inner)
        }
    };
    if fits {
        return Ok(());
    }
    let wanted = match role {
        Role::User | Role::Item => "integers or text",
        Role::Rating | Role::Weight => "numbers",
        Role::Time => "numbers, dates or text",
    };
    let reason = format!("column `{name}` ({}) holds {data}, not {wanted}", role.name());
    Err(Error::format(file, reason))
}

fn is_text(data: &DataType) -> bool {
    matches!(data, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether it is a time of day or a length of time, which do not say when.
fn is_clock(data: &DataType) -> bool {
    matches!(
        data,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) | DataType::Interval(_)
    )
}

/// A column of times: numbers as they stand, dates and timestamps in seconds, text as in CSV.
fn times(array: &ArrayRef, inner: &DataType) -> Result<Int64Array, ArrowError> {
    let whole_units = |array: &ArrayRef, per_second: i64| -> Result<Int64Array, _> {
        let raw = cast(array, &DataType::Int64)?;
        Ok(raw.as_primitive::<Int64Type>().unary(|time| time.div_euclid(per_second)))
    };
    match inner {
        DataType::Timestamp(unit, _) => {
            let per_second = match unit {
                TimeUnit::Second => 1,
                TimeUnit::Millisecond => 1_000,
                TimeUnit::Microsecond => 1_000_000,
                TimeUnit::Nanosecond => 1_000_000_000,
            };
            whole_units(array, per_second)
        }
        DataType::Date64 => whole_units(array, 1_000),
        DataType::Date32 => {
            let days = cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?;
            Ok(days.as_primitive::<Int64Type>().unary(|day| day * 86_400))
        }
        inner if inner.is_integer() => whole_units(array, 1),
        inner if is_text(inner) => {
            let texts = cast(array, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            Ok(texts.iter().map(|text| text.and_then(|text| time(text.as_bytes()).ok())).collect())
        }
        _ => {
            let numbers = cast(array, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<Float64Type>();
            Ok(numbers.iter().map(|number| number.and_then(whole)).collect())
        }
    }
}

/// One column of a batch, in the one type it is read from.
enum Cells {
    Int(ArrayRef),
    Unsigned(ArrayRef),
    Text(ArrayRef),
    Number(ArrayRef),
    /// A row that holds no time is null.
    Time(Int64Array),
}

impl Cells {
    fn new(array: &ArrayRef, role: Role) -> Result<Self, ArrowError> {
        let inner = match array.data_type() {
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            other => other.clone(),
        };
        Ok(match (role, inner) {
            (Role::Rating | Role::Weight, DataType::Float32 | DataType::Float16) => {
                Self::Number(cast(array, &DataType::Float32)?)
            }
            // Decimals have no direct way to `f32`.
            (Role::Rating | Role::Weight, _) => {
                Self::Number(cast(&cast(array, &DataType::Float64)?, &DataType::Float32)?)
            }
            (Role::Time, inner) => Self::Time(times(array, &inner)?),
            (_, DataType::UInt64) => Self::Unsigned(cast(array, &DataType::UInt64)?),
            (_, inner) if inner.is_integer() => Self::Int(cast(array, &DataType::Int64)?),
            _ => Self::Text(cast(array, &DataType::Utf8)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Int(array) | Self::Unsigned(array) | Self::Text(array) | Self::Number(array) => {
                array.is_null(row)
            }
            Self::Time(array) => array.is_null(row),
        }
    }

    /// Appends the id of a row.
    fn push_id(&self, row: usize, ids: &mut IdVec) {
        match self {
            Self::Int(array) => ids.push(Id::Int(array.as_primitive::<Int64Type>().value(row))),
            Self::Unsigned(array) => {
                let id = array.as_primitive::<UInt64Type>().value(row);
                match i64::try_from(id) {
                    Ok(id) => ids.push(Id::Int(id)),
                    Err(_) => ids.push(Id::Text(&id.to_string())),
                }
            }
            Self::Text(array) => ids.push(Id::Text(array.as_string::<i32>().value(row))),
            Self::Number(_) | Self::Time(_) => unreachable!("ids are not read as numbers"),
        }
    }

    fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Text(array) => Some(array.as_string::<i32>().value(row)),
            _ => None,
        }
    }

    fn number(&self, row: usize) -> f32 {
        match self {
            Self::Number(array) => array.as_primitive::<Float32Type>().value(row),
            _ => unreachable!("numbers are read as such"),
        }
    }

    fn time(&self, row: usize) -> i64 {
        match self {
            Self::Time(array) => array.value(row),
            _ => unreachable!("times are read as such"),
        }
    }
}

fn convert(
    batch: &RecordBatch,
    layout: &Layout,
    file: &str,
    on_error: OnError,
    summary: &mut ReadSummary,
) -> Result<RatingRows> {
    let names = layout.names();
    let mut cells: ByRole<Option<Cells>> = Default::default();
    for (position, role) in layout.positions() {
        // The projection keeps the order of the file.
        let at = layout.positions().filter(|&(other, _)| other < position).count();
        let column = Cells::new(batch.column(at), role).map_err(|error| {
            let column = names[role as usize].as_deref().unwrap_or_default();
            Error::format(file, format!("column `{column}`: {error}"))
        })?;
        cells[role as usize] = Some(column);
    }
    if let Some(table) = columns(&cells) {
        return Ok(table);
    }
    let mut table = RatingRows::default();
    let first = summary.rows + summary.skipped;
    for row in 0..batch.num_rows() {
        if let Some((role, reason)) = fault(row, &cells) {
            let error = Error::Row {
                file: file.to_owned(),
                line: first + row as u64 + 1,
                column: names[role as usize].clone(),
                reason,
            };
            if on_error == OnError::Fail {
                return Err(error);
            }
            summary.skipped += 1;
            if summary.first_errors.len() < TOLD {
                summary.first_errors.push(error.to_string());
            }
            continue;
        }
        let [users, items, values, weights, times] = &cells;
        users.iter().for_each(|users| users.push_id(row, &mut table.users));
        items.iter().for_each(|items| items.push_id(row, &mut table.items));
        table.values.extend(values.as_ref().map(|values| values.number(row)));
        table.weights.extend(weights.as_ref().map(|weights| weights.number(row)));
        table.times.extend(times.as_ref().map(|times| times.time(row)));
    }
    Ok(table)
}

/// The batch as it stands, if its ids are integers and no row is bad: 20 M rows take 1.2 s so, and
/// 2 s one by one.
fn columns([users, items, values, weights, times]: &ByRole<Option<Cells>>) -> Option<RatingRows> {
    let ids = |cells: &Option<Cells>| match cells {
        Some(Cells::Int(ids)) if ids.null_count() == 0 => {
            Some(IdVec::Int(ids.as_primitive::<Int64Type>().values().to_vec()))
        }
        _ => None,
    };
    let numbers = |cells: &Option<Cells>, least: f32| match cells {
        None => Some(Vec::new()),
        Some(Cells::Number(numbers)) if numbers.null_count() == 0 => {
            let numbers = numbers.as_primitive::<Float32Type>().values();
            let good = numbers.iter().all(|number| number.is_finite() && *number >= least);
            good.then(|| numbers.to_vec())
        }
        Some(_) => None,
    };
    let times = match times {
        None => Vec::new(),
        Some(Cells::Time(times)) if times.null_count() == 0 => times.values().to_vec(),
        Some(_) => return None,
    };
    Some(RatingRows {
        users: ids(users)?,
        items: ids(items)?,
        values: numbers(values, f32::MIN)?,
        weights: numbers(weights, 0.0)?,
        times,
    })
}

/// What is wrong with a row, if anything.
fn fault(row: usize, cells: &ByRole<Option<Cells>>) -> Option<(Role, String)> {
    for (role, cells) in Role::ALL.into_iter().zip(cells) {
        let Some(cells) = cells else { continue };
        if cells.is_null(row) {
            let reason = if role == Role::Time { "missing, or not a time" } else { "null" };
            return Some((role, reason.to_owned()));
        }
        let reason = match role {
            Role::User | Role::Item => cells.text(row).and_then(|text| match text {
                "" => Some("the id is empty".to_owned()),
                text if text.contains('\0') => {
                    Some(format!("the id `{}` contains a NUL byte", shown(text.as_bytes())))
                }
                _ => None,
            }),
            Role::Rating | Role::Weight => match cells.number(row) {
                value if !value.is_finite() => Some(format!("`{value}` is not a finite number")),
                value if role == Role::Weight && value < 0.0 => {
                    Some(format!("weight {value} is negative"))
                }
                _ => None,
            },
            Role::Time => None,
        };
        if let Some(reason) = reason {
            return Some((role, reason));
        }
    }
    None
}
