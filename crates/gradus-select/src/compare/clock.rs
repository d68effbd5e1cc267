//! The budget: how long a fit may go on, and what it took.

use gradus_core::progress::Stop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a running fit is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The time that a comparison has.
pub(crate) struct Clock {
    started: Instant,
    budget: Option<Duration>,
    /// Whoever wants the comparison to end.
    stop: Stop,
}

/// The cost of a piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) seconds: f64,
    /// The growth of the resident memory of the process at its peak, as far as sampling shows; absent where the system
    /// does not report it.
    pub(crate) memory: Option<u64>,
    /// Whether it was asked to stop because its time was over.
    pub(crate) stopped: bool,
}

impl Clock {
    pub(crate) fn start(budget: Option<Duration>, stop: Stop) -> Self {
        Self { started: Instant::now(), budget, stop }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Whether the whole comparison was asked to stop.
    pub(crate) fn interrupted(&self) -> bool {
        self.stop.requested()
    }

    /// The time until a share of the budget is spent; `None` without a budget.
    pub(crate) fn left(&self, share: f64) -> Option<Duration> {
        let until = self.budget?.mul_f64(share);
        Some(until.saturating_sub(self.started.elapsed()))
    }

    /// Does work that heeds the flag it is given, for `limit` at most.
    pub(crate) fn watch<T>(
        &self,
        limit: Option<Duration>,
        work: impl FnOnce(Stop) -> T,
    ) -> (T, Took) {
        let (own, done) = (Stop::new(), AtomicBool::new(false));
        let (over, peak) = (AtomicBool::new(false), AtomicU64::new(0));
        // Else memory that earlier fits have freed would hide what this one takes.
        gradus_base::memory::release_freed();
        let before = resident();
        let started = Instant::now();
        let result = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    peak.fetch_max(resident().unwrap_or(0), Ordering::Relaxed);
                    if self.stop.requested() {
                        own.request();
                    } else if limit.is_some_and(|limit| started.elapsed() >= limit) {
                        over.store(true, Ordering::Relaxed);
                        own.request();
                    }
                    std::thread::park_timeout(LOOK);
                }
            });
            let result = work(own.clone());
            done.store(true, Ordering::Release);
            watcher.thread().unpark();
            result
        });
        let seconds = started.elapsed().as_secs_f64();
        peak.fetch_max(resident().unwrap_or(0), Ordering::Relaxed);
        let memory = before.map(|before| peak.load(Ordering::Relaxed).saturating_sub(before));
        (result, Took { seconds, memory, stopped: over.load(Ordering::Relaxed) })
    }
}

/// The resident memory of this process, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_reported_when_its_time_is_over() {
        let clock = Clock::start(None, Stop::new());
        let wait = |stop: Stop| {
            while !stop.requested() {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let ((), took) = clock.watch(Some(Duration::from_millis(20)), wait);
        assert!(took.stopped && took.seconds >= 0.02 && took.seconds < 5.0, "{took:?}");
        let ((), took) = clock.watch(None, |_| ());
        assert!(!took.stopped);
        assert!(clock.left(0.5).is_none());
        // The flag of the whole comparison reaches the work, and is no end of its time.
        let stop = Stop::new();
        let clock = Clock::start(Some(Duration::from_secs(3600)), stop.clone());
        assert!(clock.left(0.5).unwrap() > Duration::from_secs(1700));
        stop.request();
        let ((), took) = clock.watch(Some(Duration::from_secs(60)), wait);
        assert!(clock.interrupted() && !took.stopped);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_a_fit_is_what_it_adds() {
        let clock = Clock::start(None, Stop::new());
        let (sum, took) = clock.watch(None, |_| {
            let large = vec![1u8; 64 << 20];
            std::thread::sleep(Duration::from_millis(50));
            large.iter().map(|&x| u64::from(x)).sum::<u64>()
        });
        assert_eq!(sum, 64 << 20);
        let memory = took.memory.unwrap();
        assert!((48 << 20..512 << 20).contains(&memory), "{memory}");
    }
}
