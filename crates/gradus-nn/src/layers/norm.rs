//! Normalisations: of the features of each sample (layer norm), of groups of its channels (group norm), and of each feature over a
//! batch (batch norm).

use super::{Activation, Layout, Pass, Weights};
use crate::ops;
use crate::weights::{Init, Role, WeightId};
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A normalisation between layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// None.
    #[default]
    None,
    /// Of each feature over a batch.
    Batch,
    /// Of the features of each sample.
    Layer,
}

/// Added to variances before they divide, as in PyTorch.
const EPSILON: f64 = 1e-5;

/// Layer normalisation: `(x − mean) / √(variance + ε) · weight + bias`, with mean and variance over the features of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    features: usize,
    weight: WeightId,
    bias: WeightId,
}

impl LayerNorm {
    /// A normalisation of so many features.
    pub fn new(layout: &mut Layout, name: &str, features: usize) -> Self {
        layout.within(name, |layout| Self {
            features,
            weight: layout.add("weight", &[features], Init::Constant(1.0), Role::Plain),
            bias: layout.add("bias", &[features], Init::Constant(0.0), Role::Plain),
        })
    }

    /// The normalised features.
    ///
    /// # Shapes
    /// `n × features` to the same.
    pub fn forward(&self, weights: &Weights, x: Tensor<2>) -> Tensor<2> {
        let (weight, bias) = (weights.flat(self.weight), weights.flat(self.bias));
        ops::layer_norm(x, weight, bias, EPSILON)
    }
}

/// Group normalisation: the same with mean and variance of each group of channels over all places of a sample, as PyTorch's
/// `GroupNorm`.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupNorm {
    channels: usize,
    groups: usize,
    weight: WeightId,
    bias: WeightId,
}

impl GroupNorm {
    /// A normalisation of so many channels, in groups of which there are at most 8.
    pub fn new(layout: &mut Layout, name: &str, channels: usize) -> Self {
        let groups = [8, 7, 6, 5, 4, 3, 2].into_iter().find(|at| channels.is_multiple_of(*at));
        layout.within(name, |layout| Self {
            channels,
            groups: groups.unwrap_or(1),
            weight: layout.add("weight", &[channels], Init::Constant(1.0), Role::Plain),
            bias: layout.add("bias", &[channels], Init::Constant(0.0), Role::Plain),
        })
    }

    /// The values of an activation function at the normalised channels, in the same pass.
    ///
    /// # Shapes
    /// `n × height × width × channels` to the same.
    pub fn forward_activated(
        &self,
        weights: &Weights,
        x: Tensor<4>,
        activation: Activation,
    ) -> Tensor<4> {
        let [n, height, width, channels] = x.dims();
        let (weight, bias) = (weights.flat(self.weight), weights.flat(self.bias));
        let x = x.reshape([n, height * width, channels]);
        let y = ops::group_norm(x, weight, bias, self.groups, EPSILON, activation);
        y.reshape([n, height, width, self.channels])
    }
}

/// Batch normalisation: the same with mean and variance over a batch while the network learns, and with their running
/// averages when it predicts.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNorm {
    features: usize,
    weight: WeightId,
    bias: WeightId,
    mean: WeightId,
    variance: WeightId,
}

/// The share of a batch in the running statistics.
const MOMENTUM: f64 = 0.1;

impl BatchNorm {
    /// A normalisation of so many features.
    pub fn new(layout: &mut Layout, name: &str, features: usize) -> Self {
        layout.within(name, |layout| Self {
            features,
            weight: layout.add("weight", &[features], Init::Constant(1.0), Role::Plain),
            bias: layout.add("bias", &[features], Init::Constant(0.0), Role::Plain),
            mean: layout.add("running_mean", &[features], Init::Constant(0.0), Role::Statistic),
            variance: layout.add("running_var", &[features], Init::Constant(1.0), Role::Statistic),
        })
    }

    /// The normalised features.
    ///
    /// # Shapes
    /// `n × features` to the same.
    pub fn forward(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        self.forward_activated(weights, x, Activation::Identity, pass)
    }

    /// The values of an activation function at the normalised features, in the same pass.
    ///
    /// # Shapes
    /// `n × features` to the same.
    pub fn forward_activated(
        &self,
        weights: &Weights,
        x: Tensor<2>,
        activation: Activation,
        pass: &Pass,
    ) -> Tensor<2> {
        let row = [1, self.features];
        let n = x.dims()[0];
        if pass.is_training() && n > 1 {
            let (weight, bias) = (weights.flat(self.weight), weights.flat(self.bias));
            let (y, mean, variance) = ops::batch_norm(x, weight, bias, EPSILON, activation);
            let unbiased = variance.inner() * (n as f64 / (n as f64 - 1.0));
            for (id, new) in [(self.mean, mean.inner()), (self.variance, unbiased)] {
                let old = weights.flat(id).inner();
                pass.note(id, old * (1.0 - MOMENTUM) + new * MOMENTUM);
            }
            return y;
        }
        let (mean, variance) = (weights.get(self.mean, row), weights.get(self.variance, row));
        let scale = (variance + EPSILON).sqrt();
        let y = (x - mean) / scale * weights.get(self.weight, row) + weights.get(self.bias, row);
        activation.apply(y)
    }
}
