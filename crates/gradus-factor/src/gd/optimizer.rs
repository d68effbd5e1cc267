//! How a gradient becomes a step.

use gradus_core::kernel::Rows;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values moved by one task.
const CHUNK: usize = 1 << 14;
/// What keeps a quotient finite where no gradient was seen.
const EPSILON: f32 = 1e-8;
/// How much of the mean squared gradient RMSprop and Adam keep.
const RMSPROP_KEEP: f32 = 0.9;
const ADAM_KEEP: f32 = 0.999;

/// How the gradient becomes a step. With the downhill direction `d` and the length `η`:
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
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

impl Optimizer {
    /// Whether the objective may not rise.
    pub(super) fn descends(self) -> bool {
        matches!(self, Self::Gd | Self::Momentum | Self::Nesterov)
    }

    /// How many numbers it remembers of each coordinate.
    pub(super) fn memories(self) -> usize {
        match self {
            Self::Gd => 0,
            Self::Momentum | Self::Nesterov | Self::Adagrad | Self::Rmsprop => 1,
            Self::Adam => 2,
        }
    }

    /// The length of a step where none is given.
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

    /// Runs `step` on this and some others, chunk by chunk.
    fn zip<const N: usize>(
        &mut self,
        others: [&mut Self; N],
        down: &Self,
        step: impl Fn(&mut [f32], [&mut [f32]; N], &[f32]) + Sync,
    ) {
        let mut others: Vec<_> = others.into_iter().map(Point::slices_mut).collect();
        for (part, (x, d)) in self.slices_mut().into_iter().zip(down.slices()).enumerate() {
            let mut chunks: Vec<_> =
                others.iter_mut().map(|other| other[part].chunks_mut(CHUNK)).collect();
            let mut tasks = Vec::with_capacity(x.len() / CHUNK + 1);
            for (x, d) in x.chunks_mut(CHUNK).zip(d.chunks(CHUNK)) {
                let own: Vec<&mut [f32]> = chunks.iter_mut().filter_map(Iterator::next).collect();
                if let Ok(own) = <[&mut [f32]; N]>::try_from(own) {
                    tasks.push((x, own, d));
                }
            }
            tasks.into_par_iter().for_each(|(x, own, d)| step(x, own, d));
        }
    }
}

/// Moves `x` along the downhill direction `down`. `step` counts from 1.
pub(super) fn advance(
    optimizer: Optimizer,
    (rate, momentum): (f32, f32),
    step: u64,
    x: &mut Point,
    memory: &mut [Point],
    down: &Point,
) {
    match (optimizer, memory) {
        (Optimizer::Momentum, [v]) => x.zip([v], down, |x, [v], d| {
            for ((x, v), d) in x.iter_mut().zip(v).zip(d) {
                *v = momentum * *v + d;
                *x += rate * *v;
            }
        }),
        (Optimizer::Nesterov, [v]) => x.zip([v], down, |x, [v], d| {
            for ((x, v), d) in x.iter_mut().zip(v).zip(d) {
                *v = momentum * *v + d;
                *x += rate * (d + momentum * *v);
            }
        }),
        (Optimizer::Adagrad, [s]) => x.zip([s], down, |x, [s], d| {
            for ((x, s), d) in x.iter_mut().zip(s).zip(d) {
                *s += d * d;
                *x += rate * d / (s.sqrt() + EPSILON);
            }
        }),
        (Optimizer::Rmsprop, [s]) => x.zip([s], down, |x, [s], d| {
            for ((x, s), d) in x.iter_mut().zip(s).zip(d) {
                *s = RMSPROP_KEEP * *s + (1.0 - RMSPROP_KEEP) * d * d;
                *x += rate * d / (s.sqrt() + EPSILON);
            }
        }),
        (Optimizer::Adam, [v, s]) => {
            let correction = |keep: f32| 1.0 / (1.0 - f64::from(keep).powf(step as f64)) as f32;
            let (of_v, of_s) = (correction(momentum), correction(ADAM_KEEP));
            x.zip([v, s], down, |x, [v, s], d| {
                for (((x, v), s), d) in x.iter_mut().zip(v).zip(s).zip(d) {
                    *v = momentum * *v + (1.0 - momentum) * d;
                    *s = ADAM_KEEP * *s + (1.0 - ADAM_KEEP) * d * d;
                    *x += rate * of_v * *v / ((of_s * *s).sqrt() + EPSILON);
                }
            });
        }
        _ => x.zip([], down, |x, [], d| {
            for (x, d) in x.iter_mut().zip(d) {
                *x += rate * d;
            }
        }),
    }
}
