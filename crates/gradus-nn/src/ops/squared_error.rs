//! Squared error.

use super::pieces::rows_of;
use super::{CpuOp, CpuTensor, apply};
use crate::device::{is_cpu, tensor};
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;
use std::sync::Arc;

/// Half the sum of the squared differences of outputs and their true values, row by row times a weight.
///
/// # Shapes
/// Outputs of `n × k`, with true values for each and a weight for each row, to one number.
///
/// # Panics
/// If there are more or fewer values or weights.
pub fn squared_error(outputs: Tensor<2>, truth: Vec<f32>, weights: &[f32]) -> Tensor<1> {
    let [n, k] = outputs.dims();
    assert_eq!(
        (n * k, n),
        (truth.len(), weights.len()),
        "values of each output and weights of each row"
    );
    if is_cpu(&outputs.device()) {
        let op = SquaredError { truth: truth.into(), weights: weights.into() };
        return apply(op, [outputs.into()]);
    }
    composed(outputs, truth, weights)
}

/// The same of burn's operations.
fn composed(outputs: Tensor<2>, truth: Vec<f32>, weights: &[f32]) -> Tensor<1> {
    let ([n, k], device) = (outputs.dims(), outputs.device());
    let off = outputs - tensor(truth, [n, k], &device);
    ((off.clone() * off) * tensor(weights.to_vec(), [n, 1], &device)).sum() * 0.5
}

#[derive(Clone, Debug)]
struct SquaredError {
    truth: Arc<[f32]>,
    weights: Arc<[f32]>,
}

impl CpuOp<1> for SquaredError {
    /// The differences.
    type Saved = CpuTensor;

    fn forward(&self, [outputs]: [&CpuTensor; 1]) -> (CpuTensor, CpuTensor) {
        let dims = outputs.dims();
        let (k, block) = (dims[1].max(1), rows_of(dims[1]));
        let mut off = outputs.values().into_owned();
        let pieces = off.chunks_mut(block * k).zip(self.truth.chunks(block * k));
        // A sum for each block of rows, in their order.
        let sums =
            parallel::map(pieces.zip(self.weights.chunks(block)), |((off, truth), weights)| {
                off.iter_mut().zip(truth).for_each(|(off, truth)| *off -= truth);
                let rows = off.chunks(k).zip(weights);
                rows.map(|(row, weight)| f64::from(*weight) * kernel::squares(row)).sum::<f64>()
            });
        let sum = 0.5 * sums.into_iter().sum::<f64>();
        (CpuTensor::new(vec![sum as f32], [1]), CpuTensor::new(off, dims))
    }

    fn backward(
        &self,
        off: CpuTensor,
        by: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let (dims, by, mut found) = (off.dims(), by.values()[0], off.values().into_owned());
        let (k, block) = (dims[1].max(1), rows_of(dims[1]));
        let pieces = found.chunks_mut(block * k).zip(self.weights.chunks(block));
        parallel::each(pieces, |(rows, weights)| {
            for (row, weight) in rows.chunks_mut(k).zip(weights) {
                row.iter_mut().for_each(|off| *off *= by * weight);
            }
        });
        [Some(CpuTensor::new(found, dims))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn the_squared_error_is_that_of_burn() {
        for (n, k) in [(1, 1), (1, 7), (5, 3), (300, 111)] {
            let truth: Vec<f32> = (0..n * k).map(|at| (at % 7) as f32 / 3.0 - 1.0).collect();
            let weights: Vec<f32> = (0..n).map(|at| (at % 3) as f32 / n as f32).collect();
            check(
                [&[n, k]],
                |[x]| squared_error(x.reshape([n, k]), truth.clone(), &weights),
                |[x]| composed(x.reshape([n, k]), truth.clone(), &weights),
            );
        }
    }
}
