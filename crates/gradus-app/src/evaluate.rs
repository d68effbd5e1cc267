//! Measuring a model on data it has not seen.

mod against;
mod distances;
mod ratings;
mod samples;
mod units;
pub(crate) mod words;

pub use against::LossComparison;
pub use distances::{ClassShare, DistancesAnswer, DistancesRequest};
pub use ratings::{
    BaselineErrors, Errors, Ranking, RankingAnswer, RatingsAnswer, SAMPLED_CAUTION, baselines,
    known,
};
pub use samples::{ClassAnswer, ClassesAnswer, TargetAnswer, ValuesAnswer};
pub use units::{ClustersAnswer, UnitsAnswer, UnitsScore};
pub use words::{
    AnalogiesAnswer, SectionAnswer, SimilarityAnswer, WordsAnswer, evaluate as evaluate_words,
};

use crate::App;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::{RatingsFile, Remarks};
use gradus_core::estimator::AnyFitted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// An evaluation of a model: the data and the measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvaluateRequest {
    /// Data the model has not seen; `-` for standard input.
    pub data: PathBuf,
    /// The reading options; of a model of features its table alone.
    #[serde(default)]
    pub options: RatingsFile,
    /// Options of another kind of data.
    #[serde(default)]
    pub others: Map<String, Value>,
    /// The columns that hold the truth, for a model of features; as in training by default.
    #[serde(default)]
    pub target: Vec<String>,
    /// The name of the model beside another one; left out, its kind.
    #[serde(default)]
    pub name: Option<String>,
    /// Another model of features to compare with, sample by sample: its file.
    #[serde(default)]
    pub against: Option<PathBuf>,
    /// The training ratings, for a recommender that did not keep them.
    #[serde(default)]
    pub train: Option<PathBuf>,
    /// How samples of a generative model are compared with the data.
    #[serde(default)]
    pub distances: DistancesRequest,
    /// How a recommender is evaluated by its ranking; the error of its ratings if this is left out and
    /// the model is one of ratings.
    #[serde(default)]
    pub ranking: Option<RankingRequest>,
}

/// How a ranking is evaluated.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RankingRequest {
    /// Lengths of list.
    pub at: Vec<usize>,
    /// Test ratings of at least this count as relevant; by default all, or the upper quarter of the
    /// scale of a model of ratings.
    pub threshold: Option<f32>,
    /// Rank each relevant item among this many random items instead of all items.
    pub sampled: Option<usize>,
    /// Seed of that draw.
    pub seed: u64,
    /// Whether the area under the ROC curve is wanted.
    pub auc: bool,
    /// Ratings to fold users in by, as if the model had never seen them.
    pub fold_in: Option<PathBuf>,
    /// Whether to rank also what the user has in training.
    pub include_seen: bool,
}

impl Default for RankingRequest {
    fn default() -> Self {
        Self {
            at: vec![5, 10, 20],
            threshold: None,
            sampled: None,
            seed: 0,
            auc: false,
            fold_in: None,
            include_seen: false,
        }
    }
}

/// The evaluation of a model, by its capability.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Evaluation {
    /// The errors of predicted ratings.
    Ratings(RatingsAnswer),
    /// The ranking of held-out items.
    Ranking(RankingAnswer),
    /// The prediction of numbers.
    Values(ValuesAnswer),
    /// The prediction of classes.
    Classes(ClassesAnswer),
    /// The loss at each unit of the data; of a generative model also how far its samples are from it.
    Units(Box<UnitsAnswer>),
    /// How far samples are from the data, of a generative model without a density, or by a classifier.
    Distances(DistancesAnswer),
    /// How well vectors of words agree with people, or complete analogies.
    Words(WordsAnswer),
}

impl App {
    /// Measures a model on data it has not seen.
    ///
    /// # Errors
    /// If the data cannot be read, or the model cannot be measured as asked.
    pub fn evaluate(
        &self,
        fitted: &AnyFitted,
        request: &EvaluateRequest,
        remarks: &mut Remarks<'_>,
    ) -> Result<Evaluation> {
        let traits = self.registry.find(fitted.kind)?.traits();
        if request.against.is_some() && !traits.predicts() {
            let unable = fitted.unsupported(Capability::PredictValues);
            return Err(Error::data(format!(
                "option `against` compares models that predict: {unable}"
            )));
        }
        let is_generator = distances::is_generator(fitted);
        if !request.distances.is_default() && !is_generator {
            return Err(fitted.unsupported(Capability::Generate));
        }
        if traits.can(Capability::Embed) {
            return words::evaluate(fitted.embedding()?, &request.data).map(Evaluation::Words);
        }
        if traits.predicts() {
            return samples::evaluate(self, fitted, request, remarks);
        }
        // A comparison by a classifier is asked for alone: bounds of many images take their time.
        let without_loss = fitted.model.density().is_none() && fitted.model.transformer().is_none();
        if is_generator && (without_loss || request.distances.classifier.is_some()) {
            let found = distances::evaluate(self, fitted, request, None, remarks)?;
            return found.map(Evaluation::Distances).ok_or_else(distances::nameless);
        }
        if !traits.can(Capability::Recommend) {
            let found = units::evaluate(self, fitted, request, remarks)?;
            return Ok(Evaluation::Units(Box::new(found)));
        }
        if traits.is_implicit() || request.ranking.is_some() {
            let ranking = ratings::rank(fitted, request, traits.is_implicit(), remarks)?;
            return Ok(Evaluation::Ranking(ranking));
        }
        ratings::errors(fitted, request, remarks).map(Evaluation::Ratings)
    }
}

/// A remark is made if at least this share of the data was trained on.
const KNOWN: f64 = 0.5;

/// Warns if the model was fitted to much of the data: its error there is no estimate of its error on new data.
fn remark_on_training_data(share: Option<f64>, path: &Path, remarks: &mut Remarks<'_>) {
    let Some(share) = share.filter(|&share| share >= KNOWN) else { return };
    let how_much = match share {
        1.0 => "all".to_owned(),
        _ => format!("about {:.0} %", 100.0 * share),
    };
    remarks.push(format!(
        "warning: {how_much} of {} is data the model was fitted to; what follows says little about \
         new data",
        path.display()
    ));
}
