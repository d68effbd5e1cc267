//! Two classes: the exact worst case of every sample.

use super::Adversary;
use super::cone::Cone;
use crate::design::Design;
use gradus_base::Result;
use gradus_kernel::linalg;
use gradus_optim::{Control, Iterate, Objective, Proximal};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Up to this many features Newton steps end the search.
const FORMED: usize = 1000;

/// Accelerated steps before the first Newton step; twice as many before each next one.
const FIRST_ROUND: usize = 50;

/// Newton steps of one attempt at most.
const NEWTON: usize = 50;

/// The loss of a margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarginLoss {
    /// `log(1 + exp(−m))`.
    Logistic,
    /// `max(0, 1 − m)²`.
    SquaredHinge,
}

impl MarginLoss {
    /// The loss, how fast it falls with the margin, and its curvature.
    pub(crate) fn at(self, m: f64) -> (f64, f64, f64) {
        match self {
            Self::Logistic => {
                let e = (-m.abs()).exp();
                let (loss, fall) = match m > 0.0 {
                    true => (e.ln_1p(), e / (1.0 + e)),
                    false => (e.ln_1p() - m, 1.0 / (1.0 + e)),
                };
                (loss, fall, fall * (1.0 - fall))
            }
            Self::SquaredHinge => {
                let slack = (1.0 - m).max(0.0);
                (slack * slack, 2.0 * slack, if slack > 0.0 { 2.0 } else { 0.0 })
            }
        }
    }
}

/// The mean loss of margins less `ε ρ`, with a penalty on squares. A point holds the coefficients, the intercept and `ρ`.
pub(crate) struct Margins<'d, 'a> {
    pub(crate) design: &'d Design<'a>,
    /// 1 or −1.
    pub(crate) signs: &'d [f64],
    pub(crate) loss: MarginLoss,
    pub(crate) adversary: Adversary,
    /// Whether each feature can be perturbed.
    pub(crate) moves: &'d [bool],
    /// The strength of half the square of each coefficient, and of the intercept.
    pub(crate) ridge: &'d [f64],
    pub(crate) ridge_b: f64,
    /// The strength of the absolute value of each coefficient.
    pub(crate) l1: &'d [f64],
    pub(crate) intercept: bool,
}

/// A solution.
pub(crate) struct Solved {
    /// The coefficients in units of the design.
    pub(crate) coefficients: Vec<f64>,
    pub(crate) intercept: f64,
    pub(crate) objective: f64,
    /// The largest entry of the smallest subgradient, as a share of that at 0.
    pub(crate) residual: f64,
    pub(crate) interrupted: bool,
}

impl Objective for Margins<'_, '_> {
    fn dim(&self) -> usize {
        self.design.d() + 2
    }

    fn value(&self, x: &[f64]) -> f64 {
        let mut gradient = vec![0.0; self.dim()];
        self.gradient(x, &mut gradient)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let (d, total) = (self.design.d(), self.design.total());
        let (z, b, rho) = (&x[..d], x[d], x[d + 1]);
        // What blocks of rows add to the slope of ρ, which are then added up in order.
        let falls = Mutex::new(Vec::new());
        let (sum, slope) = self.design.sweep(z, b, &mut out[..d], |rows, margins| {
            let (mut sum, mut fallen, first) = (0.0, 0.0, rows.start);
            for (row, margin) in rows.zip(margins) {
                let (sign, weight) = (self.signs[row], self.design.weight(row));
                let (loss, fall, _) = self.loss.at(sign * *margin - self.adversary.radius * rho);
                sum += weight * loss;
                fallen += weight * fall;
                *margin = -weight * sign * fall;
            }
            if let Ok(mut falls) = falls.lock() {
                falls.push((first, fallen));
            }
            sum
        });
        let mut falls = falls.into_inner().unwrap_or_default();
        falls.sort_unstable_by_key(|(first, _)| *first);
        let fallen: f64 = falls.iter().map(|(_, fallen)| fallen).sum();
        for ((g, z), ridge) in out[..d].iter_mut().zip(z).zip(self.ridge) {
            *g = *g / total + ridge * z;
        }
        out[d] = if self.intercept { slope / total + self.ridge_b * b } else { 0.0 };
        out[d + 1] = self.adversary.radius * fallen / total;
        let squares: f64 = z.iter().zip(self.ridge).map(|(z, ridge)| ridge * z * z).sum();
        sum / total + 0.5 * (squares + self.ridge_b * b * b)
    }
}

impl Margins<'_, '_> {
    fn cone(&self) -> Cone<'_> {
        Cone { norm: self.adversary.norm, moves: self.moves, l1: self.l1 }
    }

    /// Brings `ρ` to the norm of the coefficients: the value there is that of the objective.
    fn tighten(&self, x: &mut [f64]) {
        let d = self.design.d();
        x[d + 1] = self.cone().size(&x[..d]);
    }

    /// The largest entry of the smallest subgradient at a point whose `ρ` is the norm.
    fn distance(&self, x: &[f64], gradient: &[f64]) -> f64 {
        let d = self.design.d();
        let (rho, pressure) = (x[d + 1], gradient[d + 1]);
        let mut most = gradient[d].abs();
        // Of `l2` at 0 the slope of the norm has any direction.
        let mut free = 0.0;
        let is_l2 = self.adversary.norm == gradus_optim::AdversarialNorm::L2;
        for j in 0..d {
            let (z, g, l1) = (x[j], gradient[j], self.l1[j]);
            let off = match (self.moves[j], is_l2) {
                (true, false) => beyond(z, g, l1 + pressure),
                (true, true) if rho > 0.0 => beyond(z, g + pressure * z / rho, l1),
                (true, true) => {
                    let off = beyond(0.0, g, l1);
                    free += off * off;
                    0.0
                }
                (false, _) => beyond(z, g, l1),
            };
            most = most.max(off);
        }
        most.max(free.sqrt() - pressure)
    }

    /// The lowest point, from `start` (coefficients and intercept) if there is one. `watch` gets the objective of each iteration
    /// and says whether to stop.
    pub(crate) fn solve(
        &self,
        start: Option<&[f64]>,
        (tol, max_iter): (f64, usize),
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Solved> {
        let d = self.design.d();
        let mut x = vec![0.0; d + 2];
        let mut gradient = vec![0.0; d + 2];
        let at_zero = self.gradient(&x, &mut gradient);
        let size = gradient[..=d].iter().fold(f64::MIN_POSITIVE, |most, g| most.max(g.abs()));
        if let Some(start) = start {
            let mut warm = [&start[..=d], &[0.0]].concat();
            self.tighten(&mut warm);
            if self.full(&warm) < at_zero {
                x = warm;
            }
        }
        let (mut done, mut round) = (0, FIRST_ROUND);
        let interrupted = Cell::new(false);
        let mut residual;
        loop {
            self.gradient(&x, &mut gradient);
            residual = self.distance(&x, &gradient) / size;
            if residual <= tol || done >= max_iter || interrupted.get() {
                break;
            }
            let control = Control {
                max_iter: round.min(max_iter - done),
                gradient_tol: 0.1 * tol * size,
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
            let found = Proximal::fista().first_step(16.0).control(control).minimize_with(
                self,
                &self.cone(),
                &x,
                &mut each,
            )?;
            done += found.iterations.max(1);
            let mut there = found.x;
            self.tighten(&mut there);
            // Momentum may end above where it began.
            if self.full(&there) <= self.full(&x) {
                x = there;
            }
            if d <= FORMED && !interrupted.get() {
                let limits = (tol * size, NEWTON.min(max_iter.saturating_sub(done)));
                let steps = self.polish(&mut x, limits, &mut |value| {
                    let stop = watch(value);
                    interrupted.set(stop);
                    stop
                });
                done += steps;
            }
            round *= 2;
        }
        Ok(Solved {
            objective: self.full(&x),
            intercept: x[d],
            coefficients: x[..d].to_vec(),
            residual,
            interrupted: interrupted.get() && residual > tol,
        })
    }

    /// The objective with its absolute values, at a point whose `ρ` is the norm.
    fn full(&self, x: &[f64]) -> f64 {
        self.value(x) + self.cone().absolute(&x[..self.design.d()])
    }

    /// Newton steps among points with the same zeros and signs, where the objective is smooth: from near a solution a few steps
    /// lead there. Gives the number of steps.
    fn polish(
        &self,
        x: &mut Vec<f64>,
        (tol, max_iter): (f64, usize),
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> usize {
        let d = self.design.d();
        let mut gradient = vec![0.0; d + 2];
        self.gradient(x, &mut gradient);
        let (mut residual, mut full) = (self.distance(x, &gradient), self.full(x));
        for done in 0..max_iter {
            if residual <= tol {
                return done;
            }
            let Some(step) = self.newton_step(x, &gradient) else { return done };
            let mut moved = false;
            let mut t = 1.0;
            for _ in 0..20 {
                let mut there = x.clone();
                for (at, (x, s)) in there.iter_mut().zip(&step).enumerate() {
                    let next = *x + t * s;
                    // A coefficient that would change its sign stops at 0.
                    *x = if at < d && self.has_kink(at) && next * *x < 0.0 { 0.0 } else { next };
                }
                self.tighten(&mut there);
                let value =
                    self.gradient(&there, &mut gradient) + self.cone().absolute(&there[..d]);
                let left = self.distance(&there, &gradient);
                if value <= full + 1e-14 * full.abs() && (left < residual || value < full) {
                    (*x, residual, full, moved) = (there, left, value, true);
                    break;
                }
                t *= 0.5;
            }
            if !moved || watch(full) {
                return done + 1;
            }
        }
        max_iter
    }

    /// Whether the objective has a kink where this coefficient is 0.
    fn has_kink(&self, at: usize) -> bool {
        let by_norm = self.moves[at] && self.adversary.norm == gradus_optim::AdversarialNorm::Linf;
        by_norm || self.l1[at] > 0.0
    }

    /// The Newton step over the coefficients that are not held at 0, and the intercept.
    fn newton_step(&self, x: &[f64], gradient: &[f64]) -> Option<Vec<f64>> {
        let (d, n, total) = (self.design.d(), self.design.n(), self.design.total());
        let (rho, pressure, radius) = (x[d + 1], gradient[d + 1], self.adversary.radius);
        let is_l2 = self.adversary.norm == gradus_optim::AdversarialNorm::L2;
        if is_l2 && rho == 0.0 {
            return None;
        }
        let mut margins = vec![0.0; n];
        self.design.times(&x[..d], x[d], &mut margins);
        let mut curvature = vec![0.0; n];
        for (row, (m, c)) in margins.iter().zip(&mut curvature).enumerate() {
            let (_, _, own) = self.loss.at(self.signs[row] * m - radius * rho);
            *c = self.design.weight(row) * own / total;
        }
        let (gram, cross) = self.design.gram(Some(&curvature));
        let signed: Vec<f64> = curvature.iter().zip(self.signs).map(|(c, t)| c * t).collect();
        let mut with_sign = vec![0.0; d];
        self.design.transposed_times(&signed, &mut with_sign);
        let (all, all_signed): (f64, f64) = (curvature.iter().sum(), signed.iter().sum());
        let free: Vec<usize> = (0..d).filter(|&j| !self.has_kink(j) || x[j] != 0.0).collect();
        // The slope of the norm.
        let nu: Vec<f64> = (0..d)
            .map(|j| match (self.moves[j], is_l2) {
                (false, _) => 0.0,
                (true, true) => x[j] / rho,
                (true, false) if x[j] == 0.0 => 0.0,
                (true, false) => x[j].signum(),
            })
            .collect();
        let m = free.len() + 1;
        let mut hessian = vec![0.0; m * m];
        let mut slope = vec![0.0; m];
        for (a, &j) in free.iter().enumerate() {
            for (b, &k) in free.iter().enumerate() {
                let by_norm = radius * radius * all * nu[j] * nu[k]
                    - radius * (with_sign[j] * nu[k] + nu[j] * with_sign[k]);
                let bend = if is_l2 {
                    let own = if j == k && self.moves[j] { 1.0 } else { 0.0 };
                    pressure / rho * (own - nu[j] * nu[k])
                } else {
                    0.0
                };
                hessian[a * m + b] = gram[j * d + k] + by_norm + bend;
            }
            hessian[a * m + a] += self.ridge[j];
            if self.intercept {
                let border = cross[j] - radius * all_signed * nu[j];
                hessian[a * m + m - 1] = border;
                hessian[(m - 1) * m + a] = border;
            }
            let absolute = if x[j] == 0.0 { 0.0 } else { self.l1[j] * x[j].signum() };
            slope[a] = gradient[j] + pressure * nu[j] + absolute;
        }
        hessian[m * m - 1] = if self.intercept { all + self.ridge_b } else { 1.0 };
        slope[m - 1] = gradient[d];
        let found = solve_damped(&hessian, &slope)?;
        let mut step = vec![0.0; d + 2];
        for (a, &j) in free.iter().enumerate() {
            step[j] = found[a];
        }
        step[d] = found[m - 1];
        Some(step)
    }
}

/// How far the nearest slope of `κ |z|` is from taking away the gradient.
fn beyond(z: f64, g: f64, kappa: f64) -> f64 {
    if z == 0.0 { (g.abs() - kappa).max(0.0) } else { (g + kappa * z.signum()).abs() }
}

/// `−H⁻¹ g`, with a little more on the diagonal where `H` is singular.
fn solve_damped(hessian: &[f64], gradient: &[f64]) -> Option<Vec<f64>> {
    let m = gradient.len();
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
