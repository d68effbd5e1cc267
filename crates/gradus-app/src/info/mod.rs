//! The content of a file: a model, a checkpoint, a table or ratings.

mod table;

pub use table::{ColumnInfo, RangeInfo, TableInfo};

use crate::App;
use gradus::linear::LinearModel;
use gradus::page::{largest_coefficients, linear_model, score_names};
use gradus_base::Result;
use gradus_core::dataset::{RatingsFile, Remarks};
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict as _;
use gradus_core::report::Report;
use gradus_data::rating_columns;
use gradus_file::Reader;
use gradus_file::output::FileKind;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The file to describe.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InfoRequest {
    /// A model, a checkpoint, a table or a file of ratings.
    pub file: PathBuf,
    /// Whether to read a model or checkpoint to its end and compare everything with its checksums.
    #[serde(default)]
    pub verify: bool,
    /// Whether to take the file as a table, even if it could be one of ratings.
    #[serde(default)]
    pub table: bool,
    /// How a table or a file of ratings is read.
    #[serde(default)]
    pub options: RatingsFile,
}

/// The content of a file.
#[derive(Serialize)]
#[serde(untagged)]
pub enum InfoAnswer {
    /// Whether a model or checkpoint is as it was written.
    Verified(VerifiedInfo),
    /// A checkpoint.
    Checkpoint(CheckpointInfo),
    /// A model.
    Model(Box<ModelInfo>),
    /// A table.
    Table(TableInfo),
    /// Ratings.
    Ratings(RatingsInfo),
}

/// A file that was compared with its checksums.
#[derive(Clone, Debug, Serialize)]
pub struct VerifiedInfo {
    /// The file.
    pub file: String,
    /// The kind of model.
    pub kind: String,
    /// The number of tensors.
    pub tensors: usize,
    /// Whether there were checksums to compare with; early versions wrote none.
    pub verified: bool,
}

/// The checkpoint of a fit.
#[derive(Clone, Debug, Serialize)]
pub struct CheckpointInfo {
    /// The kind of model that is fitted.
    pub checkpoint: String,
    /// The file.
    pub file: String,
    /// The start that the fit is in, from 0.
    pub restart: Value,
    /// Iterations done in it.
    pub iteration: Value,
    /// The parameters.
    pub params: Map<String, Value>,
}

/// A model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelInfo {
    /// The kind of model.
    pub model: &'static str,
    /// The file, if it is in one.
    pub file: Option<String>,
    /// The capabilities of the model.
    pub capabilities: Vec<&'static str>,
    /// The shape of the model in a few words and numbers.
    pub summary: Map<String, Value>,
    /// The parameters of the model.
    pub params: Map<String, Value>,
    /// The report of the fit.
    pub report: Report,
    /// The number of titles kept beside it, if any are.
    pub titles: Option<usize>,
    /// The coefficients of a linear model.
    pub coefficients: Option<Coefficients>,
}

/// The coefficients of a linear model that are not 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients {
    /// The features that have some, the largest coefficient first.
    pub features: Vec<String>,
    /// The number of all features.
    pub n_features: usize,
    /// The coefficients of each score (of a target or a class).
    pub scores: Vec<ScoreCoefficients>,
}

/// The coefficients of one score of a linear model.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreCoefficients {
    /// The target, or the class that the score is in favour of.
    pub name: String,
    /// The score where all features are 0.
    pub intercept: f64,
    /// One for each of [`Coefficients::features`].
    pub values: Vec<f64>,
}

impl Serialize for Coefficients {
    /// A list of scores, each with its coefficients by the names of the features.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Score<'a> {
            name: &'a str,
            intercept: f64,
            coefficients: Map<String, Value>,
        }
        serializer.collect_seq(self.scores.iter().map(|score| Score {
            name: &score.name,
            intercept: score.intercept,
            coefficients: {
                let values = score.values.iter().map(|&value| Value::from(value));
                self.features.iter().cloned().zip(values).collect()
            },
        }))
    }
}

impl Coefficients {
    fn of(model: &LinearModel) -> Self {
        let (names, w) = (model.inputs().feature_names(), model.coefficients());
        let (order, _) = largest_coefficients(model, usize::MAX);
        let score = |(at, name): (usize, String)| ScoreCoefficients {
            name,
            intercept: model.intercepts()[at],
            values: order.iter().map(|&feature| w[(at, feature)]).collect(),
        };
        let scores = score_names(model).into_iter().enumerate().take(w.n_rows());
        Self {
            features: order.iter().map(|&feature| names[feature].clone()).collect(),
            n_features: w.n_cols(),
            scores: scores.map(score).collect(),
        }
    }
}

/// Ratings.
#[derive(Clone, Debug, Serialize)]
pub struct RatingsInfo {
    /// The file.
    pub file: String,
    /// The number of users.
    pub users: usize,
    /// The number of items.
    pub items: usize,
    /// The number of ratings.
    pub ratings: usize,
    /// The share of all pairs of user and item that is rated.
    pub density: f64,
    /// The smallest rating.
    pub min: f32,
    /// The mean of the ratings.
    pub mean: f64,
    /// The largest rating.
    pub max: f32,
    /// Bad rows that were left out.
    pub skipped: u64,
    /// How long reading took.
    pub load_seconds: f64,
}

impl App {
    /// Describes a file by its content.
    ///
    /// # Errors
    /// If the file cannot be read as what it seems to be.
    pub fn info(&self, request: &InfoRequest, remarks: &mut Remarks<'_>) -> Result<InfoAnswer> {
        let path = &request.file;
        let kind = FileKind::of(path)?;
        let named = path.extension().is_some_and(|extension| extension == "gradus");
        if request.verify {
            return verify(path).map(InfoAnswer::Verified);
        }
        if kind == Some(FileKind::Checkpoint) {
            return checkpoint(path).map(InfoAnswer::Checkpoint);
        }
        if kind == Some(FileKind::Model) || named || gradus::text::is_fasttext(path) {
            let model = model(&self.registry.load(path)?, Some(path));
            return Ok(InfoAnswer::Model(Box::new(model)));
        }
        // A pipe cannot be read twice.
        let guess = !request.options.says_ratings() && path.is_file();
        if request.table || guess && !is_ratings(request) {
            return table::info(path, &request.options.table, remarks).map(InfoAnswer::Table);
        }
        ratings(request, remarks).map(InfoAnswer::Ratings)
    }
}

fn verify(path: &Path) -> Result<VerifiedInfo> {
    let mut file = Reader::open(path)?;
    file.verify()?;
    Ok(VerifiedInfo {
        file: path.display().to_string(),
        kind: file.kind().to_owned(),
        tensors: file.tensors().len(),
        verified: file.has_checksums(),
    })
}

fn checkpoint(path: &Path) -> Result<CheckpointInfo> {
    let file = Reader::open(path)?;
    // Checkpoints of version 0.1 have another key.
    let key = if file.header().contains_key("loop") { "loop" } else { "course" };
    let mut at: Value = file.get(key)?;
    Ok(CheckpointInfo {
        checkpoint: file.kind().trim_end_matches(".checkpoint").to_owned(),
        file: path.display().to_string(),
        restart: at["restart"].take(),
        iteration: at["iteration"].take(),
        params: file.get("params")?,
    })
}

/// Describes a model; `path` is its file, if it has one.
pub fn model(fitted: &AnyFitted, path: Option<&Path>) -> ModelInfo {
    let summary = fitted.model.summary().into_iter();
    ModelInfo {
        model: fitted.kind,
        file: path.map(|path| path.display().to_string()),
        capabilities: fitted.capabilities().iter().map(|one| one.name()).collect(),
        summary: summary.map(|(name, value)| (name.to_owned(), value.into())).collect(),
        params: fitted.params.clone(),
        report: fitted.report.clone(),
        titles: fitted.titles.as_ref().map(gradus_data::Titles::len),
        coefficients: linear_model(fitted).map(Coefficients::of),
    }
}

/// The most columns of ratings without names: user, item, value, time.
const RATING_COLUMNS: usize = 4;

/// Whether a file is one of ratings: its header names users and items, or it has no header and no more
/// columns than ratings have, numbers from the third on, or its rows are of different lengths, as those of an adjacency list.
fn is_ratings(request: &InfoRequest) -> bool {
    let (path, options) = (&request.file, &request.options);
    let Ok(table) = options.table.head(path) else { return true };
    let names: Vec<String> = table.names().iter().map(|&name| name.to_owned()).collect();
    let named = rating_columns(&names).iter().take(2).all(Option::is_some);
    let header = table.source().is_none_or(|source| source.layout.header);
    // One column may be lists of items behind a user that blanks separate.
    let lists =
        || table.n_cols() == 1 && options.read(path, true, false, &mut Remarks::ignored()).is_ok();
    let numeric = table.numeric_names();
    let is_numeric = |name: &String| numeric.contains(&name.as_str());
    let unnamed =
        !header && (2..=RATING_COLUMNS).contains(&names.len()) && names[2..].iter().all(is_numeric);
    named || unnamed || lists()
}

fn ratings(request: &InfoRequest, remarks: &mut Remarks<'_>) -> Result<RatingsInfo> {
    let (ratings, summary) = request.options.read(&request.file, true, false, remarks)?;
    let count = ratings.len();
    let (mut min, mut max, mut sum) = (f32::INFINITY, f32::NEG_INFINITY, 0.0);
    for &value in ratings.by_user().values() {
        (min, max) = (min.min(value), max.max(value));
        sum += f64::from(value);
    }
    Ok(RatingsInfo {
        file: request.file.display().to_string(),
        users: ratings.n_users(),
        items: ratings.n_items(),
        ratings: count,
        density: count as f64 / (ratings.n_users() as f64 * ratings.n_items() as f64),
        min,
        mean: sum / count as f64,
        max,
        skipped: summary.skipped,
        load_seconds: summary.seconds,
    })
}
