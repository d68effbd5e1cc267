//! One pool of threads for everything Python asks for.
//!
//! Not rayon's own: that one cannot be resized, and after a `fork` its threads are gone without its
//! knowing, so that a child process would wait for them forever.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex};

struct Pool {
    process: u32,
    threads: usize,
    pool: Arc<ThreadPool>,
}

#[derive(Default)]
struct State {
    wanted: Option<usize>,
    pool: Option<Pool>,
}

static STATE: Mutex<State> = Mutex::new(State { wanted: None, pool: None });

/// What was asked for, else what the environment says, else every processor there is.
///
/// joblib sets `OMP_NUM_THREADS` for its workers: heeding it, they do not fight over processors.
fn wanted(state: &State) -> usize {
    let said = |name: &str| std::env::var(name).ok()?.parse().ok().filter(|n| *n > 0);
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    state
        .wanted
        .or_else(|| said("GRADUS_THREADS"))
        .or_else(|| said("OMP_NUM_THREADS"))
        .unwrap_or_else(all)
}

fn lock() -> std::sync::MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The pool to work in.
pub fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut state = lock();
    let (process, threads) = (std::process::id(), wanted(&state));
    if let Some(pool) = state.pool.take() {
        if pool.process == process && pool.threads == threads {
            return Ok(Arc::clone(&state.pool.insert(pool).pool));
        }
        if pool.process != process {
            // Its threads did not survive the fork; waiting for them would never end.
            std::mem::forget(pool);
        }
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|at| format!("gradus-{at}"))
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
    let pool = Pool { process, threads, pool: Arc::new(pool) };
    Ok(Arc::clone(&state.pool.insert(pool).pool))
}

/// Leaves the pool to the work it is doing; the next work gets another.
pub fn abandon() {
    lock().pool = None;
}

/// Does work in the pool, without the GIL.
pub fn inside<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool()?;
    Ok(py.detach(|| pool.install(work)))
}

/// Use so many threads from now on; `None` leaves it to GRADUS_THREADS, then OMP_NUM_THREADS, then
/// the number of processors. Results do not depend on it.
#[pyfunction]
#[pyo3(signature = (n_threads=None))]
pub fn set_threads(n_threads: Option<isize>) -> PyResult<()> {
    let n_threads = match n_threads {
        None => None,
        Some(n @ 1..) => Some(n.unsigned_abs()),
        Some(n) => {
            let message = format!("n_threads = {n}: must be an integer of at least 1, or None");
            return Err(PyValueError::new_err(message));
        }
    };
    lock().wanted = n_threads;
    Ok(())
}

/// How many threads are used.
#[pyfunction]
pub fn get_threads() -> usize {
    wanted(&lock())
}
