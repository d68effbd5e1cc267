//! Proper scores of probabilities: least, on average, for the true ones.

use crate::rows::{self, Sum};
use gradus_base::{Error, Result};

/// The least probability a logarithm is taken of, 2⁻⁵²: a model that was certain and wrong costs 36
/// and not an infinity that no other row could mend. It is scikit-learn's number too.
pub const LEAST_PROBABILITY: f64 = f64::EPSILON;

/// How far the probabilities of a row may be from adding up to 1: single precision gets that far.
const SLACK: f64 = 1e-5;

/// The mean of `−ln p(truth)`, for yes and no; `probability` is that of yes. Probabilities below
/// [`LEAST_PROBABILITY`] (or as near to 1 on the wrong side) count as that.
///
/// # Shapes
/// `truth`, `probability` and `weights` have one value for each row.
///
/// # Errors
/// If the lengths differ, there is nothing to measure on, or a probability is not from 0 to 1.
///
/// ```
/// use gradus_metrics::classification::log_loss;
/// assert_eq!(log_loss(&[true, false], &[0.5, 0.5], None)?, 2f64.ln());
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn log_loss(truth: &[bool], probability: &[f64], weights: Option<&[f64]>) -> Result<f64> {
    mean(truth, probability, weights, |yes, p| {
        // ln(1 − p) keeps the digits of a small p.
        let least = LEAST_PROBABILITY;
        if yes { -p.max(least).ln() } else { -(-p.min(1.0 - least)).ln_1p() }
    })
}

/// The mean squared difference of the probability of yes and what was true (1 or 0): Brier's score,
/// from 0 to 1.
///
/// # Errors
/// As [`log_loss`].
///
/// ```
/// use gradus_metrics::classification::brier;
/// assert_eq!(brier(&[true, false], &[0.5, 0.0], None)?, 0.125);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn brier(truth: &[bool], probability: &[f64], weights: Option<&[f64]>) -> Result<f64> {
    mean(truth, probability, weights, |yes, p| (p - f64::from(u8::from(yes))).powi(2))
}

fn mean(
    truth: &[bool],
    probability: &[f64],
    weights: Option<&[f64]>,
    loss: impl Fn(bool, f64) -> f64,
) -> Result<f64> {
    rows::same_length("probabilities", truth.len(), probability.len())?;
    check(probability, 1)?;
    let total = rows::total_weight(weights, truth.len())?;
    let pairs = truth.iter().zip(probability).enumerate();
    Ok(Sum::of(pairs.map(|(row, (&yes, &p))| rows::weight(weights, row) * loss(yes, p))) / total)
}

/// The mean of `−ln p(truth)` over many classes. A probability below [`LEAST_PROBABILITY`] counts as
/// that.
///
/// # Shapes
/// `probabilities` has a row for each of `truth`, of `n_classes` values.
///
/// # Errors
/// If the shapes differ, there is nothing to measure on, a class is not below `n_classes`, a
/// probability is not from 0 to 1, or those of a row do not add up to 1 (to five digits; they are
/// taken as they are).
///
/// ```
/// use gradus_metrics::classification::log_loss_many;
/// let loss = log_loss_many(&[0, 2], &[0.5, 0.25, 0.25, 0.25, 0.25, 0.5], 3, None)?;
/// assert_eq!(loss, 2f64.ln());
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn log_loss_many(
    truth: &[u32],
    probabilities: &[f64],
    n_classes: usize,
    weights: Option<&[f64]>,
) -> Result<f64> {
    mean_many(truth, probabilities, n_classes, weights, |class, row| {
        -row[class].max(LEAST_PROBABILITY).ln()
    })
}

/// The log loss of each row: `−ln p` of the true class, `None` being a class that the model does not
/// know and holds impossible. No probability counts as less than [`LEAST_PROBABILITY`].
///
/// # Shapes
/// `probabilities` has a row of `n_classes` for each entry of `truth`.
///
/// ```
/// use gradus_metrics::classification::log_losses;
/// let losses = log_losses(&[Some(0), None], &[0.5, 0.5, 0.1, 0.9], 2);
/// assert_eq!(losses, [2f64.ln(), -f64::EPSILON.ln()]);
/// ```
pub fn log_losses(truth: &[Option<u32>], probabilities: &[f64], n_classes: usize) -> Vec<f64> {
    let rows = probabilities.chunks(n_classes.max(1));
    let loss = |(truth, row): (&Option<u32>, &[f64])| {
        let p = truth.and_then(|class| row.get(class as usize).copied()).unwrap_or(0.0);
        -p.max(LEAST_PROBABILITY).ln()
    };
    truth.iter().zip(rows).map(loss).collect()
}

/// Brier's score over many classes: the mean of `Σ (p − y)²` over the classes, from 0 to 2. For two
/// classes it is twice [`brier`].
///
/// # Errors
/// As [`log_loss_many`].
///
/// ```
/// use gradus_metrics::classification::brier_many;
/// assert_eq!(brier_many(&[1], &[0.5, 0.5], 2, None)?, 0.5);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn brier_many(
    truth: &[u32],
    probabilities: &[f64],
    n_classes: usize,
    weights: Option<&[f64]>,
) -> Result<f64> {
    mean_many(truth, probabilities, n_classes, weights, |class, row| {
        let each = row.iter().enumerate();
        each.map(|(at, p)| (p - f64::from(u8::from(at == class))).powi(2)).sum()
    })
}

fn mean_many(
    truth: &[u32],
    probabilities: &[f64],
    n_classes: usize,
    weights: Option<&[f64]>,
    loss: impl Fn(usize, &[f64]) -> f64,
) -> Result<f64> {
    check_table(truth, probabilities, n_classes)?;
    let total = rows::total_weight(weights, truth.len())?;
    let rows = truth.iter().zip(probabilities.chunks_exact(n_classes.max(1))).enumerate();
    let losses =
        rows.map(|(at, (&class, row))| self::rows::weight(weights, at) * loss(class as usize, row));
    Ok(Sum::of(losses) / total)
}

/// Checks the probabilities of `n_classes` classes for each row of `truth`.
pub(super) fn check_table(truth: &[u32], probabilities: &[f64], n_classes: usize) -> Result<()> {
    rows::table("probabilities", probabilities, truth.len(), n_classes)?;
    rows::classes("truth", truth, n_classes)?;
    check(probabilities, n_classes)?;
    for (at, row) in probabilities.chunks_exact(n_classes.max(1)).enumerate() {
        let sum: f64 = row.iter().sum();
        if (sum - 1.0).abs() > SLACK {
            return Err(Error::data(format!(
                "probabilities, row {}: they add up to {sum}, and must to 1",
                at + 1
            )));
        }
    }
    Ok(())
}

/// Checks that every value of a table with this many columns is a probability.
pub(super) fn check(probabilities: &[f64], columns: usize) -> Result<()> {
    match probabilities.iter().position(|p| !(0.0..=1.0).contains(p)) {
        None => Ok(()),
        Some(at) => Err(Error::data(format!(
            "probabilities, row {}: {} must be from 0 to 1",
            at / columns.max(1) + 1,
            probabilities[at]
        ))),
    }
}
