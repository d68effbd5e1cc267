//! Two classes with an L1 penalty and many features: Newton steps over a working set of columns.
//!
//! Each step minimises the quadratic model and the penalty over the columns that can matter, one
//! coordinate at a time, with the product of the step and the features kept up to date. The set
//! holds the columns in use and those that break their condition most; all columns are looked at
//! after every step.

use super::newton::Found;
use super::objective::{Binary, loss_and_error};
use crate::parallel;
use gradus_core::iterate::OwnLoop;
use gradus_core::report::StopReason;
use gradus_data::Matrix;
use gradus_kernel::{Level, dense};
use gradus_optim::Objective as _;

/// A column of the design.
enum Column<'c> {
    Dense(&'c [f64]),
    Sparse(&'c [u32], &'c [f64]),
}

impl Column<'_> {
    fn add(&self, level: Level, by: f64, v: &mut [f64]) {
        match self {
            Self::Dense(x) => dense::add_scaled(level, by, x, v),
            Self::Sparse(rows, values) => {
                rows.iter().zip(*values).for_each(|(&r, x)| v[r as usize] += by * x);
            }
        }
    }

    fn square(&self, c: &[f64]) -> f64 {
        match self {
            Self::Dense(x) => x.iter().zip(c).map(|(x, c)| c * x * x).sum(),
            Self::Sparse(rows, values) => {
                rows.iter().zip(*values).map(|(&r, x)| c[r as usize] * x * x).sum()
            }
        }
    }
}

impl Binary<'_, '_> {
    /// Minimises the objective plus `l1 ‖w‖₁` over many features. The design is not centred.
    pub(super) fn coordinate(
        &self,
        l1: f64,
        (tol, max_iter): (f64, usize),
        start: Option<&[f64]>,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Found {
        let (n, d, total) = (self.design.n(), self.design.d(), self.design.total());
        let level = Level::best();
        let penalty = |x: &[f64]| l1 * x[..d].iter().map(|w| w.abs()).sum::<f64>();
        let by_column = match self.design.matrix() {
            // Column after column, so that a coordinate reads one piece of memory.
            Matrix::Dense(x) => Some(x.transpose()),
            Matrix::Sparse(_) => None,
        };
        let column = |j: usize| match (&by_column, self.design.columns()) {
            (Some(x), _) => Column::Dense(x.row(j)),
            (None, Some(columns)) => {
                let (rows, values) = columns.row(j);
                Column::Sparse(rows, values)
            }
            (None, None) => Column::Sparse(&[], &[]),
        };
        let scale = self.design.scale();
        let mut x = vec![0.0; d + 1];
        let mut gradient = vec![0.0; d + 1];
        let mut value = self.gradient(&x, &mut gradient);
        if self.intercept {
            // The intercept alone has a closed form.
            let positive: f64 = (0..n)
                .filter(|&row| self.signs[row] > 0.0)
                .map(|row| self.design.weight(row))
                .sum();
            x[d] = (positive / (total - positive)).ln();
            value = self.gradient(&x, &mut gradient);
        }
        let size = gradient.iter().fold(f64::MIN_POSITIVE, |most, g| most.max(g.abs()));
        // A model of other data may be worse than none.
        if let Some(start) = start {
            let mut there = vec![0.0; d + 1];
            let found = self.gradient(start, &mut there);
            if found + penalty(start) < value + penalty(&x) {
                (x, value, gradient) = (start.to_vec(), found, there);
            }
        }
        let broken = |j: usize, x: &[f64], gradient: &[f64]| {
            let (w, g) = (x[j], gradient[j]);
            if w == 0.0 { (g.abs() - l1).max(0.0) } else { (g + l1 * w.signum()).abs() }
        };
        let distance = |x: &[f64], gradient: &[f64]| {
            (0..d).map(|j| broken(j, x, gradient)).fold(gradient[d].abs(), f64::max)
        };
        let mut residual = distance(&x, &gradient) / size;
        let mut stop_reason = StopReason::MaxIterations;
        let mut margins = vec![0.0; n];
        let mut room = 64;
        for _ in 0..max_iter {
            if residual <= tol {
                stop_reason = StopReason::Converged;
                break;
            }
            if fit_loop.stopped() {
                stop_reason = StopReason::Interrupted;
                break;
            }
            let used = x[..d].iter().filter(|w| **w != 0.0).count();
            room = room.max(2 * used + 64).min(d);
            let mut breaking: Vec<(f64, usize)> = (0..d)
                .filter(|&j| x[j] == 0.0)
                .map(|j| (broken(j, &x, &gradient), j))
                .filter(|(off, _)| *off > 0.0)
                .collect();
            let more = room - used.min(room);
            if breaking.len() > more {
                breaking.select_nth_unstable_by(more, |a, b| b.0.total_cmp(&a.0));
                breaking.truncate(more);
            }
            let mut set: Vec<usize> = (0..d).filter(|&j| x[j] != 0.0).collect();
            set.extend(breaking.iter().map(|(_, j)| *j));
            set.sort_unstable();
            // Curvature of every sample at this point.
            self.design.times(&x[..d], x[d], &mut margins);
            let curvature = parallel::map_below(n, 16 * n, |row| {
                let (_, error) = loss_and_error(margins[row]);
                self.design.weight(row) * error * (1.0 - error) / total
            });
            let curvatures = parallel::map_below(set.len(), self.design.size(), |at| {
                let j = set[at];
                column(j).square(&curvature) / (scale[j] * scale[j]) + self.ridge
            });
            let whole: f64 = curvature.iter().sum();
            let mut step = vec![0.0; d + 1];
            // Curvature times the product of the step with the features.
            let mut turned = vec![0.0; n];
            let inner = (0.1 * residual).clamp(1e-14, 1e-2) * size;
            let mut curved = vec![0.0; n];
            for cycle in 0..200 {
                let mut most: f64 = 0.0;
                for (&j, &h) in set.iter().zip(&curvatures) {
                    let one = column(j);
                    // Σ c x (X s): the product is kept as X s, weighted when it is looked at.
                    let along = match &one {
                        Column::Dense(x) => dense::dot(level, x, &curved) / scale[j],
                        Column::Sparse(rows, values) => {
                            rows.iter()
                                .zip(*values)
                                .map(|(&r, x)| x * curvature[r as usize] * turned[r as usize])
                                .sum::<f64>()
                                / scale[j]
                        }
                    };
                    let at = x[j] + step[j];
                    let slope = gradient[j] + along + self.ridge * step[j];
                    if h <= 0.0 {
                        continue;
                    }
                    let aim = at - slope / h;
                    let shrink = l1 / h;
                    let to = if aim > shrink {
                        aim - shrink
                    } else if aim < -shrink {
                        aim + shrink
                    } else {
                        0.0
                    };
                    let by = to - at;
                    if by != 0.0 {
                        step[j] += by;
                        one.add(level, by / scale[j], &mut turned);
                        if let Column::Dense(x) = &one {
                            let by = by / scale[j];
                            for ((o, x), c) in curved.iter_mut().zip(*x).zip(&curvature) {
                                *o += by * x * c;
                            }
                        }
                        most = most.max(by.abs() * h);
                    }
                }
                if self.intercept && whole > 0.0 {
                    let along: f64 = turned.iter().zip(&curvature).map(|(t, c)| t * c).sum();
                    let by = -(gradient[d] + along) / whole;
                    step[d] += by;
                    turned.iter_mut().for_each(|t| *t += by);
                    if by_column.is_some() {
                        curved.iter_mut().zip(&curvature).for_each(|(o, c)| *o += by * c);
                    }
                    most = most.max(by.abs() * whole);
                }
                if most <= inner || (cycle % 16 == 15 && fit_loop.stopped()) {
                    break;
                }
            }
            let full = value + penalty(&x);
            let next =
                |t: f64| -> Vec<f64> { x.iter().zip(&step).map(|(x, s)| x + t * s).collect() };
            let slope: f64 = gradient.iter().zip(&step).map(|(g, s)| g * s).sum::<f64>()
                + penalty(&next(1.0))
                - penalty(&x);
            let (mut t, mut moved) = (1.0, false);
            let mut there_gradient = vec![0.0; d + 1];
            for _ in 0..50 {
                let there = next(t);
                let found = self.gradient(&there, &mut there_gradient);
                if found + penalty(&there) <= full + 1e-4 * t * slope.min(0.0) + 1e-15 * full {
                    (x, value) = (there, found);
                    std::mem::swap(&mut gradient, &mut there_gradient);
                    moved = true;
                    break;
                }
                t *= 0.5;
            }
            if !moved {
                break;
            }
            let before = residual;
            residual = distance(&x, &gradient) / size;
            fit_loop.iteration(value + penalty(&x));
            if residual >= before && residual < 1e-11 {
                break;
            }
        }
        if residual <= tol && stop_reason == StopReason::MaxIterations {
            stop_reason = StopReason::Converged;
        }
        Found { objective: value + penalty(&x), point: x, residual, stop_reason }
    }
}
