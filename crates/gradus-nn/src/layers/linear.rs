//! Linear layers.

use super::{Activation, Layout, Weights};
use crate::ops;
use crate::weights::{Init, Role, WeightId};
use burn::tensor::Tensor;

/// A linear layer: `y = x Wᵀ + b`, with `W` of outputs × inputs as in PyTorch.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    inputs: usize,
    outputs: usize,
    weight: WeightId,
    bias: Option<WeightId>,
}

impl Linear {
    /// A layer with these initial weights.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        (inputs, outputs): (usize, usize),
        init: Init,
        bias: bool,
    ) -> Self {
        layout.within(name, |layout| {
            let weight = layout.add("weight", &[outputs, inputs], init, Role::Decayed);
            let bias =
                bias.then(|| layout.add("bias", &[outputs], Init::Constant(0.0), Role::Plain));
            Self { inputs, outputs, weight, bias }
        })
    }

    /// The outputs.
    ///
    /// # Shapes
    /// `n × inputs` to `n × outputs`.
    pub fn forward(&self, weights: &Weights, x: Tensor<2>) -> Tensor<2> {
        self.forward_activated(weights, x, Activation::Identity)
    }

    /// The values of an activation function at the outputs, in the same pass.
    ///
    /// # Shapes
    /// `n × inputs` to `n × outputs`.
    pub fn forward_activated(
        &self,
        weights: &Weights,
        x: Tensor<2>,
        activation: Activation,
    ) -> Tensor<2> {
        let weight = weights.get(self.weight, [self.outputs, self.inputs]);
        ops::linear(x, weight, self.bias.map(|bias| weights.flat(bias)), activation)
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }
}
