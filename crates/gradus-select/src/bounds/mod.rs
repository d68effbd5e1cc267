//! How far a score on so many test points can be from the truth.
//!
//! | bound | of | what it takes | holds |
//! |---|---|---|---|
//! | [`Hoeffding`] | the mean of a bounded loss | independent points | always, for all candidates tried at once |
//! | [`proportion`] | a share, such as accuracy | independent points | always (Clopper–Pearson) |
//! | [`wilson`] | the same, narrower | many points | nearly |
//! | [`Bootstrap`] | any statistic of rows | points like those to come | for many points |
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

pub use bootstrap::{Bootstrap, Resampled};
pub use compare::{Comparison, Separation, compare};
pub use hoeffding::{Hoeffding, effective_size};
pub use proportion::{proportion, wilson};

use gradus_core::{Error, Result};
use serde::Serialize;
use std::fmt;

/// An interval that holds the truth with probability `level`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// How often such an interval holds the truth: 0.95 is usual.
    pub level: f64,
    /// Where it comes from.
    pub method: Method,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
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
}

impl Method {
    /// Its name in prose.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hoeffding => "Hoeffding",
            Self::ClopperPearson => "Clopper–Pearson",
            Self::Wilson => "Wilson",
            Self::Percentile => "bootstrap percentile",
            Self::Bca => "bootstrap BCa",
        }
    }

    /// Whether the level is a guarantee for any number of points, and not an approximation for many.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Hoeffding | Self::ClopperPearson)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Interval {
    /// Its width.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether a value lies in it, its ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Whether it has values in common with another: if not, the two scores are told apart.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// That a level is strictly between 0 and 1.
fn check_level(level: f64) -> Result<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(Error::parameter("level", level, "must be greater than 0 and less than 1"))
}

#[cfg(test)]
mod tests;
