//! Choosing parameters by trying them on held-out data.
//!
//! Every candidate is fitted on the same parts of the data and evaluated on the same held-out points,
//! so two candidates are compared point by point: the difference between them is known far better
//! than the score of either.
//!
//! Data of any kind is held out at random (each class alike, where units have classes), by group or by
//! time. What a model is evaluated by depends on what it can do:
//!
//! | it can | score |
//! |---|---|
//! | recommend | what the model is fitted for: RMSE or NDCG |
//! | predict numbers | RMSE |
//! | predict classes | log loss with probabilities, else accuracy |
//! | transform, and back | RMSE of the features that come back |
//! | tell how probable data is | mean negative log density |
//!
//! The number of clusters is chosen by other criteria, which need no held-out data: `clusters.rs`.

mod budget;
mod clusters;
mod grid;
mod parts;
mod random;
mod tally;
mod trial;

pub use clusters::{ClusterCandidate, ClustersFound, Criterion, Measured};
pub use grid::Axis;
pub(crate) use parts::latest;
pub use random::{Dimension, Distribution, Random};
pub use tally::{Lead, Score};

use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_core::progress::Stop;
use grid::Chain;
use parts::{Part, Parts};
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use tally::{Scale, Tally};
use trial::Trial;

/// How the data is held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// A number of folds, each held out once.
    Folds(usize),
    /// A share of the data, once.
    Holdout(f64),
}

/// The rule that keeps units of the data together, or in order, when they are held out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dependence {
    /// Independent samples. Each class has its share of every part.
    #[default]
    Independent,
    /// Samples of one group are held out together.
    Groups(Vec<u32>),
    /// Times of the samples: held-out samples come after the training samples.
    Times(Vec<i64>),
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
    /// The rule that keeps samples together; ratings are held out at random.
    pub rows: Dependence,
    /// Seed of the split.
    pub seed: u64,
    /// Whether a candidate starts from its neighbour with a stronger penalty instead of at random.
    /// The fit of a recommender then goes on until it converges: to stop early, when held-out data
    /// says so, means something only on the way from a random start. (Models of samples always go on
    /// until they converge.)
    pub warm: bool,
    /// A flag that ends the search; what is known by then is returned.
    pub stop: Stop,
}

/// One combination of parameters, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The parameters that were set.
    pub params: Map<String, Value>,
    /// The score on the held-out points.
    pub score: Score,
    /// The share of right answers, of a classifier that is evaluated by its probabilities.
    pub accuracy: Option<Score>,
    /// The mean number of iterations after which it was best, or that it took in a warm search.
    pub iterations: f64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// All candidates, best first; ties in the order of the grid.
    pub candidates: Vec<Candidate>,
    /// The metric of the score.
    pub metric: String,
    /// Whether a larger score is better.
    pub higher_is_better: bool,
    /// The lead of the best candidate over the second, if there is one.
    pub lead: Option<Lead>,
    /// The lead of the best candidate over the second in accuracy, where that is known beside the score.
    pub accuracy_lead: Option<Lead>,
    /// Folds that were done, of those planned.
    pub folds: (usize, usize),
    /// Things worth knowing, such as a class with too few samples.
    pub notes: Vec<String>,
}

impl Search<'_> {
    /// Whether fits are stopped by their held-out score.
    fn stops_early(&self) -> bool {
        !self.warm && self.model.traits().early_stopping
    }

    /// How many fits the whole search takes.
    pub fn fits(&self) -> usize {
        let candidates: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        candidates * self.plan.folds()
    }

    /// Tries every candidate. `observe` is called after each fit, from any thread.
    ///
    /// # Errors
    /// If the plan or a candidate does not fit the data, or it was stopped before the first fold.
    pub fn run(&self, data: &dyn Dataset, observe: &(dyn Fn(usize) + Sync)) -> Result<Found> {
        self.try_all(grid::chains(&self.fixed, &self.axes), data, observe)
    }

    /// Tries candidates drawn at random instead of every combination of the axes, which are not
    /// looked at. No candidate starts from another: random ones are not neighbours.
    ///
    /// # Errors
    /// As [`Search::run`]; and if there is nothing to draw.
    pub fn run_random(
        &self,
        random: &Random,
        data: &dyn Dataset,
        observe: &(dyn Fn(usize) + Sync),
    ) -> Result<Found> {
        let chains: Vec<Chain> =
            random.candidates(&self.fixed)?.into_iter().map(|candidate| vec![candidate]).collect();
        self.try_all(chains, data, observe)
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
        mut chains: Vec<Chain>,
        data: &dyn Dataset,
        observe: &(dyn Fn(usize) + Sync),
    ) -> Result<Found> {
        self.plan.check()?;
        let n: usize = chains.iter().map(Vec::len).sum();
        if n == 0 {
            return Err(Error::data("search: nothing to try; an axis has no values"));
        }
        let (parts, mut notes) = Parts::new(data, self.plan, &self.rows, self.seed)?;
        notes.extend(self.settle_rank(&mut chains, &parts)?);
        let chains = &chains;
        let mut sums = Sums { tally: None, accuracy: None, iterations: vec![0.0; n], folds: 0 };
        let planned = parts.len();
        let done = AtomicUsize::new(0);
        let observe = || observe(done.fetch_add(1, Ordering::Relaxed) + 1);
        while sums.folds < planned {
            let last = planned.min(sums.folds + parts.at_once());
            let mut offset = sums.points();
            let mut cut = Vec::new();
            for fold in sums.folds..last {
                let part = parts.get(fold, offset)?;
                offset += part.held_out.len();
                cut.push(part);
            }
            let tried = parallel::try_map(&cut, |part| {
                parallel::try_map(chains, |chain| self.follow(chain, part, &observe))
            });
            if self.stop.requested() {
                break;
            }
            for fold in tried? {
                sums.add(&fold.into_iter().flatten().collect::<Vec<Trial>>());
            }
        }
        let params: Vec<&Map<String, Value>> = chains.iter().flatten().collect();
        sums.found(&params, planned, notes)
    }

    /// Where a fit would choose the rank itself and no candidate has one, it is chosen once, with the
    /// first candidate on the first training part: else every fit would choose it anew, at many times the
    /// cost, and candidates would differ by more than what is varied.
    fn settle_rank(&self, chains: &mut [Chain], parts: &Parts<'_>) -> Result<Option<String>> {
        let open = self.model.specs().iter().any(|spec| spec.name == "rank" && spec.optional);
        let first = chains.iter().flatten().next().filter(|_| open);
        let Some(first) = first.filter(|first| !first.contains_key("rank")) else {
            return Ok(None);
        };
        let run = Run { stop: self.stop.clone(), ..Run::default() };
        let fitted = self.model.fit(first, parts.get(0, 0)?.train.as_ref(), None, &run)?;
        let chosen = fitted.report.chosen.iter().find(|choice| choice.parameter == "rank");
        let Some(rank) = chosen.map(|choice| choice.value as u64) else { return Ok(None) };
        for candidate in chains.iter_mut().flatten() {
            candidate.entry("rank").or_insert(rank.into());
        }
        Ok(Some(format!("rank = {rank} was chosen once, on the first training part, for all fits")))
    }

    /// Fits a chain of candidates, one after another.
    fn follow(
        &self,
        chain: &[Map<String, Value>],
        part: &Part,
        observe: &dyn Fn(),
    ) -> Result<Vec<Trial>> {
        let mut trials = Vec::with_capacity(chain.len());
        if chain.len() > 1 {
            // Penalties of one path at once, where the model can.
            let run = Run { stop: self.stop.clone(), ..Run::default() };
            if let Some(fits) = self.model.fit_path(chain, part.train.as_ref(), &run) {
                for fitted in &fits? {
                    trials.push(Trial::of(fitted, part, false)?);
                    observe();
                }
                return Ok(trials);
            }
        }
        let mut before: Option<AnyFitted> = None;
        for params in chain {
            let warm = before.as_ref().filter(|_| self.warm).map(|fitted| fitted.model.as_ref());
            let run = Run { warm, stop: self.stop.clone(), ..Run::default() };
            let early = self.stops_early();
            let validation = early.then_some(part.held_out.as_ref());
            let fitted = self.model.fit(params, part.train.as_ref(), validation, &run)?;
            if self.stop.requested() {
                return Ok(trials);
            }
            trials.push(Trial::of(&fitted, part, early)?);
            observe();
            before = Some(fitted);
        }
        Ok(trials)
    }

    /// Fits the best candidate on all the data: a recommender for as many iterations as were best on
    /// the folds (to convergence in a search with warm starts).
    ///
    /// # Errors
    /// If the fit fails.
    pub fn refit(&self, found: &Found, data: &dyn Dataset, run: &Run<'_>) -> Result<AnyFitted> {
        let best = &found.candidates[0];
        let mut params = best.params.clone();
        if self.stops_early() && self.model.specs().iter().any(|spec| spec.name == "max_iter") {
            params.insert("max_iter".into(), (best.iterations.round().max(1.0) as u64).into());
        }
        self.model.fit(&params, data, None, run)
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

/// The sums over the folds.
struct Sums {
    tally: Option<(String, Tally)>,
    accuracy: Option<Tally>,
    iterations: Vec<f64>,
    folds: usize,
}

impl Sums {
    fn points(&self) -> usize {
        self.tally.as_ref().map_or(0, |(_, tally)| tally.points())
    }

    /// Adds a fold: a trial of every candidate.
    fn add(&mut self, trials: &[Trial]) {
        let Some(first) = trials.first() else { return };
        let n = self.iterations.len();
        for (sum, trial) in self.iterations.iter_mut().zip(trials) {
            *sum += trial.iterations;
        }
        let (_, tally) =
            self.tally.get_or_insert_with(|| (first.metric.clone(), Tally::new(n, first.scale)));
        tally.add(trials.iter().map(|trial| (&trial.losses, trial.choices)), &first.points);
        if trials.iter().all(|trial| trial.wrong.is_some()) {
            let accuracy = self.accuracy.get_or_insert_with(|| Tally::new(n, Scale::Share));
            let wrong =
                trials.iter().filter_map(|trial| Some((trial.wrong.as_ref()?, trial.choices)));
            accuracy.add(wrong, &first.points);
        }
        self.folds += 1;
    }

    fn found(
        self,
        params: &[&Map<String, Value>],
        planned: usize,
        notes: Vec<String>,
    ) -> Result<Found> {
        let (metric, tally) = self.tally.ok_or_else(|| {
            Error::data("search: interrupted before the first fold was done; nothing to report")
        })?;
        let order = tally.order();
        let candidates: Result<Vec<Candidate>> = order
            .iter()
            .map(|&at| {
                Ok(Candidate {
                    params: params[at].clone(),
                    score: tally.score(at)?,
                    accuracy: self.accuracy.as_ref().map(|tally| tally.score(at)).transpose()?,
                    iterations: self.iterations[at] / self.folds as f64,
                })
            })
            .collect();
        let lead = |tally: &Tally| match order[..] {
            [best, second, ..] => tally.lead(best, second).map(Some),
            _ => Ok(None),
        };
        Ok(Found {
            candidates: candidates?,
            metric,
            higher_is_better: tally.is_share(),
            lead: lead(&tally)?,
            accuracy_lead: self.accuracy.as_ref().map_or(Ok(None), lead)?,
            folds: (self.folds, planned),
            notes,
        })
    }
}

#[cfg(test)]
mod tests;
