//! Columns of results, written as a table.

use gradus_app::predict::RowsAnswer;
use gradus_base::text::csv_field;
use gradus_data::Id;
use serde_json::Value;
use std::io::Write;

/// CSV with a header, or a JSON object a line.
pub fn write_columns(out: &mut impl Write, answer: &RowsAnswer, json: bool) -> std::io::Result<()> {
    let (n, columns) = (answer.rows, &answer.columns);
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
