//! The fitted variational autoencoder: codes, samples, and a bound on the log likelihood.

use super::network::{VaeArchitecture, VaeNetwork, normals};
use super::task::{BinaryPixels, Space};
use crate::autoencoder::Coding;
use crate::device::{numbers, tensor};
use crate::generative::{check_number, check_pixels, drawn, key_of, read_progress, write_progress};
use crate::layers::Pass;
use crate::supervised::{Features, Scaler};
use crate::weights::{Layout, Weights};
use burn::tensor::Device;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Density, Dimensions, Draw, Generate, Progress};
use gradus_core::estimator::Model;
use gradus_core::predict::check_features;
use gradus_core::transform::Transform;
use gradus_data::{Dense, Inputs, Matrix, Samples};
use gradus_file::{Reader, Writer};

/// Rows that are computed at once, always so many: products of fewer rows may add up in another order, and a sample has the same code
/// whatever it is transformed with.
const ROWS: usize = 64;

/// A network with its weights, and how features become its numbers.
pub(super) struct Learned<'a> {
    pub network: &'a VaeNetwork,
    pub space: &'a Space,
    pub weights: &'a Weights,
}

impl Learned<'_> {
    /// Means and logarithms of variances of codes.
    fn encode(&self, truth: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (d, k) = self.network.sizes;
        let mut found = (Vec::new(), Vec::new());
        for rows in truth.chunks(ROWS * d) {
            let n = rows.len() / d;
            let mut x = self.space.seen(rows);
            x.resize(ROWS * d, 0.0);
            let x = tensor(x, [ROWS, d], &Device::flex());
            let (mean, log) = self.network.encode(self.weights, x, &Pass::predicting());
            found.0.extend_from_slice(&numbers(mean)[..n * k]);
            found.1.extend_from_slice(&numbers(log)[..n * k]);
        }
        found
    }

    /// What the decoder makes of codes.
    fn decode(&self, codes: &[f32]) -> Vec<f32> {
        let (d, k) = self.network.sizes;
        let blocks: Vec<&[f32]> = codes.chunks(ROWS * k).collect();
        let parts = parallel::map(blocks, |codes| {
            let n = codes.len() / k;
            let mut codes = codes.to_vec();
            codes.resize(ROWS * k, 0.0);
            let codes = tensor(codes, [ROWS, k], &Device::flex());
            let mut decoded =
                numbers(self.network.decode(self.weights, codes, &Pass::predicting()));
            decoded.truncate(n * d);
            decoded
        });
        parts.concat()
    }
}

/// The means of the features given codes.
pub(super) fn decoded_means(learned: &Learned<'_>, codes: &[f32]) -> Vec<f64> {
    learned.space.means(&learned.decode(codes))
}

/// Features drawn given codes.
pub(super) fn drawn_values(
    learned: &Learned<'_>,
    codes: &[f32],
    seed: u64,
    temperature: f64,
) -> Vec<f64> {
    let d = learned.network.sizes.0.max(1);
    let mut decoded = learned.decode(codes);
    let log_variances = learned.network.log_variances_of(learned.weights);
    parallel::each_row(&mut decoded, d, |row, values| {
        let mut stream = Stream::new(seed, "vae.features", row as u64);
        for (at, x) in values.iter_mut().enumerate() {
            *x = match &log_variances {
                Some(logs) => {
                    let deviation = temperature * f64::from(0.5 * logs[at]).exp();
                    *x + (deviation * stream.normal()) as f32
                }
                // The score of a drawn bit: its mean is that bit.
                None if stream.uniform() < 1.0 / (1.0 + f64::from(-*x).exp()) => f32::INFINITY,
                None => f32::NEG_INFINITY,
            };
        }
    });
    learned.space.means(&decoded)
}

/// What [`Vae`](super::Vae) learns: codes of samples, and samples of codes.
#[derive(Clone, Debug)]
pub struct VaeModel {
    pub(super) inputs: Inputs,
    pub(super) space: Space,
    pub(super) architecture: VaeArchitecture,
    pub(super) layout: Layout,
    pub(super) network: VaeNetwork,
    pub(super) weights: Weights,
    /// Codes for each sample in the bound on its log likelihood.
    pub(super) test_samples: usize,
    pub(super) seed: u64,
    pub(super) progress: Progress,
}

impl VaeModel {
    /// What determines the layers.
    pub fn architecture(&self) -> &VaeArchitecture {
        &self.architecture
    }

    /// The names and shapes of the weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    fn learned(&self) -> Learned<'_> {
        Learned { network: &self.network, space: &self.space, weights: &self.weights }
    }

    fn check(&self, features: &Matrix) -> Result<Vec<u32>> {
        check_features(&self.inputs, features)?;
        let rows: Vec<u32> = (0..features.n_rows() as u32).collect();
        if let Space::Binary { .. } = self.space {
            check_pixels("vae", features.into(), &rows)?;
        }
        Ok(rows)
    }

    /// Means and variances of the posteriors of the codes.
    ///
    /// # Shapes
    /// `n × features` to `n × code`, twice.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    pub fn posterior(&self, features: &Matrix) -> Result<(Dense<f64>, Dense<f64>)> {
        let rows = self.check(features)?;
        let truth = self.space.truth(features.into(), &rows, None);
        let (means, logs) = self.learned().encode(&truth);
        let k = self.network.sizes.1;
        let means = means.into_iter().map(f64::from).collect();
        let variances = logs.into_iter().map(|log| f64::from(log).exp()).collect();
        Ok((Dense::new(rows.len(), k, means)?, Dense::new(rows.len(), k, variances)?))
    }

    /// The importance-weighted lower bound on the log density of each sample, with `k` codes for each: `log 1/k Σ p(x, zᵢ) / q(zᵢ | x)`.
    /// With 1 it is an estimate of the evidence lower bound; it grows with `k` towards the log density.
    ///
    /// # Errors
    /// If the number of features is not that of training, or `k` is 0.
    pub fn bounds(&self, features: &Matrix, k: usize) -> Result<Vec<f64>> {
        if k == 0 {
            return Err(Error::parameter("samples", k, "must be at least 1"));
        }
        let rows = self.check(features)?;
        let (d, size) = self.network.sizes;
        let learned = self.learned();
        let counted = self.space.counted();
        let log_variances = self.network.log_variances_of(&self.weights);
        let logs = log_variances.as_deref();
        // From standardised features to those of the data.
        let volume: f64 = match &self.space {
            Space::Binary { .. } => 0.0,
            Space::Continuous(scaler) => {
                let factors = scaler.factors().iter().filter(|factor| **factor > 0.0);
                factors.map(|factor| f64::from(*factor).ln()).sum()
            }
        };
        let mut found = Vec::with_capacity(rows.len());
        for rows in rows.chunks(ROWS) {
            let truth = self.space.truth(Features::from(features), rows, None);
            let (means, log_scales) = learned.encode(&truth);
            found.extend(parallel::map(0..rows.len(), |row| {
                let truth = &truth[row * d..][..d];
                let (mean, log) = (&means[row * size..][..size], &log_scales[row * size..][..size]);
                // A sample has noise of its own, whatever it is scored with.
                let mut stream = Stream::new(self.seed, "vae.bound", key_of(truth));
                let mut codes = Vec::with_capacity(k * size);
                let mut priors = Vec::with_capacity(k);
                for _ in 0..k {
                    let mut prior = 0.0;
                    for (mean, log) in mean.iter().zip(log) {
                        let noise = stream.normal();
                        let z = f64::from(*mean) + (0.5 * f64::from(*log)).exp() * noise;
                        codes.push(z as f32);
                        // log p(z) − log q(z | x), without constants that cancel.
                        prior += 0.5 * (noise * noise + f64::from(*log) - z * z);
                    }
                    priors.push(prior);
                }
                let codes = tensor(codes, [k, size], &Device::flex());
                let decoded =
                    numbers(self.network.decode(&self.weights, codes, &Pass::predicting()));
                volume + self.network.bound((&decoded, truth), &priors, (logs, &counted))
            }));
        }
        Ok(found)
    }

    /// Samples of codes: means of images, draws of tables.
    fn samples(
        &self,
        n: usize,
        codes: &[f32],
        seed: u64,
        temperature: f64,
    ) -> Result<Box<dyn Dataset>> {
        let learned = self.learned();
        let values = match self.inputs {
            Inputs::Images(_) => decoded_means(&learned, codes),
            _ => drawn_values(&learned, codes, seed, temperature),
        };
        drawn(n, &self.inputs, values)
    }
}

impl Transform for VaeModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (1..=self.network.sizes.1).map(|at| format!("code{at}")).collect()
    }

    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        Ok(self.posterior(features)?.0)
    }

    fn inverse(&self, transformed: &Dense<f64>) -> Option<Result<Dense<f64>>> {
        let (n, k) = transformed.shape();
        let (d, size) = self.network.sizes;
        if k != size {
            return Some(Err(Error::Shape {
                what: "codes".into(),
                expected: format!("{size} columns"),
                got: k.to_string(),
            }));
        }
        let codes: Vec<f32> = transformed.values().iter().map(|x| *x as f32).collect();
        Some(Dense::new(n, d, decoded_means(&self.learned(), &codes)))
    }

    fn inverse_is_exact(&self) -> bool {
        false
    }
}

impl Density for VaeModel {
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        self.bounds(data.of_kind::<Samples>()?.features(), self.test_samples)
    }

    fn inputs(&self) -> Option<&Inputs> {
        Some(&self.inputs)
    }

    fn is_bound(&self) -> bool {
        true
    }

    fn dimensions(&self) -> Option<Dimensions> {
        match self.space {
            Space::Binary { features, .. } => Some(Dimensions { number: features, levels: 2 }),
            Space::Continuous(_) => None,
        }
    }
}

impl Generate for VaeModel {
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        self.draw(&Draw::new(n, seed))
    }

    fn draw(&self, request: &Draw<'_>) -> Result<Box<dyn Dataset>> {
        request.check("vae", &["temperature"])?;
        let Draw { n, seed, .. } = *request;
        check_number("vae", n, self.network.sizes.0.max(self.network.sizes.1))?;
        let temperature = request.temperature.unwrap_or(1.0);
        let mut codes = normals(seed, "vae.sample", n, self.network.sizes.1);
        codes.iter_mut().for_each(|z| *z *= temperature as f32);
        self.samples(n, &codes, seed, temperature)
    }

    fn progress(&self) -> Option<&Progress> {
        Some(&self.progress).filter(|progress| !progress.epochs.is_empty())
    }

    /// Codes go along a quarter of a circle from one to the other, so that each is as probable under the prior as a drawn one.
    fn interpolate(&self, n: usize, steps: usize, seed: u64) -> Option<Result<Box<dyn Dataset>>> {
        let k = self.network.sizes.1;
        let total = n.saturating_mul(steps);
        if let Err(error) = check_number("vae", total, self.network.sizes.0.max(k)) {
            return Some(Err(error));
        }
        let ends = normals(seed, "vae.interpolate", 2 * n, k);
        let mut codes = Vec::with_capacity(total * k);
        for pair in ends.chunks_exact(2 * k) {
            for step in 0..steps {
                let share = step as f32 / steps.saturating_sub(1).max(1) as f32;
                let (sine, cosine) = (share * std::f32::consts::FRAC_PI_2).sin_cos();
                codes.extend((0..k).map(|at| cosine * pair[at] + sine * pair[k + at]));
            }
        }
        let values = decoded_means(&self.learned(), &codes);
        Some(drawn(total, &self.inputs, values))
    }
}

impl Model for VaeModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("architecture", &self.architecture);
        file.set("test_samples", &self.test_samples);
        file.set("seed", &self.seed);
        match &self.space {
            Space::Binary { pixels, .. } => file.set("pixels", pixels),
            Space::Continuous(scaler) => scaler.write(file),
        }
        self.weights.write(&self.layout, "", file);
        write_progress(&self.progress, "", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let architecture: VaeArchitecture = file.get("architecture")?;
        let d = inputs.n_features();
        if !architecture.fits(&inputs) || d == 0 {
            return Err(file.broken("its layers do not fit its inputs"));
        }
        let test_samples: usize = file.get("test_samples")?;
        if !(1..=super::MOST_SAMPLES).contains(&test_samples) {
            return Err(file.broken("its number of codes for each sample is not possible"));
        }
        let mut layout = Layout::new();
        let network = VaeNetwork::new(&architecture, &mut layout);
        let network = network.map_err(|error| file.broken(error))?;
        let space = match architecture.decoder {
            super::Decoder::Gaussian => Space::Continuous(Scaler::read(file, d)?),
            _ => {
                let pixels: BinaryPixels = file.get("pixels")?;
                Space::Binary { features: d, pixels }
            }
        };
        let weights = Weights::read(&layout, "", file, &Device::flex())?;
        let (seed, progress) = (file.get("seed")?, read_progress("", file)?);
        Ok(Self {
            inputs,
            space,
            architecture,
            layout,
            network,
            weights,
            test_samples,
            seed,
            progress,
        })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let layers = &self.architecture.layers;
        let names = match &layers.coding {
            Coding::Dense { hidden } => {
                let sizes = [&[layers.inputs][..], hidden, &[layers.code]].concat();
                sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ")
            }
            Coding::Convolutional { shape, channels, .. } => {
                let channels: Vec<String> = channels.iter().map(ToString::to_string).collect();
                format!("{shape} → {} channels → {}", channels.join(" → "), layers.code)
            }
        };
        let decoder = match self.space {
            Space::Binary { .. } => "Bernoulli",
            Space::Continuous(_) => "Gaussian",
        };
        vec![
            ("layers", names),
            ("code", layers.code.to_string()),
            ("decoder", decoder.to_owned()),
            ("weights", gradus_base::text::grouped(self.layout.n_weights())),
        ]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
