//! The loop itself.

use super::{Checkpoint, LoopOptions, Solver, Step, Watch};
use crate::estimator::Job;
use crate::progress::Event;
use crate::report::{Iteration, Measure, Report, StopReason};
use gradus_base::{Error, Result, parallel};
use gradus_file::{Reader, Writer};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A step that takes longer is handed to the thread pool as a whole: its parallel loops then start at once.
const LONG: Duration = Duration::from_micros(500);

/// The state of the loop, kept in the checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LoopState {
    /// The current start, from 0.
    pub(super) restart: usize,
    /// Iterations done in the current start.
    pub(super) iteration: usize,
    pub(super) trace: Vec<Iteration>,
    pub(super) clock: Vec<f64>,
    /// The point of the trace that the snapshot belongs to; kept under a key of its own.
    #[serde(skip)]
    pub(super) best: Option<usize>,
}

impl LoopState {
    /// Returns the quantity minimised over the points of the trace: the held-out score (negated if higher is better)
    /// where there is one, else the objective.
    fn loss(&self, at: usize, options: &LoopOptions<'_>) -> f64 {
        let point = &self.trace[at];
        match point.validation {
            Some(score) if options.higher_is_better => -score,
            Some(score) => score,
            None => point.objective,
        }
    }

    /// Why the current start is over, if it is.
    fn stop_reason(&self, options: &LoopOptions<'_>) -> Option<StopReason> {
        let last = self.trace.len().checked_sub(1).filter(|_| self.iteration > 0)?;
        let first = self.trace.len() - self.iteration;
        let best = (first..=last)
            .min_by(|&a, &b| self.loss(a, options).total_cmp(&self.loss(b, options)))?;
        if self.trace[last].validation.is_some()
            && options.patience > 0
            && last - best >= options.patience
        {
            return Some(StopReason::NoImprovement);
        }
        if options.tol > 0.0 && last > first {
            let before = self.trace[last - 1].objective;
            let fall = before - self.trace[last].objective;
            // A method that may rise has not converged because it rose.
            if (0.0..=options.tol * before.abs()).contains(&fall) {
                return Some(StopReason::Converged);
            }
        }
        (self.iteration >= options.max_iter).then_some(StopReason::MaxIterations)
    }

    /// Takes a snapshot if the last point is the best so far.
    fn update_best(&mut self, options: &LoopOptions<'_>, fit: &mut dyn ErasedFit) {
        let last = self.trace.len() - 1;
        if self.best.is_none_or(|best| self.loss(last, options) < self.loss(best, options)) {
            self.best = Some(last);
            fit.snapshot();
        }
    }
}

/// A solver with its state and its snapshot, without their types: so the loop is compiled once for all
/// solvers.
trait ErasedFit {
    fn start(&mut self, restart: usize) -> Result<()>;
    fn step(&mut self, watch: &Watch<'_>) -> Result<Step>;
    fn validate(&self) -> Option<f64>;
    fn measures(&self) -> Vec<Measure>;
    fn validate_kept(&self, snapshot: bool) -> Option<f64>;
    fn keeps_last(&self) -> bool;
    fn ended(&self) -> Option<StopReason>;
    fn has_atomic_steps(&self) -> bool;
    fn depends_on_max_iter(&self) -> bool;
    fn snapshot(&mut self);
    fn write<'a>(&'a self, file: &mut Writer<'a>);
    /// Reads the state, and the snapshot if the file has one.
    fn read(&mut self, file: &mut Reader, has_snapshot: bool) -> Result<()>;
}

struct FitState<'s, S: Solver> {
    solver: &'s S,
    /// Absent before the start, and while it is read from a file.
    state: Option<S::State>,
    snapshot: Option<S::State>,
    /// Whether the last step took so long that the next is worth handing to the thread pool as a whole.
    is_long: bool,
}

impl<S: Solver> FitState<'_, S> {
    fn state(&self) -> &S::State {
        self.state.as_ref().expect("the loop starts a fit before it looks at its state")
    }
}

impl<S: Solver> ErasedFit for FitState<'_, S> {
    fn start(&mut self, restart: usize) -> Result<()> {
        self.state = Some(self.solver.start(restart)?);
        Ok(())
    }

    fn step(&mut self, watch: &Watch<'_>) -> Result<Step> {
        let state = self.state.as_mut().expect("the loop starts a fit before it takes a step");
        let (solver, began) = (self.solver, Instant::now());
        let step = match self.is_long {
            true => parallel::inside(|| solver.step(state, watch)),
            false => solver.step(state, watch),
        };
        self.is_long = began.elapsed() > LONG;
        step
    }

    fn validate(&self) -> Option<f64> {
        self.solver.validate(self.state())
    }

    fn measures(&self) -> Vec<Measure> {
        Measure::finite(self.solver.measures(self.state()))
    }

    fn validate_kept(&self, snapshot: bool) -> Option<f64> {
        let snapshot = self.snapshot.as_ref().filter(|_| snapshot);
        self.solver.validate_kept(snapshot.unwrap_or_else(|| self.state()))
    }

    fn keeps_last(&self) -> bool {
        self.solver.keeps_last()
    }

    fn ended(&self) -> Option<StopReason> {
        self.solver.ended(self.state())
    }

    fn has_atomic_steps(&self) -> bool {
        self.solver.has_atomic_steps()
    }

    fn depends_on_max_iter(&self) -> bool {
        self.solver.depends_on_max_iter()
    }

    fn snapshot(&mut self) {
        if let Some(state) = &self.state {
            self.solver.snapshot(state, &mut self.snapshot);
        }
    }

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.solver.write_state(self.state(), "state.", file);
        if let Some(snapshot) = &self.snapshot {
            self.solver.write_state(snapshot, "best.", file);
        }
    }

    fn read(&mut self, file: &mut Reader, has_snapshot: bool) -> Result<()> {
        // The old ones go first: two large states at once may be more than there is memory for.
        (self.state, self.snapshot) = (None, None);
        if has_snapshot {
            self.snapshot = Some(self.solver.read_state("best.", file)?);
        }
        self.state = Some(self.solver.read_state("state.", file)?);
        file.verify()
    }
}

/// Runs a solver to its end and returns the best state with the report.
///
/// With held-out data the best state is the one with the best held-out score; without, it is the
/// last one of a start, and over several starts the one whose last objective is smallest. A solver
/// that [keeps its last state](Solver::keeps_last) gives that one of each start.
pub fn run<S: Solver, D>(
    solver: &S,
    options: &LoopOptions<'_>,
    job: &Job<'_, D>,
) -> Result<(S::State, Report)> {
    let watch = Watch { stop: &job.stop, observer: job.observer, in_step: true };
    let mut fit = FitState { solver, state: None, snapshot: None, is_long: false };
    let (report, keeps_snapshot) = repeat(&mut fit, options, watch, job.checkpoint.as_ref())?;
    let FitState { state, snapshot, .. } = fit;
    let kept = snapshot.filter(|_| keeps_snapshot).or(state);
    Ok((kept.ok_or_else(|| Error::data(format!("{}: no state was kept", options.model)))?, report))
}

/// The loop. Returns the report, and whether the snapshot is the result.
fn repeat(
    fit: &mut dyn ErasedFit,
    options: &LoopOptions<'_>,
    watch: Watch<'_>,
    checkpoint: Option<&Checkpoint>,
) -> Result<(Report, bool)> {
    let fixed_length = fit.depends_on_max_iter();
    let resumed = match checkpoint {
        Some(checkpoint) => checkpoint.open(options, fixed_length)?,
        None => None,
    };
    // Whether the checkpoint can be fallen back to: it was read or written by this fit.
    let mut on_file = resumed.is_some();
    let mut at = match resumed {
        Some((mut file, at)) => {
            fit.read(&mut file, at.best.is_some())?;
            let (restart, iteration) = (at.restart, at.iteration);
            watch.observer.notice(&Event::Resumed { restart, iteration });
            at
        }
        None => {
            fit.start(0)?;
            LoopState::default()
        }
    };
    // A checkpoint that cannot be written is no reason to throw away what was computed.
    let write = |at: &LoopState, fit: &dyn ErasedFit| {
        let Some(checkpoint) = checkpoint else { return false };
        let failure = checkpoint.write(options, at, |file| fit.write(file)).err();
        watch.observer.notice(&Event::Checkpoint { failure: failure.as_ref() });
        failure.is_none()
    };
    let before = at.clock.last().copied().unwrap_or(0.0);
    let started = options.started.unwrap_or_else(Instant::now);
    let mut written = Instant::now();
    watch.observer.notice(&Event::Started {
        model: options.model,
        max_iterations: options.max_iter * options.restarts,
        done: at.restart * options.max_iter + at.iteration,
    });

    // Whether the state was left between two iterations, so that only the snapshot is there.
    let mut lost = false;
    let stop_reason = loop {
        let own = if at.iteration > 0 { fit.ended() } else { None };
        if let Some(reason) = own.or_else(|| at.stop_reason(options)) {
            if at.restart + 1 >= options.restarts {
                break reason;
            }
            at.update_best(options, fit);
            at.restart += 1;
            at.iteration = 0;
            fit.start(at.restart)?;
        }
        // Where a checkpoint is asked for, a stopped fit must be resumable, so a snapshot is not enough.
        let can_fall_back = if checkpoint.is_some() { on_file } else { at.best.is_some() };
        let in_step = fit.has_atomic_steps() || can_fall_back;
        let step = match watch.stop.requested() {
            true => Step::Stopped,
            false => fit.step(&Watch { in_step, ..watch })?,
        };
        let objective = match step {
            Step::Done(objective) => objective,
            Step::Stopped => {
                // Before the first iteration there is nothing to keep.
                if !at.trace.is_empty() {
                    write(&at, fit);
                }
                break StopReason::Interrupted;
            }
            Step::Partial => {
                let Some(from) = checkpoint.filter(|_| on_file && at.best.is_none()) else {
                    lost = true;
                    break StopReason::Interrupted;
                };
                let (mut file, earlier) = from.read(options, fixed_length)?;
                fit.read(&mut file, earlier.best.is_some())?;
                at = earlier;
                break StopReason::Interrupted;
            }
        };
        if !objective.is_finite() {
            return Err(Error::data(format!(
                "{}: the objective became {objective} in iteration {}: the values are too large",
                options.model,
                at.iteration + 1
            )));
        }
        at.iteration += 1;
        let (restart, iteration) = (at.restart, at.iteration);
        let (validation, measures) = (fit.validate(), fit.measures());
        let point = Iteration { restart, iteration, objective, validation, measures };
        let seconds = before + started.elapsed().as_secs_f64();
        watch.observer.notice(&Event::Iteration { point: &point, metric: options.metric, seconds });
        at.trace.push(point);
        at.clock.push(seconds);
        if validation.is_some() && !fit.keeps_last() {
            at.update_best(options, fit);
        }
        if checkpoint.is_some_and(|checkpoint| written.elapsed() >= checkpoint.every) {
            on_file |= write(&at, fit);
            written = Instant::now();
        }
    };
    // A fit that only ran out of iterations can go on with more.
    let periodic = checkpoint.is_some_and(|checkpoint| checkpoint.every < Duration::MAX);
    if periodic && stop_reason == StopReason::MaxIterations {
        write(&at, fit);
    }
    watch.observer.notice(&Event::Finished);

    let last = at.trace.len().checked_sub(1).ok_or_else(|| {
        Error::data(format!("{}: interrupted before the first iteration was done", options.model))
    })?;
    let best = at.best.filter(|&best| {
        lost || at.iteration == 0 || at.loss(best, options) <= at.loss(last, options)
    });
    if lost && best.is_none() {
        return Err(Error::data(format!(
            "{}: interrupted in the middle of iteration {}, and no earlier state was kept",
            options.model,
            at.iteration + 1
        )));
    }
    let seconds = before + started.elapsed().as_secs_f64();
    let (trace, clock) = (at.trace, at.clock);
    let mut report = options.report(stop_reason, (trace, clock), best.unwrap_or(last), seconds);
    report.validation = fit.validate_kept(best.is_some()).or(report.validation);
    Ok((report, best.is_some()))
}
