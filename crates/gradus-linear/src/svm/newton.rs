//! Squared losses in the primal: a semismooth Newton method.
//!
//! While the set of active samples (those with a loss) does not change, the objective is that of a
//! weighted ridge regression on them. Each step solves it — by Cholesky of `I + 2 Xᵀ C X` over those samples
//! where features are few, by conjugate gradients where they are many — and then goes along the
//! step to the lowest point. From step to step few samples enter or leave the active set, and only those
//! are added to the matrix or subtracted from it.

use super::direction::{self, Along};
use super::problem::{Intercept, Point, Problem, squared_norm, sums};
use crate::conjugate;

/// Up to this many features the Hessian is formed.
pub(super) const FORMED: usize = 1024;

/// A first guess comes from one sample in this many, if that leaves enough of them.
pub(super) const THINNED: usize = 16;

/// The largest cost, of features of unit size, that Newton's method starts with.
const FIRST: f64 = 1000.0;

/// Steps of conjugate gradients at most, for one step of Newton's method.
const STEPS: usize = 250;

/// Receives the objective of each iteration, and may ask a solver to stop.
pub(super) trait Watch {
    fn stopped(&self) -> bool;
    fn iteration(&mut self, objective: f64);
}

/// Minimises the primal until the gap is below `tol` times the objective, from `start` if there is
/// one. Whether it got there, the caller sees by the gap.
pub(super) fn solve(
    problem: &Problem<'_>,
    start: Option<(Vec<f64>, f64)>,
    (tol, max_iter): (f64, usize),
    watch: &mut dyn Watch,
) -> Point {
    let (n, d) = (problem.n(), problem.design.d());
    let start = match start {
        Some(start) => start,
        None if n / THINNED >= 1000.max(if d <= FORMED { 4 * d } else { 0 }) => {
            guess(problem, max_iter, watch)
        }
        None => (vec![0.0; d], 0.0),
    };
    let start = follow(problem, start, max_iter, watch);
    descend(problem, start, tol, max_iter, watch)
}

/// Solutions for a cost that grows to the given one, each started from the previous one. Where
/// classes are separable and the cost is large, a step from far away meets all samples at once and
/// makes no progress; from the solution for a tenth of the cost a few steps are enough.
fn follow(
    problem: &Problem<'_>,
    start: (Vec<f64>, f64),
    max_iter: usize,
    watch: &mut dyn Watch,
) -> (Vec<f64>, f64) {
    let most = problem.costs.iter().fold(0.0f64, |most, c| most.max(*c));
    let (mut at, mut share) = (start, FIRST / most);
    while share < 1.0 && !watch.stopped() {
        let costs: Vec<f64> = problem.costs.iter().map(|c| share * c).collect();
        let easier = Problem { costs: &costs, ..*problem };
        let point = descend(&easier, at, 1e-2, max_iter.min(50), &mut Quiet(watch));
        at = (point.w, point.b);
        share *= 10.0;
    }
    at
}

/// Ignores the iterations.
struct Quiet<'a>(&'a dyn Watch);

impl Watch for Quiet<'_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }

    fn iteration(&mut self, _: f64) {}
}

/// The solution for every sixteenth sample, each counting sixteen times.
fn guess(problem: &Problem<'_>, max_iter: usize, watch: &mut dyn Watch) -> (Vec<f64>, f64) {
    problem.with_every(THINNED, |thinned| {
        let start = (vec![0.0; thinned.design.d()], 0.0);
        let point = descend(thinned, start, 1e-3, max_iter.min(20), &mut Quiet(watch));
        (point.w, point.b)
    })
}

fn descend(
    problem: &Problem<'_>,
    (mut w, mut b): (Vec<f64>, f64),
    tol: f64,
    max_iter: usize,
    watch: &mut dyn Watch,
) -> Point {
    let (n, d) = (problem.n(), problem.design.d());
    let free = problem.intercept == Intercept::Free;
    let mut scores = vec![0.0; n];
    problem.design.times(&w, b, &mut scores);
    let mut matrix = (d <= FORMED).then(|| Formed::new(problem));
    let mut best: Option<Point> = None;
    let (mut direction, mut along) = (vec![0.0; d + 1], vec![0.0; n]);
    let (mut z, mut stalled, mut lowest_primal) = (vec![0.0; d], 0, f64::INFINITY);
    for iteration in 0.. {
        if free {
            let shift = problem.best_shift(&scores);
            b += shift;
            scores.iter_mut().for_each(|score| *score += shift);
        }
        let mut beta = vec![0.0; n];
        problem.beta_of_residuals(&scores, &mut beta);
        problem.balance(&mut beta);
        problem.design.transposed_times(&beta, &mut z);
        let (primal, dual) = (problem.primal(&w, b, &scores), problem.dual(&beta, &z));
        watch.iteration(primal);
        let progress = primal < lowest_primal;
        lowest_primal = lowest_primal.min(primal);
        stalled = if progress { 0 } else { stalled + 1 };
        // The gradient; that by the intercept is 0 if it is free.
        let mut gradient: Vec<f64> = w.iter().zip(&z).map(|(w, z)| w - z).collect();
        gradient.push(match problem.intercept {
            Intercept::Penalized => problem.q() * b - beta.iter().sum::<f64>(),
            Intercept::Free | Intercept::Absent => 0.0,
        });
        let (point_w, point_scores) = (w.clone(), scores.clone());
        let mut point =
            Point { w: point_w, b, scores: point_scores, beta, primal, dual, stalled: false };
        problem.stretch(&mut point);
        match &mut best {
            Some(best) => best.improve(point),
            None => best = Some(point),
        }
        let done = best.as_ref().is_some_and(|best| best.gap() <= tol * best.primal);
        if done || stalled > 1 || iteration >= max_iter || watch.stopped() {
            break;
        }
        match &mut matrix {
            Some(matrix) => matrix.step(problem, &scores, &gradient, &mut direction),
            None => {
                // The closer to the end, the more exactly.
                let share = (squared_norm(&gradient) / (1e-300 + squared_norm(&z))).sqrt();
                let exactness = (0.3 * share).clamp(1e-10, 0.1);
                conjugate(problem, &scores, &gradient, exactness, &mut direction, watch);
            }
        }
        problem.design.times(&direction[..d], direction[d], &mut along);
        let length = lowest(problem, (&w, b), &direction, &scores, &along);
        for (w, by) in w.iter_mut().zip(&direction) {
            *w += length * by;
        }
        b += length * direction[d];
        for (score, by) in scores.iter_mut().zip(&along) {
            *score += length * by;
        }
    }
    let mut best = best.expect("the loop keeps its first point");
    best.stalled = stalled > 1;
    best
}

/// The length of a step that leads to the lowest point along it.
fn lowest(
    problem: &Problem<'_>,
    (w, b): (&[f64], f64),
    direction: &[f64],
    scores: &[f64],
    along: &[f64],
) -> f64 {
    let losses = |t: f64| {
        sums(scores.len(), |rows| {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for i in rows {
                let residual = problem.loss.residual(problem.targets[i], scores[i] + t * along[i]);
                if residual != 0.0 {
                    slope -= 2.0 * problem.costs[i] * residual * along[i];
                    curvature += 2.0 * problem.costs[i] * along[i] * along[i];
                }
            }
            [slope, curvature]
        })
    };
    let line = Along::new(problem, (w, b), direction, losses);
    line.lowest(line.slope(0.0).0, 1e-4, 30)
}

/// The matrix `2 Zᵀ C Z` over the active samples.
struct Formed {
    /// Upper triangle; the intercept is last.
    sum: Vec<f64>,
    /// The active samples.
    active: Vec<bool>,
    n_active: usize,
}

impl Formed {
    fn new(problem: &Problem<'_>) -> Self {
        let size = problem.design.d() + 1;
        Self { sum: vec![0.0; size * size], active: vec![false; problem.n()], n_active: 0 }
    }

    /// The direction of a Newton step.
    fn step(&mut self, problem: &Problem<'_>, scores: &[f64], gradient: &[f64], out: &mut [f64]) {
        let d = problem.design.d();
        for (out, g) in out.iter_mut().zip(gradient) {
            *out = -g;
        }
        let is_active = |i: &u32| {
            let i = *i as usize;
            problem.loss.residual(problem.targets[i], scores[i]) != 0.0
        };
        let rows: Vec<u32> = (0..problem.n() as u32).filter(is_active).collect();
        if rows.len() <= d {
            let h: Vec<f64> = rows.iter().map(|&i| 2.0 * problem.costs[i as usize]).collect();
            direction::from_samples(problem, &rows, &h, out);
            return;
        }
        self.update(problem, scores);
        direction::from_features(problem, self.sum.clone(), out);
    }

    fn update(&mut self, problem: &Problem<'_>, scores: &[f64]) {
        let is_active = |i: usize| problem.loss.residual(problem.targets[i], scores[i]) != 0.0;
        let changed: Vec<u32> = (0..problem.n())
            .filter(|&i| is_active(i) != self.active[i])
            .map(|i| i as u32)
            .collect();
        for &i in &changed {
            let active = &mut self.active[i as usize];
            *active = !*active;
            self.n_active = if *active { self.n_active + 1 } else { self.n_active - 1 };
        }
        let weight = |&i: &u32| {
            let weight = 2.0 * problem.costs[i as usize];
            if self.active[i as usize] { weight } else { -weight }
        };
        if changed.len() < self.n_active / 2 {
            let weights: Vec<f64> = changed.iter().map(weight).collect();
            let sum = problem.design.gram_with_one(&changed, &weights);
            self.sum.iter_mut().zip(&sum).for_each(|(to, x)| *to += x);
        } else {
            let rows: Vec<u32> =
                (0..problem.n() as u32).filter(|&i| self.active[i as usize]).collect();
            let weights: Vec<f64> = rows.iter().map(weight).collect();
            self.sum = problem.design.gram_with_one(&rows, &weights);
        }
    }
}

/// The direction of a Newton step by conjugate gradients, preconditioned by the diagonal.
fn conjugate(
    problem: &Problem<'_>,
    scores: &[f64],
    gradient: &[f64],
    exactness: f64,
    out: &mut [f64],
    watch: &dyn Watch,
) {
    let d = problem.design.d();
    let (n, has_intercept) = (problem.n(), problem.intercept != Intercept::Absent);
    let ridge_b = problem.q();
    let weights: Vec<f64> = (0..n)
        .map(|i| {
            let is_active = problem.loss.residual(problem.targets[i], scores[i]) != 0.0;
            if is_active { 2.0 * problem.costs[i] } else { 0.0 }
        })
        .collect();
    let mut diagonal = problem.design.squares(&weights);
    diagonal.iter_mut().for_each(|x| *x += 1.0);
    diagonal.push(if has_intercept { ridge_b + weights.iter().sum::<f64>() } else { 1.0 });
    if diagonal[d] <= 0.0 {
        diagonal[d] = 1.0;
    }
    let mut inner = vec![0.0; n];
    let mut times = |v: &[f64], out: &mut [f64]| {
        let b = if has_intercept { v[d] } else { 0.0 };
        problem.design.times(&v[..d], b, &mut inner);
        inner.iter_mut().zip(&weights).for_each(|(x, weight)| *x *= weight);
        let (of_w, of_b) = out.split_at_mut(d);
        problem.design.transposed_times(&inner, of_w);
        of_w.iter_mut().zip(v).for_each(|(out, v)| *out += v);
        of_b[0] = if has_intercept { inner.iter().sum::<f64>() + ridge_b * b } else { 0.0 };
    };
    let stopped = |_: &[f64]| watch.stopped();
    let limits =
        conjugate::Limits { share: exactness * exactness, max_iter: STEPS, stopped: &stopped };
    let divide = |i: usize, x: f64| x / diagonal[i];
    out.fill(0.0);
    conjugate::solve(&mut times, divide, out, gradient.iter().map(|g| -g).collect(), limits);
}
