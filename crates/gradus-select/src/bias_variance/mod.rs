//! Bias and variance: what a way of learning gets wrong always, and what depends on the data it
//! happened to see.
//!
//! The same learner is fitted on many samples of the rows, drawn with replacement, and predicts the
//! same test rows each time. Samples drawn so are more alike than new data would be, so the variance
//! found is a little small, and the bias that of a learner of about two thirds of the rows.
//!
//! [`bias_variance`] takes numbers and the squared loss, [`class_bias_variance`] classes and errors.

mod classes;

pub use classes::{ClassBiasVariance, ClassPoint, class_bias_variance};

use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_metrics::rows::{self, Sum};
use serde::Serialize;

/// The decomposition of the squared error of one test row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SquaredPoint {
    /// The mean prediction of the rounds.
    pub main: f64,
    /// The square of how far the mean prediction is from the truth: bias² where the truth is known
    /// without noise, else bias² and noise together.
    pub bias_squared: f64,
    /// The mean square of how far the predictions are from their mean.
    pub variance: f64,
    /// The mean squared error. It is `bias_squared + variance + noise`.
    pub total: f64,
}

/// The squared error of a learner, taken apart. All means are over the test rows.
///
/// `total = bias² + variance + noise`: exactly, point by point and on average.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BiasVariance {
    /// Each test row.
    pub points: Vec<SquaredPoint>,
    /// The mean of bias² (with the noise in it, where that is not known).
    pub bias_squared: f64,
    /// The mean variance.
    pub variance: f64,
    /// The variance of the noise, as given; 0 if it was not.
    pub noise: f64,
    /// The mean squared error.
    pub total: f64,
    /// How often the learner was fitted.
    pub rounds: usize,
}

/// Draws `n_rounds` samples of `n_rows` rows with replacement, fits and predicts on each, and takes
/// the squared error on the test rows apart.
///
/// `fit_predict` gets the rows of a sample, and gives the predictions for the test rows. Rounds run
/// in parallel; the result does not depend on the number of threads if `fit_predict` does not.
///
/// `truth` has the value of each test row. With the values that were measured the noise in them ends
/// up in the bias; if the true values are known, as of made data, give those, and the variance of
/// the noise as `noise` (else 0), which is then added to the total.
///
/// # Shapes
/// `truth`, and what `fit_predict` gives, have one value for each test row.
///
/// # Errors
/// If there are fewer than 2 rounds, no rows, no test rows or a negative `noise`; if a fit fails, or
/// its predictions are too few or not finite.
///
/// ```
/// use gradus_select::bias_variance::bias_variance;
///
/// // The learner predicts the mean of its sample everywhere; the truth is 0 and 4.
/// let values = [0.0, 1.0, 3.0, 4.0, 2.0];
/// let found = bias_variance(200, 1, values.len(), &[0.0, 4.0], 0.0, |rows| {
///     let mean = rows.iter().map(|&row| values[row as usize]).sum::<f64>() / rows.len() as f64;
///     Ok(vec![mean; 2])
/// })?;
/// // Bias² is 2² at both; the variance that of the values, 2, over five of them.
/// assert!((found.bias_squared - 4.0).abs() < 0.2 && (found.variance - 0.4).abs() < 0.1);
/// assert!((found.total - found.bias_squared - found.variance).abs() < 1e-12);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn bias_variance(
    n_rounds: usize,
    seed: u64,
    n_rows: usize,
    truth: &[f64],
    noise: f64,
    fit_predict: impl Fn(&[u32]) -> Result<Vec<f64>> + Sync,
) -> Result<BiasVariance> {
    rows::finite("truth", truth)?;
    if !(noise >= 0.0 && noise.is_finite()) {
        return Err(Error::parameter("noise", noise, "a variance must be finite and at least 0"));
    }
    let predictions = rounds(n_rounds, seed, n_rows, truth.len(), |rows| {
        let predicted = fit_predict(rows)?;
        rows::finite("predictions", &predicted)?;
        Ok(predicted)
    })?;
    let n = n_rounds as f64;
    let point = |(at, &truth): (usize, &f64)| {
        // Around the truth: large values of small spread keep their digits.
        let errors = || predictions.iter().map(|predicted| predicted[at] - truth);
        let bias = Sum::of(errors()) / n;
        SquaredPoint {
            main: truth + bias,
            bias_squared: bias * bias,
            variance: Sum::of(errors().map(|error| (error - bias).powi(2))) / n,
            total: Sum::of(errors().map(|error| error * error)) / n + noise,
        }
    };
    let points: Vec<SquaredPoint> = truth.iter().enumerate().map(point).collect();
    let mean =
        |get: fn(&SquaredPoint) -> f64| Sum::of(points.iter().map(get)) / points.len() as f64;
    Ok(BiasVariance {
        bias_squared: mean(|p| p.bias_squared),
        variance: mean(|p| p.variance),
        total: mean(|p| p.total),
        noise,
        rounds: n_rounds,
        points,
    })
}

/// Returns the predictions of each round for the test rows, in the order of the rounds.
fn rounds<T: Send>(
    n_rounds: usize,
    seed: u64,
    n_rows: usize,
    n_test: usize,
    fit_predict: impl Fn(&[u32]) -> Result<Vec<T>> + Sync,
) -> Result<Vec<Vec<T>>> {
    if !(2..=1_000_000).contains(&n_rounds) {
        return Err(Error::parameter("rounds", n_rounds, "must be from 2 to 1000000"));
    }
    if n_rows == 0 || n_rows > u32::MAX as usize {
        return Err(Error::parameter("rows", n_rows, "must be from 1 to 2^32 - 1"));
    }
    if n_test == 0 {
        return Err(Error::data("bias and variance: there are no test rows"));
    }
    parallel::try_map(0..n_rounds as u64, |round| {
        let mut stream = Stream::new(seed, "select.bias_variance", round);
        let mut rows: Vec<u32> = (0..n_rows).map(|_| stream.index(n_rows) as u32).collect();
        // In order: a sparse matrix is read front to back.
        rows.sort_unstable();
        let predicted = fit_predict(&rows)?;
        rows::same_length("predictions", n_test, predicted.len())?;
        Ok(predicted)
    })
}

#[cfg(test)]
mod tests;
