//! Intervals for a share: so many successes of so many trials.

use super::{Hoeffding, Interval, IntervalMethod, check_level};
use gradus_base::random::normal_quantile;
use gradus_base::{Error, Result};

/// The interval that is guaranteed to hold a share at least so often, and is the narrowest of those
/// known: Clopper and Pearson's, or Hoeffding's where that is narrower. The interval says which.
///
/// # Errors
/// If there are no trials, more successes than trials, or `level` is not strictly between 0 and 1.
///
/// ```
/// use gradus_metrics::bounds::{IntervalMethod, proportion};
///
/// let interval = proportion(9_100, 10_000, 0.95)?;
/// assert_eq!(interval.method, IntervalMethod::ClopperPearson);
/// assert!((interval.low - 0.9042).abs() < 1e-4 && (interval.high - 0.9155).abs() < 1e-4);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn proportion(successes: u64, trials: u64, level: f64) -> Result<Interval> {
    check(successes, trials, level)?;
    let (k, n) = (successes as f64, trials as f64);
    let side = (1.0 - level) / 2.0;
    // The ends are quantiles of beta distributions: where so many or more (fewer) successes would
    // be as rare as one side allows.
    let low = if successes == 0 { 0.0 } else { beta_quantile(side, k, n - k + 1.0) };
    let high = if successes == trials { 1.0 } else { 1.0 - beta_quantile(side, n - k, k + 1.0) };
    let exact = Interval { low, high, level, method: IntervalMethod::ClopperPearson };
    let hoeffding = Hoeffding::new(0.0, 1.0, 1, level)?.interval(k / n, n)?;
    Ok(if hoeffding.width() < exact.width() { hoeffding } else { exact })
}

/// Wilson's interval for a share: narrower than the exact one, and right on average over the shares
/// there are, but not for each of them.
///
/// # Errors
/// As [`proportion`].
///
/// ```
/// use gradus_metrics::bounds::wilson;
/// let interval = wilson(5, 10, 0.95)?;
/// assert!((interval.low - 0.2366).abs() < 1e-4 && (interval.high - 0.7634).abs() < 1e-4);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn wilson(successes: u64, trials: u64, level: f64) -> Result<Interval> {
    check(successes, trials, level)?;
    let (k, n) = (successes as f64, trials as f64);
    let z = normal_quantile(0.5 + level / 2.0);
    let (share, square) = (k / n, z * z);
    let middle = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half = z / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    let low = if successes == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if successes == trials { 1.0 } else { (middle + half).min(1.0) };
    Ok(Interval { low, high, level, method: IntervalMethod::Wilson })
}

fn check(successes: u64, trials: u64, level: f64) -> Result<()> {
    if trials == 0 || successes > trials {
        let rule =
            format!("must be at most the number of trials, {trials}, which must be positive");
        return Err(Error::parameter("successes", successes, rule));
    }
    check_level(level)
}

/// The number below which a beta variate lies with probability `p`; `a` and `b` are at least 1.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    // Halving reaches the resolution of a double near 1, and 2⁻²⁰⁰ near 0.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if beta_cdf(middle, a, b) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz).
pub(super) fn beta_cdf(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges fast on its own side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_cdf(1.0 - x, b, a);
    }
    let log =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    let nonzero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        for part in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / nonzero(1.0 + part * d);
            c = nonzero(1.0 + part / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (log.exp() * fraction / a).clamp(0.0, 1.0)
}
