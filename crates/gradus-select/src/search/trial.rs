//! One fit on one part of the data: its losses at the held-out points.

use super::parts::Part;
use super::tally::{Losses, Points, Scale};
use crate::evaluate::{RankingOptions, ndcg_by_user};
use crate::samples::{SampleLosses, sample_losses};
use crate::units::{UnitLosses, unit_losses};
use gradus_base::Result;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::{Ratings, Samples};

/// Places of a ranking that count.
const PLACES: usize = 20;

/// The outcome of a candidate on one part.
pub(super) struct Trial {
    pub(super) metric: String,
    pub(super) scale: Scale,
    pub(super) losses: Losses,
    /// Whether each answer is wrong, for classes evaluated by their probabilities.
    pub(super) wrong: Option<Losses>,
    pub(super) points: Points,
    pub(super) iterations: f64,
    /// The number of states of the fit from which the held-out points chose.
    pub(super) choices: f64,
}

impl Trial {
    /// Evaluates a model. `early` tells that the fit was stopped by the score on these points.
    pub(super) fn of(fitted: &AnyFitted, part: &Part, early: bool) -> Result<Self> {
        let report = &fitted.report;
        let iterations = report.trace.get(report.best).map_or(report.iterations, |p| p.iteration);
        let found = evaluate(fitted, part.train.as_ref(), part.held_out.as_ref())?;
        let Evaluated { metric, scale, losses, wrong, weights, units } = found;
        let units = units.or_else(|| part.groups.clone());
        let points = Points { count: losses.len(), weights, units, first: part.first };
        Ok(Self {
            metric,
            scale,
            losses: Losses::new(&losses, &points),
            wrong: wrong.map(|wrong| Losses::new(&wrong, &points)),
            points,
            iterations: iterations as f64,
            choices: if early { states(fitted) } else { 1.0 },
        })
    }
}

/// How many states an iterative fit could give: as many iterations as it was allowed, not as many
/// as it took, for the held-out data had a say in that too.
fn states(fitted: &AnyFitted) -> f64 {
    let number = |name: &str| fitted.params.get(name).and_then(serde_json::Value::as_u64);
    let allowed = number("max_iter").map(|n| n.saturating_mul(number("restarts").unwrap_or(1)));
    allowed.unwrap_or(0).max(fitted.report.trace.len() as u64).max(1) as f64
}

struct Evaluated {
    metric: String,
    scale: Scale,
    losses: Vec<f64>,
    wrong: Option<Vec<f64>>,
    weights: Option<Vec<f64>>,
    /// The unit that each point belongs to, if it is known here.
    units: Option<Vec<u32>>,
}

/// Evaluates a model by what it can do.
fn evaluate(fitted: &AnyFitted, train: &dyn Dataset, held_out: &dyn Dataset) -> Result<Evaluated> {
    if fitted.model.recommend().is_some() {
        return by_ratings(fitted, train.of_kind()?, held_out.of_kind()?);
    }
    if let Some(model) = fitted.model.predictor() {
        let samples = model.samples(held_out)?;
        return by_samples(model, &samples);
    }
    let UnitLosses { metric, values: losses, root } = unit_losses(fitted, held_out)?;
    Ok(Evaluated {
        metric: metric.to_owned(),
        scale: if root { Scale::Root } else { Scale::Plain },
        losses,
        wrong: None,
        weights: None,
        units: None,
    })
}

fn by_ratings(fitted: &AnyFitted, train: &Ratings, held_out: &Ratings) -> Result<Evaluated> {
    let model = fitted.recommend()?;
    let metric = fitted.report.metric.clone();
    if fitted.report.higher_is_better {
        // The protocol of an evaluation; a point is a user.
        let training = model.history().is_none().then_some(train);
        let options = RankingOptions { training, ..RankingOptions::default() };
        let (users, losses) = ndcg_by_user(model, held_out, &options, PLACES)?
            .into_iter()
            .map(|(user, ndcg)| (user, (1.0 - ndcg).clamp(0.0, 1.0)))
            .unzip();
        let scale = Scale::Share;
        return Ok(Evaluated {
            metric,
            scale,
            losses,
            wrong: None,
            weights: None,
            units: Some(users),
        });
    }
    let pairs: Vec<_> = held_out.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let predicted = model.predict(&pairs);
    let losses =
        held_out.iter().zip(predicted).map(|(r, p)| f64::from(r.value - p).powi(2)).collect();
    let weights =
        held_out.weights_by_user().map(|_| held_out.iter().map(|r| f64::from(r.weight)).collect());
    // The errors of one user are alike: some are hard to please.
    let units = Some(held_out.iter().map(|r| r.user).collect());
    Ok(Evaluated { metric, scale: Scale::Root, losses, wrong: None, weights, units })
}

fn by_samples(model: &dyn Predict, held_out: &Samples) -> Result<Evaluated> {
    let weights = held_out.weights().map(<[f64]>::to_vec);
    let (metric, scale, losses, wrong) = match sample_losses(model, held_out)? {
        SampleLosses::Squared(losses) => ("rmse", Scale::Root, losses, None),
        SampleLosses::Classes { wrong, log: None } => ("accuracy", Scale::Share, wrong, None),
        SampleLosses::Classes { wrong, log: Some(losses) } => {
            ("log loss", Scale::Plain, losses, Some(wrong))
        }
    };
    Ok(Evaluated { metric: metric.to_owned(), scale, losses, wrong, weights, units: None })
}
