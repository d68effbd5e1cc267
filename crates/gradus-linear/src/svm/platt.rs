//! Probabilities from scores, by the method of Platt.
//!
//! Scores of samples that were left out of a fit are turned into `1 / (1 + exp(−(a s + b)))`, the
//! most likely sigmoid, with targets a little inside 0 and 1 (Lin, Lin, Weng: A note on Platt's
//! probabilistic outputs for support vector machines, 2007).

use super::Kernel;
use super::learn::{self, Options};
use super::model::SvmModel;
use super::newton::Watch;
use crate::model::sigmoid;
use gradus_base::Result;
use gradus_core::iterate::OwnLoop;
use gradus_core::predict::Predict as _;
use gradus_core::report::CAUTION;
use gradus_data::split::rows::{RowSplit, stratified_folds};
use gradus_data::{Dense, Matrix, Samples};

/// Parts the samples are cut into.
const FOLDS: usize = 5;

struct Quiet<'g, 'a>(&'g OwnLoop<'a>);

impl Watch for Quiet<'_, '_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }

    fn iteration(&mut self, _: f64) {}
}

/// Slope and offset for each score, and what the report should say of them.
pub(super) fn sigmoids(
    options: &Options,
    data: &Samples,
    model: &SvmModel,
    fit_loop: &OwnLoop<'_>,
) -> Result<(Vec<[f64; 2]>, Option<String>)> {
    let (codes, labels) = data.classes()?;
    let (n, k) = (data.len(), labels.len());
    let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
    // Every class is dealt out among the parts.
    let folds = stratified_folds(codes, FOLDS.min(n), options.seed)?;
    let n_scores = if k == 2 { 1 } else { k };
    // A score is known if the fit without its part had samples of the class it speaks for.
    let mut scores = vec![f64::NAN; n * n_scores];
    for RowSplit { train: outside, test: inside } in folds.iter() {
        let mut present = vec![false; k];
        for &row in &outside {
            present[codes[row as usize] as usize] |= weight(row as usize) > 0.0;
        }
        if inside.is_empty() || present.iter().filter(|present| **present).count() < 2 {
            continue;
        }
        let rest = learning(options, data, &outside);
        let (found, _) = learn::classes(options, &rest, None, &mut Quiet(fit_loop))?;
        let some = data.features().select_rows(&inside);
        let found = found.scores(&held_out(options, &some, &outside))?;
        for (found, &row) in found.rows().zip(&inside) {
            for (at, score) in found.iter().enumerate() {
                if k == 2 || present[at] {
                    scores[row as usize * n_scores + at] = *score;
                }
            }
        }
    }
    let (mut own, mut unknown) = (None, Vec::new());
    let mut sigmoids = Vec::with_capacity(n_scores);
    for at in 0..n_scores {
        let class = if k == 2 { 1 } else { at as u32 };
        let sample = |row: usize, score: f64| (score, codes[row] == class, weight(row));
        let known: Vec<_> = (0..n)
            .filter(|&row| !scores[row * n_scores + at].is_nan())
            .map(|row| sample(row, scores[row * n_scores + at]))
            .collect();
        let has = |is: bool| known.iter().any(|sample| sample.1 == is && sample.2 > 0.0);
        if has(true) && has(false) {
            sigmoids.push(fit(&known));
            continue;
        }
        // Too few samples of the class to leave one out: the scores of training are all there is.
        if own.is_none() {
            own = Some(model.scores(data.features())?);
        }
        let own = own.as_ref().expect("set above");
        unknown.push(labels.get(class as usize).to_string());
        sigmoids.push(fit(&(0..n).map(|row| sample(row, own[(row, at)])).collect::<Vec<_>>()));
    }
    let caution = (!unknown.is_empty()).then(|| {
        format!(
            "{CAUTION}too few samples to hold one of both sides out: the probabilities of class \
             {} are from scores of the samples trained on, and too sure",
            unknown.join(", ")
        )
    });
    Ok((sigmoids, caution))
}

/// The samples to learn from; of a precomputed kernel also the columns.
fn learning(options: &Options, data: &Samples, rows: &[u32]) -> Samples {
    let some = data.select_rows(rows);
    if options.kernel != Kernel::Precomputed {
        return some;
    }
    let columns = held_out(options, some.features(), rows);
    let target = some.target().clone();
    let weights = some.weights().map(<[f64]>::to_vec);
    let square = Samples::new(columns, target).expect("as many rows as before");
    match weights {
        Some(weights) => square.with_weights(weights).expect("as many as before"),
        None => square,
    }
}

/// The features of samples for a model that learned from `rows`.
fn held_out(options: &Options, features: &Matrix, rows: &[u32]) -> Matrix {
    if options.kernel != Kernel::Precomputed {
        return features.clone();
    }
    let dense = features.to_dense();
    Dense::from_fn(dense.n_rows(), rows.len(), |i, j| dense[(i, rows[j] as usize)]).into()
}

/// The most likely sigmoid of scores, whether each is of the class, and weights.
fn fit(samples: &[(f64, bool, f64)]) -> [f64; 2] {
    let weigh = |is: bool| samples.iter().filter(|s| s.1 == is).map(|s| s.2).sum::<f64>();
    let (yes, no) = (weigh(true), weigh(false));
    let (high, low) = ((yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0));
    let target = |is: bool| if is { high } else { low };
    let cost = |a: f64, b: f64| {
        let one = |&(score, is, weight): &(f64, bool, f64)| {
            let f = a * score + b;
            // −t log p − (1 − t) log(1 − p), without overflow.
            weight * ((-f.abs()).exp().ln_1p() + f.max(0.0) - target(is) * f)
        };
        samples.iter().map(one).sum::<f64>()
    };
    let (mut a, mut b) = (0.0, ((yes + 1.0) / (no + 1.0)).ln());
    let mut now = cost(a, b);
    for _ in 0..100 {
        let (mut g, mut h) = ([0.0; 2], [1e-12, 0.0, 1e-12]);
        for &(score, is, weight) in samples {
            let p = sigmoid(a * score + b);
            let (by, curvature) = (weight * (p - target(is)), weight * p * (1.0 - p));
            g[0] += by * score;
            g[1] += by;
            h[0] += curvature * score * score;
            h[1] += curvature * score;
            h[2] += curvature;
        }
        if g[0].abs() < 1e-9 * (1.0 + yes + no) && g[1].abs() < 1e-9 * (1.0 + yes + no) {
            break;
        }
        let determinant = h[0] * h[2] - h[1] * h[1];
        let step = [
            -(h[2] * g[0] - h[1] * g[1]) / determinant,
            -(h[0] * g[1] - h[1] * g[0]) / determinant,
        ];
        let slope = g[0] * step[0] + g[1] * step[1];
        let mut length = 1.0;
        loop {
            let (next_a, next_b) = (a + length * step[0], b + length * step[1]);
            let next = cost(next_a, next_b);
            if next < now + 1e-4 * length * slope {
                (a, b, now) = (next_a, next_b, next);
                break;
            }
            length *= 0.5;
            if length.is_nan() || length <= 1e-10 {
                return [a, b];
            }
        }
    }
    [a, b]
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn the_sigmoid_is_where_no_slope_is_left() {
        let samples: Vec<(f64, bool, f64)> =
            (-10..=10).map(|i| (f64::from(i) * 0.3, i > 2 || i == -4, 1.0)).collect();
        let [a, b] = fit(&samples);
        assert!(a > 0.0 && b.is_finite());
        // Weights equal repetition.
        let twice: Vec<_> = samples.iter().flat_map(|s| [*s, *s]).collect();
        let heavy: Vec<_> = samples.iter().map(|s| (s.0, s.1, 2.0)).collect();
        let ([a, b], [c, d]) = (fit(&twice), fit(&heavy));
        assert!((a - c).abs() < 1e-9 && (b - d).abs() < 1e-9);
    }
}
