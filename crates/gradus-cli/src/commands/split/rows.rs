//! The rows of a table, each kept byte for byte.

use super::{SplitArgs, write_all};
use crate::output::{Context, Failure, Outcome, grouped};
use gradus_data::split::rows::{RowSplit, folds, holdout, stratified_folds, stratified_holdout};
use gradus_data::{CellMode, TableRecords};
use gradus_file::output::{Output, OutputFile};
use serde_json::json;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

pub(super) fn run(
    args: &SplitArgs,
    fold: Option<(usize, usize)>,
    [to_train, to_test]: [Output; 2],
    context: Context,
) -> Outcome {
    let path = &args.data;
    if path == Path::new("-") {
        return Err(Failure::Usage(
            "--rows: the rows must be in a file, not on standard input".into(),
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| gradus::Error::io(path, error))?;
    let table = args.input.table();
    let names: Vec<String> = args.target.iter().cloned().collect();
    let mut options = table.options(None, &names)?;
    if is_plain(path) {
        options.cells = CellMode::Line;
    }
    let TableRecords { head, rows: records } = TableRecords::find(&bytes, path, &options)?;
    let classes = args
        .target
        .as_ref()
        .map(|column| context.reading(|remarks| table.classes(path, column, remarks)))
        .transpose()?;
    if let Some(classes) = classes.as_ref().filter(|classes| classes.len() != records.len()) {
        let (read, seen) = (classes.len(), records.len());
        let what = format!("has {seen} lines of data and {read} rows with a class");
        return Err(gradus::Error::format(path, what).into());
    }
    let n = records.len();
    let split = match (fold, &classes) {
        (Some((part, of)), Some(classes)) => {
            stratified_folds(classes, of, args.seed)?.get(part - 1)?
        }
        (Some((part, of)), None) => folds(n, of, args.seed)?.get(part - 1)?,
        (None, Some(classes)) => stratified_holdout(classes, args.holdout, args.seed)?.0,
        (None, None) => holdout(n, args.holdout, args.seed)?,
    };
    let RowSplit { train, test } = split;
    let files = [("train", &to_train, &train), ("test", &to_test, &test)];
    write_all(&files, |out, rows| write(out, &bytes, head.as_ref(), &records, rows))?;
    if context.json {
        let record = files.iter().map(|(name, output, rows)| {
            let file = output.path().display().to_string();
            ((*name).to_owned(), json!({"file": file, "rows": rows.len()}))
        });
        return context.json(&serde_json::Value::Object(record.collect()));
    }
    for (_, output, rows) in &files {
        let path = output.path().display();
        context.remark(format_args!("{} rows in {path}", grouped(rows.len())));
    }
    Ok(())
}

/// Whether every line is a row, without a header and quotes that go on over lines.
fn is_plain(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let endings = [".jsonl", ".ndjson", ".json", ".svm", ".libsvm", ".svmlight"];
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Writes rows of a text under its head.
fn write(
    out: &mut OutputFile,
    text: &[u8],
    head: Option<&Range<usize>>,
    records: &[Range<usize>],
    rows: &[u32],
) -> std::io::Result<()> {
    let chosen = rows.iter().map(|&row| &records[row as usize]);
    for row in head.into_iter().chain(chosen) {
        out.write_all(&text[row.clone()])?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
