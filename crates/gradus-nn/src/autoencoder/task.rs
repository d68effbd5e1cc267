//! What an autoencoder learns: samples from their codes.

use super::AutoencoderNetwork;
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::ops::squared_error;
use crate::supervised::{Features, Scaler};
use crate::train::Task;
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, Tensor};

/// Rows that are scored at once.
const ROWS: usize = 1024;

/// Features, which rows of these are meant, and the weights of those rows.
type Rows<'a> = (Features<'a>, &'a [u32], &'a [f32]);

/// The task of an autoencoder.
pub(super) struct ReconstructionTask<'a> {
    pub(super) layout: &'a Layout,
    pub(super) network: &'a AutoencoderNetwork,
    pub(super) scaler: &'a Scaler,
    pub(super) training: Rows<'a>,
    pub(super) held: Option<Rows<'a>>,
    pub(super) device: Device,
}

impl ReconstructionTask<'_> {
    /// The root of the mean squared error of the mean of training, in standard deviations.
    pub(super) fn error_of_the_mean(
        &self,
        features: Features<'_>,
        rows: &[u32],
        weights: &[f32],
    ) -> f64 {
        let d = self.scaler.len();
        let (mut sum, mut total) = (0.0, 0.0);
        for (rows, weights) in rows.chunks(ROWS).zip(weights.chunks(ROWS)) {
            let z = self.scaler.apply(features, rows);
            for (z, &weight) in z.chunks_exact(d.max(1)).zip(weights) {
                sum += f64::from(weight) * z.iter().map(|z| f64::from(*z).powi(2)).sum::<f64>();
                total += f64::from(weight);
            }
        }
        (sum / (total * d as f64)).sqrt()
    }
}

impl Task for ReconstructionTask<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn n_units(&self) -> usize {
        self.training.1.len()
    }

    fn loss(&self, weights: &Weights, units: &[u32], pass: &Pass) -> Tensor<1> {
        let (features, rows, row_weights) = self.training;
        let d = self.scaler.len();
        let of_units = |at: &u32| (rows[*at as usize], row_weights[*at as usize]);
        let (rows, row_weights): (Vec<u32>, Vec<f32>) = units.iter().map(of_units).unzip();
        let z = self.scaler.apply(features, &rows);
        let x = tensor(z.clone(), [rows.len(), d], &self.device);
        let code = self.network.encode(weights, x, pass);
        let back = self.network.decode(weights, code, pass);
        squared_error(back, z, &row_weights) * (1.0 / (rows.len() * d) as f64)
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        let (features, rows, row_weights) = self.held?;
        let d = self.scaler.len();
        let (mut sum, mut total) = (0.0, 0.0);
        for (rows, row_weights) in rows.chunks(ROWS).zip(row_weights.chunks(ROWS)) {
            let z = self.scaler.apply(features, rows);
            let x = tensor(z.clone(), [rows.len(), d], &self.device);
            let pass = Pass::predicting();
            let back = self.network.decode(weights, self.network.encode(weights, x, &pass), &pass);
            sum += 2.0 * f64::from(numbers(squared_error(back, z, row_weights))[0]);
            total += row_weights.iter().map(|weight| f64::from(*weight)).sum::<f64>();
        }
        Some((sum / (total * d as f64)).sqrt())
    }

    fn model(&self) -> &'static str {
        "autoencoder"
    }
}
