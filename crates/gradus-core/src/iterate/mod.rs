//! The loop that every iterative fit shares: trace, stopping, restarts, checkpoints, Ctrl-C.
//!
//! A model implements [`Solver`]: how to start, how to take one step, how to write its state to a
//! file. [`run`] does the rest and returns the best state with the [`Report`].
//! Because the loop is in one place, every model stops for the same reasons, resumes to the same bits
//! and keeps the best iterate in the same way.
//!
//! | form | for |
//! |---|---|
//! | [`run`] | a solver whose steps the loop takes one by one |
//! | [`own_loop`] | an algorithm with a loop of its own, which reports its iterations |
//! | [`direct`] | a closed form |

mod checkpoint;
mod own_loop;
mod run;

pub use checkpoint::Checkpoint;
pub use own_loop::{LoopOutcome, OwnLoop, direct, own_loop};
pub use run::run;

use crate::progress::{Event, Observer, Silent, Stop};
use crate::report::{Choice, Iteration, Measure, Report, StopReason};
use gradus_base::Result;
use gradus_file::{Reader, Writer};
use serde_json::{Map, Value};
use std::time::Instant;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The iteration is done; the value is the objective after it.
    Done(f64),
    /// The step saw [`Watch::stopped`] and left. The state is as it was before the step.
    Stopped,
    /// The step saw [`Watch::stopped`] and left. The state is between two iterations, and the loop must
    /// not use it. Only a solver without [atomic steps](Solver::has_atomic_steps) may answer this.
    Partial,
}

impl Step {
    /// The objective, if the iteration is done.
    pub fn objective(self) -> Option<f64> {
        match self {
            Self::Done(objective) => Some(objective),
            Self::Stopped | Self::Partial => None,
        }
    }
}

/// One iterative algorithm, bound to its data.
///
/// # Stopping in the middle of a step
///
/// A step that takes long asks [`Watch::stopped`] from time to time. When that is true, the step has
/// three choices:
///
/// 1. It undoes its work, or never changed the state, and answers [`Step::Stopped`]. The loop keeps the
///    state and writes it to the checkpoint.
/// 2. It finishes the iteration and answers [`Step::Done`]. The loop stops after it.
/// 3. It leaves the state half changed and answers [`Step::Partial`]. The loop throws the state away and
///    falls back to the last snapshot; without a snapshot, to the state in the last checkpoint. This is
///    for states that are too large to be copied before each step. Such a solver overrides
///    [`has_atomic_steps`](Self::has_atomic_steps). In return, the loop does not ask it to stop in the
///    middle of a step before there is something to fall back to: [`Watch::stopped`] stays false, and the
///    iteration is finished.
///
/// A long step is taken on a thread of the pool, hence `Sync` and `Send`.
pub trait Solver: Sync {
    /// The state: everything that changes from step to step.
    type State: Clone + Send;

    /// The initial state; `restart` counts the random starts from 0.
    fn start(&self, restart: usize) -> Result<Self::State>;

    /// Takes one iteration. See [the trait](Self) for what to do when [`Watch::stopped`] is true.
    fn step(&self, state: &mut Self::State, watch: &Watch<'_>) -> Result<Step>;

    /// The held-out score, if there is held-out data: an error, or a score under
    /// [`LoopOptions::higher_is_better`].
    fn validate(&self, state: &Self::State) -> Option<f64>;

    /// Further measures of the state after an iteration, such as the training accuracy. They go into the
    /// trace and to the observer; no decision depends on them. A value that is not finite is left out.
    fn measures(&self, state: &Self::State) -> Vec<Measure> {
        let _ = state;
        Vec::new()
    }

    /// Why a start is over, by a rule of the algorithm's own; asked after each iteration, beside the rules of the loop. The
    /// answer must depend on the state alone, so that a resumed fit ends where the whole one does.
    fn ended(&self, state: &Self::State) -> Option<StopReason> {
        let _ = state;
        None
    }

    /// Whether a step that is stopped leaves the state as it was before. If not, a step may answer
    /// [`Step::Partial`].
    fn has_atomic_steps(&self) -> bool {
        true
    }

    /// Copies the state to `snapshot`, because it is the best so far. The loop holds one snapshot at most
    /// and hands back the last one, so that its memory can be used again.
    ///
    /// The default copies the whole state with [`Clone::clone_from`], which a derived `Clone` does not make
    /// use of: implement it where nothing should be allocated again. A solver with a large state may copy
    /// only what the model needs (the weights, without the optimizer's moments): a fit never goes on from
    /// a snapshot. A snapshot must be enough for [`validate_kept`](Self::validate_kept),
    /// [`write_state`](Self::write_state) and the result of the fit.
    fn snapshot(&self, state: &Self::State, snapshot: &mut Option<Self::State>) {
        match snapshot {
            Some(snapshot) => snapshot.clone_from(state),
            None => *snapshot = Some(state.clone()),
        }
    }

    /// Whether the steps depend on the number of iterations asked for, as those of a schedule do
    /// that ends with the last one. If so, a fit cannot be resumed with another number.
    fn depends_on_max_iter(&self) -> bool {
        false
    }

    /// The held-out score of the state that is kept, where [`validate`](Self::validate) looks at a
    /// sample of the held-out data only; `None` where the two are the same.
    fn validate_kept(&self, state: &Self::State) -> Option<f64> {
        let _ = state;
        None
    }

    /// Whether the last state is the result, whatever its score: true of an average that every
    /// further iteration completes. Otherwise the best one is.
    fn keeps_last(&self) -> bool {
        false
    }

    /// Writes a state or a snapshot to a file, under names that begin with `prefix`.
    fn write_state<'a>(&self, state: &'a Self::State, prefix: &str, file: &mut Writer<'a>);

    /// Reads it back.
    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Self::State>;
}

/// The interface of a running step: requests to stop, and progress.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    stop: &'a Stop,
    observer: &'a dyn Observer,
    /// Whether a request to stop reaches the step at once, not only after it.
    in_step: bool,
}

impl Watch<'static> {
    /// A watch without an observer that never stops: to call a solver's step by hand.
    pub fn unwatched() -> Self {
        static NEVER: std::sync::LazyLock<Stop> = std::sync::LazyLock::new(Stop::new);
        Self { stop: &NEVER, observer: &Silent, in_step: true }
    }
}

impl Watch<'_> {
    /// Whether the step should return as soon as it can.
    pub fn stopped(&self) -> bool {
        self.in_step && self.stop.requested()
    }

    /// Reports the share of this iteration that is done, from 0 to 1.
    pub fn within(&self, share: f64) {
        self.observer.notice(&Event::Within(share));
    }
}

/// The options of the loop: when it ends, and what the report and the checkpoint say about the fit.
#[derive(Clone, Debug, Default)]
pub struct LoopOptions<'a> {
    /// The start of the fit, if before the loop: the time of its preparations counts.
    pub started: Option<Instant>,
    /// The model's name.
    pub model: &'a str,
    /// The metric of the held-out score.
    pub metric: &'a str,
    /// Whether a larger held-out score is better: true of NDCG, false of RMSE.
    pub higher_is_better: bool,
    /// Largest number of iterations of each start.
    pub max_iter: usize,
    /// The loop ends when the objective falls by less than this share of itself.
    pub tol: f64,
    /// The loop ends when the held-out score has not improved for this many iterations; 0 turns that off.
    pub patience: usize,
    /// Number of random starts; the best is kept.
    pub restarts: usize,
    /// The seed, for the report.
    pub seed: u64,
    /// The parameters, so that a checkpoint of another fit is refused.
    pub params: Map<String, Value>,
    /// A fingerprint of the data, for the same reason.
    pub fingerprint: u64,
    /// The values chosen for parameters that were left out, for the report and the checkpoint.
    pub chosen: Vec<Choice>,
}

impl LoopOptions<'_> {
    /// Sets the values chosen for parameters that were left out.
    pub fn chosen(self, chosen: Vec<Choice>) -> Self {
        Self { chosen, ..self }
    }

    /// The report of a fit that keeps the point `best` of its trace.
    fn report(
        &self,
        stop_reason: StopReason,
        (trace, clock): (Vec<Iteration>, Vec<f64>),
        best: usize,
        seconds: f64,
    ) -> Report {
        Report {
            iterations: trace.len(),
            stop_reason,
            objective: trace[best].objective,
            validation: trace[best].validation,
            metric: self.metric.to_owned(),
            higher_is_better: self.higher_is_better,
            best,
            seed: self.seed,
            baselines: Vec::new(),
            certificate: None,
            chosen: self.chosen.clone(),
            notes: Vec::new(),
            training: None,
            seconds,
            clock,
            trace,
        }
    }
}

#[cfg(test)]
mod tests;
