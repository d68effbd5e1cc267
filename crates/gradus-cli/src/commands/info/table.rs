//! What a table holds: the type, the missing values and the range of each column.

use crate::output::{Context, Outcome, Table, grouped};
use gradus_core::dataset::{TableFile, remark_on_source};
use gradus_data::Column;
use serde_json::{Value, json};
use std::path::Path;

/// So many words of a column are shown.
const SHOWN: usize = 4;

/// What there is to say about a column.
struct Summary {
    kind: &'static str,
    missing: usize,
    different: usize,
    /// Least, mean and greatest number.
    range: Option<[f64; 3]>,
    /// The most frequent words, with how often they occur.
    words: Vec<(String, usize)>,
}

fn summary(column: &Column) -> Summary {
    let missing = column.n_missing();
    match column {
        Column::Numbers(values) => {
            let mut known: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
            known.sort_unstable_by(f64::total_cmp);
            let range = known.first().zip(known.last()).map(|(&low, &high)| {
                let mean = known.iter().map(|x| x / known.len() as f64).sum();
                [low, mean, high]
            });
            known.dedup();
            let kind = match known.iter().all(|x| x.fract() == 0.0) {
                _ if known.is_empty() => "empty",
                true => "integer",
                false => "number",
            };
            Summary { kind, missing, different: known.len(), range, words: Vec::new() }
        }
        Column::Booleans(values) => {
            let count = |truth: bool| values.iter().filter(|v| **v == Some(truth)).count();
            let words = vec![("true".to_owned(), count(true)), ("false".to_owned(), count(false))];
            let different = words.iter().filter(|(_, n)| *n > 0).count();
            Summary { kind: "boolean", missing, different, range: None, words }
        }
        Column::Words { codes, levels } => {
            let mut counts: Vec<(String, usize)> = levels.iter().map(|l| (l.clone(), 0)).collect();
            for &code in codes {
                if let Some((_, n)) = counts.get_mut(code as usize) {
                    *n += 1;
                }
            }
            counts.retain(|(_, n)| *n > 0);
            let different = counts.len();
            counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            counts.truncate(SHOWN);
            Summary { kind: "words", missing, different, range: None, words: counts }
        }
    }
}

pub(super) fn run(path: &Path, args: &TableFile, context: Context) -> Outcome {
    let table = args.table(path, None, &[])?;
    context.reading(|remarks| {
        remark_on_source(path, &table, remarks);
        Ok(())
    })?;
    let source = table.source();
    if context.json {
        let columns: Vec<Value> = table
            .columns()
            .iter()
            .map(|(name, column)| {
                let Summary { kind, missing, different, range, words } = summary(column);
                let strays =
                    source.map_or(0, |s| s.strays.iter().filter(|s| s.column == *name).count());
                let mut record = json!({
                    "name": name, "type": kind, "missing": missing, "different": different,
                    "stray": strays,
                });
                if let Some([low, mean, high]) = range {
                    (record["min"], record["mean"], record["max"]) =
                        (low.into(), mean.into(), high.into());
                }
                if kind == "words" || kind == "boolean" {
                    record["most_frequent"] = words.into_iter().collect::<Value>();
                }
                record
            })
            .collect();
        return context.json(&json!({
            "file": path.display().to_string(),
            "rows": table.n_rows(),
            "layout": source.map(|source| &source.layout),
            "skipped": source.map_or(0, |source| source.skipped),
            "remarks": source.map_or(&[][..], |source| &source.remarks),
            "columns": columns,
        }));
    }
    let rows = grouped(table.n_rows());
    let layout = source.map(|source| source.layout.to_string()).unwrap_or_default();
    context.say(format_args!("{rows} rows, {} columns; {layout}", grouped(table.n_cols())))?;
    let mut shown = Table::new(&["", "column", "type", ">missing", ">different", "range or words"]);
    for (at, (name, column)) in table.columns().iter().enumerate() {
        let Summary { kind, missing, different, range, words } = summary(column);
        let what = match range {
            Some([low, mean, high]) => format!("{low} to {high}, mean {mean:.4}"),
            None => {
                let some: Vec<String> =
                    words.iter().map(|(word, n)| format!("{word} ({})", grouped(*n))).collect();
                let more = if different > words.len() { ", …" } else { "" };
                format!("{}{more}", some.join(", "))
            }
        };
        let at = (at + 1).to_string();
        shown.row([at, name.clone(), kind.to_owned(), grouped(missing), grouped(different), what]);
    }
    context.say(shown)
}
