//! PixelCNN: the probability of each pixel given those before it (`pixelcnn`).
//!
//! | file | what it holds |
//! |---|---|
//! | `network.rs` | two stacks of gated convolutions that see earlier pixels only |
//! | `made.rs` | the same for tables: a masked dense network with mixtures of logistic distributions |
//! | `task.rs` | the loss |
//! | `baseline.rs` | the same loss where pixels are independent of each other |
//! | `sample.rs` | sampling with activations that are kept |
//! | `model.rs` | what is learned: log probabilities and samples |

mod baseline;
mod made;
mod model;
mod network;
mod sample;
mod task;
#[cfg(test)]
mod tests;

pub use made::{MadeArchitecture, MadeNetwork};
pub use model::PixelCnnModel;
pub use network::{PixelCnnArchitecture, PixelCnnNetwork};

use crate::device::DeviceKind;
use crate::generative::{Binarize, Levels, Parts, images_or_table};
use crate::images::{Defaults, Settings};
use crate::optimizer::OptimizerKind;
use crate::parameters::shared;
use crate::supervised::{Scaler, Training};
use crate::train::{ScheduleKind, Trainer};
use crate::weights::Layout;
use burn::tensor::Device;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::{Baseline, Choice};
use gradus_data::Samples;
use std::time::Instant;
use task::{Network, PixelTask};

/// Steps that a fit should take, where the number of epochs is left out, and the fewest and the most epochs: of images, and of tables.
const IMAGES: Defaults = Defaults { rates: (1e-3, 1e-2), steps: 8_000, epochs: (10, 200) };
const TABLES: Defaults = Defaults { rates: (3e-3, 1e-2), steps: 4_000, epochs: (10, 200) };

gradus_core::params! { [shared]
    /// PixelCNN: an autoregressive model of images, `p(x) = Π p(xᵢ | x₁ … xᵢ₋₁)` over the pixels row by row, and within a pixel over red,
    /// green and blue.
    ///
    /// A softmax over the levels of a pixel (2 of binary images, 256 of bytes) comes from two stacks of gated convolutions: the
    /// vertical stack sees all rows above, the horizontal stack the pixels to the left, so that there is no blind spot. The fit minimises
    /// the cross-entropy, in bits per dimension, by AdamW over batches. The log probability is exact: `gradus evaluate` gives nats
    /// per image and bits per dimension. A tenth of the samples is held out (unless held-out data is given), and the epoch with the
    /// least loss on it is kept. Sampling draws pixel after pixel and keeps the activations of earlier ones; `gradus sample` also completes
    /// images that are begun.
    ///
    /// Of a table the same model is a masked dense network (MADE) over the standardised columns, with a mixture of logistic
    /// distributions for each column given those before it. It is meant for few columns. `gmm` is faster where clusters are ellipses.
    ///
    /// Cost of an epoch: about `6 n P · depth · (2 k² C² + 16 C²)` operations for images of `P` pixels, with `C` channels and windows of
    /// `k`. The result depends neither on the number of threads nor on the order of the samples.
    ///
    /// References: van den Oord, Kalchbrenner, Kavukcuoglu: Pixel recurrent neural networks, 2016. Van den Oord et al.: Conditional image
    /// generation with PixelCNN decoders, 2016. Germain et al.: MADE, 2015.
    ///
    /// ```
    /// use gradus_core::density::{Density, Generate};
    /// use gradus_core::estimator::Fit;
    /// use gradus_data::{Dense, Samples};
    /// use gradus_nn::PixelCnn;
    ///
    /// // Points near a circle.
    /// let x = Dense::from_fn(500, 2, |row, at| (row as f64 * 0.7 - if at == 0 { 0.0 } else { 1.57 }).cos() + 0.01 * (row % 7) as f64);
    /// let samples = Samples::unlabelled(x)?;
    /// let fitted = PixelCnn::new().hidden(vec![32, 32]).max_iter(40).fit(&samples)?;
    /// let density = fitted.log_density(&samples)?;
    /// // A normal distribution with the variance of the circle has −2.1.
    /// assert!(density.iter().sum::<f64>() / 500.0 > -1.5);
    /// assert_eq!(fitted.generate(10, 0)?.len(), 10);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct PixelCnn {
        /// Number of levels of a pixel: 2 for binary images, 256 for bytes. Left out, 2 if each pixel is black or white, else 256.
        #[schemars(range(min = 2, max = 256))]
        pub levels: Option<usize>,

        /// How grey images become binary, with 2 levels.
        pub binarize: Binarize,

        /// Number of channels of the layers, of images.
        #[schemars(range(min = 1, max = 4_096))]
        pub channels: usize,

        /// Number of layers, of images.
        #[schemars(range(min = 1, max = 256))]
        pub depth: usize,

        /// Height and width of the windows of all layers but the first: an odd number.
        #[schemars(range(min = 1, max = 31))]
        pub kernel: usize,

        /// Height and width of the windows of the first layer: an odd number.
        #[schemars(range(min = 1, max = 31))]
        pub first_kernel: usize,

        /// Number of units of each hidden layer, of tables.
        #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 65_536)))]
        pub hidden: Vec<usize>,

        /// Number of logistic distributions in the mixture of each column, of tables.
        #[schemars(range(min = 1, max = 1_000))]
        pub components: usize,

        [dropout, optimizer, learning_rate, schedule, warm_up, batch_size, micro_batch, weight_decay, clip_norm, average, max_iter,
         patience, restarts, validation_fraction, seed, device],
    }
}

impl Default for PixelCnn {
    fn default() -> Self {
        Self {
            levels: None,
            binarize: Binarize::Threshold,
            channels: 32,
            depth: 8,
            kernel: 3,
            first_kernel: 7,
            hidden: vec![128, 128],
            components: 16,
            dropout: 0.0,
            optimizer: OptimizerKind::Adam,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.05,
            batch_size: None,
            micro_batch: None,
            weight_decay: 0.0,
            clip_norm: 1.0,
            average: 0.995,
            max_iter: None,
            patience: 0,
            restarts: 1,
            validation_fraction: 0.1,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for PixelCnn {
    fn check_together(&self) -> Result<()> {
        for (name, kernel) in [("kernel", self.kernel), ("first_kernel", self.first_kernel)] {
            if kernel.is_multiple_of(2) {
                return Err(Error::parameter(
                    name,
                    kernel,
                    "must be odd, so that a window has a middle",
                ));
            }
        }
        if self.binarize != Binarize::Threshold && self.levels != Some(2) {
            let rule = "is for binary images: give levels = 2 as well";
            return Err(Error::parameter(
                "binarize",
                record(self)["binarize"].as_str().unwrap_or_default(),
                rule,
            ));
        }
        Ok(())
    }
}

impl PixelCnn {
    fn training(&self, n: usize, defaults: &Defaults) -> Training {
        let settings = Settings {
            optimizer: self.optimizer,
            learning_rate: self.learning_rate,
            schedule: self.schedule,
            warm_up: self.warm_up,
            batch_size: self.batch_size,
            micro_batch: self.micro_batch,
            weight_decay: self.weight_decay,
            clip_norm: self.clip_norm,
            average: self.average,
            max_iter: self.max_iter,
            seed: self.seed,
        };
        settings.training(n, defaults)
    }
}

/// Layers of images or of tables: one of both.
type Layers = (Option<PixelCnnArchitecture>, Option<MadeArchitecture>);

impl Fit for PixelCnn {
    const NAME: &'static str = "pixelcnn";
    const CLASS: &'static str = "PixelCnn";
    const FAMILY: &'static str = "nn";
    type Data = Samples;
    type Model = PixelCnnModel;
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
        let parts = Parts::new(Self::NAME, samples, job.validation, self.validation_fraction)?;
        let (features, rows) = &parts.training;
        let mut layout = Layout::new();
        let mut chosen = Vec::new();
        let (network, architecture): (Network, Layers) =
            match images_or_table(Self::NAME, samples.inputs())? {
                Some(shape) => {
                    let every: Vec<u32> = (0..samples.len() as u32).collect();
                    let (binarize, seed) = (self.binarize, self.seed);
                    let levels =
                        Levels::choose(Self::NAME, *features, &every, self.levels, binarize, seed)?;
                    if let Some((features, rows)) =
                        parts.held.as_ref().filter(|_| job.validation.is_some())
                    {
                        crate::generative::check_pixels(Self::NAME, *features, rows)?;
                    }
                    if self.levels.is_none() {
                        let reason = match levels.number {
                            2 => "each pixel is black or white",
                            _ => "pixels have more than two values",
                        };
                        chosen.push(Choice::new("levels", levels.number as f64, reason.to_owned()));
                    }
                    let layers = PixelCnnArchitecture {
                        shape,
                        levels: levels.number,
                        channels: self.channels,
                        depth: self.depth,
                        kernels: (self.first_kernel, self.kernel),
                        dropout: self.dropout,
                    };
                    let network = PixelCnnNetwork::new(&layers, &mut layout)?;
                    (Network::Images { network, levels }, (Some(layers), None))
                }
                None => {
                    let layers = MadeArchitecture {
                        inputs: samples.n_features(),
                        hidden: self.hidden.clone(),
                        components: self.components,
                    };
                    let network = MadeNetwork::new(&layers, &mut layout)?;
                    let scaler = Scaler::standard(*features, rows);
                    (Network::Table { network, scaler }, (None, Some(layers)))
                }
            };
        let device = self.device.open()?;
        let (metric, defaults) = match network {
            Network::Images { .. } => ("bits per dimension", &IMAGES),
            Network::Table { .. } => ("negative log density", &TABLES),
        };
        let Training { options, epochs, chosen: more } = self.training(rows.len(), defaults);
        chosen.extend(options.reported(more));
        let task = PixelTask {
            layout: &layout,
            network: &network,
            training: &parts.training,
            held: parts.held.as_ref(),
            device: device.clone(),
        };
        let warm = job.warm_model::<PixelCnnModel>().filter(|warm| *warm.layout() == layout);
        let warm = warm.map(|warm| warm.weights().clone());
        let trainer = Trainer { task: &task, options, device, warm };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric,
            max_iter: epochs,
            patience: self.patience,
            restarts: self.restarts,
            seed: self.seed,
            params: record(self),
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint()),
            ..LoopOptions::default()
        };
        let (state, mut report) = iterate::run(&trainer, &options.chosen(chosen), job)?;
        if let (Some((held, of_held)), true) = (&parts.held, job.baselines) {
            let score = baseline::score(&network, (*features, rows), (*held, of_held));
            let name = match network {
                Network::Images { .. } => "independent pixels",
                Network::Table { .. } => "independent normal columns",
            };
            report.compare_with(vec![Baseline { name: name.into(), score }]);
        }
        report.notes.extend(parts.note(samples.len(), job.validation.is_some()));
        let weights = state.weights().to_device(&Device::flex());
        let progress = state.progress.clone();
        let inputs = samples.inputs().clone();
        let model = PixelCnnModel::new(inputs, network, architecture, (layout, weights), progress)?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}
