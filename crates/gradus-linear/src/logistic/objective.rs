//! The objectives of logistic regression, for the optimisers.

use crate::design::Design;
use crate::model::softmax;
use crate::parallel;
use gradus_optim::{Hessian, Objective};

/// `log(1 + exp(−m))` and `1 / (1 + exp(m))`, without overflow.
pub(super) fn loss_and_error(m: f64) -> (f64, f64) {
    let e = (-m.abs()).exp();
    if m > 0.0 { (e.ln_1p(), e / (1.0 + e)) } else { (e.ln_1p() - m, 1.0 / (1.0 + e)) }
}

/// Two classes: the mean of `log(1 + exp(−t m))` over the samples, `t = ±1`, plus `½ μ ‖w‖²`.
///
/// A point holds the coefficients and then the intercept.
#[derive(Clone, Copy)]
pub(super) struct Binary<'d, 'a> {
    pub(super) design: &'d Design<'a>,
    /// 1 or −1.
    pub(super) signs: &'d [f64],
    pub(super) ridge: f64,
    pub(super) intercept: bool,
}

impl Binary<'_, '_> {
    fn d(&self) -> usize {
        self.design.d()
    }

    fn half_norm(&self, x: &[f64]) -> f64 {
        0.5 * self.ridge * x[..self.d()].iter().map(|w| w * w).sum::<f64>()
    }
}

impl Objective for Binary<'_, '_> {
    fn dim(&self) -> usize {
        self.d() + 1
    }

    fn value(&self, x: &[f64]) -> f64 {
        let mut gradient = vec![0.0; self.dim()];
        self.gradient(x, &mut gradient)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let (d, total) = (self.d(), self.design.total());
        let (sum, slope) = self.design.sweep(&x[..d], x[d], &mut out[..d], |rows, margins| {
            let mut sum = 0.0;
            for (row, margin) in rows.zip(margins) {
                let (sign, weight) = (self.signs[row], self.design.weight(row));
                let (loss, error) = loss_and_error(sign * *margin);
                sum += weight * loss;
                *margin = -weight * sign * error;
            }
            sum
        });
        for (g, w) in out[..d].iter_mut().zip(x) {
            *g = *g / total + self.ridge * w;
        }
        out[d] = if self.intercept { slope / total } else { 0.0 };
        sum / total + self.half_norm(x)
    }

    fn hessian<'h>(&'h self, x: &'h [f64]) -> Option<Box<dyn Hessian + 'h>> {
        let (d, total) = (self.d(), self.design.total());
        let mut curvature = vec![0.0; self.design.n()];
        self.design.times(&x[..d], x[d], &mut curvature);
        let blocks = curvature.chunks_mut(4096).enumerate().collect();
        parallel::each(blocks, 16 * self.design.n(), |(block, part): (usize, &mut [f64])| {
            for (row, c) in (4096 * block..).zip(part) {
                let (_, error) = loss_and_error(*c);
                *c = self.design.weight(row) * error * (1.0 - error) / total;
            }
        });
        Some(Box::new(BinaryHessian { objective: self, curvature }))
    }
}

struct BinaryHessian<'h, 'd, 'a> {
    objective: &'h Binary<'d, 'a>,
    curvature: Vec<f64>,
}

impl Hessian for BinaryHessian<'_, '_, '_> {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        let Binary { design, ridge, intercept, .. } = self.objective;
        let d = design.d();
        let (_, slope) = design.sweep(&v[..d], v[d], &mut out[..d], |rows, margins| {
            margins.iter_mut().zip(&self.curvature[rows]).for_each(|(m, c)| *m *= c);
            0.0
        });
        out[..d].iter_mut().zip(v).for_each(|(o, v)| *o += ridge * v);
        out[d] = if *intercept { slope } else { v[d] };
    }

    fn diagonal(&self, out: &mut [f64]) -> bool {
        let Binary { design, ridge, intercept, .. } = self.objective;
        let d = design.d();
        for (out, square) in out.iter_mut().zip(design.diagonals(1, &self.curvature)) {
            *out = square + ridge;
        }
        out[d] = if *intercept { self.curvature.iter().sum() } else { 1.0 };
        true
    }
}

/// Several classes: the mean of `−log p(class)`, probabilities in proportion to `exp` of the scores,
/// plus `½ μ ‖W‖²`.
///
/// A point holds the coefficients of each class in turn, and then the intercepts.
pub(super) struct Softmax<'d, 'a> {
    pub(super) design: &'d Design<'a>,
    pub(super) classes: &'d [u32],
    pub(super) n_classes: usize,
    pub(super) ridge: f64,
    pub(super) intercept: bool,
}

impl Objective for Softmax<'_, '_> {
    fn dim(&self) -> usize {
        (self.design.d() + 1) * self.n_classes
    }

    fn value(&self, x: &[f64]) -> f64 {
        let mut gradient = vec![0.0; self.dim()];
        self.gradient(x, &mut gradient)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let (k, total) = (self.n_classes, self.design.total());
        let (w, b) = x.split_at(k * self.design.d());
        let (gradient, slopes) = out.split_at_mut(w.len());
        let (sum, found) = self.design.sweep_many(w, b, gradient, |rows, margins| {
            let mut sum = 0.0;
            for (row, scores) in rows.zip(margins.chunks_exact_mut(k)) {
                let (class, weight) = (self.classes[row] as usize, self.design.weight(row));
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let own = scores[class] - most;
                let mut all = 0.0;
                for s in scores.iter_mut() {
                    *s = (*s - most).exp();
                    all += *s;
                }
                sum += weight * (all.ln() - own);
                scores.iter_mut().for_each(|s| *s *= weight / all);
                scores[class] -= weight;
            }
            sum
        });
        gradient.iter_mut().zip(w).for_each(|(g, w)| *g = *g / total + self.ridge * w);
        for (slope, found) in slopes.iter_mut().zip(found) {
            *slope = if self.intercept { found / total } else { 0.0 };
        }
        sum / total + 0.5 * self.ridge * w.iter().map(|w| w * w).sum::<f64>()
    }

    fn hessian<'h>(&'h self, x: &'h [f64]) -> Option<Box<dyn Hessian + 'h>> {
        let k = self.n_classes;
        let (w, b) = x.split_at(k * self.design.d());
        // Probabilities, row after row.
        let mut scores = vec![0.0; self.design.n() * k];
        let mut one = vec![0.0; self.design.n()];
        for (at, (w, b)) in w.chunks_exact(self.design.d().max(1)).zip(b).enumerate() {
            self.design.times(w, *b, &mut one);
            one.iter().enumerate().for_each(|(row, s)| scores[row * k + at] = *s);
        }
        let blocks = scores.chunks_mut(1024 * k.max(1)).collect();
        parallel::each(blocks, 16 * k * self.design.n(), |block: &mut [f64]| {
            block.chunks_exact_mut(k).for_each(softmax);
        });
        Some(Box::new(SoftmaxHessian { objective: self, probabilities: scores }))
    }
}

struct SoftmaxHessian<'h, 'd, 'a> {
    objective: &'h Softmax<'d, 'a>,
    probabilities: Vec<f64>,
}

impl Hessian for SoftmaxHessian<'_, '_, '_> {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        let Softmax { design, n_classes, ridge, intercept, .. } = self.objective;
        let (k, total) = (*n_classes, design.total());
        let (w, b) = v.split_at(k * design.d());
        let (product, slopes) = out.split_at_mut(w.len());
        let (_, found) = design.sweep_many(w, b, product, |rows, margins| {
            for (row, m) in rows.zip(margins.chunks_exact_mut(k)) {
                let p = &self.probabilities[row * k..][..k];
                let mean: f64 = m.iter().zip(p).map(|(m, p)| m * p).sum();
                let weight = design.weight(row) / total;
                m.iter_mut().zip(p).for_each(|(m, p)| *m = weight * p * (*m - mean));
            }
            0.0
        });
        product.iter_mut().zip(w).for_each(|(o, v)| *o += ridge * v);
        for ((slope, found), b) in slopes.iter_mut().zip(found).zip(b) {
            // A little of the intercepts themselves, which are known up to a common number only.
            *slope = if *intercept { found + 1e-10 * b } else { *b };
        }
    }

    fn diagonal(&self, out: &mut [f64]) -> bool {
        let Softmax { design, n_classes, ridge, intercept, .. } = self.objective;
        let (k, total) = (*n_classes, design.total());
        let curvatures: Vec<f64> = self
            .probabilities
            .iter()
            .enumerate()
            .map(|(at, p)| design.weight(at / k) * p * (1.0 - p) / total)
            .collect();
        let (squares, slopes) = out.split_at_mut(k * design.d());
        for (out, square) in squares.iter_mut().zip(design.diagonals(k, &curvatures)) {
            *out = square + ridge;
        }
        slopes.fill(if *intercept { 1e-10 } else { 1.0 });
        if *intercept {
            for own in curvatures.chunks_exact(k) {
                slopes.iter_mut().zip(own).for_each(|(slope, c)| *slope += c);
            }
        }
        true
    }
}
