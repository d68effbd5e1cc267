//! The error of predicted ratings.

use gradus_core::{Error, Result};
use serde::Serialize;

/// How far predicted ratings are from the true ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatingErrors {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// How many pairs it was taken over.
    pub count: usize,
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
/// let errors = gradus_select::metrics::rating_errors(&[4.0, 2.0], &[4.0, 4.0], None)?;
/// assert_eq!((errors.rmse, errors.mae), (2.0f64.sqrt(), 1.0));
/// # Ok::<(), gradus_core::Error>(())
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
    Ok(RatingErrors { rmse: (squares / total).sqrt(), mae: absolutes / total, count: truth.len() })
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
