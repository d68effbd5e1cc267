//! Stopping rules, recorded data, and the callback of a run.

use crate::objective::{Counted, Objective, check_point};
use crate::outcome::{Outcome, Reason, Trace, TracePoint};
use gradus_base::{Error, Result};
use gradus_core::progress::Stop;
use std::ops::ControlFlow;
use std::time::Instant;

/// The stopping rules of a run and the data it records. The first rule that holds ends the run.
///
/// Every solver has a field `control`, and setters for its fields:
///
/// ```
/// use gradus_optim::Lbfgs;
/// let solver = Lbfgs::new().max_iter(500).gradient_tol(1e-9).keep_points(true);
/// assert_eq!(solver.control.max_iter, 500);
/// ```
#[derive(Clone, Debug)]
pub struct Control {
    /// The largest number of iterations. Default 1000. Reaching it is not an error; the outcome reports it.
    pub max_iter: usize,
    /// Ends when the norm of the gradient is at most this. Default 1e-6.
    pub gradient_tol: f64,
    /// Ends when the norm of the gradient is at most this share of its norm at the start. Default 0:
    /// off.
    pub gradient_ratio: f64,
    /// Ends when an iteration lowers the value by at most this share of it (or of 1, if that is
    /// more). Default 0: off.
    pub value_tol: f64,
    /// Ends when a step is at most this share of the norm of the point (or of 1, if that is more).
    /// Default 0: off.
    pub step_tol: f64,
    /// Ends when the value is at most this. Default −∞.
    pub target: f64,
    /// Ends after this many seconds. Default ∞. A run that ends this way is not reproducible.
    pub max_seconds: f64,
    /// Whether the value, gradient norm and step of each iteration are recorded. Default true.
    pub keep_trace: bool,
    /// Whether the point of each iteration is recorded too, for example for a chart. Default false.
    pub keep_points: bool,
    /// A flag that ends the run when any thread sets it.
    pub stop: Stop,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            max_iter: 1000,
            gradient_tol: 1e-6,
            gradient_ratio: 0.0,
            value_tol: 0.0,
            step_tol: 0.0,
            target: f64::NEG_INFINITY,
            max_seconds: f64::INFINITY,
            keep_trace: true,
            keep_points: false,
            stop: Stop::new(),
        }
    }
}

impl Control {
    /// Checks every tolerance.
    ///
    /// # Errors
    /// Names the first that is negative or not a number.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [
            ("gradient_tol", self.gradient_tol),
            ("gradient_ratio", self.gradient_ratio),
            ("value_tol", self.value_tol),
            ("step_tol", self.step_tol),
            ("max_seconds", self.max_seconds),
        ] {
            if value.is_nan() || value < 0.0 {
                return Err(Error::parameter(name, value, "must be at least 0"));
            }
        }
        if self.target.is_nan() {
            return Err(Error::parameter("target", self.target, "must be a number"));
        }
        Ok(())
    }
}

/// The setters of [`Control`] on a solver with a field `control`.
macro_rules! control_setters {
    () => {
        $crate::control::control_setters! {
            /// The largest number of iterations.
            max_iter: usize,
            /// Ends when the norm of the gradient is at most this.
            gradient_tol: f64,
            /// Ends when the norm of the gradient is at most this share of its norm at the start.
            gradient_ratio: f64,
            /// Ends when an iteration lowers the value by at most this share of it.
            value_tol: f64,
            /// Ends when a step is at most this share of the norm of the point.
            step_tol: f64,
            /// Ends when the value is at most this.
            target: f64,
            /// Ends after this many seconds.
            max_seconds: f64,
            /// Whether the value, gradient norm and step of each iteration are recorded.
            keep_trace: bool,
            /// Whether the point of each iteration is recorded.
            keep_points: bool,
            /// A flag that ends the run when any thread sets it.
            stop: gradus_core::progress::Stop,
        }
    };
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: $kind) -> Self {
                self.control.$name = $name;
                self
            }
        )*

        /// Sets all stopping rules and recording options at once.
        #[must_use]
        pub fn control(mut self, control: $crate::Control) -> Self {
            self.control = control;
            self
        }
    };
}
pub(crate) use control_setters;

/// The argument of the callback: the state after each iteration, and before the first as iteration 0.
#[derive(Clone, Copy, Debug)]
pub struct Iterate<'a> {
    /// Iterations done.
    pub iteration: usize,
    /// The point.
    pub x: &'a [f64],
    /// The value there.
    pub value: f64,
    /// The norm of the gradient there (of the gradient mapping, for proximal methods).
    pub gradient_norm: f64,
    /// Length of the step that led there.
    pub step: f64,
    /// Seconds since the run began.
    pub seconds: f64,
}

/// A callback that receives each iterate and can end the run.
pub type Callback<'w> = dyn FnMut(&Iterate<'_>) -> ControlFlow<()> + 'w;

/// A method that minimises an objective from a starting point.
pub trait Optimizer {
    /// A short name: `gd`, `adam`, `lbfgs`.
    fn name(&self) -> &'static str;

    /// Minimises, and calls `watch` after each iteration.
    ///
    /// # Errors
    /// If the start does not fit the objective or has no finite value, or a setting is outside its
    /// range. A run that reaches its limit, stalls or diverges is not an error: see
    /// [`Outcome::reason`].
    fn minimize_with(
        &self,
        objective: &dyn Objective,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome>;

    /// Minimises.
    ///
    /// # Errors
    /// As [`minimize_with`](Self::minimize_with).
    fn minimize(&self, objective: &dyn Objective, start: &[f64]) -> Result<Outcome> {
        self.minimize_with(objective, start, &mut |_| ControlFlow::Continue(()))
    }
}

/// Records a run: its trace, the callback, the reason it ends.
pub(crate) struct Recorder<'a, 'w> {
    control: &'a Control,
    watch: &'a mut Callback<'w>,
    started: Instant,
    trace: Trace,
    first_norm: f64,
    last_value: f64,
    pub(crate) iteration: usize,
}

impl<'a, 'w> Recorder<'a, 'w> {
    /// Checks settings and start.
    pub(crate) fn new(
        control: &'a Control,
        watch: &'a mut Callback<'w>,
        objective: &dyn Objective,
        start: &[f64],
    ) -> Result<Self> {
        control.check()?;
        check_point(objective, "start", start)?;
        Ok(Self {
            control,
            watch,
            started: Instant::now(),
            trace: Trace::default(),
            first_norm: 0.0,
            last_value: f64::INFINITY,
            iteration: 0,
        })
    }

    fn note(&mut self, x: &[f64], value: f64, gradient_norm: f64, step: f64) -> ControlFlow<()> {
        let seconds = self.started.elapsed().as_secs_f64();
        let iteration = self.iteration;
        if self.control.keep_trace {
            self.trace.steps.push(TracePoint { iteration, value, gradient_norm, step, seconds });
        }
        if self.control.keep_points {
            self.trace.points.push(x.to_vec());
        }
        (self.watch)(&Iterate { iteration, x, value, gradient_norm, step, seconds })
    }

    /// Records the starting point; an error if the objective has no finite value there.
    pub(crate) fn begin(&mut self, x: &[f64], value: f64, norm: f64) -> Result<Option<Reason>> {
        if !value.is_finite() || !norm.is_finite() {
            let what = if value.is_finite() { "gradient norm" } else { "value" };
            let found = if value.is_finite() { norm } else { value };
            return Err(Error::data(format!(
                "start: the objective has {what} {found} there; it must be finite"
            )));
        }
        self.first_norm = norm;
        self.last_value = value;
        let flow = self.note(x, value, norm, 0.0);
        Ok(self.reason(value, norm, flow))
    }

    fn reason(&self, value: f64, norm: f64, flow: ControlFlow<()>) -> Option<Reason> {
        let control = self.control;
        if norm <= control.gradient_tol.max(control.gradient_ratio * self.first_norm) {
            Some(Reason::GradientSmall)
        } else if value <= control.target {
            Some(Reason::TargetReached)
        } else if flow.is_break() || control.stop.requested() {
            Some(Reason::Stopped)
        } else if self.iteration >= control.max_iter {
            Some(Reason::MaxIterations)
        } else if self.started.elapsed().as_secs_f64() >= control.max_seconds {
            Some(Reason::TimeUp)
        } else {
            None
        }
    }

    /// Records an iteration that came to `x` by a step of this length.
    pub(crate) fn after(&mut self, x: &[f64], value: f64, norm: f64, step: f64) -> Option<Reason> {
        self.iteration += 1;
        let flow = self.note(x, value, norm, step);
        let fall = self.last_value - value;
        let size = self.last_value.abs().max(value.abs()).max(1.0);
        self.last_value = value;
        if let Some(reason) = self.reason(value, norm, flow) {
            return Some(reason);
        }
        let control = self.control;
        // A method that may rise has not settled because it rose.
        if control.value_tol > 0.0 && fall >= 0.0 && fall <= control.value_tol * size {
            return Some(Reason::ValueSettled);
        }
        if control.step_tol > 0.0 && step <= control.step_tol * crate::vector::norm(x).max(1.0) {
            return Some(Reason::StepSmall);
        }
        None
    }

    pub(crate) fn end(
        self,
        counted: &Counted<'_>,
        x: Vec<f64>,
        (value, gradient_norm): (f64, f64),
        reason: Reason,
    ) -> Outcome {
        Outcome {
            x,
            value,
            gradient_norm,
            iterations: self.iteration,
            evaluations: counted.evaluations(),
            reason,
            trace: self.trace,
            seconds: self.started.elapsed().as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lbfgs;
    use crate::problem::Rosenbrock;

    fn run(solver: Lbfgs) -> Outcome {
        solver.minimize(&Rosenbrock::new(2), &[-1.2, 1.0]).unwrap()
    }

    #[test]
    fn each_rule_ends_a_run_and_is_named() {
        let base = || Lbfgs::new().gradient_tol(0.0);
        assert_eq!(run(base().gradient_tol(1e-3)).reason, Reason::GradientSmall);
        assert_eq!(run(base().gradient_ratio(1e-3)).reason, Reason::GradientSmall);
        assert_eq!(run(base().value_tol(0.1)).reason, Reason::ValueSettled);
        assert_eq!(run(base().step_tol(0.05)).reason, Reason::StepSmall);
        assert_eq!(run(base().target(0.5)).reason, Reason::TargetReached);
        assert_eq!(run(base().max_seconds(0.0)).reason, Reason::TimeUp);
        let limited = run(base().max_iter(3));
        assert_eq!((limited.reason, limited.iterations), (Reason::MaxIterations, 3));
        assert_eq!(run(base().max_iter(0)).x, [-1.2, 1.0]);
        let stop = Stop::new();
        stop.request();
        assert_eq!(run(base().stop(stop)).reason, Reason::Stopped);
    }

    #[test]
    fn a_watcher_sees_every_iterate_and_can_end_the_run() {
        let mut seen = Vec::new();
        let outcome = Lbfgs::new()
            .keep_points(true)
            .minimize_with(&Rosenbrock::new(2), &[-1.2, 1.0], &mut |iterate| {
                seen.push((iterate.iteration, iterate.value));
                if seen.len() == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        assert_eq!(outcome.reason, Reason::Stopped);
        assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(outcome.trace.points.len(), 5);
        let values: Vec<f64> = outcome.trace.steps.iter().map(|p| p.value).collect();
        assert_eq!(values, seen.iter().map(|s| s.1).collect::<Vec<_>>());
    }

    #[test]
    fn bad_settings_and_starts_are_named() {
        let f = Rosenbrock::new(2);
        let say =
            |solver: Lbfgs, start: &[f64]| solver.minimize(&f, start).unwrap_err().to_string();
        let shown = say(Lbfgs::new().gradient_tol(-1.0), &[0.0, 0.0]);
        assert_eq!(shown, "parameter `gradient_tol` = -1: must be at least 0");
        assert!(say(Lbfgs::new(), &[0.0]).starts_with("start: expected 2 numbers"));
        assert!(say(Lbfgs::new(), &[1e200, 0.0]).contains("must be finite"));
    }
}
