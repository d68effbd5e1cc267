//! How far small changes of the features can move the predicted number of a regression.

use super::audit::{RobustnessOptions, Share};
use super::gradient::{random_start, step_from};
use super::space::{Moves, Space};
use super::{Norm, problem::Point};
use gradus_base::{Error, Result, parallel};
use gradus_core::predict::Predict;
use gradus_core::transform::Gradient;
use gradus_data::{Dense, Matrix};
use serde::Serialize;

/// Rows that are attacked together.
const ROWS: usize = 512;

/// What is known of the prediction of one row.
#[derive(Clone, Debug, Serialize)]
pub struct ValueRow {
    /// The number of the row.
    pub row: usize,
    /// The predicted number.
    pub predicted: f64,
    /// The lowest prediction found within the radius.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}

impl ValueRow {
    /// The largest change of the prediction, down or up.
    pub fn change(&self) -> f64 {
        (self.highest - self.predicted).max(self.predicted - self.lowest)
    }
}

/// Changes of predictions within one radius.
#[derive(Clone, Debug, Serialize)]
pub struct ValuePoint {
    /// The radius.
    pub eps: f64,
    /// The mean over the rows of the largest change.
    pub mean_change: f64,
    /// The largest change of any row.
    pub largest_change: f64,
    /// Rows whose prediction moves by more than the tolerance.
    pub moved: Share,
}

/// The result of an audit of predicted numbers.
#[derive(Clone, Debug, Serialize)]
pub struct ValueRobustness {
    /// The norm.
    pub norm: Norm,
    /// The radius.
    pub eps: f64,
    /// Whether changes are the largest there are, and not the largest that were found.
    pub exact: bool,
    /// A prediction that changes by more than this has moved.
    pub tolerance: f64,
    /// The changes within the radius.
    pub found: ValuePoint,
    /// The same over further radii.
    pub curve: Vec<ValuePoint>,
    /// What is known of each row, within the radius.
    pub rows: Vec<ValueRow>,
    /// The features of each row that change its prediction the most.
    #[serde(skip)]
    pub examples: Vec<Vec<f64>>,
}

/// Moves the predicted number of every row up and down as far as changes of its features within the radius can: exactly for affine
/// models of continuous features, by projected gradient steps for others. `tolerance` is what counts as a moved prediction; left
/// out, a tenth of the standard deviation of the predictions.
///
/// # Errors
/// If an option is out of range, the model predicts more than one number or none, it gives no gradients, the features are not those
/// of training, or there are no rows.
pub fn audit_predictions(
    model: &dyn Predict,
    gradient: Option<&dyn Gradient>,
    space: &Space,
    features: &Dense<f64>,
    tolerance: Option<f64>,
    options: &RobustnessOptions,
    stopped: &dyn Fn() -> bool,
) -> Result<ValueRobustness> {
    options.check()?;
    space.check(model.inputs().n_features())?;
    if let Some(tolerance) = tolerance.filter(|x| !(*x >= 0.0 && x.is_finite())) {
        return Err(Error::parameter("tolerance", tolerance, "must be a number that is 0 or more"));
    }
    let n = features.n_rows();
    if n == 0 {
        return Err(Error::data("no rows to audit"));
    }
    let matrix = Matrix::Dense(features.clone());
    matrix.check_finite()?;
    let predicted = model.scores(&matrix)?;
    if model.outputs().labels().is_some() || predicted.n_cols() != 1 {
        return Err(Error::data(format!(
            "an audit of predictions is of one predicted number, and the model gives {}",
            predicted.n_cols()
        )));
    }
    let Some(gradient) = gradient else {
        return Err(Error::data(
            "the model gives no gradients with respect to its features: predictions of linear models, support vector machines and \
             networks can be audited",
        ));
    };
    let predicted = predicted.into_values();
    let tolerance = tolerance.unwrap_or_else(|| {
        let mean = predicted.iter().sum::<f64>() / n as f64;
        let variance = predicted.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / n as f64;
        0.1 * variance.sqrt()
    });
    let affine = gradient.affine().filter(|_| space.is_continuous());
    let slopes = affine.map(|affine| affine.coefficients.row(0).to_vec());
    let mut radii: Vec<f64> = options.curve.iter().copied().chain([0.0, options.eps]).collect();
    radii.sort_by(f64::total_cmp);
    radii.dedup();
    let mut reached: Vec<Reached> = predicted.iter().map(|p| Reached::new(*p)).collect();
    let (mut curve, mut at_eps) = (Vec::new(), None);
    for eps in radii {
        for first in (0..n).step_by(ROWS).filter(|_| eps > 0.0) {
            let some = first..(first + ROWS).min(n);
            let values = some.clone().flat_map(|at| features.row(at)).copied().collect();
            let rows = Dense::new(some.len(), features.n_cols(), values)?;
            let moves = Moves::new(space, rows, some.clone().map(|at| at as u64).collect());
            let own = &mut reached[some];
            match &slopes {
                Some(slopes) => exact(slopes, &moves, eps, own),
                None => search((model, gradient), &moves, eps, options, stopped, own)?,
            }
        }
        let changes: Vec<f64> = reached.iter().map(Reached::change).collect();
        let moved = changes.iter().filter(|change| **change > tolerance).count();
        let point = ValuePoint {
            eps,
            mean_change: changes.iter().sum::<f64>() / n as f64,
            largest_change: changes.iter().copied().fold(0.0, f64::max),
            moved: Share::new(moved, n, options.level)?,
        };
        if eps == options.eps {
            let rows = reached.iter().zip(&predicted).enumerate().map(|(row, (found, p))| {
                ValueRow { row, predicted: *p, lowest: found.lowest.0, highest: found.highest.0 }
            });
            let example = |(row, found): (usize, &Reached)| {
                let best = found.best();
                if best.is_empty() { features.row(row).to_vec() } else { best.to_vec() }
            };
            let examples = reached.iter().enumerate().map(example).collect();
            at_eps = Some((point.clone(), rows.collect::<Vec<_>>(), examples));
        }
        curve.push(point);
    }
    let Some((found, rows, examples)) = at_eps else {
        return Err(Error::data("no radius to audit"));
    };
    Ok(ValueRobustness {
        norm: space.norm,
        eps: options.eps,
        exact: slopes.is_some(),
        tolerance,
        found,
        curve,
        rows,
        examples,
    })
}

/// The lowest and the highest prediction found of a row, with the changed features.
struct Reached {
    start: f64,
    lowest: (f64, Vec<f64>),
    highest: (f64, Vec<f64>),
}

impl Reached {
    fn new(predicted: f64) -> Self {
        let none = (predicted, Vec::new());
        Self { start: predicted, lowest: none.clone(), highest: none }
    }

    fn change(&self) -> f64 {
        (self.highest.0 - self.start).max(self.start - self.lowest.0)
    }

    fn best(&self) -> &[f64] {
        let up = self.highest.0 - self.start >= self.start - self.lowest.0;
        if up { &self.highest.1 } else { &self.lowest.1 }
    }

    fn keep(&mut self, value: f64, features: &[f64]) {
        if value > self.highest.0 {
            self.highest = (value, features.to_vec());
        }
        if value < self.lowest.0 {
            self.lowest = (value, features.to_vec());
        }
    }
}

/// The perturbation within `eps` and the bounds along which a linear function with these slopes rises the most: exact.
fn furthest(norm: Norm, slopes: &[f64], eps: f64, (low, high): (&[f64], &[f64]), out: &mut [f64]) {
    let cap = |at: usize| if slopes[at] > 0.0 { high[at] } else { -low[at] };
    out.fill(0.0);
    match norm {
        Norm::Linf => {
            for (at, out) in out.iter_mut().enumerate().filter(|(at, _)| slopes[*at] != 0.0) {
                *out = cap(at).min(eps) * slopes[at].signum();
            }
        }
        Norm::L1 => {
            let mut order: Vec<usize> = (0..slopes.len()).filter(|&at| slopes[at] != 0.0).collect();
            order.sort_by(|&a, &b| slopes[b].abs().total_cmp(&slopes[a].abs()).then(a.cmp(&b)));
            let mut left = eps;
            for at in order {
                let by = cap(at).min(left);
                out[at] = by * slopes[at].signum();
                left -= by;
            }
        }
        Norm::L2 => {
            // In proportion to the slopes, up to the bounds: those that bind first come first.
            let mut order: Vec<(f64, usize)> = (0..slopes.len())
                .filter(|&at| slopes[at] != 0.0)
                .map(|at| (cap(at) / slopes[at].abs(), at))
                .collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let mut free: f64 = order.iter().map(|(_, at)| slopes[*at] * slopes[*at]).sum();
            let mut left = eps * eps;
            let mut share = f64::INFINITY;
            for &(binds, at) in &order {
                let here = (left.max(0.0) / free.max(f64::MIN_POSITIVE)).sqrt();
                if here <= binds {
                    share = here;
                    break;
                }
                left -= cap(at) * cap(at);
                free -= slopes[at] * slopes[at];
            }
            for &(_, at) in &order {
                out[at] = cap(at).min(share * slopes[at].abs()) * slopes[at].signum();
            }
        }
    }
}

/// The largest changes of an affine function.
fn exact(slopes: &[f64], moves: &Moves<'_>, eps: f64, reached: &mut [Reached]) {
    let m = moves.len();
    let mut up = vec![0.0; m];
    moves.pull(slopes, &mut up);
    let down: Vec<f64> = up.iter().map(|slope| -slope).collect();
    let (mut delta, mut out) = (vec![0.0; m], vec![0.0; moves.rows.n_cols()]);
    for (row, reached) in (0u32..).zip(reached) {
        for (sign, slopes) in [(1.0, &up), (-1.0, &down)] {
            furthest(moves.space.norm, slopes, eps, (moves.low(row), moves.high(row)), &mut delta);
            let by: f64 = slopes.iter().zip(&delta).map(|(s, d)| s * d).sum();
            moves.lift(row, &delta, eps, &mut out);
            reached.keep(reached.start + sign * by, &out);
        }
    }
}

/// Gradient steps up and down from each row and from random points, each projected back into the ball.
fn search(
    of: (&dyn Predict, &dyn Gradient),
    moves: &Moves<'_>,
    eps: f64,
    options: &RobustnessOptions,
    stopped: &dyn Fn() -> bool,
    reached: &mut [Reached],
) -> Result<()> {
    let (n, m) = (reached.len(), moves.len());
    let d = moves.rows.n_cols();
    for restart in 0..options.restarts {
        for sign in [1.0, -1.0] {
            let seed = options.seed.wrapping_add(2 * restart as u64 + u64::from(sign > 0.0));
            let mut deltas: Vec<Vec<f64>> = (0..n as u32)
                .map(|row| match restart {
                    0 => vec![0.0; m],
                    _ => {
                        let mut stream = moves.stream(seed, "audit.values", row);
                        random_start(moves, row, eps, &mut stream)
                    }
                })
                .collect();
            for iteration in 0..=options.iterations {
                if stopped() {
                    return Err(Error::data("the audit was interrupted"));
                }
                let points: Vec<Point<'_>> =
                    (0u32..).zip(&deltas).map(|(row, delta)| (row, &delta[..])).collect();
                let lifted = moves.lift_all(&points, eps);
                let (scores, slopes) = slopes(of, &lifted, sign)?;
                let lifted = lifted.to_dense();
                for (row, reached) in reached.iter_mut().enumerate() {
                    reached.keep(scores[row], lifted.row(row));
                }
                if iteration == options.iterations {
                    break;
                }
                // Long steps first, to leave flat places; short ones at the end.
                let size = eps * (1.0 - iteration as f64 / options.iterations as f64).max(0.02);
                let slopes = slopes.values();
                let step = |(at, delta): (usize, &mut Vec<f64>)| {
                    let row = at as u32;
                    let (mut slope, mut by) = (vec![0.0; m], vec![0.0; m]);
                    moves.pull(&slopes[at * d..][..d], &mut slope);
                    step_from(moves, (row, &delta[..]), &slope, (size, 0.05), &mut by);
                    delta.iter_mut().zip(&by).for_each(|(x, by)| *x += by);
                    moves.project(row, delta, eps);
                };
                parallel::each(deltas.iter_mut().enumerate(), step);
            }
        }
    }
    Ok(())
}

/// The predictions, and the gradient of `sign` times each.
fn slopes(
    (model, gradient): (&dyn Predict, &dyn Gradient),
    features: &Matrix,
    sign: f64,
) -> Result<(Vec<f64>, Dense<f64>)> {
    let mut weigh = |_: usize, scores: &Dense<f64>| Dense::full(scores.n_rows(), 1, sign);
    if let Some(found) = gradient.scores_and_gradient(features, &mut weigh)? {
        return Ok((found.scores.into_values(), found.gradient));
    }
    let mut slopes = gradient.input_gradient(features, 0)?;
    slopes.values_mut().iter_mut().for_each(|slope| *slope *= sign);
    Ok((model.scores(features)?.into_values(), slopes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;
    use gradus_core::estimator::Fit;
    use gradus_data::Samples;
    use gradus_linear::{Kernel, Ridge, Svr};

    fn made(n: usize) -> Samples {
        let mut stream = Stream::new(4, "audit.values.tests", 0);
        let x = Dense::from_fn(n, 3, |_, _| stream.normal());
        let y = (0..n).map(|row| 2.0 * x[(row, 0)] - x[(row, 1)] + 0.2 * stream.normal()).collect();
        Samples::regression(x, y).unwrap()
    }

    #[test]
    fn changes_of_a_linear_model_are_exact_within_bounds() {
        let samples = made(80);
        let fitted = Ridge::new().regularization(0.1).fit(&samples).unwrap();
        let x = samples.features().to_dense();
        let w = fitted.coefficients().row(0);
        let options = RobustnessOptions {
            eps: 0.4,
            curve: vec![0.1],
            iterations: 300,
            restarts: 3,
            ..RobustnessOptions::default()
        };
        let model: &dyn Predict = &fitted.model;
        let gradient: &dyn Gradient = &fitted.model;
        for norm in [Norm::Linf, Norm::L2, Norm::L1] {
            let space = Space::new(norm, 3);
            let found =
                audit_predictions(model, Some(gradient), &space, &x, None, &options, &|| false)
                    .unwrap();
            let most = 0.4 * norm.dual_length(w);
            assert!(
                found.exact && found.rows.iter().all(|row| (row.change() - most).abs() < 1e-12)
            );
            assert!((found.curve[1].largest_change - most / 4.0).abs() < 1e-12, "{norm:?}");
            // Bounds: no random point of the ball within them is further, and the attack is not either.
            let space = Space { low: vec![-0.5; 3], high: vec![0.3; 3], ..Space::new(norm, 3) };
            let found =
                audit_predictions(model, Some(gradient), &space, &x, None, &options, &|| false)
                    .unwrap();
            let moves = Moves::new(&space, x.clone(), (0..80).collect());
            let mut reached: Vec<Reached> =
                found.rows.iter().map(|row| Reached::new(row.predicted)).collect();
            search((model, gradient), &moves, 0.4, &options, &|| false, &mut reached).unwrap();
            let mut stream = Stream::new(1, "audit.values.random", 0);
            for (row, searched) in found.rows.iter().zip(&reached) {
                assert!(searched.change() <= row.change() + 1e-9, "{norm:?}");
                assert!(searched.change() >= 0.97 * row.change() - 1e-9, "{norm:?} {row:?}");
                let at = row.row as u32;
                for _ in 0..200 {
                    let mut delta: Vec<f64> = (0..3).map(|_| stream.normal()).collect();
                    moves.project(at, &mut delta, 0.4);
                    let by: f64 = delta.iter().zip(w).map(|(d, w)| d * w).sum();
                    assert!(by.abs() <= row.change() + 1e-9, "{norm:?}");
                }
                let example = &found.examples[row.row];
                let distance = space.distance(x.row(row.row), example);
                assert!(distance <= 0.4 + 1e-9, "{norm:?} {distance}");
                let there =
                    model.scores(&Dense::from_rows(&[[example[0], example[1], example[2]]]).into());
                let moved = (there.unwrap()[(0, 0)] - row.predicted).abs();
                assert!((moved - row.change()).abs() < 1e-9, "{norm:?} {moved} {row:?}");
            }
        }
    }

    #[test]
    fn other_models_are_attacked_and_the_tolerance_counts() {
        let samples = made(60);
        let fitted = Svr::new().kernel(Kernel::Rbf).fit(&samples).unwrap().into_any();
        let x = samples.features().to_dense();
        let options =
            RobustnessOptions { eps: 0.2, iterations: 30, ..RobustnessOptions::default() };
        let model = fitted.predictor().unwrap();
        let space = Space::new(Norm::Linf, 3);
        let audit = |tolerance| {
            let gradient = fitted.model.gradient();
            audit_predictions(model, gradient, &space, &x, tolerance, &options, &|| false)
        };
        let found = audit(Some(0.3)).unwrap();
        assert!(!found.exact && found.found.mean_change > 0.1);
        let moved = found.rows.iter().filter(|row| row.change() > 0.3).count();
        assert_eq!(found.found.moved.count, moved);
        assert!(found.found.moved.count > 0 && audit(Some(1e9)).unwrap().found.moved.count == 0);
        let error = audit(Some(-1.0)).unwrap_err().to_string();
        assert!(error.contains("`tolerance`"), "{error}");
        let none = audit_predictions(model, None, &space, &x, None, &options, &|| false);
        assert!(none.unwrap_err().to_string().contains("no gradients"));
        let stop =
            audit_predictions(model, fitted.model.gradient(), &space, &x, None, &options, &|| true);
        assert!(stop.unwrap_err().to_string().contains("interrupted"));
    }
}
