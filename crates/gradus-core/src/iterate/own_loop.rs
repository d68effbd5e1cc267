//! Fits that need no loop of ours: those with a loop of their own, and closed forms.

use super::{LoopOptions, Watch};
use crate::estimator::Job;
use crate::progress::{Event, Stop};
use crate::report::{Certificate, Iteration, Measure, Report, StopReason};
use gradus_base::{Error, Result};
use std::time::Instant;

/// Runs a fit that has a closed form and reports it to the observer as one iteration.
///
/// `solve` returns the solution, the objective and the held-out score.
pub fn direct<T, D>(
    options: &LoopOptions<'_>,
    job: &Job<'_, D>,
    solve: impl FnOnce() -> Result<(T, f64, Option<f64>)>,
) -> Result<(T, Report)> {
    let started = options.started.unwrap_or_else(Instant::now);
    job.observer.notice(&Event::Started { model: options.model, max_iterations: 1, done: 0 });
    let (solution, objective, validation) = solve()?;
    let seconds = started.elapsed().as_secs_f64();
    let point = Iteration { restart: 0, iteration: 1, objective, validation, measures: Vec::new() };
    job.observer.notice(&Event::Iteration { point: &point, metric: options.metric, seconds });
    job.observer.notice(&Event::Finished);
    let report = options.report(StopReason::Solved, (vec![point], vec![seconds]), 0, seconds);
    Ok((solution, report))
}

/// The interface of a fit with a loop of its own: requests to stop, and progress; see [`own_loop`].
pub struct OwnLoop<'a> {
    options: &'a LoopOptions<'a>,
    watch: Watch<'a>,
    started: Instant,
    trace: Vec<Iteration>,
    clock: Vec<f64>,
}

impl OwnLoop<'_> {
    /// The model's name.
    pub fn model(&self) -> &str {
        self.options.model
    }

    /// Whether to return as soon as possible, with the best so far.
    pub fn stopped(&self) -> bool {
        self.watch.stopped()
    }

    /// The flag that [`stopped`](Self::stopped) reads, to pass it on.
    pub fn stop(&self) -> &Stop {
        self.watch.stop
    }

    /// Reports the share of the current iteration that is done.
    pub fn within(&self, share: f64) {
        self.watch.within(share);
    }

    /// Reports that an iteration is done.
    pub fn iteration(&mut self, objective: f64) {
        self.iteration_with(objective, Vec::new());
    }

    /// Reports that an iteration is done, with further measures.
    pub fn iteration_with(&mut self, objective: f64, measures: Vec<Measure>) {
        let iteration = self.trace.len() + 1;
        let measures = Measure::finite(measures);
        let point = Iteration { restart: 0, iteration, objective, validation: None, measures };
        let seconds = self.started.elapsed().as_secs_f64();
        let metric = self.options.metric;
        self.watch.observer.notice(&Event::Iteration { point: &point, metric, seconds });
        self.trace.push(point);
        self.clock.push(seconds);
    }
}

/// The outcome of a fit with a loop of its own; see [`own_loop`].
pub struct LoopOutcome {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The objective at the end.
    pub objective: f64,
    /// The held-out score at the end, if there was held-out data.
    pub validation: Option<f64>,
    /// A bound on the distance from the optimum.
    pub certificate: Option<Certificate>,
    /// Remarks for the report.
    pub notes: Vec<String>,
}

/// Runs a fit that has a loop of its own, because it is too short or too intricate to be cut into
/// steps that can be written to a checkpoint.
///
/// Such a fit reports its iterations to the observer and looks at the stop flag. It has no checkpoint:
/// after an interruption it starts anew and gives the same result.
///
/// # Errors
/// Those of `solve`; and if its objective is not finite.
pub fn own_loop<T, D>(
    options: &LoopOptions<'_>,
    job: &Job<'_, D>,
    solve: impl FnOnce(&mut OwnLoop<'_>) -> Result<(T, LoopOutcome)>,
) -> Result<(T, Report)> {
    let started = options.started.unwrap_or_else(Instant::now);
    job.observer.notice(&Event::Started {
        model: options.model,
        max_iterations: options.max_iter.max(1),
        done: 0,
    });
    let watch = Watch { stop: &job.stop, observer: job.observer, in_step: true };
    let mut own = OwnLoop { options, watch, started, trace: Vec::new(), clock: Vec::new() };
    let (solution, outcome) = solve(&mut own)?;
    if !outcome.objective.is_finite() {
        return Err(Error::data(format!(
            "{}: the objective became {}: the values are too large",
            options.model, outcome.objective
        )));
    }
    if own.trace.last().is_none_or(|last| last.objective != outcome.objective) {
        own.iteration(outcome.objective);
    }
    job.observer.notice(&Event::Finished);
    let OwnLoop { mut trace, clock, .. } = own;
    let last = trace.len() - 1;
    trace[last].validation = outcome.validation;
    let seconds = started.elapsed().as_secs_f64();
    let mut report = options.report(outcome.stop_reason, (trace, clock), last, seconds);
    report.certificate = outcome.certificate;
    report.notes = outcome.notes;
    Ok((solution, report))
}
