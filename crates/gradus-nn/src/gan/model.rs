//! The fitted generator.

use super::network::{Discriminator, GanArchitecture, GanLayers, Generator};
use super::train::codes;
use crate::device::{numbers, tensor};
use crate::generative::{check_number, drawn, read_progress, write_progress};
use crate::layers::Pass;
use crate::supervised::{Features, Scaler};
use crate::weights::{Layout, Weights};
use burn::tensor::Device;
use gradus_base::Result;
use gradus_core::dataset::Dataset;
use gradus_core::density::{Draw, Generate, Progress};
use gradus_core::estimator::Model;
use gradus_core::predict::check_features;
use gradus_data::{Inputs, Matrix};
use gradus_file::{Reader, Writer};

/// Rows that go through a network at once.
const ROWS: usize = 64;

/// What [`Gan`](super::Gan) learns: a generator, and the discriminator that it learned against.
#[derive(Clone, Debug)]
pub struct GanModel {
    pub(super) inputs: Inputs,
    pub(super) scaler: Scaler,
    pub(super) architecture: GanArchitecture,
    pub(super) generator: (Layout, Generator, Weights),
    pub(super) discriminator: (Layout, Discriminator, Weights),
    pub(super) progress: Progress,
}

impl GanModel {
    /// What determines the layers.
    pub fn architecture(&self) -> &GanArchitecture {
        &self.architecture
    }

    /// The names and shapes of the weights of the generator.
    pub fn layout(&self) -> &Layout {
        &self.generator.0
    }

    /// The weights of the generator.
    pub fn weights(&self) -> &Weights {
        &self.generator.2
    }

    /// The features of codes.
    fn made(&self, codes: &[f32]) -> Vec<f64> {
        let (_, network, weights) = &self.generator;
        let latent = self.architecture.latent;
        let mut values = Vec::new();
        for codes in codes.chunks(ROWS * latent) {
            let x = tensor(codes.to_vec(), [codes.len() / latent, latent], &Device::flex());
            let made = numbers(network.forward(weights, x, &Pass::predicting()));
            values.extend(self.scaler.inverse(&made));
        }
        values
    }

    /// The score of each sample by the discriminator: above 0 where it takes the sample for data.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    pub fn discriminator_scores(&self, features: &Matrix) -> Result<Vec<f64>> {
        check_features(&self.inputs, features)?;
        let (_, network, weights) = &self.discriminator;
        let (d, rows) = (self.scaler.len(), 0..features.n_rows() as u32);
        let mut scores = Vec::with_capacity(features.n_rows());
        for rows in rows.collect::<Vec<_>>().chunks(ROWS) {
            let mut z = self.scaler.apply(Features::from(features), rows);
            // Always so many rows: a sample has the same score whatever stands beside it.
            z.resize(ROWS * d, 0.0);
            let x = tensor(z, [ROWS, d], &Device::flex());
            let found = numbers(network.forward(weights, x, &Pass::predicting()));
            scores.extend(found[..rows.len()].iter().map(|score| f64::from(*score)));
        }
        Ok(scores)
    }
}

impl Generate for GanModel {
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        self.draw(&Draw::new(n, seed))
    }

    fn draw(&self, request: &Draw<'_>) -> Result<Box<dyn Dataset>> {
        request.check("gan", &["temperature"])?;
        let (n, latent) = (request.n, self.architecture.latent);
        check_number("gan", n, self.inputs.n_features().max(latent))?;
        let by = request.temperature.unwrap_or(1.0) as f32;
        let mut found = codes(request.seed, "nn.gan.sample", 0..n as u64, latent);
        found.iter_mut().for_each(|x| *x *= by);
        drawn(n, &self.inputs, self.made(&found))
    }

    fn inputs(&self) -> Option<&Inputs> {
        Some(&self.inputs)
    }

    fn progress(&self) -> Option<&Progress> {
        (!self.progress.epochs.is_empty()).then_some(&self.progress)
    }

    fn interpolate(&self, n: usize, steps: usize, seed: u64) -> Option<Result<Box<dyn Dataset>>> {
        let latent = self.architecture.latent;
        let number = n.saturating_mul(steps);
        if let Err(error) = check_number("gan", number, self.inputs.n_features().max(latent)) {
            return Some(Err(error));
        }
        let ends = codes(seed, "nn.gan.path", 0..2 * n as u64, latent);
        let mut all = Vec::with_capacity(number * latent);
        for ends in ends.chunks_exact(2 * latent) {
            let (from, to) = ends.split_at(latent);
            for step in 0..steps {
                // Along an arc: codes between two have the length that codes have.
                let share = step as f32 / (steps.max(2) - 1) as f32;
                let (b, a) = (share * std::f32::consts::FRAC_PI_2).sin_cos();
                all.extend(from.iter().zip(to).map(|(x, y)| a * x + b * y));
            }
        }
        Some(drawn(number, &self.inputs, self.made(&all)))
    }
}

impl Model for GanModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("architecture", &self.architecture);
        self.scaler.write(file);
        write_progress(&self.progress, "", file);
        self.generator.2.write(&self.generator.0, "generator.", file);
        self.discriminator.2.write(&self.discriminator.0, "discriminator.", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let architecture: GanArchitecture = file.get("architecture")?;
        if architecture.inputs != inputs.n_features() {
            return Err(file.broken("its layers do not fit its inputs"));
        }
        let (mut of_g, mut of_d) = (Layout::new(), Layout::new());
        let generator = Generator::new(&architecture, &mut of_g);
        let generator = generator.map_err(|error| file.broken(error))?;
        let discriminator = Discriminator::new(&architecture, &mut of_d);
        let discriminator = discriminator.map_err(|error| file.broken(error))?;
        let scaler = Scaler::read(file, architecture.inputs)?;
        let progress = read_progress("", file)?;
        if !progress
            .samples
            .len()
            .is_multiple_of(architecture.inputs * progress.epochs.len().max(1))
        {
            return Err(file.broken("its samples of the course of the fit are of another width"));
        }
        let device = Device::flex();
        let weights = Weights::read(&of_g, "generator.", file, &device)?;
        let generator = (of_g, generator, weights);
        let weights = Weights::read(&of_d, "discriminator.", file, &device)?;
        let discriminator = (of_d, discriminator, weights);
        Ok(Self { inputs, scaler, architecture, generator, discriminator, progress })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let GanArchitecture { inputs, latent, layers } = &self.architecture;
        let list = |sizes: &[usize]| -> String {
            let sizes: Vec<String> = sizes.iter().rev().map(ToString::to_string).collect();
            sizes.join(" → ")
        };
        let layers = match layers {
            GanLayers::Dense { hidden } if hidden.is_empty() => format!("{latent} → {inputs}"),
            GanLayers::Dense { hidden } => format!("{latent} → {} → {inputs}", list(hidden)),
            GanLayers::Convolutional { shape, channels } => {
                format!("{latent} → {} channels → {shape}", list(channels))
            }
        };
        let grouped = gradus_base::text::grouped;
        vec![
            ("generator", layers),
            ("code", latent.to_string()),
            ("features", inputs.to_string()),
            ("weights", grouped(self.generator.0.n_weights())),
            ("weights of the discriminator", grouped(self.discriminator.0.n_weights())),
        ]
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
