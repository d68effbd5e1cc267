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
use crate::data::{Id, IdVec, arrow};
use crate::{Error, Result};
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::ChunkReader;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};

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
        n_columns: names.len(),
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
        merged: 0,
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
        Role::User | Role::Item => inner.is_integer() || arrow::is_text(inner),
        Role::Rating | Role::Weight => inner.is_numeric() || inner == &DataType::Boolean,
        Role::Time => {
            inner.is_numeric() || inner.is_temporal() && !is_clock(inner) || arrow::is_text(inner)
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

/// Whether it is a time of day or a length of time, which do not say when.
fn is_clock(data: &DataType) -> bool {
    matches!(
        data,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) | DataType::Interval(_)
    )
}

/// The values of an array whose dictionary, if it has one, is looked up.
fn gather<T: Clone>(
    array: &ArrayRef,
    read: impl Fn(&ArrayRef) -> Option<Vec<Option<T>>>,
) -> Option<Vec<Option<T>>> {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return read(array) };
    let words = read(dictionary.values())?;
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    let word = |(row, key): (usize, usize)| {
        words.get(key).cloned().flatten().filter(|_| !array.is_null(row))
    };
    Some(keys.map(word).collect())
}

fn optional_numbers(array: &ArrayRef) -> Option<Vec<Option<f64>>> {
    let numbers: Vec<f64> = match array.as_boolean_opt() {
        Some(truths) => truths.values().iter().map(|truth| f64::from(u8::from(truth))).collect(),
        None => arrow::numbers(array)?,
    };
    let nulls = |(row, number)| (!array.is_null(row)).then_some(number);
    Some(numbers.into_iter().enumerate().map(nulls).collect())
}

/// A column of times: numbers as they stand, dates and timestamps in seconds, text as in CSV.
fn times(array: &ArrayRef, inner: &DataType) -> Option<Vec<Option<i64>>> {
    if arrow::is_text(inner) {
        let texts = gather(array, arrow::texts)?;
        let parse = |text: Option<String>| text.and_then(|text| time(text.as_bytes()).ok());
        Some(texts.into_iter().map(parse).collect())
    } else if inner.is_integer() {
        gather(array, arrow::integers)
    } else if inner.is_temporal() {
        gather(array, arrow::seconds)
    } else {
        let numbers = gather(array, optional_numbers)?;
        Some(numbers.into_iter().map(|number| number.and_then(whole)).collect())
    }
}

/// One column of a batch, in the one type it is read from.
enum Cells {
    Int(Vec<i64>, Nulls),
    Unsigned(ArrayRef),
    Text(Vec<Option<String>>),
    Number(Vec<f32>, Nulls),
    /// A row that holds no time is null.
    Time(Vec<Option<i64>>),
}

/// Which rows are null; `None` if none is.
type Nulls = Option<Vec<bool>>;

/// The values, and which of them are null.
fn part<T: Copy + Default>(values: Vec<Option<T>>) -> (Vec<T>, Nulls) {
    let nulls = values.iter().any(Option::is_none);
    let nulls = nulls.then(|| values.iter().map(Option::is_none).collect());
    (values.into_iter().map(Option::unwrap_or_default).collect(), nulls)
}

impl Cells {
    fn new(array: &ArrayRef, role: Role) -> Result<Self, String> {
        let inner = match array.data_type() {
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            other => other.clone(),
        };
        let plain = array.null_count() == 0;
        let unread = || format!("an array of type {inner} cannot be read");
        Ok(match (role, &inner, array.data_type()) {
            (Role::Rating | Role::Weight, _, DataType::Float32) if plain => {
                Self::Number(array.as_primitive::<Float32Type>().values().to_vec(), None)
            }
            (Role::Rating | Role::Weight, ..) => {
                let (numbers, nulls) = part(gather(array, optional_numbers).ok_or_else(unread)?);
                Self::Number(numbers.into_iter().map(|number| number as f32).collect(), nulls)
            }
            (Role::Time, ..) => Self::Time(times(array, &inner).ok_or_else(unread)?),
            (_, _, DataType::Int64) if plain => {
                Self::Int(array.as_primitive::<Int64Type>().values().to_vec(), None)
            }
            (_, _, DataType::UInt64) => Self::Unsigned(array.clone()),
            (_, inner, _) if inner.is_integer() => {
                let (ids, nulls) = part(gather(array, arrow::integers).ok_or_else(unread)?);
                Self::Int(ids, nulls)
            }
            _ => Self::Text(gather(array, arrow::texts).ok_or_else(unread)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Int(_, nulls) | Self::Number(_, nulls) => {
                nulls.as_ref().is_some_and(|nulls| nulls[row])
            }
            Self::Unsigned(array) => array.is_null(row),
            Self::Text(texts) => texts[row].is_none(),
            Self::Time(times) => times[row].is_none(),
        }
    }

    /// Appends the id of a row.
    fn push_id(&self, row: usize, ids: &mut IdVec) {
        match self {
            Self::Int(values, _) => ids.push(Id::Int(values[row])),
            Self::Unsigned(array) => {
                let id = array.as_primitive::<UInt64Type>().value(row);
                match i64::try_from(id) {
                    Ok(id) => ids.push(Id::Int(id)),
                    Err(_) => ids.push(Id::Text(&id.to_string())),
                }
            }
            Self::Text(texts) => ids.push(Id::Text(texts[row].as_deref().unwrap_or_default())),
            Self::Number(..) | Self::Time(_) => unreachable!("ids are not read as numbers"),
        }
    }

    fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Text(texts) => texts[row].as_deref(),
            _ => None,
        }
    }

    fn number(&self, row: usize) -> f32 {
        match self {
            Self::Number(values, _) => values[row],
            _ => unreachable!("numbers are read as such"),
        }
    }

    fn time(&self, row: usize) -> i64 {
        match self {
            Self::Time(times) => times[row].unwrap_or_default(),
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
        Some(Cells::Int(ids, None)) => Some(IdVec::Int(ids.clone())),
        _ => None,
    };
    let numbers = |cells: &Option<Cells>, least: f32| match cells {
        None => Some(Vec::new()),
        Some(Cells::Number(numbers, None)) => {
            let good = numbers.iter().all(|number| number.is_finite() && *number >= least);
            good.then(|| numbers.to_vec())
        }
        Some(_) => None,
    };
    let times = match times {
        None => Vec::new(),
        Some(Cells::Time(times)) => times.iter().copied().collect::<Option<_>>()?,
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
