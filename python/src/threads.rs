//! The threads that work for Python.
//!
//! Every call into the core goes through [`inside`] or a [`Place`], never to rayon's global pool: that
//! one cannot be resized, and after a `fork` its threads are gone without its knowing, so that a child
//! process would wait for them forever.
//!
//! The pools of a process carry its number. A child process finds the number of its parent there and
//! makes pools of its own; those of the parent are left alone, for their threads do not exist in the
//! child and their locks may have been taken at the moment of the fork.

use gradus_core::progress::Stop;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of threads asked for by `set_threads`; 0 is none.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// The pools of the process that used them last.
static POOLS: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());

/// The number of pools of one thread that are kept for later.
const IDLE: usize = 16;

struct Pools {
    process: u32,
    /// All threads, shared by everything that is not small.
    shared: Mutex<Option<Arc<ThreadPool>>>,
    /// Pools of one thread that nobody works in: small fits take one each, so that no time goes into
    /// waking other threads, and that fits of several Python threads do not wait for each other.
    idle: Mutex<Vec<Arc<ThreadPool>>>,
}

/// The pools of this process.
fn pools() -> &'static Pools {
    let process = std::process::id();
    loop {
        let found = POOLS.load(Ordering::Acquire);
        // SAFETY: null, or made by `Box::into_raw` below and never freed once it was stored.
        if let Some(pools) = unsafe { found.as_ref() }
            && pools.process == process
        {
            return pools;
        }
        let fresh =
            Box::new(Pools { process, shared: Mutex::default(), idle: Mutex::new(Vec::new()) });
        let fresh = Box::into_raw(fresh);
        let stored = POOLS.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire);
        if stored.is_err() {
            // SAFETY: it was not stored, so this is the only pointer to it.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of threads that was asked for, else that of the environment, else the number of processors.
///
/// joblib sets `OMP_NUM_THREADS` for its workers: heeding it, they do not fight over processors.
fn wanted() -> usize {
    let said = |name: &str| std::env::var(name).ok()?.parse().ok().filter(|n| *n > 0);
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    match ASKED.load(Ordering::Relaxed) {
        0 => said("GRADUS_THREADS").or_else(|| said("OMP_NUM_THREADS")).unwrap_or_else(all),
        asked => asked,
    }
}

fn build(threads: usize) -> PyResult<Arc<ThreadPool>> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|at| format!("gradus-{at}"))
        .build()
        .map(Arc::new)
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))
}

/// A pool to work in. Given back when the work is done, or forgotten if it never ends.
pub struct Place {
    pool: Arc<ThreadPool>,
    small: bool,
}

impl Place {
    /// A pool for work of this size.
    pub fn new(small: bool) -> PyResult<Self> {
        let pools = pools();
        if small {
            let idle = lock(&pools.idle).pop();
            return Ok(Self { pool: idle.map_or_else(|| build(1), Ok)?, small });
        }
        let threads = wanted();
        let mut shared = lock(&pools.shared);
        let pool = match &*shared {
            Some(pool) if pool.current_num_threads() == threads => Arc::clone(pool),
            _ => Arc::clone(shared.insert(build(threads)?)),
        };
        Ok(Self { pool, small })
    }

    /// Starts work in the pool and returns at once.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        self.pool.spawn(work);
    }

    /// Keeps the pool for the next work.
    pub fn give_back(self) {
        if self.small {
            let mut idle = lock(&pools().idle);
            if idle.len() < IDLE {
                idle.push(self.pool);
            }
        }
    }

    /// Leaves the pool to work that does not stop; the next work gets another.
    pub fn abandon(self) {
        let mut shared = lock(&pools().shared);
        if shared.as_ref().is_some_and(|pool| Arc::ptr_eq(pool, &self.pool)) {
            *shared = None;
        }
    }
}

/// Makes a pool of the calling thread alone, the first time it is asked: what it works on from then on, outside of the
/// other pools, it does by itself. Whether it did: a thread of another pool cannot.
///
/// A pool without threads of its own lives on in a child process.
pub fn works_alone() -> bool {
    thread_local!(static ALONE: bool = {
        let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        // Kept for as long as there is the thread: it may be in use whenever the thread works.
        pool.map(std::mem::forget).is_ok()
    });
    ALONE.with(|alone| *alone)
}

/// Does work in the shared pool, without the GIL.
pub fn inside<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let place = Place::new(false)?;
    Ok(py.detach(|| place.pool.install(work)))
}

/// How often Python is asked whether someone pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// How long work may take to stop by itself.
const GRACE: Duration = Duration::from_millis(600);

/// Does work in the shared pool; the calling thread waits for it and looks after Python's signals. After one the work is asked to
/// stop; if it does not within a moment, it is left to end in threads that nobody else uses any more.
pub fn attended<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    let place = Place::new(false)?;
    let stop = Stop::new();
    let own = stop.clone();
    let (give, result) = channel();
    place.spawn(move || {
        // A panic drops the sender, which the waiting thread sees; nobody waits after an interruption.
        let _ = give.send(work(&own));
    });
    py.detach(move || {
        let raised = loop {
            match result.recv_timeout(LOOK) {
                Ok(found) => {
                    place.give_back();
                    return Ok(found);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let message = "this is a fault of gradus, please report it: the work ended without a result";
                    return Err(PyRuntimeError::new_err(message));
                }
            }
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                break error;
            }
        };
        stop.request();
        match result.recv_timeout(GRACE) {
            Err(RecvTimeoutError::Timeout) => place.abandon(),
            _ => place.give_back(),
        }
        Err(raised)
    })
}

/// Use this many threads from now on; `None` leaves it to GRADUS_THREADS, then OMP_NUM_THREADS, then
/// the number of processors. Results do not depend on it.
#[pyfunction]
#[pyo3(signature = (n_threads=None))]
pub fn set_threads(n_threads: Option<isize>) -> PyResult<()> {
    let n_threads = match n_threads {
        None => 0,
        Some(n @ 1..) => n.unsigned_abs(),
        Some(n) => {
            let message = format!("n_threads = {n}: must be an integer of at least 1, or None");
            return Err(PyValueError::new_err(message));
        }
    };
    ASKED.store(n_threads, Ordering::Relaxed);
    Ok(())
}

/// How many threads are used.
#[pyfunction]
pub fn get_threads() -> usize {
    wanted()
}
