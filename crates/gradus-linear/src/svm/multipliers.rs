//! Losses that are not squared, in the primal: the method of multipliers with Newton steps.
//!
//! Around dual numbers `β₀` the loss of a sample is replaced by the smooth
//! `h(f) = max_β β(t − f) − ε|β| − (β − β₀)² / 2σ` over the bounds of `β`. Its maximiser is
//! `β₀ + σ(t − f)`, less `ε` and clipped; the second derivative is `σ` where that lies between
//! bounds and 0 elsewhere. So the matrix of a Newton step is `I + σ XᵀX` over the few samples near
//! their margin. The `β` at the solution are the next `β₀`, and `σ` grows.
//!
//! Reference: Yan, Li: An efficient augmented Lagrangian method for support vector machine, 2020.

use super::newton::{THINNED, Watch};
use super::problem::{Intercept, Point, Problem, squared_norm, sums};
use crate::design::Design;
use gradus_core::kernel::solve_semidefinite;

/// The factor by which σ grows from round to round.
const GROWTH: f64 = 4.0;

/// Newton steps in a round at most.
const STEPS: usize = 30;

/// The smooth losses around dual numbers.
struct Around<'a> {
    problem: &'a Problem<'a>,
    beta: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    sigma: f64,
}

impl Around<'_> {
    /// The dual number a score names, and whether it is between its bounds.
    #[inline(always)]
    fn response(&self, i: usize, score: f64) -> (f64, bool) {
        let ((low, high), epsilon) = (self.bounds[i], self.problem.loss.epsilon);
        let raw = self.beta[i] + self.sigma * (self.problem.targets[i] - score);
        let cut = self.sigma * epsilon;
        let raw = if raw > cut {
            raw - cut
        } else if raw < -cut {
            raw + cut
        } else {
            0.0
        };
        (raw.clamp(low, high), raw > low && raw < high && (epsilon == 0.0 || raw != 0.0))
    }
}

/// Solves the problem until the gap is below `tol` times the objective.
pub(super) fn solve(
    problem: &Problem<'_>,
    tol: f64,
    max_iter: usize,
    watch: &mut dyn Watch,
) -> Point {
    let (n, d) = (problem.n(), problem.design.d());
    let mut start = (vec![0.0; d], 0.0);
    if n / THINNED >= 1000.max(4 * d) {
        let rows: Vec<u32> = (0..n as u32).step_by(THINNED).collect();
        let some =
            |of: &[f64], by: f64| rows.iter().map(|&i| by * of[i as usize]).collect::<Vec<_>>();
        let matrix = problem.design.matrix().select_rows(&rows);
        let design: Design<'_> = problem.design.of_rows(&matrix);
        let thinned = Problem {
            design: &design,
            loss: problem.loss,
            targets: &some(problem.targets, 1.0),
            costs: &some(problem.costs, THINNED as f64),
            intercept: problem.intercept,
        };
        let point = rounds(&thinned, start, 1e-4, max_iter.min(30), false, watch);
        start = (point.w, point.b);
    }
    rounds(problem, start, tol, max_iter, true, watch)
}

/// The first dual numbers are those of the samples that pull at the start.
fn rounds(
    problem: &Problem<'_>,
    (mut w, mut b): (Vec<f64>, f64),
    tol: f64,
    max_iter: usize,
    tell: bool,
    watch: &mut dyn Watch,
) -> Point {
    let n = problem.n();
    let mut scores = vec![0.0; n];
    problem.design.times(&w, b, &mut scores);
    let bounds: Vec<(f64, f64)> =
        (0..n).map(|i| problem.loss.bounds(problem.targets[i], problem.costs[i])).collect();
    let pull = |i: usize| problem.loss.pull(problem.targets[i], scores[i]);
    let beta: Vec<f64> = (0..n)
        .map(|i| match pull(i) {
            pull if pull > 0.0 => bounds[i].1,
            pull if pull < 0.0 => bounds[i].0,
            _ => 0.0,
        })
        .collect();
    let most = problem.costs.iter().fold(0.0f64, |most, c| most.max(*c));
    let size = problem.targets.iter().fold(0.0f64, |most, t| most.max(t.abs()));
    let sigma = most / size.max(f64::MIN_POSITIVE);
    let mut around = Around { problem, beta, bounds, sigma };
    let mut best = problem.point(around.beta.clone());
    if tell {
        watch.iteration(best.primal);
    }
    let mut steps = 0;
    while best.gap() > tol * best.primal && steps < max_iter && !watch.stopped() {
        let limits = (0.01 * best.gap(), 1e-3 * tol * best.primal);
        steps += round(&around, &mut w, &mut b, &mut scores, limits, watch);
        let next: Vec<f64> = (0..n).map(|i| around.response(i, scores[i]).0).collect();
        let point = problem.point(next.clone());
        if tell {
            watch.iteration(point.primal);
        }
        let dual = point.dual.max(best.dual);
        if point.primal < best.primal {
            best = point;
        }
        best.dual = dual;
        around.beta = next;
        around.sigma *= GROWTH;
        if around.sigma > 1e12 * sigma {
            break;
        }
    }
    best
}

/// Newton steps on the smooth objective; how many.
fn round(
    around: &Around<'_>,
    w: &mut [f64],
    b: &mut f64,
    scores: &mut [f64],
    (far, enough): (f64, f64),
    watch: &dyn Watch,
) -> usize {
    let problem = around.problem;
    let (n, d) = (problem.n(), problem.design.d());
    let size = d + 1;
    let (mut z, mut along) = (vec![0.0; d], vec![0.0; n]);
    for step in 0..STEPS {
        let (mut beta, mut near) = (Vec::with_capacity(n), Vec::new());
        for (i, score) in scores.iter().enumerate() {
            let (response, free) = around.response(i, *score);
            beta.push(response);
            if free {
                near.push(i as u32);
            }
        }
        problem.design.transposed_times(&beta, &mut z);
        let sum: f64 = beta.iter().sum();
        let mut direction: Vec<f64> = w.iter().zip(&z).map(|(w, z)| z - w).collect();
        direction.push(match problem.intercept {
            Intercept::Absent => 0.0,
            Intercept::Penalized => sum - *b,
            Intercept::Free => sum,
        });
        let slope = direction.clone();
        // A round is done when what is left to gain is little beside the way the dual numbers went:
        // moved without that, they do not settle.
        let way: f64 = beta.iter().zip(&around.beta).map(|(new, old)| (new - old).powi(2)).sum();
        let little = far.min(0.01 * way / around.sigma).max(enough);
        let weight: f64 = problem.costs.iter().sum();
        let mut matrix = problem.design.gram_with_one(&near, &vec![around.sigma; near.len()]);
        for i in 0..d {
            matrix[i * size + i] += 1.0;
        }
        match problem.intercept {
            Intercept::Penalized => matrix[d * size + d] += 1.0,
            // Where no sample is near its margin, nothing else holds the intercept.
            Intercept::Free => {
                matrix[d * size + d] += 1e-6 * around.sigma * (1.0 + weight / n as f64)
            }
            Intercept::Absent => {
                (0..d).for_each(|i| matrix[i * size + d] = 0.0);
                matrix[d * size + d] = 1.0;
            }
        }
        solve_semidefinite(size, &mut matrix, &mut direction);
        let gain = 0.5 * slope.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
        if gain.max(0.5 * squared_norm(&slope[..d])) <= little || watch.stopped() {
            return step;
        }
        problem.design.times(&direction[..d], direction[d], &mut along);
        let length = lowest(around, (w, *b), &direction, scores, &along);
        w.iter_mut().zip(&direction).for_each(|(w, by)| *w += length * by);
        *b += length * direction[d];
        scores.iter_mut().zip(&along).for_each(|(score, by)| *score += length * by);
        if length == 0.0 {
            return step + 1;
        }
    }
    STEPS
}

/// The length of a step to the lowest point along it, by the sign of the slope.
fn lowest(
    around: &Around<'_>,
    (w, b): (&[f64], f64),
    direction: &[f64],
    scores: &[f64],
    along: &[f64],
) -> f64 {
    let d = w.len();
    let mut linear: f64 = w.iter().zip(direction).map(|(w, d)| w * d).sum();
    let mut square = squared_norm(&direction[..d]);
    if around.problem.intercept == Intercept::Penalized {
        linear += b * direction[d];
        square += direction[d] * direction[d];
    }
    let slope = |t: f64| {
        let [slope, curvature] = sums(scores.len(), |rows| {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for i in rows {
                let (beta, free) = around.response(i, scores[i] + t * along[i]);
                slope -= beta * along[i];
                curvature += if free { around.sigma * along[i] * along[i] } else { 0.0 };
            }
            [slope, curvature]
        });
        (slope + linear + t * square, curvature + square)
    };
    let first = slope(0.0).0;
    if first >= 0.0 {
        return 0.0;
    }
    let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
    for _ in 0..40 {
        let (slope, curvature) = slope(t);
        if slope.abs() <= 1e-3 * first.abs() {
            break;
        }
        if slope < 0.0 {
            low = t;
        } else {
            high = t;
        }
        let next = t - slope / curvature;
        let next = if next > low && next < high {
            next
        } else if high.is_finite() {
            0.5 * (low + high)
        } else {
            2.0 * low
        };
        if !next.is_finite() || (next - t).abs() <= 1e-12 * t {
            break;
        }
        t = next;
    }
    t
}
