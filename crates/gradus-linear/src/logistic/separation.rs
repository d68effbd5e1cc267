//! Whether a plane separates the classes, so that without a penalty there is no finite optimum.
//!
//! Then the loss falls for ever along some direction `v`: no sample's own class loses against any other
//! along it, and some win. Along such a direction Newton steps keep their length while all else
//! converges, so that a few of them from the solution leave the direction alone. Classes are separated
//! completely if every sample wins, and quasi-completely if some stay on the plane.

use super::newton;
use super::objective::{Binary, Softmax};
use crate::conjugate;
use gradus_optim::Objective;

/// The largest number of Newton steps.
const STEPS: usize = 8;

/// The relative loss that a sample may have compared with the gain of the most certain one: rounding.
const LOSS: f64 = 1e-6;

/// A solution whose most certain sample leads by less than this (a probability of 99 %) is no sign of
/// separation.
const CERTAIN: f64 = 5.0;

/// Up to this many coordinates a Hessian is formed by products.
const FORMED: usize = 512;

/// Operations that the look for a direction may take.
const WORK: f64 = 1e11;

/// The separation of the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separation {
    /// No plane separates them.
    None,
    /// A plane has every sample on its right side or on the plane.
    Quasi,
    /// A plane has every sample on its right side.
    Complete,
}

impl Separation {
    /// The note in the report.
    pub(super) fn caution(self) -> Option<String> {
        let how = match self {
            Self::None => return None,
            Self::Quasi => {
                "separable but for some samples on the border (quasi-complete separation)"
            }
            Self::Complete => "perfectly separable",
        };
        Some(format!(
            "caution: the classes are {how}: without regularization the coefficients have no finite optimum; these tell the classes apart, and their size means nothing"
        ))
    }
}

/// An objective whose point gives every sample a score for each class.
pub(super) trait Classes: Objective {
    /// Returns the lead of the class of each sample over all others, for the scores of a point; without the samples
    /// that have no weight.
    fn leads(&self, point: &[f64]) -> Vec<f64>;

    /// Operations of a product with the Hessian.
    fn work(&self) -> f64;

    /// The Newton step from a point.
    fn newton_step(&self, point: &[f64], products: usize) -> Option<Vec<f64>>;
}

impl Classes for Binary<'_, '_> {
    fn leads(&self, point: &[f64]) -> Vec<f64> {
        let d = self.design.d();
        let mut margins = vec![0.0; self.design.n()];
        self.design.times(&point[..d], point[d], &mut margins);
        let rows = margins.iter().zip(self.signs).enumerate();
        rows.filter(|(row, _)| self.design.weight(*row) > 0.0).map(|(_, (m, s))| m * s).collect()
    }

    fn work(&self) -> f64 {
        4.0 * self.design.n() as f64 * self.design.d() as f64
    }

    fn newton_step(&self, point: &[f64], products: usize) -> Option<Vec<f64>> {
        if self.design.d() <= super::WHOLE && products > self.design.d() / 2 {
            let (_, gradient, hessian) = self.look(point);
            return newton::step(point, &gradient, &hessian, 0.0);
        }
        by_products(self, point, products)
    }
}

impl Classes for Softmax<'_, '_> {
    fn leads(&self, point: &[f64]) -> Vec<f64> {
        let (n, d, k) = (self.design.n(), self.design.d(), self.n_classes);
        let (w, b) = point.split_at(k * d);
        let mut scores = vec![0.0; n * k];
        for (at, (w, b)) in w.chunks_exact(d.max(1)).zip(b).enumerate() {
            self.design.times(w, *b, &mut scores[at * n..][..n]);
        }
        (0..n)
            .filter(|&row| self.design.weight(row) > 0.0)
            .map(|row| {
                let own = self.classes[row] as usize;
                let others = (0..k).filter(|&class| class != own);
                let most = others.map(|class| scores[class * n + row]).fold(f64::MIN, f64::max);
                scores[own * n + row] - most
            })
            .collect()
    }

    fn work(&self) -> f64 {
        4.0 * self.design.n() as f64 * self.design.d() as f64 * self.n_classes as f64
    }

    fn newton_step(&self, point: &[f64], products: usize) -> Option<Vec<f64>> {
        by_products(self, point, products)
    }
}

/// Returns the separation of the classes of an objective without a penalty, seen from its solution.
pub(super) fn separation(objective: &dyn Classes, solution: &[f64]) -> Separation {
    let most = |leads: &[f64]| leads.iter().copied().fold(f64::MIN, f64::max);
    let least = |leads: &[f64]| leads.iter().copied().fold(f64::MAX, f64::min);
    let leads = objective.leads(solution);
    if least(&leads) > 0.0 {
        return Separation::Complete;
    }
    if most(&leads) < CERTAIN {
        return Separation::None;
    }
    let products = (WORK / objective.work() / STEPS as f64) as usize;
    let mut point = solution.to_vec();
    for _ in 0..STEPS {
        let Some(step) = objective.newton_step(&point, products) else { break };
        if step.iter().any(|s| !s.is_finite()) {
            break;
        }
        let leads = objective.leads(&step);
        let (least, most) = (least(&leads), most(&leads));
        // A finite optimum is reached.
        if most < 1e-4 {
            break;
        }
        if most > 0.1 && least >= -LOSS * most {
            let all = least > LOSS * most;
            return if all { Separation::Complete } else { Separation::Quasi };
        }
        point.iter_mut().zip(&step).for_each(|(x, s)| *x += s);
    }
    Separation::None
}

/// A Newton step by conjugate gradients with at most `products` products.
fn by_products(objective: &dyn Objective, point: &[f64], products: usize) -> Option<Vec<f64>> {
    let dim = objective.dim();
    let mut residual = vec![0.0; dim];
    objective.gradient(point, &mut residual);
    let hessian = objective.hessian(point)?;
    if dim <= FORMED && dim <= products {
        // Conjugate gradients would not resolve a direction of next to no curvature.
        let mut matrix = vec![0.0; dim * dim];
        let mut unit = vec![0.0; dim];
        for (at, row) in matrix.chunks_exact_mut(dim).enumerate() {
            unit[at] = 1.0;
            hessian.product(&unit, row);
            unit[at] = 0.0;
        }
        return newton::step(point, &residual, &matrix, 0.0);
    }
    residual.iter_mut().for_each(|g| *g = -*g);
    let mut diagonal = vec![1.0; dim];
    hessian.diagonal(&mut diagonal);
    let inverse: Vec<f64> = diagonal.iter().map(|h| if *h > 0.0 { 1.0 / h } else { 0.0 }).collect();
    let max_iter = products.min(4 * dim);
    let limits = conjugate::Limits { share: 1e-20, max_iter, stopped: &|_| false };
    let scale = |i: usize, r: f64| r * inverse[i];
    let mut product = |v: &[f64], out: &mut [f64]| hessian.product(v, out);
    let mut step = vec![0.0; dim];
    conjugate::solve(&mut product, scale, &mut step, residual, limits);
    Some(step)
}
