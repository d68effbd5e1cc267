//! Regression that gross errors do not move.
//!
//! All losses here are made of one: a piecewise linear loss of slopes `−lo` and `hi`, rounded off by a
//! parabola of curvature `1 / δ` around 0. Its derivative `u = clamp(r / δ, −lo, hi)` at the minimum
//! satisfies `Xᵀ W u = 0` and so is feasible for the dual of the piecewise linear loss: what is lost by
//! rounding is known exactly. Huber's loss is `δ` times the one with slopes of 1.

use crate::design::{Design, bordered};
use gradus_core::iterate::OwnLoop;
use gradus_core::report::StopReason;
use gradus_kernel::linalg;

/// A regression problem with one target.
pub(super) struct Problem<'d, 'a> {
    design: &'d Design<'a>,
    y: &'d [f64],
    intercept: bool,
    /// `2 λ / s²` of each coefficient of the scaled features; empty without a penalty.
    ridge: Vec<f64>,
}

/// Stopping rules.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) tol: f64,
    pub(super) max_iter: usize,
}

/// The solution in units of the design.
pub(super) struct Found {
    pub(super) coefficients: Vec<f64>,
    pub(super) intercept: f64,
    pub(super) objective: f64,
    pub(super) certificate: (&'static str, f64),
    pub(super) stop_reason: StopReason,
    pub(super) notes: Vec<String>,
}

/// A point: coefficients, then the intercept.
type Point = Vec<f64>;

/// The value at a point, its gradient, and the gradient's size compared with the largest it can be.
struct Look {
    value: f64,
    gradient: Vec<f64>,
    share: f64,
}

/// A parabola between two straight lines.
#[derive(Clone, Copy)]
struct Rounded {
    lo: f64,
    hi: f64,
    delta: f64,
}

impl Rounded {
    fn value(self, r: f64) -> f64 {
        let Self { lo, hi, delta } = self;
        if r > hi * delta {
            hi * r - 0.5 * delta * hi * hi
        } else if r < -lo * delta {
            -lo * r - 0.5 * delta * lo * lo
        } else {
            0.5 * r * r / delta
        }
    }

    fn slope(self, r: f64) -> f64 {
        (r / self.delta).clamp(-self.lo, self.hi)
    }

    fn is_inside(self, r: f64) -> bool {
        -self.lo * self.delta <= r && r <= self.hi * self.delta
    }
}

impl<'d, 'a> Problem<'d, 'a> {
    pub(super) fn new(design: &'d Design<'a>, y: &'d [f64], intercept: bool, lambda: f64) -> Self {
        let ridge = if lambda > 0.0 {
            design.given_scale().iter().map(|s| 2.0 * lambda / (s * s)).collect()
        } else {
            Vec::new()
        };
        Self { design, y, intercept, ridge }
    }

    /// The penalty of a point.
    fn penalty(&self, point: &[f64]) -> f64 {
        0.5 * self.ridge.iter().zip(point).map(|(ridge, x)| ridge * x * x).sum::<f64>()
    }

    fn d(&self) -> usize {
        self.design.d()
    }

    fn residuals(&self, point: &Point) -> Vec<f64> {
        let mut margins = vec![0.0; self.design.n()];
        self.design.times(&point[..self.d()], point[self.d()], &mut margins);
        margins.iter().zip(self.y).map(|(m, y)| y - m).collect()
    }

    /// The sum of a loss over the samples, its gradient, both divided by the weight of all.
    fn look(
        &self,
        point: &Point,
        unit: f64,
        value: impl Fn(f64) -> f64 + Sync,
        slope: impl Fn(f64) -> f64 + Sync,
    ) -> Look {
        let (d, total) = (self.d(), self.design.total());
        let mut gradient = vec![0.0; d + 1];
        let (sum, slopes) =
            self.design.sweep(&point[..d], point[d], &mut gradient[..d], |rows, margins| {
                let mut sum = 0.0;
                for (row, margin) in rows.zip(margins) {
                    let (w, r) = (self.design.weight(row), self.y[row] - *margin);
                    sum += w * value(r);
                    *margin = -w * slope(r);
                }
                sum
            });
        gradient[d] = if self.intercept { slopes } else { 0.0 };
        gradient.iter_mut().for_each(|g| *g /= total);
        for ((g, ridge), x) in gradient.iter_mut().zip(&self.ridge).zip(point) {
            *g += ridge / unit * x;
        }
        // Columns of the design have a standard deviation of 1, slopes are at most of the order of 1.
        let share = gradient.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        Look { value: sum / total + self.penalty(point) / unit, gradient, share }
    }

    /// `XᵀDX / W` with the intercept as the last column, plus the penalty in this unit and `damping`
    /// on the diagonal.
    fn matrix(&self, weights: &[f64], unit: f64, damping: f64) -> Vec<f64> {
        let (d, total) = (self.d(), self.design.total());
        let (gram, sums) = self.design.gram(Some(weights));
        let border = self.intercept.then(|| (sums.as_slice(), weights.iter().sum()));
        let mut matrix = bordered(&gram, border, total);
        (0..=d).for_each(|i| matrix[i * (d + 1) + i] += damping);
        for (i, ridge) in self.ridge.iter().enumerate() {
            matrix[i * (d + 1) + i] += ridge / unit;
        }
        matrix
    }

    /// Minimises the rounded loss from a point by damped Newton steps. The loss is convex and the
    /// damping grows until a step goes down, so it cannot fail.
    fn rounded(
        &self,
        (rounded, unit): (Rounded, f64),
        start: Point,
        limits: Limits,
        fit_loop: &OwnLoop<'_>,
    ) -> (Point, Look, usize) {
        let look =
            |point: &Point| self.look(point, unit, |r| rounded.value(r), |r| rounded.slope(r));
        let mut point = start;
        let mut now = look(&point);
        let mut damping = 1e-10 / rounded.delta;
        let d = self.d();
        let mut steps = 0;
        while steps < limits.max_iter && now.share > limits.tol && !fit_loop.stopped() {
            steps += 1;
            let curvature: Vec<f64> = self
                .residuals(&point)
                .iter()
                .enumerate()
                .map(|(row, r)| {
                    if rounded.is_inside(*r) {
                        self.design.weight(row) / rounded.delta
                    } else {
                        0.0
                    }
                })
                .collect();
            let base = self.matrix(&curvature, unit, 0.0);
            let mut moved = false;
            for _ in 0..60 {
                let mut matrix = base.clone();
                (0..=d).for_each(|i| matrix[i * (d + 1) + i] += damping);
                if let Some(lower) = linalg::cholesky(d + 1, &matrix) {
                    let mut step: Vec<f64> = now.gradient.iter().map(|g| -g).collect();
                    linalg::cholesky_solve(d + 1, &lower, &mut step);
                    let next: Point = point.iter().zip(&step).map(|(x, s)| x + s).collect();
                    let there = look(&next);
                    let along: f64 = now.gradient.iter().zip(&step).map(|(g, s)| g * s).sum();
                    // Near the minimum the value is all rounding, but the gradient still tells.
                    let level = (there.value - now.value).abs() <= 1e-13 * now.value.abs();
                    let lower = there.value <= now.value + 1e-4 * along.min(0.0);
                    if (lower && there.value < now.value) || (level && there.share < now.share) {
                        (point, now) = (next, there);
                        damping = (damping * 0.1).max(1e-13 / rounded.delta);
                        moved = true;
                        break;
                    }
                }
                damping = (damping * 10.0).max(1e-12 / rounded.delta);
                if damping > 1e12 / rounded.delta {
                    break;
                }
            }
            if !moved {
                break;
            }
        }
        (point, now, steps)
    }

    /// Returns the starting point: the median alone.
    fn start(&self) -> Point {
        let mut point = vec![0.0; self.d() + 1];
        if self.intercept {
            point[self.d()] = self.median(self.y);
        }
        point
    }

    /// The weighted median.
    fn median(&self, values: &[f64]) -> f64 {
        let mut order: Vec<(f64, f64)> =
            values.iter().enumerate().map(|(row, x)| (*x, self.design.weight(row))).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let half = 0.5 * self.design.total();
        let mut sum = 0.0;
        for (x, weight) in &order {
            sum += weight;
            if sum >= half {
                return *x;
            }
        }
        order.last().map_or(0.0, |(x, _)| *x)
    }

    /// The piecewise linear loss with these slopes: the rounded one with less and less rounding, until the
    /// duality gap is small enough.
    pub(super) fn piecewise_linear(
        &self,
        slopes: (f64, f64),
        limits: Limits,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Found {
        self.piecewise_linear_by(slopes, limits, fit_loop, true)
    }

    /// The same; without `corners` the solution is that of a rounded loss, which depends on the
    /// samples without a jump.
    fn piecewise_linear_by(
        &self,
        (lo, hi): (f64, f64),
        limits: Limits,
        fit_loop: &mut OwnLoop<'_>,
        corners: bool,
    ) -> Found {
        let mut point = self.start();
        let spread = self.residuals(&point).iter().map(|r| r.abs()).fold(0.0f64, f64::max);
        let mut delta = if spread > 0.0 { 0.1 * spread } else { 1.0 };
        let loss = |r: f64| if r > 0.0 { hi * r } else { -lo * r };
        let total = self.design.total();
        let mean = |residuals: &[f64]| {
            let sum: f64 = residuals
                .iter()
                .enumerate()
                .map(|(row, r)| self.design.weight(row) * loss(*r))
                .sum();
            sum / total
        };
        let (mut share, mut steps) = (f64::INFINITY, 0);
        let mut best = (mean(&self.residuals(&point)) + self.penalty(&point), point.clone());
        // Twelve powers of ten are as far as double precision goes.
        for _ in 0..14 {
            let rounded = Rounded { lo, hi, delta };
            let inner =
                Limits { tol: 1e-12, max_iter: limits.max_iter.saturating_sub(steps).max(1) };
            let (next, look, taken) = self.rounded((rounded, 1.0), point.clone(), inner, fit_loop);
            steps += taken;
            point = next;
            let residuals = self.residuals(&point);
            let value = mean(&residuals) + self.penalty(&point);
            // Σ w (ρ(r) − u r), and what the gradient that is left may add. A penalty on squares adds
            // as much to the dual as to the primal at its own minimum.
            let dual: f64 = residuals
                .iter()
                .enumerate()
                .map(|(row, r)| self.design.weight(row) * (loss(*r) - rounded.slope(*r) * r))
                .sum::<f64>()
                / total;
            let loose: f64 = point.iter().zip(&look.gradient).map(|(x, g)| (x * g).abs()).sum();
            let size = value.max(f64::MIN_POSITIVE);
            if value <= best.0 {
                best = (value, point.clone());
            }
            if corners
                && self.ridge.is_empty()
                && let Some((exact, corner)) = self.corner(&point, rounded, &residuals, &mean)
                && corner <= best.0
            {
                best = (corner, exact);
            }
            let gap = (best.0 - (value - dual) + loose).max(0.0) / size;
            share = share.min(gap);
            fit_loop.iteration(best.0);
            if best.0 <= f64::EPSILON * spread {
                share = 0.0;
            }
            if share <= limits.tol || steps >= limits.max_iter || fit_loop.stopped() {
                break;
            }
            delta *= 0.1;
        }
        let d = self.d();
        let (objective, point) = best;
        Found {
            coefficients: point[..d].to_vec(),
            intercept: point[d],
            objective,
            certificate: ("duality gap (as a share of the objective)", share),
            stop_reason: reason(share <= limits.tol, fit_loop),
            notes: Vec::new(),
        }
    }

    /// The solution that goes exactly through the samples on the parabola, if they are just as many
    /// as there are parameters: a corner of the linear program.
    fn corner(
        &self,
        point: &Point,
        rounded: Rounded,
        residuals: &[f64],
        mean: &impl Fn(&[f64]) -> f64,
    ) -> Option<(Point, f64)> {
        let d = self.d();
        let inside: Vec<f64> = residuals
            .iter()
            .enumerate()
            .map(|(row, r)| {
                f64::from(u8::from(rounded.is_inside(*r) && self.design.weight(row) > 0.0))
            })
            .collect();
        let count = inside.iter().sum::<f64>() as usize;
        if count != d + usize::from(self.intercept) {
            return None;
        }
        // Newton on the squares of those alone, twice for the digits.
        let mut exact = point.clone();
        for _ in 0..3 {
            let left = self.residuals(&exact);
            let put: Vec<f64> = left.iter().zip(&inside).map(|(r, i)| r * i).collect();
            let mut right = vec![0.0; d + 1];
            self.design.transposed_times(&put, &mut right[..d]);
            right[d] = if self.intercept { put.iter().sum() } else { 0.0 };
            let total = self.design.total();
            right.iter_mut().for_each(|x| *x /= total);
            let lower = linalg::cholesky(d + 1, &self.matrix(&inside, 1.0, 0.0))?;
            linalg::cholesky_solve(d + 1, &lower, &mut right);
            exact.iter_mut().zip(&right).for_each(|(x, s)| *x += s);
        }
        if exact.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let value = mean(&self.residuals(&exact));
        Some((exact, value))
    }

    /// The scale of the residuals of the absolute fit: 1.4826 times their median size, which is the
    /// standard deviation of Gaussian noise.
    ///
    /// The fit is that of a rounded loss: a corner of the linear program is found or missed by how
    /// many samples lie on it, so that a sample of weight 3 gave another scale than three samples.
    fn scale(&self, limits: Limits, fit_loop: &mut OwnLoop<'_>) -> (Point, f64) {
        let loose = Limits { tol: 1e-4, max_iter: limits.max_iter };
        let mut point = self.start();
        // As many coefficients as samples leave no residuals; a penalty is there to tell then.
        if self.ridge.is_empty() || 2 * (self.d() + 1) < self.design.n() {
            let free = Self { ridge: Vec::new(), ..*self };
            let found = free.piecewise_linear_by((1.0, 1.0), loose, fit_loop, false);
            point = found.coefficients;
            point.push(found.intercept);
        }
        let sizes: Vec<f64> = self.residuals(&point).iter().map(|r| r.abs()).collect();
        let scale = 1.4826 * self.median(&sizes);
        (point, scale)
    }

    /// δ and where to start from.
    fn delta(
        &self,
        given: Option<f64>,
        times: f64,
        limits: Limits,
        fit_loop: &mut OwnLoop<'_>,
    ) -> (Point, f64, Vec<String>) {
        if let Some(delta) = given {
            return (self.start(), delta, Vec::new());
        }
        let (point, scale) = self.scale(limits, fit_loop);
        let most = self.y.iter().fold(0.0f64, |most, y| most.max(y.abs()));
        // Less is what rounding leaves of an exact fit.
        if scale > 1e-9 * most {
            let delta = times * scale;
            return (
                point,
                delta,
                vec![format!("delta {delta:.6e} from the median absolute residual")],
            );
        }
        // More than half of the targets are met exactly: any positive number will do.
        let delta = (1e-6 * most).max(f64::MIN_POSITIVE.sqrt());
        let note = format!("more than half of the targets are met exactly; delta is {delta:.6e}");
        (point, delta, vec![note])
    }

    /// Huber's loss.
    pub(super) fn huber(
        &self,
        delta: Option<f64>,
        limits: Limits,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Found {
        let (start, delta, notes) = self.delta(delta, 1.345, limits, fit_loop);
        let rounded = Rounded { lo: 1.0, hi: 1.0, delta };
        let (point, look, _) = self.rounded((rounded, delta), start, limits, fit_loop);
        let objective = delta * look.value;
        fit_loop.iteration(objective);
        let d = self.d();
        Found {
            coefficients: point[..d].to_vec(),
            intercept: point[d],
            objective,
            certificate: ("gradient norm (largest entry, standardised)", look.share),
            stop_reason: reason(look.share <= limits.tol, fit_loop),
            notes,
        }
    }

    /// Tukey's bisquare, by reweighting from Huber's solution.
    pub(super) fn tukey(
        &self,
        delta: Option<f64>,
        limits: Limits,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Found {
        let (start, delta, mut notes) = self.delta(delta, 4.685, limits, fit_loop);
        let near = Rounded { lo: 1.0, hi: 1.0, delta: delta * 1.345 / 4.685 };
        let (mut point, _, _) = self.rounded((near, near.delta), start, limits, fit_loop);
        let value = |r: f64| {
            let t = (1.0 - (r / delta) * (r / delta)).max(0.0);
            delta * delta / 6.0 * (1.0 - t * t * t)
        };
        let weight = |r: f64| {
            let t = (1.0 - (r / delta) * (r / delta)).max(0.0);
            t * t
        };
        let look = |point: &Point| self.look(point, 1.0, value, |r| weight(r) * r);
        let mut now = look(&point);
        let size = delta;
        let d = self.d();
        for _ in 0..limits.max_iter {
            if now.share <= limits.tol * size || fit_loop.stopped() {
                break;
            }
            let weights: Vec<f64> = self
                .residuals(&point)
                .iter()
                .enumerate()
                .map(|(row, r)| self.design.weight(row) * weight(*r))
                .collect();
            let Some(lower) = linalg::cholesky(d + 1, &self.matrix(&weights, 1.0, 1e-12)) else {
                break;
            };
            let mut step: Vec<f64> = now.gradient.iter().map(|g| -g).collect();
            linalg::cholesky_solve(d + 1, &lower, &mut step);
            point.iter_mut().zip(&step).for_each(|(x, s)| *x += s);
            let before = now.value;
            now = look(&point);
            fit_loop.iteration(now.value);
            if now.value >= before && now.share <= 1e3 * limits.tol * size {
                break;
            }
        }
        notes
            .push("bisquare is not convex: this is the minimum nearest to Huber's solution".into());
        let share = now.share / size;
        Found {
            coefficients: point[..d].to_vec(),
            intercept: point[d],
            objective: now.value,
            certificate: ("gradient norm (largest entry, standardised)", share),
            stop_reason: reason(share <= limits.tol, fit_loop),
            notes,
        }
    }
}

fn reason(converged: bool, fit_loop: &OwnLoop<'_>) -> StopReason {
    if converged {
        StopReason::Converged
    } else if fit_loop.stopped() {
        StopReason::Interrupted
    } else {
        StopReason::MaxIterations
    }
}
