//! Learning rate schedules.

use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rate of each step: a first rate, a shape it follows, and a warm-up before.
///
/// ```
/// use gradus_optim::Schedule;
/// let s = Schedule::cosine(0.1, 100).warm_up(10);
/// assert_eq!(s.rate(0), 0.01);
/// assert_eq!(s.rate(9), 0.1);
/// assert!(s.rate(109) < 1e-4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// The rate at first (after the warm-up).
    pub rate: f64,
    /// The shape of the schedule.
    pub shape: Shape,
    /// Steps over which the rate rises from near 0 in a straight line. Adam on a network wants
    /// some hundreds; 0 for none.
    pub warm_up: usize,
}

/// How a rate changes with the step `t`, counted from 0 after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Not at all.
    Constant,
    /// `1 / (1 + t/half)`: half at step `half`. Stochastic descent on a strongly convex sum
    /// converges with it.
    Inverse {
        /// The step at which the rate is halved.
        half: f64,
    },
    /// `1 / √(1 + t)`: for subgradients, and sums that are convex but not strongly.
    InverseRoot,
    /// Half a cosine from 1 to `floor` over `steps`, then `floor`.
    Cosine {
        /// Steps until the floor.
        steps: usize,
        /// Share that is left at the end.
        floor: f64,
    },
    /// Multiplied by `factor` after every `every` steps.
    Steps {
        /// Steps between two changes.
        every: usize,
        /// The multiplier of the rate.
        factor: f64,
    },
}

impl Schedule {
    const fn new(rate: f64, shape: Shape) -> Self {
        Self { rate, shape, warm_up: 0 }
    }

    /// The same rate throughout.
    pub const fn constant(rate: f64) -> Self {
        Self::new(rate, Shape::Constant)
    }

    /// `rate / (1 + t/half)`.
    pub const fn inverse(rate: f64, half: f64) -> Self {
        Self::new(rate, Shape::Inverse { half })
    }

    /// `rate / √(1 + t)`.
    pub const fn inverse_root(rate: f64) -> Self {
        Self::new(rate, Shape::InverseRoot)
    }

    /// Half a cosine from `rate` to 0 over `steps`.
    pub const fn cosine(rate: f64, steps: usize) -> Self {
        Self::new(rate, Shape::Cosine { steps, floor: 0.0 })
    }

    /// Multiplied by `factor` after every `every` steps.
    pub const fn steps(rate: f64, every: usize, factor: f64) -> Self {
        Self::new(rate, Shape::Steps { every, factor })
    }

    /// Adds a warm-up of this many steps before.
    #[must_use]
    pub const fn warm_up(mut self, steps: usize) -> Self {
        self.warm_up = steps;
        self
    }

    /// The rate of step `t`, counted from 0.
    pub fn rate(&self, t: usize) -> f64 {
        if t < self.warm_up {
            return self.rate * (t + 1) as f64 / self.warm_up as f64;
        }
        let t = t - self.warm_up;
        let share = match self.shape {
            Shape::Constant => 1.0,
            Shape::Inverse { half } => 1.0 / (1.0 + t as f64 / half),
            Shape::InverseRoot => 1.0 / (1.0 + t as f64).sqrt(),
            Shape::Cosine { steps, floor } => {
                let done = if steps == 0 { 1.0 } else { (t as f64 / steps as f64).min(1.0) };
                floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
            Shape::Steps { every, factor } => {
                factor.powi(i32::try_from(t / every.max(1)).unwrap_or(i32::MAX))
            }
        };
        self.rate * share
    }

    /// Checks rate and shape.
    ///
    /// # Errors
    /// Names the first number outside its range.
    pub fn check(&self) -> Result<()> {
        let positive = |name: &str, value: f64| {
            if value > 0.0 && value.is_finite() {
                return Ok(());
            }
            Err(Error::parameter(name, value, "must be finite and greater than 0"))
        };
        positive("rate", self.rate)?;
        match self.shape {
            Shape::Constant | Shape::InverseRoot => Ok(()),
            Shape::Inverse { half } => positive("half", half),
            Shape::Cosine { floor, .. } if !(0.0..=1.0).contains(&floor) => {
                Err(Error::parameter("floor", floor, "must be from 0 to 1"))
            }
            Shape::Cosine { .. } => Ok(()),
            Shape::Steps { every: 0, .. } => {
                Err(Error::parameter("every", 0, "must be at least 1"))
            }
            Shape::Steps { factor, .. } => positive("factor", factor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_hand() {
        let at = |s: Schedule, ts: &[usize]| ts.iter().map(|&t| s.rate(t)).collect::<Vec<_>>();
        assert_eq!(at(Schedule::constant(0.5), &[0, 9]), [0.5, 0.5]);
        assert_eq!(at(Schedule::inverse(1.0, 10.0), &[0, 10, 30]), [1.0, 0.5, 0.25]);
        assert_eq!(at(Schedule::inverse_root(1.0), &[0, 3, 8]), [1.0, 0.5, 1.0 / 3.0]);
        assert_eq!(at(Schedule::steps(1.0, 5, 0.1), &[0, 4, 5]), [1.0, 1.0, 0.1]);
        let cosine = at(Schedule::cosine(2.0, 10), &[0, 5, 10, 99]);
        assert!((cosine[0] - 2.0).abs() + (cosine[1] - 1.0).abs() + cosine[2] + cosine[3] < 1e-12);
        let warm = Schedule::inverse(1.0, 1.0).warm_up(4);
        assert_eq!(at(warm, &[0, 1, 3, 4, 5]), [0.25, 0.5, 1.0, 1.0, 0.5]);
    }

    #[test]
    fn ranges_are_checked() {
        assert!(Schedule::constant(0.0).check().is_err());
        assert!(Schedule::inverse(1.0, -1.0).check().is_err());
        assert!(Schedule::steps(1.0, 0, 0.5).check().is_err());
        assert!(Schedule::cosine(1.0, 0).check().is_ok());
        assert_eq!(Schedule::cosine(1.0, 0).rate(0), 0.0);
    }
}
