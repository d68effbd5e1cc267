//! Embeddings: a vector for each of some numbered things.

use super::{Layout, Weights};
use crate::ops;
use crate::weights::{Init, Role, WeightId};
use burn::tensor::Tensor;

/// A table of vectors, one a row, as PyTorch's `Embedding`.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    count: usize,
    features: usize,
    weight: WeightId,
}

impl Embedding {
    /// A table of so many vectors of so many features.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        (count, features): (usize, usize),
        init: Init,
    ) -> Self {
        layout.within(name, |layout| Self {
            count,
            features,
            weight: layout.add("weight", &[count, features], init, Role::Decayed),
        })
    }

    /// The vectors of these numbers.
    ///
    /// # Shapes
    /// `n` numbers to `n × features`.
    ///
    /// # Panics
    /// If a number is not below the number of vectors.
    pub fn forward(&self, weights: &Weights, numbers: &[u32]) -> Tensor<2> {
        ops::embedding(self.table(weights), numbers)
    }

    /// All vectors.
    ///
    /// # Shapes
    /// `count × features`.
    pub fn table(&self, weights: &Weights) -> Tensor<2> {
        weights.get(self.weight, [self.count, self.features])
    }
}
