//! Bias and variance of errors (0–1 loss), after Domingos.

use super::rounds;
use gradus_base::Result;
use gradus_metrics::rows::Sum;
use serde::Serialize;

/// The decomposition of the error of one test row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassPoint {
    /// The main prediction: the class predicted most often, the smallest of several.
    pub main: u32,
    /// Whether the main prediction is wrong.
    pub biased: bool,
    /// The share of predictions that differ from the main one.
    pub variance: f64,
    /// How often a prediction is wrong.
    pub total: f64,
}

/// The errors of a classifier, taken apart. All means are over the test rows.
///
/// Where the main prediction is right, variance can only hurt; where it is wrong, straying from it
/// can help. So variance has a sign: `total = bias + unbiased_variance − helpful_variance`, exactly.
/// (For two classes every straying from a wrong class helps, and `helpful_variance` is the variance
/// of the biased rows; for more only what lands on the right class does.)
///
/// Domingos, *A unified bias–variance decomposition* (2000), with the truth taken as free of noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassBiasVariance {
    /// Each test row.
    pub points: Vec<ClassPoint>,
    /// The share of the rows whose main prediction is wrong.
    pub bias: f64,
    /// The share of predictions that differ from the main one, over all rows.
    pub variance: f64,
    /// The errors that variance adds, where the main prediction is right.
    pub unbiased_variance: f64,
    /// The errors that variance removes, where the main prediction is wrong.
    pub helpful_variance: f64,
    /// The share of the predictions that are wrong.
    pub total: f64,
    /// How often the learner was fitted.
    pub rounds: usize,
}

/// Decomposes like [`bias_variance`](super::bias_variance()), for classes and the share of errors.
///
/// # Errors
/// If there are fewer than 2 rounds, no rows or no test rows; if a fit fails, or its predictions are
/// too few.
///
/// ```
/// use gradus_select::bias_variance::class_bias_variance;
///
/// // The learner predicts the class that is most frequent in its sample.
/// let classes = [0, 0, 1, 0, 1];
/// let found = class_bias_variance(100, 1, 5, &[0, 1], |rows| {
///     let ones = rows.iter().filter(|&&row| classes[row as usize] == 1).count();
///     Ok(vec![u32::from(2 * ones > rows.len()); 2])
/// })?;
/// assert_eq!(found.bias, 0.5);
/// assert_eq!(found.total, 0.5);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn class_bias_variance(
    n_rounds: usize,
    seed: u64,
    n_rows: usize,
    truth: &[u32],
    fit_predict: impl Fn(&[u32]) -> Result<Vec<u32>> + Sync,
) -> Result<ClassBiasVariance> {
    let predictions = rounds(n_rounds, seed, n_rows, truth.len(), fit_predict)?;
    let mut votes: Vec<u32> = Vec::with_capacity(n_rounds);
    let mut point = |(at, &truth): (usize, &u32)| {
        votes.clear();
        votes.extend(predictions.iter().map(|predicted| predicted[at]));
        votes.sort_unstable();
        let (mut main, mut most) = (votes[0], 0);
        for same in votes.chunk_by(|a, b| a == b) {
            if same.len() > most {
                (main, most) = (same[0], same.len());
            }
        }
        let right = votes.iter().filter(|&&class| class == truth).count();
        let share = |n: usize| (n_rounds - n) as f64 / n_rounds as f64;
        ClassPoint { main, biased: main != truth, variance: share(most), total: share(right) }
    };
    let points: Vec<ClassPoint> = truth.iter().enumerate().map(&mut point).collect();
    let mean = |get: fn(&ClassPoint) -> f64| Sum::of(points.iter().map(get)) / points.len() as f64;
    Ok(ClassBiasVariance {
        bias: mean(|p| f64::from(u8::from(p.biased))),
        variance: mean(|p| p.variance),
        unbiased_variance: mean(|p| if p.biased { 0.0 } else { p.variance }),
        helpful_variance: mean(|p| if p.biased { 1.0 - p.total } else { 0.0 }),
        total: mean(|p| p.total),
        rounds: n_rounds,
        points,
    })
}
