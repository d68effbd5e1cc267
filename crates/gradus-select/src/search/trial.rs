//! One fit on one part of the data: its losses at the held-out points.

use super::tally::{Losses, Scale, Weights};
use crate::metrics::classification::LEAST_PROBABILITY;
use crate::metrics::ranking;
use gradus_core::data::{Ratings, Samples, Target as Truth};
use gradus_core::estimator::{AnyData, AnyFitted};
use gradus_core::recommend::{Filter, Recommend, Scored, Target};
use gradus_core::{Error, Result};
use rayon::prelude::*;

/// Places of a ranking that count.
const PLACES: usize = 20;
/// Users whose lists are made at a time.
const USERS: usize = 1 << 14;

/// What became of a candidate on one part.
pub(super) struct Trial {
    pub(super) metric: String,
    pub(super) scale: Scale,
    pub(super) losses: Losses,
    /// Of classes judged by their probabilities also whether the answer is wrong.
    pub(super) wrong: Option<Losses>,
    pub(super) weights: Weights,
    pub(super) iterations: f64,
}

impl Trial {
    /// Judges a model; the first point is point `offset` of the whole search.
    pub(super) fn of(
        fitted: &AnyFitted,
        train: &AnyData,
        held: &AnyData,
        offset: usize,
    ) -> Result<Self> {
        let report = &fitted.report;
        let iterations = report.trace.get(report.best).map_or(report.iterations, |p| p.iteration);
        let found = match (train, held) {
            (AnyData::Ratings(train), AnyData::Ratings(held)) => by_ratings(fitted, train, held)?,
            (_, AnyData::Samples(held)) => by_samples(fitted, held)?,
            _ => return Err(Error::data("search: this kind of data cannot be searched on")),
        };
        let Judged { metric, scale, losses, wrong, weights } = found;
        Ok(Self {
            metric,
            scale,
            losses: Losses::new(&losses, &weights, offset),
            wrong: wrong.map(|wrong| Losses::new(&wrong, &weights, offset)),
            weights,
            iterations: iterations as f64,
        })
    }
}

struct Judged {
    metric: String,
    scale: Scale,
    losses: Vec<f64>,
    wrong: Option<Vec<f64>>,
    weights: Weights,
}

fn by_ratings(fitted: &AnyFitted, train: &Ratings, held: &Ratings) -> Result<Judged> {
    let model = fitted.recommend()?;
    let metric = fitted.report.metric.clone();
    if fitted.report.higher_is_better {
        let losses = ranking_losses(model, train, held)?;
        let weights = Weights::One(losses.len());
        return Ok(Judged { metric, scale: Scale::Share, losses, wrong: None, weights });
    }
    let pairs: Vec<_> = held.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let predicted = model.predict(&pairs);
    let losses = held.iter().zip(predicted).map(|(r, p)| f64::from(r.value - p).powi(2)).collect();
    let weights = match held.weights_by_user() {
        Some(_) => Weights::Each(held.iter().map(|r| f64::from(r.weight)).collect()),
        None => Weights::One(held.len()),
    };
    Ok(Judged { metric, scale: Scale::Root, losses, wrong: None, weights })
}

fn by_samples(fitted: &AnyFitted, held: &Samples) -> Result<Judged> {
    let model = fitted.predictor()?;
    let features = held.features();
    let weights = match held.weights() {
        Some(weights) => Weights::Each(weights.to_vec()),
        None => Weights::One(held.len()),
    };
    let (codes, labels) = match held.target() {
        Truth::Values(truth) => {
            let predicted = model.scores(features)?;
            let n = truth.n_cols().max(1) as f64;
            let loss = |(y, p): (&[f64], &[f64])| {
                y.iter().zip(p).map(|(y, p)| (y - p) * (y - p)).sum::<f64>() / n
            };
            let losses = truth.rows().zip(predicted.rows()).map(loss).collect();
            let metric = "rmse".to_owned();
            return Ok(Judged { metric, scale: Scale::Root, losses, wrong: None, weights });
        }
        Truth::Classes { codes, labels } => (codes, labels),
    };
    // The classes in the numbering of the model, which may not have met all of them.
    let known = model.outputs().labels().ok_or_else(|| {
        Error::data("search: the model predicts numbers, and the target is a class")
    })?;
    let places: Vec<Option<u32>> = labels.iter().map(|label| known.find(label)).collect();
    let truth: Vec<Option<u32>> = codes.iter().map(|code| places[*code as usize]).collect();
    let predicted = model.classes(features)?;
    let wrong: Vec<f64> = truth
        .iter()
        .zip(&predicted)
        .map(|(truth, predicted)| f64::from(u8::from(*truth != Some(*predicted))))
        .collect();
    let Some(probabilities) = model.probabilities(features)? else {
        let metric = "accuracy".to_owned();
        return Ok(Judged { metric, scale: Scale::Share, losses: wrong, wrong: None, weights });
    };
    let loss = |(truth, row): (&Option<u32>, &[f64])| {
        let p = truth.and_then(|class| row.get(class as usize).copied()).unwrap_or(0.0);
        -p.max(LEAST_PROBABILITY).ln()
    };
    let losses = truth.iter().zip(probabilities.rows()).map(loss).collect();
    let metric = "log loss".to_owned();
    Ok(Judged { metric, scale: Scale::Plain, losses, wrong: Some(wrong), weights })
}

/// Of every user with held-out items: by how much the NDCG of the best items they do not have falls
/// short of 1.
fn ranking_losses(model: &dyn Recommend, train: &Ratings, held: &Ratings) -> Result<Vec<f64>> {
    let users: Vec<u32> = (0..held.n_users() as u32)
        .filter(|&user| !held.by_user().row(user as usize).0.is_empty())
        .collect();
    let losses: Result<Vec<Vec<f64>>> = users
        .chunks(USERS)
        .map(|block| {
            // What the model has seen of a user is what it was fitted on, if it kept it.
            let lists = match model.history() {
                Some(_) => model.top_many(block, PLACES, &Filter::default())?,
                None => lists_without(model, block, train)?,
            };
            let loss = |(&user, list): (&u32, Vec<Scored>)| {
                let ranked: Vec<u32> = list.iter().map(|scored| scored.item).collect();
                let ndcg = ranking::ndcg(&ranked, held.by_user().row(user as usize).0, PLACES);
                (1.0 - ndcg).clamp(0.0, 1.0)
            };
            Ok(block.iter().zip(lists).map(loss).collect())
        })
        .collect();
    Ok(losses?.concat())
}

/// The best items of users without those they have in `train`, of a model that kept no history.
fn lists_without(
    model: &dyn Recommend,
    users: &[u32],
    train: &Ratings,
) -> Result<Vec<Vec<Scored>>> {
    let list = |&user: &u32| {
        let deny = train.by_user().row(user as usize).0.to_vec();
        let filter = Filter { deny, include_seen: true, ..Filter::default() };
        model.top(&Target::User(user), PLACES, &filter)
    };
    users.par_iter().with_min_len(16).map(list).collect()
}
