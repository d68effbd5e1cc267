//! Layer normalisation.

use super::pieces::{rows_of, total};
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// `(x − mean) / √(variance + ε) · weight + bias`, with mean and variance over the features of a sample.
///
/// # Shapes
/// `n × features`, `features` and `features` to `n × features`.
///
/// # Panics
/// If the shapes do not fit.
pub fn layer_norm(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>, epsilon: f64) -> Tensor<2> {
    let [_, features] = x.dims();
    assert!(
        weight.dims() == [features] && bias.dims() == [features],
        "a weight and a bias for each of {features} features"
    );
    if is_cpu(&x.device()) {
        let op = LayerNorm { epsilon: epsilon as f32 };
        return apply(op, [x.into(), weight.into(), bias.into()]);
    }
    composed(x, weight, bias, epsilon)
}

/// The same of burn's operations.
fn composed(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>, epsilon: f64) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(1);
    let variance = (centred.clone() * centred.clone()).mean_dim(1);
    centred / (variance + epsilon).sqrt() * weight.unsqueeze() + bias.unsqueeze()
}

#[derive(Clone, Debug)]
struct LayerNorm {
    epsilon: f32,
}

impl CpuOp<3> for LayerNorm {
    /// The input, the weight, and the mean and the divisor's inverse of each row.
    type Saved = (CpuTensor, CpuTensor, Vec<(f32, f32)>);

    fn forward(&self, [x, weight, bias]: [&CpuTensor; 3]) -> (CpuTensor, Self::Saved) {
        let dims = x.dims();
        let (d, block) = (dims[1], rows_of(dims[1]));
        let (values, w, b) = (x.values(), weight.values(), bias.values());
        let mut y = vec![0.0; values.len()];
        let pieces = y.chunks_mut((block * d).max(1)).zip(values.chunks((block * d).max(1)));
        let statistics = parallel::map(pieces, |(to, x)| {
            let rows = x.chunks_exact(d).zip(to.chunks_exact_mut(d));
            rows.map(|(x, to)| kernel::normalise_row(x, &w, &b, self.epsilon, to)).collect()
        });
        let statistics: Vec<Vec<(f32, f32)>> = statistics;
        (CpuTensor::new(y, dims), (x.clone(), weight.clone(), statistics.concat()))
    }

    fn backward(
        &self,
        (x, weight, statistics): Self::Saved,
        by: &CpuTensor,
        needed: [bool; 3],
    ) -> [Option<CpuTensor>; 3] {
        let dims = x.dims();
        let (d, block) = (dims[1], rows_of(dims[1]));
        let (x, w, by) = (x.values(), weight.values(), by.values());
        let mut dx = vec![0.0; x.len()];
        let pieces: Vec<_> = dx.chunks_mut((block * d).max(1)).enumerate().collect();
        let parts = parallel::map(pieces, |(piece, to)| {
            // The gradient of the weight, and behind it that of the bias.
            let mut sums = vec![0.0; 2 * d];
            let (of_weight, of_bias) = sums.split_at_mut(d);
            for (at, to) in to.chunks_exact_mut(d).enumerate() {
                let row = piece * block + at;
                let (x, by) = (&x[row * d..][..d], &by[row * d..][..d]);
                kernel::normalise_row_gradient(x, statistics[row], &w, by, to, of_weight, of_bias);
            }
            sums
        });
        let sums = total(parts, 2 * d);
        [
            needed[0].then(|| CpuTensor::new(dx, dims)),
            needed[1].then(|| CpuTensor::new(sums[..d].to_vec(), [d])),
            needed[2].then(|| CpuTensor::new(sums[d..].to_vec(), [d])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn layer_norm_is_that_of_burn() {
        for (n, d) in [(0, 3), (1, 2), (1, 17), (5, 33), (300, 111)] {
            check(
                [&[n, d], &[d], &[d]],
                |[x, w, b]| layer_norm(x.reshape([n, d]), w, b, 1e-2),
                |[x, w, b]| composed(x.reshape([n, d]), w, b, 1e-2),
            );
        }
    }
}
