//! Ratings from Parquet files.

use super::blocks::Dialect;
use super::delimiter::Delimiter;
use super::detect::{ByRole, Guess, Layout, Need, Role, choose};
use super::number::shown;
use super::options::{Columns, Format, OnError, ReadOptions, ReadSummary};
use super::pipeline::MOST_REPORTED;
use super::source::Input;
use super::time::{time, whole};
use super::{RatingRows, Sink};
use crate::parquet::{Cells, Field, Kind, ParquetFile, Values};
use crate::{Id, IdVec};
use gradus_base::{Error, Result};

/// Reads a Parquet file into the sink.
pub(super) fn read(
    mut input: Input<'_>,
    options: &ReadOptions,
    need: Need,
    sink: Sink<'_>,
) -> Result<ReadSummary> {
    let (file, bytes) = ParquetFile::open(&mut input)?;
    let name = &input.name;
    let names: Vec<String> = file.fields().iter().map(|field| field.name.clone()).collect();
    let chosen = choose(name, options, need, Some(&names), names.len(), Guess::default())?;
    let layout = Layout {
        format: Format::Parquet,
        dialect: Dialect::new(Delimiter::single(b',')),
        n_columns: names.len(),
        lines_before: 0,
        by_name: true,
        chosen,
    };
    let (fields, roles): (Vec<&Field>, Vec<Role>) =
        layout.positions().map(|(position, role)| (&file.fields()[position], role)).unzip();
    for (field, &role) in fields.iter().zip(&roles) {
        check_kind(name, role, field)?;
    }
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
    let names = layout.names();
    file.read(&fields, |cells| {
        let mut by_role: RowCells = Default::default();
        for ((cells, field), &role) in cells.into_iter().zip(&fields).zip(&roles) {
            by_role[role as usize] = Some(RoleCells::new(cells, field, role));
        }
        let mut rows = convert(by_role, &names, name, options.on_error, &mut summary)?;
        summary.rows += rows.len() as u64;
        sink(&mut rows, 0)
    })?;
    Ok(summary)
}

fn check_kind(file: &str, role: Role, field: &Field) -> Result<()> {
    let kind = &field.kind;
    let (fits, wanted) = match role {
        Role::User | Role::Item => {
            (matches!(kind, Kind::Int | Kind::Unsigned | Kind::Text), "integers or text")
        }
        Role::Rating | Role::Weight => (kind.is_number(), "numbers"),
        Role::Time => (!matches!(kind, Kind::Bool | Kind::Other(_)), "numbers, dates or text"),
    };
    if fits {
        return Ok(());
    }
    let reason = format!("column `{}` ({}) holds {kind}, not {wanted}", field.name, role.name());
    Err(Error::format(file, reason))
}

/// The cells of some rows.
type RowCells = ByRole<Option<RoleCells>>;

/// Some cells of a column, in the type that its role asks for.
enum RoleCells {
    Id(Cells),
    Number(Vec<f32>, Option<Vec<bool>>),
    /// A row that holds no time is `None`.
    Time(Vec<Option<i64>>),
}

impl RoleCells {
    fn new(cells: Cells, field: &Field, role: Role) -> Self {
        match role {
            Role::User | Role::Item => Self::Id(cells),
            Role::Rating | Role::Weight => match cells.values {
                Values::Single(values) => Self::Number(values, cells.valid),
                _ => {
                    let numbers = (0..cells.len()).map(|row| cells.number(row) as f32).collect();
                    Self::Number(numbers, cells.valid)
                }
            },
            Role::Time => {
                Self::Time((0..cells.len()).map(|row| moment(&cells, field, row)).collect())
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Id(cells) => cells.len(),
            Self::Number(values, _) => values.len(),
            Self::Time(times) => times.len(),
        }
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Id(cells) => cells.is_null(row),
            Self::Number(_, valid) => valid.as_ref().is_some_and(|valid| !valid[row]),
            Self::Time(times) => times[row].is_none(),
        }
    }

    /// Appends the id of a row.
    fn push_id(&self, row: usize, ids: &mut IdVec) {
        let Self::Id(cells) = self else { return };
        match &cells.values {
            Values::Int(values) => ids.push(Id::Int(values[row])),
            Values::Unsigned(values) => match i64::try_from(values[row]) {
                Ok(id) => ids.push(Id::Int(id)),
                Err(_) => ids.push(Id::Text(&values[row].to_string())),
            },
            _ => ids.push(Id::Text(cells.text(row).unwrap_or_default())),
        }
    }

    fn number(&self, row: usize) -> Option<f32> {
        match self {
            Self::Number(values, _) => Some(values[row]),
            _ => None,
        }
    }

    fn time(&self, row: usize) -> Option<i64> {
        match self {
            Self::Time(times) => times[row],
            _ => None,
        }
    }
}

/// The time of a row: numbers as they stand, dates and timestamps in seconds, text as in CSV.
fn moment(cells: &Cells, field: &Field, row: usize) -> Option<i64> {
    if cells.is_null(row) {
        return None;
    }
    match &cells.values {
        Values::Int(values) => Some(field.kind.seconds(values[row])),
        Values::Unsigned(values) => i64::try_from(values[row]).ok(),
        Values::Text(_) => time(cells.text(row)?.as_bytes()).ok(),
        Values::Single(_) | Values::Double(_) => whole(cells.number(row)),
    }
}

fn convert(
    cells: RowCells,
    names: &ByRole<Option<String>>,
    file: &str,
    on_error: OnError,
    summary: &mut ReadSummary,
) -> Result<RatingRows> {
    let cells = match columns(cells) {
        Ok(rows) => return Ok(rows),
        Err(cells) => cells,
    };
    let mut rows = RatingRows::default();
    let first = summary.rows + summary.skipped;
    for row in 0..cells.iter().flatten().map(RoleCells::len).max().unwrap_or(0) {
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
            if summary.first_errors.len() < MOST_REPORTED {
                summary.first_errors.push(error.to_string());
            }
            continue;
        }
        let [users, items, values, weights, times] = &*cells;
        users.iter().for_each(|users| users.push_id(row, &mut rows.users));
        items.iter().for_each(|items| items.push_id(row, &mut rows.items));
        rows.values.extend(values.as_ref().and_then(|values| values.number(row)));
        rows.weights.extend(weights.as_ref().and_then(|weights| weights.number(row)));
        rows.times.extend(times.as_ref().and_then(|times| times.time(row)));
    }
    Ok(rows)
}

/// The cells as they stand, if the ids are integers and no row is bad: 20 M rows take 1.2 s so, and 2 s one by one.
fn columns(cells: RowCells) -> Result<RatingRows, Box<RowCells>> {
    let whole_ids = |cells: &Option<RoleCells>| {
        matches!(cells, Some(RoleCells::Id(Cells { values: Values::Int(_), valid: None })))
    };
    let good = |cells: &Option<RoleCells>, least: f32| match cells {
        None => true,
        Some(RoleCells::Number(values, None)) => {
            values.iter().all(|value| value.is_finite() && *value >= least)
        }
        Some(_) => false,
    };
    let timed = |cells: &Option<RoleCells>| match cells {
        None => true,
        Some(RoleCells::Time(times)) => times.iter().all(Option::is_some),
        Some(_) => false,
    };
    let [users, items, values, weights, times] = &cells;
    let plain = whole_ids(users)
        && whole_ids(items)
        && good(values, f32::MIN)
        && good(weights, 0.0)
        && timed(times);
    if !plain {
        return Err(Box::new(cells));
    }
    let [users, items, values, weights, times] = cells;
    let ids = |cells: Option<RoleCells>| match cells {
        Some(RoleCells::Id(Cells { values: Values::Int(values), .. })) => IdVec::Int(values),
        _ => IdVec::new(),
    };
    let numbers = |cells: Option<RoleCells>| match cells {
        Some(RoleCells::Number(values, _)) => values,
        _ => Vec::new(),
    };
    let times = match times {
        Some(RoleCells::Time(times)) => times.into_iter().flatten().collect(),
        _ => Vec::new(),
    };
    Ok(RatingRows {
        users: ids(users),
        items: ids(items),
        values: numbers(values),
        weights: numbers(weights),
        times,
    })
}

/// Returns the fault of a row, if there is one.
fn fault(row: usize, cells: &RowCells) -> Option<(Role, String)> {
    for (role, cells) in Role::ALL.into_iter().zip(cells) {
        let Some(cells) = cells else { continue };
        if cells.is_null(row) {
            let reason = if role == Role::Time { "missing, or not a time" } else { "null" };
            return Some((role, reason.to_owned()));
        }
        let reason = match cells {
            RoleCells::Id(cells) => cells.text(row).and_then(|text| match text {
                "" => Some("the id is empty".to_owned()),
                text if text.contains('\0') => {
                    Some(format!("the id `{}` contains a NUL byte", shown(text.as_bytes())))
                }
                _ => None,
            }),
            RoleCells::Number(values, _) => match values[row] {
                value if !value.is_finite() => Some(format!("`{value}` is not a finite number")),
                value if role == Role::Weight && value < 0.0 => {
                    Some(format!("weight {value} is negative"))
                }
                _ => None,
            },
            RoleCells::Time(_) => None,
        };
        if let Some(reason) = reason {
            return Some((role, reason));
        }
    }
    None
}
