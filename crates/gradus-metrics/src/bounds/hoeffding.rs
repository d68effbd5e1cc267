//! Hoeffding's inequality, and the union bound over candidates.

use super::{Interval, IntervalMethod, check_level};
use crate::rows::{self, Sum};
use gradus_base::{Error, Result};

/// Hoeffding's bound for a loss with values in `[low, high]`, of `K` candidates evaluated on the same
/// `N` points:
///
/// ```text
/// with probability level = 1 − δ, the mean of every candidate is off by less than
/// ε = (high − low) · √(ln(2K/δ) / 2N)
/// ```
///
/// The points must be independent of each other and of the fit. It knows nothing of the variance:
/// where losses are small most of the time, a bootstrap or, for a share, [`proportion`] is narrower.
///
/// Hoeffding, *Probability inequalities for sums of bounded random variables* (1963).
///
/// ```
/// use gradus_metrics::bounds::Hoeffding;
///
/// // Accuracy of the best of 20 candidates on 10 000 points.
/// let bound = Hoeffding::new(0.0, 1.0, 20, 0.95)?;
/// let interval = bound.interval(0.91, 10_000.0)?;
/// assert!((interval.high - 0.91 - 0.0183).abs() < 1e-4);
/// // To be sure to 0.01 it takes …
/// assert_eq!(bound.points_for(0.01)?, 33_424);
/// # Ok::<(), gradus_base::Error>(())
/// ```
///
/// [`proportion`]: super::proportion()
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hoeffding {
    low: f64,
    high: f64,
    candidates: usize,
    level: f64,
}

impl Hoeffding {
    /// A bound for losses in `[low, high]`, for `candidates` of them at once.
    ///
    /// # Errors
    /// If the range is empty or not finite, there are no candidates, or `level` is not strictly
    /// between 0 and 1.
    pub fn new(low: f64, high: f64, candidates: usize, level: f64) -> Result<Self> {
        if !(low < high && (high - low).is_finite()) {
            let rule = "the range of a loss must be finite and go from low to high";
            return Err(Error::parameter("range", format!("{low}..{high}"), rule));
        }
        if candidates == 0 {
            return Err(Error::parameter("candidates", candidates, "must be at least 1"));
        }
        check_level(level)?;
        Ok(Self { low, high, candidates, level })
    }

    /// `ln(2K/δ)`.
    fn log(&self) -> f64 {
        (2.0 * self.candidates as f64).ln() - (1.0 - self.level).ln()
    }

    /// ε for `n` points (or as many as weighted points are worth: [`effective_size`]).
    ///
    /// # Errors
    /// If `n` is not positive.
    pub fn epsilon(&self, n: f64) -> Result<f64> {
        if !(n > 0.0 && n.is_finite()) {
            return Err(Error::parameter("n", n, "the number of test points must be positive"));
        }
        Ok((self.high - self.low) * (self.log() / (2.0 * n)).sqrt())
    }

    /// The interval around a mean over `n` points, cut at the range of the loss.
    ///
    /// # Errors
    /// If `n` is not positive, or `mean` is outside the range of the loss.
    pub fn interval(&self, mean: f64, n: f64) -> Result<Interval> {
        // A computed mean may pass the end of the range by a rounding error.
        let slack = 1e-9 * (self.high - self.low);
        if !(self.low - slack..=self.high + slack).contains(&mean) {
            let rule = format!("must be in the range of the loss, {} to {}", self.low, self.high);
            return Err(Error::parameter("mean", mean, rule));
        }
        let epsilon = self.epsilon(n)?;
        Ok(Interval {
            low: (mean - epsilon).clamp(self.low, self.high),
            high: (mean + epsilon).clamp(self.low, self.high),
            level: self.level,
            method: IntervalMethod::Hoeffding,
        })
    }

    /// Returns the number of points for which ε is at most this: `N = (high − low)² ln(2K/δ) / 2ε²`.
    ///
    /// # Errors
    /// If `epsilon` is not positive.
    pub fn points_for(&self, epsilon: f64) -> Result<u64> {
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(Error::parameter("epsilon", epsilon, "must be positive"));
        }
        let share = (self.high - self.low) / epsilon;
        // As a cast the largest numbers stay the largest.
        Ok(((share * share * self.log() / 2.0).ceil() as u64).max(1))
    }

    /// How many points it takes to tell two scores apart that differ by `difference`: until their
    /// intervals do not touch, so ε is half of it. To bound the mean of the differences point by
    /// point takes as many, for their range is twice as wide.
    ///
    /// # Errors
    /// If `difference` is not a number. Equal scores cannot be distinguished: the answer is `None`.
    pub fn points_to_separate(&self, difference: f64) -> Result<Option<u64>> {
        if difference == 0.0 {
            return Ok(None);
        }
        self.points_for(difference.abs() / 2.0).map(Some)
    }
}

/// Returns the number of unweighted points that weighted points are worth for a mean: `(Σw)²/Σw²` (Kish).
///
/// # Errors
/// If a weight is negative or not finite, or all are 0.
///
/// ```
/// use gradus_metrics::bounds::effective_size;
/// assert_eq!(effective_size(&[2.0, 2.0])?, 2.0);
/// assert_eq!(effective_size(&[3.0, 1.0])?, 1.6);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn effective_size(weights: &[f64]) -> Result<f64> {
    let total = rows::total_weight(Some(weights), weights.len())?;
    Ok(1.0 / Sum::of(weights.iter().map(|w| (w / total) * (w / total))))
}
