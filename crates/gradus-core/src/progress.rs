//! Watching a long fit, and asking it to stop.
//!
//! A fit tells one [`Observer`] what happens; the command line draws a bar from it, and a library
//! user can ignore it. A [`Stop`] is a flag that anyone (a signal handler, another thread) may
//! raise; the fit then ends soon and cleanly with the best model so far.

use crate::report::Iteration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a fit tells its observer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// It begins, or goes on after a checkpoint with some iterations done.
    Started {
        /// The name of the model.
        model: &'a str,
        /// Iterations at most, over all restarts.
        max_iterations: usize,
        /// Iterations already done, from a checkpoint.
        done: usize,
    },
    /// It goes on from a checkpoint; comes before [`Started`](Self::Started).
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
        /// What it came to.
        point: &'a Iteration,
        /// What the held-out score measures.
        metric: &'a str,
        /// Seconds since the fit began.
        seconds: f64,
    },
    /// It ended.
    Finished,
}

/// Someone who watches a fit. Must be quick: it is called in the middle of the work.
pub trait Observer: Sync {
    /// Something happened.
    fn notice(&self, event: &Event<'_>);
}

/// Watches nothing.
pub struct Silent;

impl Observer for Silent {
    fn notice(&self, _: &Event<'_>) {}
}

/// A request to stop that can be raised from anywhere; clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is down.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks whoever holds a clone to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether someone asked.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
