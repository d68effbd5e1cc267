//! Parquet files.

use super::detect::{Layout, Need, Role, choose};
use super::number::shown;
use super::options::{Columns, Format, OnError, ReadOptions, ReadSummary};
use super::pipeline::TOLD;
use super::source::Input;
use super::{Sink, Table};
use crate::data::{Id, IdVec};
use crate::{Error, Result};
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::ChunkReader;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Int64Type, SchemaRef, UInt64Type};

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
    let chosen = choose(name, options, need, Some(&names), names.len(), false)?;
    let layout = Layout {
        format: Format::Parquet,
        delimiter: super::blocks::Delimiter::single(b','),
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
        sink(&mut table)?;
    }
    Ok(summary)
}

fn check_type(file: &str, role: Role, name: &str, data: &DataType) -> Result<()> {
    let inner = match data {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    let fits = match role {
        Role::User | Role::Item => {
            inner.is_integer()
                || matches!(inner, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        Role::Rating | Role::Weight => inner.is_numeric() || inner == &DataType::Boolean,
    };
    if fits {
        return Ok(());
    }
    let wanted = if role <= Role::Item { "integers or text" } else { "numbers" };
    let reason = format!("column `{name}` ({}) holds {data}, not {wanted}", role.name());
    Err(Error::format(file, reason))
}

/// One column of a batch, in the one type it is read from.
enum Cells {
    Int(ArrayRef),
    Unsigned(ArrayRef),
    Text(ArrayRef),
    Number(ArrayRef),
}

impl Cells {
    fn new(array: &ArrayRef, role: Role) -> Result<Self, arrow::error::ArrowError> {
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
            (_, DataType::UInt64) => Self::Unsigned(cast(array, &DataType::UInt64)?),
            (_, inner) if inner.is_integer() => Self::Int(cast(array, &DataType::Int64)?),
            _ => Self::Text(cast(array, &DataType::Utf8)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        let (Self::Int(array) | Self::Unsigned(array) | Self::Text(array) | Self::Number(array)) =
            self;
        array.is_null(row)
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
            Self::Number(_) => unreachable!("ids are not read as numbers"),
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
}

fn convert(
    batch: &RecordBatch,
    layout: &Layout,
    file: &str,
    on_error: OnError,
    summary: &mut ReadSummary,
) -> Result<Table> {
    let names = layout.names();
    let mut cells: [Option<Cells>; 4] = Default::default();
    for (position, role) in layout.positions() {
        // The projection keeps the order of the file.
        let at = layout.positions().filter(|&(other, _)| other < position).count();
        let column = Cells::new(batch.column(at), role).map_err(|error| {
            let column = names[role as usize].as_deref().unwrap_or_default();
            Error::format(file, format!("column `{column}`: {error}"))
        })?;
        cells[role as usize] = Some(column);
    }
    let [Some(users), Some(items), values, weights] = cells else {
        unreachable!("every layout has a user and an item")
    };
    if let Some(table) = columns(&users, &items, values.as_ref(), weights.as_ref()) {
        return Ok(table);
    }
    let mut table = Table::default();
    let first = summary.rows + summary.skipped;
    for row in 0..batch.num_rows() {
        let fault = fault(row, [Some(&users), Some(&items), values.as_ref(), weights.as_ref()]);
        if let Some((role, reason)) = fault {
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
        users.push_id(row, &mut table.users);
        items.push_id(row, &mut table.items);
        table.values.extend(values.as_ref().map(|values| values.number(row)));
        table.weights.extend(weights.as_ref().map(|weights| weights.number(row)));
    }
    Ok(table)
}

/// The batch as it stands, if its ids are integers and no row is bad: 20 M rows take 1.2 s so, and
/// 2 s one by one.
fn columns(
    users: &Cells,
    items: &Cells,
    values: Option<&Cells>,
    weights: Option<&Cells>,
) -> Option<Table> {
    let ids = |cells: &Cells| match cells {
        Cells::Int(ids) if ids.null_count() == 0 => {
            Some(IdVec::Int(ids.as_primitive::<Int64Type>().values().to_vec()))
        }
        _ => None,
    };
    let numbers = |cells: Option<&Cells>, least: f32| match cells {
        None => Some(Vec::new()),
        Some(Cells::Number(numbers)) if numbers.null_count() == 0 => {
            let numbers = numbers.as_primitive::<Float32Type>().values();
            let good = numbers.iter().all(|number| number.is_finite() && *number >= least);
            good.then(|| numbers.to_vec())
        }
        Some(_) => None,
    };
    Some(Table {
        users: ids(users)?,
        items: ids(items)?,
        values: numbers(values, f32::MIN)?,
        weights: numbers(weights, 0.0)?,
    })
}

/// What is wrong with a row, if anything.
fn fault(row: usize, cells: [Option<&Cells>; 4]) -> Option<(Role, String)> {
    for (role, cells) in Role::ALL.into_iter().zip(cells) {
        let Some(cells) = cells else { continue };
        if cells.is_null(row) {
            return Some((role, "null".to_owned()));
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
        };
        if let Some(reason) = reason {
            return Some((role, reason));
        }
    }
    None
}
