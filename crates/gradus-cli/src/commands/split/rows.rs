//! The rows of a table, each kept byte for byte.

use super::{SplitArgs, write_all};
use crate::output::{Context, Failure, Outcome, grouped};
use gradus_core::dataset::TableFile;
use gradus_data::split::rows::{RowSplit, folds, holdout, stratified_folds, stratified_holdout};
use gradus_file::output::{Output, OutputFile};
use serde_json::json;
use std::io::Write;
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
    if [&b"PAR1"[..], &[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]]
        .iter()
        .any(|&m| bytes.starts_with(m))
    {
        let rule = "is packed or binary; --rows splits lines of text: unpack it first";
        return Err(gradus::Error::format(path, rule).into());
    }
    let table = args.input.table();
    let plain = is_plain(path);
    let mut records = records(&bytes, !plain);
    let head = if plain || records.is_empty() || !has_header(table, path, args)? {
        None
    } else {
        Some(records.remove(0))
    };
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
    write_all(&files, |out, rows| write(out, head, &records, rows))?;
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

/// Whether the first row holds names: as given, or as the reader of tables finds.
fn has_header(table: &TableFile, path: &Path, args: &SplitArgs) -> Outcome<bool> {
    match table.header {
        Some(header) => Ok(header),
        None => {
            let names: Vec<String> = args.target.iter().cloned().collect();
            let read = table.table(path, None, &names)?;
            Ok(read.source().is_none_or(|source| source.layout.header))
        }
    }
}

/// Whether every line is a row, without a header and quotes that go on over lines.
fn is_plain(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let endings = [".jsonl", ".ndjson", ".json", ".svm", ".libsvm", ".svmlight"];
    endings.iter().any(|ending| name.ends_with(ending))
}

/// The rows of a text, without their ends; blank lines are none.
fn records(bytes: &[u8], quotes: bool) -> Vec<&[u8]> {
    let (mut found, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' if quotes => quoted = !quoted,
            b'\n' if !quoted => {
                found.push(&bytes[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&bytes[start..]);
    let whole = found.into_iter().map(|row: &[u8]| row.strip_suffix(b"\r").unwrap_or(row));
    whole.filter(|row| !row.is_empty()).collect()
}

fn write(
    out: &mut OutputFile,
    head: Option<&[u8]>,
    records: &[&[u8]],
    rows: &[u32],
) -> std::io::Result<()> {
    let chosen = rows.iter().map(|&row| records[row as usize]);
    for row in head.into_iter().chain(chosen) {
        out.write_all(row)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_line_ends_do_not_end_a_row() {
        let text = b"a,b\r\n1,\"x\ny\"\n\n2,\"he said \"\"no\"\"\"";
        let rows = records(text, true);
        assert_eq!(rows, [&b"a,b"[..], b"1,\"x\ny\"", b"2,\"he said \"\"no\"\"\""]);
        assert_eq!(records(b"{\"a\n\n1 2:\"\n", false).len(), 2);
        assert!(records(b"", true).is_empty());
    }
}
