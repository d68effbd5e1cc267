//! SAGA: steps by one sample at a time that remember the last gradient of every sample.
//!
//! A step goes along `g_i(w) − g_i + mean`, where `g_i` is the gradient that sample `i` had when it
//! was last visited and `mean` that of all of them, and then through the penalty. Its noise fades as
//! the memory comes up to date, so that steps need not become shorter. A gradient is a row times the
//! slopes of its loss by the scores: slopes are all that is remembered. Of a sparse row the other
//! coefficients are left behind, and catch up with the steps they missed when they are next needed.
//!
//! Reference: Defazio, Bach, Lacoste-Julien: SAGA: a fast incremental gradient method with support
//! for non-strongly convex composite objectives, 2014.

use super::distance;
use super::newton::Found;
use super::objective::{Binary, Softmax, loss_and_error};
use crate::design::Design;
use crate::model::softmax;
use crate::svm::Prepared;
use gradus_base::random::Stream;
use gradus_core::iterate::OwnLoop;
use gradus_core::report::StopReason;
use gradus_optim::Objective;
use gradus_optim::proximal::soft_threshold;

/// A loss that sees a sample by its scores alone.
pub(super) trait Scored: Objective {
    /// The largest second derivative of a loss by the scores.
    const STEEPEST: f64;

    fn design(&self) -> &Design<'_>;

    fn n_scores(&self) -> usize;

    fn ridge(&self) -> f64;

    fn has_intercept(&self) -> bool;

    /// Puts the slopes of the loss of a sample in the place of its scores.
    fn slopes(&self, row: usize, scores: &mut [f64]);
}

impl Scored for Binary<'_, '_> {
    const STEEPEST: f64 = 0.25;

    fn design(&self) -> &Design<'_> {
        self.design
    }

    fn n_scores(&self) -> usize {
        1
    }

    fn ridge(&self) -> f64 {
        self.ridge
    }

    fn has_intercept(&self) -> bool {
        self.intercept
    }

    fn slopes(&self, row: usize, scores: &mut [f64]) {
        let sign = self.signs[row];
        scores[0] = -sign * loss_and_error(sign * scores[0]).1;
    }
}

impl Scored for Softmax<'_, '_> {
    const STEEPEST: f64 = 0.5;

    fn design(&self) -> &Design<'_> {
        self.design
    }

    fn n_scores(&self) -> usize {
        self.n_classes
    }

    fn ridge(&self) -> f64 {
        self.ridge
    }

    fn has_intercept(&self) -> bool {
        self.intercept
    }

    fn slopes(&self, row: usize, scores: &mut [f64]) {
        softmax(scores);
        scores[self.classes[row] as usize] -= 1.0;
    }
}

/// The steps of a coefficient: along a slope, then through the penalty.
struct Steps {
    length: f64,
    l1: f64,
    ridge: f64,
}

impl Steps {
    fn one(&self, w: f64, slope: f64) -> f64 {
        let moved = soft_threshold(w - self.length * slope, self.length * self.l1);
        moved / (1.0 + self.length * self.ridge)
    }

    /// Takes `steps` steps along the same slope at once. Between changes of sign they are a geometric series, and the
    /// sign changes once at most.
    fn many(&self, mut w: f64, slope: f64, mut steps: usize) -> f64 {
        while steps > 1 {
            let sign = if self.l1 == 0.0 {
                0.0
            } else if w != 0.0 {
                w.signum()
            } else if slope.abs() <= self.l1 {
                return 0.0;
            } else {
                -slope.signum()
            };
            let end = self.same_sign(w, slope, sign, steps);
            if sign == 0.0 || end * sign > 0.0 {
                return end;
            }
            // The most steps that end on this side.
            let (mut before, mut after) = (0, steps);
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                if self.same_sign(w, slope, sign, middle) * sign > 0.0 {
                    before = middle;
                } else {
                    after = middle;
                }
            }
            w = self.one(self.same_sign(w, slope, sign, before), slope);
            steps -= after;
        }
        if steps == 1 { self.one(w, slope) } else { w }
    }

    /// Steps during which the coefficient has this sign.
    fn same_sign(&self, w: f64, slope: f64, sign: f64, steps: usize) -> f64 {
        let (slope, steps) = (slope + sign * self.l1, steps as f64);
        if self.ridge == 0.0 {
            return w - self.length * steps * slope;
        }
        let shrunk = -steps * (self.length * self.ridge).ln_1p();
        w * shrunk.exp() + slope / self.ridge * shrunk.exp_m1()
    }
}

/// Coefficients with the mean of the remembered gradients; those of a feature lie side by side.
struct State {
    w: Vec<f64>,
    mean: Vec<f64>,
    /// The step up to which the coefficients of each feature were moved.
    reached: Vec<usize>,
    b: Vec<f64>,
    mean_b: Vec<f64>,
}

impl State {
    /// Coefficients of each score in turn, and then the intercepts, after all `now` steps.
    fn point(&mut self, steps: &Steps, now: usize) -> Vec<f64> {
        let k = self.b.len();
        for (j, reached) in self.reached.iter_mut().enumerate() {
            for (w, mean) in self.w[j * k..][..k].iter_mut().zip(&self.mean[j * k..]) {
                *w = steps.many(*w, *mean, now - *reached);
            }
            *reached = now;
        }
        let of = |score: usize| self.w.iter().skip(score).step_by(k);
        (0..k).flat_map(of).chain(&self.b).copied().collect()
    }
}

/// Minimises the objective and `l1` times the 1-norm of the coefficients, in passes of as many steps
/// as there are samples, until the subgradient is `tol` times that at 0.
pub(super) fn solve<O: Scored>(
    objective: &O,
    l1: f64,
    (tol, max_iter, seed): (f64, usize, u64),
    start: Option<&[f64]>,
    fit_loop: &mut OwnLoop<'_>,
) -> Found {
    let design = objective.design();
    let (k, d) = (objective.n_scores(), design.d());
    let rows = Prepared::new(design);
    let usable: Vec<usize> = (0..design.n()).filter(|&row| design.weight(row) > 0.0).collect();
    let n = usable.len() as f64;
    let factor = |row: usize| design.weight(row) * n / design.total();
    let one = f64::from(u8::from(objective.has_intercept()));
    let bend = |&row: &usize| O::STEEPEST * factor(row) * (rows.norms[row] + one);
    let steepest = usable.iter().map(bend).fold(f64::MIN_POSITIVE, f64::max);
    let steps = Steps { length: 1.0 / (3.0 * steepest), l1, ridge: objective.ridge() };
    let mut state = State {
        w: vec![0.0; d * k],
        mean: vec![0.0; d * k],
        reached: vec![0; d],
        b: vec![0.0; k],
        mean_b: vec![0.0; k],
    };
    let mut kept = vec![0.0; design.n() * k];
    let (mut scores, mut change) = (vec![0.0; k], vec![0.0; k]);
    let mut point = vec![0.0; (d + 1) * k];
    let mut gradient = vec![0.0; point.len()];
    let mut value = objective.gradient(&point, &mut gradient);
    let size = distance(&point, &gradient, 0, 0.0).max(f64::MIN_POSITIVE);
    let penalty = |point: &[f64]| l1 * point[..d * k].iter().map(|w| w.abs()).sum::<f64>();
    // A model of other data may be worse than none.
    if let Some(start) = start {
        let mut there = vec![0.0; gradient.len()];
        let found = objective.gradient(start, &mut there);
        if found + penalty(start) < value {
            (point, value, gradient) = (start.to_vec(), found, there);
            for (score, w) in point[..d * k].chunks_exact(d).enumerate() {
                w.iter().enumerate().for_each(|(j, w)| state.w[j * k + score] = *w);
            }
            state.b.copy_from_slice(&point[d * k..]);
            // With the slopes of the start in memory its noise is small from the first step on.
            for &row in &usable {
                scores.copy_from_slice(&state.b);
                rows.each(row, |j, x| {
                    let w = &state.w[j * k..][..k];
                    scores.iter_mut().zip(w).for_each(|(score, w)| *score += x * w);
                });
                objective.slopes(row, &mut scores);
                scores.iter_mut().for_each(|slope| *slope *= factor(row));
                kept[row * k..][..k].copy_from_slice(&scores);
                rows.each(row, |j, x| {
                    let mean = &mut state.mean[j * k..][..k];
                    mean.iter_mut().zip(&scores).for_each(|(mean, slope)| *mean += slope * x / n);
                });
                if objective.has_intercept() {
                    let mean = state.mean_b.iter_mut().zip(&scores);
                    mean.for_each(|(mean, slope)| *mean += slope / n);
                }
            }
        }
    }
    let mut residual = distance(&point, &gradient, d * k, l1) / size;
    let mut stop_reason = StopReason::MaxIterations;
    for pass in 0..max_iter {
        if residual <= tol {
            break;
        }
        let mut stream = Stream::new(seed, "linear.logistic.saga", pass as u64);
        for at in 0..usable.len() {
            let now = pass * usable.len() + at;
            let row = usable[stream.index(usable.len())];
            scores.copy_from_slice(&state.b);
            rows.each(row, |j, x| {
                let behind = now - state.reached[j];
                let coefficients = state.w[j * k..][..k].iter_mut().zip(&state.mean[j * k..]);
                for ((w, mean), score) in coefficients.zip(&mut scores) {
                    *w = steps.many(*w, *mean, behind);
                    *score += x * *w;
                }
            });
            objective.slopes(row, &mut scores);
            for ((slope, kept), change) in scores.iter().zip(&mut kept[row * k..]).zip(&mut change)
            {
                let slope = factor(row) * slope;
                *change = slope - *kept;
                *kept = slope;
            }
            rows.each(row, |j, x| {
                let coefficients = state.w[j * k..][..k].iter_mut().zip(&mut state.mean[j * k..]);
                for ((w, mean), change) in coefficients.zip(&change) {
                    *w = steps.one(*w, *mean + change * x);
                    *mean += change * x / n;
                }
                state.reached[j] = now + 1;
            });
            if objective.has_intercept() {
                for ((b, mean), change) in state.b.iter_mut().zip(&mut state.mean_b).zip(&change) {
                    *b -= steps.length * (*mean + change);
                    *mean += change / n;
                }
            }
        }
        point = state.point(&steps, (pass + 1) * usable.len());
        value = objective.gradient(&point, &mut gradient);
        residual = distance(&point, &gradient, d * k, l1) / size;
        fit_loop.iteration(value + penalty(&point));
        if fit_loop.stopped() {
            stop_reason = StopReason::Interrupted;
            break;
        }
    }
    if residual <= tol {
        stop_reason = StopReason::Converged;
    }
    let objective = value + penalty(&point);
    Found { point, objective, residual, stop_reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_steps_are_as_many_single_ones() {
        let mut stream = Stream::new(1, "saga", 0);
        for case in 0..2000 {
            let l1 = if case % 3 == 0 { 0.0 } else { stream.uniform() };
            let ridge = if case % 2 == 0 { 0.0 } else { 0.1 * stream.uniform() };
            let steps = Steps { length: 0.05, l1, ridge };
            let (w, slope) = (stream.normal(), stream.normal());
            let n = stream.index(200);
            let expected = (0..n).fold(w, |w, _| steps.one(w, slope));
            let found = steps.many(w, slope, n);
            assert!((found - expected).abs() < 1e-12, "{w} {slope} {n}: {found} {expected}");
            assert_eq!(found == 0.0, expected == 0.0);
        }
    }
}
