//! The options of training.

use crate::optimizer::{BETA1, OptimizerKind, StepSettings};
use gradus_core::report::Choice;
use gradus_optim::Schedule;
use gradus_optim::schedule::Shape;
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
    /// Rises by the same factor with each step, from a ten-millionth of the learning rate (left out, 10): the learning-rate range
    /// test, as `gradus lab lr` draws it. Every iteration of the report is one step, `max_iter` of them (left out, 300), and the fit
    /// ends when the loss has grown to four times its least.
    Range,
}

/// By how much the rate of a range test rises from its first step to its last.
const RISE: f64 = 1e7;
/// The last rate of a range test, where it is left out.
const TOP: f64 = 10.0;
/// Steps of a range test, where their number is left out.
const RANGE_STEPS: usize = 300;

impl ScheduleKind {
    /// The learning rate: as given, or the default of the model.
    pub fn rate(self, given: Option<f64>, default: f64) -> f64 {
        given.unwrap_or(if self == Self::Range { TOP } else { default })
    }

    /// The number of iterations: as given, or as planned.
    pub fn iterations(self, given: Option<usize>, planned: impl FnOnce() -> usize) -> usize {
        match (given, self) {
            (Some(given), _) => given,
            (None, Self::Range) => RANGE_STEPS,
            (None, _) => planned(),
        }
    }

    /// The number of steps of so many iterations, epochs of so many steps: of a range test an iteration is one step.
    pub fn steps(self, iterations: usize, of_an_epoch: usize) -> usize {
        if self == Self::Range { iterations } else { iterations * of_an_epoch }
    }
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
    /// Steps of a range test, if this is one: the rate of the schedule is that of its last step then.
    pub range: Option<usize>,
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
        let range = (schedule == ScheduleKind::Range).then_some(steps);
        let share = if range.is_some() { 0.0 } else { warm_up };
        let first = ((steps as f64 * share) as usize).min(steps.saturating_sub(1));
        let schedule = match schedule {
            ScheduleKind::Cosine => Schedule::cosine(rate, steps - first),
            ScheduleKind::Constant | ScheduleKind::Range => Schedule::constant(rate),
        };
        Self {
            batch_size,
            micro_batch: None,
            schedule: schedule.warm_up(first),
            range,
            step: StepSettings {
                kind,
                rate,
                weight_decay: 0.0,
                beta1: BETA1,
                beta2: 0.999,
                clip_norm: 0.0,
            },
            average: 0.0,
            seed,
        }
    }

    /// The same for another number of steps: warm-up and fall are scaled to them.
    #[must_use]
    pub fn shortened(mut self, steps: usize) -> Self {
        if let Shape::Cosine { steps: before, floor } = self.schedule.shape {
            let share = steps as f64 / (before + self.schedule.warm_up).max(1) as f64;
            let first = (self.schedule.warm_up as f64 * share) as usize;
            self.schedule.warm_up = first;
            self.schedule.shape =
                Shape::Cosine { steps: steps.saturating_sub(first).max(1), floor };
        }
        self
    }

    /// The choices that a fit reports: of a range test, whose steps and rates are its own, the batch size alone.
    pub fn reported(&self, mut chosen: Vec<Choice>) -> Vec<Choice> {
        chosen.retain(|choice| self.range.is_none() || choice.parameter == "batch_size");
        chosen
    }

    /// The learning rate of a step, counted from 0.
    pub fn rate(&self, step: usize) -> f64 {
        match self.range {
            Some(steps) if steps > 1 => {
                let left = 1.0 - step as f64 / (steps - 1) as f64;
                self.schedule.rate * RISE.powf(-left)
            }
            _ => self.schedule.rate(step),
        }
    }

    /// Whether the steps depend on the number of iterations asked for.
    pub(crate) fn depends_on_max_iter(&self) -> bool {
        self.range.is_some()
            || self.schedule.warm_up > 0
            || matches!(self.schedule.shape, Shape::Cosine { .. })
    }
}

/// The number of epochs that makes about `steps` steps over `n` units, within `range`.
pub fn plan_epochs(n: usize, batch_size: usize, steps: usize, range: (usize, usize)) -> usize {
    let of_an_epoch = n.div_ceil(batch_size).max(1);
    steps.div_ceil(of_an_epoch).clamp(range.0, range.1)
}
