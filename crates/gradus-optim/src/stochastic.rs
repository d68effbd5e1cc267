//! Stochastic descent over the terms of a sum.

use crate::control::{Callback, Control, Recorder, control_setters};
use crate::objective::{Counted, FiniteSum};
use crate::outcome::{Outcome, Reason};
use crate::schedule::Schedule;
use crate::step::{Stepper, UpdateRule};
use crate::vector;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use std::ops::ControlFlow;

/// Stochastic and mini-batch descent: each step follows the mean gradient of a few random terms.
///
/// An iteration is an epoch: every term once, in random order, in batches. A step costs the
/// gradient of a batch, so a first rough answer comes after a fraction of the data. With a constant
/// rate the steps end up wandering around the minimum; with [`Schedule::inverse`] they settle.
/// After every `evaluate_every` epochs the value and the gradient of the whole sum are computed, which
/// costs a pass over the data; the trace and the stopping rules use them.
///
/// The same seed gives the same result. Where high accuracy is wanted, [`Lbfgs`](crate::Lbfgs).
///
/// ```
/// use gradus_data::Dense;
/// use gradus_optim::{Schedule, Stochastic, problem::LeastSquares};
///
/// let x = Dense::from_fn(200, 1, |i, _| i as f64 / 100.0);
/// let y = (0..200).map(|i| 3.0 * i as f64 / 100.0).collect();
/// let sum = LeastSquares::new(x, y, 0.0)?;
/// let found = Stochastic::sgd(Schedule::constant(0.1)).minimize(&sum, &[0.0])?;
/// assert!((found.x[0] - 3.0).abs() < 1e-4);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stochastic {
    /// How a gradient becomes a step.
    pub rule: UpdateRule,
    /// The rate of each step; steps are counted over all epochs.
    pub schedule: Schedule,
    /// Terms in a batch. 1 is stochastic descent in the narrow sense.
    pub batch: usize,
    /// Epochs between two evaluations of the whole sum. Default 1.
    pub evaluate_every: usize,
    /// Seed of the random order.
    pub seed: u64,
    /// Stopping rules and recording options; `max_iter` counts epochs.
    pub control: Control,
}

impl Stochastic {
    /// Makes a solver with this rule and these rates, in batches of 32 and 100 epochs at most.
    pub fn new(rule: UpdateRule, schedule: Schedule) -> Self {
        let control = Control { max_iter: 100, ..Control::default() };
        Self { rule, schedule, batch: 32, evaluate_every: 1, seed: 0, control }
    }

    /// Plain steps along one term at a time.
    pub fn sgd(schedule: Schedule) -> Self {
        Self::new(UpdateRule::Plain, schedule).batch(1)
    }

    /// Terms in a batch.
    #[must_use]
    pub fn batch(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// Epochs between two evaluations of the whole sum.
    #[must_use]
    pub fn evaluate_every(mut self, epochs: usize) -> Self {
        self.evaluate_every = epochs;
        self
    }

    /// Seed of the random order.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    control_setters!();

    /// Minimises a sum.
    ///
    /// # Errors
    /// If the start does not fit or has no finite value, a setting is outside its range, or the sum
    /// has no terms.
    pub fn minimize(&self, sum: &dyn FiniteSum, start: &[f64]) -> Result<Outcome> {
        self.minimize_with(sum, start, &mut |_| ControlFlow::Continue(()))
    }

    /// Minimises a sum, and calls `watch` after each evaluated epoch.
    ///
    /// # Errors
    /// As [`minimize`](Self::minimize).
    pub fn minimize_with(
        &self,
        sum: &dyn FiniteSum,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome> {
        self.rule.check()?;
        self.schedule.check()?;
        for (name, value) in [("batch", self.batch), ("evaluate_every", self.evaluate_every)] {
            if value == 0 {
                return Err(Error::parameter(name, 0, "must be at least 1"));
            }
        }
        let n_terms = sum.n_terms();
        if n_terms == 0 {
            return Err(Error::data("stochastic descent: the sum has no terms"));
        }
        let mut recorder = Recorder::new(&self.control, watch, sum, start)?;
        let f = Counted::new(sum);
        let n = start.len();
        let (mut x, mut g) = (start.to_vec(), vec![0.0; n]);
        let mut value = f.gradient(&x, &mut g);
        let mut norm = vector::norm(&g);
        let mut ended = recorder.begin(&x, value, norm)?;
        let mut stepper = Stepper::new(self.rule, n);
        let mut evaluated = x.clone();
        let (mut steps, mut epoch) = (0, 0);
        let reason = loop {
            if let Some(reason) = ended {
                break reason;
            }
            let order = Stream::new(self.seed, "optim.epoch", epoch).permutation(n_terms);
            epoch += 1;
            for terms in order.chunks(self.batch) {
                sum.batch_gradient(&x, terms, &mut g);
                stepper.step(self.schedule.rate(steps), &mut x, &g);
                steps += 1;
            }
            let last = recorder.iteration + 1 >= self.control.max_iter;
            if !epoch.is_multiple_of(self.evaluate_every as u64) && !last {
                recorder.iteration += 1;
                continue;
            }
            let (next, next_norm) = (f.gradient(&x, &mut g), vector::norm(&g));
            if !next.is_finite() || !next_norm.is_finite() {
                x = evaluated;
                break Reason::Diverged;
            }
            (value, norm) = (next, next_norm);
            ended = recorder.after(&x, value, norm, vector::distance(&x, &evaluated));
            evaluated.copy_from_slice(&x);
        };
        Ok(recorder.end(&f, x, (value, norm), reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::LeastSquares;
    use crate::{Newton, Optimizer as _};
    use gradus_data::Dense;

    fn noisy() -> LeastSquares {
        let mut stream = Stream::new(5, "test", 0);
        let x = Dense::from_fn(500, 3, |_, _| stream.normal());
        let y = (0..500)
            .map(|i| x.row(i)[0] - 2.0 * x.row(i)[1] + 0.5 * x.row(i)[2] + 0.3 * stream.normal());
        let y = y.collect();
        LeastSquares::new(x, y, 0.01).unwrap()
    }

    fn best(f: &LeastSquares) -> Vec<f64> {
        Newton::new().gradient_tol(1e-10).minimize(f, &[0.0; 3]).unwrap().x
    }

    #[test]
    fn a_rate_of_one_over_t_reaches_the_optimum_and_a_constant_one_wanders() {
        let f = noisy();
        let best = best(&f);
        let off = |schedule: Schedule| {
            let found = Stochastic::sgd(schedule).max_iter(200).minimize(&f, &[0.0; 3]).unwrap();
            vector::distance(&found.x, &best)
        };
        let (falling, constant) =
            (off(Schedule::inverse(0.05, 400.0)), off(Schedule::constant(0.05)));
        assert!(falling < 3e-3, "{falling}");
        assert!(constant > 5.0 * falling, "{constant} {falling}");
    }

    #[test]
    fn batches_of_everything_are_plain_descent() {
        let f = noisy();
        let batch =
            Stochastic::new(UpdateRule::Plain, Schedule::constant(0.5)).batch(500).max_iter(7);
        let found = batch.minimize(&f, &[0.0; 3]).unwrap();
        let plain = crate::Descent::gd(0.5).max_iter(7).minimize(&f, &[0.0; 3]).unwrap();
        assert!(vector::distance(&found.x, &plain.x) < 1e-13);
        assert_eq!(found.iterations, 7);
    }

    #[test]
    fn mini_batches_by_any_rule_settle_near_the_optimum() {
        let f = noisy();
        let best = best(&f);
        for rule in [
            UpdateRule::Plain,
            UpdateRule::HEAVY_BALL,
            UpdateRule::ADAM,
            UpdateRule::RMSPROP,
            UpdateRule::ADAGRAD,
        ] {
            let rate = if rule == UpdateRule::ADAGRAD { 0.5 } else { 0.02 };
            let schedule = Schedule::cosine(rate, 60 * 16);
            let solver = Stochastic::new(rule, schedule).max_iter(60).evaluate_every(10);
            let found = solver.minimize(&f, &[0.0; 3]).unwrap();
            assert!(vector::distance(&found.x, &best) < 0.02, "{rule:?} {:?}", found.x);
            assert_eq!(found.trace.steps.len(), 7);
        }
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        let f = noisy();
        let run = |seed: u64| {
            let solver = Stochastic::sgd(Schedule::constant(0.01)).seed(seed).max_iter(2);
            solver.minimize(&f, &[0.0; 3]).unwrap().x
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let wild = Stochastic::sgd(Schedule::constant(1e6)).minimize(&f, &[0.0; 3]).unwrap();
        assert_eq!((wild.reason, wild.x), (Reason::Diverged, vec![0.0; 3]));
        let none = Stochastic::sgd(Schedule::constant(0.1)).batch(0).minimize(&f, &[0.0; 3]);
        assert!(none.unwrap_err().to_string().contains("`batch` = 0"));
    }
}
