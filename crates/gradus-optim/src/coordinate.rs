//! Coordinate descent: one coordinate at a time, to its own minimum.

use crate::control::{Callback, Control, Recorder, control_setters};
use crate::objective::{Counted, Objective};
use crate::outcome::{Outcome, Reason};
use crate::problem::{LeastSquares, Quadratic};
use crate::proximal::{ElasticNetPenalty, Penalty as _};
use crate::vector;
use gradus_base::Result;
use gradus_base::random::Stream;
use std::ops::ControlFlow;

/// An objective whose partial derivatives are cheap, given a quantity that is kept up to date, such as
/// the residuals of a regression.
pub trait CoordinateWise: Objective {
    /// The quantities kept up to date while `x` moves.
    type Kept;

    /// Computes the maintained quantity for a point.
    fn keep(&self, x: &[f64]) -> Self::Kept;

    /// The slope along coordinate `j`.
    fn slope(&self, kept: &Self::Kept, x: &[f64], j: usize) -> f64;

    /// The largest curvature along coordinate `j`; 0 leaves the coordinate alone.
    fn curvature(&self, j: usize) -> f64;

    /// Coordinate `j` of the point has moved by `by`.
    fn moved(&self, kept: &mut Self::Kept, j: usize, by: f64);
}

/// The order in which coordinates are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Coordinates from first to last.
    #[default]
    Cyclic,
    /// A new random order for each sweep.
    Shuffled {
        /// Seed of the order.
        seed: u64,
    },
}

/// Coordinate descent, with an elastic net penalty if wanted:
/// `xⱼ ← prox(xⱼ − slopeⱼ/curvatureⱼ)` for one `j` after another.
///
/// An iteration is a sweep over all coordinates. The method of choice for lasso and other problems
/// where a coordinate costs a `dim`-th of a gradient; for a general objective it would cost a whole
/// one. The gradient norm of the trace is that of the proximal gradient mapping with step 1/L of each
/// coordinate, taken over the sweep.
///
/// ```
/// use gradus_data::Dense;
/// use gradus_optim::{Coordinate, problem::LeastSquares, proximal::ElasticNetPenalty};
///
/// let x = Dense::from_rows(&[[1.0, 0.1], [2.0, -0.1], [3.0, 0.05]]);
/// let f = LeastSquares::new(x, vec![1.0, 2.0, 3.0], 0.0)?;
/// let found = Coordinate::new().minimize(&f, &ElasticNetPenalty::l1(0.1), &[0.0, 0.0])?;
/// assert!(found.x[0] > 0.9 && found.x[1] == 0.0);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Coordinate {
    /// The order in which coordinates are visited.
    pub order: Order,
    /// Stopping rules and recording options; `max_iter` counts sweeps.
    pub control: Control,
}

impl Coordinate {
    /// Makes a solver that visits coordinates from first to last, in 1000 sweeps at most.
    pub fn new() -> Self {
        Self::default()
    }

    /// The order in which coordinates are visited.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    control_setters!();

    /// Minimises `objective + penalty`.
    ///
    /// # Errors
    /// If the start does not fit or has no finite value, or a weight is negative.
    pub fn minimize<O: CoordinateWise>(
        &self,
        objective: &O,
        penalty: &ElasticNetPenalty,
        start: &[f64],
    ) -> Result<Outcome> {
        self.minimize_with(objective, penalty, start, &mut |_| ControlFlow::Continue(()))
    }

    /// Minimises, and calls `watch` after each sweep.
    ///
    /// # Errors
    /// As [`minimize`](Self::minimize).
    pub fn minimize_with<O: CoordinateWise>(
        &self,
        objective: &O,
        penalty: &ElasticNetPenalty,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome> {
        penalty.check(objective.dim())?;
        let mut recorder = Recorder::new(&self.control, watch, objective, start)?;
        let f = Counted::new(objective);
        let mut x = start.to_vec();
        let mut kept = objective.keep(&x);
        // The move that coordinate j would make, and that times its curvature.
        let step = |kept: &O::Kept, x: &[f64], j: usize| -> Option<(f64, f64)> {
            let most = objective.curvature(j);
            if most <= 0.0 {
                return None;
            }
            let slope = objective.slope(kept, x, j);
            let to = penalty.prox_one(1.0 / most, x[j] - slope / most);
            Some((to, (to - x[j]) * most))
        };
        let square = |kept: &O::Kept, x: &[f64], j: usize| {
            step(kept, x, j).map_or(0.0, |(_, mapping)| mapping * mapping)
        };
        let mut mapping = (0..x.len()).map(|j| square(&kept, &x, j)).sum::<f64>().sqrt();
        let mut value = f.value(&x) + penalty.value(&x);
        let mut ended = recorder.begin(&x, value, mapping)?;
        let mut last = x.clone();
        let reason = loop {
            if let Some(reason) = ended {
                break reason;
            }
            last.copy_from_slice(&x);
            let order = match self.order {
                Order::Cyclic => Vec::new(),
                Order::Shuffled { seed } => {
                    Stream::new(seed, "optim.sweep", recorder.iteration as u64).permutation(x.len())
                }
            };
            let mut squares = 0.0;
            for at in 0..x.len() {
                let j = order.get(at).copied().unwrap_or(at);
                let Some((to, mapping)) = step(&kept, &x, j) else { continue };
                squares += mapping * mapping;
                let by = to - x[j];
                if by != 0.0 {
                    x[j] = to;
                    objective.moved(&mut kept, j, by);
                }
            }
            mapping = squares.sqrt();
            let next = f.value(&x) + penalty.value(&x);
            if !next.is_finite() {
                x = last;
                break Reason::Diverged;
            }
            value = next;
            ended = recorder.after(&x, value, mapping, vector::distance(&x, &last));
        };
        Ok(recorder.end(&f, x, (value, mapping), reason))
    }
}

impl CoordinateWise for Quadratic {
    /// `A x`.
    type Kept = Vec<f64>;

    fn keep(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        crate::Hessian::product(self, x, &mut out);
        out
    }
    fn slope(&self, kept: &Vec<f64>, _: &[f64], j: usize) -> f64 {
        kept[j] - self.vector()[j]
    }
    fn curvature(&self, j: usize) -> f64 {
        self.matrix().row(j)[j]
    }
    fn moved(&self, kept: &mut Vec<f64>, j: usize, by: f64) {
        vector::axpy(by, self.matrix().row(j), kept);
    }
}

impl CoordinateWise for LeastSquares {
    /// The errors `x·w − y` of all samples.
    type Kept = Vec<f64>;

    fn keep(&self, w: &[f64]) -> Vec<f64> {
        let row = |i: usize| vector::dot(self.samples().row(i), w) - self.targets()[i];
        (0..self.targets().len()).map(row).collect()
    }
    fn slope(&self, kept: &Vec<f64>, w: &[f64], j: usize) -> f64 {
        let sum: f64 = kept.iter().enumerate().map(|(i, e)| e * self.samples().row(i)[j]).sum();
        sum / kept.len() as f64 + self.ridge() * w[j]
    }
    fn curvature(&self, j: usize) -> f64 {
        let n = self.targets().len();
        let squares: f64 = (0..n).map(|i| self.samples().row(i)[j].powi(2)).sum();
        squares / n as f64 + self.ridge()
    }
    fn moved(&self, kept: &mut Vec<f64>, j: usize, by: f64) {
        for (i, e) in kept.iter_mut().enumerate() {
            *e += by * self.samples().row(i)[j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Proximal;
    use gradus_data::Dense;

    #[test]
    fn a_diagonal_quadratic_takes_one_sweep() {
        let f = Quadratic::diagonal(&[1.0, 7.0, 0.0, 100.0]);
        let none = ElasticNetPenalty::new(0.0, 0.0);
        let found = Coordinate::new().minimize(&f, &none, &[1.0, -2.0, 5.0, 3.0]).unwrap();
        assert_eq!(found.x, [0.0, 0.0, 5.0, 0.0]);
        assert!(found.iterations <= 2 && found.converged());
    }

    #[test]
    fn a_lasso_is_solved_as_by_proximal_descent_in_any_order() {
        let mut stream = Stream::new(2, "test", 0);
        let x = Dense::from_fn(60, 12, |_, _| stream.normal());
        let y: Vec<f64> =
            (0..60).map(|i| 2.0 * x.row(i)[0] - x.row(i)[3] + 0.1 * stream.normal()).collect();
        let f = LeastSquares::new(x, y, 0.0).unwrap();
        for penalty in [ElasticNetPenalty::l1(0.1), ElasticNetPenalty::new(0.05, 0.5)] {
            let expected = Proximal::fista().max_iter(20_000).gradient_tol(1e-11);
            let expected = expected.minimize(&f, &penalty, &[0.0; 12]).unwrap();
            for order in [Order::Cyclic, Order::Shuffled { seed: 3 }] {
                let solver = Coordinate::new().order(order).gradient_tol(1e-11);
                let found = solver.minimize(&f, &penalty, &[1.0; 12]).unwrap();
                assert!(found.converged());
                assert!(vector::distance(&found.x, &expected.x) < 1e-9, "{order:?}");
                let values = found.trace.values();
                assert!(values.windows(2).all(|w| w[1] <= w[0] + 1e-13), "it never rises");
            }
        }
    }
}
