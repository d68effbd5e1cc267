//! Subgradient descent, for functions with kinks.

use crate::control::{Callback, Control, Optimizer, Recorder, control_setters};
use crate::objective::{Counted, Objective};
use crate::outcome::{Outcome, Reason};
use crate::schedule::Schedule;
use crate::vector;
use gradus_base::Result;

/// Steps of decreasing length against any subgradient; the best point seen is the result.
///
/// `x ← x − ηₜ g/‖g‖`. The value may rise from step to step and only the best falls, as `1/√t` with
/// the default rates: slow, but nothing is asked of the function beyond convexity. Where the
/// smallest value is known (0 for a feasibility problem), Polyak's step `(f − f*)/‖g‖²` needs no
/// rate and is much faster. Where the kinks come from a simple penalty, use
/// [`Proximal`](crate::Proximal) instead.
///
/// ```
/// use gradus_optim::{Optimizer, Subgradient, objective};
///
/// let f = objective::from_fn(1, |x| (x[0] - 2.0).abs(), |x, g| g[0] = (x[0] - 2.0).signum());
/// let found = Subgradient::new(1.0).minimize(&f, &[10.0])?;
/// assert!((found.x[0] - 2.0).abs() < 0.05);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Subgradient {
    /// The length of each step.
    pub schedule: Schedule,
    /// The smallest value, if it is known: takes Polyak's steps.
    pub optimum: Option<f64>,
    /// Stopping rules and recording options.
    pub control: Control,
}

impl Subgradient {
    /// Steps of length `rate / √(1 + t)`.
    pub fn new(rate: f64) -> Self {
        let schedule = Schedule::inverse_root(rate);
        Self { schedule, optimum: None, control: Control::default() }
    }

    /// The length of each step.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Polyak's steps towards this smallest value.
    #[must_use]
    pub fn optimum(mut self, value: f64) -> Self {
        self.optimum = Some(value);
        self
    }

    control_setters!();
}

impl Optimizer for Subgradient {
    fn name(&self) -> &'static str {
        "subgradient"
    }

    fn minimize_with(
        &self,
        objective: &dyn Objective,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome> {
        self.schedule.check()?;
        let mut recorder = Recorder::new(&self.control, watch, objective, start)?;
        let f = Counted::new(objective);
        let (mut x, mut g) = (start.to_vec(), vec![0.0; start.len()]);
        let mut value = f.gradient(&x, &mut g);
        let mut norm = vector::norm(&g);
        let mut best = (x.clone(), value, norm);
        let mut ended = recorder.begin(&x, value, norm)?;
        let reason = loop {
            if let Some(reason) = ended {
                break reason;
            }
            let length = match self.optimum {
                Some(optimum) => (value - optimum).max(0.0) / norm,
                None => self.schedule.rate(recorder.iteration),
            };
            if length <= 0.0 {
                break Reason::TargetReached;
            }
            vector::axpy(-length / norm, &g, &mut x);
            value = f.gradient(&x, &mut g);
            norm = vector::norm(&g);
            if !value.is_finite() || !norm.is_finite() {
                break Reason::Diverged;
            }
            if value < best.1 {
                best.0.copy_from_slice(&x);
                (best.1, best.2) = (value, norm);
            }
            ended = recorder.after(&x, value, norm, length);
        };
        Ok(recorder.end(&f, best.0, (best.1, best.2), reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::from_fn;

    /// `|x − 3| + 2 |y + 1|`.
    fn diamond() -> impl Objective {
        from_fn(
            2,
            |x| (x[0] - 3.0).abs() + 2.0 * (x[1] + 1.0).abs(),
            |x, g| {
                g[0] = (x[0] - 3.0).signum();
                g[1] = 2.0 * (x[1] + 1.0).signum();
            },
        )
    }

    #[test]
    fn the_best_value_keeps_the_bound_of_theory() {
        // Steps c/√(k+1) from distance R with ‖g‖ ≤ G: best − f* ≤ G (R² + c² Σ 1/k) / (2 c Σ 1/√k).
        let (limit, reach, c) = (5f64.sqrt(), 5.0, 1.0);
        let solver = Subgradient::new(c).max_iter(5000).keep_points(true);
        let found = solver.minimize(&diamond(), &[0.0, 3.0]).unwrap();
        let (mut best, mut squares, mut lengths) = (f64::INFINITY, 0.0, 0.0);
        for point in &found.trace.steps {
            best = best.min(point.value);
            let k = point.iteration as f64 + 1.0;
            squares += c * c / k;
            lengths += c / k.sqrt();
            let bound = limit * (reach * reach + squares) / (2.0 * lengths);
            assert!(best <= bound, "{point:?} {bound}");
        }
        assert_eq!(found.value, best);
        assert_eq!(found.value, diamond().value(&found.x));
        assert!(found.value < 0.05, "{}", found.value);
        let values = found.trace.values();
        assert!(values.windows(2).any(|w| w[1] > w[0]), "single steps may rise");
    }

    #[test]
    fn the_absolute_value_by_hand() {
        // From 1 with steps 1/√(t+1): 1 → 0, where the subgradient 0 ends it.
        let f =
            from_fn(1, |x| x[0].abs(), |x, g| g[0] = if x[0] == 0.0 { 0.0 } else { x[0].signum() });
        let found = Subgradient::new(1.0).minimize(&f, &[1.0]).unwrap();
        assert_eq!((found.x[0], found.reason, found.iterations), (0.0, Reason::GradientSmall, 1));
        // From 0.5: 0.5 → −0.5 → −0.5 + 1/√2 …; the best is kept.
        let found =
            Subgradient::new(1.0).max_iter(2).keep_points(true).minimize(&f, &[0.5]).unwrap();
        assert!((found.trace.points[2][0] - (0.5f64.sqrt() - 0.5)).abs() < 1e-15);
        assert_eq!(found.x, found.trace.points[2]);
    }

    #[test]
    fn polyak_steps_are_fast() {
        let found = Subgradient::new(1.0).optimum(0.0).minimize(&diamond(), &[0.0, 3.0]).unwrap();
        assert!(found.value < 1e-6, "{found:?}");
    }
}
