//! Shares and means of groups with intervals, and the largest gap among them.

use super::statistics::{Counts, Moments, Test, mantel_haenszel, welch};
use gradus_base::random::normal_quantile;
use gradus_metrics::bounds::student_quantile;
use serde::Serialize;

/// A figure of a group, with an interval that holds the truth with the level of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// The figure; not a number (in JSON `null`) where it is not defined.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Rate {
    const UNDEFINED: Self = Self { value: f64::NAN, low: f64::NAN, high: f64::NAN };

    /// A share with Wilson's interval; weights count as rows.
    pub(super) fn share((with, n): (f64, f64), level: f64) -> Self {
        if n <= 0.0 {
            return Self::UNDEFINED;
        }
        let (p, z) = (with / n, normal_quantile(0.5 + level / 2.0));
        let square = z * z;
        let middle = (p + square / (2.0 * n)) / (1.0 + square / n);
        let half =
            z / (1.0 + square / n) * (p * (1.0 - p) / n + square / (4.0 * n * n)).max(0.0).sqrt();
        // Rounding must not put the share outside.
        let (low, high) = ((middle - half).clamp(0.0, p), (middle + half).clamp(p, 1.0));
        Self { value: p, low, high }
    }

    /// A mean with the interval of Student's t.
    pub(super) fn mean(of: Moments, level: f64) -> Self {
        if of.weight < 2.0 {
            return Self { value: of.mean, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let t = student_quantile(level, (of.weight - 1.0) as usize);
        let half = t * (of.variance / of.weight).sqrt();
        Self { value: of.mean, low: of.mean - half, high: of.mean + half }
    }
}

/// The largest gap between groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// The largest less the smallest.
    pub difference: f64,
    /// The interval of the difference, which holds for all pairs of groups at once.
    pub interval: [f64; 2],
    /// The smallest divided by the largest; `None` where it is not defined.
    pub ratio: Option<f64>,
    /// The interval of the ratio, which holds for all groups at once.
    pub ratio_interval: Option<[f64; 2]>,
}

impl Gap {
    /// The worse of two gaps whose intervals hold together.
    pub(super) fn worse(self, other: Self) -> Self {
        let smaller = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            _ => a.or(b),
        };
        let ratio_interval = match (self.ratio_interval, other.ratio_interval) {
            (Some(a), Some(b)) => Some([a[0].min(b[0]), a[1].min(b[1])]),
            (a, b) => a.or(b),
        };
        Self {
            difference: self.difference.max(other.difference),
            interval: [
                self.interval[0].max(other.interval[0]),
                self.interval[1].max(other.interval[1]),
            ],
            ratio: smaller(self.ratio, other.ratio),
            ratio_interval,
        }
    }
}

/// The level of each of `m` intervals that hold together.
fn each(level: f64, m: usize) -> f64 {
    1.0 - (1.0 - level) / m.max(1) as f64
}

/// The largest of the differences of all pairs, by their intervals: `pair` gives the interval of the first less the second.
fn largest(values: &[f64], pair: impl Fn(usize, usize) -> [f64; 2]) -> (f64, [f64; 2]) {
    let (mut difference, mut low, mut high) = (0.0f64, 0.0f64, 0.0f64);
    for i in 0..values.len() {
        for j in (0..values.len()).filter(|&j| j != i) {
            let [l, h] = pair(i, j);
            difference = difference.max(values[i] - values[j]);
            low = low.max(l);
            high = high.max(h);
        }
    }
    (difference, [low, high])
}

/// The gap of shares that are comparable within strata: one stratum, or several whose rates are averaged with the same
/// weights for all groups. `parts` gaps hold together. `None` if fewer than two groups have members everywhere.
pub(super) fn shares(strata: &[Vec<(f64, f64)>], level: f64, parts: usize) -> Option<Gap> {
    let k = strata.first()?.len();
    // A group without members of this kind has no rate.
    let there: Vec<usize> =
        (0..k).filter(|&g| strata.iter().any(|stratum| stratum[g].1 > 0.0)).collect();
    if there.len() < 2 {
        return None;
    }
    let pairs = there.len() * (there.len() - 1) / 2;
    let for_pair = each(level, pairs * parts);
    if let [stratum] = strata {
        let rates: Vec<Rate> = there.iter().map(|&g| Rate::share(stratum[g], for_pair)).collect();
        let values: Vec<f64> = rates.iter().map(|rate| rate.value).collect();
        // Newcombe's hybrid of the two intervals (1998).
        let (difference, interval) = largest(&values, |i, j| {
            let (a, b) = (rates[i], rates[j]);
            let square = |x: f64, y: f64| (x * x + y * y).sqrt();
            let d = a.value - b.value;
            [
                d - square(a.value - a.low, b.high - b.value),
                d + square(a.high - a.value, b.value - b.low),
            ]
        });
        let for_group = each(level, there.len() * parts);
        let alone: Vec<Rate> = there.iter().map(|&g| Rate::share(stratum[g], for_group)).collect();
        let (ratio, ratio_interval) = ratio(&alone);
        return Some(Gap { difference, interval: within(interval), ratio, ratio_interval });
    }
    // Only strata where all groups have members compare like with like.
    let shared: Vec<&Vec<(f64, f64)>> =
        strata.iter().filter(|s| there.iter().all(|&g| s[g].1 > 0.0)).collect();
    let size = |s: &[(f64, f64)]| there.iter().map(|&g| s[g].1).sum::<f64>();
    let total: f64 = shared.iter().map(|s| size(s)).sum();
    if total <= 0.0 {
        return None;
    }
    let adjusted: Vec<(f64, f64)> = there
        .iter()
        .map(|&g| {
            let (mut mean, mut variance) = (0.0, 0.0);
            for stratum in &shared {
                let (share, (with, n)) = (size(stratum) / total, stratum[g]);
                // The variance of a share that was 0 or 1 by chance is not 0 (Agresti and Coull's estimate).
                let p = (with + 1.0) / (n + 2.0);
                mean += share * with / n;
                variance += share * share * p * (1.0 - p) / n;
            }
            (mean, variance)
        })
        .collect();
    let z = normal_quantile(0.5 + for_pair / 2.0);
    let values: Vec<f64> = adjusted.iter().map(|(mean, _)| *mean).collect();
    let (difference, interval) = largest(&values, |i, j| {
        let half = z * (adjusted[i].1 + adjusted[j].1).sqrt();
        [values[i] - values[j] - half, values[i] - values[j] + half]
    });
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let ratio = (most > 0.0).then(|| least / most);
    Some(Gap { difference, interval: within(interval), ratio, ratio_interval: None })
}

fn within([low, high]: [f64; 2]) -> [f64; 2] {
    [low.clamp(0.0, 1.0), high.clamp(0.0, 1.0)]
}

/// The smallest ratio of two rates, and its interval from intervals that hold together.
fn ratio(rates: &[Rate]) -> (Option<f64>, Option<[f64; 2]>) {
    let most = rates.iter().map(|rate| rate.value).fold(0.0, f64::max);
    let least = rates.iter().map(|rate| rate.value).fold(f64::INFINITY, f64::min);
    if most <= 0.0 {
        return (None, None);
    }
    let (mut low, mut high) = (1.0f64, 1.0f64);
    for (i, a) in rates.iter().enumerate() {
        for (_, b) in rates.iter().enumerate().filter(|(j, _)| *j != i) {
            low = low.min(a.low / b.high);
            high = high.min(if b.low > 0.0 { a.high / b.low } else { f64::INFINITY });
        }
    }
    (Some(least / most), Some([low, high]))
}

/// The gap of the means of groups, by Welch's intervals for all pairs at once. `None` if fewer than two have two members.
pub(super) fn means(groups: &[Moments], level: f64) -> Option<Gap> {
    let groups: Vec<&Moments> = groups.iter().filter(|group| group.weight >= 2.0).collect();
    let k = groups.len();
    if k < 2 {
        return None;
    }
    let level = each(level, k * (k - 1) / 2);
    let values: Vec<f64> = groups.iter().map(|group| group.mean).collect();
    let (difference, interval) = largest(&values, |i, j| {
        let (a, b) = (groups[i], groups[j]);
        let (va, vb) = (a.variance / a.weight, b.variance / b.weight);
        let squares = va * va / (a.weight - 1.0) + vb * vb / (b.weight - 1.0);
        let degrees = if squares > 0.0 { (va + vb) * (va + vb) / squares } else { f64::MAX };
        let half = student_quantile(level, degrees as usize) * (va + vb).sqrt();
        [values[i] - values[j] - half, values[i] - values[j] + half]
    });
    Some(Gap { difference, interval, ratio: None, ratio_interval: None })
}

/// The test that all means are equal.
pub(super) fn means_test(groups: &[Moments]) -> Option<Test> {
    welch(groups)
}

/// The test that within every stratum all shares are equal.
pub(super) fn shares_test(strata: &[Vec<(f64, f64)>]) -> Option<Test> {
    mantel_haenszel(strata.iter().map(|stratum| -> &Counts { stratum }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_have_newcombes_interval() {
        // Newcombe (1998), table II, method 10, example (a): 56/70 less 48/80.
        let gap = shares(&[vec![(56.0, 70.0), (48.0, 80.0)]], 0.95, 1).unwrap();
        assert!((gap.difference - 0.2).abs() < 1e-12);
        assert!((gap.interval[0] - 0.0524).abs() < 1e-4, "{gap:?}");
        assert!((gap.interval[1] - 0.3339).abs() < 1e-4, "{gap:?}");
        assert!((gap.ratio.unwrap() - 0.75).abs() < 1e-12);
        let [low, high] = gap.ratio_interval.unwrap();
        assert!(low < 0.75 && 0.75 < high && high <= 1.0);
        // The order of the groups does not matter.
        assert_eq!(shares(&[vec![(48.0, 80.0), (56.0, 70.0)]], 0.95, 1), Some(gap));
    }

    #[test]
    fn a_group_of_nobody_has_no_rate() {
        let two = shares(&[vec![(5.0, 9.0), (3.0, 9.0)]], 0.95, 1);
        assert_eq!(shares(&[vec![(5.0, 9.0), (0.0, 0.0), (3.0, 9.0)]], 0.95, 1), two);
        assert_eq!(shares(&[vec![(5.0, 9.0), (0.0, 0.0)]], 0.95, 1), None);
        assert!(Rate::share((0.0, 0.0), 0.95).value.is_nan());
    }

    #[test]
    fn strata_are_weighed_alike_for_all_groups() {
        // Each department treats both alike; the women apply where few are admitted (Simpson's paradox).
        let easy = vec![(80.0, 100.0), (320.0, 400.0)];
        let hard = vec![(80.0, 400.0), (20.0, 100.0)];
        let plain = vec![(160.0, 500.0), (340.0, 500.0)];
        assert!((shares(&[plain], 0.95, 1).unwrap().difference - 0.36).abs() < 1e-12);
        let gap = shares(&[easy, hard], 0.95, 1).unwrap();
        assert!(gap.difference.abs() < 1e-12 && gap.interval[0] == 0.0, "{gap:?}");
    }

    #[test]
    fn the_interval_of_means_is_welchs() {
        let a = Moments { weight: 30.0, mean: 2.0, variance: 4.0 };
        let b = Moments { weight: 40.0, mean: 1.0, variance: 1.0 };
        let gap = means(&[a, b], 0.95).unwrap();
        // 39.99 degrees of freedom: t = 2.021.
        let half = 2.0211 * (4.0 / 30.0 + 1.0 / 40.0f64).sqrt();
        assert!((gap.interval[0] - (1.0 - half)).abs() < 2e-3, "{gap:?}");
        let alone = Rate::mean(a, 0.95);
        assert!((alone.high - (2.0 + 2.0452 * (4.0 / 30.0f64).sqrt())).abs() < 2e-3);
    }
}
