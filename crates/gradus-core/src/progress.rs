//! Watching a long fit, and asking it to stop.
//!
//! A fit sends [`Event`]s to one [`Observer`]; the command line draws a progress bar from them, and a
//! library user can ignore them. A [`Stop`] is a flag that anyone (a signal handler, another thread) may
//! raise; the fit then ends soon and cleanly with the best model so far.

use crate::report::Iteration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An event of a fit, for its observer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The fit starts, or goes on from a checkpoint with some iterations done.
    Started {
        /// The name of the model.
        model: &'a str,
        /// Largest number of iterations, over all restarts.
        max_iterations: usize,
        /// Iterations already done, from a checkpoint.
        done: usize,
    },
    /// A parameter that was left out is being chosen, before the fit starts: one more value is tried.
    Choosing {
        /// The name of the model.
        model: &'a str,
        /// The number of the trial, from 1.
        trial: usize,
        /// The parameters of the trial: `regularization = 1.2, rank = 16`.
        what: &'a str,
    },
    /// The fit goes on from a checkpoint; comes before [`Started`](Self::Started).
    Resumed {
        /// The current random start, from 0.
        restart: usize,
        /// Iterations of it that are done.
        iteration: usize,
    },
    /// The state was written to the checkpoint, or could not be. The fit goes on either way.
    Checkpoint {
        /// Why it could not be written.
        failure: Option<&'a gradus_base::Error>,
    },
    /// A share of the current iteration is done, from 0 to 1. Comes from worker threads.
    Within(f64),
    /// An iteration is done.
    Iteration {
        /// The point of the trace: objective, held-out score and further measures.
        point: &'a Iteration,
        /// The metric of the held-out score.
        metric: &'a str,
        /// Seconds since the fit started.
        seconds: f64,
    },
    /// The fit ended.
    Finished,
}

/// A callback that watches a fit. It must be quick: it is called in the middle of the work.
pub trait Observer: Sync {
    /// Called for every event.
    fn notice(&self, event: &Event<'_>);
}

/// An observer that does nothing.
pub struct Silent;

impl Observer for Silent {
    fn notice(&self, _: &Event<'_>) {}
}

/// A flag that requests a stop; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the fit that holds a clone to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
