//! The error of predicted numbers.
//!
//! Definitions are those of scikit-learn. Where a measure has no natural value:
//!
//! | case | value |
//! |---|---|
//! | the truth is constant (or one row) | R² and explained variance are 1 for a perfect prediction, else 0 |
//! | a true value is 0 | the percentage error divides by 2⁻⁵² instead, so it is huge but finite |
//! | no rows, or no weight | an error |
//!
//! Several targets are several calls.

use super::rows::{self, Sum};
use gradus_base::{Error, Result};
use serde::Serialize;

/// How far predicted numbers are from the true ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RegressionErrors {
    /// Mean squared error.
    pub mse: f64,
    /// The root of the mean squared error, in the unit of the target.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// The median of the absolute errors: what outliers do not move.
    pub median_absolute: f64,
    /// The largest absolute error.
    pub max: f64,
    /// Mean absolute error as a share of the true value: 0.1 is 10 %.
    pub mape: f64,
    /// The share of the variance that is predicted: 1 is perfect, 0 is what the mean of the truth
    /// would get, and there is no lower bound.
    pub r2: f64,
    /// The same without the mean error: what R² would be if a constant were added to the
    /// predictions.
    pub explained_variance: f64,
    /// The mean of truth − prediction.
    pub bias: f64,
    /// Rows that count: those with a positive weight.
    pub count: usize,
}

impl RegressionErrors {
    /// R² with the degrees of freedom of a model of `n_features` taken off:
    /// `1 − (1 − R²)(n − 1)/(n − n_features − 1)`. Nothing where there are too few rows for it.
    ///
    /// ```
    /// use gradus_metrics::regression::regression_errors;
    /// let errors = regression_errors(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 5.0], None)?;
    /// assert_eq!(errors.r2, 0.8);
    /// assert!((errors.adjusted_r2(1).unwrap() - 0.7).abs() < 1e-15);
    /// assert_eq!(errors.adjusted_r2(3), None);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn adjusted_r2(&self, n_features: usize) -> Option<f64> {
        let free = self.count.checked_sub(n_features.saturating_add(1)).filter(|&free| free > 0)?;
        Some(1.0 - (1.0 - self.r2) * ((self.count - 1) as f64 / free as f64))
    }
}

/// The squared error of each row, the mean over the targets of `(truth − predicted)²`.
///
/// # Shapes
/// `truth` and `predicted` have a row of `n_targets` for each row.
///
/// ```
/// use gradus_metrics::regression::squared_errors;
/// assert_eq!(squared_errors(&[1.0, 2.0, 3.0, 4.0], &[1.0, 4.0, 3.0, 3.0], 2), [2.0, 0.5]);
/// ```
pub fn squared_errors(truth: &[f64], predicted: &[f64], n_targets: usize) -> Vec<f64> {
    let width = n_targets.max(1);
    let error = |(truth, predicted): (&[f64], &[f64])| {
        let squares = truth.iter().zip(predicted).map(|(y, p)| (y - p) * (y - p));
        squares.sum::<f64>() / width as f64
    };
    truth.chunks(width).zip(predicted.chunks(width)).map(error).collect()
}

/// All errors of predicted numbers at once.
///
/// `O(n)` time, and memory for the absolute errors (their median needs them).
///
/// # Shapes
/// `truth`, `predicted` and `weights` have one value for each row.
///
/// # Errors
/// If the lengths differ, there is nothing to compare, a value (or a difference) is not finite, or
/// a weight is negative.
///
/// ```
/// use gradus_metrics::regression::regression_errors;
///
/// let errors = regression_errors(&[3.0, -0.5, 2.0, 7.0], &[2.5, 0.0, 2.0, 8.0], None)?;
/// assert_eq!((errors.mse, errors.mae, errors.median_absolute), (0.375, 0.5, 0.5));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn regression_errors(
    truth: &[f64],
    predicted: &[f64],
    weights: Option<&[f64]>,
) -> Result<RegressionErrors> {
    let total = checked(truth, predicted, weights)?;
    let counts = |row: &usize| rows::weight(weights, *row) > 0.0;
    let mut size = 0.0f64;
    let (mut first, mut second) = (Sum::default(), Sum::default());
    let (mut absolute, mut share) = (Sum::default(), Sum::default());
    let (mut count, mut constant) = (0, true);
    let mut common = None;
    for row in (0..truth.len()).filter(counts) {
        let (w, t) = (rows::weight(weights, row) / total, truth[row]);
        let error = t - predicted[row];
        size = size.max(error.abs());
        first.add(w * t);
        second.add(w * error);
        absolute.add(w * error.abs());
        share.add(w * (error.abs() / t.abs().max(f64::EPSILON)));
        constant &= *common.get_or_insert(t) == t;
        count += 1;
    }
    // The computed mean of a constant may be off by a bit, and R² would be divided by its square.
    let mean = if constant { common.unwrap_or(0.0) } else { first.value() };
    let bias = second.value();
    let far = (0..truth.len()).filter(counts).map(|row| (truth[row] - mean).abs());
    let (unit, spread_unit) = (unit(size), unit(far.fold(0.0, f64::max)));
    let (mut squares, mut centred, mut spread) = (Sum::default(), Sum::default(), Sum::default());
    let mut even = true;
    let mut same = None;
    for row in (0..truth.len()).filter(counts) {
        let w = rows::weight(weights, row) / total;
        let error = truth[row] - predicted[row];
        squares.add(w * (error / unit).powi(2));
        centred.add(w * ((error - bias) / unit).powi(2));
        spread.add(w * ((truth[row] - mean) / spread_unit).powi(2));
        even &= *same.get_or_insert(error) == error;
    }
    let (squares, spread) = (squares.value(), spread.value());
    let centred = if even { 0.0 } else { centred.value() };
    // Squares of numbers near the ends of the range are taken in a unit of their own.
    let ratio = (unit / spread_unit) * (unit / spread_unit);
    let predicted_share = |left: f64| match (left > 0.0, spread > 0.0) {
        (false, _) => 1.0,
        (true, false) => 0.0,
        (true, true) => 1.0 - left / spread * ratio,
    };
    Ok(RegressionErrors {
        mse: squares * unit * unit,
        rmse: squares.sqrt() * unit,
        mae: absolute.value(),
        median_absolute: median(
            (0..truth.len())
                .filter(counts)
                .map(|row| ((truth[row] - predicted[row]).abs(), rows::weight(weights, row)))
                .collect(),
        ),
        max: size,
        mape: share.value(),
        r2: predicted_share(squares),
        explained_variance: predicted_share(centred),
        bias,
        count,
    })
}

/// The mean pinball (quantile) loss at level `alpha`: `alpha · e` where the truth is above the
/// prediction by `e`, `(1 − alpha) · e` where it is below by `e`. Least for the `alpha`-quantile; at
/// one half it is half the mean absolute error.
///
/// # Errors
/// As [`regression_errors`]; and if `alpha` is not strictly between 0 and 1.
///
/// ```
/// use gradus_metrics::regression::pinball_loss;
/// assert_eq!(pinball_loss(&[1.0, 2.0], &[0.0, 4.0], 0.25, None)?, (0.25 * 1.0 + 0.75 * 2.0) / 2.0);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn pinball_loss(
    truth: &[f64],
    predicted: &[f64],
    alpha: f64,
    weights: Option<&[f64]>,
) -> Result<f64> {
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(Error::parameter("alpha", alpha, "must be greater than 0 and less than 1"));
    }
    mean_of(truth, predicted, weights, |truth, predicted| {
        let error = truth - predicted;
        if error >= 0.0 { alpha * error } else { (alpha - 1.0) * error }
    })
}

/// The mean of any loss of a true and a predicted value, weighted if weights are given.
///
/// # Errors
/// As [`regression_errors`].
///
/// ```
/// use gradus_metrics::regression::mean_of;
/// // Huber's loss with its corner at 1.
/// let huber = |t: f64, p: f64| {
///     let e = (t - p).abs();
///     if e <= 1.0 { 0.5 * e * e } else { e - 0.5 }
/// };
/// assert_eq!(mean_of(&[0.0, 0.0], &[1.0, 3.0], None, huber)?, 1.5);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn mean_of(
    truth: &[f64],
    predicted: &[f64],
    weights: Option<&[f64]>,
    loss: impl Fn(f64, f64) -> f64,
) -> Result<f64> {
    let total = checked(truth, predicted, weights)?;
    let pairs = truth.iter().zip(predicted).enumerate();
    Ok(Sum::of(pairs.map(|(row, (&t, &p))| rows::weight(weights, row) / total * loss(t, p))))
}

/// Checks the three columns, and gives the sum of the weights.
fn checked(truth: &[f64], predicted: &[f64], weights: Option<&[f64]>) -> Result<f64> {
    rows::same_length("predictions", truth.len(), predicted.len())?;
    rows::finite("truth", truth)?;
    rows::finite("predictions", predicted)?;
    if let Some(at) = truth.iter().zip(predicted).position(|(t, p)| !(t - p).is_finite()) {
        return Err(Error::data(format!(
            "row {}: true {}, predicted {}: their difference is too large for a number",
            at + 1,
            truth[at],
            predicted[at]
        )));
    }
    rows::total_weight(weights, truth.len())
}

/// A power of two to measure in where squares would leave the range of a number; else 1.
fn unit(size: f64) -> f64 {
    if size == 0.0 || (1e-140..1e140).contains(&size) { 1.0 } else { size.log2().floor().exp2() }
}

/// The middle of the values by weight; where the half falls between two of them, their mean.
fn median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = Sum::of(values.iter().map(|&(_, weight)| weight)) / 2.0;
    let mut below = Sum::default();
    for (at, &(value, weight)) in values.iter().enumerate() {
        below.add(weight);
        if below.value() > half {
            return value;
        }
        if below.value() == half {
            let next = values.get(at + 1).map_or(value, |next| next.0);
            return 0.5 * value + 0.5 * next;
        }
    }
    values.last().map_or(0.0, |last| last.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-11 * (1.0 + a.abs().max(b.abs()))
    }

    /// Every measure from its definition, rows repeated by their (whole) weights.
    fn oracle(truth: &[f64], predicted: &[f64], weights: &[usize]) -> RegressionErrors {
        let repeated: Vec<(f64, f64)> = truth
            .iter()
            .zip(predicted)
            .zip(weights)
            .flat_map(|((&t, &p), &w)| std::iter::repeat_n((t, p), w))
            .collect();
        let n = repeated.len() as f64;
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| repeated.iter().map(f).sum::<f64>() / n;
        let average = mean(&|r| r.0);
        let bias = mean(&|r| r.0 - r.1);
        let mse = mean(&|r| (r.0 - r.1).powi(2));
        let variance = mean(&|r| (r.0 - average).powi(2));
        let of_errors = mean(&|r| (r.0 - r.1 - bias).powi(2));
        let share = |left: f64| {
            if left < 1e-25 {
                1.0
            } else if variance < 1e-25 {
                0.0
            } else {
                1.0 - left / variance
            }
        };
        let mut sizes: Vec<f64> = repeated.iter().map(|r| (r.0 - r.1).abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let (a, b) = (sizes[(sizes.len() - 1) / 2], sizes[sizes.len() / 2]);
        RegressionErrors {
            mse,
            rmse: mse.sqrt(),
            mae: mean(&|r| (r.0 - r.1).abs()),
            median_absolute: (a + b) / 2.0,
            max: sizes[sizes.len() - 1],
            mape: mean(&|r| (r.0 - r.1).abs() / r.0.abs().max(f64::EPSILON)),
            r2: share(mse),
            explained_variance: share(of_errors),
            bias,
            count: weights.iter().filter(|&&w| w > 0).count(),
        }
    }

    proptest! {
        #[test]
        fn all_agree_with_their_definitions_and_weights_equal_repetition(
            case in prop::collection::vec((-4i8..5, -4i8..5, 0usize..4), 1..30),
        ) {
            prop_assume!(case.iter().any(|row| row.2 > 0));
            let truth: Vec<f64> = case.iter().map(|row| f64::from(row.0) * 0.5).collect();
            let predicted: Vec<f64> = case.iter().map(|row| f64::from(row.1) * 0.25).collect();
            let counts: Vec<usize> = case.iter().map(|row| row.2).collect();
            let weights: Vec<f64> = counts.iter().map(|&w| w as f64).collect();
            let found = regression_errors(&truth, &predicted, Some(&weights)).unwrap();
            let expected = oracle(&truth, &predicted, &counts);
            for (name, a, b) in [
                ("mse", found.mse, expected.mse),
                ("rmse", found.rmse, expected.rmse),
                ("mae", found.mae, expected.mae),
                ("median", found.median_absolute, expected.median_absolute),
                ("max", found.max, expected.max),
                ("mape", found.mape, expected.mape),
                ("r2", found.r2, expected.r2),
                ("explained", found.explained_variance, expected.explained_variance),
                ("bias", found.bias, expected.bias),
            ] {
                prop_assert!(close(a, b), "{name}: {a} for {b}");
            }
            prop_assert_eq!(found.count, expected.count);
            let half = pinball_loss(&truth, &predicted, 0.5, Some(&weights)).unwrap();
            prop_assert!(close(half, expected.mae / 2.0));
        }
    }

    #[test]
    fn a_constant_truth_has_nothing_to_explain() {
        // 0.1 added thrice and divided by three is not 0.1.
        let truth = [0.1; 3];
        let perfect = regression_errors(&truth, &truth, None).unwrap();
        assert_eq!((perfect.r2, perfect.explained_variance, perfect.rmse), (1.0, 1.0, 0.0));
        let shifted = regression_errors(&truth, &[0.3; 3], None).unwrap();
        assert_eq!((shifted.r2, shifted.explained_variance), (0.0, 1.0));
        let off = regression_errors(&truth, &[0.1, 0.1, 0.2], None).unwrap();
        assert_eq!((off.r2, off.explained_variance), (0.0, 0.0));
        let one = regression_errors(&[5.0], &[4.0], None).unwrap();
        assert_eq!((one.r2, one.mse, one.count), (0.0, 1.0, 1));
        assert_eq!(one.adjusted_r2(0), None);
    }

    #[test]
    fn the_scale_of_the_target_does_not_matter() {
        let (truth, predicted) = ([1.0, 2.0, 4.0, 8.0], [1.5, 2.0, 3.0, 8.0]);
        let plain = regression_errors(&truth, &predicted, None).unwrap();
        for power in [-900, -300, 300, 900] {
            let scale = f64::from(power).exp2();
            let [t, p] = [truth, predicted].map(|values| values.map(|v| v * scale));
            let scaled = regression_errors(&t, &p, None).unwrap();
            assert_eq!(scaled.r2, plain.r2, "2^{power}");
            assert_eq!(scaled.explained_variance, plain.explained_variance, "2^{power}");
            assert!(close(scaled.rmse / scale, plain.rmse), "2^{power}");
        }
        // A large mean with a small spread.
        let [t, p] = [truth, predicted].map(|values| values.map(|v| v + 1e9));
        assert!((regression_errors(&t, &p, None).unwrap().r2 - plain.r2).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_measured_is_named() {
        for (truth, predicted, weights, part) in [
            (&[][..], &[][..], None, "no rows"),
            (&[1.0], &[1.0, 2.0], None, "predictions: expected 1"),
            (&[1.0, f64::NAN], &[1.0, 2.0], None, "truth, row 2: NaN"),
            (&[1.0], &[f64::INFINITY], None, "predictions, row 1: inf"),
            (&[1e308], &[-1e308], None, "too large"),
            (&[1.0], &[1.0], Some(&[0.0][..]), "no rows"),
            (&[1.0], &[1.0], Some(&[-1.0]), "not negative"),
            (&[1.0], &[1.0], Some(&[1.0, 1.0]), "weights: expected 1"),
        ] {
            let error = regression_errors(truth, predicted, weights).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(pinball_loss(&[1.0], &[1.0], 1.0, None).is_err());
    }
}
