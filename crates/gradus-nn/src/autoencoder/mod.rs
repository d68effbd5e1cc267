//! Autoencoders: codes of few numbers from which samples come back (`autoencoder`).
//!
//! | file | what it holds |
//! |---|---|
//! | `network.rs` | encoder and decoder |
//! | `task.rs` | the error of the reconstruction |
//! | `model.rs` | what is learned: transform, inverse |

mod model;
mod network;
mod task;
#[cfg(test)]
mod tests;

pub use model::DeepAutoencoder;
pub use network::{AutoencoderArchitecture, AutoencoderNetwork, Coding};

use crate::device::DeviceKind;
use crate::layers::Activation;
use crate::optimizer::OptimizerKind;
use crate::parameters::shared;
use crate::supervised::{Features, Scaler, hold_out, order_of};
use crate::train::{ScheduleKind, TrainOptions, Trainer, plan_epochs};
use crate::weights::Layout;
use burn::tensor::Device;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::{Baseline, Choice};
use gradus_data::{Inputs, Samples};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use task::ReconstructionTask;

/// Steps that a fit should take, where the number of epochs is left out, and the fewest and the most epochs.
const STEPS: usize = 6_000;
const EPOCHS: (usize, usize) = (20, 200);

/// The fewest and the most numbers of a code whose length is left out.
const CODE: (usize, usize) = (2, 32);

/// The layers of an autoencoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AutoencoderKind {
    /// Layers of units, each connected to all of the layer before: for tables, and for small images.
    #[default]
    Dense,
    /// Convolutions, between which images are halved, and doubled on the way back: for images.
    Convolutional,
}

gradus_core::params! { [shared]
    /// Autoencoder: a network that makes a code of few numbers of a sample, and the sample of the code.
    ///
    /// The encoder `g` has hidden layers between the features and the code, the decoder `h` the same in the other order, and the fit
    /// minimises the squared error of the reconstruction, `½ E‖z − h(g(z))‖² / D` over the `D` standardised features `z`, by AdamW over
    /// batches. A code is linear in the last hidden layer: any number. A tenth of the samples is held out (unless held-out data is
    /// given), and the epoch with the least error on it is kept; the error is in standard deviations, so that 1 is that of the mean.
    ///
    /// Features of tables are brought to mean 0 and variance 1; pixels are centred and scaled by their mean and deviation over all
    /// pixels of a channel. `transform` gives codes, `inverse_transform` the samples of codes. Decoding and encoding a code gives
    /// nearly the code, not exactly. Without hidden layers the codes span the space of the first principal components: `pca` is exact
    /// and faster there, and to be beaten by this one where data lie near a curved surface.
    ///
    /// Cost of an epoch: six operations for each weight and sample (`convolutional`: and place of a window). The result depends neither
    /// on the number of threads nor on the order of the samples.
    ///
    /// Reference: Hinton, Salakhutdinov: Reducing the dimensionality of data with neural networks, 2006.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::transform::Transform;
    /// use gradus_data::{Dense, Samples};
    /// use gradus_nn::Autoencoder;
    ///
    /// // Points of a circle: one number says where a point is.
    /// let x = Dense::from_fn(400, 2, |row, at| (row as f64 * 0.0157 - if at == 0 { 0.0 } else { 1.57 }).cos());
    /// let samples = Samples::unlabelled(x)?;
    /// let fitted = Autoencoder::new().n_components(1).hidden(vec![32, 32]).max_iter(100).fit(&samples)?;
    /// let codes = fitted.transform(samples.features())?;
    /// assert_eq!(codes.shape(), (400, 1));
    /// assert!(fitted.report.validation.unwrap() < 0.5);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Autoencoder {
        /// Number of components: the length of a code. Left out, a quarter of the features, from 2 to 32.
        #[schemars(range(min = 1, max = 100_000))]
        pub n_components: Option<usize>,

        /// Kind of the layers.
        pub architecture: AutoencoderKind,

        /// Number of units of each hidden layer of the encoder (`dense`); the decoder has them in the other order.
        #[schemars(length(max = 64), inner(range(min = 1, max = 65_536)))]
        pub hidden: Vec<usize>,

        /// Number of channels of each convolution of the encoder (`convolutional`), behind which images are halved.
        #[schemars(length(min = 1, max = 16), inner(range(min = 1, max = 8_192)))]
        pub channels: Vec<usize>,

        /// Height and width of the windows of the convolutions: an odd number.
        #[schemars(range(min = 1, max = 15))]
        pub kernel: usize,

        [activation, optimizer, learning_rate, schedule, warm_up, batch_size, weight_decay, clip_norm, average, max_iter, patience,
         restarts, validation_fraction, seed, device],
    }
}

impl Default for Autoencoder {
    fn default() -> Self {
        Self {
            n_components: None,
            architecture: AutoencoderKind::Dense,
            hidden: vec![256, 128],
            channels: vec![16, 32],
            kernel: 3,
            activation: Activation::Relu,
            optimizer: OptimizerKind::Adam,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.05,
            batch_size: None,
            weight_decay: 0.01,
            clip_norm: 1.0,
            average: 0.99,
            max_iter: None,
            patience: 0,
            restarts: 1,
            validation_fraction: 0.1,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for Autoencoder {
    fn check_together(&self) -> Result<()> {
        if !self.activation.has_gradient() {
            let rule = "must be another for a fit: its gradient is 0, so that the layers below it cannot learn";
            return Err(Error::parameter("activation", "step", rule));
        }
        if self.kernel.is_multiple_of(2) {
            let rule = "must be odd, so that a window has a middle";
            return Err(Error::parameter("kernel", self.kernel, rule));
        }
        Ok(())
    }
}

impl Autoencoder {
    fn layers(&self, inputs: &Inputs, code: usize) -> Result<AutoencoderArchitecture> {
        let coding = match (self.architecture, inputs) {
            (AutoencoderKind::Dense, _) => Coding::Dense { hidden: self.hidden.clone() },
            (AutoencoderKind::Convolutional, Inputs::Images(shape)) => Coding::Convolutional {
                shape: *shape,
                channels: self.channels.clone(),
                kernel: self.kernel,
            },
            (AutoencoderKind::Convolutional, _) => {
                let rule = "must be dense for features that are no pixels of images";
                return Err(Error::parameter("architecture", "convolutional", rule));
            }
        };
        let inputs = inputs.n_features();
        Ok(AutoencoderArchitecture { inputs, code, coding, activation: self.activation })
    }

    /// The options of the loop for so many samples, the number of epochs, and what was chosen.
    fn training(&self, n: usize) -> (TrainOptions, usize, Vec<Choice>) {
        let chosen_batch = match n {
            0..1_000 => 32,
            1_000..10_000 => 64,
            _ => 128,
        };
        let batch = self.batch_size.unwrap_or(chosen_batch).min(n.max(1));
        let planned = || plan_epochs(n, batch, STEPS, EPOCHS);
        let epochs = self.schedule.iterations(self.max_iter, planned);
        let mut chosen = Vec::new();
        if self.max_iter.is_none() {
            let reason = format!("about {STEPS} steps, from {} to {} epochs", EPOCHS.0, EPOCHS.1);
            chosen.push(Choice::new("max_iter", epochs as f64, reason));
        }
        if self.batch_size.is_none() {
            chosen.push(Choice::new("batch_size", batch as f64, format!("{n} samples")));
        }
        let default = match self.optimizer {
            OptimizerKind::Adam => 2e-3,
            OptimizerKind::Sgd => 2e-2,
        };
        let rate = self.schedule.rate(self.learning_rate, default);
        let steps = self.schedule.steps(epochs, n.div_ceil(batch));
        let kinds = (self.optimizer, self.schedule);
        let mut options = TrainOptions::new(kinds, (rate, self.warm_up), steps, batch, self.seed);
        options.step.weight_decay = self.weight_decay;
        options.step.clip_norm = self.clip_norm;
        options.average = self.average;
        let chosen = options.reported(chosen);
        (options, epochs, chosen)
    }
}

impl Fit for Autoencoder {
    const NAME: &'static str = "autoencoder";
    const CLASS: &'static str = "Autoencoder";
    const FAMILY: &'static str = "nn";
    type Data = Samples;
    type Model = DeepAutoencoder;
    const TRAITS: Traits = Traits {
        iterative: true,
        resumable: true,
        weights: false,
        warm_start: true,
        early_stopping: true,
        ..Traits::TRANSFORMER
    };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        self.check()?;
        let started = Instant::now();
        if samples.is_empty() {
            return Err(Error::data("autoencoder: no samples to learn from"));
        }
        let d = samples.n_features();
        if d == 0 {
            return Err(Error::data("autoencoder: the samples have no features"));
        }
        samples.features().check_finite()?;
        if let Some(held) = job.validation {
            if held.is_empty() {
                return Err(Error::data("the held-out data has no samples"));
            }
            samples.inputs().check_width(held.n_features())?;
            held.features().check_finite()?;
        }
        let mut chosen = Vec::new();
        let code = self.n_components.unwrap_or_else(|| (d / 4).clamp(CODE.0, CODE.1).min(d));
        if self.n_components.is_none() {
            let reason = format!("a quarter of {d} features, from {} to {}", CODE.0, CODE.1);
            chosen.push(Choice::new("n_components", code as f64, reason));
        }
        if code > d {
            let rule = format!("must be at most {d}, the number of features");
            return Err(Error::parameter("n_components", code, rule));
        }
        let features = Features::from(samples.features());
        let order = order_of(features, samples.weights(), |_, _| {});
        let share = if job.validation.is_some() { 0.0 } else { self.validation_fraction };
        let (held_out, rows) = order.split_at(hold_out(samples.len(), share));
        let mut held_out = held_out.to_vec();
        held_out.sort_unstable();
        let scaler = match samples.inputs() {
            Inputs::Images(shape) => Scaler::of_images(features, rows, *shape),
            _ => Scaler::standard(features, rows),
        };
        let weights = |samples: &Samples, rows: &[u32]| -> Vec<f32> {
            let weight = |row: &u32| samples.weights().map_or(1.0, |all| all[*row as usize]);
            let mean = rows.iter().map(weight).sum::<f64>() / rows.len().max(1) as f64;
            rows.iter().map(|row| (weight(row) / mean) as f32).collect()
        };
        let of_training = weights(samples, rows);
        if of_training.iter().any(|weight| !weight.is_finite()) {
            return Err(Error::data("autoencoder: all weights are 0"));
        }
        let held = match job.validation {
            Some(held) => {
                let rows: Vec<u32> = (0..held.len() as u32).collect();
                let weights = weights(held, &rows);
                Some((Features::from(held.features()), rows, weights))
            }
            None if held_out.is_empty() => None,
            None => {
                let weights = weights(samples, &held_out);
                Some((features, held_out, weights))
            }
        };
        let held = held.filter(|(_, _, weights)| weights.iter().all(|weight| weight.is_finite()));

        let device = self.device.open()?;
        let architecture = self.layers(samples.inputs(), code)?;
        let mut layout = Layout::new();
        let network = AutoencoderNetwork::new(&architecture, &mut layout)?;
        let (options, epochs, more) = self.training(rows.len());
        chosen.extend(more);
        let task = ReconstructionTask {
            layout: &layout,
            network: &network,
            scaler: &scaler,
            training: (features, rows, &of_training),
            held: held
                .as_ref()
                .map(|(features, rows, weights)| (*features, &rows[..], &weights[..])),
            device: device.clone(),
        };
        let warm = job.warm_model::<DeepAutoencoder>().filter(|warm| warm.layout == layout);
        let warm = warm.map(|warm| warm.weights.clone());
        let trainer = Trainer { task: &task, options, device, warm };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "reconstruction error",
            max_iter: epochs,
            patience: self.patience,
            restarts: self.restarts,
            seed: self.seed,
            params: record(self),
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint()),
            ..LoopOptions::default()
        };
        let (state, mut report) = iterate::run(&trainer, &options.chosen(chosen), job)?;
        if let Some((features, rows, weights)) = &held {
            let score = task.error_of_the_mean(*features, rows, weights);
            report.compare_with(vec![Baseline { name: "mean".into(), score }]);
            if job.validation.is_none() {
                report.notes.push(format!(
                    "{} of {} samples were held out to choose the epoch that is kept; validation_fraction = 0 learns from all",
                    rows.len(),
                    samples.len()
                ));
            }
        }
        let weights = state.weights().to_device(&Device::flex());
        let inputs = samples.inputs().clone();
        let model = DeepAutoencoder { inputs, scaler, architecture, layout, network, weights };
        Ok(Fitted { params: self.clone(), model, report })
    }
}
