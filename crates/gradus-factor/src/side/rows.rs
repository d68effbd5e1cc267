//! The rows of one side, as a half-step about prior means needs them, whatever the loss.

use crate::blocks::Blocks;
use crate::half::Side;
use crate::latent::RowRule;
use gradus_data::Csr;
use gradus_kernel::gram::Gram;

/// The rows of one side: what was observed of them, and what their penalties are.
pub(crate) trait PriorRows: Sync {
    /// The observations of each row.
    fn observations(&self) -> &Csr;

    /// How the rows are cut for the threads.
    fn blocks(&self) -> &Blocks;

    /// The weight of each observation of a row; 1 if absent.
    fn weights(&self, row: usize) -> Option<&[f32]>;

    /// The penalties on the factors and on the bias of a row; no bias, no penalty.
    fn penalties(&self, row: usize) -> (f32, Option<f32>);

    /// Computes the target of each observation of the row, given the biases of the other side.
    fn targets(&self, row: usize, fixed_bias: &[f32], to: &mut Vec<f32>);

    /// The normal equations of the pairs that were not observed, if they count.
    fn base(&self) -> Option<&Gram> {
        None
    }

    /// The sum of the weights of a row: how much was observed of it.
    fn observed(&self, row: usize) -> f64 {
        let count = self.observations().range(row).len() as f64;
        self.weights(row)
            .map_or(count, |weights| weights.iter().map(|&w| f64::from(w.max(0.0))).sum())
    }
}

/// Rows of ratings.
pub(crate) struct Rated<'s> {
    pub(crate) side: &'s Side<'s>,
    /// The penalty.
    pub(crate) rule: RowRule,
    /// The mean α.
    pub(crate) mean: f64,
}

impl PriorRows for Rated<'_> {
    fn observations(&self) -> &Csr {
        self.side.rows
    }

    fn blocks(&self) -> &Blocks {
        &self.side.blocks
    }

    fn weights(&self, row: usize) -> Option<&[f32]> {
        self.side.weights(row)
    }

    fn penalties(&self, row: usize) -> (f32, Option<f32>) {
        self.rule.of(self.side.rows.range(row).len(), self.side.weights(row))
    }

    fn targets(&self, row: usize, fixed_bias: &[f32], to: &mut Vec<f32>) {
        let (indices, values) = self.side.rows.row(row);
        to.clear();
        to.extend(indices.iter().zip(values).map(|(&index, &value)| {
            (f64::from(value) - self.mean) as f32 - fixed_bias[index as usize]
        }));
    }
}
