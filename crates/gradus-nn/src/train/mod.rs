//! The training loop that all networks share: shuffled batches, gradients, steps, averages, and what the loop of
//! [`gradus_core::iterate`] adds to it: held-out scores, checkpoints, stopping, several starts.

mod options;
mod range;

pub use options::{ScheduleKind, TrainOptions, plan_epochs};
pub use range::Range;

use crate::layers::Pass;
use crate::optimizer::{StepSettings, Trained, average};
use crate::weights::{Layout, Role, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::density::Progress;
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_core::report::{Measure, StopReason};
use gradus_file::{Reader, Writer};

/// What a network learns: its weights, its data and its loss.
pub trait Task: Sync {
    /// The weights of the network.
    fn layout(&self) -> &Layout;

    /// The number of units (samples, images, windows of text) that an epoch goes over.
    fn n_units(&self) -> usize;

    /// The number of units of one epoch, of a task whose epochs are parts of a plan.
    fn n_units_of(&self, epoch: u64) -> usize {
        let _ = epoch;
        self.n_units()
    }

    /// The mean loss of some units.
    fn loss(&self, weights: &Weights, units: &[u32], pass: &Pass) -> Tensor<1>;

    /// The held-out score, if there is held-out data.
    fn validate(&self, weights: &Weights) -> Option<f64>;

    /// The held-out score of the weights that are kept, where [`validate`](Self::validate) looks at a part of the data only.
    fn validate_kept(&self, weights: &Weights) -> Option<f64> {
        let _ = weights;
        None
    }

    /// Further measures after an epoch.
    fn measures(&self, weights: &Weights) -> Vec<Measure> {
        let _ = weights;
        Vec::new()
    }

    /// Samples that the model draws with these weights, always from the same noise: of a generative model that keeps some of them
    /// for its page. It is asked after epochs 1, 2, 4, 8 and so on.
    fn samples(&self, weights: &Weights) -> Option<Vec<f32>> {
        let _ = weights;
        None
    }

    /// The name of the model, for errors.
    fn model(&self) -> &'static str;
}

/// Where training stands.
#[derive(Clone, Debug)]
pub struct TrainState {
    /// The weights and what the optimizer remembers.
    pub trained: Trained,
    /// The moving average of the weights, if there is one: it is what is scored and kept.
    pub average: Option<Weights>,
    /// Epochs done in this start.
    pub epoch: u64,
    /// The number of the start.
    pub restart: u64,
    /// The losses of a range test.
    pub range: Range,
    /// Samples after some epochs, of a generative model.
    pub progress: Progress,
}

impl TrainState {
    /// The weights to predict with.
    pub fn weights(&self) -> &Weights {
        self.average.as_ref().unwrap_or(&self.trained.weights)
    }
}

/// The losses of the parts of a batch, and the gradient of each tensor of weights.
type Gradients = (Vec<Tensor<1>>, Vec<Option<Tensor<1>>>);

/// Trains a network on a task.
pub struct Trainer<'a, T> {
    /// The task.
    pub task: &'a T,
    /// The options of training.
    pub options: TrainOptions,
    /// The device.
    pub device: Device,
    /// Weights to start from, instead of random ones.
    pub warm: Option<Weights>,
}

impl<T: Task> Trainer<'_, T> {
    /// The loss of a batch and the gradients of the weights.
    fn gradients(
        &self,
        weights: &mut Weights,
        batch: &[u32],
        (step, mut stream): (u64, Stream),
    ) -> Result<Gradients> {
        let layout = self.task.layout();
        let (mut losses, mut sums) = (Vec::new(), Vec::new());
        let part = self.options.micro_batch.unwrap_or(batch.len()).max(1);
        for (at, units) in batch.chunks(part).enumerate() {
            let pass = Stream::new(stream.next_u64(), "nn.pass", at as u64);
            let pass = Pass::training(pass).of_step(step);
            let tracked = weights.tracked(layout);
            let share = units.len() as f64 / batch.len() as f64;
            let loss = self.task.loss(&tracked, units, &pass) * share;
            let mut found = loss.backward();
            losses.push(loss.inner());
            let gradients = tracked.gradients(&mut found);
            sums = if at == 0 { gradients } else { add(sums, gradients) };
            drop(tracked);
            pass.update(weights);
        }
        // A weight that the loss does not depend on would stay at random for ever.
        let missing = layout
            .specs()
            .iter()
            .zip(&sums)
            .find(|(spec, gradient)| spec.role != Role::Statistic && gradient.is_none());
        if let Some((spec, _)) = missing {
            let model = self.task.model();
            return Err(Error::data(format!(
                "{model}: the loss does not depend on the weights `{}`",
                spec.name
            )));
        }
        Ok((losses, sums))
    }

    /// Takes a step along these gradients.
    fn take_step(&self, state: &mut TrainState, gradients: Vec<Option<Tensor<1>>>) {
        let settings = StepSettings {
            rate: self.options.rate(state.trained.steps as usize),
            ..self.options.step
        };
        state.trained.step(self.task.layout(), gradients, &settings);
        if let Some(mean) = &mut state.average {
            // Few steps have been averaged at first: the average follows faster.
            let t = state.trained.steps as f64;
            let decay = self.options.average.min((1.0 + t) / (10.0 + t));
            average(mean, &state.trained.weights, decay);
        }
    }

    /// The losses of batches, read from the device; the first that is no number is an error.
    fn read(
        &self,
        losses: &mut Vec<Tensor<1>>,
        (epoch, first): (u64, usize),
        total: &mut f64,
    ) -> Result<()> {
        let taken = std::mem::take(losses);
        if taken.is_empty() {
            return Ok(());
        }
        for (at, loss) in crate::device::numbers(Tensor::cat(taken, 0)).into_iter().enumerate() {
            let (model, rate) = (self.task.model(), self.options.schedule.rate);
            *total += check_loss(model, loss, (epoch, first + at), rate)?;
        }
        Ok(())
    }
}

/// The loss of a batch, if it is a number.
///
/// # Errors
/// If it is none; the message says what to do.
pub(crate) fn check_loss(
    model: &str,
    loss: f32,
    (epoch, batch): (u64, usize),
    rate: f64,
) -> Result<f64> {
    if loss.is_finite() {
        return Ok(f64::from(loss));
    }
    Err(Error::data(format!(
        "{model}: the loss became {loss} in batch {} of epoch {}; give a smaller learning_rate than {rate}, or clip_norm. A \
         checkpoint that was written before holds the last good state",
        batch + 1,
        epoch + 1
    )))
}

fn add(a: Vec<Option<Tensor<1>>>, b: Vec<Option<Tensor<1>>>) -> Vec<Option<Tensor<1>>> {
    let both = |(a, b): (Option<Tensor<1>>, Option<Tensor<1>>)| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    a.into_iter().zip(b).map(both).collect()
}

/// Batches whose losses are read from a device at once.
pub(crate) const READ: usize = 32;

impl<T: Task> Solver for Trainer<'_, T> {
    type State = TrainState;

    fn start(&self, restart: usize) -> Result<TrainState> {
        let seed = self.options.seed.wrapping_add(restart as u64);
        let weights = match &self.warm {
            Some(warm) if restart == 0 => warm.to_device(&self.device),
            _ => Weights::init(self.task.layout(), seed, &self.device),
        };
        let average = (self.options.average > 0.0).then(|| weights.clone());
        Ok(TrainState {
            trained: Trained::new(weights),
            average,
            epoch: 0,
            restart: restart as u64,
            range: Range::default(),
            progress: Progress::default(),
        })
    }

    fn step(&self, state: &mut TrainState, watch: &Watch<'_>) -> Result<Step> {
        if self.options.range.is_some() {
            return if watch.stopped() { Ok(Step::Stopped) } else { self.range_step(state) };
        }
        let before = state.clone();
        let mut order: Vec<u32> = (0..self.task.n_units_of(state.epoch) as u32).collect();
        let seed = self.options.seed.wrapping_add(state.restart);
        Stream::new(seed, "nn.shuffle", state.epoch).shuffle(&mut order);
        let (n, steps) = (order.len(), order.len().div_ceil(self.options.batch_size));
        let (mut losses, mut total, mut read) = (Vec::new(), 0.0, 0);
        for (at, batch) in order.chunks(self.options.batch_size).enumerate() {
            if watch.stopped() {
                *state = before;
                return Ok(Step::Stopped);
            }
            let step = state.trained.steps;
            let how = (step, Stream::new(seed, "nn.batch", step));
            let (loss, gradients) = self.gradients(&mut state.trained.weights, batch, how)?;
            let scaled = loss.into_iter().reduce(|a, b| a + b).expect("a batch has a unit");
            losses.push(scaled * (batch.len() as f64 / n as f64));
            self.take_step(state, gradients);
            if losses.len() == READ || at + 1 == steps {
                self.read(&mut losses, (state.epoch, read), &mut total)?;
                read = at + 1;
            }
            watch.within((at + 1) as f64 / steps as f64);
        }
        state.epoch += 1;
        if state.epoch.is_power_of_two()
            && let Some(samples) = self.task.samples(state.weights())
        {
            state.progress.epochs.push(state.epoch);
            state.progress.samples.extend(samples);
        }
        Ok(Step::Done(total))
    }

    fn validate(&self, state: &TrainState) -> Option<f64> {
        match self.options.range {
            // A held-out score after each step would take longer than the steps.
            Some(_) => None,
            None => self.task.validate(state.weights()),
        }
    }

    fn validate_kept(&self, state: &TrainState) -> Option<f64> {
        match self.options.range {
            Some(_) => None,
            None => self.task.validate_kept(state.weights()),
        }
    }

    fn ended(&self, state: &TrainState) -> Option<StopReason> {
        (self.options.range.is_some() && state.range.is_over()).then_some(StopReason::NoImprovement)
    }

    fn measures(&self, state: &TrainState) -> Vec<Measure> {
        let rate = self.options.rate(state.trained.steps.saturating_sub(1) as usize);
        let mut measures = vec![Measure::new("learning rate", rate)];
        if self.options.range.is_some() {
            return measures;
        }
        measures.extend(self.task.measures(state.weights()));
        measures
    }

    fn depends_on_max_iter(&self) -> bool {
        self.options.depends_on_max_iter()
    }

    fn write_state<'a>(&self, state: &'a TrainState, prefix: &str, file: &mut Writer<'a>) {
        let layout = self.task.layout();
        state.trained.weights.write(layout, &format!("{prefix}weights."), file);
        state.trained.first.write(layout, &format!("{prefix}first."), file);
        state.trained.second.write(layout, &format!("{prefix}second."), file);
        if let Some(average) = &state.average {
            average.write(layout, &format!("{prefix}average."), file);
        }
        crate::generative::write_progress(&state.progress, prefix, file);
        let counts = vec![state.trained.steps, state.epoch, state.restart];
        file.tensor_owned(&format!("{prefix}counts"), &[3], counts);
        if self.options.range.is_some() {
            file.tensor_owned(&format!("{prefix}range"), &[3], state.range.to_vec());
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<TrainState> {
        let (layout, device) = (self.task.layout(), &self.device);
        let weights = Weights::read(layout, &format!("{prefix}weights."), file, device)?;
        let first = Weights::read(layout, &format!("{prefix}first."), file, device)?;
        let second = Weights::read(layout, &format!("{prefix}second."), file, device)?;
        let average = (self.options.average > 0.0)
            .then(|| Weights::read(layout, &format!("{prefix}average."), file, device))
            .transpose()?;
        let counts: Vec<u64> = file.tensor(&format!("{prefix}counts"), &[3])?;
        let range = match self.options.range {
            Some(_) => Range::from_vec(&file.tensor::<f64>(&format!("{prefix}range"), &[3])?),
            None => Range::default(),
        };
        let progress = crate::generative::read_progress(prefix, file)?;
        let trained = Trained { weights, first, second, steps: counts[0] };
        Ok(TrainState { trained, average, epoch: counts[1], restart: counts[2], range, progress })
    }
}
