//! Shared parts of the fits of all recommenders: checks of the input, the options of the loop, and remarks in the
//! report.

use crate::baseline;
use crate::catalogue::Catalogue;
use crate::ranking::{HeldOutItems, METRIC};
use crate::scorer::{Scorer, ScoringRule};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job};
use gradus_core::iterate::{self, LoopOptions, Solver};
use gradus_core::params;
use gradus_core::report::{Choice, Report};
use gradus_data::{Entity, Ratings};
use std::time::Instant;

/// The stopping criteria of a fit, its random starts and its seed, as its parameters say.
pub(crate) struct Stopping {
    pub(crate) max_iter: usize,
    pub(crate) tol: f64,
    pub(crate) patience: usize,
    pub(crate) restarts: usize,
    pub(crate) seed: u64,
}

/// The parameters of a recommender that is fitted by the shared loop.
pub(crate) trait Iterative: Fit<Data = Ratings> {
    /// Returns the stopping rule of the loop.
    fn stopping(&self) -> Stopping;
}

/// Implements [`Iterative`] for parameters that have a field for each rule of the loop.
macro_rules! iterative {
    ($Params:ty) => {
        impl $crate::fitting::Iterative for $Params {
            fn stopping(&self) -> $crate::fitting::Stopping {
                let Self { max_iter, tol, patience, restarts, seed, .. } = *self;
                $crate::fitting::Stopping { max_iter, tol, patience, restarts, seed }
            }
        }
    };
}
pub(crate) use iterative;

/// Checks the parameters and the data; the time at which the fit began.
pub(crate) fn begin<P: Fit<Data = Ratings>>(params: &P, data: &Ratings) -> Result<Instant> {
    let started = Instant::now();
    check(params, data)?;
    Ok(started)
}

/// Runs the loop of a model of ratings and compares the result with the baselines.
pub(crate) fn run<P: Iterative, S: Solver>(
    params: &P,
    solver: &S,
    (started, choices): (Instant, Vec<Choice>),
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<(S::State, Report)> {
    let options = loop_options(params, started, data, job).chosen(choices);
    let (state, mut report) = iterate::run(solver, &options, job)?;
    compare_with_baselines(&mut report, data, job)?;
    Ok((state, report))
}

/// The options of the loop for an iterative fit.
pub(crate) fn loop_options<P: Iterative>(
    params: &P,
    started: Instant,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> LoopOptions<'static> {
    let Stopping { max_iter, tol, patience, restarts, seed } = params.stopping();
    // Only a checkpoint needs to recognise the data.
    let fingerprint = job.checkpoint.as_ref().map_or(0, |_| {
        data.fingerprint() ^ job.validation.map_or(0, |v| v.fingerprint().rotate_left(1))
    });
    let options = closed_form_options(params, started);
    LoopOptions { max_iter, tol, patience, restarts, seed, fingerprint, ..options }
}

/// The options for a fit in closed form.
pub(crate) fn closed_form_options<P: Fit<Data = Ratings>>(
    params: &P,
    started: Instant,
) -> LoopOptions<'static> {
    let implicit = P::TRAITS.is_implicit();
    LoopOptions {
        started: Some(started),
        model: P::NAME,
        metric: if implicit { METRIC } else { "rmse" },
        higher_is_better: implicit,
        params: params::record(params),
        ..LoopOptions::default()
    }
}

/// The preparation of fits in closed form to signs of interest.
pub(crate) struct Interest {
    pub(crate) held_out: Option<HeldOutItems>,
    pub(crate) options: LoopOptions<'static>,
    pub(crate) catalogue: Catalogue,
}

impl Interest {
    /// Checks the parameters and the data; takes the ids, the history and the held-out items.
    pub(crate) fn begin<P: Fit<Data = Ratings>>(
        params: &P,
        data: &Ratings,
        job: &Job<'_, Ratings>,
    ) -> Result<Self> {
        let started = Instant::now();
        check(params, data)?;
        check_weights(P::NAME, data)?;
        check_not_negative(P::NAME, data)?;
        let held_out =
            job.validation.map(|held_out| HeldOutItems::new(held_out, data)).transpose()?;
        let options = closed_form_options(params, started);
        Ok(Self { held_out, options, catalogue: Catalogue::new(data, true) })
    }

    /// The held-out score of a rule that scores user by user.
    pub(crate) fn score(&self, rule: &impl ScoringRule) -> Option<f64> {
        let score = |user: usize, scores: &mut [f32]| {
            rule.scores(&self.catalogue.of_user(user), scores);
        };
        self.held_out.as_ref().map(|held_out| held_out.ndcg(score))
    }

    /// The fitted model, its report compared with the baselines.
    pub(crate) fn fitted<R, P>(
        self,
        params: &P,
        data: &Ratings,
        rule: R,
        mut report: Report,
    ) -> Fitted<P>
    where
        R: ScoringRule,
        P: Fit<Data = Ratings, Model = Scorer<R>> + Clone,
    {
        if let Some(held_out) = &self.held_out {
            report.compare_with(held_out.baselines(data));
        }
        Fitted { params: params.clone(), model: Scorer::new(self.catalogue, rule), report }
    }
}

/// Refuses numbers that JSON cannot hold: in a parameter that may be left out, the check by the schema takes
/// them for one that was.
pub(crate) fn check_finite(params: &[(&str, Option<f32>)]) -> Result<()> {
    let wrong = params.iter().find(|(_, value)| value.is_some_and(|value| !value.is_finite()));
    wrong.map_or(Ok(()), |(name, value)| {
        let shown = value.map(|value| value.to_string()).unwrap_or_default();
        Err(Error::parameter(name, shown, "must be a finite number at least 0, or left out"))
    })
}

/// Checks the parameters, and that there are ratings.
pub(crate) fn check<P: Fit<Data = Ratings>>(params: &P, data: &Ratings) -> Result<()> {
    params.check()?;
    if data.is_empty() {
        return Err(Error::data(format!("{}: no ratings to learn from", P::NAME)));
    }
    match Entity::ALL.into_iter().find(|&of| data.features(of).is_some()) {
        Some(of) if !P::TRAITS.takes_features() => Err(Error::data(format!(
            "{}: it learns from ratings alone, and these come with features of {}s (option `{}`); `als`, \
             `ials` and `bayes` learn from both",
            P::NAME,
            of.name(),
            of.option()
        ))),
        _ => Ok(()),
    }
}

/// Refuses ratings that all have weight 0.
pub(crate) fn check_weights(model: &str, data: &Ratings) -> Result<()> {
    if data.weights_by_user().is_some_and(|weights| weights.iter().all(|&w| w == 0.0)) {
        return Err(no_weight(model));
    }
    Ok(())
}

/// The error of ratings that all have weight 0.
pub(crate) fn no_weight(model: &str) -> Error {
    Error::data(format!("{model}: all ratings have weight 0; nothing to learn from"))
}

/// Refuses values that cannot be signs of interest.
pub(crate) fn check_not_negative(model: &str, data: &Ratings) -> Result<()> {
    match data.by_user().values().iter().find(|&&value| value < 0.0) {
        Some(value) => Err(Error::data(format!(
            "{model}: a value of {value} is negative; it learns from signs of interest (counts, \
             clicks), which are 0 or more"
        ))),
        None => Ok(()),
    }
}

/// The sums of `w r` and of `w` over all ratings.
///
/// # Errors
/// If all weights are zero.
pub(crate) fn total(model: &str, data: &Ratings) -> Result<(f64, f64)> {
    let (mut sum, mut weight) = (0.0, 0.0);
    for rating in data.iter() {
        sum += f64::from(rating.weight) * f64::from(rating.value);
        weight += f64::from(rating.weight);
    }
    if weight > 0.0 { Ok((sum, weight)) } else { Err(no_weight(model)) }
}

/// Compares the held-out error with those of the baselines.
pub(crate) fn compare_with_baselines(
    report: &mut Report,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<()> {
    if let Some(validation) = job.validation.filter(|_| job.baselines) {
        report.compare_with(baseline::scores(data, validation)?);
    }
    Ok(())
}

/// The error of a fit that was stopped before it had anything to show.
pub(crate) fn interrupted(model: &str) -> Error {
    Error::data(format!("{model}: interrupted before it was done"))
}

/// Remarks on rows that needed double precision; `what` was done to them.
pub(crate) fn note_fallbacks(report: &mut Report, what: &str, fallbacks: u64) {
    if fallbacks > 0 {
        report.notes.push(format!(
            "{fallbacks} {what} were too ill-conditioned for single precision and were redone in double"
        ));
    }
}
