//! Columns of results, written as a table beside those of the file they came from.

use gradus_base::text::csv_field;
use gradus_data::{Column, Id};
use serde_json::Value;
use std::io::Write;

/// Results for all rows of a file; rows without features have none.
pub fn spread(
    columns: Vec<(String, Vec<Value>)>,
    rows: &[u32],
    n: usize,
) -> Vec<(String, Vec<Value>)> {
    if rows.len() == n {
        return columns;
    }
    let spread = |values: Vec<Value>| {
        let mut all = vec![Value::Null; n];
        rows.iter().zip(values).for_each(|(&row, value)| all[row as usize] = value);
        all
    };
    columns.into_iter().map(|(name, values)| (name, spread(values))).collect()
}

/// The columns of the file, then the results; one with the name of a column that is there has a
/// `predicted_` before it.
pub fn beside(
    table: &gradus_data::Table,
    predictions: Vec<(String, Vec<Value>)>,
) -> Vec<(String, Vec<Value>)> {
    let cell = |column: &Column, row: usize| match column {
        Column::Numbers(values) => match values[row] {
            // Whole numbers without a point, as far as they are exact.
            value if value.fract() == 0.0 && value.abs() < 9e15 => Value::from(value as i64),
            value => Value::from(value),
        },
        Column::Booleans(values) => values[row].map_or(Value::Null, Value::Bool),
        column => column.text(row).map_or(Value::Null, Value::from),
    };
    let mut columns: Vec<(String, Vec<Value>)> = table
        .columns()
        .iter()
        .map(|(name, column)| {
            (name.clone(), (0..column.len()).map(|row| cell(column, row)).collect())
        })
        .collect();
    for (mut name, values) in predictions {
        while columns.iter().any(|(known, _)| *known == name) {
            name.insert_str(0, "predicted_");
        }
        columns.push((name, values));
    }
    columns
}

/// CSV with a header, or a JSON object a line.
pub fn write_columns(
    out: &mut impl Write,
    n: usize,
    columns: &[(String, Vec<Value>)],
    json: bool,
) -> std::io::Result<()> {
    if !json {
        let names: Vec<String> =
            columns.iter().map(|(name, _)| quoted(Id::Text(name.as_str()))).collect();
        writeln!(out, "{}", names.join(","))?;
    }
    for row in 0..n {
        if json {
            let line: serde_json::Map<String, Value> =
                columns.iter().map(|(name, values)| (name.clone(), values[row].clone())).collect();
            writeln!(out, "{}", Value::Object(line))?;
            continue;
        }
        for (at, (_, values)) in columns.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match &values[row] {
                Value::String(text) => write!(out, "{comma}{}", quoted(Id::Text(text)))?,
                Value::Null => write!(out, "{comma}")?,
                value => write!(out, "{comma}{value}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// An id as a field of a CSV file.
pub fn quoted(id: Id<'_>) -> String {
    match id {
        Id::Text(text) => csv_field(text).into_owned(),
        id => id.to_string(),
    }
}
