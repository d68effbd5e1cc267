//! Variational autoencoders (`vae`).
//!
//! | file | what it holds |
//! |---|---|
//! | `network.rs` | encoder, decoder, and the bounds |
//! | `task.rs` | the two terms of the evidence lower bound |
//! | `model.rs` | what is learned: codes, samples, a bound on the log likelihood |

mod model;
mod network;
mod task;
#[cfg(test)]
mod tests;

pub use model::VaeModel;
pub use network::{Decoder, VaeArchitecture, VaeNetwork};

use crate::autoencoder::{AutoencoderArchitecture, AutoencoderKind, Coding};
use crate::device::DeviceKind;
use crate::generative::{Binarize, Parts, check_pixels, images_or_table};
use crate::images::{Defaults, Settings};
use crate::layers::Activation;
use crate::optimizer::OptimizerKind;
use crate::parameters::shared;
use crate::supervised::{Features, Scaler, Training};
use crate::train::{ScheduleKind, Trainer};
use crate::weights::Layout;
use burn::tensor::Device;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::Choice;
use gradus_data::{ImageShape, Inputs, Samples};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use task::{BinaryPixels, Space, VaeTask};

/// Steps that a fit should take, where the number of epochs is left out, and the fewest and the most epochs.
const DEFAULTS: Defaults = Defaults { rates: (1e-3, 1e-3), steps: 20_000, epochs: (20, 300) };

/// The fewest and the most numbers of a code whose length is left out.
const CODE: (usize, usize) = (2, 32);

/// The most codes for each sample.
const MOST_SAMPLES: usize = 100_000;

/// What a Bernoulli decoder is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Binarization {
    /// Pixels as they are: the brightness is the probability of a 1, and the loss its mean over binary images.
    #[default]
    None,
    /// A pixel is 1 if it is brighter than ½.
    Threshold,
    /// A pixel is 1 with a probability of its brightness, drawn once for each image by the seed: the binarised MNIST of the literature
    /// is made so.
    Static,
    /// The same, drawn anew in each epoch; data to be scored is drawn once.
    Dynamic,
}

gradus_core::params! { [shared]
    /// Variational autoencoder: a model with codes, `p(x) = ∫ p(x | z) p(z) dz` with a standard normal prior of the code `z` and a
    /// network from codes to features.
    ///
    /// An encoder gives the mean and the variance of the posterior of each number of the code, and the fit minimises the negative
    /// evidence lower bound, `E −log p(x | z) + β KL(q(z | x) ‖ p(z))`, with one code drawn for each sample (reparametrisation), by AdamW
    /// over batches. Both terms are reported after each epoch. `gradus evaluate` gives the importance-weighted bound
    /// (IWAE) with `test_samples` codes for each sample: a lower bound on the log likelihood, and named as such. A tenth of the samples
    /// is held out (unless held-out data is given), and the epoch with the least bound on it is kept.
    ///
    /// The decoder is Bernoulli for images with pixels from 0 to 1, and Gaussian for tables, whose columns are standardised, each with a
    /// variance that is learned. `transform` gives the means of codes, `inverse_transform` the means of the features of codes. Samples of
    /// images are the means of the decoder, without the noise of each pixel; samples of tables have it.
    ///
    /// Cost of an epoch: six operations for each weight and sample (`convolutional`: and place of a window); of the bound in
    /// `evaluate` two for each weight of the decoder, sample and code. The result depends neither on the number of threads nor on the
    /// order of the samples. `pixelcnn` has exact likelihoods, and better ones of images; it has no codes.
    ///
    /// References: Kingma, Welling: Auto-encoding variational Bayes, 2014. Burda, Grosse, Salakhutdinov: Importance weighted autoencoders, 2016.
    /// Higgins et al.: beta-VAE, 2017.
    ///
    /// ```
    /// use gradus_core::density::{Density, Generate};
    /// use gradus_core::estimator::Fit;
    /// use gradus_data::{Dense, Samples};
    /// use gradus_nn::Vae;
    ///
    /// // Points near a circle.
    /// let x = Dense::from_fn(500, 2, |row, at| (row as f64 * 0.7 - if at == 0 { 0.0 } else { 1.57 }).cos() + 0.01 * (row % 7) as f64);
    /// let samples = Samples::unlabelled(x)?;
    /// let fitted = Vae::new().hidden(vec![32, 32]).max_iter(40).test_samples(50).fit(&samples)?;
    /// assert!(fitted.is_bound());
    /// assert_eq!(fitted.log_density(&samples)?.len(), 500);
    /// assert_eq!(fitted.generate(10, 0)?.len(), 10);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Vae {
        /// Number of components: the length of a code. Left out, a quarter of the features, from 2 to 32, and no more than there are.
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

        /// Distribution of a feature given the code.
        pub decoder: Decoder,

        /// How grey pixels become binary, with a Bernoulli decoder.
        pub binarize: Binarization,

        /// Weight β of the divergence of the posteriors from the prior. 1 is the bound; more gives codes that are more independent of each
        /// other and worse reconstructions.
        #[schemars(range(min = 0.0, max = 1_000.0))]
        pub beta: f64,

        /// Number of codes for each sample and step: with more than 1 the importance-weighted bound is what is learned from, which is
        /// tighter and costs as many times a pass of the decoder.
        #[schemars(range(min = 1, max = 1_000))]
        pub train_samples: usize,

        /// Number of codes for each sample in the bound on the log likelihood (`evaluate`). More make it tighter.
        #[schemars(range(min = 1, max = 100_000))]
        pub test_samples: usize,

        [activation, optimizer, learning_rate, schedule, warm_up, batch_size, weight_decay, clip_norm, average, max_iter, patience,
         restarts, validation_fraction, seed, device],
    }
}

impl Default for Vae {
    fn default() -> Self {
        Self {
            n_components: None,
            architecture: AutoencoderKind::Dense,
            hidden: vec![512, 512],
            channels: vec![32, 64],
            kernel: 3,
            decoder: Decoder::Auto,
            binarize: Binarization::None,
            beta: 1.0,
            train_samples: 1,
            test_samples: 500,
            activation: Activation::Gelu,
            optimizer: OptimizerKind::Adam,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.02,
            batch_size: None,
            weight_decay: 0.0,
            clip_norm: 200.0,
            average: 0.999,
            max_iter: None,
            patience: 0,
            restarts: 1,
            validation_fraction: 0.1,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for Vae {
    fn check_together(&self) -> Result<()> {
        if !self.activation.has_gradient() {
            let rule = "must be another for a fit: its gradient is 0, so that the layers below it cannot learn";
            return Err(Error::parameter("activation", "step", rule));
        }
        if self.kernel.is_multiple_of(2) {
            let rule = "must be odd, so that a window has a middle";
            return Err(Error::parameter("kernel", self.kernel, rule));
        }
        if self.train_samples > 1 && self.beta != 1.0 {
            let rule = "must be 1 with train_samples above 1: the importance-weighted bound is no sum of two terms";
            return Err(Error::parameter("beta", self.beta, rule));
        }
        if self.decoder == Decoder::Gaussian && self.binarize != Binarization::None {
            let given = record(self)["binarize"].as_str().unwrap_or_default().to_owned();
            return Err(Error::parameter("binarize", given, "is for a Bernoulli decoder"));
        }
        Ok(())
    }
}

impl Vae {
    fn training(&self, n: usize) -> Training {
        let settings = Settings {
            optimizer: self.optimizer,
            learning_rate: self.learning_rate,
            schedule: self.schedule,
            warm_up: self.warm_up,
            batch_size: self.batch_size,
            micro_batch: None,
            weight_decay: self.weight_decay,
            clip_norm: self.clip_norm,
            average: self.average,
            max_iter: self.max_iter,
            seed: self.seed,
        };
        settings.training(n, &DEFAULTS)
    }

    /// The layers for these features.
    fn layers(
        &self,
        d: usize,
        shape: Option<ImageShape>,
        code: usize,
        decoder: Decoder,
    ) -> Result<VaeArchitecture> {
        let coding = match (self.architecture, shape) {
            (AutoencoderKind::Dense, _) => Coding::Dense { hidden: self.hidden.clone() },
            (AutoencoderKind::Convolutional, Some(shape)) => Coding::Convolutional {
                shape,
                channels: self.channels.clone(),
                kernel: self.kernel,
            },
            (AutoencoderKind::Convolutional, None) => {
                let rule = "must be dense for features that are no pixels of images";
                return Err(Error::parameter("architecture", "convolutional", rule));
            }
        };
        let activation = self.activation;
        let layers = AutoencoderArchitecture { inputs: d, code, coding, activation };
        Ok(VaeArchitecture { layers, decoder, one_variance: shape.is_some() })
    }

    /// How features become numbers of the network.
    fn space(
        &self,
        samples: &Samples,
        shape: Option<ImageShape>,
        parts: &Parts<'_>,
        validation: Option<&Samples>,
    ) -> Result<(Space, Decoder)> {
        let every: Vec<u32> = (0..samples.len() as u32).collect();
        let features = Features::from(samples.features());
        let binary = check_pixels("vae", features, &every);
        let decoder = match (self.decoder, shape, &binary) {
            (Decoder::Auto, Some(_), Ok(_)) => Decoder::Bernoulli,
            (Decoder::Auto, ..) => Decoder::Gaussian,
            (given, ..) => given,
        };
        if decoder == Decoder::Gaussian {
            if self.binarize != Binarization::None {
                // Auto, and pixels or columns of another range.
                return Err(binary.err().unwrap_or_else(|| {
                    Error::data("vae: option `binarize` is for images, and these samples are none: give decoder = bernoulli")
                }));
            }
            let (features, rows) = &parts.training;
            let scaler = match shape {
                Some(shape) => Scaler::of_images(*features, rows, shape),
                None => Scaler::standard(*features, rows),
            };
            return Ok((Space::Continuous(scaler), decoder));
        }
        binary?;
        if let Some(held) = validation {
            let rows: Vec<u32> = (0..held.len() as u32).collect();
            check_pixels("vae", held.features().into(), &rows)?;
        }
        let how = match self.binarize {
            Binarization::None => None,
            Binarization::Threshold => Some(Binarize::Threshold),
            Binarization::Static => Some(Binarize::Static),
            Binarization::Dynamic => Some(Binarize::Dynamic),
        };
        let pixels = BinaryPixels { how, seed: self.seed };
        Ok((Space::Binary { features: samples.n_features(), pixels }, decoder))
    }
}

impl Fit for Vae {
    const NAME: &'static str = "vae";
    const CLASS: &'static str = "Vae";
    const FAMILY: &'static str = "nn";
    type Data = Samples;
    type Model = VaeModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Transform, Capability::Density, Capability::Generate],
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
        let shape = images_or_table(Self::NAME, samples.inputs())?;
        let d = samples.n_features();
        let mut chosen = Vec::new();
        let code = self.n_components.unwrap_or_else(|| (d / 4).clamp(CODE.0, CODE.1).min(d));
        if self.n_components.is_none() {
            let reason = format!("a quarter of {d} features, from {} to {}", CODE.0, CODE.1);
            chosen.push(Choice::new("n_components", code as f64, reason));
        }
        let (space, decoder) = self.space(samples, shape, &parts, job.validation)?;
        let architecture = self.layers(d, shape, code, decoder)?;
        let mut layout = Layout::new();
        let network = VaeNetwork::new(&architecture, &mut layout)?;
        let device = self.device.open()?;
        let Training { options, epochs, chosen: more } = self.training(parts.training.1.len());
        chosen.extend(options.reported(more));
        let task = VaeTask {
            layout: &layout,
            network: &network,
            space: &space,
            counted: space.counted(),
            training: &parts.training,
            held: parts.held.as_ref(),
            beta: self.beta,
            samples: self.train_samples,
            images: matches!(samples.inputs(), Inputs::Images(_)),
            device: device.clone(),
        };
        let warm = job.warm_model::<VaeModel>().filter(|warm| *warm.layout() == layout);
        let warm = warm.map(|warm| warm.weights().clone());
        let trainer = Trainer { task: &task, options, device, warm };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "negative ELBO",
            max_iter: epochs,
            patience: self.patience,
            restarts: self.restarts,
            seed: self.seed,
            params: record(self),
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint()),
            ..LoopOptions::default()
        };
        let (state, mut report) = iterate::run(&trainer, &options.chosen(chosen), job)?;
        report.notes.extend(parts.note(samples.len(), job.validation.is_some()));
        let weights = state.weights().to_device(&Device::flex());
        let model = VaeModel {
            inputs: samples.inputs().clone(),
            space,
            architecture,
            layout,
            network,
            weights,
            test_samples: self.test_samples,
            seed: self.seed,
            progress: state.progress.clone(),
        };
        Ok(Fitted { params: self.clone(), model, report })
    }
}
