//! Embeddings: a vector for each of some numbered things.

use super::{Layout, Weights};
use crate::device::indices;
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
        assert!(numbers.iter().all(|&at| (at as usize) < self.count), "below {}", self.count);
        let table = self.table(weights);
        let at = numbers.iter().map(|&at| at as i32).collect();
        let at = indices(at, [numbers.len()], &table.device());
        table.select(0, at)
    }

    /// All vectors.
    ///
    /// # Shapes
    /// `count × features`.
    pub fn table(&self, weights: &Weights) -> Tensor<2> {
        weights.get(self.weight, [self.count, self.features])
    }
}
