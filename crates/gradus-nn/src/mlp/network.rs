//! The layers of a perceptron.

use crate::layers::{Activation, BatchNorm, LayerNorm, Linear, Norm, Pass, dropout};
use crate::supervised::Network;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of a perceptron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MlpArchitecture {
    /// The number of features.
    pub inputs: usize,
    /// The number of units of each hidden layer.
    pub hidden: Vec<usize>,
    /// The number of outputs.
    pub outputs: usize,
    /// The activation function of the hidden layers.
    pub activation: Activation,
    /// The normalisation before the activation.
    pub norm: Norm,
    /// The probability of dropout behind each hidden layer.
    pub dropout: f64,
}

#[derive(Clone, Debug)]
enum Normalisation {
    None,
    Batch(BatchNorm),
    Layer(LayerNorm),
}

/// A perceptron.
#[derive(Clone, Debug)]
pub struct MlpNetwork {
    hidden: Vec<(Linear, Normalisation)>,
    output: Linear,
    activation: Activation,
    dropout: f64,
}

/// The most weights of a layer: a larger one is an error in a file.
const MOST: usize = 1 << 34;

impl Network for MlpNetwork {
    type Architecture = MlpArchitecture;

    fn new(architecture: &MlpArchitecture, layout: &mut Layout) -> Result<Self> {
        let MlpArchitecture { inputs, hidden, outputs, activation, norm, dropout } = architecture;
        let sizes = [&[*inputs][..], hidden, &[*outputs]].concat();
        if sizes.windows(2).any(|pair| pair.contains(&0) || pair[0].saturating_mul(pair[1]) > MOST)
        {
            return Err(Error::data(format!("layers of {sizes:?} units are not possible")));
        }
        if !(0.0..1.0).contains(dropout) {
            return Err(Error::data(format!("a dropout of {dropout} is not possible")));
        }
        let mut n = *inputs;
        let hidden = hidden.iter().enumerate().map(|(at, &units)| {
            let init = match activation {
                Activation::Relu | Activation::Gelu | Activation::Silu => Init::he(n),
                _ => Init::fan_in(n),
            };
            let linear = Linear::new(layout, &format!("hidden.{at}"), (n, units), init, true);
            let name = format!("norm.{at}");
            let norm = match norm {
                Norm::None => Normalisation::None,
                Norm::Batch => Normalisation::Batch(BatchNorm::new(layout, &name, units)),
                Norm::Layer => Normalisation::Layer(LayerNorm::new(layout, &name, units)),
            };
            n = units;
            (linear, norm)
        });
        let hidden = hidden.collect();
        let output = Linear::new(layout, "output", (n, *outputs), Init::fan_in(n), true);
        Ok(Self { hidden, output, activation: *activation, dropout: *dropout })
    }

    fn shape(architecture: &MlpArchitecture) -> (usize, usize) {
        (architecture.inputs, architecture.outputs)
    }

    fn forward(&self, weights: &Weights, mut x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        // The product of a single row adds up in another order than that of several: with a second row, a sample has the
        // same outputs to the last bit whatever it is predicted with.
        if !pass.is_training() && x.dims()[0] == 1 {
            return self.forward(weights, Tensor::cat(vec![x.clone(), x], 0), pass).narrow(0, 0, 1);
        }
        x = self.units(weights, x, pass);
        self.output.forward(weights, x)
    }

    fn hidden(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Option<Tensor<2>> {
        (!self.hidden.is_empty()).then(|| self.units(weights, x, pass))
    }

    fn summary(architecture: &MlpArchitecture) -> Vec<(&'static str, String)> {
        let MlpArchitecture { inputs, hidden, outputs, .. } = architecture;
        let sizes = [&[*inputs][..], hidden, &[*outputs]].concat();
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        vec![("layers", sizes.join(" → ")), ("features", inputs.to_string())]
    }
}

impl MlpNetwork {
    /// The units of the last hidden layer.
    fn units(&self, weights: &Weights, mut x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        for (linear, norm) in &self.hidden {
            x = match norm {
                Normalisation::None => linear.forward_activated(weights, x, self.activation),
                Normalisation::Batch(norm) => {
                    let x = linear.forward(weights, x);
                    norm.forward_activated(weights, x, self.activation, pass)
                }
                Normalisation::Layer(norm) => {
                    self.activation.apply(norm.forward(weights, linear.forward(weights, x)))
                }
            };
            x = dropout(x, self.dropout, pass);
        }
        x
    }
}
