//! The learning-rate range test: every step at a larger rate than the one before, until the loss grows.
//!
//! Reference: Smith: Cyclical learning rates for training neural networks, 2017.

use super::{Task, TrainState, Trainer};
use crate::device::numbers;
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::iterate::Step;

/// The test ends when the smoothed loss has grown to so many times its least.
const GROWN: f64 = 4.0;
/// The share of the smoothed loss that stays with each step.
const KEPT: f64 = 0.9;

/// The losses of a range test so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// Steps whose loss was a number.
    steps: f64,
    /// The sum of losses, each multiplied by 0.9 with every later one, and by 0.1.
    sum: f64,
    /// The least smoothed loss; negative after a loss that was no number.
    least: f64,
}

impl Range {
    fn record(&mut self, loss: f64) {
        self.steps += 1.0;
        self.sum = KEPT * self.sum + (1.0 - KEPT) * loss;
        let smooth = self.smooth();
        self.least = if self.steps == 1.0 { smooth } else { self.least.min(smooth) };
    }

    fn smooth(&self) -> f64 {
        self.sum / (1.0 - KEPT.powf(self.steps))
    }

    pub(super) fn is_over(&self) -> bool {
        self.least < 0.0 || (self.steps > 0.0 && self.smooth() > GROWN * self.least)
    }

    pub(super) fn to_vec(self) -> Vec<f64> {
        vec![self.steps, self.sum, self.least]
    }

    pub(super) fn from_vec(values: &[f64]) -> Self {
        Self { steps: values[0], sum: values[1], least: values[2] }
    }
}

impl<T: Task> Trainer<'_, T> {
    /// One step of a range test, on the next batch.
    pub(super) fn range_step(&self, state: &mut TrainState) -> Result<Step> {
        let seed = self.options.seed.wrapping_add(state.restart);
        let size = self.options.batch_size.max(1);
        let n = self.task.n_units_of(0);
        let batches = n.div_ceil(size).max(1) as u64;
        let mut order: Vec<u32> = (0..n as u32).collect();
        Stream::new(seed, "nn.shuffle", state.epoch / batches).shuffle(&mut order);
        let first = (state.epoch % batches) as usize * size;
        let batch = &order[first..(first + size).min(n)];
        let stream = Stream::new(seed, "nn.batch", state.trained.steps);
        let how = (u64::MAX, stream);
        let (losses, gradients) = self.gradients(&mut state.trained.weights, batch, how)?;
        let loss: f64 = losses.into_iter().map(|loss| f64::from(numbers(loss)[0])).sum();
        state.epoch += 1;
        if !loss.is_finite() {
            state.range.least = -1.0;
            state.trained.steps += 1;
            return Ok(Step::Done(f64::from(f32::MAX)));
        }
        self.take_step(state, gradients);
        state.range.record(loss);
        Ok(Step::Done(loss))
    }
}

#[cfg(test)]
mod tests {
    use crate::train::ScheduleKind;
    use crate::{Mlp, MlpRegressor};
    use gradus_core::dataset::DataKind;
    use gradus_core::estimator::{Fit, Traits};
    use gradus_data::Samples;

    #[test]
    fn rates_rise_by_the_same_factor_until_the_loss_has_grown() {
        let samples = Samples::example(300, 1, &Traits::CLASSIFICATION).unwrap();
        let params = Mlp::new().hidden(vec![16]).schedule(ScheduleKind::Range).clip_norm(0.0);
        let report = params.clone().fit(&samples).unwrap().report;
        let rates: Vec<f64> = report.trace.iter().map(|point| point.measures[0].value).collect();
        assert!((rates[0] - 1e-6).abs() < 1e-12 && rates.len() <= 300 && rates.len() > 100);
        let factor = 1e7f64.powf(1.0 / 299.0);
        assert!(rates.windows(2).all(|pair| (pair[1] / pair[0] - factor).abs() < 1e-9));
        assert!(report.trace.iter().all(|point| point.validation.is_none()));
        let least = report.trace.iter().map(|point| point.objective).fold(f64::MAX, f64::min);
        assert!(report.trace.last().unwrap().objective > least);
        // A smaller top is not passed.
        let report = params.learning_rate(1e-3).max_iter(50_usize).fit(&samples).unwrap().report;
        let last = report.trace.last().unwrap();
        assert!(report.iterations == 50 && (last.measures[0].value - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn a_loss_that_is_no_number_ends_the_test_and_is_no_error() {
        let samples = Samples::example(200, 1, &Traits::REGRESSION).unwrap();
        let mut params = MlpRegressor::new().hidden(vec![64, 64, 64]).schedule(ScheduleKind::Range);
        params = params.clip_norm(0.0).optimizer(crate::optimizer::OptimizerKind::Sgd);
        let report = params.fit(&samples).unwrap().report;
        assert!(report.iterations < 300, "{}", report.iterations);
    }
}
