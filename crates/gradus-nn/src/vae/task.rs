//! What a variational autoencoder learns: the two terms of the evidence lower bound.

use super::VaeNetwork;
use super::model::{Learned, decoded_means, drawn_values};
use super::network::{cpu, normals};
use crate::device::{numbers, tensor};
use crate::generative::{Binarize, Rows, binary_by_pixels, key_of, plain};
use crate::layers::Pass;
use crate::supervised::{Features, Scaler};
use crate::train::Task;
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::parallel;
use gradus_base::random::Stream;
use gradus_core::report::Measure;
use serde::{Deserialize, Serialize};

/// Rows that are scored at once.
const ROWS: usize = 512;
/// Rows whose terms are measured after each epoch.
const MEASURED: usize = 2_000;
/// A number of a code is active if the variance of its mean over the data is above this.
const ACTIVE: f64 = 0.01;
/// Samples of the course of a fit: images, and points of a table.
const KEPT: (usize, usize) = (16, 400);

/// How features become what the encoder sees and the decoder is compared with.
#[derive(Clone, Debug)]
pub(super) enum Space {
    /// Numbers from 0 to 1, which may become binary.
    Binary { features: usize, pixels: BinaryPixels },
    /// Standardised features.
    Continuous(Scaler),
}

/// How grey pixels become binary, if they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BinaryPixels {
    pub how: Option<Binarize>,
    pub seed: u64,
}

impl Space {
    pub fn n_features(&self) -> usize {
        match self {
            Self::Binary { features, .. } => *features,
            Self::Continuous(scaler) => scaler.len(),
        }
    }

    /// The numbers that the decoder is compared with; `again` is the seed of an epoch.
    pub fn truth(&self, features: Features<'_>, rows: &[u32], again: Option<u64>) -> Vec<f32> {
        match self {
            Self::Continuous(scaler) => scaler.apply(features, rows),
            Self::Binary { features: d, pixels } => {
                let mut x = plain(features, rows);
                let fixed = pixels.seed;
                let seed = match pixels.how {
                    None => return x,
                    Some(Binarize::Threshold) => {
                        x.iter_mut().for_each(|x| *x = f32::from(u8::from(*x > 0.5)));
                        return x;
                    }
                    Some(Binarize::Static) => fixed,
                    Some(Binarize::Dynamic) => again.unwrap_or(fixed),
                };
                parallel::each_row(&mut x, (*d).max(1), |_, image| binary_by_pixels(image, seed));
                x
            }
        }
    }

    /// What the encoder sees of these numbers.
    pub fn seen(&self, truth: &[f32]) -> Vec<f32> {
        match self {
            Self::Continuous(_) => truth.to_vec(),
            Self::Binary { .. } => truth.iter().map(|x| 2.0 * x - 1.0).collect(),
        }
    }

    /// 1 for features that vary, 0 for constant ones, of which there is no density.
    pub fn counted(&self) -> Vec<f32> {
        match self {
            Self::Continuous(scaler) => {
                scaler.factors().iter().map(|factor| f32::from(u8::from(*factor > 0.0))).collect()
            }
            Self::Binary { features, .. } => vec![1.0; *features],
        }
    }

    /// The mean of the features, in their units, from what the decoder gives.
    pub fn means(&self, decoded: &[f32]) -> Vec<f64> {
        match self {
            Self::Continuous(scaler) => scaler.inverse(decoded),
            Self::Binary { .. } => {
                decoded.iter().map(|s| 1.0 / (1.0 + f64::from(-s).exp())).collect()
            }
        }
    }
}

/// The task of a variational autoencoder.
pub(super) struct VaeTask<'a> {
    pub layout: &'a Layout,
    pub network: &'a VaeNetwork,
    pub space: &'a Space,
    pub counted: Vec<f32>,
    pub training: &'a Rows<'a>,
    pub held: Option<&'a Rows<'a>>,
    pub beta: f64,
    /// Codes for each row.
    pub samples: usize,
    pub images: bool,
    pub device: Device,
}

impl VaeTask<'_> {
    fn x(&self, truth: &[f32]) -> Tensor<2> {
        let d = self.space.n_features();
        tensor(self.space.seen(truth), [truth.len() / d.max(1), d], &self.device)
    }

    /// Both terms at these rows, added up; noise depends on what a row holds.
    fn sums(&self, weights: &Weights, features: Features<'_>, rows: &[u32]) -> (f64, f64) {
        let (d, k) = self.network.sizes;
        let (mut reconstruction, mut divergence) = (0.0, 0.0);
        for rows in rows.chunks(ROWS) {
            let truth = self.space.truth(features, rows, None);
            let noise = truth.chunks_exact(d.max(1)).flat_map(|row| {
                let mut stream = Stream::new(0, "vae.validate", key_of(row));
                (0..k).map(move |_| stream.normal() as f32)
            });
            let noise: Vec<f32> = noise.collect();
            let x = (self.x(&truth), &truth[..]);
            let pass = Pass::predicting();
            let (a, b) = self.network.terms(weights, x, noise, &self.counted, &pass);
            reconstruction += f64::from(numbers(a)[0]);
            divergence += f64::from(numbers(b)[0]);
        }
        (reconstruction, divergence)
    }
}

impl Task for VaeTask<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn n_units(&self) -> usize {
        self.training.1.len()
    }

    fn loss(&self, weights: &Weights, units: &[u32], pass: &Pass) -> Tensor<1> {
        let (features, rows) = self.training;
        let rows: Vec<u32> = units.iter().map(|at| rows[*at as usize]).collect();
        let (n, k) = (rows.len(), self.network.sizes.1);
        let truth = self.space.truth(*features, &rows, Some(pass.seed()));
        let x = (self.x(&truth), &truth[..]);
        let noise = normals(pass.seed(), "vae.noise", n, k * self.samples);
        let sum = if self.samples == 1 {
            let (a, b) = self.network.terms(weights, x, noise, &self.counted, pass);
            a + b * self.beta
        } else {
            let many = (self.samples, &self.counted[..]);
            self.network.importance_weighted(weights, x, noise, many, pass)
        };
        sum * (1.0 / n as f64)
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        let (features, rows) = self.held?;
        let (reconstruction, divergence) = self.sums(weights, *features, rows);
        Some((reconstruction + self.beta * divergence) / rows.len().max(1) as f64)
    }

    fn measures(&self, weights: &Weights) -> Vec<Measure> {
        let (features, rows) = self.held.unwrap_or(self.training);
        let rows = &rows[..rows.len().min(MEASURED)];
        let n = rows.len().max(1) as f64;
        let (reconstruction, divergence) = self.sums(weights, *features, rows);
        let k = self.network.sizes.1;
        let mut moments = vec![(0.0f64, 0.0f64); k];
        for rows in rows.chunks(ROWS) {
            let truth = self.space.truth(*features, rows, None);
            let (means, _) = self.network.encode(weights, self.x(&truth), &Pass::predicting());
            for row in numbers(means).chunks_exact(k.max(1)) {
                for ((sum, squares), x) in moments.iter_mut().zip(row) {
                    *sum += f64::from(*x);
                    *squares += f64::from(*x).powi(2);
                }
            }
        }
        let varies = |(sum, squares): &&(f64, f64)| squares / n - (sum / n).powi(2) > ACTIVE;
        let active = moments.iter().filter(varies).count();
        vec![
            Measure::new("reconstruction", reconstruction / n),
            Measure::new("KL divergence", divergence / n),
            Measure::new("active codes", active as f64),
        ]
    }

    fn samples(&self, weights: &Weights) -> Option<Vec<f32>> {
        let n = if self.images { KEPT.0 } else { KEPT.1 };
        let weights = weights.to_device(&cpu());
        let learned = Learned { network: self.network, space: self.space, weights: &weights };
        let codes = normals(0, "vae.sample", n, self.network.sizes.1);
        let values = match self.images {
            true => decoded_means(&learned, &codes),
            false => drawn_values(&learned, &codes, 0, 1.0),
        };
        Some(values.into_iter().map(|x| x as f32).collect())
    }

    fn model(&self) -> &'static str {
        "vae"
    }
}
