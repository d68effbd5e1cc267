//! The convex problem behind every linear machine, its dual, and the gap between the two.
//!
//! Scores are `f = X w + b`. The primal is `½‖w‖² (+ ½qb²) + Σ c_i ℓ(t_i, f_i)`, where `ℓ` is the
//! absolute value of the *residual* of a sample, or its square. The residual is signed, and 0 where the
//! loss is 0: for a class `t = ±1` it is `t max(0, 1 − t f)`, for a number `t` it is the part of `t − f`
//! beyond `ε`. Samples whose residual is not 0 are *active*.
//!
//! The dual has a number `β_i` for each sample, `w = Xᵀβ`, and is
//! `Σ t_i β_i − ε Σ |β_i| − ½‖Xᵀβ‖² (− (Σβ)²/2q)`, less `Σ β_i² / 4c_i` for a squared loss. A free
//! intercept requires `Σβ = 0`. A class requires `t_i β_i ≥ 0`; a loss that is not squared requires
//! `|β_i| ≤ c_i`.

use crate::design::Design;
use gradus_base::parallel;
use rayon::prelude::*;
use std::ops::Range;

/// The loss of a score against its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loss {
    /// The target is a class, −1 or 1; otherwise a number.
    pub(super) classes: bool,
    /// Whether residuals are squared.
    pub(super) squared: bool,
    /// How far off a number may be; 0 of a class.
    pub(super) epsilon: f64,
}

impl Loss {
    /// The signed residual; 0 where the loss is 0.
    #[inline(always)]
    pub(super) fn residual(self, target: f64, score: f64) -> f64 {
        let off = target - score;
        if self.classes {
            if off * target > 0.0 { off } else { 0.0 }
        } else if off > self.epsilon {
            off - self.epsilon
        } else if off < -self.epsilon {
            off + self.epsilon
        } else {
            0.0
        }
    }

    /// The loss of a residual.
    #[inline(always)]
    pub(super) fn of(self, residual: f64) -> f64 {
        if self.squared { residual * residual } else { residual.abs() }
    }

    /// The bounds of the dual coefficient of a sample.
    pub(super) fn bounds(self, target: f64, cost: f64) -> (f64, f64) {
        let most = if self.squared && cost > 0.0 { f64::INFINITY } else { cost };
        match (self.classes, target > 0.0) {
            (false, _) => (-most, most),
            (true, true) => (0.0, most),
            (true, false) => (-most, 0.0),
        }
    }

    /// Returns the term that a squared loss adds to the diagonal of the dual.
    pub(super) fn ridge(self, cost: f64) -> f64 {
        if self.squared { 0.5 / cost } else { 0.0 }
    }
}

/// The penalty of the intercept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intercept {
    /// The model has no intercept.
    Absent,
    /// The intercept is penalised like a coefficient.
    Penalized,
    /// The intercept is not penalised.
    Free,
}

/// One machine to learn.
pub(super) struct Problem<'a> {
    pub(super) design: &'a Design<'a>,
    pub(super) loss: Loss,
    /// −1 or 1, or numbers.
    pub(super) targets: &'a [f64],
    /// The cost of each sample: the factor of its loss.
    pub(super) costs: &'a [f64],
    pub(super) intercept: Intercept,
    /// The `q` in the penalty `½ q b²` of a penalised intercept.
    pub(super) intercept_penalty: f64,
}

/// A primal and a dual point, and how far apart they are.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) w: Vec<f64>,
    pub(super) b: f64,
    /// Scores of the samples.
    pub(super) scores: Vec<f64>,
    /// Dual coefficients of the samples.
    pub(super) beta: Vec<f64>,
    pub(super) primal: f64,
    pub(super) dual: f64,
    /// The solver ended because rounding allows no more progress.
    pub(super) stalled: bool,
}

impl Point {
    pub(super) fn gap(&self) -> f64 {
        let gap = self.primal - self.dual;
        // Not a number is not optimal.
        if gap.is_nan() { f64::INFINITY } else { gap.max(0.0) }
    }

    /// Takes the primal or the dual side of another point, each if it is better: neither need
    /// improve from step to step.
    pub(super) fn improve(&mut self, other: Point) {
        if other.dual > self.dual {
            self.dual = other.dual;
            self.beta = other.beta;
        }
        if other.primal < self.primal {
            (self.w, self.b, self.scores) = (other.w, other.b, other.scores);
            self.primal = other.primal;
        }
    }

    /// The gap as a share of the objective.
    pub(super) fn relative_gap(&self) -> f64 {
        if self.primal > 0.0 { self.gap() / self.primal } else { self.gap() }
    }
}

/// Sums over blocks of samples, added in order.
pub(super) fn sums<const K: usize>(
    n: usize,
    look: impl Fn(Range<usize>) -> [f64; K] + Sync,
) -> [f64; K] {
    const BLOCK: usize = 1 << 13;
    if n <= BLOCK {
        // Another thread would cost more than one block does.
        return look(0..n);
    }
    let parts = parallel::map(parallel::blocks(n, BLOCK), look);
    let mut total = [0.0; K];
    for part in &parts {
        total.iter_mut().zip(part).for_each(|(total, x)| *total += x);
    }
    total
}

pub(super) fn squared_norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum()
}

impl Problem<'_> {
    pub(super) fn n(&self) -> usize {
        self.targets.len()
    }

    /// The problem of every `step`th sample, each counting `step` times: a first guess for this one.
    pub(super) fn with_every<R>(&self, step: usize, solve: impl FnOnce(&Problem<'_>) -> R) -> R {
        let rows: Vec<u32> = (0..self.n() as u32).step_by(step).collect();
        let some =
            |of: &[f64], by: f64| rows.iter().map(|&i| by * of[i as usize]).collect::<Vec<_>>();
        let matrix = self.design.matrix().select_rows(&rows);
        let design = self.design.of_rows(&matrix);
        let (targets, costs) = (some(self.targets, 1.0), some(self.costs, step as f64));
        solve(&Problem { design: &design, targets: &targets, costs: &costs, ..*self })
    }

    fn bias_cost(&self, b: f64) -> f64 {
        if self.intercept == Intercept::Penalized {
            0.5 * self.intercept_penalty * b * b
        } else {
            0.0
        }
    }

    /// The penalty `q` of the intercept; 0 unless it is penalised.
    pub(super) fn q(&self) -> f64 {
        if self.intercept == Intercept::Penalized { self.intercept_penalty } else { 0.0 }
    }

    /// The primal objective.
    pub(super) fn primal(&self, w: &[f64], b: f64, scores: &[f64]) -> f64 {
        let [loss] = sums(self.n(), |rows| {
            let mut sum = 0.0;
            for i in rows {
                sum += self.costs[i] * self.loss.of(self.loss.residual(self.targets[i], scores[i]));
            }
            [sum]
        });
        0.5 * squared_norm(w) + self.bias_cost(b) + loss
    }

    /// The dual objective of feasible `beta`, with `z = Xᵀ beta`.
    pub(super) fn dual(&self, beta: &[f64], z: &[f64]) -> f64 {
        let [linear, sum] = sums(self.n(), |rows| {
            let (mut linear, mut sum) = (0.0, 0.0);
            for i in rows {
                let beta = beta[i];
                if beta != 0.0 {
                    let ridge = 0.5 * self.loss.ridge(self.costs[i]) * beta * beta;
                    linear += self.targets[i] * beta - self.loss.epsilon * beta.abs() - ridge;
                    sum += beta;
                }
            }
            [linear, sum]
        });
        linear - 0.5 * squared_norm(z) - self.bias_cost(sum / self.intercept_penalty)
    }

    /// Makes `beta` obey what a free intercept asks for, `Σβ = 0`: the heavier side is made lighter.
    pub(super) fn balance(&self, beta: &mut [f64]) {
        if self.intercept != Intercept::Free {
            return;
        }
        let (mut up, mut down) = (0.0, 0.0);
        for &beta in &*beta {
            if beta > 0.0 { up += beta } else { down -= beta }
        }
        if up == down {
            return;
        }
        let lighter = if up > down { down / up } else { up / down };
        for beta in beta {
            if (*beta > 0.0) == (up > down) {
                *beta *= lighter;
            }
        }
    }

    /// The dual coefficients that follow from the residuals of a squared loss.
    pub(super) fn beta_of_residuals(&self, scores: &[f64], beta: &mut [f64]) {
        for (i, beta) in beta.iter_mut().enumerate() {
            *beta = 2.0 * self.costs[i] * self.loss.residual(self.targets[i], scores[i]);
        }
    }

    /// The change of the intercept that makes the primal smallest.
    pub(super) fn best_shift(&self, scores: &[f64]) -> f64 {
        if self.loss.squared { self.shift_squared(scores) } else { self.shift_plain(scores) }
    }

    /// The derivative by the shift ascends, and is linear between breakpoints: Newton's method ends.
    fn shift_squared(&self, scores: &[f64]) -> f64 {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut shift = 0.0;
        for _ in 0..100 {
            let [force, stiffness] = sums(self.n(), |rows| {
                let (mut force, mut stiffness) = (0.0, 0.0);
                for i in rows {
                    let residual = self.loss.residual(self.targets[i], scores[i] + shift);
                    force += self.costs[i] * residual;
                    stiffness += if residual == 0.0 { 0.0 } else { self.costs[i] };
                }
                [force, stiffness]
            });
            if force == 0.0 || stiffness == 0.0 {
                break;
            }
            if force > 0.0 {
                low = shift
            } else {
                high = shift
            }
            let next = shift + force / stiffness;
            let inside = next > low && next < high;
            let next = if inside { next } else { 0.5 * (low + high) };
            if !next.is_finite() || (next - shift).abs() <= 1e-16 * next.abs() {
                break;
            }
            shift = next;
        }
        shift
    }

    /// Returns the shift at which the slope changes its sign: the slope jumps by `c` at every breakpoint.
    fn shift_plain(&self, scores: &[f64]) -> f64 {
        let mut breakpoints: Vec<(f64, f64)> = Vec::with_capacity(self.n());
        let mut slope = 0.0;
        for (i, (&cost, &score)) in self.costs.iter().zip(scores).enumerate() {
            let off = self.targets[i] - score;
            if cost == 0.0 {
                continue;
            }
            if self.loss.classes {
                breakpoints.push((off, cost));
                slope -= if self.targets[i] > 0.0 { cost } else { 0.0 };
            } else {
                breakpoints.push((off - self.loss.epsilon, cost));
                breakpoints.push((off + self.loss.epsilon, cost));
                slope -= cost;
            }
        }
        breakpoints.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        for (at, &(shift, cost)) in breakpoints.iter().enumerate() {
            slope += cost;
            if slope.abs() <= 1e-12 * cost {
                // Flat up to the next one: the middle has the most room.
                let next = breakpoints.get(at + 1).map_or(shift, |next| next.0);
                return 0.5 * (shift + next);
            }
            if slope > 0.0 {
                return shift;
            }
        }
        breakpoints.last().map_or(0.0, |last| last.0)
    }

    /// The point of dual coefficients, with the best intercept, and the gap.
    pub(super) fn point(&self, beta: Vec<f64>) -> Point {
        let mut point = self.exact_point(beta);
        self.stretch(&mut point);
        point
    }

    /// The same with `w = Xᵀβ` in any case.
    pub(super) fn exact_point(&self, mut beta: Vec<f64>) -> Point {
        self.balance(&mut beta);
        let mut w = vec![0.0; self.design.d()];
        self.design.transposed_times_once(&beta, &mut w);
        self.point_of(beta, w)
    }

    /// The point of balanced dual coefficients with `w = Xᵀβ`.
    pub(super) fn point_of(&self, beta: Vec<f64>, w: Vec<f64>) -> Point {
        let mut scores = vec![0.0; self.n()];
        let penalized = self.intercept == Intercept::Penalized;
        let mut b = if penalized { beta.iter().sum::<f64>() / self.intercept_penalty } else { 0.0 };
        self.design.times(&w, b, &mut scores);
        if self.intercept == Intercept::Free {
            b = self.best_shift(&scores);
            scores.iter_mut().for_each(|score| *score += b);
        }
        let (primal, dual) = (self.primal(&w, b, &scores), self.dual(&beta, &w));
        Point { w, b, scores, beta, primal, dual, stalled: false }
    }

    /// Multiplies the scores of separated classes so that the smallest margin is 1, if that lowers
    /// the primal: where costs are large, the slack that rounding leaves would dominate the objective.
    pub(super) fn stretch(&self, point: &mut Point) {
        if !self.loss.classes {
            return;
        }
        let mut least = f64::INFINITY;
        for ((score, target), cost) in point.scores.iter().zip(self.targets).zip(self.costs) {
            if *cost > 0.0 {
                least = least.min(score * target);
            }
        }
        if !(least > 0.0 && least < 1.0) {
            return;
        }
        let by = (1.0 + 4.0 * f64::EPSILON) / least;
        let primal = by * by * (0.5 * squared_norm(&point.w) + self.bias_cost(point.b));
        if primal < point.primal {
            point.w.iter_mut().chain(&mut point.scores).for_each(|x| *x *= by);
            point.b *= by;
            point.primal = primal;
        }
    }
}
