//! The fitted autoencoder.

use super::{AutoencoderArchitecture, AutoencoderNetwork, Coding};
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::supervised::Scaler;
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::{Error, Result};
use gradus_core::estimator::Model;
use gradus_core::predict::check_features;
use gradus_core::transform::Transform;
use gradus_data::{Dense, Inputs, Matrix};
use gradus_file::{Reader, Writer};

/// Rows that are transformed at once, always so many: products of fewer rows may add up in another order, and a sample has the same
/// code to the last bit whatever it is transformed with.
const ROWS: usize = 64;

/// Rows of numbers as a tensor of [`ROWS`] rows, zeros behind them.
fn block(mut values: Vec<f32>, width: usize) -> Tensor<2> {
    values.resize(ROWS * width, 0.0);
    tensor(values, [ROWS, width], &Device::flex())
}

/// What [`Autoencoder`](super::Autoencoder) learns: codes of samples, and samples of codes.
#[derive(Clone, Debug)]
pub struct DeepAutoencoder {
    pub(super) inputs: Inputs,
    pub(super) scaler: Scaler,
    pub(super) architecture: AutoencoderArchitecture,
    pub(super) layout: Layout,
    pub(super) network: AutoencoderNetwork,
    pub(super) weights: Weights,
}

impl DeepAutoencoder {
    /// What determines the layers.
    pub fn architecture(&self) -> &AutoencoderArchitecture {
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

    /// The samples as they come back from their codes.
    ///
    /// # Shapes
    /// `n × features` to the same.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    pub fn reconstruct(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.decoded(&self.transform(features)?)
    }

    /// The mean squared error of the reconstruction of each sample, in standard deviations of the features.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    pub fn reconstruction_errors(&self, features: &Matrix) -> Result<Vec<f64>> {
        let back = self.reconstruct(features)?;
        let d = self.scaler.len().max(1);
        let rows: Vec<u32> = (0..features.n_rows() as u32).collect();
        let mut errors = Vec::with_capacity(rows.len());
        let back = Matrix::Dense(back);
        for rows in rows.chunks(ROWS) {
            let [z, again] = [features, &back].map(|matrix| self.scaler.apply(matrix, rows));
            errors.extend(z.chunks_exact(d).zip(again.chunks_exact(d)).map(|(z, again)| {
                let squares =
                    z.iter().zip(again).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
                squares.sum::<f64>() / d as f64
            }));
        }
        Ok(errors)
    }

    fn decoded(&self, codes: &Dense<f64>) -> Result<Dense<f64>> {
        let (n, k) = codes.shape();
        if k != self.architecture.code {
            return Err(Error::Shape {
                what: "codes".into(),
                expected: format!("{} columns", self.architecture.code),
                got: k.to_string(),
            });
        }
        let d = self.scaler.len();
        let mut values = Vec::with_capacity(n * d);
        for codes in codes.values().chunks((ROWS * k).max(1)) {
            let rows = codes.len() / k.max(1);
            let codes: Vec<f32> = codes.iter().map(|x| *x as f32).collect();
            let z = self.network.decode(&self.weights, block(codes, k), &Pass::predicting());
            values.extend(self.scaler.inverse(&numbers(z)[..rows * d]));
        }
        Dense::new(n, d, values)
    }
}

impl Transform for DeepAutoencoder {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (1..=self.architecture.code).map(|at| format!("code{at}")).collect()
    }

    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        check_features(&self.inputs, features)?;
        let (n, k) = (features.n_rows(), self.architecture.code);
        let mut values = Vec::with_capacity(n * k);
        let rows: Vec<u32> = (0..n as u32).collect();
        for rows in rows.chunks(ROWS) {
            let z = block(self.scaler.apply(features, rows), self.scaler.len());
            let codes = numbers(self.network.encode(&self.weights, z, &Pass::predicting()));
            values.extend(codes[..rows.len() * k].iter().map(|x| f64::from(*x)));
        }
        Dense::new(n, k, values)
    }

    fn inverse(&self, transformed: &Dense<f64>) -> Option<Result<Dense<f64>>> {
        Some(self.decoded(transformed))
    }

    fn inverse_is_exact(&self) -> bool {
        false
    }
}

impl Model for DeepAutoencoder {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("architecture", &self.architecture);
        self.scaler.write(file);
        self.weights.write(&self.layout, "", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let architecture: AutoencoderArchitecture = file.get("architecture")?;
        if architecture.inputs != inputs.n_features() {
            return Err(file.broken("its layers do not fit its inputs"));
        }
        let mut layout = Layout::new();
        let network = AutoencoderNetwork::new(&architecture, &mut layout);
        let network = network.map_err(|error| file.broken(error))?;
        let scaler = Scaler::read(file, architecture.inputs)?;
        let weights = Weights::read(&layout, "", file, &Device::flex())?;
        Ok(Self { inputs, scaler, architecture, layout, network, weights })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let AutoencoderArchitecture { inputs, code, coding, .. } = &self.architecture;
        let layers = match coding {
            Coding::Dense { hidden } => {
                let sizes = [&[*inputs][..], hidden, &[*code]].concat();
                sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ")
            }
            Coding::Convolutional { shape, channels, .. } => {
                let channels: Vec<String> = channels.iter().map(ToString::to_string).collect();
                format!("{shape} → {} channels → {code}", channels.join(" → "))
            }
        };
        vec![
            ("layers", layers),
            ("code", code.to_string()),
            ("features", inputs.to_string()),
            ("weights", gradus_base::text::grouped(self.layout.n_weights())),
        ]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}
