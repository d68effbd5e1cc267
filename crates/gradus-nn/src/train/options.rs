//! The options of training.

use crate::optimizer::{OptimizerKind, StepSettings};
use gradus_optim::Schedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the learning rate changes from step to step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// Falls to 0 along half a cosine, with the last step of the last iteration.
    #[default]
    Cosine,
    /// Stays the same.
    Constant,
}

/// The options of training, as a [`Trainer`](super::Trainer) takes them.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// Units in a batch: one step each.
    pub batch_size: usize,
    /// Units whose gradient is computed at once; the gradients of the parts of a batch are added. `None`: the whole batch.
    pub micro_batch: Option<usize>,
    /// The learning rate of each step.
    pub schedule: Schedule,
    /// The other settings of a step.
    pub step: StepSettings,
    /// The share of the moving average of the weights that stays with each step; 0 for no average.
    pub average: f64,
    /// The seed of initial weights, order of the units and dropout.
    pub seed: u64,
}

impl TrainOptions {
    /// Options for so many steps in all.
    pub fn new(
        (kind, schedule): (OptimizerKind, ScheduleKind),
        (rate, warm_up): (f64, f64),
        steps: usize,
        batch_size: usize,
        seed: u64,
    ) -> Self {
        let first = ((steps as f64 * warm_up) as usize).min(steps.saturating_sub(1));
        let schedule = match schedule {
            ScheduleKind::Cosine => Schedule::cosine(rate, steps - first),
            ScheduleKind::Constant => Schedule::constant(rate),
        };
        Self {
            batch_size,
            micro_batch: None,
            schedule: schedule.warm_up(first),
            step: StepSettings { kind, rate, weight_decay: 0.0, beta2: 0.999, clip_norm: 0.0 },
            average: 0.0,
            seed,
        }
    }

    /// Whether the steps depend on the number of iterations asked for.
    pub(super) fn depends_on_max_iter(&self) -> bool {
        self.schedule.warm_up > 0
            || matches!(self.schedule.shape, gradus_optim::schedule::Shape::Cosine { .. })
    }
}

/// The number of epochs that makes about `steps` steps over `n` units, within `range`.
pub fn plan_epochs(n: usize, batch_size: usize, steps: usize, range: (usize, usize)) -> usize {
    let of_an_epoch = n.div_ceil(batch_size).max(1);
    steps.div_ceil(of_an_epoch).clamp(range.0, range.1)
}
