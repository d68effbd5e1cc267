//! How a gradient becomes a step.
//!
//! An [`UpdateRule`] is the formula; its [`update`](UpdateRule::update) works on plain slices, single or double
//! precision, so that a model can store the state of a rule itself. A [`Stepper`] stores
//! it for you.

use gradus_base::{Error, Result, parallel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values moved by one task.
const CHUNK: usize = 1 << 14;
/// Shorter vectors are not worth the threads.
const PARALLEL: usize = 1 << 17;

/// A real number: `f32` or `f64`.
pub trait Real:
    Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// The nearest one.
    fn of(x: f64) -> Self;
    /// The square root.
    fn root(self) -> Self;
}

impl Real for f32 {
    #[inline]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline]
    fn root(self) -> Self {
        self.sqrt()
    }
}

impl Real for f64 {
    #[inline]
    fn of(x: f64) -> Self {
        x
    }
    #[inline]
    fn root(self) -> Self {
        self.sqrt()
    }
}

/// How the gradient `g` and the rate `η` become a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpdateRule {
    /// `x ← x − η g`: steepest descent.
    Plain,
    /// Heavy ball (Polyak, 1964): `v ← β v + g`, `x ← x − η v`. Goes on in the direction it came
    /// from.
    HeavyBall {
        /// Share β of the last move that goes on.
        momentum: f64,
    },
    /// Nesterov (1983): `v ← β v + g`, `x ← x − η (g + β v)`. The gradient is taken where the
    /// momentum leads.
    Nesterov {
        /// Share β of the last move that goes on; without one it grows as `(t − 1)/(t + 2)`, which
        /// needs no knowledge of the problem.
        momentum: Option<f64>,
    },
    /// AdaGrad (Duchi et al., 2011): `s ← s + g²`, `x ← x − η g / (√s + ε)`. Each coordinate has a
    /// rate of its own, which only falls: for sparse gradients.
    AdaGrad {
        /// Keeps the quotient finite.
        epsilon: f64,
    },
    /// RMSProp (Hinton, 2012): `s ← ρ s + (1 − ρ) g²`, `x ← x − η g / (√s + ε)`.
    RmsProp {
        /// Share ρ of the mean square that is kept.
        keep: f64,
        /// Keeps the quotient finite.
        epsilon: f64,
    },
    /// Adam (Kingma and Ba, 2015): momentum over RMSProp, both corrected for starting at 0. With
    /// `decay`, AdamW (Loshchilov and Hutter, 2019): `x ← x − η decay x` beside the step, not
    /// through the gradient.
    Adam {
        /// Share of the mean gradient that is kept.
        keep_mean: f64,
        /// Share of the mean square that is kept.
        keep_square: f64,
        /// Keeps the quotient finite.
        epsilon: f64,
        /// Decoupled weight decay.
        decay: f64,
    },
}

impl UpdateRule {
    /// Heavy ball with a momentum of 0.9.
    pub const HEAVY_BALL: Self = Self::HeavyBall { momentum: 0.9 };
    /// Nesterov with a momentum that grows.
    pub const NESTEROV: Self = Self::Nesterov { momentum: None };
    /// AdaGrad as usual.
    pub const ADAGRAD: Self = Self::AdaGrad { epsilon: 1e-8 };
    /// RMSProp as usual: 0.9.
    pub const RMSPROP: Self = Self::RmsProp { keep: 0.9, epsilon: 1e-8 };
    /// Adam as usual: 0.9 and 0.999.
    pub const ADAM: Self = Self::adamw(0.0);

    /// AdamW with this decay, otherwise Adam as usual.
    pub const fn adamw(decay: f64) -> Self {
        Self::Adam { keep_mean: 0.9, keep_square: 0.999, epsilon: 1e-8, decay }
    }

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "gd",
            Self::HeavyBall { .. } => "momentum",
            Self::Nesterov { .. } => "nesterov",
            Self::AdaGrad { .. } => "adagrad",
            Self::RmsProp { .. } => "rmsprop",
            Self::Adam { decay, .. } => {
                if decay == 0.0 {
                    "adam"
                } else {
                    "adamw"
                }
            }
        }
    }

    /// The number of state values per coordinate.
    pub fn memories(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Adam { .. } => 2,
            _ => 1,
        }
    }

    /// Checks the constants.
    ///
    /// # Errors
    /// Names the first that is outside its range.
    pub fn check(self) -> Result<()> {
        let share = |name: &str, value: f64| {
            if (0.0..1.0).contains(&value) {
                return Ok(());
            }
            Err(Error::parameter(name, value, "must be at least 0 and less than 1"))
        };
        let positive = |value: f64| {
            if value > 0.0 && value.is_finite() {
                return Ok(());
            }
            Err(Error::parameter("epsilon", value, "must be finite and greater than 0"))
        };
        match self {
            Self::Plain | Self::Nesterov { momentum: None } => Ok(()),
            Self::HeavyBall { momentum } | Self::Nesterov { momentum: Some(momentum) } => {
                share("momentum", momentum)
            }
            Self::AdaGrad { epsilon } => positive(epsilon),
            Self::RmsProp { keep, epsilon } => share("keep", keep).and(positive(epsilon)),
            Self::Adam { keep_mean, keep_square, epsilon, decay } => {
                share("keep_mean", keep_mean)?;
                share("keep_square", keep_square)?;
                positive(epsilon)?;
                if decay >= 0.0 && decay.is_finite() {
                    return Ok(());
                }
                Err(Error::parameter("decay", decay, "must be finite and at least 0"))
            }
        }
    }

    /// Moves `x` against the gradient `g`. `t` counts the moves from 1; `memory` holds
    /// [`memories`](Self::memories) slices, all 0 at first.
    ///
    /// Where `g` points downhill instead, a negative rate does the same.
    ///
    /// # Shapes
    /// All slices are of one length. Panics if not, or if there are too few memories.
    pub fn update<F: Real>(self, rate: F, t: u64, x: &mut [F], memory: &mut [&mut [F]], g: &[F]) {
        assert!(memory.len() >= self.memories(), "{} memories", self.memories());
        assert!(x.len() == g.len() && memory.iter().all(|m| m.len() == x.len()), "one length");
        let how = Constants::new(self, rate, t);
        if x.len() < PARALLEL {
            return how.apply(x, memory, g);
        }
        let mut memory: Vec<_> = memory.iter_mut().map(|memory| memory.chunks_mut(CHUNK)).collect();
        let chunks = x.chunks_mut(CHUNK).zip(g.chunks(CHUNK)).map(|(x, g)| {
            let memory: Vec<&mut [F]> = memory.iter_mut().filter_map(Iterator::next).collect();
            (x, g, memory)
        });
        parallel::each(chunks, |(x, g, mut memory)| how.apply(x, &mut memory, g));
    }
}

/// A rule at one moment, in the precision of the numbers.
#[derive(Clone, Copy)]
enum Constants<F> {
    Plain { rate: F },
    HeavyBall { rate: F, momentum: F },
    Nesterov { rate: F, momentum: F, ahead: F },
    AdaGrad { rate: F, epsilon: F },
    RmsProp { rate: F, keep: F, epsilon: F },
    Adam { rate: F, keep: [F; 2], of_mean: F, of_square: F, epsilon: F, shrink: F },
}

impl<F: Real> Constants<F> {
    fn new(rule: UpdateRule, rate: F, t: u64) -> Self {
        match rule {
            UpdateRule::Plain => Self::Plain { rate },
            UpdateRule::HeavyBall { momentum } => {
                Self::HeavyBall { rate, momentum: F::of(momentum) }
            }
            UpdateRule::Nesterov { momentum } => {
                let at =
                    |t: u64| momentum.unwrap_or_else(|| (t.max(1) - 1) as f64 / (t as f64 + 2.0));
                Self::Nesterov { rate, momentum: F::of(at(t)), ahead: F::of(at(t + 1)) }
            }
            UpdateRule::AdaGrad { epsilon } => Self::AdaGrad { rate, epsilon: F::of(epsilon) },
            UpdateRule::RmsProp { keep, epsilon } => {
                Self::RmsProp { rate, keep: F::of(keep), epsilon: F::of(epsilon) }
            }
            UpdateRule::Adam { keep_mean, keep_square, epsilon, decay } => {
                let correction = |keep: f64| F::of(1.0 / (1.0 - keep.powf(t as f64)));
                Self::Adam {
                    rate,
                    keep: [F::of(keep_mean), F::of(keep_square)],
                    of_mean: correction(keep_mean),
                    of_square: correction(keep_square),
                    epsilon: F::of(epsilon),
                    shrink: rate * F::of(decay),
                }
            }
        }
    }

    fn apply(self, x: &mut [F], memory: &mut [&mut [F]], g: &[F]) {
        let one = F::of(1.0);
        match (self, memory) {
            (Self::Plain { rate }, _) => {
                for (x, &g) in x.iter_mut().zip(g) {
                    *x = *x - rate * g;
                }
            }
            (Self::HeavyBall { rate, momentum }, [v, ..]) => {
                for ((x, v), &g) in x.iter_mut().zip(v.iter_mut()).zip(g) {
                    *v = momentum * *v + g;
                    *x = *x - rate * *v;
                }
            }
            (Self::Nesterov { rate, momentum, ahead }, [v, ..]) => {
                for ((x, v), &g) in x.iter_mut().zip(v.iter_mut()).zip(g) {
                    *v = momentum * *v + g;
                    *x = *x - rate * (g + ahead * *v);
                }
            }
            (Self::AdaGrad { rate, epsilon }, [s, ..]) => {
                for ((x, s), &g) in x.iter_mut().zip(s.iter_mut()).zip(g) {
                    *s = *s + g * g;
                    *x = *x - rate * g / (s.root() + epsilon);
                }
            }
            (Self::RmsProp { rate, keep, epsilon }, [s, ..]) => {
                for ((x, s), &g) in x.iter_mut().zip(s.iter_mut()).zip(g) {
                    *s = keep * *s + (one - keep) * g * g;
                    *x = *x - rate * g / (s.root() + epsilon);
                }
            }
            (Self::Adam { rate, keep, of_mean, of_square, epsilon, shrink }, [v, s, ..]) => {
                let all = x.iter_mut().zip(v.iter_mut()).zip(s.iter_mut()).zip(g);
                for (((x, v), s), &g) in all {
                    *v = keep[0] * *v + (one - keep[0]) * g;
                    *s = keep[1] * *s + (one - keep[1]) * g * g;
                    let step = rate * of_mean * *v / ((of_square * *s).root() + epsilon);
                    *x = *x - shrink * *x - step;
                }
            }
            _ => {}
        }
    }
}

/// An update rule together with its state.
///
/// ```
/// use gradus_optim::step::{UpdateRule, Stepper};
///
/// let mut x = [3.0];
/// let mut adam = Stepper::new(UpdateRule::ADAM, 1);
/// for _ in 0..400 {
///     let gradient = [2.0 * (x[0] - 1.0)];
///     adam.step(0.05, &mut x, &gradient);
/// }
/// assert!((x[0] - 1.0f64).abs() < 1e-3);
/// ```
#[derive(Clone, Debug)]
pub struct Stepper<F> {
    rule: UpdateRule,
    memory: Vec<Vec<F>>,
    moves: u64,
}

impl<F: Real> Stepper<F> {
    /// Makes the state of the rule for `dim` coordinates.
    pub fn new(rule: UpdateRule, dim: usize) -> Self {
        Self { rule, memory: vec![vec![F::default(); dim]; rule.memories()], moves: 0 }
    }

    /// Moves `x` against the gradient.
    ///
    /// # Shapes
    /// Both have the `dim` numbers it was made for. Panics if not.
    pub fn step(&mut self, rate: F, x: &mut [F], gradient: &[F]) {
        self.moves += 1;
        let mut memory: Vec<&mut [F]> = self.memory.iter_mut().map(Vec::as_mut_slice).collect();
        self.rule.update(rate, self.moves, x, &mut memory, gradient);
    }

    /// Resets the state.
    pub fn reset(&mut self) {
        self.moves = 0;
        self.memory.iter_mut().for_each(|m| m.fill(F::default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rule: UpdateRule, rate: f64, gradients: &[f64]) -> Vec<f64> {
        let (mut x, mut stepper) = ([10.0], Stepper::new(rule, 1));
        let step = |&g: &f64| {
            stepper.step(rate, &mut x, &[g]);
            x[0]
        };
        gradients.iter().map(step).collect()
    }

    fn close(found: &[f64], expected: &[f64]) {
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-7, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn three_moves_of_each_rule_by_hand() {
        let g = [2.0, -1.0, 4.0];
        close(&path(UpdateRule::Plain, 0.5, &g), &[9.0, 9.5, 7.5]);
        // v: 2, 0, 4.
        close(&path(UpdateRule::HeavyBall { momentum: 0.5 }, 0.5, &g), &[9.0, 9.0, 7.0]);
        // g + v/2: 3, −1, 6.
        let fixed = UpdateRule::Nesterov { momentum: Some(0.5) };
        close(&path(fixed, 0.5, &g), &[8.5, 9.0, 6.0]);
        // β: 0, 1/4, 2/5, 3/6; v: 2, −1/2, 3.8; g + β₊ v: 2.5, −1.2, 5.9.
        close(&path(UpdateRule::NESTEROV, 1.0, &g), &[7.5, 8.7, 2.8]);
        // s: 4, 5, 21.
        let (a, b) = (1.0 / 5f64.sqrt(), 4.0 / 21f64.sqrt());
        close(&path(UpdateRule::ADAGRAD, 1.0, &g), &[9.0, 9.0 + a, 9.0 + a - b]);
        // s: 0.4, 0.46, 2.014.
        let s = [2.0 / 0.4f64.sqrt(), -1.0 / 0.46f64.sqrt(), 4.0 / 2.014f64.sqrt()];
        let expected = [10.0 - s[0], 10.0 - s[0] - s[1], 10.0 - s[0] - s[1] - s[2]];
        close(&path(UpdateRule::RMSPROP, 1.0, &g), &expected);
    }

    #[test]
    fn adams_first_moves_by_hand() {
        // The first move is η in the direction of the gradient, whatever its size.
        for g in [1e-3, 1.0, 1e6] {
            close(&path(UpdateRule::ADAM, 0.1, &[g]), &[9.9 + 0.1 * 1e-8 / g]);
        }
        let g = [2.0, -1.0];
        let v2 = (0.9 * 0.1 * 2.0 - 0.1 * 1.0) / (1.0 - 0.81);
        let s2 = (0.999 * 0.001 * 4.0 + 0.001) / (1.0 - 0.999f64 * 0.999);
        close(&path(UpdateRule::ADAM, 0.1, &g), &[9.9, 9.9 - 0.1 * v2 / s2.sqrt()]);
        // Decay acts on the point alone: 10 − η·decay·10 − η.
        close(&path(UpdateRule::adamw(0.2), 0.1, &[1.0]), &[10.0 - 0.2 - 0.1]);
        assert_eq!((UpdateRule::adamw(0.2).name(), UpdateRule::ADAM.name()), ("adamw", "adam"));
    }

    #[test]
    fn long_vectors_move_as_short_ones_and_single_precision_as_double() {
        let n = PARALLEL + 77;
        let rules = [
            UpdateRule::Plain,
            UpdateRule::HEAVY_BALL,
            UpdateRule::NESTEROV,
            UpdateRule::ADAGRAD,
            UpdateRule::RMSPROP,
            UpdateRule::adamw(0.01),
        ];
        for rule in rules {
            let g: Vec<f64> = (0..n).map(|j| 0.1 + (j % 7) as f64).collect();
            let mut x = vec![1.0; n];
            let mut stepper = Stepper::new(rule, n);
            let mut small = [1.0; 7];
            let mut short = Stepper::new(rule, 7);
            let mut single = [1.0f32; 7];
            let mut half = Stepper::new(rule, 7);
            for _ in 0..3 {
                stepper.step(0.1, &mut x, &g);
                short.step(0.1, &mut small, &g[..7]);
                half.step(0.1, &mut single, &std::array::from_fn::<f32, 7, _>(|j| g[j] as f32));
            }
            assert!(x.iter().enumerate().all(|(j, x)| *x == small[j % 7]), "{rule:?}");
            let near = |j: usize| (f64::from(single[j]) - small[j]).abs() < 1e-5;
            assert!((0..7).all(near), "{rule:?}");
            short.reset();
            assert_eq!(short.moves, 0);
        }
    }

    #[test]
    fn constants_are_checked() {
        assert!(UpdateRule::HeavyBall { momentum: 1.0 }.check().is_err());
        assert!(UpdateRule::Nesterov { momentum: Some(-0.1) }.check().is_err());
        assert!(UpdateRule::AdaGrad { epsilon: 0.0 }.check().is_err());
        assert!(UpdateRule::adamw(f64::NAN).check().is_err());
        assert!(UpdateRule::ADAM.check().and(UpdateRule::NESTEROV.check()).is_ok());
    }
}
