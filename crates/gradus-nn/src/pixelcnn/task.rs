//! What a PixelCNN learns: pixels given those before them, or features given those before them.

use super::PixelCnnNetwork;
use super::made::MadeNetwork;
use super::model::{Learned, log_densities, sampled};
use crate::device::tensor;
use crate::generative::{Levels, Rows, plain};
use crate::layers::Pass;
use crate::ops::cross_entropy;
use crate::supervised::Scaler;
use crate::train::Task;
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, Tensor};
use gradus_core::density::Dimensions;

/// Samples of the course of a fit: images, and points of a table.
pub(super) const KEPT: (usize, usize) = (16, 400);

/// The layers, and how numbers become what they learn from.
#[derive(Clone, Debug)]
pub(super) enum Network {
    Images { network: PixelCnnNetwork, levels: Levels },
    Table { network: MadeNetwork, scaler: Scaler },
}

impl Network {
    /// What the loss is divided by, so that it is in bits per dimension for images and in nats for tables.
    pub fn unit(&self) -> f64 {
        match self {
            Self::Images { network, levels } => {
                let dimensions = Dimensions { number: network.shape.len(), levels: levels.number };
                1.0 / dimensions.bits(1.0)
            }
            Self::Table { .. } => 1.0,
        }
    }
}

/// The task of a PixelCNN.
pub(super) struct PixelTask<'a> {
    pub layout: &'a Layout,
    pub network: &'a Network,
    pub training: &'a Rows<'a>,
    pub held: Option<&'a Rows<'a>>,
    pub device: Device,
}

impl Task for PixelTask<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn n_units(&self) -> usize {
        self.training.1.len()
    }

    fn loss(&self, weights: &Weights, units: &[u32], pass: &Pass) -> Tensor<1> {
        let (features, rows) = self.training;
        let rows: Vec<u32> = units.iter().map(|at| rows[*at as usize]).collect();
        let n = rows.len();
        let sum = match self.network {
            Network::Images { network, levels } => {
                let pixels = plain(*features, &rows);
                let found = levels.of(pixels, network.shape.len(), Some(pass.seed()));
                let x = network.inputs(&found, &self.device);
                let scores = network.forward(weights, x, pass).into_iter().enumerate();
                let c = network.n_channels();
                let ones = vec![1.0; found.len() / c];
                let losses = scores.map(|(channel, scores)| {
                    let truth: Vec<u32> = found[channel..].iter().step_by(c).copied().collect();
                    cross_entropy(scores, &truth, &ones)
                });
                losses.reduce(|a, b| a + b).expect("a pixel has a channel")
            }
            Network::Table { network, scaler } => {
                let x = tensor(scaler.apply(*features, &rows), [n, scaler.len()], &self.device);
                network.loss(weights, x, &counted(scaler))
            }
        };
        sum * (1.0 / (n as f64 * self.network.unit()))
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        let (features, rows) = self.held?;
        let logs = log_densities(self.network, weights, *features, rows, &self.device);
        Some(-logs.iter().sum::<f64>() / (logs.len().max(1) as f64 * self.network.unit()))
    }

    fn samples(&self, weights: &Weights) -> Option<Vec<f32>> {
        let n = match self.network {
            Network::Images { .. } => KEPT.0,
            Network::Table { .. } => KEPT.1,
        };
        let weights = weights.to_device(&Device::flex());
        let learned = Learned { network: self.network, weights: &weights };
        let drawn = sampled(&learned, n, 0, 1.0, None);
        Some(drawn.into_iter().map(|x| x as f32).collect())
    }

    fn model(&self) -> &'static str {
        "pixelcnn"
    }
}

/// 1 for features that vary, 0 for constant ones, of which there is no density.
pub(super) fn counted(scaler: &Scaler) -> Vec<f32> {
    scaler.factors().iter().map(|factor| f32::from(u8::from(*factor > 0.0))).collect()
}
