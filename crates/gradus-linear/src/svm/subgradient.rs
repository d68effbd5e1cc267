//! The primal by stochastic subgradients: Pegasos, with averaging.
//!
//! Divided by the sum `S` of the costs the objective is `λ/2 ‖w‖²` with `λ = 1/S`, plus a mean of
//! losses. A step looks at one sample, drawn in proportion to its cost: `w ← (1 − 1/t) w + g/(λt)`
//! with the residual `g` of the sample. The mean of the second half of all `w` is the result. A free
//! intercept is set to the best one for the `w` at the end of every pass.
//!
//! Reference: Shalev-Shwartz, Singer, Srebro, Cotter: Pegasos, primal estimated sub-gradient solver
//! for SVM, 2011.

use super::dual::Prepared;
use super::newton::Watch;
use super::problem::{Intercept, Point, Problem};
use gradus_base::random::Stream;

pub(super) fn solve(
    problem: &Problem<'_>,
    prepared: &Prepared<'_>,
    (tol, max_iter, seed): (f64, usize, u64),
    watch: &mut dyn Watch,
) -> Point {
    let (n, d) = (problem.n(), problem.design.d());
    let total: f64 = problem.costs.iter().sum();
    // The square of the value of the feature that a penalised intercept is.
    let rho = if problem.intercept == Intercept::Penalized { 1.0 / problem.q() } else { 0.0 };
    let mut best = problem.point(vec![0.0; n]);
    watch.iteration(best.primal);
    let mut b = if problem.intercept == Intercept::Free { best.b } else { 0.0 };
    // w = scale · v; the mean of past w is kept the same way: `past + share · v`.
    let (mut v, mut scale) = (vec![0.0; d], 1.0f64);
    let (mut past, mut share, mut count) = (vec![0.0; d], 0.0f64, 0.0f64);
    let (mut bias, mut past_bias) = (0.0, 0.0);
    let mut t = 1.0f64;
    for epoch in 0..max_iter {
        if best.gap() <= tol * best.primal || watch.stopped() {
            break;
        }
        // The mean begins anew whenever the passes have doubled: it is over the second half.
        if epoch.is_power_of_two() {
            past.fill(0.0);
            (share, count, past_bias) = (0.0, 0.0, 0.0);
        }
        let mut order: Vec<usize> = (0..n).filter(|&i| problem.costs[i] > 0.0).collect();
        Stream::new(seed, "linear.svm.subgradient", epoch as u64).shuffle(&mut order);
        let each = order.len() as f64 / total;
        for i in order {
            t += 1.0;
            let score = scale * prepared.dot(i, &v) + b + bias;
            let residual = problem.loss.residual(problem.targets[i], score);
            let slope = if problem.loss.squared { 2.0 * residual } else { sign(residual) };
            let keep = 1.0 - 1.0 / t;
            scale *= keep;
            bias *= keep;
            // Costs that differ weigh the step instead of the draw: each sample has its turn. A
            // squared loss must not overshoot the sample itself.
            let mut by = total * each * problem.costs[i] * slope / t;
            if problem.loss.squared {
                let most = residual / (prepared.norms[i] + rho).max(f64::MIN_POSITIVE);
                by = if by.abs() > most.abs() { most } else { by };
            }
            if by != 0.0 {
                prepared.add(i, by / scale, &mut v);
                if share != 0.0 {
                    // What was promised to the past of the old `v` stays what it was.
                    prepared.add(i, -share * by / scale, &mut past);
                }
                bias += rho * by;
            }
            share += scale;
            past_bias += bias;
            count += 1.0;
            if scale < 1e-100 {
                v.iter_mut().for_each(|x| *x *= scale);
                share /= scale;
                scale = 1.0;
            }
        }
        if count > 0.0 {
            let w: Vec<f64> =
                past.iter().zip(&v).map(|(past, v)| (past + share * v) / count).collect();
            let point = evaluate(problem, w, past_bias / count);
            if problem.intercept == Intercept::Free {
                b = point.b;
            }
            watch.iteration(point.primal);
            best.improve(point);
        }
    }
    best
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// The point of a `w`, with the best intercept if it is free, and a dual point from its residuals.
fn evaluate(problem: &Problem<'_>, w: Vec<f64>, mut b: f64) -> Point {
    let mut scores = vec![0.0; problem.n()];
    problem.design.times(&w, b, &mut scores);
    if problem.intercept == Intercept::Free {
        let shift = problem.best_shift(&scores);
        b += shift;
        scores.iter_mut().for_each(|score| *score += shift);
    }
    let mut beta = vec![0.0; problem.n()];
    if problem.loss.squared {
        problem.beta_of_residuals(&scores, &mut beta);
    } else {
        for (i, beta) in beta.iter_mut().enumerate() {
            *beta = problem.costs[i] * sign(problem.loss.residual(problem.targets[i], scores[i]));
        }
    }
    problem.balance(&mut beta);
    let mut z = vec![0.0; w.len()];
    problem.design.transposed_times(&beta, &mut z);
    let (primal, dual) = (problem.primal(&w, b, &scores), problem.dual(&beta, &z));
    Point { w, b, scores, beta, primal, dual, stalled: false }
}
