//! Layers: what a network is made of.
//!
//! A layer adds its tensors to a [`Layout`] when it is made, and computes its outputs from the [`Weights`] of the network. So a
//! layer holds no numbers, and one network serves training, validation and prediction.

mod activation;
pub mod attention;
pub mod conv;
mod dropout;
mod embedding;
mod linear;
mod norm;
pub mod pool;
#[cfg(test)]
pub(crate) mod testing;

pub use activation::Activation;
pub use attention::{Attention, Block, BlockShape, KeyValues, Mask};
pub use conv::{Conv2d, Window};
pub use dropout::dropout;
pub use embedding::Embedding;
pub use linear::Linear;
pub use norm::{BatchNorm, GroupNorm, LayerNorm, Norm};

use crate::weights::{Layout, WeightId, Weights};
use burn::tensor::Tensor;
use gradus_base::random::Stream;
use std::cell::RefCell;

/// What a pass through a network is for.
pub struct Pass {
    training: bool,
    step: u64,
    stream: RefCell<Stream>,
    statistics: RefCell<Vec<(WeightId, Tensor<1>)>>,
}

impl Pass {
    /// A pass that predicts: nothing is dropped, and normalisations use their running statistics.
    pub fn predicting() -> Self {
        Self::new(false, Stream::new(0, "nn.pass", 0))
    }

    /// A pass that learns; `stream` decides what is dropped.
    pub fn training(stream: Stream) -> Self {
        Self::new(true, stream)
    }

    fn new(training: bool, stream: Stream) -> Self {
        Self {
            training,
            step: u64::MAX,
            stream: RefCell::new(stream),
            statistics: RefCell::default(),
        }
    }

    /// The same of a step: how many were taken before it.
    #[must_use]
    pub fn of_step(self, step: u64) -> Self {
        Self { step, ..self }
    }

    /// How many steps were taken before this pass; as many as can be where that is not said.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Whether the pass learns.
    pub fn is_training(&self) -> bool {
        self.training
    }

    /// A random number that no other part of this pass gets: the seed of what is dropped, or of noise.
    pub fn seed(&self) -> u64 {
        self.stream.borrow_mut().next_u64()
    }

    /// Notes a running statistic that is to be replaced after the step.
    pub fn note(&self, id: WeightId, values: Tensor<1>) {
        self.statistics.borrow_mut().push((id, values));
    }

    /// Replaces the running statistics that were noted.
    pub fn update(self, weights: &mut Weights) {
        for (id, values) in self.statistics.into_inner() {
            weights.set(id, values);
        }
    }
}
