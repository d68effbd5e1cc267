//! Proximal gradient descent: a smooth function plus a simple one.

use crate::control::{Callback, Control, Recorder, control_setters};
use crate::objective::{Counted, Objective};
use crate::outcome::{Outcome, Reason};
use crate::project::Set;
use crate::vector;
use gradus_base::{Error, Result};
use std::ops::ControlFlow;

/// A function that is simple enough for its proximal step to be known:
/// `prox(x) = argmin over z of h(z) + ‖z − x‖² / (2 step)`.
pub trait Penalty {
    /// Returns the value of the penalty; infinite outside its domain.
    fn value(&self, x: &[f64]) -> f64;

    /// Replaces `x` by its proximal step of this length.
    fn prox(&self, step: f64, x: &mut [f64]);

    /// Checks its constants, and that it is one of points with `dim` coordinates.
    ///
    /// # Errors
    /// Says what does not fit.
    fn check(&self, dim: usize) -> Result<()>;
}

fn weight(name: &str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::parameter(name, value, "must be finite and at least 0"))
}

/// `|x|` less `cut`, towards 0.
#[inline]
pub fn soft_threshold(x: f64, cut: f64) -> f64 {
    (x.abs() - cut).max(0.0).copysign(x)
}

/// `l1 ‖x‖₁ + ½ l2 ‖x‖²`: the lasso (`l2 = 0`), ridge (`l1 = 0`) and the elastic net between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElasticNetPenalty {
    /// Weight of the absolute values: makes zeros.
    pub l1: f64,
    /// Weight of half the squares: makes everything smaller.
    pub l2: f64,
}

impl ElasticNetPenalty {
    /// The absolute values alone.
    pub fn l1(weight: f64) -> Self {
        Self { l1: weight, l2: 0.0 }
    }

    /// Half the squares alone.
    pub fn l2(weight: f64) -> Self {
        Self { l1: 0.0, l2: weight }
    }

    /// Both.
    pub fn new(l1: f64, l2: f64) -> Self {
        Self { l1, l2 }
    }

    /// The proximal step of one coordinate.
    #[inline]
    pub fn prox_one(&self, step: f64, x: f64) -> f64 {
        soft_threshold(x, step * self.l1) / (1.0 + step * self.l2)
    }
}

impl Penalty for ElasticNetPenalty {
    fn value(&self, x: &[f64]) -> f64 {
        let sizes: f64 = if self.l1 > 0.0 { x.iter().map(|x| x.abs()).sum() } else { 0.0 };
        self.l1 * sizes + 0.5 * self.l2 * vector::dot(x, x)
    }
    fn prox(&self, step: f64, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = self.prox_one(step, *x));
    }
    fn check(&self, _: usize) -> Result<()> {
        weight("l1", self.l1)?;
        weight("l2", self.l2)
    }
}

/// `weight Σ √size ‖x of a group‖₂`: whole groups become 0 together (the group lasso).
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Weight of the penalty.
    pub weight: f64,
    /// The first coordinate of each group, ascending, the first 0; a group ends where the next
    /// begins.
    pub firsts: Vec<usize>,
}

impl Groups {
    /// Groups that begin at these coordinates.
    pub fn new(weight: f64, firsts: Vec<usize>) -> Self {
        Self { weight, firsts }
    }

    fn ranges(&self, dim: usize) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let ends = self.firsts.iter().skip(1).copied().chain([dim]);
        self.firsts.iter().zip(ends).map(|(&first, end)| first..end)
    }
}

impl Penalty for Groups {
    fn value(&self, x: &[f64]) -> f64 {
        let of =
            |range: std::ops::Range<usize>| (range.len() as f64).sqrt() * vector::norm(&x[range]);
        self.weight * self.ranges(x.len()).map(of).sum::<f64>()
    }
    fn prox(&self, step: f64, x: &mut [f64]) {
        for range in self.ranges(x.len()) {
            let cut = step * self.weight * (range.len() as f64).sqrt();
            let group = &mut x[range];
            let norm = vector::norm(group);
            let keep = if norm > cut { 1.0 - cut / norm } else { 0.0 };
            vector::scale(keep, group);
        }
    }
    fn check(&self, dim: usize) -> Result<()> {
        weight("weight", self.weight)?;
        let rises = self.firsts.windows(2).all(|w| w[0] < w[1]);
        let starts = self.firsts.first().is_none_or(|&first| first == 0)
            && (dim == 0) == self.firsts.is_empty();
        if rises && starts && self.firsts.last().is_none_or(|&last| last < dim) {
            return Ok(());
        }
        let rule = format!("must rise from 0 and stay below {dim}");
        Err(Error::parameter("firsts", format!("{:?}", self.firsts), rule))
    }
}

/// 0 in a set and infinite outside: its proximal step is the projection.
pub struct Indicator<'a>(pub &'a dyn Set);

impl Penalty for Indicator<'_> {
    fn value(&self, _: &[f64]) -> f64 {
        // Only ever asked at projected points.
        0.0
    }
    fn prox(&self, _: f64, x: &mut [f64]) {
        self.0.project(x);
    }
    fn check(&self, dim: usize) -> Result<()> {
        self.0.check(dim)
    }
}

/// Proximal gradient descent for `f + h`, with `f` smooth and `h` a [`Penalty`]:
/// `x ← prox(x − η ∇f(x))`.
///
/// Plain it is ISTA, with an error that falls as `1/k`; accelerated, FISTA (Beck and Teboulle,
/// 2009), as `1/k²`: `F(xₖ) − F* ≤ 2 L ‖x₀ − x*‖² / (k + 1)²`. Restarted whenever the momentum points
/// uphill (O'Donoghue and Candès, 2015) it is also linear where `f` is strongly convex. The step is
/// halved until the quadratic bound holds, so `L` need not be known.
///
/// What the trace and the outcome call gradient norm is that of the gradient mapping
/// `(x − prox(x − η ∇f))/η`: 0 exactly at a solution.
///
/// ```
/// use gradus_data::Dense;
/// use gradus_optim::{Proximal, problem::LeastSquares, proximal::ElasticNetPenalty};
///
/// // A lasso: the second column is of no use, and gets exactly 0.
/// let x = Dense::from_rows(&[[1.0, 0.1], [2.0, -0.1], [3.0, 0.05]]);
/// let f = LeastSquares::new(x, vec![1.0, 2.0, 3.0], 0.0)?;
/// let found = Proximal::fista().minimize(&f, &ElasticNetPenalty::l1(0.1), &[0.0, 0.0])?;
/// assert!(found.x[0] > 0.9 && found.x[1] == 0.0);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Proximal {
    /// Whether momentum is used (FISTA).
    pub accelerated: bool,
    /// Whether the momentum starts anew when it points uphill. Default true.
    pub restart: bool,
    /// The first step, halved as need be. Default 1.
    pub first_step: f64,
    /// Stopping rules and recording options.
    pub control: Control,
}

impl Proximal {
    /// Without momentum.
    pub fn ista() -> Self {
        Self { accelerated: false, restart: true, first_step: 1.0, control: Control::default() }
    }

    /// Makes the method with momentum.
    pub fn fista() -> Self {
        Self { accelerated: true, ..Self::ista() }
    }

    /// Whether the momentum starts anew when it points uphill.
    #[must_use]
    pub fn restart(mut self, restart: bool) -> Self {
        self.restart = restart;
        self
    }

    /// The first step, halved as need be.
    #[must_use]
    pub fn first_step(mut self, step: f64) -> Self {
        self.first_step = step;
        self
    }

    control_setters!();

    /// Minimises `objective + penalty`.
    ///
    /// # Errors
    /// If the start or the penalty does not fit the objective, there is no finite value at the
    /// start, or a setting is outside its range.
    pub fn minimize(
        &self,
        objective: &dyn Objective,
        penalty: &dyn Penalty,
        start: &[f64],
    ) -> Result<Outcome> {
        self.minimize_with(objective, penalty, start, &mut |_| ControlFlow::Continue(()))
    }

    /// Minimises, and calls `watch` after each iteration.
    ///
    /// # Errors
    /// As [`minimize`](Self::minimize).
    pub fn minimize_with(
        &self,
        objective: &dyn Objective,
        penalty: &dyn Penalty,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome> {
        penalty.check(objective.dim())?;
        if !(self.first_step > 0.0 && self.first_step.is_finite()) {
            let rule = "must be finite and greater than 0";
            return Err(Error::parameter("first_step", self.first_step, rule));
        }
        let mut recorder = Recorder::new(&self.control, watch, objective, start)?;
        let f = Counted::new(objective);
        let n = start.len();
        let mut x = start.to_vec();
        // A start outside a set is no start.
        penalty.prox(f64::MIN_POSITIVE, &mut x);
        let (mut y, mut g, mut z, mut moved) =
            (x.clone(), vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut at_y = f.gradient(&y, &mut g);
        let mut value = at_y + penalty.value(&x);
        let (mut step, mut momentum) = (self.first_step, 1.0f64);
        // The gradient mapping of the first point, by a step that need not fit.
        vector::move_along(&y, -step, &g, &mut z);
        penalty.prox(step, &mut z);
        let mut mapping = vector::distance(&y, &z) / step;
        let mut ended = recorder.begin(&x, value, mapping)?;
        let reason = loop {
            if let Some(reason) = ended {
                break reason;
            }
            let Some((at_z, apart)) =
                self.bounded(&f, penalty, (&y, at_y, &g), &mut step, &mut z, &mut moved)
            else {
                break if at_y.is_finite() { Reason::Stalled } else { Reason::Diverged };
            };
            mapping = apart / step;
            value = at_z + penalty.value(&z);
            let length = vector::distance(&z, &x);
            if self.accelerated {
                vector::subtract(&z, &x, &mut y);
                // `moved` is z − y of before: uphill when it and the step disagree.
                let uphill = vector::dot(&moved, &y) < 0.0;
                if self.restart && uphill {
                    momentum = 1.0;
                }
                let next = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
                vector::scale((momentum - 1.0) / next, &mut y);
                vector::axpy(1.0, &z, &mut y);
                momentum = next;
            } else {
                y.copy_from_slice(&z);
            }
            std::mem::swap(&mut x, &mut z);
            ended = recorder.after(&x, value, mapping, length);
            if ended.is_none() {
                at_y = f.gradient(&y, &mut g);
            }
        };
        Ok(recorder.end(&f, x, (value, mapping), reason))
    }

    /// Halves the step until the value at the proximal step `z` from `y` is below the quadratic
    /// bound; gives that value and the distance from `y` to `z`.
    fn bounded(
        &self,
        f: &Counted<'_>,
        penalty: &dyn Penalty,
        (y, at_y, g): (&[f64], f64, &[f64]),
        step: &mut f64,
        z: &mut [f64],
        moved: &mut [f64],
    ) -> Option<(f64, f64)> {
        for _ in 0..100 {
            vector::move_along(y, -*step, g, z);
            penalty.prox(*step, z);
            vector::subtract(z, y, moved);
            let square = vector::dot(moved, moved);
            let bound = at_y + vector::dot(g, moved) + square / (2.0 * *step);
            let value = f.value(z);
            if value <= bound + 1e-13 * at_y.abs() {
                return Some((value, square.sqrt()));
            }
            *step *= 0.5;
        }
        None
    }
}

/// Projected gradient descent: `x ← P(x − η ∇f(x))`, for a solution that must lie in a [`Set`].
///
/// It is proximal descent with the [`Indicator`] of the set, and takes the same settings. On sets
/// that are not convex ([`RankK`](crate::project::RankK)) use it without acceleration.
///
/// ```
/// use gradus_optim::{Projected, problem::Quadratic, project::Simplex};
///
/// // The smallest variance: shares of three assets of variance 1, 2 and 4.
/// let f = Quadratic::diagonal(&[1.0, 2.0, 4.0]);
/// let found = Projected::new().minimize(&f, &Simplex::new(1.0), &[1.0, 0.0, 0.0])?;
/// assert!((found.x[0] - 4.0 / 7.0).abs() < 1e-6);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Projected {
    /// The proximal method behind it.
    pub inner: Proximal,
}

impl Default for Projected {
    fn default() -> Self {
        Self { inner: Proximal::ista() }
    }
}

impl Projected {
    /// Without momentum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the method with momentum.
    pub fn accelerated() -> Self {
        Self { inner: Proximal::fista() }
    }

    /// Stopping rules and recording options.
    #[must_use]
    pub fn control(mut self, control: Control) -> Self {
        self.inner.control = control;
        self
    }

    /// Minimises over the set.
    ///
    /// # Errors
    /// If the start or the set does not fit the objective, or there is no finite value at the start.
    pub fn minimize(
        &self,
        objective: &dyn Objective,
        set: &dyn Set,
        start: &[f64],
    ) -> Result<Outcome> {
        self.inner.minimize(objective, &Indicator(set), start)
    }
}

#[cfg(test)]
mod tests;
