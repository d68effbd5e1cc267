//! More than two classes: an upper bound of the worst case, which is exact for each pair of classes.
//!
//! A perturbation lowers the lead of class `y` over class `k` by at most `ε ‖u∘(w_y − w_k)‖*`. The objective takes that for all
//! pairs at once, `log Σ_k exp(s_k − s_y + ε ‖u∘(w_y − w_k)‖*)`, although no single perturbation may reach all of them: an
//! upper bound of the worst loss, convex, and equal to it for two classes. Norms are smoothed near 0 by `μ`, which is lowered until it
//! is a small share of the coefficients.

use super::Adversary;
use crate::design::Design;
use gradus_base::Result;
use gradus_optim::proximal::{Penalty, soft_threshold};
use gradus_optim::{
    AdversarialNorm, Control, Iterate, Lbfgs, Objective, Optimizer as _, Outcome, Proximal,
};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// The smoothing of norms in turn, as a share of the root mean square of the coefficients.
const SMOOTHING: [f64; 5] = [1.0, 0.1, 1e-2, 1e-3, 1e-4];

/// The mean of the bounds of the losses, with a penalty on squares. A point holds the coefficients of each class in turn, and then the
/// intercepts.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'d, 'a> {
    pub(crate) design: &'d Design<'a>,
    pub(crate) classes: &'d [u32],
    pub(crate) n_classes: usize,
    pub(crate) adversary: Adversary,
    pub(crate) moves: &'d [bool],
    pub(crate) ridge: &'d [f64],
    pub(crate) l1: &'d [f64],
    pub(crate) intercept: bool,
    /// Of a value of this size a norm is smooth; 0 for norms as they are.
    pub(crate) smoothing: f64,
}

/// A solution: coefficients, then intercepts.
pub(crate) struct Found {
    pub(crate) point: Vec<f64>,
    pub(crate) objective: f64,
    pub(crate) residual: f64,
    pub(crate) interrupted: bool,
}

/// The difference of two rows, its norm and the slope of the norm.
struct Difference {
    size: f64,
    slope: Vec<f64>,
}

impl Pairs<'_, '_> {
    fn difference(&self, a: &[f64], b: &[f64]) -> Difference {
        let mu = self.smoothing;
        let pairs = a.iter().zip(b).zip(self.moves);
        let mut slope: Vec<f64> =
            pairs.map(|((a, b), moves)| if *moves { a - b } else { 0.0 }).collect();
        let size = match self.adversary.norm {
            AdversarialNorm::Linf => slope
                .iter_mut()
                .map(|v| {
                    let root = v.hypot(mu);
                    *v = if root > 0.0 { *v / root } else { 0.0 };
                    root - mu
                })
                .sum(),
            AdversarialNorm::L2 => {
                let root = slope.iter().map(|v| v * v).sum::<f64>().sqrt().hypot(mu);
                slope.iter_mut().for_each(|v| *v = if root > 0.0 { *v / root } else { 0.0 });
                root - mu
            }
        };
        Difference { size, slope }
    }

    /// Minimises; `watch` gets the objective of each iteration and says whether to stop.
    pub(crate) fn solve(
        &self,
        start: Option<&[f64]>,
        (tol, max_iter): (f64, usize),
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Found> {
        let dim = self.dim();
        let zero = vec![0.0; dim];
        let mut gradient = vec![0.0; dim];
        let mut problem = Self { smoothing: 1.0, ..*self };
        let at_zero = problem.gradient(&zero, &mut gradient);
        let size = gradient.iter().fold(f64::MIN_POSITIVE, |most, g| most.max(g.abs()));
        let n = self.n_classes * self.design.d();
        let mut x = start.map_or(zero, <[f64]>::to_vec);
        if problem.value(&x) > at_zero {
            x.fill(0.0);
        }
        let interrupted = Cell::new(false);
        let mut done = 0;
        let mut mapped = f64::INFINITY;
        let tiled: Vec<f64> = (0..self.n_classes).flat_map(|_| self.l1.iter().copied()).collect();
        let penalty = Weighted(&tiled);
        let is_smooth = self.l1.iter().all(|l1| *l1 == 0.0);
        for (stage, share) in SMOOTHING.iter().enumerate() {
            let squares: f64 = x[..n].iter().map(|w| w * w).sum();
            let rms = (squares / n.max(1) as f64).sqrt();
            if stage > 0 {
                // Coefficients that are all 0 have no size to be a share of.
                problem.smoothing = share * if rms > 0.0 { rms } else { 1e-3 };
            }
            let last = stage + 1 == SMOOTHING.len();
            let control = Control {
                max_iter: max_iter.saturating_sub(done),
                gradient_tol: size * if last { tol } else { tol.max(1e-3) },
                keep_trace: false,
                ..Control::default()
            };
            let mut each = |iterate: &Iterate<'_>| {
                if iterate.iteration > 0 && watch(iterate.value) {
                    interrupted.set(true);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            };
            let Outcome { x: there, gradient_norm, iterations, .. } = if is_smooth {
                Lbfgs { control, memory: 20, ..Lbfgs::new() }
                    .minimize_with(&problem, &x, &mut each)?
            } else {
                Proximal::fista()
                    .first_step(16.0)
                    .control(control)
                    .minimize_with(&problem, &penalty, &x, &mut each)?
            };
            (x, mapped) = (there, gradient_norm);
            done += iterations;
            if interrupted.get() {
                break;
            }
        }
        let residual = mapped / size;
        let objective = Self { smoothing: 0.0, ..*self }.value(&x) + penalty.value(&x);
        Ok(Found { point: x, objective, residual, interrupted: interrupted.get() })
    }
}

/// Absolute values with a weight for each coefficient; intercepts are behind them.
struct Weighted<'p>(&'p [f64]);

impl Penalty for Weighted<'_> {
    fn value(&self, x: &[f64]) -> f64 {
        x.iter().zip(self.0).map(|(x, l1)| l1 * x.abs()).sum()
    }

    fn prox(&self, step: f64, x: &mut [f64]) {
        x.iter_mut().zip(self.0).for_each(|(x, l1)| *x = soft_threshold(*x, step * l1));
    }

    fn check(&self, _: usize) -> Result<()> {
        Ok(())
    }
}

impl Objective for Pairs<'_, '_> {
    fn dim(&self) -> usize {
        (self.design.d() + 1) * self.n_classes
    }

    fn value(&self, x: &[f64]) -> f64 {
        let mut gradient = vec![0.0; self.dim()];
        self.gradient(x, &mut gradient)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let (k, d, total) = (self.n_classes, self.design.d(), self.design.total());
        let (w, b) = x.split_at(k * d);
        let radius = self.adversary.radius;
        // The pair of classes (low, high) at low · k + high.
        let mut differences: Vec<Option<Difference>> = (0..k * k).map(|_| None).collect();
        let mut lowered = vec![0.0; k * k];
        for low in 0..k {
            for high in low + 1..k {
                let found = self.difference(&w[low * d..][..d], &w[high * d..][..d]);
                lowered[low * k + high] = radius * found.size;
                lowered[high * k + low] = radius * found.size;
                differences[low * k + high] = Some(found);
            }
        }
        // Probabilities of each class (by column) among the samples of each (by row), block by block.
        let blocks = Mutex::new(Vec::new());
        let (gradient, slopes) = out.split_at_mut(w.len());
        let (sum, found) = self.design.sweep_many(w, b, gradient, |rows, margins| {
            let (mut sum, first) = (0.0, rows.start);
            let mut shares = vec![0.0; k * k];
            for (row, scores) in rows.zip(margins.chunks_exact_mut(k)) {
                let (class, weight) = (self.classes[row] as usize, self.design.weight(row));
                let by = &lowered[class * k..][..k];
                scores.iter_mut().zip(by).for_each(|(s, by)| *s += by);
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let own = scores[class] - most;
                let mut all = 0.0;
                for s in scores.iter_mut() {
                    *s = (*s - most).exp();
                    all += *s;
                }
                sum += weight * (all.ln() - own);
                let of_class = &mut shares[class * k..][..k];
                for (s, share) in scores.iter_mut().zip(of_class) {
                    *s *= weight / all;
                    *share += *s;
                }
                scores[class] -= weight;
            }
            if let Ok(mut blocks) = blocks.lock() {
                blocks.push((first, shares));
            }
            sum
        });
        let mut blocks = blocks.into_inner().unwrap_or_default();
        blocks.sort_unstable_by_key(|(first, _)| *first);
        let mut shares = vec![0.0; k * k];
        for (_, block) in &blocks {
            shares.iter_mut().zip(block).for_each(|(sum, x)| *sum += x);
        }
        for low in 0..k {
            for high in low + 1..k {
                let Some(found) = &differences[low * k + high] else { continue };
                let by = radius * (shares[low * k + high] + shares[high * k + low]);
                for (j, slope) in found.slope.iter().enumerate() {
                    gradient[low * d + j] += by * slope;
                    gradient[high * d + j] -= by * slope;
                }
            }
        }
        let mut squares = 0.0;
        for (at, (g, w)) in gradient.iter_mut().zip(w).enumerate() {
            let ridge = self.ridge[at % d.max(1)];
            *g = *g / total + ridge * w;
            squares += ridge * w * w;
        }
        for (slope, found) in slopes.iter_mut().zip(found) {
            *slope = if self.intercept { found / total } else { 0.0 };
        }
        sum / total + 0.5 * squares
    }
}
