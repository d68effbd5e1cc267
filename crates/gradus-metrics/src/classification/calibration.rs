//! Whether probabilities mean what they say.

use super::probability;
use crate::rows::{self, Sum};
use gradus_base::{Error, Result};
use serde::Serialize;

/// How probabilities are put into bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bins {
    /// Bins of one width from 0 to 1; some may be empty, and are left out.
    Uniform,
    /// Bins of one weight; rows of one probability stay together, so there may be fewer bins.
    Quantile,
}

/// Rows whose probabilities are near one another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CalibrationBin {
    /// Probabilities in the bin are larger than this (or equal, in the first bin) …
    pub low: f64,
    /// … and at most this.
    pub high: f64,
    /// The mean of the probabilities.
    pub predicted: f64,
    /// The share of the rows that are yes: what the mean should be.
    pub observed: f64,
    /// The weight of the rows.
    pub weight: f64,
    /// The number of the rows.
    pub count: usize,
}

/// Predicted probabilities beside what happened, bin by bin: a reliability diagram in numbers.
///
/// For many classes, evaluate the class a model bets on: see [`top_label`].
///
/// ```
/// use gradus_metrics::classification::{Bins, Calibration};
///
/// let truth = [false, false, true, false, true, true];
/// let calibration = Calibration::new(&truth, &[0.1, 0.1, 0.1, 0.9, 0.9, 0.9], 2, Bins::Uniform, None)?;
/// assert_eq!(calibration.bins()[1].observed, 2.0 / 3.0);
/// assert!((calibration.expected_error() - (0.9 - 2.0 / 3.0)).abs() < 1e-15);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    bins: Vec<CalibrationBin>,
}

impl Calibration {
    /// Puts the rows into at most `n_bins` bins. 10 is usual; a bin of fewer than about 30 rows says
    /// little.
    ///
    /// # Shapes
    /// `truth`, `probability` and `weights` have one value for each row.
    ///
    /// # Errors
    /// If the lengths differ, there is nothing to measure on, a probability is not from 0 to 1, or
    /// `n_bins` is 0.
    pub fn new(
        truth: &[bool],
        probability: &[f64],
        n_bins: usize,
        bins: Bins,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        rows::same_length("probabilities", truth.len(), probability.len())?;
        probability::check(probability, 1)?;
        let total = rows::total_weight(weights, truth.len())?;
        if n_bins == 0 || n_bins > 1 << 20 {
            return Err(Error::parameter("n_bins", n_bins, "must be from 1 to 1048576"));
        }
        let mut order: Vec<usize> =
            (0..truth.len()).filter(|&row| rows::weight(weights, row) > 0.0).collect();
        order.sort_by(|&a, &b| probability[a].total_cmp(&probability[b]));
        let edges = match bins {
            Bins::Uniform => (1..=n_bins).map(|at| at as f64 / n_bins as f64).collect(),
            Bins::Quantile => quantiles(&order, probability, weights, total, n_bins),
        };
        let mut found = Vec::new();
        let (mut rest, mut low) = (order.as_slice(), 0.0);
        for high in edges {
            let n = rest.partition_point(|&row| probability[row] <= high);
            let (inside, after) = rest.split_at(n);
            if n > 0 {
                let sum = |value: &dyn Fn(usize) -> f64| {
                    Sum::of(inside.iter().map(|&row| rows::weight(weights, row) * value(row)))
                };
                let weight = sum(&|_| 1.0);
                found.push(CalibrationBin {
                    low,
                    high,
                    predicted: sum(&|row| probability[row]) / weight,
                    observed: sum(&|row| f64::from(u8::from(truth[row]))) / weight,
                    weight,
                    count: n,
                });
            }
            (rest, low) = (after, high);
        }
        Ok(Self { bins: found })
    }

    /// The bins that hold rows, by rising probability.
    pub fn bins(&self) -> &[CalibrationBin] {
        &self.bins
    }

    /// Expected calibration error: the mean distance, by weight, between what the bins predict and
    /// what is observed in them. It grows with the number of bins, even of a perfect model.
    pub fn expected_error(&self) -> f64 {
        let total = Sum::of(self.bins.iter().map(|bin| bin.weight));
        let far = |bin: &CalibrationBin| bin.weight * (bin.predicted - bin.observed).abs();
        Sum::of(self.bins.iter().map(far)) / total
    }

    /// The largest distance of any bin.
    pub fn max_error(&self) -> f64 {
        self.bins.iter().map(|bin| (bin.predicted - bin.observed).abs()).fold(0.0, f64::max)
    }
}

/// The upper edges of bins of one weight: probabilities that occur.
fn quantiles(
    order: &[usize],
    probability: &[f64],
    weights: Option<&[f64]>,
    total: f64,
    n_bins: usize,
) -> Vec<f64> {
    let mut edges: Vec<f64> = Vec::new();
    let mut below = Sum::default();
    for &row in order {
        below.add(rows::weight(weights, row));
        // The first probability at which a bin's share of the weight is reached.
        let filled = (below.value() / total * n_bins as f64 * (1.0 + 1e-14)).floor() as usize;
        let wanted = edges.len() + 1;
        if filled >= wanted {
            edges.extend(std::iter::repeat_n(probability[row], filled.min(n_bins) + 1 - wanted));
        }
    }
    edges.extend(order.last().map(|&row| probability[row]));
    edges.dedup();
    edges
}

/// Returns for each row whether the class with the largest probability is the true one, and that probability.
/// [`Calibration`] takes this for models of many classes. A tie goes to the smaller class.
///
/// # Errors
/// As [`log_loss_many`](super::log_loss_many).
///
/// ```
/// use gradus_metrics::classification::top_label;
/// let (right, confidence) = top_label(&[0, 1], &[0.75, 0.25, 0.5, 0.5], 2)?;
/// assert_eq!((right, confidence), (vec![true, false], vec![0.75, 0.5]));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn top_label(
    truth: &[u32],
    probabilities: &[f64],
    n_classes: usize,
) -> Result<(Vec<bool>, Vec<f64>)> {
    probability::check_table(truth, probabilities, n_classes)?;
    let rows = truth.iter().zip(probabilities.chunks_exact(n_classes.max(1)));
    Ok(rows
        .map(|(&class, row)| {
            let top =
                (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best });
            (top == class as usize, row[top])
        })
        .unzip())
}
