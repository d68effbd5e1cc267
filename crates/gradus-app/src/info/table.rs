//! The description of a table: the type, the missing values and the range of each column.

use gradus_base::Result;
use gradus_core::dataset::{Remarks, TableFile, remark_on_source};
use gradus_data::{Column, TableLayout};
use serde::Serialize;
use std::path::Path;

/// The number of words of a column that are listed.
const MOST_FREQUENT: usize = 4;

/// The description of a table.
#[derive(Clone, Debug, Serialize)]
pub struct TableInfo {
    /// The file.
    pub file: String,
    /// The number of rows.
    pub rows: usize,
    /// How the file is laid out, of text.
    pub layout: Option<TableLayout>,
    /// Bad rows that were left out.
    pub skipped: u64,
    /// Remarks from reading the file.
    pub remarks: Vec<String>,
    /// The columns, in the order of the file.
    pub columns: Vec<ColumnInfo>,
}

/// The description of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnInfo {
    /// The name of the column.
    pub name: String,
    /// The type of the values: `integer`, `number`, `boolean`, `words`, or `empty`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Missing values.
    pub missing: usize,
    /// Different values.
    pub different: usize,
    /// Cells that were no numbers in a column of numbers, and count as missing.
    pub stray: usize,
    /// The range of a column of numbers.
    #[serde(flatten)]
    pub range: Option<RangeInfo>,
    /// The most frequent words of a column of words, with how often they occur.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "by_word")]
    pub most_frequent: Option<Vec<(String, usize)>>,
}

/// The range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RangeInfo {
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// Counts as a map from their words.
fn by_word<S: serde::Serializer>(
    words: &Option<Vec<(String, usize)>>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(words.iter().flatten().map(|(word, n)| (word, n)))
}

impl ColumnInfo {
    fn of(name: &str, column: &Column, stray: usize) -> Self {
        let missing = column.n_missing();
        let (kind, different, range, most_frequent) = match column {
            Column::Numbers(values) => {
                let mut known: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
                known.sort_unstable_by(f64::total_cmp);
                let range = known.first().zip(known.last()).map(|(&min, &max)| {
                    let mean = known.iter().map(|x| x / known.len() as f64).sum();
                    RangeInfo { min, mean, max }
                });
                known.dedup();
                let kind = match known.iter().all(|x| x.fract() == 0.0) {
                    _ if known.is_empty() => "empty",
                    true => "integer",
                    false => "number",
                };
                (kind, known.len(), range, None)
            }
            Column::Booleans(values) => {
                let count = |truth: bool| values.iter().filter(|v| **v == Some(truth)).count();
                let words =
                    vec![("true".to_owned(), count(true)), ("false".to_owned(), count(false))];
                let different = words.iter().filter(|(_, n)| *n > 0).count();
                ("boolean", different, None, Some(words))
            }
            Column::Words { codes, levels } => {
                let mut counts: Vec<(String, usize)> =
                    levels.iter().map(|level| (level.clone(), 0)).collect();
                for &code in codes {
                    if let Some((_, n)) = counts.get_mut(code as usize) {
                        *n += 1;
                    }
                }
                counts.retain(|(_, n)| *n > 0);
                let different = counts.len();
                counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                counts.truncate(MOST_FREQUENT);
                ("words", different, None, Some(counts))
            }
        };
        Self { name: name.to_owned(), kind, missing, different, stray, range, most_frequent }
    }
}

/// Describes a table.
pub(super) fn info(
    path: &Path,
    options: &TableFile,
    remarks: &mut Remarks<'_>,
) -> Result<TableInfo> {
    let table = options.table(path, None, &[])?;
    remark_on_source(path, &table, remarks);
    let source = table.source();
    let columns = table.columns().iter().map(|(name, column)| {
        let stray = source.map_or(0, |s| s.strays.iter().filter(|s| s.column == *name).count());
        ColumnInfo::of(name, column, stray)
    });
    Ok(TableInfo {
        file: path.display().to_string(),
        rows: table.n_rows(),
        layout: source.map(|source| source.layout.clone()),
        skipped: source.map_or(0, |source| source.skipped),
        remarks: source.map(|source| source.remarks.clone()).unwrap_or_default(),
        columns: columns.collect(),
    })
}
