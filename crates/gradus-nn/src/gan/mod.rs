//! Generative adversarial networks: a generator that learns against a discriminator (`gan`).
//!
//! | file | what it holds |
//! |---|---|
//! | `network.rs` | generator and discriminator |
//! | `train.rs` | how both learn, with optional steps ahead and a penalty on gradients |
//! | `model.rs` | what is learned: draws, interpolations, its file |

mod model;
mod network;
#[cfg(test)]
mod tests;
mod train;

pub use model::GanModel;
pub use network::{Discriminator, GanArchitecture, GanLayers, Generator};

use crate::device::DeviceKind;
use crate::generative::{images_or_table, labelled};
use crate::optimizer::OptimizerKind;
use crate::parameters::shared;
use crate::train::{ScheduleKind, TrainOptions, plan_epochs};
use crate::weights::Layout;
use burn::tensor::Device;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::{CAUTION, Choice, Report};
use gradus_data::{Inputs, Samples};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use train::{ACCURACY, DIVERSITY, GanSolver, spread};

/// Steps that a fit should take, where the number of epochs is left out, and the fewest and the most epochs.
const STEPS: usize = 10_000;
const EPOCHS: (usize, usize) = (20, 1_000);

/// The length of a code that is left out: of tables, and of images.
const LATENT: [usize; 2] = [16, 64];

/// Samples that are kept of the course of a fit: images, and rows of a table.
const KEPT: [usize; 2] = [16, 256];

/// β₁ of Adam: the other player moves, and old gradients mislead.
const BETA1: f64 = 0.5;

/// Samples less diverse than so much of the data are said to have collapsed.
const COLLAPSED: f64 = 0.5;
/// A discriminator that tells more than so many right leaves the generator nothing to learn by.
const WINS: f64 = 0.98;

/// The layers of generator and discriminator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GanKind {
    /// Convolutional for images, dense for tables
    #[default]
    Auto,
    /// Layers of units, each connected to all of the layer before: for tables
    Dense,
    /// Convolutions, between which images are halved, and doubled by the generator: for images
    Convolutional,
}

gradus_core::params! { [shared]
    /// Generative adversarial network: a generator makes data of random codes, and learns to pass for data before a discriminator.
    ///
    /// The discriminator `D` learns a score that is positive for data and negative for samples, `min E log(1 + exp(−D(x))) +
    /// E log(1 + exp(D(G(z))))`, and the generator `G` to be taken for data, `min E log(1 + exp(−D(G(z))))` (the non-saturating loss),
    /// each by a step of Adam (β₁ = 0.5) after the other, on every batch. The moving average of the generator's weights is the model.
    ///
    /// The penalty `γ/2 E‖∇ₓ D(x)‖²` at data (R1) makes the game converge near its solution; without it the players circle, and samples
    /// may collapse to a few kinds. Its gradient is a central difference of scores along `∇ₓ D`, so that no second derivatives are
    /// needed; it costs two more passes of the discriminator and a gradient of its inputs. `extragradient` steps along the gradients of
    /// a place ahead, which damps the circling as well, and costs twice the time. Each epoch measures the share that the discriminator
    /// tells right and the diversity of samples (the mean distance of samples from each other, as a share of that of data); a fit that
    /// ends in collapse says so in a note.
    ///
    /// There is no density, so that nothing tells how good the model is but distances between samples and data (`gradus evaluate
    /// --classifier`) and a look at them; the last epoch is kept. Networks of images are convolutional as those of DCGAN, with group
    /// normalisation in the generator and none in the discriminator.
    ///
    /// Cost of an epoch: about 20 operations for each weight and sample (`convolutional`: and place of a window). The result depends
    /// neither on the number of threads nor on the order of the samples.
    ///
    /// References: Goodfellow et al.: Generative adversarial nets, 2014. Radford, Metz, Chintala: Unsupervised representation learning
    /// with deep convolutional generative adversarial networks, 2016. Mescheder, Geiger, Nowozin: Which training methods for GANs do
    /// actually converge?, 2018. Gidel et al.: A variational inequality perspective on generative adversarial networks, 2019.
    ///
    /// ```
    /// use gradus_core::density::Generate;
    /// use gradus_core::estimator::Fit;
    /// use gradus_data::{Dense, Samples};
    /// use gradus_nn::Gan;
    ///
    /// // Points of a circle.
    /// let x = Dense::from_fn(400, 2, |row, at| (row as f64 * 0.0157 - if at == 0 { 0.0 } else { 1.57 }).cos());
    /// let fitted = Gan::new().hidden(vec![32, 32]).max_iter(20).fit(&Samples::unlabelled(x)?)?;
    /// assert_eq!(fitted.generate(10, 1)?.len(), 10);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Gan {
        /// Number of components: the length of a code. Left out, 16 for tables and 64 for images.
        #[schemars(range(min = 1, max = 100_000))]
        pub n_components: Option<usize>,

        /// Kind of the layers.
        pub architecture: GanKind,

        /// Number of units of each hidden layer of the discriminator (`dense`); the generator has them in the other order.
        #[schemars(length(max = 64), inner(range(min = 1, max = 65_536)))]
        pub hidden: Vec<usize>,

        /// Number of channels at each size of the images (`convolutional`), which are halved from one to the next.
        #[schemars(length(min = 1, max = 16), inner(range(min = 1, max = 8_192)))]
        pub channels: Vec<usize>,

        /// Weight γ of the penalty on the squared gradient of scores at data (R1); 0 for none.
        #[schemars(range(min = 0.0, max = 1e6))]
        pub gradient_penalty: f64,

        /// Whether steps are taken along the gradients of a place ahead.
        pub extragradient: bool,

        [learning_rate, schedule, warm_up, batch_size, average, max_iter, seed, device],
    }
}

impl Default for Gan {
    fn default() -> Self {
        Self {
            n_components: None,
            architecture: GanKind::Auto,
            hidden: vec![128, 128],
            channels: vec![32, 64, 128],
            gradient_penalty: 1.0,
            extragradient: false,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.0,
            batch_size: None,
            average: 0.999,
            max_iter: None,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for Gan {
    fn check_together(&self) -> Result<()> {
        if self.schedule == ScheduleKind::Range {
            let rule =
                "must be cosine or constant: the loss of a game does not tell which rate is best";
            return Err(Error::parameter("schedule", "range", rule));
        }
        Ok(())
    }
}

impl Gan {
    fn layers(&self, inputs: &Inputs) -> Result<GanArchitecture> {
        let image = images_or_table(Self::NAME, inputs)?;
        let layers = match (self.architecture, image) {
            (GanKind::Dense, _) | (GanKind::Auto, None) => {
                GanLayers::Dense { hidden: self.hidden.clone() }
            }
            (GanKind::Auto | GanKind::Convolutional, Some(shape)) => {
                GanLayers::Convolutional { shape, channels: self.channels.clone() }
            }
            (GanKind::Convolutional, None) => {
                let rule = "must be dense for features that are no pixels of images";
                return Err(Error::parameter("architecture", "convolutional", rule));
            }
        };
        let latent = self.n_components.unwrap_or(LATENT[usize::from(image.is_some())]);
        Ok(GanArchitecture { inputs: inputs.n_features(), latent, layers })
    }

    /// The options of the loop for so many samples, the number of epochs, and what was chosen.
    fn training(
        &self,
        n: usize,
        architecture: &GanArchitecture,
    ) -> (TrainOptions, usize, Vec<Choice>) {
        let chosen_batch = match n {
            0..1_000 => 64,
            _ => 128,
        };
        let batch = self.batch_size.unwrap_or(chosen_batch).min(n.max(1));
        let planned = || plan_epochs(n, batch, STEPS, EPOCHS);
        let epochs = self.schedule.iterations(self.max_iter, planned);
        let mut chosen = Vec::new();
        if self.n_components.is_none() {
            let kind = match architecture.layers {
                GanLayers::Dense { .. } => "dense layers",
                GanLayers::Convolutional { .. } => "images",
            };
            chosen.push(Choice::new("n_components", architecture.latent as f64, kind));
        }
        if self.max_iter.is_none() {
            let reason = format!("about {STEPS} steps, from {} to {} epochs", EPOCHS.0, EPOCHS.1);
            chosen.push(Choice::new("max_iter", epochs as f64, reason));
        }
        if self.batch_size.is_none() {
            chosen.push(Choice::new("batch_size", batch as f64, format!("{n} samples")));
        }
        let default = match architecture.layers {
            GanLayers::Dense { .. } => 1e-3,
            GanLayers::Convolutional { .. } => 5e-4,
        };
        let rate = self.schedule.rate(self.learning_rate, default);
        let steps = self.schedule.steps(epochs, n.div_ceil(batch));
        let kinds = (OptimizerKind::Adam, self.schedule);
        let mut options = TrainOptions::new(kinds, (rate, self.warm_up), steps, batch, self.seed);
        options.step.beta1 = BETA1;
        options.step.beta2 = 0.99;
        options.average = self.average;
        (options, epochs, chosen)
    }
}

impl Fit for Gan {
    const NAME: &'static str = "gan";
    const CLASS: &'static str = "Gan";
    const FAMILY: &'static str = "nn";
    type Data = Samples;
    type Model = GanModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Generate],
        iterative: true,
        resumable: true,
        weights: false,
        averages: true,
        warm_start: true,
        early_stopping: false,
        ..Traits::TRANSFORMER
    };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        self.check()?;
        let started = Instant::now();
        // All samples are learned from: there is no held-out score.
        let parts = labelled::split(Self::NAME, samples, job.validation, 0.0, None)?;
        let training = &parts.training;
        let architecture = self.layers(samples.inputs())?;
        let scaler = labelled::scaler(samples.inputs(), training);
        let device = self.device.open()?;
        let (mut of_g, mut of_d) = (Layout::new(), Layout::new());
        let generator = Generator::new(&architecture, &mut of_g)?;
        let discriminator = Discriminator::new(&architecture, &mut of_d)?;
        let (options, epochs, chosen) = self.training(training.len(), &architecture);
        let some = &training.rows[..training.len().min(128)];
        let spread = spread(&scaler.apply(training.features, some), scaler.len());
        let warm = job.warm_model::<GanModel>();
        let warm = warm.filter(|warm| warm.generator.0 == of_g && warm.discriminator.0 == of_d);
        let is_table = matches!(architecture.layers, GanLayers::Dense { .. });
        let solver = GanSolver {
            layouts: (&of_g, &of_d),
            generator: &generator,
            discriminator: &discriminator,
            latent: architecture.latent,
            scaler: &scaler,
            training,
            options,
            penalty: self.gradient_penalty,
            extragradient: self.extragradient,
            device,
            warm: warm.map(|warm| (warm.generator.2.clone(), warm.discriminator.2.clone())),
            spread,
            kept: KEPT[usize::from(is_table)],
        };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "discriminator loss",
            max_iter: epochs,
            restarts: 1,
            seed: self.seed,
            params: record(self),
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint()),
            ..LoopOptions::default()
        };
        let (state, mut report) = iterate::run(&solver, &options.chosen(chosen), job)?;
        let cautions = cautions(&report);
        report.notes.extend(cautions);
        let cpu = Device::flex();
        let (of_generator, of_discriminator) =
            (state.weights().to_device(&cpu), state.discriminator.weights.to_device(&cpu));
        drop(solver);
        let model = GanModel {
            inputs: samples.inputs().clone(),
            scaler,
            architecture,
            generator: (of_g, generator, of_generator),
            discriminator: (of_d, discriminator, of_discriminator),
            progress: state.progress,
        };
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// What the last epochs say of a collapse.
fn cautions(report: &Report) -> Vec<String> {
    let last = &report.trace[report.trace.len() - report.trace.len().min(5)..];
    let mean = |name: &str| -> Option<f64> {
        let of = |measures: &[gradus_core::report::Measure]| {
            measures.iter().find(|measure| measure.name == name).map(|measure| measure.value)
        };
        let values: Vec<f64> = last.iter().filter_map(|point| of(&point.measures)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let mut found = Vec::new();
    if let Some(diversity) = mean(DIVERSITY).filter(|value| *value < COLLAPSED) {
        found.push(format!(
            "{CAUTION}the samples collapsed: they are {:.0} % as far from each other as data is; a larger gradient_penalty, extragradient, \
             or more epochs may help",
            100.0 * diversity
        ));
    }
    if let Some(accuracy) = mean(ACCURACY).filter(|value| *value > WINS) {
        found.push(format!(
            "{CAUTION}the discriminator tells {:.1} % of data and samples apart, so that the generator has little to learn by; a larger \
             gradient_penalty or a smaller learning_rate may help",
            100.0 * accuracy
        ));
    }
    found
}
