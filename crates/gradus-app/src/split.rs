//! Splitting data into files to train and to test on.

use gradus_base::{Error, Result};
use gradus_core::dataset::{Dataset, HoldOut, RANDOM, RatingsFile, Remarks};
use gradus_data::split::rows::{self, RowSplit, stratified_folds, stratified_holdout};
use gradus_data::split::{Amount, ColdUsers, cold_users, folds};
use gradus_data::{CellMode, Libsvm, Ratings, TableRecords};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A split: the file, the scheme and the outputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct SplitRequest {
    /// The ratings, `-` for standard input; or a table.
    pub data: PathBuf,
    /// The reading options; of a table its table alone.
    pub options: RatingsFile,
    /// Whether the rows of any table are split, each kept byte for byte.
    pub rows: bool,
    /// For rows: a column of classes, each of which gets its share on both sides.
    pub target: Option<String>,
    /// The hold-out scheme for ratings; see the schemes of that kind of data.
    pub by: String,
    /// How much is held out: a share below 1, or a number of each user's ratings.
    pub holdout: f64,
    /// Instead: the part that is held out, from 1, and the number of equal random parts.
    pub fold: Option<(usize, usize)>,
    /// Share or number of each cold user's ratings to test on.
    pub cold_test: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for SplitRequest {
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            options: RatingsFile::default(),
            rows: false,
            target: None,
            by: RANDOM.0.to_owned(),
            holdout: 0.1,
            fold: None,
            cold_test: 0.2,
            seed: 0,
        }
    }
}

/// The scheme of ratings that also gives the ratings to fold cold users in by.
pub const COLD: &str = "cold";

/// Data that was split.
pub struct Split {
    /// The name of the units: `ratings` or `rows`.
    pub units: &'static str,
    /// The parts: `train`, `test`, and of cold users `fold_in`.
    pub parts: Vec<Part>,
}

/// A part of the data.
pub struct Part {
    /// `train`, `test` or `fold_in`.
    pub name: &'static str,
    /// The number of units.
    pub count: usize,
    content: Content,
}

enum Content {
    /// Whether they have values, too.
    Ratings(Ratings, bool),
    Rows(Arc<Text>, Vec<u32>),
}

/// A text, and where its rows are.
struct Text {
    bytes: Vec<u8>,
    records: TableRecords,
}

impl Part {
    /// Writes the part as it was read: ratings as CSV, rows byte for byte.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.content {
            Content::Ratings(ratings, rated) => ratings.write_csv(*rated, out),
            Content::Rows(text, rows) => {
                let chosen = rows.iter().map(|&row| &text.records.rows[row as usize]);
                for row in text.records.head.iter().chain(chosen) {
                    out.write_all(&text.bytes[row.clone()])?;
                    out.write_all(b"\n")?;
                }
                Ok(())
            }
        }
    }
}

/// Splits ratings, or the rows of a table.
///
/// # Errors
/// If the data cannot be read, or a part would be empty.
pub fn split(request: &SplitRequest, remarks: &mut Remarks<'_>) -> Result<Split> {
    if let Some((part, of)) = request.fold.filter(|&(part, of)| part == 0 || part > of || of < 2) {
        let rule = "must be I/K with 1 ≤ I ≤ K and K ≥ 2, as in 2/5";
        return Err(Error::data(format!("option `fold` = {part}/{of}: {rule}")));
    }
    if request.rows { rows_of(request, remarks) } else { ratings(request, remarks) }
}

fn ratings(request: &SplitRequest, remarks: &mut Remarks<'_>) -> Result<Split> {
    let (ratings, summary) = request.options.read(&request.data, false, true, remarks)?;
    let (holdout, seed) = (request.holdout, request.seed);
    let (train, test, fold_in) = match (request.fold, request.by.as_str()) {
        (Some((part, of)), _) => {
            let (train, test) = folds(&ratings, of, seed)?.get(part - 1)?;
            (train, test, None)
        }
        (None, COLD) => {
            let cold_test = Amount::from_number(request.cold_test);
            let ColdUsers { train, fold_in, test } =
                cold_users(&ratings, holdout, cold_test, seed)?;
            (train, test, Some(fold_in))
        }
        (None, by) => {
            let HoldOut { train, held_out } = ratings.hold_out(by, holdout, seed)?;
            let ratings = |data: &dyn Dataset| data.of_kind::<Ratings>().cloned();
            (ratings(train.as_ref())?, ratings(held_out.as_ref())?, None)
        }
    };
    let rated = summary.columns.rating.is_some();
    let parts = [("train", Some(train)), ("test", Some(test)), ("fold_in", fold_in)];
    let part = |(name, ratings): (&'static str, Option<Ratings>)| {
        let ratings = ratings?;
        Some(Part { name, count: ratings.len(), content: Content::Ratings(ratings, rated) })
    };
    Ok(Split { units: "ratings", parts: parts.into_iter().filter_map(part).collect() })
}

fn rows_of(request: &SplitRequest, remarks: &mut Remarks<'_>) -> Result<Split> {
    let path = &request.data;
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    let table = &request.options.table;
    let names: Vec<String> = request.target.iter().cloned().collect();
    let mut options = table.options(None, &names)?;
    if is_plain(path) {
        options.cells = CellMode::Line;
    }
    let records = TableRecords::find(&bytes, path, &options)?;
    let classes =
        request.target.as_ref().map(|column| table.classes(path, column, remarks)).transpose()?;
    let n = records.rows.len();
    if let Some(classes) = classes.as_ref().filter(|classes| classes.len() != n) {
        let what = format!("has {n} lines of data and {} rows with a class", classes.len());
        return Err(Error::format(path, what));
    }
    let (holdout, seed) = (request.holdout, request.seed);
    let RowSplit { train, test } = match (request.fold, &classes) {
        (Some((part, of)), Some(classes)) => stratified_folds(classes, of, seed)?.get(part - 1)?,
        (Some((part, of)), None) => rows::folds(n, of, seed)?.get(part - 1)?,
        (None, Some(classes)) => stratified_holdout(classes, holdout, seed)?.0,
        (None, None) => rows::holdout(n, holdout, seed)?,
    };
    let text = Arc::new(Text { bytes, records });
    let part = |(name, rows): (&'static str, Vec<u32>)| Part {
        name,
        count: rows.len(),
        content: Content::Rows(Arc::clone(&text), rows),
    };
    let parts = [("train", train), ("test", test)].map(part);
    Ok(Split { units: "rows", parts: parts.into() })
}

/// Whether every line is a row, without a header and quotes that go on over lines.
fn is_plain(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let mut extensions = [".jsonl", ".ndjson", ".json"].into_iter().chain(Libsvm::EXTENSIONS);
    extensions.any(|extension| name.ends_with(extension))
}
