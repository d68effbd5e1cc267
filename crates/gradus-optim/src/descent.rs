//! Descent along the whole gradient: steepest descent, momentum, Nesterov, and the adaptive rules.

use crate::control::{Callback, Control, Optimizer, Recorder, control_setters};
use crate::diagnose;
use crate::line_search::Armijo;
use crate::objective::{Counted, Objective};
use crate::outcome::{Outcome, Reason};
use crate::schedule::Schedule;
use crate::step::{Stepper, UpdateRule};
use crate::vector;
use gradus_base::{Error, Result};

/// A fall of less than this share of the value is rounding.
const ROUNDING: f64 = 1e-13;

/// How the length of a step is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepSize {
    /// Given beforehand.
    Scheduled(Schedule),
    /// `1/L` with the smoothness `L` estimated at the start: right for quadratics, a guess for
    /// anything else.
    Smoothness,
    /// Halved until the value falls enough, for plain descent: the value never rises, and nothing
    /// need be known.
    Backtracking(Armijo),
}

/// Descent along the gradient of the whole objective, by any [`UpdateRule`].
///
/// An iteration costs one gradient. With step `1/L` on a function between `μ` and `L` curved, the
/// distance to the minimum shrinks by `1 − μ/L` in each iteration of plain descent, by
/// `1 − √(μ/L)` with Nesterov's momentum and about twice as fast again with the heavy ball, if
/// their momentum fits. Where that is slow, [`Lbfgs`](crate::Lbfgs) needs no such knowledge.
///
/// ```
/// use gradus_optim::{Descent, Optimizer, problem::Quadratic};
///
/// let f = Quadratic::diagonal(&[1.0, 20.0]);
/// let plain = Descent::gd(1.0 / 20.0).minimize(&f, &[1.0, 1.0])?;
/// let fast = Descent::nesterov(1.0 / 20.0).minimize(&f, &[1.0, 1.0])?;
/// assert!(plain.converged() && fast.converged());
/// assert!(fast.iterations < plain.iterations);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Descent {
    /// How the gradient becomes a step.
    pub rule: UpdateRule,
    /// How the length of the step is chosen.
    pub step_size: StepSize,
    /// Stopping rules and recording options.
    pub control: Control,
}

impl Descent {
    /// Makes a solver with this rule and these rates.
    pub fn new(rule: UpdateRule, schedule: Schedule) -> Self {
        let step_size = StepSize::Scheduled(schedule);
        Self { rule, step_size, control: Control::default() }
    }

    /// Steepest descent with a constant rate.
    pub fn gd(rate: f64) -> Self {
        Self::new(UpdateRule::Plain, Schedule::constant(rate))
    }

    /// Steepest descent with halving: nothing to choose.
    pub fn backtracking() -> Self {
        let step_size = StepSize::Backtracking(Armijo::default());
        Self { rule: UpdateRule::Plain, step_size, control: Control::default() }
    }

    /// The heavy ball.
    pub fn momentum(rate: f64, momentum: f64) -> Self {
        Self::new(UpdateRule::HeavyBall { momentum }, Schedule::constant(rate))
    }

    /// Nesterov's method with a momentum that grows.
    pub fn nesterov(rate: f64) -> Self {
        Self::new(UpdateRule::NESTEROV, Schedule::constant(rate))
    }

    /// AdaGrad.
    pub fn adagrad(rate: f64) -> Self {
        Self::new(UpdateRule::ADAGRAD, Schedule::constant(rate))
    }

    /// RMSProp.
    pub fn rmsprop(rate: f64) -> Self {
        Self::new(UpdateRule::RMSPROP, Schedule::constant(rate))
    }

    /// Adam.
    pub fn adam(rate: f64) -> Self {
        Self::new(UpdateRule::ADAM, Schedule::constant(rate))
    }

    /// Adam with decoupled decay.
    pub fn adamw(rate: f64, decay: f64) -> Self {
        Self::new(UpdateRule::adamw(decay), Schedule::constant(rate))
    }

    /// How the length of the step is chosen.
    #[must_use]
    pub fn step_size(mut self, step_size: StepSize) -> Self {
        self.step_size = step_size;
        self
    }

    control_setters!();

    fn check(&self) -> Result<()> {
        self.rule.check()?;
        match self.step_size {
            StepSize::Scheduled(schedule) => schedule.check(),
            StepSize::Backtracking(_) if self.rule != UpdateRule::Plain => Err(Error::parameter(
                "step_size",
                "backtracking",
                format!("goes with the plain rule only, not with {}", self.rule.name()),
            )),
            StepSize::Backtracking(search) => {
                let fits = |x: f64| x > 0.0 && x < 1.0;
                if fits(search.shrink) && fits(search.decrease) {
                    return Ok(());
                }
                let shown = format!("shrink {}, decrease {}", search.shrink, search.decrease);
                Err(Error::parameter("step_size", shown, "both must be between 0 and 1"))
            }
            StepSize::Smoothness => Ok(()),
        }
    }
}

impl Optimizer for Descent {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn minimize_with(
        &self,
        objective: &dyn Objective,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome> {
        self.check()?;
        let mut recorder = Recorder::new(&self.control, watch, objective, start)?;
        let f = Counted::new(objective);
        let n = start.len();
        let (mut x, mut g) = (start.to_vec(), vec![0.0; n]);
        let mut value = f.gradient(&x, &mut g);
        let mut norm = vector::norm(&g);
        let mut ended = recorder.begin(&x, value, norm)?;
        let schedule = match self.step_size {
            StepSize::Scheduled(schedule) => schedule,
            StepSize::Smoothness if ended.is_none() => {
                let most = diagnose::curvature(objective, start, 0)?.largest.abs();
                Schedule::constant(if most > 0.0 { 1.0 / most } else { 1.0 })
            }
            _ => Schedule::constant(1.0),
        };
        let mut stepper = Stepper::new(self.rule, n);
        let (mut last, mut trial) = (x.clone(), 1.0 / norm.max(1.0));
        let reason = loop {
            if let Some(reason) = ended {
                break reason;
            }
            last.copy_from_slice(&x);
            let blind = norm * norm * trial <= ROUNDING * value.abs();
            if let StepSize::Backtracking(search) = self.step_size
                && !blind
            {
                // Twice the last step is tried first, so that one bad place does not slow the rest.
                let found = search.search((value, -norm * norm), 2.0 * trial, &mut |t| {
                    vector::move_along(&last, -t, &g, &mut x);
                    f.value(&x)
                });
                match found {
                    Some((length, _)) => trial = length,
                    None => {
                        x.copy_from_slice(&last);
                        break Reason::Stalled;
                    }
                }
            } else if let StepSize::Scheduled(_) | StepSize::Smoothness = self.step_size {
                stepper.step(schedule.rate(recorder.iteration), &mut x, &g);
            } else {
                // The fall drowns in rounding: half the last step, and the gradient decides.
                vector::move_along(&last, -0.5 * trial, &g, &mut x);
            }
            let (next, next_norm) = (f.gradient(&x, &mut g), vector::norm(&g));
            if !next.is_finite() || !next_norm.is_finite() {
                x.copy_from_slice(&last);
                break Reason::Diverged;
            }
            if blind && next_norm > norm {
                trial *= 0.5;
            }
            (value, norm) = (next, next_norm);
            ended = recorder.after(&x, value, norm, vector::distance(&x, &last));
        };
        Ok(recorder.end(&f, x, (value, norm), reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::observed_rate;
    use crate::problem::{Quadratic, Rosenbrock};

    const MU: f64 = 1.0;
    const L: f64 = 50.0;

    fn spread() -> Quadratic {
        let spectrum: Vec<f64> = (0..20).map(|j| MU + (L - MU) * f64::from(j) / 19.0).collect();
        Quadratic::with_spectrum(&spectrum, 7)
    }

    /// The factor by which the distance to the minimum shrinks in an iteration.
    fn rate(solver: Descent) -> f64 {
        let solver = solver.max_iter(4000).gradient_tol(1e-11).keep_points(true);
        let found = solver.minimize(&spread(), &[1.0; 20]).unwrap();
        assert_eq!(found.reason, Reason::GradientSmall);
        observed_rate(&found.trace.distances(&[0.0; 20])).unwrap()
    }

    #[test]
    fn measured_rates_match_theory_on_a_quadratic() {
        let (kappa, root) = (L / MU, (L / MU).sqrt());
        let plain = rate(Descent::gd(1.0 / L));
        assert!((plain - (1.0 - 1.0 / kappa)).abs() < 1e-4, "{plain}");
        let best = rate(Descent::gd(2.0 / (L + MU)));
        assert!((best - (kappa - 1.0) / (kappa + 1.0)).abs() < 1e-4, "{best}");
        let beta = (root - 1.0) / (root + 1.0);
        let fixed = UpdateRule::Nesterov { momentum: Some(beta) };
        let nesterov = rate(Descent::new(fixed, Schedule::constant(1.0 / L)));
        // A double root: the rate carries a factor that grows with the iteration.
        assert!((nesterov - (1.0 - 1.0 / root)).abs() < 0.012, "{nesterov}");
        let step = 4.0 / (L.sqrt() + MU.sqrt()).powi(2);
        let heavy = rate(Descent::momentum(step, beta * beta));
        assert!((heavy - beta).abs() < 0.02, "{heavy} {beta}");
        assert!(heavy < nesterov && nesterov < best && best < plain);
    }

    #[test]
    fn growing_momentum_keeps_its_bound() {
        // f(x_k) − f* ≤ 2 L ‖x₀ − x*‖² / (k + 1)², for convex functions that are hardly curved. The
        // points of this form are the extrapolated ones; a factor 2 covers the difference.
        let spectrum: Vec<f64> = (0..30).map(|j| 1e-4 * 1.36f64.powi(j)).collect();
        let top = *spectrum.last().unwrap();
        let f = Quadratic::with_spectrum(&spectrum, 3);
        let solver = Descent::nesterov(1.0 / top).max_iter(500).gradient_tol(0.0);
        let found = solver.minimize(&f, &[1.0; 30]).unwrap();
        for point in &found.trace.steps[1..] {
            let bound = 2.0 * 2.0 * top * 30.0 / (point.iteration as f64 + 1.0).powi(2);
            assert!(point.value <= bound, "{point:?} {bound}");
        }
    }

    #[test]
    fn backtracking_never_rises_and_the_estimated_step_is_one_over_l() {
        let found =
            Descent::backtracking().max_iter(20_000).minimize(&spread(), &[1.0; 20]).unwrap();
        assert!(found.converged());
        let values = found.trace.values();
        assert!(values.windows(2).all(|w| w[1] < w[0]));
        let guessed = rate(Descent::gd(1.0).step_size(StepSize::Smoothness));
        assert!((guessed - (1.0 - MU / L)).abs() < 1e-3, "{guessed}");
        let valley = Rosenbrock::new(2);
        let found =
            Descent::backtracking().max_iter(50_000).minimize(&valley, &[-1.2, 1.0]).unwrap();
        assert!(found.value < 1e-8, "{found:?}");
    }

    #[test]
    fn adaptive_rules_reach_the_minimum() {
        for solver in [
            Descent::adagrad(0.5),
            Descent::new(UpdateRule::RMSPROP, Schedule::cosine(0.05, 2000)),
            Descent::new(UpdateRule::ADAM, Schedule::cosine(0.05, 2000)),
        ] {
            let found = solver.max_iter(2000).minimize(&spread(), &[1.0; 20]).unwrap();
            assert!(found.value < 1e-6, "{:?}: {}", found.reason, found.value);
        }
        // Decay moves the solution of AdamW towards 0: x = 1 is the minimum without.
        let f =
            crate::objective::from_fn(1, |x| 0.5 * (x[0] - 1.0).powi(2), |x, g| g[0] = x[0] - 1.0);
        let found = Descent::adamw(0.01, 0.5).max_iter(3000).minimize(&f, &[0.0]).unwrap();
        assert!(found.x[0] < 0.99, "{:?}", found.x);
    }

    #[test]
    fn too_long_a_step_diverges_and_says_so() {
        let found = Descent::gd(2.1 / L).max_iter(100_000).minimize(&spread(), &[1.0; 20]).unwrap();
        assert_eq!(found.reason, Reason::Diverged);
        assert!(found.value.is_finite() && found.x.iter().all(|x| x.is_finite()));
        let search = StepSize::Backtracking(Armijo::default());
        let mixed = Descent::adam(0.1).step_size(search).minimize(&spread(), &[1.0; 20]);
        assert!(mixed.unwrap_err().to_string().contains("not with adam"));
    }
}
