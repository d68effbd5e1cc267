//! Activation functions.

use crate::ops;
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An activation function: what a unit makes of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// The input itself: the network is linear.
    Identity,
    /// `1 / (1 + exp(−x))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`.
    #[default]
    Relu,
    /// `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
    Gelu,
    /// `x / (1 + exp(−x))`, also called Swish.
    Silu,
    /// 1 where the input is positive, else 0. Its gradient is 0 everywhere, so that layers below it cannot learn: for networks
    /// whose weights are given.
    Step,
}

impl Activation {
    /// The function, entry by entry.
    pub fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        ops::activate(x, self)
    }

    /// Whether the function has a gradient to learn by.
    pub fn has_gradient(self) -> bool {
        self != Self::Step
    }
}
