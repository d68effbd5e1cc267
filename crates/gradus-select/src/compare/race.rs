//! The order of fits in a race, and the data each of them gets.

use super::clock::{Clock, Took};
use super::metric::Losses;
use super::parts::{Part, Race, cut};
use super::result::{
    FitOutcome, FitRecord, FitStage, PartSizes, Tested, Unranked, better, leaderboard, same_points,
};
use super::{Compare, Compared, RaceStep};
use crate::search::Dependence;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_core::report::StopReason;
use serde_json::{Map, Value};
use std::time::Duration;

/// A stage of the race has at least this many units.
const LEAST: usize = 20_000;
/// Each stage has this many times the units of the one before.
const GROWTH: f64 = 3.0;
/// Stages of the race at most.
const STAGES: usize = 4;
/// The smallest number of models that go on from a stage.
const SURVIVORS: usize = 3;
/// The share of the budget that is spent when the race is over.
const RACED: f64 = 0.45;
/// The share that is spent when all tests are over, if the winner is fitted once more.
const TESTED: f64 = 0.8;
/// The models together have one part in this many of the time of a stage in its first turn, so that quick models are
/// fitted whatever the slow ones take.
const FIRST: f64 = 4.0;
/// The factor by which the time of a model grows in each further turn.
const NEXT: f64 = 3.0;
/// A model is not tried if its fit is predicted to take this many times what is left.
const HOPELESS: f64 = 1.5;
/// The validation part of the race, as a share of the test part's.
const VALIDATION: f64 = 0.625;

/// A model that may still win.
struct Candidate<'a> {
    model: &'a dyn Estimator,
    place: usize,
    /// The last score in the race, and the share of the training data.
    score: Option<(f64, f64)>,
    /// Units and seconds of its fits.
    times: Vec<(f64, f64)>,
    /// Why it was not fitted last time, and how much time it had then.
    late: Option<(String, f64)>,
}

impl Candidate<'_> {
    /// How long a fit on this many units will take, by what earlier fits took.
    fn predicted(&self, units: usize) -> f64 {
        let (n, seconds) = match self.times.last() {
            Some(last) => *last,
            None => return 0.0,
        };
        let power = match self.times[..] {
            [.., (n1, t1), (n2, t2)] if n2 > n1 && t1 > 0.0 => {
                ((t2 / t1).ln() / (n2 / n1).ln()).clamp(0.7, 3.0)
            }
            _ => 1.0,
        };
        seconds * (units as f64 / n.max(1.0)).powf(power)
    }
}

/// The data on which models are fitted and evaluated.
struct On<'a> {
    stage: FitStage,
    share: f64,
    train: &'a dyn Dataset,
    held_out: &'a dyn Dataset,
    groups: Option<&'a [u32]>,
    /// The share of the budget that may be spent in the end; no limit if there is none.
    until: Option<f64>,
}

struct Runner<'a> {
    compare: &'a Compare<'a>,
    clock: Clock,
    observe: &'a (dyn Fn(&RaceStep<'_>) + Sync),
    fits: Vec<FitRecord>,
    others: Vec<Unranked>,
    /// Models that others were better than in the race, and what is said of them.
    dropped: Vec<(Candidate<'a>, String)>,
    /// Models whose time was over in the race.
    late: Vec<Candidate<'a>>,
    tested: Vec<Tested>,
    /// The best of the tested models and its score.
    best: Option<(AnyFitted, f64, f64)>,
}

/// Does the whole comparison.
pub(super) fn run(
    compare: &Compare<'_>,
    data: &dyn Dataset,
    observe: &(dyn Fn(&RaceStep<'_>) + Sync),
) -> Result<Compared> {
    if compare.models.is_empty() {
        return Err(Error::data("compare: no model takes part"));
    }
    if let Some(zero) = compare.budget.filter(Duration::is_zero) {
        let rule = "must be greater than 0, or none for no limit";
        return Err(Error::parameter("budget", format!("{zero:?}"), rule));
    }
    let how = (compare.split.as_str(), compare.holdout);
    let whole = cut(data, &compare.rows, how, compare.seed)?;
    let clock = Clock::start(compare.budget, compare.stop.clone());
    let mut runner = Runner {
        compare,
        clock,
        observe,
        fits: Vec::new(),
        others: Vec::new(),
        dropped: Vec::new(),
        late: Vec::new(),
        tested: Vec::new(),
        best: None,
    };
    let mut sizes =
        PartSizes { train: whole.train.len(), validation: 0, test: whole.held_out.len() };
    let all = compare.models.iter().enumerate();
    let all = all.map(|(place, &model)| Candidate {
        model,
        place,
        score: None,
        times: Vec::new(),
        late: None,
    });
    let (baselines, mut candidates): (Vec<_>, Vec<_>) =
        all.partition(|candidate| candidate.model.traits().baseline);
    let models = baselines.len() + candidates.len();
    let (_, _) = runner.attempts(baselines, &on_everything(&whole, None), FIRST);
    // Little data, which may be too little to be cut once more, has no race.
    let large = !stages(whole.train.len()).is_empty();
    if compare.budget.is_some() && !candidates.is_empty() && large {
        let validation = match compare.holdout {
            share if share < 1.0 => share * VALIDATION,
            count => count,
        };
        let race = Race::new(&whole, (compare.split.as_str(), validation), compare.seed)?;
        let shares = stages(race.len());
        if !shares.is_empty() {
            sizes.validation = race.held_out();
            candidates = runner.race(candidates, &race, &shares, whole.train.len());
        }
    }
    let until = if compare.refit { TESTED } else { 1.0 };
    runner.test(candidates, &on_everything(&whole, Some(until)));
    let refitted = runner.refit(data);
    finish(runner, data, &whole, sizes, models, refitted)
}

/// The shares of the training data that the race is run on, smallest first; none for little data.
fn stages(units: usize) -> Vec<f64> {
    let shares = (1..=STAGES).map(|stage| GROWTH.powi(-(stage as i32)));
    let mut shares: Vec<f64> = shares.take_while(|s| s * units as f64 >= LEAST as f64).collect();
    shares.reverse();
    shares
}

impl<'a> Runner<'a> {
    /// Fits a model, within a limit if there is one. Gives the model if the fit came to its end.
    fn fit(
        &mut self,
        model: &dyn Estimator,
        (data, share): (&dyn Dataset, f64),
        limit: Option<Duration>,
        stage: FitStage,
    ) -> (Option<AnyFitted>, Took) {
        let mut params: Map<String, Value> = Map::new();
        if model.specs().iter().any(|spec| spec.name == "seed") {
            params.insert("seed".into(), self.compare.seed.into());
        }
        let (fitted, took) = self.clock.watch(limit, |stop| {
            let run = Run { stop, ..Run::default() };
            model.fit(&params, data, None, &run)
        });
        // A fit that was asked to stop is not the model that its defaults mean, whatever it gives.
        let outcome = match &fitted {
            _ if self.clock.interrupted() => FitOutcome::Interrupted,
            _ if took.stopped => FitOutcome::OutOfTime,
            Ok(fitted) if fitted.report.stop_reason == StopReason::Interrupted => {
                FitOutcome::OutOfTime
            }
            Ok(_) => FitOutcome::Complete,
            Err(error) => FitOutcome::Failed(error.to_string()),
        };
        let complete = outcome == FitOutcome::Complete;
        self.fits.push(FitRecord {
            model: model.name().to_owned(),
            stage,
            share,
            units: data.len(),
            seconds: took.seconds,
            outcome,
            score: None,
        });
        (fitted.ok().filter(|_| complete), took)
    }

    /// Records why a model is out, from the outcome of its last fit.
    fn out(&mut self, candidate: &Candidate<'_>, reason: String) {
        let (score, share) = candidate.score.unzip();
        let model = candidate.model.name().to_owned();
        self.others.push(Unranked { model, reason, score, share });
    }

    /// Why the last fit gave no model.
    fn last_reason(&self) -> String {
        let Some(last) = self.fits.last() else { return String::new() };
        match &last.outcome {
            FitOutcome::Failed(error) => format!("not fitted: {error}"),
            FitOutcome::Interrupted => "interrupted".to_owned(),
            FitOutcome::OutOfTime => {
                let part = match last.stage {
                    FitStage::Race => format!(", on {:.0} % of the data", 100.0 * last.share),
                    _ => String::new(),
                };
                format!("stopped by the budget after {}{part}", short(last.seconds))
            }
            FitOutcome::Complete => String::new(),
        }
    }

    /// Fits models and evaluates them: each in a slice of the time first, and those that need more in
    /// larger slices in turn, so that a slow model keeps no quick one from its fit. Gives those that were
    /// evaluated, and those whose time was over. In the first turn they have one part in `first` of the time.
    fn attempts(
        &mut self,
        candidates: Vec<Candidate<'a>>,
        on: &On<'_>,
        first: f64,
    ) -> (Vec<Candidate<'a>>, Vec<Candidate<'a>>) {
        let left = |runner: &Self| on.until.and_then(|until| runner.clock.left(until));
        let (n, units) = (candidates.len(), on.train.len());
        let mut slice = left(self).map(|left| left.as_secs_f64() / (first * n.max(1) as f64));
        let (mut pending, mut done, mut late) = (candidates, Vec::new(), Vec::new());
        while !pending.is_empty() {
            let mut again = Vec::new();
            for mut candidate in pending {
                if self.clock.interrupted() {
                    self.out(&candidate, "interrupted".into());
                    continue;
                }
                let limit = match (left(self).map(|left| left.as_secs_f64()), slice) {
                    (Some(left), Some(slice)) => {
                        let needed = candidate.predicted(units);
                        let had = candidate.late.as_ref().map_or(0.0, |late| late.1);
                        if left <= 0.0 || needed > HOPELESS * left || left < 1.5 * had {
                            let reason = match candidate.late.take() {
                                Some((reason, _)) => reason,
                                None if needed > left && left > 0.0 => format!(
                                    "not fitted: it would take about {}, and {} of the budget were left",
                                    short(needed),
                                    short(left)
                                ),
                                None => "not fitted: no time was left in the budget".to_owned(),
                            };
                            candidate.late = Some((reason, had));
                            late.push(candidate);
                            continue;
                        }
                        Some(Duration::from_secs_f64(slice.max(2.0 * needed).min(left)))
                    }
                    _ => None,
                };
                match self.attempt(candidate, on, limit, (done.len() + 1, n)) {
                    Attempt::Evaluated(candidate) => done.push(candidate),
                    Attempt::Late(candidate) => again.push(candidate),
                    Attempt::Out => {}
                }
            }
            pending = again;
            slice = slice.map(|slice| NEXT * slice);
        }
        (done, late)
    }

    /// Fits a model once and evaluates it.
    fn attempt(
        &mut self,
        mut candidate: Candidate<'a>,
        on: &On<'_>,
        limit: Option<Duration>,
        of: (usize, usize),
    ) -> Attempt<'a> {
        let model = candidate.model;
        (self.observe)(&RaceStep { model: model.name(), stage: on.stage, share: on.share, of });
        let (fitted, took) = self.fit(model, (on.train, on.share), limit, on.stage);
        let Some(fitted) = fitted else {
            let reason = self.last_reason();
            if self.fits.last().is_some_and(|fit| fit.outcome == FitOutcome::OutOfTime) {
                candidate.late = Some((reason, took.seconds));
                return Attempt::Late(candidate);
            }
            self.out(&candidate, reason);
            return Attempt::Out;
        };
        let metric = self.compare.metric;
        let evaluated = Losses::of(&fitted, metric, (on.train, on.held_out), on.groups);
        let evaluated = evaluated.and_then(|losses| match self.tested.first() {
            Some(first) if on.stage == FitStage::Test => {
                same_points(&first.losses, &losses).map(|()| losses)
            }
            _ => Ok(losses),
        });
        let losses = match evaluated {
            Ok(losses) => losses,
            Err(error) => {
                self.out(&candidate, format!("not evaluated: {error}"));
                return Attempt::Out;
            }
        };
        let score = losses.score(metric);
        if let Some(last) = self.fits.last_mut() {
            last.score = Some(score);
        }
        candidate.late = None;
        candidate.times.push((on.train.len() as f64, took.seconds));
        if on.stage == FitStage::Race {
            candidate.score = Some((score, on.share));
        } else {
            self.take(&candidate, fitted, losses, score, took, on.train);
        }
        Attempt::Evaluated(candidate)
    }

    /// Keeps what a test found, and the model if it is the best so far.
    fn take(
        &mut self,
        candidate: &Candidate<'_>,
        mut fitted: AnyFitted,
        losses: Losses,
        score: f64,
        took: Took,
        train: &dyn Dataset,
    ) {
        let file = fitted.to_writer();
        let bytes = file.names().filter_map(|name| file.get(name));
        let bytes = bytes.map(|(_, _, data)| data.len() as u64).sum();
        drop(file);
        let earlier = |tested: &Tested| candidate.place < tested.place;
        let wins = match &self.best {
            None => true,
            Some((_, best, _)) if *best == score => {
                self.tested.iter().filter(|tested| tested.score == score).all(earlier)
            }
            Some((_, best, _)) => better(self.compare.metric, score, *best),
        };
        self.tested.push(Tested {
            model: candidate.model.name(),
            place: candidate.place,
            losses,
            score,
            seconds: took.seconds,
            memory: took.memory,
            bytes,
            baseline: candidate.model.traits().baseline,
        });
        if wins {
            fitted.report.training = Some(train.sketch());
            self.best = Some((fitted, score, took.seconds));
        }
    }

    /// The race; gives those that go on to the test, best first.
    fn race(
        &mut self,
        mut candidates: Vec<Candidate<'a>>,
        race: &Race,
        shares: &[f64],
        units: usize,
    ) -> Vec<Candidate<'a>> {
        let tested = if self.compare.refit { TESTED } else { 1.0 };
        let ranking = self.compare.models.iter().any(|model| model.traits().is_implicit());
        let needed = |of: &[Candidate<'_>], units: f64| -> f64 {
            of.iter().map(|one| one.predicted(units as usize)).sum()
        };
        for (number, &share) in shares.iter().enumerate() {
            // The quick ones first: what they leave is there for the slow ones.
            candidates.sort_by(|a, b| a.predicted(units).total_cmp(&b.predicted(units)));
            let part = race.stage(share, ranking);
            let on = On {
                stage: FitStage::Race,
                share,
                train: part.train.as_ref(),
                held_out: part.held_out.as_ref(),
                groups: part.groups.as_deref(),
                until: Some(RACED),
            };
            let (evaluated, late) = self.attempts(candidates, &on, FIRST);
            self.late.extend(late);
            candidates = evaluated;
            let score = |candidate: &Candidate<'_>| candidate.score.map_or(f64::NAN, |s| s.0);
            candidates.sort_by(|a, b| {
                let order = score(a).total_cmp(&score(b));
                let order =
                    if self.compare.metric.higher_is_better() { order.reverse() } else { order };
                order.then(a.place.cmp(&b.place))
            });
            let left = |share: f64| {
                self.clock.left(share).map_or(f64::INFINITY, |left| left.as_secs_f64())
            };
            let few = candidates.len() <= SURVIVORS && number > 0;
            if few || needed(&candidates, units as f64) <= 0.8 * left(tested) {
                return candidates;
            }
            // Where all of them can be evaluated by more data, none is evaluated by this.
            let next = shares.get(number + 1).map(|next| next * race.len() as f64);
            if next.is_some_and(|next| needed(&candidates, next) <= 0.8 * left(RACED)) {
                continue;
            }
            let keep = candidates.len().div_ceil(2).max(SURVIVORS).min(candidates.len());
            let mut dropped = Vec::new();
            for candidate in candidates.split_off(keep) {
                let reason = format!(
                    "out of the race: {keep} were better on {:.0} % of the {}",
                    100.0 * share,
                    race.unit()
                );
                dropped.push((candidate, reason));
            }
            // Later ones were dropped by more data: they come first.
            dropped.append(&mut self.dropped);
            self.dropped = dropped;
        }
        candidates
    }

    /// Tests what came through the race, best first; then, as long as there is time that nobody else
    /// needs, what was out of the race; last, what ran late.
    fn test(&mut self, candidates: Vec<Candidate<'a>>, on: &On<'_>) {
        let (_, late) = self.attempts(candidates, on, FIRST);
        for (candidate, reason) in std::mem::take(&mut self.dropped) {
            let left = on.until.and_then(|until| self.clock.left(until));
            let left = left.map_or(f64::INFINITY, |left| left.as_secs_f64());
            if candidate.predicted(on.train.len()) <= 0.8 * left && !self.clock.interrupted() {
                let (_, late) = self.attempts(vec![candidate], on, 1.0);
                self.late.extend(late);
            } else {
                self.out(&candidate, reason);
            }
        }
        // They are known to be slow: small slices would be wasted on them.
        let waiting = std::mem::take(&mut self.late);
        let (_, still) = self.attempts(waiting, on, 1.0);
        for mut candidate in late.into_iter().chain(still) {
            let reason = candidate.late.take().map_or(String::new(), |late| late.0);
            self.out(&candidate, reason);
        }
    }

    /// Fits the winner on all the data if that is wanted and time allows; the reason if it was not done.
    fn refit(&mut self, data: &dyn Dataset) -> Option<std::result::Result<(), String>> {
        if !self.compare.refit {
            return None;
        }
        let (best, _, seconds) = self.best.as_ref()?;
        let (kind, seconds) = (best.kind, *seconds);
        if self.clock.interrupted() {
            return Some(Err("it was interrupted".into()));
        }
        let model = *self.compare.models.iter().find(|model| model.name() == kind)?;
        let limit = if model.traits().baseline { None } else { self.clock.left(1.0) };
        let units = self.fits.iter().rev().find(|fit| fit.stage == FitStage::Test)?.units;
        let needed = 1.1 * seconds * data.len() as f64 / units.max(1) as f64;
        if limit.is_some_and(|left| left.as_secs_f64() < needed) {
            return Some(Err("the budget had no time for that".into()));
        }
        let stage = FitStage::Refit;
        (self.observe)(&RaceStep { model: kind, stage, share: 1.0, of: (1, 1) });
        let (fitted, _) = self.fit(model, (data, 1.0), limit, stage);
        Some(match fitted {
            Some(mut fitted) => {
                fitted.report.training = Some(data.sketch());
                if let Some(best) = &mut self.best {
                    best.0 = fitted;
                }
                Ok(())
            }
            None => Err(self.last_reason()),
        })
    }
}

/// The outcome of an attempt.
enum Attempt<'a> {
    Evaluated(Candidate<'a>),
    /// The time was over.
    Late(Candidate<'a>),
    /// The fit failed.
    Out,
}

/// The whole training part, and the test part.
fn on_everything(whole: &Part, until: Option<f64>) -> On<'_> {
    On {
        stage: FitStage::Test,
        share: 1.0,
        train: whole.train.as_ref(),
        held_out: whole.held_out.as_ref(),
        groups: whole.groups.as_deref(),
        until,
    }
}

fn finish(
    runner: Runner<'_>,
    data: &dyn Dataset,
    whole: &Part,
    parts: PartSizes,
    models: usize,
    refitted: Option<std::result::Result<(), String>>,
) -> Result<Compared> {
    let Runner { compare, clock, fits, others, tested, best, .. } = runner;
    let interrupted = clock.interrupted();
    if tested.is_empty() && !interrupted {
        let reasons: Vec<String> =
            others.iter().map(|one| format!("{}: {}", one.model, one.reason)).collect();
        let short = others.iter().all(|one| one.reason.contains("budget"));
        let advice = if short { "; give more time (option `budget`)" } else { "" };
        return Err(Error::data(format!(
            "compare: no model could be tested{advice}\n{}",
            reasons.join("\n")
        )));
    }
    let mut comparison = leaderboard(compare, tested)?;
    comparison.interrupted = interrupted;
    comparison.parts = parts;
    comparison.units = match &compare.rows {
        Dependence::Groups(_) => "groups",
        _ if compare.models.iter().any(|m| m.traits().can(Capability::Recommend)) => "users",
        _ => data.kind(),
    };
    comparison.seconds = clock.seconds();
    comparison.fits = fits;
    comparison.others = others;
    match refitted {
        Some(Ok(())) => comparison.best_on_all_data = true,
        Some(Err(reason)) => comparison.notes.push(format!(
            "the winner was fitted on the training part ({} of {} {}), not on all the data: {reason}",
            whole.train.len(),
            data.len(),
            data.kind()
        )),
        None => {}
    }
    let late = clock.left(1.0).is_some_and(|left| left.is_zero());
    if late && comparison.rows.len() < models {
        comparison
            .notes
            .push("the budget was spent; with more of it more models are tested".into());
    }
    Ok(Compared { comparison, best: best.map(|(fitted, _, _)| fitted) })
}

/// Seconds for people.
fn short(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_grow_by_three_and_little_data_has_none() {
        assert!(stages(59_999).is_empty());
        assert_eq!(stages(60_000), [1.0 / 3.0]);
        let found = stages(10_000_000);
        assert_eq!(found.len(), STAGES);
        assert!((found[0] - 1.0 / 81.0).abs() < 1e-15 && found[STAGES - 1] == 1.0 / 3.0);
    }
}
