//! Candidates evaluated on the same points: their scores with intervals, and who is best for sure.

use super::{
    Bootstrap, Hoeffding, Interval, IntervalMethod, check_level, effective_size, least_differing,
    proportion, student_quantile,
};
use crate::rows::{self, Sum};
use gradus_base::random::normal_quantile;
use gradus_base::{Error, Result};
use serde::Serialize;
use std::borrow::Cow;

/// The number of groups that the bootstrap draws for more points than four times this.
const GROUPS: usize = 1000;

/// The result of [`compare`]. Smaller losses are better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedComparison {
    /// The candidates, best first; of equal ones the first.
    pub order: Vec<usize>,
    /// The mean loss of each candidate.
    pub means: Vec<f64>,
    /// An interval for each, all of which hold at once with probability `level`.
    pub intervals: Vec<Interval>,
    /// The best beside the second, if there are two.
    pub lead: Option<Separation>,
}

/// How far two candidates are apart, evaluated point by point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Separation {
    /// The absolute difference of the mean losses.
    pub difference: f64,
    /// The standard error of that, from the differences at the points: much smaller than that of the
    /// means where the two fail on the same points.
    pub standard_error: f64,
    /// Points there were.
    pub points: usize,
    /// Points it would take to tell the two apart at this level, if new points are like these (by the
    /// normal approximation); nothing if they are equal.
    pub needed: Option<u64>,
    /// Points that are guaranteed to be enough whatever they are like (by Hoeffding, for all
    /// candidates at once); nothing if they are equal or the range of the loss is not known.
    pub guaranteed: Option<u64>,
    /// Whether the points at hand tell the two apart, by the normal approximation.
    pub sure: bool,
}

/// Compares candidates by their losses at the same test points.
///
/// With the `range` of the loss the intervals are guarantees: Hoeffding's with the union bound over
/// the candidates, or, for losses of 0 and 1 without weights, Clopper and Pearson's at the level
/// `1 − (1 − level)/K`, whichever is narrower. Without a range they are bootstrap intervals at that
/// level (of many points by groups of them, dealt in turn: independent points make independent
/// groups).
///
/// # Shapes
/// `losses` has a slice for each candidate, with a value for each point; `weights` has one for each
/// point.
///
/// # Errors
/// If there are no candidates or no points, lengths differ, a loss is not finite or outside the
/// range, or `level` is not strictly between 0 and 1.
///
/// ```
/// use gradus_metrics::bounds::compare;
///
/// // Two classifiers that differ on 20 of 1000 points.
/// let a: Vec<f64> = (0..1000).map(|i| f64::from(i < 100)).collect();
/// let b: Vec<f64> = (0..1000).map(|i| f64::from(i < 120)).collect();
/// let found = compare(&[&a, &b], None, Some((0.0, 1.0)), 0.95, 0)?;
/// assert_eq!(found.order, [0, 1]);
/// // Each score is known to two percent or so, but the difference is sure.
/// let [a, b] = [found.intervals[0], found.intervals[1]];
/// assert!(a.low <= b.high && b.low <= a.high);
/// assert!(found.lead.unwrap().sure);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn compare(
    losses: &[&[f64]],
    weights: Option<&[f64]>,
    range: Option<(f64, f64)>,
    level: f64,
    seed: u64,
) -> Result<PairedComparison> {
    check_level(level)?;
    let Some(first) = losses.first() else {
        return Err(Error::data("compare: there are no candidates"));
    };
    let n = first.len();
    let total = rows::total_weight(weights, n)?;
    for of in losses {
        rows::same_length("losses", n, of.len())?;
        rows::finite("losses", of)?;
        if let Some((low, high)) = range
            && let Some(at) = of.iter().position(|loss| !(low..=high).contains(loss))
        {
            let rule = format!("must be in the range of the loss, {low} to {high}");
            return Err(Error::data(format!("losses, point {}: {} {rule}", at + 1, of[at])));
        }
    }
    let k = losses.len();
    let share = |row: usize| rows::weight(weights, row) / total;
    let mean = |of: &&[f64]| Sum::of((0..n).map(|row| share(row) * of[row]));
    let means: Vec<f64> = losses.iter().map(mean).collect();
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|&a, &b| means[a].total_cmp(&means[b]));
    let each = 1.0 - (1.0 - level) / k as f64;
    let hoeffding = range.map(|(low, high)| Hoeffding::new(low, high, k, level)).transpose()?;
    let size = match weights {
        Some(weights) => effective_size(weights)?,
        None => n as f64,
    };
    let interval = |(at, of): (usize, &&[f64])| {
        let Some(bound) = hoeffding else {
            // Enough rounds for fifty of them to lie beyond each end.
            let rounds = ((100.0 / (1.0 - each)).ceil() as usize).clamp(2000, 20_000);
            let bootstrap = Bootstrap { rounds, level: each, seed, method: IntervalMethod::Bca };
            let (values, weights) = grouped(of, weights);
            return bootstrap.mean(&values, weights.as_deref()).map(|found| found.interval);
        };
        let (low, high) = range.unwrap_or((0.0, 1.0));
        let interval = bound.interval(means[at].clamp(low, high), size)?;
        let is_share = weights.is_none() && range == Some((0.0, 1.0));
        if is_share && of.iter().all(|&loss| loss == 0.0 || loss == 1.0) {
            let wrong = of.iter().filter(|&&loss| loss == 1.0).count();
            let exact = proportion(wrong as u64, n as u64, each)?;
            return Ok(if exact.width() < interval.width() { exact } else { interval });
        }
        Ok(interval)
    };
    let intervals: Result<Vec<Interval>> = losses.iter().enumerate().map(interval).collect();
    // The level of one is what it takes for all of them to hold at once.
    let intervals = intervals?.into_iter().map(|found| Interval { level, ..found }).collect();
    let lead = match order[..] {
        [best, second, ..] => {
            let gap = |row: usize| losses[second][row] - losses[best][row];
            let difference = Sum::of((0..n).map(|row| share(row) * gap(row))).max(0.0);
            let squares = (0..n).map(|row| share(row) * (gap(row) - difference).powi(2));
            // Of one point nothing is known of the spread.
            let counted = (0..n).filter(|&row| share(row) > 0.0).count();
            let spread = if counted > 1 { Sum::of(squares) } else { f64::NAN };
            let standard_error = (spread / size).sqrt();
            let z = normal_quantile(0.5 + level / 2.0);
            let times = z * standard_error / difference;
            let differing = (0..n).filter(|&row| share(row) > 0.0 && gap(row) != 0.0).count();
            let beyond = student_quantile(level, counted.saturating_sub(1)) * standard_error;
            Some(Separation {
                difference,
                standard_error,
                points: n,
                needed: (difference > 0.0 && standard_error.is_finite())
                    .then(|| ((n as f64 * times * times).ceil() as u64).max(1)),
                guaranteed: hoeffding
                    .map_or(Ok(None), |bound| bound.points_to_separate(difference))?,
                sure: differing >= least_differing(level) && difference > beyond,
            })
        }
        _ => None,
    };
    Ok(PairedComparison { order, means, intervals, lead })
}

/// The mean losses of groups and their weights; the points themselves where they are few.
fn grouped<'a>(
    losses: &'a [f64],
    weights: Option<&'a [f64]>,
) -> (Cow<'a, [f64]>, Option<Cow<'a, [f64]>>) {
    if losses.len() <= 4 * GROUPS {
        return (losses.into(), weights.map(Cow::from));
    }
    let (mut sums, mut totals) = (vec![Sum::default(); GROUPS], vec![0.0; GROUPS]);
    for (row, loss) in losses.iter().enumerate() {
        let weight = rows::weight(weights, row);
        sums[row % GROUPS].add(weight * loss);
        totals[row % GROUPS] += weight;
    }
    let mean = |(sum, total): (&Sum, &f64)| if *total > 0.0 { sum.value() / total } else { 0.0 };
    (sums.iter().zip(&totals).map(mean).collect(), Some(totals.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    #[test]
    fn the_lead_is_that_of_a_paired_test() {
        let found = compare(&[&[3.0, 1.0, 4.0], &[1.0, 1.0, 2.0]], None, None, 0.95, 1).unwrap();
        assert_eq!(found.order, [1, 0]);
        let lead = found.lead.unwrap();
        // Differences 2, 0, 2: mean 4/3, variance 8/9.
        assert!((lead.difference - 4.0 / 3.0).abs() < 1e-15);
        assert!((lead.standard_error - (8.0f64 / 27.0).sqrt()).abs() < 1e-15);
        assert_eq!((lead.points, lead.guaranteed, lead.sure), (3, None, false));
        // 3 · (1.96 · 0.5443 / 1.3333)².
        assert_eq!(lead.needed, Some(2));
        assert!(found.intervals.iter().all(|i| i.method == IntervalMethod::Bca && i.level == 0.95));
    }

    #[test]
    fn a_range_makes_guarantees() {
        let (a, b) = (vec![0.2; 400], vec![0.3; 400]);
        let range = Some((0.0, 1.0));
        let found = compare(&[&a, &b, &b], None, range, 0.9, 0).unwrap();
        let bound = Hoeffding::new(0.0, 1.0, 3, 0.9).unwrap();
        assert_eq!(found.intervals[0], bound.interval(found.means[0], 400.0).unwrap());
        let lead = found.lead.unwrap();
        assert_eq!(lead.guaranteed, bound.points_to_separate(lead.difference).unwrap());
        // Weights that are all on one point are worth one point.
        let mut weights = vec![0.0; 400];
        weights[7] = 2.0;
        let one = compare(&[&a, &b], Some(&weights), range, 0.9, 0).unwrap();
        assert_eq!((one.intervals[0].low, one.intervals[0].high), (0.0, 1.0));
        // Zeros and ones are a share.
        let shares: Vec<f64> = (0..400).map(|i| f64::from(u8::from(i % 10 == 0))).collect();
        let exact = compare(&[&shares, &a], None, range, 0.9, 0).unwrap();
        assert_eq!(exact.intervals[0].method, IntervalMethod::ClopperPearson);
        assert_eq!(exact.intervals[1].method, IntervalMethod::Hoeffding);
        assert!(exact.intervals[0].width() < exact.intervals[1].width());
    }

    /// In how many of this many runs an interval of ten candidates that are all alike, which is the
    /// least favourable case of choosing, misses the truth.
    fn missed(runs: u64, range: Option<(f64, f64)>) -> u32 {
        let one = |run: u64| {
            let mut stream = Stream::new(run, "test.compare", 0);
            let losses: Vec<Vec<f64>> = (0..10)
                .map(|_| (0..100).map(|_| f64::from(u8::from(stream.chance(0.3)))).collect())
                .collect();
            let losses: Vec<&[f64]> = losses.iter().map(Vec::as_slice).collect();
            let found = compare(&losses, None, range, 0.9, run).unwrap();
            u32::from(!found.intervals.iter().all(|interval| interval.contains(0.3)))
        };
        (0..runs).map(one).sum()
    }

    #[test]
    fn all_intervals_hold_at_once() {
        // One run in ten may miss. Added up over the binomial distribution, an exact interval for
        // 100 points at level 0.99 misses 0.3 with probability 0.00849, so one of ten does with
        // 0.0817: of 2000 runs 163, give or take 12.
        let exact = missed(2000, Some((0.0, 1.0)));
        assert!((163 - 48..=200).contains(&exact), "{exact}");
        // The bootstrap may miss a little more.
        let bootstrap = missed(40, None);
        assert!((1..=10).contains(&bootstrap), "{bootstrap}");
    }

    #[test]
    fn many_points_have_the_interval_of_their_groups() {
        let mut stream = Stream::new(3, "test.compare", 1);
        let losses: Vec<f64> = (0..20_011).map(|_| stream.normal().powi(2)).collect();
        let weights: Vec<f64> = (0..20_011).map(|row| f64::from(row % 3)).collect();
        for weights in [None, Some(weights.as_slice())] {
            let found = compare(&[&losses], weights, None, 0.95, 0).unwrap();
            let all = Bootstrap { rounds: 2000, ..Bootstrap::default() };
            let all = all.mean(&losses, weights).unwrap().interval;
            let interval = found.intervals[0];
            assert!((interval.width() / all.width() - 1.0).abs() < 0.1, "{interval:?} {all:?}");
            assert!((interval.low - all.low).abs() < 0.2 * all.width());
        }
    }

    #[test]
    fn equal_candidates_cannot_be_distinguished() {
        let a = [0.5, 0.25, 1.0];
        let found = compare(&[&a, &a], None, Some((0.0, 1.0)), 0.95, 0).unwrap();
        let lead = found.lead.unwrap();
        assert_eq!((lead.needed, lead.guaranteed, lead.sure), (None, None, false));
        assert_eq!(found.order, [0, 1]);
        assert!(compare(&[&a], None, None, 0.95, 0).unwrap().lead.is_none());
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        let a = [0.5, 2.0];
        for (error, part) in [
            (compare(&[], None, None, 0.95, 0).unwrap_err(), "no candidates"),
            (compare(&[&[]], None, None, 0.95, 0).unwrap_err(), "no rows"),
            (compare(&[&a, &a[..1]], None, None, 0.95, 0).unwrap_err(), "losses: expected 2"),
            (compare(&[&a], None, Some((0.0, 1.0)), 0.95, 0).unwrap_err(), "point 2: 2 must be"),
            (compare(&[&a], None, None, 1.5, 0).unwrap_err(), "level"),
            (compare(&[&a], Some(&[1.0]), None, 0.5, 0).unwrap_err(), "weights"),
        ] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
