//! Diffusion models: data out of noise, step by step (`diffusion`).
//!
//! | file | what it holds |
//! |---|---|
//! | `process.rs` | how data becomes noise, and the formulas of the way back |
//! | `network.rs`, `unet.rs` | the network: dense for tables, a U-Net for images |
//! | `task.rs` | what the network learns |
//! | `sample.rs` | the way back, and the bound on the log density |
//! | `model.rs` | what is learned: draws, bounds, its file |

mod model;
mod network;
mod process;
mod sample;
mod task;
#[cfg(test)]
mod tests;
mod unet;

pub use model::{DiffusionModel, STEPS as SAMPLING_STEPS};
pub use network::{DenoiserArchitecture, DenoiserLayers, DenoiserNetwork};
pub use process::{NoiseSchedule, Posterior, Prediction, Process};

use crate::device::DeviceKind;
use crate::generative::images_or_table;
use crate::generative::labelled::{self, Part};
use crate::optimizer::OptimizerKind;
use crate::parameters::shared;
use crate::train::{ScheduleKind, TrainOptions, Trainer, plan_epochs};
use crate::weights::{Layout, Weights};
use burn::tensor::Device;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::predict::Outputs;
use gradus_core::report::{Baseline, Choice};
use gradus_data::{Inputs, Samples};
use model::Settings;
use sample::{Denoiser, Way};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use task::DenoisingTask;

/// Steps that a fit should take, where the number of epochs is left out, and the fewest and the most epochs: of tables, and of images.
const STEPS: [(usize, (usize, usize)); 2] = [(8_000, (20, 1_000)), (10_000, (10, 1_000))];

/// Samples that are kept of the course of a fit: images, and rows of a table.
const KEPT: [usize; 2] = [16, 256];
/// Steps in which they are drawn.
const KEPT_STEPS: usize = 20;

/// The layers of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DenoiserKind {
    /// A U-Net for images, dense for tables
    #[default]
    Auto,
    /// Residual blocks of units, each connected to all before: for tables
    Dense,
    /// Convolutions down to small images and up again, with shortcuts between images of one size: for images
    Unet,
}

gradus_core::params! { [shared]
    /// Diffusion model (DDPM): a network that sees the data in noise, and so makes data of noise, step by step.
    ///
    /// Noise is added to data in `T` steps, `q(xₜ | x₀) = N(√ᾱₜ x₀, (1 − ᾱₜ) I)`, until nothing else is left. The network learns to say
    /// what noise there is in a sample, `min E‖ε − ε(xₜ, t)‖²` over all steps, or `v = √ᾱ ε − √(1 − ᾱ) x₀`, which stands for the same; the
    /// moving average of its weights is the model. To draw, noise goes the way back: by all `T` steps with new noise in each (ancestral
    /// sampling), or by fewer without (DDIM; 50 by default), which gives nearly as good samples.
    ///
    /// Of samples with classes the model learns to draw from each class, and guidance (classifier-free) draws what is typical of it: a
    /// tenth of the classes are hidden while the network learns, and a draw goes beyond the prediction with the class, away from that
    /// without. Features of tables are brought to mean 0 and variance 1, pixels to −1 … 1. `log_density` is the variational bound: of
    /// images of bytes, and of black and white ones, on the log probability of their pixels, else on the log density. A sample's bound
    /// is estimated by 32 of its `T` terms.
    ///
    /// Cost of an epoch: six operations for each weight and sample (`unet`: and place of an image). A draw takes a pass of the network
    /// for each step, and two with guidance. The result depends neither on the number of threads nor on the order of the samples.
    ///
    /// References: Ho, Jain, Abbeel: Denoising diffusion probabilistic models, 2020. Nichol, Dhariwal: Improved denoising diffusion
    /// probabilistic models, 2021. Song, Meng, Ermon: Denoising diffusion implicit models, 2021. Ho, Salimans: Classifier-free diffusion
    /// guidance, 2022. Salimans, Ho: Progressive distillation for fast sampling of diffusion models, 2022 (the prediction of v).
    ///
    /// ```
    /// use gradus_core::density::Generate;
    /// use gradus_core::estimator::Fit;
    /// use gradus_data::{Dense, Samples};
    /// use gradus_nn::Diffusion;
    ///
    /// // Points of a circle.
    /// let x = Dense::from_fn(400, 2, |row, at| (row as f64 * 0.0157 - if at == 0 { 0.0 } else { 1.57 }).cos());
    /// let fitted = Diffusion::new().hidden(vec![32, 32]).max_iter(60).fit(&Samples::unlabelled(x)?)?;
    /// let drawn = fitted.generate(10, 1)?;
    /// assert_eq!(drawn.len(), 10);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Diffusion {
        /// Kind of the layers.
        pub architecture: DenoiserKind,

        /// Number of units of each residual block (`dense`); the first is also the width between blocks.
        #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 65_536)))]
        pub hidden: Vec<usize>,

        /// Number of channels at each size of the images (`unet`), which are halved from one to the next.
        #[schemars(length(min = 1, max = 16), inner(range(min = 1, max = 8_192)))]
        pub channels: Vec<usize>,

        /// Number of residual blocks at each size, on the way down and on the way up (`unet`).
        #[schemars(range(min = 1, max = 16))]
        pub depth: usize,

        /// Number of heads of the attention between the places of the smallest images (`unet`).
        #[schemars(range(min = 1, max = 1_024))]
        pub heads: usize,

        /// Number of steps `T` from data to noise.
        #[schemars(range(min = 2, max = 100_000))]
        pub n_steps: usize,

        /// How much noise each step adds.
        pub noise_schedule: NoiseSchedule,

        /// What the network says of a noisy sample.
        pub prediction: Prediction,

        /// Whether to learn the classes of samples that have some, so that samples of a class can be drawn.
        pub conditional: bool,

        /// Share of the samples whose class is hidden while the network learns: what guidance needs.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub class_dropout: f64,

        [dropout, optimizer, learning_rate, schedule, warm_up, batch_size, micro_batch, weight_decay, clip_norm, average, max_iter,
         patience, restarts, validation_fraction, seed, device],
    }
}

impl Default for Diffusion {
    fn default() -> Self {
        Self {
            architecture: DenoiserKind::Auto,
            hidden: vec![128, 128, 128],
            channels: vec![32, 64, 128],
            depth: 1,
            heads: 4,
            n_steps: 1000,
            noise_schedule: NoiseSchedule::Cosine,
            prediction: Prediction::Velocity,
            conditional: true,
            class_dropout: 0.1,
            dropout: 0.0,
            optimizer: OptimizerKind::Adam,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.05,
            batch_size: None,
            micro_batch: None,
            weight_decay: 0.0,
            clip_norm: 1.0,
            average: 0.999,
            max_iter: None,
            patience: 0,
            restarts: 1,
            validation_fraction: 0.05,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for Diffusion {}

impl Diffusion {
    fn layers(&self, inputs: &Inputs, classes: usize) -> Result<DenoiserArchitecture> {
        let image = images_or_table(Self::NAME, inputs)?;
        let layers = match (self.architecture, image) {
            (DenoiserKind::Dense, _) | (DenoiserKind::Auto, None) => {
                DenoiserLayers::Dense { hidden: self.hidden.clone() }
            }
            (DenoiserKind::Auto | DenoiserKind::Unet, Some(shape)) => DenoiserLayers::Unet {
                shape,
                channels: self.channels.clone(),
                depth: self.depth,
                heads: self.heads,
            },
            (DenoiserKind::Unet, None) => {
                let rule = "must be dense for features that are no pixels of images";
                return Err(Error::parameter("architecture", "unet", rule));
            }
        };
        let inputs = inputs.n_features();
        Ok(DenoiserArchitecture { inputs, classes, layers, dropout: self.dropout })
    }

    /// The options of the loop for so many samples, the number of epochs, and what was chosen.
    fn training(&self, n: usize, is_unet: bool) -> (TrainOptions, usize, Vec<Choice>) {
        let chosen_batch = match n {
            0..1_000 => 64,
            _ => 128,
        };
        let batch = self.batch_size.unwrap_or(chosen_batch).min(n.max(1));
        let (steps, most) = STEPS[usize::from(is_unet)];
        let planned = || plan_epochs(n, batch, steps, most);
        let epochs = self.schedule.iterations(self.max_iter, planned);
        let mut chosen = Vec::new();
        if self.max_iter.is_none() {
            let reason = format!("about {steps} steps, from {} to {} epochs", most.0, most.1);
            chosen.push(Choice::new("max_iter", epochs as f64, reason));
        }
        if self.batch_size.is_none() {
            chosen.push(Choice::new("batch_size", batch as f64, format!("{n} samples")));
        }
        let default = match self.optimizer {
            OptimizerKind::Adam => 1e-3,
            OptimizerKind::Sgd => 1e-2,
        };
        let rate = self.schedule.rate(self.learning_rate, default);
        let steps = self.schedule.steps(epochs, n.div_ceil(batch));
        let kinds = (self.optimizer, self.schedule);
        let mut options = TrainOptions::new(kinds, (rate, self.warm_up), steps, batch, self.seed);
        options.micro_batch = self.micro_batch;
        options.step.weight_decay = self.weight_decay;
        options.step.clip_norm = self.clip_norm;
        options.average = self.average;
        let chosen = options.reported(chosen);
        (options, epochs, chosen)
    }
}

/// The share of each class among the samples to learn from.
fn shares(classes: usize, training: &Part<'_>) -> Vec<f64> {
    let mut shares = vec![0.0; classes];
    for (class, weight) in training.classes.iter().zip(&training.weights) {
        if let Some(share) = shares.get_mut(*class as usize) {
            *share += f64::from(*weight);
        }
    }
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum.max(f64::MIN_POSITIVE));
    shares
}

impl Fit for Diffusion {
    const NAME: &'static str = "diffusion";
    const CLASS: &'static str = "Diffusion";
    const FAMILY: &'static str = "nn";
    type Data = Samples;
    type Model = DiffusionModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Density, Capability::Generate],
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
        let outputs = labelled::classes(samples).filter(|_| self.conditional);
        let parts = labelled::split(
            Self::NAME,
            samples,
            job.validation,
            self.validation_fraction,
            outputs.as_ref(),
        )?;
        let training = &parts.training;
        let n_classes = outputs.as_ref().and_then(Outputs::labels).map_or(0, |labels| labels.len());
        let architecture = self.layers(samples.inputs(), n_classes)?;
        let is_unet = matches!(architecture.layers, DenoiserLayers::Unet { .. });
        let scaler = labelled::scaler(samples.inputs(), training);
        let bounds = match samples.inputs() {
            Inputs::Images(_) => vec![(-1.0, 1.0); samples.n_features()],
            _ => widened(labelled::bounds(&scaler, training)),
        };
        let settings = Settings {
            n_steps: self.n_steps,
            noise_schedule: self.noise_schedule,
            prediction: self.prediction,
            levels: labelled::levels(samples.inputs(), training),
        };
        let process = Process::new(self.noise_schedule, self.n_steps)?;

        let device = self.device.open()?;
        let mut layout = Layout::new();
        let network = DenoiserNetwork::new(&architecture, &mut layout)?;
        let (options, epochs, chosen) = self.training(training.len(), is_unet);
        let sampler = |weights: &Weights| -> Vec<f32> {
            let kept = KEPT[usize::from(!is_unet)];
            let mut streams: Vec<Stream> =
                (0..kept).map(|at| Stream::new(0, "nn.diffusion.kept", at as u64)).collect();
            // One class after the other.
            let classes: Vec<u32> = match n_classes {
                0 => Vec::new(),
                n => (0..kept).map(|at| (at % n) as u32).collect(),
            };
            let denoiser = Denoiser {
                network: &network,
                weights,
                process: &process,
                prediction: self.prediction,
                bounds: &bounds,
            };
            let way = Way { steps: KEPT_STEPS, eta: 0.0, guidance: 0.0 };
            let found = denoiser.sample(&mut streams, &classes, way, None);
            scaler.inverse(&found).into_iter().map(|x| x as f32).collect()
        };
        let task = DenoisingTask {
            layout: &layout,
            network: &network,
            process: &process,
            prediction: self.prediction,
            scaler: &scaler,
            training,
            held: parts.held.as_ref(),
            class_dropout: self.class_dropout,
            sampler: &sampler,
            device: device.clone(),
        };
        let warm = job.warm_model::<DiffusionModel>().filter(|warm| warm.layout == layout);
        let warm = warm.map(|warm| warm.weights.clone());
        let trainer = Trainer { task: &task, options, device, warm };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "denoising error",
            max_iter: epochs,
            patience: self.patience,
            restarts: self.restarts,
            seed: self.seed,
            params: record(self),
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint()),
            ..LoopOptions::default()
        };
        let (state, mut report) = iterate::run(&trainer, &options.chosen(chosen), job)?;
        if let Some(held) = &parts.held {
            if job.baselines {
                let score = task.error_of_nothing(held);
                report.compare_with(vec![Baseline { name: "zero".into(), score }]);
            }
            if job.validation.is_none() {
                report.notes.push(format!(
                    "{} of {} samples were held out to choose the epoch that is kept; validation_fraction = 0 learns from all",
                    held.len(),
                    samples.len()
                ));
            }
        }
        let weights = state.weights().to_device(&Device::flex());
        let inputs = samples.inputs().clone();
        let classes = outputs.map(|outputs| (outputs, shares(n_classes, training)));
        let progress = state.progress;
        let model = DiffusionModel {
            inputs,
            scaler,
            settings,
            process,
            classes,
            bounds,
            architecture,
            layout,
            network,
            weights,
            progress,
        };
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// By how much of its range new data of a feature may lie beyond the data seen.
const BEYOND: f32 = 0.1;

fn widened(bounds: Vec<(f32, f32)>) -> Vec<(f32, f32)> {
    let wider = |(low, high): (f32, f32)| {
        let by = BEYOND * (high - low);
        (low - by, high + by)
    };
    bounds.into_iter().map(wider).collect()
}
