//! How far a score on this many test points can be from the truth.
//!
//! | bound | of | what it takes | holds |
//! |---|---|---|---|
//! | [`Hoeffding`] | the mean of a bounded loss | independent points | always, for all candidates tried at once |
//! | [`proportion`] | a share, such as accuracy | independent points | always (Clopper–Pearson) |
//! | [`wilson`] | the same, narrower | many points | nearly |
//! | [`Bootstrap`] | any statistic of rows | points like those to come | for many points |
//! | [`joint_intervals`] | the scores of several models and all their differences | units like those to come | for many units, for all models at once |
//!
//! [`compare`] puts them together: the losses of all candidates at the same points in, intervals and
//! how many points it takes to tell the two best apart out.
//!
//! The first two are guarantees: with probability `level` over the draw of the test points the truth
//! lies inside, whatever the distribution. Choosing the best of `K` candidates by its test score
//! makes that score optimistic, which the union bound of [`Hoeffding`] pays for; the other bounds
//! take a `level` of `1 − (1 − level)/K` to the same end.

mod bootstrap;
mod compare;
mod hoeffding;
mod proportion;
mod simultaneous;

pub use bootstrap::{Bootstrap, Resampled};
pub use compare::{PairedComparison, Separation, compare};
pub use hoeffding::{Hoeffding, effective_size};
pub use proportion::{proportion, wilson};
pub use simultaneous::{
    EvaluationPoints, JointDifference, JointScore, JointScores, LossScale, joint_intervals,
};

use gradus_base::random::normal_quantile;
use gradus_base::{Error, Result};
use serde::Serialize;
use std::fmt;

/// An interval that holds the truth with probability `level`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How often such an interval holds the truth: 0.95 is usual.
    pub level: f64,
    /// The method that gave the interval.
    pub method: IntervalMethod,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IntervalMethod {
    /// Hoeffding's inequality, with the union bound over the candidates tried.
    Hoeffding,
    /// Exact for a proportion (Clopper and Pearson, 1934).
    ClopperPearson,
    /// Nearly exact for a proportion (Wilson, 1927).
    Wilson,
    /// The middle of the bootstrap distribution.
    Percentile,
    /// The same, corrected for bias and skew (Efron, 1987).
    Bca,
    /// The quantile of the largest studentised error over all models in joint bootstrap draws (Westfall and
    /// Young, 1993).
    MaxT,
}

impl IntervalMethod {
    /// Returns the name of the method in prose.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hoeffding => "Hoeffding",
            Self::ClopperPearson => "Clopper–Pearson",
            Self::Wilson => "Wilson",
            Self::Percentile => "bootstrap percentile",
            Self::Bca => "bootstrap BCa",
            Self::MaxT => "joint bootstrap",
        }
    }

    /// Whether the level is a guarantee for any number of points, and not an approximation for many.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Hoeffding | Self::ClopperPearson)
    }
}

impl fmt::Display for IntervalMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Interval {
    /// Returns the width of the interval.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether a value lies in it, its ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The quantile of Student's t distribution beyond which a share of `1 - level` lies, on both sides
/// together, for five degrees of freedom or more (Cornish and Fisher's expansion: within 0.2 % there
/// at 95 %).
pub fn student_quantile(level: f64, degrees: usize) -> f64 {
    let (z, v) = (normal_quantile(0.5 + level / 2.0), degrees.max(1) as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * v)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * v.powi(3))
}

/// How many independent points must favour one of two candidates, and none the other, before it is
/// better with this confidence: of fewer all agree too often by chance (sign test, `2 · 2⁻ⁿ`). Six at
/// 95 %. A standard error says nothing there: it is 0 where all differences are alike.
pub fn least_differing(level: f64) -> usize {
    (1.0 - (1.0 - level).log2()).ceil().max(1.0) as usize
}

/// Checks that a level is strictly between 0 and 1.
fn check_level(level: f64) -> Result<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(Error::parameter("level", level, "must be greater than 0 and less than 1"))
}

#[cfg(test)]
mod small_tests {
    use super::*;

    #[test]
    fn the_quantiles_of_student() {
        for (degrees, expected) in [(5, 2.5706), (10, 2.2281), (30, 2.0423), (1023, 1.9623)] {
            let found = student_quantile(0.95, degrees);
            assert!((found / expected - 1.0).abs() < 2e-3, "{degrees}: {found}");
        }
        assert_eq!((least_differing(0.95), least_differing(0.5), least_differing(0.99)), (6, 2, 8));
    }

    #[test]
    fn one_row_says_nothing_of_the_spread() {
        for method in [IntervalMethod::Bca, IntervalMethod::Percentile] {
            let bootstrap = Bootstrap { method, ..Bootstrap::default() };
            let weighted = bootstrap.mean(&[2.0, 5.0], Some(&[1.0, 0.0])).unwrap();
            for found in [
                bootstrap.mean(&[2.0], None).unwrap(),
                bootstrap.statistic(1, |_| Some(2.0)).unwrap(),
                weighted,
            ] {
                assert_eq!(found.estimate, 2.0);
                assert!(found.standard_error.is_nan());
                assert_eq!(found.interval.width(), f64::INFINITY);
            }
        }
        let found = compare(&[&[1.0], &[2.0]], None, None, 0.95, 0).unwrap();
        let lead = found.lead.unwrap();
        assert!(!lead.sure && lead.standard_error.is_nan() && lead.needed.is_none(), "{lead:?}");
        assert!(found.intervals.iter().all(|interval| interval.width() == f64::INFINITY));
    }

    #[test]
    fn five_points_that_agree_are_not_sure_and_six_are() {
        for (n, sure) in [(5, false), (6, true)] {
            let (a, b) = (vec![0.0; n], vec![1.0; n]);
            let lead = compare(&[&a, &b], None, Some((0.0, 1.0)), 0.95, 0).unwrap().lead.unwrap();
            assert_eq!(lead.sure, sure, "{n}");
        }
    }
}

#[cfg(test)]
mod tests;
