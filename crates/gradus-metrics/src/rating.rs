//! The error of predicted ratings.

use gradus_base::{Error, Result};
use serde::Serialize;

/// How far predicted ratings are from the true ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatingErrors {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// The number of pairs.
    pub count: usize,
    /// Standard error of the first, from the spread of the squared errors (delta method). Not a
    /// number (null in JSON) for one pair.
    pub rmse_error: f64,
    /// Standard error of the second, from the spread of the absolute errors; the same for one pair.
    pub mae_error: f64,
}

impl RatingErrors {
    /// Returns the 95 % interval of the root mean squared error over ever more such pairs.
    ///
    /// Both intervals are normal, and take the pairs as independent. Ratings of the same user or
    /// item are not quite, so the truth is a little wider.
    pub fn rmse_interval(&self) -> (f64, f64) {
        interval(self.rmse, self.rmse_error)
    }

    /// The same for the mean absolute error.
    pub fn mae_interval(&self) -> (f64, f64) {
        interval(self.mae, self.mae_error)
    }
}

/// The middle 95 % of a normal distribution, which starts at 0; anything if the error is not known.
fn interval(mean: f64, error: f64) -> (f64, f64) {
    const WIDTH: f64 = 1.959_963_984_540_054;
    if error.is_nan() {
        return (0.0, f64::INFINITY);
    }
    ((mean - WIDTH * error).max(0.0), mean + WIDTH * error)
}

/// Root mean squared and mean absolute error, weighted if weights are given.
///
/// # Shapes
/// `truth`, `predicted` and `weights` have one value for each pair.
///
/// # Errors
/// If the lengths differ, there is nothing to compare, or a value is not finite.
///
/// ```
/// let errors = gradus_metrics::rating_errors(&[4.0, 2.0], &[4.0, 4.0], None)?;
/// assert_eq!((errors.rmse, errors.mae), (2.0f64.sqrt(), 1.0));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn rating_errors(
    truth: &[f32],
    predicted: &[f32],
    weights: Option<&[f32]>,
) -> Result<RatingErrors> {
    let same = |what: &str, got: usize| {
        if got == truth.len() {
            return Ok(());
        }
        Err(Error::Shape {
            what: what.into(),
            expected: truth.len().to_string(),
            got: got.to_string(),
        })
    };
    same("predictions", predicted.len())?;
    same("weights", weights.map_or(truth.len(), <[f32]>::len))?;
    let (mut squares, mut absolutes, mut total) = (0.0, 0.0, 0.0);
    for (at, (&truth, &predicted)) in truth.iter().zip(predicted).enumerate() {
        let weight = weights.map_or(1.0, |weights| f64::from(weights[at]));
        let error = f64::from(predicted) - f64::from(truth);
        if !error.is_finite() || !weight.is_finite() || weight < 0.0 {
            return Err(Error::data(format!(
                "pair {}: true {truth}, predicted {predicted}, weight {weight}: must be finite, the weight not negative",
                at + 1
            )));
        }
        squares += weight * error * error;
        absolutes += weight * error.abs();
        total += weight;
    }
    if total == 0.0 {
        return Err(Error::data("no ratings to compare predictions with (or all have weight 0)"));
    }
    let (mse, mae) = (squares / total, absolutes / total);
    let (mut spread_of_squares, mut spread_of_absolutes) = (0.0, 0.0);
    for (at, (&truth, &predicted)) in truth.iter().zip(predicted).enumerate() {
        let weight = weights.map_or(1.0, |weights| f64::from(weights[at]));
        let error = f64::from(predicted) - f64::from(truth);
        spread_of_squares += weight * (error * error - mse).powi(2);
        spread_of_absolutes += weight * (error.abs() - mae).powi(2);
    }
    let rmse = mse.sqrt();
    let counted = weights.map_or(truth.len(), |w| w.iter().filter(|&&w| w > 0.0).count());
    if counted < 2 {
        // Of one pair nothing is known of the spread.
        let (rmse_error, mae_error) = (f64::NAN, f64::NAN);
        return Ok(RatingErrors { rmse, mae, count: truth.len(), rmse_error, mae_error });
    }
    // The error of a root is that of its square over twice the root.
    let rmse_error = if rmse > 0.0 { spread_of_squares.sqrt() / total / (2.0 * rmse) } else { 0.0 };
    let mae_error = spread_of_absolutes.sqrt() / total;
    Ok(RatingErrors { rmse, mae, count: truth.len(), rmse_error, mae_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_equal_repetition() {
        let (truth, predicted) = ([1.0, 2.0, 5.0], [1.5, 4.0, 5.0]);
        let weighted = rating_errors(&truth, &predicted, Some(&[2.0, 1.0, 0.0])).unwrap();
        let repeated = rating_errors(&[1.0, 1.0, 2.0], &[1.5, 1.5, 4.0], None).unwrap();
        assert_eq!((weighted.rmse, weighted.mae), (repeated.rmse, repeated.mae));
        assert_eq!(weighted.rmse_error, repeated.rmse_error);
        assert_eq!(weighted.mae_error, repeated.mae_error);
    }

    #[test]
    fn one_pair_says_nothing_of_the_spread() {
        let found = rating_errors(&[4.0], &[3.5], None).unwrap();
        assert_eq!((found.rmse, found.rmse_interval()), (0.5, (0.0, f64::INFINITY)));
        let weighted = rating_errors(&[4.0, 1.0], &[3.5, 9.0], Some(&[2.0, 0.0])).unwrap();
        assert!(weighted.rmse_error.is_nan() && weighted.mae_error.is_nan());
    }

    #[test]
    fn the_interval_holds_the_truth_95_times_of_100() {
        use gradus_base::random::Stream;
        // Normal errors of spread 0.8: RMSE 0.8, MAE 0.8 √(2/π).
        let (rmse, mae) = (0.8, 0.8 * (2.0 / std::f64::consts::PI).sqrt());
        let (mut rmse_held, mut mae_held) = (0, 0);
        for sample in 0..1000 {
            let mut stream = Stream::new(3, "errors", sample);
            let predicted: Vec<f32> = (0..400).map(|_| (0.8 * stream.normal()) as f32).collect();
            let errors = rating_errors(&[0.0; 400], &predicted, None).unwrap();
            let holds = |(low, high): (f64, f64), truth: f64| low <= truth && truth <= high;
            rmse_held += i32::from(holds(errors.rmse_interval(), rmse));
            mae_held += i32::from(holds(errors.mae_interval(), mae));
        }
        assert!((930..970).contains(&rmse_held), "{rmse_held}");
        assert!((930..970).contains(&mae_held), "{mae_held}");
    }

    #[test]
    fn perfect_predictions_have_no_error() {
        let errors = rating_errors(&[1.0, 2.0], &[1.0, 2.0], None).unwrap();
        assert_eq!((errors.rmse, errors.rmse_error, errors.mae_error), (0.0, 0.0, 0.0));
        assert_eq!(errors.rmse_interval(), (0.0, 0.0));
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        assert!(rating_errors(&[], &[], None).is_err());
        assert!(
            rating_errors(&[1.0], &[1.0, 2.0], None)
                .unwrap_err()
                .to_string()
                .contains("expected 1, got 2")
        );
        assert!(rating_errors(&[1.0], &[f32::NAN], None).unwrap_err().to_string().contains("NaN"));
        assert!(rating_errors(&[1.0], &[1.0], Some(&[-1.0])).is_err());
    }
}
