//! Recommenders: the error of predicted ratings beside that of simpler models, and how well they rank.

use super::{EvaluateRequest, RankingRequest, remark_on_training_data};
use crate::App;
use gradus::recommenders::{Bias, Mean};
use gradus_base::Result;
use gradus_core::dataset::Remarks;
use gradus_core::estimator::{AnyFitted, Fit as _};
use gradus_core::recommend::Recommend;
use gradus_data::{Pairs, Ratings, rating_hash};
use gradus_metrics::{RatingErrors, rating_errors};
use gradus_select::{RankingOptions, RankingReport, RatingScale, evaluate_ranking};
use serde::Serialize;
use std::path::PathBuf;

/// Why figures of a sample must not be compared.
pub const SAMPLED_CAUTION: &str =
    "sampled figures cannot be compared with those of the full ranking, nor of another sample size";

/// The errors of predicted ratings.
#[derive(Clone, Debug, Serialize)]
pub struct RatingsAnswer {
    /// The kind of model.
    pub model: String,
    /// The errors of the model.
    #[serde(flatten)]
    pub errors: Errors,
    /// The number of ratings.
    pub count: usize,
    /// Ratings of users that the model does not know.
    pub unknown_users: usize,
    /// Ratings of items that the model does not know.
    pub unknown_items: usize,
    /// The errors of simpler models, where the training ratings are known.
    pub baselines: Vec<BaselineErrors>,
    /// The share of the data that the model was fitted to, if it is known.
    pub trained_on: Option<f64>,
}

/// The errors of a simpler model.
#[derive(Clone, Debug, Serialize)]
pub struct BaselineErrors {
    /// The name of the baseline.
    pub name: &'static str,
    /// The errors of the baseline.
    #[serde(flatten)]
    pub errors: Errors,
}

/// Errors, with intervals that hold the truth with 95 % confidence.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Errors {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// The standard error of the root mean squared error.
    pub rmse_error: f64,
    /// The 95 % interval of the root mean squared error.
    pub rmse_interval: (f64, f64),
    /// Mean absolute error.
    pub mae: f64,
    /// The standard error of the mean absolute error.
    pub mae_error: f64,
    /// The 95 % interval of the mean absolute error.
    pub mae_interval: (f64, f64),
}

impl From<RatingErrors> for Errors {
    fn from(errors: RatingErrors) -> Self {
        Self {
            rmse: errors.rmse,
            rmse_error: errors.rmse_error,
            rmse_interval: errors.rmse_interval(),
            mae: errors.mae,
            mae_error: errors.mae_error,
            mae_interval: errors.mae_interval(),
        }
    }
}

pub(super) fn errors(
    fitted: &AnyFitted,
    request: &EvaluateRequest,
    remarks: &mut Remarks<'_>,
) -> Result<RatingsAnswer> {
    let model = fitted.recommend()?;
    let (pairs, truth) = request.options.rated_pairs(&request.data, remarks)?;
    let indices = known(&pairs, model);
    let trained_on = fitted.report.training.as_ref().and_then(|training| {
        let rows = pairs.iter().zip(&truth);
        training.share(rows.map(|((user, item), value)| rating_hash(user, item, *value)))
    });
    remark_on_training_data(trained_on, &request.data, remarks);
    let errors = rating_errors(&truth, &model.predict(&indices), None)?.into();
    let training = match &request.train {
        Some(path) => Some(request.options.read(path, false, false, remarks)?.0),
        None => kept(model)?,
    };
    let baselines = match &training {
        // By the ids of the training data, which may have come from a file.
        Some(training) => {
            let find = |(user, item)| (training.users().find(user), training.items().find(item));
            baselines(training, &pairs.iter().map(find).collect::<Vec<_>>(), &truth)?
        }
        None => Vec::new(),
    };
    Ok(RatingsAnswer {
        model: fitted.kind.to_owned(),
        errors,
        count: truth.len(),
        unknown_users: indices.iter().filter(|pair| pair.0.is_none()).count(),
        unknown_items: indices.iter().filter(|pair| pair.1.is_none()).count(),
        baselines,
        trained_on,
    })
}

/// The indices of pairs in a model; `None` is one that it does not know.
pub fn known(pairs: &Pairs, model: &dyn Recommend) -> Vec<(Option<u32>, Option<u32>)> {
    pairs.iter().map(|(user, item)| (model.users().find(user), model.items().find(item))).collect()
}

/// The training ratings the model kept.
fn kept(model: &dyn Recommend) -> Result<Option<Ratings>> {
    let Some(history) = model.history() else { return Ok(None) };
    let (users, items) = (model.users().clone(), model.items().clone());
    Ratings::from_by_user(users, items, history.clone()).map(Some)
}

/// The errors of the mean of all ratings, and of the mean with biases.
///
/// # Errors
/// If there are no ratings to learn from.
pub fn baselines(
    training: &Ratings,
    pairs: &[(Option<u32>, Option<u32>)],
    truth: &[f32],
) -> Result<Vec<BaselineErrors>> {
    let mean = Mean { keep_history: false }.fit(training)?.predict(pairs);
    let biases = Bias { keep_history: false, ..Bias::new() }.fit(training)?.predict(pairs);
    let baseline = |name, predicted: &[f32]| {
        Ok(BaselineErrors { name, errors: rating_errors(truth, predicted, None)?.into() })
    };
    Ok(vec![baseline("global mean", &mean)?, baseline("biases only", &biases)?])
}

/// The ranking of the items that users went on to like.
#[derive(Clone, Debug, Serialize)]
pub struct RankingAnswer {
    /// The kind of model.
    pub model: String,
    /// The measures.
    pub ranking: Ranking,
    /// The share of the data that the model was fitted to, if it is known.
    pub trained_on: Option<f64>,
}

/// The measures of a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// The measures.
    #[serde(flatten)]
    pub report: RankingReport,
    /// Whether the threshold was not given but is the upper quarter of the scale.
    pub threshold_is_default: bool,
    /// The scale of the ratings, where the threshold is the upper quarter of it.
    #[serde(skip)]
    pub scale: Option<RatingScale>,
    /// A caution about the figures, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

pub(super) fn rank(
    fitted: &AnyFitted,
    request: &EvaluateRequest,
    implicit: bool,
    remarks: &mut Remarks<'_>,
) -> Result<RankingAnswer> {
    let how = request.ranking.clone().unwrap_or_default();
    let (test, has_values) = request.options.interactions(&request.data, remarks)?;
    let trained_on = fitted.report.training.as_ref().and_then(|training| test.share_in(training));
    remark_on_training_data(trained_on, &request.data, remarks);
    let mut read = |path: &Option<PathBuf>| -> Result<Option<Ratings>> {
        let Some(path) = path else { return Ok(None) };
        Ok(Some(request.options.interactions(path, remarks)?.0))
    };
    let (training, fold_in) = (read(&request.train)?, read(&how.fold_in)?);
    let ranking = ranking(
        fitted,
        &HeldOut {
            ratings: &test,
            has_values: has_values && !implicit,
            training: training.as_ref(),
            fold_in: fold_in.as_ref(),
        },
        how,
    )?;
    Ok(RankingAnswer { model: fitted.kind.to_owned(), ranking, trained_on })
}

/// Held-out ratings to evaluate a ranking by.
struct HeldOut<'a> {
    ratings: &'a Ratings,
    /// Whether their values are opinions, of which only the better ones are relevant.
    has_values: bool,
    training: Option<&'a Ratings>,
    fold_in: Option<&'a Ratings>,
}

/// Evaluates a ranking. By default the upper quarter of the scale of ratings is relevant, and everything where
/// there are no ratings.
fn ranking(fitted: &AnyFitted, test: &HeldOut<'_>, how: RankingRequest) -> Result<Ranking> {
    let model = fitted.recommend()?;
    let scale = match (how.threshold, test.has_values) {
        (None, true) => {
            let values = match (test.training, model.history()) {
                (Some(training), _) => training.by_user().values(),
                (None, Some(history)) => history.values(),
                (None, None) => test.ratings.by_user().values(),
            };
            Some(RatingScale::of(values))
        }
        _ => None,
    };
    let options = RankingOptions {
        at: how.at,
        threshold: how.threshold.or(scale.as_ref().map(RatingScale::upper_quarter)),
        training: test.training,
        fold_in: test.fold_in,
        include_seen: how.include_seen,
        // It comes for nothing with a sample.
        auc: how.auc || how.sampled.is_some(),
        sampled: how.sampled,
        seed: how.seed,
    };
    let report = evaluate_ranking(model, test.ratings, &options)?;
    let note = report.sampled.map(|_| SAMPLED_CAUTION);
    Ok(Ranking { report, threshold_is_default: scale.is_some(), scale, note })
}

impl App {
    /// How well a recommender ranks held-out ratings that are in memory; `has_values` tells whether they
    /// have values, or are mere pairs. Files that the request names are not read.
    ///
    /// # Errors
    /// If the model does not recommend, or cannot be measured as asked.
    pub fn rank(
        &self,
        fitted: &AnyFitted,
        ratings: &Ratings,
        has_values: bool,
        how: &RankingRequest,
    ) -> Result<Ranking> {
        let implicit = self.registry.find(fitted.kind)?.traits().is_implicit();
        let has_values = has_values && !implicit;
        let test = HeldOut { ratings, has_values, training: None, fold_in: None };
        ranking(fitted, &test, how.clone())
    }
}
