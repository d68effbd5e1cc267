//! Several starts, of which the best end is kept.

use crate::control::Optimizer;
use crate::objective::Objective;
use crate::outcome::Outcome;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};

/// Runs an optimiser from several random points and keeps the best end: what one does about
/// functions with many minima.
///
/// Runs are independent and in parallel; each start has a random stream of its own, so that the
/// result does not depend on the number of threads, and more starts never change earlier ones.
///
/// ```
/// use gradus_optim::{Lbfgs, MultiStart, objective};
///
/// // Two wells, the left one deeper.
/// let f = objective::numeric(1, |x| (x[0] * x[0] - 1.0).powi(2) + 0.2 * x[0]);
/// let found = MultiStart::new(8).within(&Lbfgs::new(), &f, &[-2.0], &[2.0])?;
/// assert!((found.best().x[0] + 1.0).abs() < 0.1);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiStart {
    /// How many starts.
    pub starts: usize,
    /// Seed of the random starts.
    pub seed: u64,
}

/// The runs of all starts.
#[derive(Clone, Debug)]
pub struct MultiOutcome {
    /// Every run, in the order of the starts.
    pub runs: Vec<Outcome>,
    /// The index of the run with the smallest value.
    pub best: usize,
}

impl MultiOutcome {
    /// The run with the smallest value.
    pub fn best(&self) -> &Outcome {
        &self.runs[self.best]
    }
}

impl MultiStart {
    /// Makes a search with this many starts.
    pub fn new(starts: usize) -> Self {
        Self { starts, seed: 0 }
    }

    /// Seed of the random starts.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts drawn by `draw`, which is given a random stream of their own.
    ///
    /// # Errors
    /// If there are no starts, or every run fails; then that of the first.
    pub fn run(
        &self,
        optimizer: &(dyn Optimizer + Sync),
        objective: &(dyn Objective + Sync),
        draw: &(dyn Fn(&mut Stream) -> Vec<f64> + Sync),
    ) -> Result<MultiOutcome> {
        if self.starts == 0 {
            return Err(Error::parameter("starts", 0, "must be at least 1"));
        }
        let runs: Vec<Result<Outcome>> = parallel::map(0..self.starts, |index| {
            let start = draw(&mut Stream::new(self.seed, "optim.start", index as u64));
            optimizer.minimize(objective, &start)
        });
        // A start where the function has no value is bad luck, unless all are.
        let (mut good, mut first_error) = (Vec::new(), None);
        for run in runs {
            match run {
                Ok(run) => good.push(run),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        let by_value = |&a: &usize, &b: &usize| good[a].value.total_cmp(&good[b].value);
        match ((0..good.len()).min_by(by_value), first_error) {
            (Some(best), _) => Ok(MultiOutcome { runs: good, best }),
            (None, Some(error)) => Err(error),
            (None, None) => Err(Error::data("multi-start: no runs")),
        }
    }

    /// Starts uniform in the box from `low` to `high`.
    ///
    /// # Errors
    /// If the corners do not fit the objective, or as [`run`](Self::run).
    pub fn within(
        &self,
        optimizer: &(dyn Optimizer + Sync),
        objective: &(dyn Objective + Sync),
        low: &[f64],
        high: &[f64],
    ) -> Result<MultiOutcome> {
        crate::objective::check_point(objective, "low", low)?;
        crate::objective::check_point(objective, "high", high)?;
        self.run(optimizer, objective, &|stream| {
            low.iter().zip(high).map(|(&low, &high)| stream.uniform_in(low, high)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::from_fn;
    use crate::{Descent, Lbfgs};

    fn wells() -> impl Objective + Sync {
        from_fn(
            1,
            |x| (x[0] * x[0] - 1.0).powi(2) + 0.2 * x[0],
            |x, g| g[0] = 4.0 * x[0] * (x[0] * x[0] - 1.0) + 0.2,
        )
    }

    #[test]
    fn the_deeper_well_is_found_and_one_start_would_not() {
        let f = wells();
        let one = Lbfgs::new().minimize(&f, &[0.9]).unwrap();
        assert!(one.x[0] > 0.8, "the shallow well");
        let found = MultiStart::new(12).within(&Lbfgs::new(), &f, &[-2.0], &[2.0]).unwrap();
        assert!((found.best().x[0] + 1.0241).abs() < 1e-3, "{:?}", found.best().x);
        let least = found.best().value;
        let deep = found.runs.iter().filter(|run| run.value <= least + 1e-9).count();
        assert!((2..12).contains(&deep), "{deep}");
        assert_eq!(found.runs.len(), 12);
    }

    #[test]
    fn threads_and_further_starts_change_nothing() {
        let f = wells();
        let run = |starts: usize, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let solver = Descent::gd(0.05);
            let runs = pool
                .install(|| MultiStart::new(starts).within(&solver, &f, &[-2.0], &[2.0]))
                .unwrap();
            runs.runs.into_iter().map(|run| run.x).collect::<Vec<_>>()
        };
        let few = run(5, 1);
        assert_eq!(few, run(5, 4));
        assert_eq!(few, run(9, 2)[..5]);
    }

    #[test]
    fn bad_starts_are_left_out_unless_all_are_bad() {
        let f = from_fn(1, |x| x[0] - x[0].ln(), |x, g| g[0] = 1.0 - 1.0 / x[0]);
        let found = MultiStart::new(10).within(&Lbfgs::new(), &f, &[-2.0], &[2.0]).unwrap();
        assert!(found.runs.len() < 10 && (found.best().x[0] - 1.0).abs() < 1e-5);
        assert!(MultiStart::new(3).within(&Lbfgs::new(), &f, &[-2.0], &[-1.0]).is_err());
        assert!(MultiStart::new(0).within(&Lbfgs::new(), &f, &[1.0], &[2.0]).is_err());
    }
}
