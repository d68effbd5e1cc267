//! Choosing parameters by trying them on held-out data.
//!
//! Every candidate is fitted on the same parts of the data and judged on the same held-out points,
//! so two candidates are compared point by point: the difference between them is known far better
//! than the score of either.

mod grid;
mod random;
mod tally;

pub use grid::Axis;
pub use random::{Dimension, Distribution, Random};
pub use tally::{Lead, Score};

use crate::metrics::ranking;
use crate::split;
use gradus_core::data::Ratings;
use gradus_core::estimator::{AnyData, AnyFitted, Estimator, Run};
use gradus_core::progress::Stop;
use gradus_core::recommend::{Filter, Recommend, Scored, Target};
use gradus_core::{Error, Result};
use grid::Chain;
use rayon::prelude::*;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use tally::Tally;

/// Places of a ranking that count.
const PLACES: usize = 20;
/// Users whose lists are made at a time.
const USERS: usize = 1 << 14;

/// How the data is held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// So many folds, each held out once.
    Folds(usize),
    /// A share of the data, once.
    Holdout(f64),
}

/// A search over parameters.
pub struct Search<'a> {
    /// The kind of model.
    pub model: &'a dyn Estimator,
    /// Parameters that stay as they are.
    pub fixed: Map<String, Value>,
    /// Parameters to vary; every combination is tried.
    pub axes: Vec<Axis>,
    /// How data is held out.
    pub plan: Plan,
    /// Seed of the split.
    pub seed: u64,
    /// Whether a candidate starts from its neighbour with a stronger penalty instead of at random.
    /// Its fit then goes on until it converges: to stop early, when held-out data says so, means
    /// something only on the way from a random start.
    pub warm: bool,
    /// A flag that ends the search; what is known by then is returned.
    pub stop: Stop,
}

/// One combination of parameters, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The parameters that were set.
    pub params: Map<String, Value>,
    /// Its score on the held-out points.
    pub score: Score,
    /// The mean number of iterations after which it was best, or that it took in a warm search.
    pub iterations: f64,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// All candidates, best first; ties in the order of the grid.
    pub candidates: Vec<Candidate>,
    /// What the score measures.
    pub metric: String,
    /// Whether a larger score is better.
    pub higher_is_better: bool,
    /// By how much the best leads the second, if there is one.
    pub lead: Option<Lead>,
    /// Folds that were done, of those planned.
    pub folds: (usize, usize),
}

impl Search<'_> {
    /// How many fits the whole search takes.
    pub fn fits(&self) -> usize {
        let candidates: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        candidates * self.plan.folds()
    }

    /// Tries every candidate. `tell` hears of each fit that is done, from any thread.
    ///
    /// # Errors
    /// If the plan or a candidate does not fit the data, or it was stopped before the first fold.
    pub fn run(&self, data: &Ratings, tell: &(dyn Fn(usize) + Sync)) -> Result<Found> {
        self.try_all(&grid::chains(&self.fixed, &self.axes), data, tell)
    }

    /// Tries candidates drawn at random instead of every combination of the axes, which are not
    /// looked at. No candidate starts from another: random ones are not neighbours.
    ///
    /// # Errors
    /// As [`Search::run`]; and if there is nothing to draw.
    pub fn run_random(
        &self,
        random: &Random,
        data: &Ratings,
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Found> {
        let chains: Vec<Chain> =
            random.candidates(&self.fixed)?.into_iter().map(|candidate| vec![candidate]).collect();
        self.try_all(&chains, data, tell)
    }

    /// How many fits [`Search::run_random`] takes.
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn fits_random(&self, random: &Random) -> Result<usize> {
        Ok(random.candidates(&self.fixed)?.len() * self.plan.folds())
    }

    fn try_all(
        &self,
        chains: &[Chain],
        data: &Ratings,
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Found> {
        self.plan.check()?;
        let n: usize = chains.iter().map(Vec::len).sum();
        if n == 0 {
            return Err(Error::data("search: nothing to try; an axis has no values"));
        }
        let planned = self.plan.folds();
        let mut tally = Tally::new(n);
        let mut iterations = vec![0.0; n];
        let mut metric = None;
        let mut folds = 0;
        let done = AtomicUsize::new(0);
        for fold in 0..planned {
            let (train, held) = match self.plan {
                Plan::Folds(k) => split::folds(data, k, self.seed)?.get(fold)?,
                Plan::Holdout(share) => split::holdout(data, share, self.seed)?,
            };
            let (train, held) = (AnyData::Ratings(train), AnyData::Ratings(held));
            let tried: Result<Vec<Vec<Trial>>> = chains
                .par_iter()
                .map(|chain| {
                    self.follow(chain, &train, &held, &|| {
                        tell(done.fetch_add(1, Ordering::Relaxed) + 1);
                    })
                })
                .collect();
            if self.stop.requested() {
                break;
            }
            let tried: Vec<Trial> = tried?.into_iter().flatten().collect();
            for (sum, trial) in iterations.iter_mut().zip(&tried) {
                *sum += trial.iterations;
            }
            metric = tried.first().map(|trial| (trial.metric.clone(), trial.higher_is_better));
            let losses: Vec<&[f32]> = tried.iter().map(|trial| trial.losses.as_slice()).collect();
            tally.add(&losses, &tried[0].weights);
            folds += 1;
        }
        let (metric, higher_is_better) = metric.ok_or_else(|| {
            Error::data("search: interrupted before the first fold was done; nothing to report")
        })?;
        let order = tally.order();
        let params: Vec<&Map<String, Value>> = chains.iter().flatten().collect();
        let shown = |at: usize| tally.score(at, higher_is_better);
        let candidates = order
            .iter()
            .map(|&at| Candidate {
                params: params[at].clone(),
                score: shown(at),
                iterations: iterations[at] / folds as f64,
            })
            .collect();
        let lead = (order.len() > 1).then(|| tally.lead(order[0], order[1], higher_is_better));
        Ok(Found { candidates, metric, higher_is_better, lead, folds: (folds, planned) })
    }

    /// Fits a chain of candidates, one after another.
    fn follow(
        &self,
        chain: &[Map<String, Value>],
        train: &AnyData,
        held: &AnyData,
        tell: &dyn Fn(),
    ) -> Result<Vec<Trial>> {
        let mut trials = Vec::with_capacity(chain.len());
        let mut before: Option<AnyFitted> = None;
        for params in chain {
            let warm = before.as_ref().filter(|_| self.warm).map(|fitted| fitted.model.as_ref());
            let run = Run { warm, stop: self.stop.clone(), ..Run::default() };
            let validation = (!self.warm).then_some(held);
            let fitted = self.model.fit(params, train, validation, &run)?;
            if self.stop.requested() {
                return Ok(trials);
            }
            trials.push(Trial::of(&fitted, train, held)?);
            tell();
            before = Some(fitted);
        }
        Ok(trials)
    }

    /// Fits the best candidate on all the data, for as many iterations as were best on the folds
    /// (to convergence in a search with warm starts).
    ///
    /// # Errors
    /// If the fit fails.
    pub fn refit(&self, found: &Found, data: &Ratings, run: &Run<'_>) -> Result<AnyFitted> {
        let best = &found.candidates[0];
        let mut params = best.params.clone();
        if !self.warm && self.model.specs().iter().any(|spec| spec.name == "max_iter") {
            params.insert("max_iter".into(), (best.iterations.round().max(1.0) as u64).into());
        }
        self.model.fit(&params, &AnyData::Ratings(data.clone()), None, run)
    }
}

impl Plan {
    fn folds(self) -> usize {
        match self {
            Self::Folds(k) => k,
            Self::Holdout(_) => 1,
        }
    }

    fn check(self) -> Result<()> {
        match self {
            Self::Folds(k) if !(2..=1000).contains(&k) => {
                Err(Error::parameter("folds", k, "must be an integer from 2 to 1000"))
            }
            _ => Ok(()),
        }
    }
}

/// One fit on one fold: the loss at every held-out point, smaller is better.
struct Trial {
    losses: Vec<f32>,
    weights: Vec<f32>,
    metric: String,
    higher_is_better: bool,
    iterations: f64,
}

impl Trial {
    fn of(fitted: &AnyFitted, train: &AnyData, held: &AnyData) -> Result<Self> {
        let (AnyData::Ratings(train), AnyData::Ratings(held)) = (train, held) else {
            return Err(Error::data("search: this kind of data cannot be searched on"));
        };
        let model = fitted.recommend()?;
        let report = &fitted.report;
        let (losses, weights) = if report.higher_is_better {
            ranking_losses(model, train, held)?
        } else {
            let pairs: Vec<_> = held.iter().map(|r| (Some(r.user), Some(r.item))).collect();
            let predicted = model.predict(&pairs);
            held.iter().zip(predicted).map(|(r, p)| ((r.value - p).powi(2), r.weight)).unzip()
        };
        Ok(Self {
            losses,
            weights,
            metric: report.metric.clone(),
            higher_is_better: report.higher_is_better,
            iterations: (report.trace[report.best].iteration) as f64,
        })
    }
}

/// Of every user with held-out items: minus the NDCG of the best items they do not have.
fn ranking_losses(
    model: &dyn Recommend,
    train: &Ratings,
    held: &Ratings,
) -> Result<(Vec<f32>, Vec<f32>)> {
    let users: Vec<u32> = (0..held.n_users() as u32)
        .filter(|&user| !held.by_user().row(user as usize).0.is_empty())
        .collect();
    let losses: Result<Vec<Vec<f32>>> = users
        .chunks(USERS)
        .map(|block| {
            // What the model has seen of a user is what it was fitted on, if it kept it.
            let lists = match model.history() {
                Some(_) => model.top_many(block, PLACES, &Filter::default())?,
                None => lists_without(model, block, train)?,
            };
            let loss = |(&user, list): (&u32, Vec<Scored>)| {
                let ranked: Vec<u32> = list.iter().map(|scored| scored.item).collect();
                -ranking::ndcg(&ranked, held.by_user().row(user as usize).0, PLACES) as f32
            };
            Ok(block.iter().zip(lists).map(loss).collect())
        })
        .collect();
    let losses = losses?.concat();
    let weights = vec![1.0; losses.len()];
    Ok((losses, weights))
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
