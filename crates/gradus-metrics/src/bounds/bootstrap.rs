//! Intervals for any statistic of rows, by drawing the rows again.

use super::{Interval, IntervalMethod, check_level};
use crate::rows::{self, Sum};
use gradus_base::random::{Stream, normal_quantile};
use gradus_base::{Error, Result, parallel};
use serde::Serialize;

/// Rows are left out in at most this many groups to find the skew of a statistic.
const GROUPS: usize = 200;
/// The largest number of different values that are drawn as counts instead of row by row.
const LEVELS: usize = 16;

/// The bootstrap: how a statistic varies over data sets drawn from the rows with replacement.
///
/// A round draws as many rows as there are, each with the same chance, its weight going along. A
/// stream of random numbers of its own for each round makes the result the same on any number of
/// threads. Cost: a statistic a round, and `O(n)` memory a thread; a mean of few different values
/// (0 and 1, say) costs nearly nothing a round whatever `n`.
///
/// Few rows (below about 20) say too little about their distribution, and the extremes of a sample
/// (a maximum) cannot be resampled at all.
///
/// Efron and Tibshirani, *An introduction to the bootstrap* (1993).
///
/// ```
/// use gradus_metrics::bounds::Bootstrap;
/// use gradus_metrics::classification::roc_auc;
///
/// let truth: Vec<bool> = (0..200).map(|i| i % 3 == 0).collect();
/// let scores: Vec<f64> = (0..200).map(|i| f64::from(i * 37 % 101) + f64::from(i % 3 == 0) * 30.0).collect();
/// let found = Bootstrap::default().statistic(truth.len(), |rows| {
///     let truth: Vec<bool> = rows.iter().map(|&row| truth[row as usize]).collect();
///     let scores: Vec<f64> = rows.iter().map(|&row| scores[row as usize]).collect();
///     roc_auc(&truth, &scores, None).ok()
/// })?;
/// assert!(found.interval.contains(found.estimate));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// How often the rows are drawn again. 2000 by default: the ends of a 95 % interval then rest on
    /// 50 rounds each.
    pub rounds: usize,
    /// How often the interval should hold the truth. 0.95 by default.
    pub level: f64,
    /// Seed of the draws.
    pub seed: u64,
    /// [`IntervalMethod::Bca`] (default) corrects for bias and skew, at the cost of the statistic on up to
    /// 200 parts of the data; [`IntervalMethod::Percentile`] does not.
    pub method: IntervalMethod,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { rounds: 2000, level: 0.95, seed: 0, method: IntervalMethod::Bca }
    }
}

/// The result of a bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Resampled {
    /// The statistic of the rows as they are.
    pub estimate: f64,
    /// The standard deviation of the statistic over the rounds; not a number for one row.
    pub standard_error: f64,
    /// The interval of the true value; unbounded for one row.
    pub interval: Interval,
    /// Rounds in which the statistic was not defined (the AUC where one class was not drawn); they
    /// are left out.
    pub undefined: usize,
}

impl Resampled {
    /// The result of one row: the statistic without an interval.
    fn unknown(self) -> Self {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        let interval = Interval { low, high, ..self.interval };
        Self { standard_error: f64::NAN, interval, ..self }
    }
}

impl Bootstrap {
    fn check(&self, n: usize) -> Result<()> {
        check_level(self.level)?;
        if !(10..=10_000_000).contains(&self.rounds) {
            return Err(Error::parameter("rounds", self.rounds, "must be from 10 to 10000000"));
        }
        if !matches!(self.method, IntervalMethod::Percentile | IntervalMethod::Bca) {
            let rule = "a bootstrap interval is by percentile or BCa";
            return Err(Error::parameter("method", self.method, rule));
        }
        if n == 0 || n > u32::MAX as usize {
            return Err(Error::parameter("rows", n, "must be from 1 to 2^32 - 1"));
        }
        Ok(())
    }

    /// The statistic of `n` rows: `statistic` gets the indices of the rows drawn, and gives nothing
    /// (or not a number) where it is not defined.
    ///
    /// # Errors
    /// If there are no rows, a setting is outside its range, or the statistic is not defined on the
    /// rows as they are or on most of the draws.
    pub fn statistic(
        &self,
        n: usize,
        statistic: impl Fn(&[u32]) -> Option<f64> + Sync,
    ) -> Result<Resampled> {
        self.check(n)?;
        let statistic = |rows: &[u32]| statistic(rows).filter(|value| value.is_finite());
        let all: Vec<u32> = (0..n as u32).collect();
        let estimate = statistic(&all).ok_or_else(|| {
            Error::data("bootstrap: the statistic is not defined on the rows as they are")
        })?;
        let rounds = 0..self.rounds as u64;
        let drawn = parallel::map_with(
            rounds,
            || vec![0u32; n],
            |rows, round| {
                let mut stream = self.stream(round);
                rows.iter_mut().for_each(|row| *row = stream.index(n) as u32);
                statistic(rows)
            },
        );
        let acceleration = match self.method {
            IntervalMethod::Bca => {
                let groups = GROUPS.min(n);
                let without = |group: usize| {
                    let rows: Vec<u32> =
                        (0..n as u32).filter(|&row| row as usize % groups != group).collect();
                    statistic(&rows)
                };
                let left = if groups > 1 { parallel::map(0..groups, without) } else { vec![] };
                acceleration(left.into_iter().flatten())
            }
            _ => 0.0,
        };
        let found = self.finish(estimate, drawn.into_iter().flatten().collect(), acceleration)?;
        Ok(if n == 1 { found.unknown() } else { found })
    }

    /// The mean of the values, weighted if weights are given: the fast case.
    ///
    /// # Errors
    /// If there are no values, one is not finite, their sum is too large, a weight is negative, or a setting is outside its
    /// range.
    ///
    /// ```
    /// use gradus_metrics::bounds::Bootstrap;
    /// let losses: Vec<f64> = (0..100).map(|i| f64::from(i % 10)).collect();
    /// let found = Bootstrap::default().mean(&losses, None)?;
    /// assert_eq!(found.estimate, 4.5);
    /// assert!(found.interval.low > 3.8 && found.interval.high < 5.2);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn mean(&self, values: &[f64], weights: Option<&[f64]>) -> Result<Resampled> {
        self.check(values.len())?;
        rows::finite("values", values)?;
        let total = rows::total_weight(weights, values.len())?;
        let n = values.len();
        let sum = Sum::of((0..n).map(|row| rows::weight(weights, row) * values[row]));
        let estimate = sum / total;
        if !estimate.is_finite() {
            return Err(Error::data("bootstrap: the values are too large to be added up"));
        }
        let levels = if weights.is_none() { levels(values) } else { None };
        let round = |round: u64| {
            let mut stream = self.stream(round);
            match (&levels, weights) {
                (Some(levels), _) => Some(mean_of_levels(levels, n, &mut stream)),
                (None, None) => {
                    let mut sum = 0.0;
                    (0..n).for_each(|_| sum += values[stream.index(n)] - estimate);
                    Some(estimate + sum / n as f64)
                }
                (None, Some(weights)) => {
                    let (mut sum, mut total) = (0.0, 0.0);
                    for _ in 0..n {
                        let row = stream.index(n);
                        sum += weights[row] * (values[row] - estimate);
                        total += weights[row];
                    }
                    (total > 0.0).then(|| estimate + sum / total)
                }
            }
        };
        let drawn = parallel::map(0..self.rounds as u64, round);
        let acceleration = match self.method {
            // The mean without a row, less the mean: in closed form.
            IntervalMethod::Bca => acceleration((0..n).filter_map(|row| {
                let w = rows::weight(weights, row);
                (w < total).then(|| w * (estimate - values[row]) / (total - w))
            })),
            _ => 0.0,
        };
        let found = self.finish(estimate, drawn.into_iter().flatten().collect(), acceleration)?;
        let counted = (0..n).filter(|&row| rows::weight(weights, row) > 0.0).take(2).count();
        Ok(if counted == 1 { found.unknown() } else { found })
    }

    fn stream(&self, round: u64) -> Stream {
        Stream::new(self.seed, "select.bootstrap", round)
    }

    fn finish(&self, estimate: f64, mut drawn: Vec<f64>, acceleration: f64) -> Result<Resampled> {
        let undefined = self.rounds - drawn.len();
        if drawn.len() < self.rounds.div_ceil(2) {
            return Err(Error::data(format!(
                "bootstrap: the statistic is not defined on {undefined} of {} draws; \
                 there are too few rows of some kind",
                self.rounds
            )));
        }
        drawn.sort_unstable_by(f64::total_cmp);
        let n = drawn.len() as f64;
        let mean = Sum::of(drawn.iter().copied()) / n;
        let squares = Sum::of(drawn.iter().map(|value| (value - mean).powi(2)));
        let standard_error = if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        let side = (1.0 - self.level) / 2.0;
        let (low, high) = match self.method {
            IntervalMethod::Bca => corrected(&drawn, estimate, acceleration, side),
            _ => (side, 1.0 - side),
        };
        let interval = Interval {
            low: quantile(&drawn, low),
            high: quantile(&drawn, high),
            level: self.level,
            method: self.method,
        };
        Ok(Resampled { estimate, standard_error, interval, undefined })
    }
}

/// The shares of the draws at which a BCa interval begins and ends.
fn corrected(drawn: &[f64], estimate: f64, acceleration: f64, side: f64) -> (f64, f64) {
    let n = drawn.len() as f64;
    let below = drawn.partition_point(|&value| value < estimate) as f64;
    let up_to = drawn.partition_point(|&value| value <= estimate) as f64;
    // Draws that equal the estimate are half below it; beyond the last draw nothing is known.
    let share = ((below + up_to) / (2.0 * n)).clamp(0.5 / n, 1.0 - 0.5 / n);
    let bias = normal_quantile(share);
    let moved = |side: f64| {
        let z = bias + normal_quantile(side);
        let stretch = 1.0 - acceleration * z;
        // The correction breaks down where a long tail turns the scale over.
        let z = if stretch > 0.0 { bias + z / stretch } else { z.signum() * f64::INFINITY };
        0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
    };
    (moved(side), moved(1.0 - side))
}

/// Efron's acceleration, from the statistics without a part each: a sixth of their skew.
fn acceleration(left: impl Iterator<Item = f64>) -> f64 {
    let left: Vec<f64> = left.collect();
    let mean = Sum::of(left.iter().copied()) / left.len().max(1) as f64;
    let size = left.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if size == 0.0 {
        return 0.0;
    }
    let (mut squares, mut cubes) = (Sum::default(), Sum::default());
    for value in &left {
        let far = (mean - value) / size;
        squares.add(far * far);
        cubes.add(far * far * far);
    }
    cubes.value() / (6.0 * squares.value().powf(1.5))
}

/// The value below which a share of the sorted draws lies, interpolated.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let next = sorted[(below + 1).min(sorted.len() - 1)];
    sorted[below] + part * (next - sorted[below])
}

/// The different values and how often each occurs, if there are few.
fn levels(values: &[f64]) -> Option<Vec<(f64, u64)>> {
    let mut found: Vec<(f64, u64)> = Vec::new();
    for &value in values {
        match found.iter().position(|level| level.0 == value) {
            Some(at) => found[at].1 += 1,
            None if found.len() == LEVELS => return None,
            None => found.push((value, 1)),
        }
    }
    Some(found)
}

/// The mean of `n` draws from few values: how often each comes is binomial, given those before it.
fn mean_of_levels(levels: &[(f64, u64)], n: usize, stream: &mut Stream) -> f64 {
    let (mut draws, mut rest) = (n as u64, n as u64);
    let mut sum = 0.0;
    for &(value, count) in levels {
        let drawn =
            if count == rest { draws } else { binomial(stream, draws, count as f64 / rest as f64) };
        sum += value * drawn as f64;
        draws -= drawn;
        rest -= count;
    }
    sum / n as f64
}

/// How many of `n` uniform numbers are below `p`: the middle one of them is a beta variate, and
/// tells on which side of it `p` is, which leaves half of them (Devroye, 1986).
fn binomial(stream: &mut Stream, mut n: u64, mut p: f64) -> u64 {
    let mut below = 0;
    while n > 32 {
        let middle = n.div_ceil(2);
        let (a, b) = (stream.gamma(middle as f64), stream.gamma((n + 1 - middle) as f64));
        let at = a / (a + b);
        if at <= p {
            below += middle;
            n -= middle;
            p = (p - at) / (1.0 - at);
        } else {
            n = middle - 1;
            p /= at;
        }
    }
    below + (0..n).filter(|_| stream.chance(p)).count() as u64
}
