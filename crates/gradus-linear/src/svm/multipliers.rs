//! Losses that are not squared, in the primal: the method of multipliers with Newton steps.
//!
//! Around dual coefficients `β₀` the loss of a sample is replaced by the smooth
//! `h(f) = max_β β(t − f) − ε|β| − (β − β₀)² / 2σ` over the bounds of `β`. Its maximiser is
//! `β₀ + σ(t − f)`, less `ε` and clipped; the second derivative is `σ` where that lies between
//! bounds and 0 elsewhere. So the matrix of a Newton step is `I + σ XᵀX` over the few samples near
//! their margin. The `β` at the solution are the next `β₀`, and `σ` grows.
//!
//! Features and targets are of unit size (see `units.rs`). There dual coefficients are of size 1
//! or, where samples are hard to separate, larger, up to the cost. So `σ` begins at the cost or at
//! [`FIRST`], whichever is less, and a large cost begins with `β₀ = 0`: the first round is then a
//! squared loss of moderate cost, and rounds follow the dual coefficients as far as they go. If `σ` started
//! at the cost, no sample would be near its margin, and no step would know any curvature.
//!
//! Reference: Yan, Li: An efficient augmented Lagrangian method for support vector machine, 2020.

use super::direction::{self, Along};
use super::newton::{THINNED, Watch};
use super::problem::{Intercept, Point, Problem, squared_norm, sums};

/// The largest σ of the first round.
const FIRST: f64 = 300.0;

/// The largest σ, in units of the largest cost and of all: beyond it dual coefficients lose their
/// digits. Samples near their margin by a share of 1e-4 are distinguished.
const LAST: (f64, f64) = (1e4, 1e13);

/// The factors by which σ grows after a round of many, a few, or no Newton steps.
const GROWTH: [f64; 3] = [4.0, 8.0, 64.0];

/// The largest number of Newton steps in a round.
const STEPS: usize = 40;

/// Rounds without progress after which no more is expected.
const PATIENCE: usize = 6;

/// Rounds after the tolerance is reached, where it was not asked for in particular.
const POLISH: usize = 3;

/// The stopping rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// The gap as a share of the objective.
    pub(super) tol: f64,
    /// Whether to go on for a few rounds where they are cheap, to a solution to the last digits.
    pub(super) polish: bool,
    /// The largest number of Newton steps.
    pub(super) max_iter: usize,
}

/// The smooth losses around dual coefficients.
struct Around<'a> {
    problem: &'a Problem<'a>,
    beta: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    sigma: f64,
}

impl Around<'_> {
    /// The dual coefficient that a score implies, and whether it is between its bounds.
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

    /// The change of a free intercept that minimises the smooth objective: where dual coefficients
    /// add up to 0. Their sum falls as scores rise.
    fn best_shift(&self, scores: &[f64]) -> f64 {
        let (mut low, mut high, mut shift) = (f64::NEG_INFINITY, f64::INFINITY, 0.0);
        let mut stride = 1.0;
        for _ in 0..100 {
            let [sum, size, free] = sums(scores.len(), |rows| {
                let mut sums = [0.0; 3];
                for i in rows {
                    let (beta, free) = self.response(i, scores[i] + shift);
                    sums[0] += beta;
                    sums[1] += beta.abs();
                    sums[2] += f64::from(u8::from(free));
                }
                sums
            });
            if sum.abs() <= 1e-15 * size {
                break;
            }
            if sum > 0.0 {
                low = shift;
            } else {
                high = shift;
            }
            let newton = shift + sum / (self.sigma * free);
            let next = if newton > low && newton < high {
                newton
            } else if low.is_finite() && high.is_finite() {
                0.5 * (low + high)
            } else {
                stride *= 2.0;
                shift + stride * sum.signum()
            };
            if !next.is_finite() || (next - shift).abs() <= 1e-16 * (1.0 + shift.abs()) {
                break;
            }
            shift = next;
        }
        shift
    }
}

/// Solves the problem, from a first guess if there is one.
pub(super) fn solve(
    problem: &Problem<'_>,
    guess: Option<(Vec<f64>, f64)>,
    goal: Goal,
    watch: &mut dyn Watch,
) -> Point {
    let (n, d) = (problem.n(), problem.design.d());
    let mut start = guess;
    if start.is_none() && n / THINNED >= 1000.max(4 * d) {
        let goal = Goal { tol: 1e-4, polish: false, max_iter: goal.max_iter.min(30) };
        let point = problem.with_every(THINNED, |thinned| {
            rounds(thinned, (vec![0.0; d], 0.0), goal, false, watch)
        });
        start = Some((point.w, point.b));
    }
    rounds(problem, start.unwrap_or_else(|| (vec![0.0; d], 0.0)), goal, true, watch)
}

/// Rounds until the gap is small enough.
fn rounds(
    problem: &Problem<'_>,
    (mut w, mut b): (Vec<f64>, f64),
    goal: Goal,
    tell: bool,
    watch: &mut dyn Watch,
) -> Point {
    let n = problem.n();
    let mut scores = vec![0.0; n];
    problem.design.times(&w, b, &mut scores);
    let bounds: Vec<(f64, f64)> =
        (0..n).map(|i| problem.loss.bounds(problem.targets[i], problem.costs[i])).collect();
    let most = problem.costs.iter().fold(0.0f64, |most, c| most.max(*c));
    let residual = |i: usize| problem.loss.residual(problem.targets[i], scores[i]);
    let beta: Vec<f64> = (0..n)
        .map(|i| match residual(i) {
            residual if residual == 0.0 || most > FIRST => 0.0,
            residual if residual > 0.0 => bounds[i].1,
            _ => bounds[i].0,
        })
        .collect();
    let mut around = Around { problem, beta, bounds, sigma: most.min(FIRST) };
    let mut best = problem.point(around.beta.clone());
    if tell {
        watch.iteration(best.primal);
    }
    let (mut steps, mut idle, mut polished) = (0, 0, 0);
    let mut smallest = best.gap();
    loop {
        let reached = best.gap() <= goal.tol * best.primal;
        // Polishing ends where nothing is left to gain, or where a round takes many steps.
        let exact = best.gap() <= 1e-14 * best.primal;
        if reached && (!goal.polish || exact || polished >= POLISH) {
            break;
        }
        if steps >= goal.max_iter || watch.stopped() {
            break;
        }
        let tol = if reached { 1e-14 } else { goal.tol };
        let limits = (0.01 * best.gap(), 1e-3 * tol * best.primal);
        let done = round(&around, &mut w, &mut b, &mut scores, limits, watch);
        steps += done;
        polished += usize::from(reached);
        let next: Vec<f64> = (0..n).map(|i| around.response(i, scores[i]).0).collect();
        let point = best_of(problem, (&w, b), &scores, next.clone());
        if tell {
            watch.iteration(point.primal);
        }
        best.improve(point);
        // Until σ has come to the cost, dual coefficients are on their way and the gap may wait.
        let early = around.sigma < most;
        idle = if early || best.gap() < 0.9 * smallest { 0 } else { idle + 1 };
        smallest = smallest.min(best.gap());
        if idle > PATIENCE {
            best.stalled = true;
            break;
        }
        around.beta = next;
        // Where Newton's method had an easy time, the next round may be harder.
        let growth = GROWTH[usize::from(done <= 3) + usize::from(done <= 1)];
        around.sigma = (growth * around.sigma).min(LAST.0 * most.max(FIRST)).min(LAST.1);
    }
    best
}

/// The primal point of the last step or that of the dual coefficients, whichever is lower, with the
/// dual point of these.
fn best_of(problem: &Problem<'_>, (w, b): (&[f64], f64), scores: &[f64], beta: Vec<f64>) -> Point {
    let point = problem.point(beta);
    let mut here =
        Point { w: w.to_vec(), b, scores: scores.to_vec(), primal: f64::INFINITY, ..point.clone() };
    if problem.intercept == Intercept::Free {
        let shift = problem.best_shift(&here.scores);
        here.b += shift;
        here.scores.iter_mut().for_each(|score| *score += shift);
    }
    here.primal = problem.primal(&here.w, here.b, &here.scores);
    problem.stretch(&mut here);
    if here.primal < point.primal { here } else { point }
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
    let (mut z, mut along) = (vec![0.0; d], vec![0.0; n]);
    for step in 0..STEPS {
        if problem.intercept == Intercept::Free {
            let shift = around.best_shift(scores);
            *b += shift;
            scores.iter_mut().for_each(|score| *score += shift);
        }
        let (mut beta, mut near) = (Vec::with_capacity(n), Vec::new());
        for (i, score) in scores.iter().enumerate() {
            let (response, free) = around.response(i, *score);
            beta.push(response);
            if free {
                near.push(i as u32);
            }
        }
        problem.design.transposed_times(&beta, &mut z);
        let mut direction: Vec<f64> = w.iter().zip(&z).map(|(w, z)| z - w).collect();
        direction.push(match problem.intercept {
            Intercept::Penalized => beta.iter().sum::<f64>() - problem.q() * *b,
            Intercept::Free | Intercept::Absent => 0.0,
        });
        let slope = direction.clone();
        // A round is done when what is left to gain is little beside the way the dual coefficients
        // went: moved without that, they do not settle.
        let way: f64 = beta.iter().zip(&around.beta).map(|(new, old)| (new - old).powi(2)).sum();
        let little = far.min(0.01 * way / around.sigma).max(enough);
        let h = vec![around.sigma; near.len()];
        if near.len() <= d {
            direction::from_samples(problem, &near, &h, &mut direction);
        } else {
            let matrix = problem.design.gram_with_one(&near, &h);
            direction::from_features(problem, matrix, &mut direction);
        }
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
    let losses = |t: f64| {
        sums(scores.len(), |rows| {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for i in rows {
                let (beta, free) = around.response(i, scores[i] + t * along[i]);
                slope -= beta * along[i];
                curvature += if free { around.sigma * along[i] * along[i] } else { 0.0 };
            }
            [slope, curvature]
        })
    };
    let line = Along::new(around.problem, (w, b), direction, losses);
    let first = line.slope(0.0).0;
    if first >= 0.0 { 0.0 } else { line.lowest(first, 1e-3, 40) }
}
