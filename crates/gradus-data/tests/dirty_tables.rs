//! Every file of `crates/gradus/tests/dirty/` is read as `expected.json` there says. The command and the Python package are
//! tested on the same files.

use gradus_data::{Column, Missing, OnError, Table, TableOptions};
use serde_json::Value;
use std::path::Path;

fn options(case: &Value) -> TableOptions {
    let mut options = TableOptions::default();
    if let Some(words) = case["options"]["missing_values"].as_array() {
        options.missing_values =
            words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    if case["options"]["on_error"] == "skip" {
        options.on_error = OnError::Skip;
    }
    options
}

fn check(case: &Value, table: &Table, file: &str) {
    let source = table.source().unwrap();
    if let Some(layout) = case["layout"].as_str() {
        assert_eq!(source.layout.to_string(), layout, "{file}");
    }
    if let Some(remark) = case["remark"].as_str() {
        assert!(source.remarks.iter().any(|r| r.contains(remark)), "{file}: {:?}", source.remarks);
    }
    assert_eq!(source.index.as_deref(), case["index"].as_str(), "{file}");
    assert_eq!(source.skipped, case["skipped"].as_u64().unwrap_or(0), "{file}");
    let columns = case["columns"].as_array().unwrap();
    let names: Vec<&str> = columns.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(table.names(), names, "{file}");
    for expected in columns {
        let name = expected["name"].as_str().unwrap();
        let column = table.column(name).unwrap();
        let kind = match column {
            Column::Numbers(_) => "number",
            Column::Booleans(_) => "boolean",
            Column::Words { .. } => "words",
        };
        assert_eq!(kind, expected["type"], "{file}: {name}");
        let values = expected["values"].as_array().unwrap();
        assert_eq!(column.len(), values.len(), "{file}: {name}");
        for (row, value) in values.iter().enumerate() {
            match value {
                Value::Null => assert!(column.is_missing(row), "{file}: {name}, row {row}"),
                Value::Number(number) => {
                    let numbers = table.numbers(name, Missing::Nan).unwrap();
                    assert_eq!(Some(numbers[row]), number.as_f64(), "{file}: {name}, row {row}");
                }
                Value::Bool(truth) => {
                    assert_eq!(column.text(row).unwrap(), truth.to_string(), "{file}: {name}");
                }
                value => assert_eq!(column.text(row).as_deref(), value.as_str(), "{file}: {name}"),
            }
        }
    }
}

#[test]
fn dirty_files_are_read_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gradus/tests/dirty");
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() >= 45);
    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.retain(|file| file != "expected.json");
    assert_eq!(files.len(), cases.len(), "every file has its expectation");
    for case in &cases {
        let file = case["file"].as_str().unwrap();
        let path = folder.join(file);
        for block in [1 << 20, 5] {
            let options = TableOptions { block, ..options(case) };
            let read = Table::read(&path, &options);
            match case["error"].as_str() {
                Some(part) => {
                    let message = read.map(|_| ()).unwrap_err().to_string();
                    assert!(message.contains(part), "{file}: {message}");
                }
                None => {
                    let table = read.unwrap_or_else(|error| panic!("{file}: {error}"));
                    check(case, &table, file);
                    // A pipe is read as a file is: once, from start to end.
                    let bytes = std::fs::read(&path).unwrap();
                    let piped = Table::read_from(&bytes[..], file, &options).unwrap();
                    assert_eq!(format!("{:?}", piped.columns()), format!("{:?}", table.columns()));
                }
            }
        }
    }
}
