//! A search for as long as a budget of time lasts.

use super::parts::{Part, Parts};
use super::{Found, Random, Search, Sums, Trial};
use crate::compare::clock::Clock;
use gradus_base::Result;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::Run;
use gradus_core::progress::Stop;
use serde_json::{Map, Value};
use std::time::Duration;

impl Search<'_> {
    /// Tries the parameters as they are, and then candidates drawn at random, one after the other, until the time is over. The
    /// first one is always tried to its end; one that the end of the time stops is left out. What is found depends on how fast
    /// the machine is, and each candidate alone does not.
    ///
    /// # Errors
    /// As [`Search::run_random`].
    pub fn run_within(
        &self,
        random: &Random,
        budget: Duration,
        data: &dyn Dataset,
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Found> {
        self.plan.check()?;
        let clock = Clock::start(Some(budget), self.stop.clone());
        let mut candidates = vec![self.fixed.clone()];
        candidates.extend(random.candidates(&self.fixed)?);
        let (parts, mut notes) = Parts::new(data, self.plan, &self.rows, self.seed)?;
        let mut cut = Vec::with_capacity(parts.len());
        let mut first = 0;
        for fold in 0..parts.len() {
            let part = parts.get(fold, first)?;
            first += part.held_out.len();
            cut.push(part);
        }
        let mut trials: Vec<Vec<Trial>> = cut.iter().map(|_| Vec::new()).collect();
        let mut done = Vec::new();
        for candidate in &candidates {
            let left = clock.left(1.0).filter(|_| !done.is_empty());
            if clock.interrupted() || left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let (tried, took) = clock.watch(left, |stop| self.try_one(candidate, &cut, &stop));
            if took.stopped || clock.interrupted() {
                break;
            }
            trials.iter_mut().zip(tried?).for_each(|(of_part, trial)| of_part.push(trial));
            done.push(candidate);
            tell(done.len());
        }
        notes.push(format!("{} candidates were tried within the budget", done.len()));
        let n = done.len();
        let mut sums = Sums { tally: None, accuracy: None, iterations: vec![0.0; n], folds: 0 };
        trials.iter().filter(|trials| !trials.is_empty()).for_each(|trials| sums.add(trials));
        sums.found(&done, cut.len(), notes)
    }

    /// A candidate on every part.
    fn try_one(
        &self,
        candidate: &Map<String, Value>,
        parts: &[Part],
        stop: &Stop,
    ) -> Result<Vec<Trial>> {
        let early = self.stops_early();
        let trial = |part: &Part| {
            let run = Run { stop: stop.clone(), ..Run::default() };
            let validation = early.then_some(part.held_out.as_ref());
            let fitted = self.model.fit(candidate, part.train.as_ref(), validation, &run)?;
            Trial::of(&fitted, part, early)
        };
        parts.iter().map(trial).collect()
    }
}
