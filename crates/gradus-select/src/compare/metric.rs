//! The metrics of comparisons, and the models that take part.

use crate::evaluate::{RankingOptions, at_k_by_user};
use crate::samples::{SampleLosses, sample_losses};
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::{DataKind as _, Dataset};
use gradus_core::estimator::{AnyFitted, Traits};
use gradus_data::{Ratings, Samples, Target};
use gradus_metrics::bounds::LossScale;
use serde::Serialize;

/// Places of a ranking that count.
pub const PLACES: usize = 20;

/// The task of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Predict ratings: recommenders of opinions.
    Ratings,
    /// Rank items: recommenders of signs of interest.
    Ranking,
    /// Predict numbers from features.
    Values,
    /// Predict classes from features.
    Classes,
}

impl Task {
    /// Whether a model takes part: by what it declares, never by its name.
    pub fn takes(self, kind: &str, traits: &Traits) -> bool {
        let recommends = kind == Ratings::NAME && traits.can(Capability::Recommend);
        let predicts = kind == Samples::NAME;
        match self {
            Self::Ratings => recommends && !traits.is_implicit(),
            Self::Ranking => recommends && traits.is_implicit(),
            Self::Values => predicts && traits.can(Capability::PredictValues),
            Self::Classes => predicts && traits.can(Capability::PredictClasses),
        }
    }

    /// The task that data is for: of ratings the prediction of ratings unless `implicit`.
    ///
    /// # Errors
    /// If it is of a kind, or a shape, that models cannot be compared on.
    pub fn of(data: &dyn Dataset, implicit: bool) -> Result<Self> {
        if let Some(ratings) = data.downcast_ref::<Ratings>() {
            if implicit {
                return Ok(Self::Ranking);
            }
            let values = ratings.by_user().values();
            return match values.first() {
                Some(first) if values.iter().all(|value| value == first) => {
                    Err(Error::data(format!(
                        "all ratings are {first}, so there is nothing to predict; if each row is a sign \
                         of interest, take option `implicit`"
                    )))
                }
                _ => Ok(Self::Ratings),
            };
        }
        match data.downcast_ref::<Samples>().filter(|samples| samples.has_target()) {
            Some(samples) => Ok(match samples.target() {
                Target::Values(_) => Self::Values,
                Target::Classes { .. } => Self::Classes,
            }),
            None => Err(Error::data(format!(
                "models are compared on ratings, or on samples with a target, and the data are {}",
                data.kind()
            ))),
        }
    }

    /// The metrics it has, the default first.
    pub fn metrics(self) -> &'static [Metric] {
        use Metric::{Accuracy, HitRate, LogLoss, Mae, Ndcg, Precision, Recall, Rmse};
        match self {
            Self::Ratings | Self::Values => &[Rmse, Mae],
            Self::Ranking => &[Ndcg, Recall, Precision, HitRate],
            Self::Classes => &[Accuracy, LogLoss],
        }
    }

    /// The metric of this name; the default if none is named.
    ///
    /// # Errors
    /// If the task has no such metric; the message lists those it has.
    pub fn metric(self, name: Option<&str>) -> Result<Metric> {
        let all = self.metrics();
        let Some(name) = name else { return Ok(all[0]) };
        let wanted = name.replace('-', "_");
        let found = all.iter().copied().find(|metric| metric.name() == wanted);
        found.ok_or_else(|| {
            let known = all.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
            let rule = format!("must be one of {known} for this data");
            Error::parameter("metric", name, rule)
        })
    }
}

/// The metric by which models are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The root of the mean squared error.
    Rmse,
    /// The mean absolute error.
    Mae,
    /// Normalised discounted cumulative gain of the first 20 places, the mean over users.
    Ndcg,
    /// The share of a user's held-out items among the first 20 places.
    Recall,
    /// The share of the first 20 places that the user has among the held-out items.
    Precision,
    /// The share of users with a held-out item among the first 20 places.
    HitRate,
    /// The share of right answers. Every classifier has it.
    Accuracy,
    /// The mean log loss, of classifiers that know probabilities.
    LogLoss,
}

impl Metric {
    /// Returns the name as an option: `log_loss`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rmse => "rmse",
            Self::Mae => "mae",
            Self::Ndcg => "ndcg",
            Self::Recall => "recall",
            Self::Precision => "precision",
            Self::HitRate => "hit_rate",
            Self::Accuracy => "accuracy",
            Self::LogLoss => "log_loss",
        }
    }

    /// Returns the name for people: `NDCG@20`.
    pub fn title(self) -> String {
        match self {
            Self::Rmse => "RMSE".into(),
            Self::Mae => "MAE".into(),
            Self::Ndcg => format!("NDCG@{PLACES}"),
            Self::Recall => format!("recall@{PLACES}"),
            Self::Precision => format!("precision@{PLACES}"),
            Self::HitRate => format!("hit rate@{PLACES}"),
            Self::Accuracy => "accuracy".into(),
            Self::LogLoss => "log loss".into(),
        }
    }

    /// How the score comes from a mean loss.
    pub fn scale(self) -> LossScale {
        match self {
            Self::Rmse => LossScale::Root,
            Self::Mae | Self::LogLoss => LossScale::Mean,
            _ => LossScale::Complement,
        }
    }

    /// Whether a larger score is better.
    pub fn higher_is_better(self) -> bool {
        self.scale().higher_is_better()
    }
}

/// The losses of a model at the points it is evaluated on; smaller is better.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    pub(super) values: Vec<f64>,
    pub(super) weights: Option<Vec<f64>>,
    /// The independent unit that each point belongs to; each is one if there are none.
    pub(super) units: Option<Vec<u32>>,
}

impl Losses {
    /// Evaluates a model, fitted on `train`, at the points of `held_out`; `groups` are those of samples.
    ///
    /// # Errors
    /// If the model cannot be evaluated so: the message says why.
    pub(super) fn of(
        fitted: &AnyFitted,
        metric: Metric,
        (train, held_out): (&dyn Dataset, &dyn Dataset),
        groups: Option<&[u32]>,
    ) -> Result<Self> {
        let found = match held_out.downcast_ref::<Ratings>() {
            Some(held_out) => of_ratings(fitted, metric, train.of_kind()?, held_out)?,
            None => of_samples(fitted, metric, held_out.of_kind()?, groups)?,
        };
        if let Some(bad) = found.values.iter().find(|loss| !loss.is_finite()) {
            let what = "its predictions are no finite numbers";
            return Err(Error::data(format!("{}: {what} (a loss of {bad})", fitted.kind)));
        }
        Ok(found)
    }

    /// The score: what the points give on average.
    pub(super) fn score(&self, metric: Metric) -> f64 {
        let weight = |at: usize| self.weights.as_ref().map_or(1.0, |weights| weights[at]);
        let (mut sum, mut total) = (0.0, 0.0);
        for (at, loss) in self.values.iter().enumerate() {
            sum += weight(at) * loss;
            total += weight(at);
        }
        metric.scale().score(sum / total)
    }
}

fn of_ratings(
    fitted: &AnyFitted,
    metric: Metric,
    train: &Ratings,
    held_out: &Ratings,
) -> Result<Losses> {
    let model = fitted.recommend()?;
    if metric.higher_is_better() {
        // The training data is given, so that all models are evaluated on the same users.
        let options = RankingOptions { training: Some(train), ..RankingOptions::default() };
        let evaluated = at_k_by_user(model, held_out, &options, PLACES)?;
        let share = |(user, at): (u32, gradus_metrics::ranking::AtK)| {
            let share = match metric {
                Metric::Recall => at.recall,
                Metric::Precision => at.precision,
                Metric::HitRate => at.hit_rate,
                _ => at.ndcg,
            };
            (user, (1.0 - share).clamp(0.0, 1.0))
        };
        let (units, values): (Vec<u32>, Vec<f64>) = evaluated.into_iter().map(share).unzip();
        return Ok(Losses { values, weights: None, units: Some(units) });
    }
    let known = |of: &gradus_data::Ids, to: &gradus_data::Ids| -> Vec<Option<u32>> {
        if of == to {
            return (0..of.len() as u32).map(Some).collect();
        }
        of.iter().map(|id| to.find(id)).collect()
    };
    let users = known(held_out.users(), model.users());
    let items = known(held_out.items(), model.items());
    let pairs: Vec<_> =
        held_out.iter().map(|r| (users[r.user as usize], items[r.item as usize])).collect();
    let predicted = model.predict(&pairs);
    let off = held_out.iter().zip(predicted).map(|(r, p)| f64::from(r.value) - f64::from(p));
    let values = if metric == Metric::Mae {
        off.map(f64::abs).collect()
    } else {
        off.map(|off| off * off).collect()
    };
    let weights =
        held_out.weights_by_user().map(|_| held_out.iter().map(|r| f64::from(r.weight)).collect());
    // The errors of one user are alike: some are hard to please.
    let units = Some(held_out.iter().map(|r| r.user).collect());
    Ok(Losses { values, weights, units })
}

fn of_samples(
    fitted: &AnyFitted,
    metric: Metric,
    held_out: &Samples,
    groups: Option<&[u32]>,
) -> Result<Losses> {
    let model = fitted.predictor()?;
    let values = match (metric, held_out.target()) {
        (Metric::Mae, Target::Values(truth)) => {
            let predicted = model.scores(held_out.features())?;
            let rows = truth.rows().zip(predicted.rows());
            let mean = |(truth, predicted): (&[f64], &[f64])| {
                let off = truth.iter().zip(predicted).map(|(a, b)| (a - b).abs());
                off.sum::<f64>() / truth.len().max(1) as f64
            };
            rows.map(mean).collect()
        }
        _ => match sample_losses(model, held_out)? {
            SampleLosses::Squared(losses) => losses,
            SampleLosses::Classes { log: Some(log), .. } if metric == Metric::LogLoss => log,
            SampleLosses::Classes { .. } if metric == Metric::LogLoss => {
                return Err(Error::data(format!(
                    "{} knows no probabilities, so it has no log loss",
                    fitted.kind
                )));
            }
            SampleLosses::Classes { wrong, .. } => wrong,
        },
    };
    let weights = held_out.weights().map(<[f64]>::to_vec);
    Ok(Losses { values, weights, units: groups.map(<[u32]>::to_vec) })
}
