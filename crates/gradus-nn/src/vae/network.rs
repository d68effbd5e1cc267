//! The encoder and the decoder of a variational autoencoder, and the two terms of its loss.

use crate::autoencoder::{AutoencoderArchitecture, AutoencoderNetwork};
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::ops::{bernoulli_log_likelihood, bernoulli_loss};
use crate::weights::{Init, Layout, Role, WeightId, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_data::Inputs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The distribution of a feature given the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decoder {
    /// Bernoulli for images with pixels from 0 to 1, Gaussian for other features.
    #[default]
    Auto,
    /// Binary: 1 with a probability that the decoder gives. For features from 0 to 1.
    Bernoulli,
    /// Normal about a mean that the decoder gives. Of images all pixels have one variance, of tables each column its own; they
    /// are learned.
    Gaussian,
}

/// Everything that determines the layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VaeArchitecture {
    /// Encoder and decoder.
    pub layers: AutoencoderArchitecture,
    /// The distribution of a feature: not `Auto`.
    pub decoder: Decoder,
    /// Whether all features have one variance, with a Gaussian decoder.
    pub one_variance: bool,
}

impl VaeArchitecture {
    /// Whether the features are one of the kinds that a model file can have.
    pub(super) fn fits(&self, inputs: &Inputs) -> bool {
        self.layers.inputs == inputs.n_features() && self.decoder != Decoder::Auto
    }
}

/// An encoder and a decoder.
#[derive(Clone, Debug)]
pub struct VaeNetwork {
    coder: AutoencoderNetwork,
    /// The number of features, and the length of a code.
    pub(super) sizes: (usize, usize),
    /// The logarithm of the variance of a Gaussian decoder: one number, or one a feature.
    log_variance: Option<(WeightId, usize)>,
}

/// Bounds of the logarithms of variances: standard deviations from 0.001 to 150.
const LOG_VARIANCES: (f32, f32) = (-14.0, 10.0);

impl VaeNetwork {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn new(architecture: &VaeArchitecture, layout: &mut Layout) -> Result<Self> {
        let VaeArchitecture { layers, decoder, one_variance } = architecture;
        let outputs = layers.code.saturating_mul(2);
        let coder = AutoencoderNetwork::with_outputs(layers, outputs, layout)?;
        let log_variance = (*decoder == Decoder::Gaussian).then(|| {
            let n = if *one_variance { 1 } else { layers.inputs };
            (layout.add("decoder.log_variance", &[n], Init::Constant(0.0), Role::Plain), n)
        });
        Ok(Self { coder, sizes: (layers.inputs, layers.code), log_variance })
    }

    /// The mean and the logarithm of the variance of the posterior of the code.
    ///
    /// # Shapes
    /// `n × features` to `n × code`, twice.
    pub fn encode(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> (Tensor<2>, Tensor<2>) {
        let k = self.sizes.1;
        let found = self.coder.encode(weights, x, pass);
        let (low, high) = LOG_VARIANCES;
        (found.clone().narrow(1, 0, k), found.narrow(1, k, k).clamp(low, high))
    }

    /// Scores of binary features, or means of standardised ones.
    ///
    /// # Shapes
    /// `n × code` to `n × features`.
    pub fn decode(&self, weights: &Weights, code: Tensor<2>, pass: &Pass) -> Tensor<2> {
        self.coder.decode(weights, code, pass)
    }

    /// The logarithm of the variance of each feature, with a Gaussian decoder.
    fn log_variances(&self, weights: &Weights) -> Option<Tensor<2>> {
        let (id, n) = self.log_variance?;
        let (low, high) = LOG_VARIANCES;
        Some(weights.get(id, [1, n]).clamp(low, high))
    }

    /// The same as numbers, one a feature.
    pub(super) fn log_variances_of(&self, weights: &Weights) -> Option<Vec<f32>> {
        let found = numbers(self.log_variances(weights)?);
        Some(if found.len() == 1 { found.repeat(self.sizes.0) } else { found })
    }

    /// The negative log likelihood of features, of those alone that are counted, summed over all rows.
    fn reconstruction(
        &self,
        weights: &Weights,
        decoded: Tensor<2>,
        truth: &[f32],
        counted: &[f32],
    ) -> Tensor<1> {
        let Some(log_variances) = self.log_variances(weights) else {
            return bernoulli_loss(decoded, truth.to_vec());
        };
        self.gaussian(decoded, log_variances, truth, counted).sum()
    }

    /// The negative log density of each feature.
    fn gaussian(
        &self,
        decoded: Tensor<2>,
        log_variances: Tensor<2>,
        truth: &[f32],
        counted: &[f32],
    ) -> Tensor<2> {
        let (dims, device) = (decoded.dims(), decoded.device());
        let off = decoded - tensor(truth.to_vec(), dims, &device);
        let constant = (2.0 * std::f32::consts::PI).ln();
        let each =
            (off.clone() * off) * (log_variances.clone() * -1.0).exp() + log_variances + constant;
        each * tensor(counted.iter().map(|x| 0.5 * x).collect(), [1, dims[1]], &device)
    }

    /// The negative log likelihood of each row.
    ///
    /// # Shapes
    /// `n × features` to `n`.
    fn reconstructions(
        &self,
        weights: &Weights,
        decoded: Tensor<2>,
        truth: &[f32],
        counted: &[f32],
    ) -> Tensor<1> {
        let n = decoded.dims()[0];
        let each = match self.log_variances(weights) {
            Some(log_variances) => self.gaussian(decoded, log_variances, truth, counted),
            None => {
                let (dims, device) = (decoded.dims(), decoded.device());
                let softplus = ((decoded.clone().abs() * -1.0).exp() + 1.0).log();
                let softplus = softplus + decoded.clone().clamp_min(0.0);
                softplus - decoded * tensor(truth.to_vec(), dims, &device)
            }
        };
        each.sum_dim(1).reshape([n])
    }

    /// The two terms of the loss, summed over the rows: the negative log likelihood of the features given codes drawn from their
    /// posteriors, and the Kullback–Leibler divergence of these from the prior.
    pub(super) fn terms(
        &self,
        weights: &Weights,
        (x, truth): (Tensor<2>, &[f32]),
        noise: Vec<f32>,
        counted: &[f32],
        pass: &Pass,
    ) -> (Tensor<1>, Tensor<1>) {
        let (mean, log_variance) = self.encode(weights, x, pass);
        let noise = tensor(noise, mean.dims(), &mean.device());
        let code = mean.clone() + (log_variance.clone() * 0.5).exp() * noise;
        let decoded = self.decode(weights, code, pass);
        let divergence = mean.clone() * mean + log_variance.clone().exp() - log_variance - 1.0;
        (self.reconstruction(weights, decoded, truth, counted), divergence.sum() * 0.5)
    }

    /// The negative importance-weighted bound with `k` codes for each row, summed over the rows.
    pub(super) fn importance_weighted(
        &self,
        weights: &Weights,
        (x, truth): (Tensor<2>, &[f32]),
        noise: Vec<f32>,
        (k, counted): (usize, &[f32]),
        pass: &Pass,
    ) -> Tensor<1> {
        let [n, d] = x.dims();
        let size = self.sizes.1;
        let (mean, log_variance) = self.encode(weights, x, pass);
        let device = mean.device();
        let mean = mean.reshape([n, 1, size]).repeat_dim(1, k);
        let log_variance = log_variance.reshape([n, 1, size]).repeat_dim(1, k);
        let noise: Tensor<3> = tensor(noise, [n, k, size], &device);
        let code = mean + (log_variance.clone() * 0.5).exp() * noise.clone();
        // log p(z) − log q(z | x), without constants that cancel.
        let prior = (noise.clone() * noise + log_variance - code.clone() * code.clone()) * 0.5;
        let prior = prior.sum_dim(2).reshape([n, k]);
        let decoded = self.decode(weights, code.reshape([n * k, size]), pass);
        let truth: Vec<f32> = truth.chunks_exact(d).flat_map(|row| row.repeat(k)).collect();
        let losses = self.reconstructions(weights, decoded, &truth, counted).reshape([n, k]);
        let logs = prior - losses;
        let most = logs.clone().max_dim(1).detach();
        let bounds = (logs - most.clone()).exp().sum_dim(1).log() + most - (k as f32).ln();
        -bounds.sum()
    }

    /// The importance-weighted bound of one row in double precision, with `k` codes: `decoded` are what the decoder makes of them.
    pub(super) fn bound(
        &self,
        (decoded, truth): (&[f32], &[f32]),
        priors: &[f64],
        (log_variances, counted): (Option<&[f32]>, &[f32]),
    ) -> f64 {
        let (d, k) = (truth.len(), priors.len());
        let constant = (2.0 * std::f64::consts::PI).ln();
        let mut held = Vec::new();
        let logs: Vec<f64> = decoded
            .chunks_exact(d)
            .zip(priors)
            .map(|(decoded, prior)| match log_variances {
                None => prior + bernoulli_log_likelihood(decoded, truth, &mut held),
                Some(log_variances) => {
                    let each = decoded.iter().zip(truth).zip(log_variances.iter().zip(counted));
                    let sum: f64 = each
                        .map(|((m, x), (log, counted))| {
                            let (off, log) = (f64::from(x - m), f64::from(*log));
                            f64::from(*counted) * (off * off * (-log).exp() + log + constant)
                        })
                        .sum();
                    prior - 0.5 * sum
                }
            })
            .collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most + (logs.iter().map(|log| (log - most).exp()).sum::<f64>() / k as f64).ln()
    }
}

/// Normal random numbers, row by row from streams of their own.
pub(super) fn normals(seed: u64, purpose: &str, rows: usize, width: usize) -> Vec<f32> {
    let mut values = vec![0.0f32; rows * width];
    parallel::each_row(&mut values, width.max(1), |row, values| {
        let mut stream = Stream::new(seed, purpose, row as u64);
        values.iter_mut().for_each(|x| *x = stream.normal() as f32);
    });
    values
}

/// The processor, where a fitted model is.
pub(super) fn cpu() -> Device {
    Device::flex()
}
