//! Newton's method with the whole Hessian, for two classes and not too many features; with an L1
//! penalty each step minimises the quadratic model and the penalty together, coordinate by
//! coordinate.

use super::objective::{Binary, loss_and_error};
use crate::design::{Curved, bordered};
use gradus_core::iterate::OwnLoop;
use gradus_core::report::StopReason;
use gradus_kernel::linalg;
use gradus_optim::Objective as _;

/// A first guess comes from one sample in this many.
const FEWER: usize = 16;

/// A solution: the coefficients, then the intercept.
pub(super) struct Found {
    pub(super) point: Vec<f64>,
    pub(super) objective: f64,
    /// The largest entry of the (sub)gradient, as a share of that at 0.
    pub(super) residual: f64,
    pub(super) stop_reason: StopReason,
}

impl Binary<'_, '_> {
    /// Value, gradient and Hessian (with the intercept as the last coordinate) at a point.
    pub(super) fn look(&self, x: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
        let (d, total) = (self.design.d(), self.design.total());
        let found = self.design.curved(&x[..d], x[d], |rows, margins, curvatures| {
            let mut sum = 0.0;
            for ((row, margin), curvature) in rows.zip(margins).zip(curvatures) {
                let (sign, weight) = (self.signs[row], self.design.weight(row));
                let (loss, error) = loss_and_error(sign * *margin);
                sum += weight * loss;
                *margin = -weight * sign * error;
                *curvature = weight * error * (1.0 - error);
            }
            sum
        });
        let Curved { value, gradient, slope, gram, cross, curvature } = found;
        let mut g: Vec<f64> =
            gradient.iter().zip(x).map(|(g, w)| g / total + self.ridge * w).collect();
        g.push(if self.intercept { slope / total } else { 0.0 });
        let border = self.intercept.then_some((cross.as_slice(), curvature));
        let mut hessian = bordered(&gram, border, total);
        (0..d).for_each(|i| hessian[i * (d + 1) + i] += self.ridge);
        let half: f64 = 0.5 * self.ridge * x[..d].iter().map(|w| w * w).sum::<f64>();
        (value / total + half, g, hessian)
    }

    /// The smallest subgradient, of which the largest entry is the distance from the optimum.
    fn distance(&self, x: &[f64], gradient: &[f64], l1: f64) -> f64 {
        let d = self.design.d();
        let mut most = gradient[d].abs();
        for (g, w) in gradient[..d].iter().zip(x) {
            let off = if *w == 0.0 { (g.abs() - l1).max(0.0) } else { (g + l1 * w.signum()).abs() };
            most = most.max(off);
        }
        most
    }

    /// The solution for every sixteenth sample, where there are many, and the Hessian there: nearly as
    /// good, and found in a fraction of the time of one pass over all samples.
    fn first_guess(
        &self,
        l1: f64,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Option<(Vec<f64>, Option<Vec<f64>>)> {
        let n = self.design.n();
        if n / FEWER < (20 * self.design.d()).max(1000) || self.ridge + l1 == 0.0 {
            return None;
        }
        let rows: Vec<u32> = (0..n as u32).step_by(FEWER).collect();
        let some = self.design.matrix().select_rows(&rows);
        let weights: Vec<f64> = rows.iter().map(|&row| self.design.weight(row as usize)).collect();
        let signs: Vec<f64> = rows.iter().map(|&row| self.signs[row as usize]).collect();
        let design = self.design.of_rows(&some).with_weights(&weights);
        let fewer = Binary { design: &design, signs: &signs, ..*self };
        if fewer.design.total() <= 0.0 {
            return None;
        }
        let point = fewer.descend(l1, (1e-3, 20), None, fit_loop, false).point;
        let hessian = (self.design.d() >= 32).then(|| fewer.look(&point).2);
        let numbers = point.iter().chain(hessian.iter().flatten());
        numbers.into_iter().all(|x| x.is_finite()).then_some((point, hessian))
    }

    /// Minimises the objective plus `l1 ‖w‖₁`.
    pub(super) fn newton(
        &self,
        l1: f64,
        limits: (f64, usize),
        start: Option<&[f64]>,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Found {
        self.descend(l1, limits, start, fit_loop, true)
    }

    /// The same; the iterations of a fit to part of the data are not reported.
    ///
    /// A Hessian costs as much as many gradients: it is used again for as long as steps by it make the
    /// gradient a tenth of what it was.
    fn descend(
        &self,
        l1: f64,
        (tol, max_iter): (f64, usize),
        start: Option<&[f64]>,
        fit_loop: &mut OwnLoop<'_>,
        full_data: bool,
    ) -> Found {
        let d = self.design.d();
        let penalty = |x: &[f64]| l1 * x[..d].iter().map(|w| w.abs()).sum::<f64>();
        let mut x = vec![0.0; d + 1];
        let mut gradient = vec![0.0; d + 1];
        let mut value = self.gradient(&x, &mut gradient);
        let size = gradient.iter().fold(f64::MIN_POSITIVE, |most, g| most.max(g.abs()));
        let mut known: Option<Vec<f64>> = None;
        // Of few features a Hessian costs hardly more than a gradient.
        let enough = if d < 32 { 1e-3 } else { 0.1 };
        let first = match start {
            Some(start) => Some((start.to_vec(), None)),
            None => self.first_guess(l1, fit_loop),
        };
        let mut there_gradient = vec![0.0; d + 1];
        if let Some((first, hessian)) = first {
            let there = self.gradient(&first, &mut there_gradient);
            if there + penalty(&first) < value {
                (x, value, known) = (first, there, hessian);
                std::mem::swap(&mut gradient, &mut there_gradient);
            }
        }
        let mut residual = self.distance(&x, &gradient, l1) / size;
        let mut stop_reason = StopReason::MaxIterations;
        for _ in 0..max_iter {
            if residual <= tol {
                stop_reason = StopReason::Converged;
                break;
            }
            if fit_loop.stopped() {
                stop_reason = StopReason::Interrupted;
                break;
            }
            let full = value + penalty(&x);
            let mut moved = false;
            // With the Hessian of an earlier point, and if that is no good with one of this point.
            for fresh in [false, true] {
                let hessian = match known.take() {
                    Some(hessian) if !fresh => hessian,
                    _ if !fresh => continue,
                    _ => self.look(&x).2,
                };
                let Some(step) = step(&x, &gradient, &hessian, l1) else { continue };
                let next =
                    |t: f64| -> Vec<f64> { x.iter().zip(&step).map(|(x, s)| x + t * s).collect() };
                let slope: f64 = gradient.iter().zip(&step).map(|(g, s)| g * s).sum::<f64>()
                    + penalty(&next(1.0))
                    - penalty(&x);
                let mut t = 1.0;
                for _ in 0..if fresh { 50 } else { 1 } {
                    let there = next(t);
                    let found = self.gradient(&there, &mut there_gradient);
                    let bound = full + 1e-4 * t * slope.min(0.0) + 1e-15 * full;
                    let left = self.distance(&there, &there_gradient, l1) / size;
                    if found + penalty(&there) <= bound && (fresh || left <= enough * residual) {
                        if left <= enough * residual {
                            known = Some(hessian);
                        }
                        (x, value) = (there, found);
                        std::mem::swap(&mut gradient, &mut there_gradient);
                        moved = true;
                        break;
                    }
                    t *= 0.5;
                }
                if moved {
                    break;
                }
            }
            if !moved {
                break;
            }
            let before = residual;
            residual = self.distance(&x, &gradient, l1) / size;
            if full_data {
                fit_loop.iteration(value + penalty(&x));
            }
            // As near as rounding allows.
            if residual >= before && residual < 1e-10 {
                break;
            }
        }
        if residual <= tol && stop_reason == StopReason::MaxIterations {
            stop_reason = StopReason::Converged;
        }
        Found { objective: value + penalty(&x), point: x, residual, stop_reason }
    }
}

/// The step to the minimum of the quadratic model plus `l1 ‖w‖₁`.
pub(super) fn step(x: &[f64], gradient: &[f64], hessian: &[f64], l1: f64) -> Option<Vec<f64>> {
    let m = gradient.len();
    if l1 > 0.0 {
        return Some(coordinates(x, gradient, hessian, l1));
    }
    let mut damping = 0.0;
    for _ in 0..30 {
        let mut matrix = hessian.to_vec();
        (0..m).for_each(|i| matrix[i * m + i] += damping * (1.0 + hessian[i * m + i]));
        if let Some(lower) = linalg::cholesky(m, &matrix) {
            let mut step: Vec<f64> = gradient.iter().map(|g| -g).collect();
            linalg::cholesky_solve(m, &lower, &mut step);
            if step.iter().all(|s| s.is_finite()) {
                return Some(step);
            }
        }
        damping = f64::max(1e-14, damping * 10.0);
    }
    None
}

/// Coordinate descent on the model, cycling over the coordinates that move until none does.
fn coordinates(x: &[f64], gradient: &[f64], hessian: &[f64], l1: f64) -> Vec<f64> {
    let m = x.len();
    let mut step = vec![0.0; m];
    // The gradient of the model at the step.
    let mut slope = gradient.to_vec();
    let mut update = |j: usize, step: &mut Vec<f64>| -> f64 {
        let curvature = hessian[j * m + j];
        if curvature <= 0.0 {
            return 0.0;
        }
        let at = x[j] + step[j];
        let aim = at - slope[j] / curvature;
        let to = if j + 1 == m {
            aim
        } else {
            let shrink = l1 / curvature;
            if aim > shrink {
                aim - shrink
            } else if aim < -shrink {
                aim + shrink
            } else {
                0.0
            }
        };
        let by = to - at;
        if by != 0.0 {
            step[j] += by;
            let row = &hessian[j * m..(j + 1) * m];
            slope.iter_mut().zip(row).for_each(|(s, h)| *s += by * h);
        }
        by.abs() * curvature
    };
    let size = gradient.iter().fold(f64::MIN_POSITIVE, |most, g| most.max(g.abs()));
    for _ in 0..1000 {
        let all = (0..m).map(|j| update(j, &mut step)).fold(0.0, f64::max);
        if all <= 1e-13 * size {
            break;
        }
        let active: Vec<usize> = (0..m).filter(|&j| x[j] + step[j] != 0.0).collect();
        for _ in 0..1000 {
            let most = active.iter().map(|&j| update(j, &mut step)).fold(0.0, f64::max);
            if most <= 1e-13 * size {
                break;
            }
        }
    }
    step
}
