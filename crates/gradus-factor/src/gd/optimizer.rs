//! How a gradient becomes a step.

use gradus_kernel::Rows;
use gradus_optim::UpdateRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of the mean squared gradient Adam keeps.
const ADAM_KEEP: f64 = 0.999;
/// A small number that keeps a quotient finite where no gradient was seen.
const EPSILON: f64 = 1e-8;

/// How the gradient becomes a step. With the descent direction `d` and the step length `η`:
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GdOptimizer {
    /// `x ← x + η d`.
    Gd,
    /// `v ← μ v + d`, `x ← x + η v`: goes on in the direction it came from.
    Momentum,
    /// `v ← μ v + d`, `x ← x + η (d + μ v)`: looks at the slope where the momentum will take it.
    #[default]
    Nesterov,
    /// `s ← s + d²`, `x ← x + η d / √s`, each coordinate for itself.
    Adagrad,
    /// `s ← 0.9 s + 0.1 d²`, `x ← x + η d / √s`.
    Rmsprop,
    /// Momentum over RMSprop: `v ← μ v + (1 − μ) d`, `s ← 0.999 s + 0.001 d²`, `x ← x + η v / √s`, both corrected for starting at 0.
    Adam,
}

impl GdOptimizer {
    /// Whether the objective may not rise.
    pub(super) fn descends(self) -> bool {
        matches!(self, Self::Gd | Self::Momentum | Self::Nesterov)
    }

    /// The rule behind it.
    fn rule(self, momentum: f32) -> UpdateRule {
        let momentum = f64::from(momentum);
        match self {
            Self::Gd => UpdateRule::Plain,
            Self::Momentum => UpdateRule::HeavyBall { momentum },
            Self::Nesterov => UpdateRule::Nesterov { momentum: Some(momentum) },
            Self::Adagrad => UpdateRule::ADAGRAD,
            Self::Rmsprop => UpdateRule::RMSPROP,
            Self::Adam => UpdateRule::Adam {
                keep_mean: momentum,
                keep_square: ADAM_KEEP,
                epsilon: EPSILON,
                decay: 0.0,
            },
        }
    }

    /// Number of values that it remembers for each coordinate.
    pub(super) fn memories(self) -> usize {
        self.rule(0.0).memories()
    }

    /// The default step length.
    pub(super) fn usual_rate(self) -> f32 {
        match self {
            Self::Gd | Self::Momentum | Self::Nesterov => 1.0,
            Self::Adagrad => 0.1,
            Self::Rmsprop | Self::Adam => 0.02,
        }
    }
}

/// A value for every parameter: where the fit stands, a gradient, or what an optimiser remembers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) users: Rows,
    pub(super) items: Rows,
    pub(super) user_bias: Vec<f32>,
    pub(super) item_bias: Vec<f32>,
}

impl Point {
    pub(super) fn zeros(n_users: usize, n_items: usize, k: usize) -> Self {
        Self {
            users: Rows::zeros(n_users, k),
            items: Rows::zeros(n_items, k),
            user_bias: vec![0.0; n_users],
            item_bias: vec![0.0; n_items],
        }
    }

    fn slices(&self) -> [&[f32]; 4] {
        [self.users.as_slice(), self.items.as_slice(), &self.user_bias, &self.item_bias]
    }

    fn slices_mut(&mut self) -> [&mut [f32]; 4] {
        [
            self.users.as_mut_slice(),
            self.items.as_mut_slice(),
            &mut self.user_bias,
            &mut self.item_bias,
        ]
    }
}

/// Moves `x` along the descent direction `down`. `step` counts from 1.
pub(super) fn advance(
    optimizer: GdOptimizer,
    (rate, momentum): (f32, f32),
    step: u64,
    x: &mut Point,
    memory: &mut [Point],
    down: &Point,
) {
    let rule = optimizer.rule(momentum);
    let mut memory: Vec<_> = memory.iter_mut().map(Point::slices_mut).collect();
    for (part, (x, down)) in x.slices_mut().into_iter().zip(down.slices()).enumerate() {
        let mut own: Vec<&mut [f32]> = memory.iter_mut().map(|point| &mut *point[part]).collect();
        // The rules go against what they are given.
        rule.update(-rate, step, x, &mut own, down);
    }
}
