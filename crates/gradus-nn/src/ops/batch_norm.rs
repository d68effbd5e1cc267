//! Batch normalisation.

use super::activation::{
    composed as activated, from_value, gradient as activation_gradient, in_place, values,
};
use super::pieces::{rows_of, total};
use super::{CpuOp, CpuTensor, apply};
use crate::device::{is_cpu, tensor};
use crate::layers::Activation;
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// `activation((x − mean) / √(variance + ε) · weight + bias)` with mean and variance of each column; then the means and the variances.
///
/// # Shapes
/// `n × features`, `features` and `features` to `n × features`, `features` and `features`.
///
/// # Panics
/// If the shapes do not fit.
pub fn batch_norm(
    x: Tensor<2>,
    weight: Tensor<1>,
    bias: Tensor<1>,
    epsilon: f64,
    activation: Activation,
) -> (Tensor<2>, Tensor<1>, Tensor<1>) {
    let [_, features] = x.dims();
    assert!(
        weight.dims() == [features] && bias.dims() == [features],
        "a weight and a bias for each of {features} features"
    );
    let device = x.device();
    if !is_cpu(&device) {
        return composed(x, weight, bias, epsilon, activation);
    }
    let given = CpuTensor::of(x.clone());
    let (means, variances) = statistics(&given.values(), features);
    let deviations = variances.iter().map(|v| (v + epsilon as f32).sqrt()).collect();
    let kind = if activation.has_gradient() { activation } else { Activation::Identity };
    let op = BatchNorm { means: means.clone(), deviations, kind };
    let y = apply(op, [x.into(), weight.into(), bias.into()]);
    let y = if activation.has_gradient() { y } else { activated(y, activation) };
    (y, tensor(means, [features], &device), tensor(variances, [features], &device))
}

/// The same of burn's operations.
fn composed(
    x: Tensor<2>,
    weight: Tensor<1>,
    bias: Tensor<1>,
    epsilon: f64,
    activation: Activation,
) -> (Tensor<2>, Tensor<1>, Tensor<1>) {
    let features = x.dims()[1];
    let mean = x.clone().mean_dim(0);
    let centred = x - mean.clone();
    let variance = (centred.clone() * centred.clone()).mean_dim(0);
    let y = centred / (variance.clone() + epsilon).sqrt() * weight.unsqueeze() + bias.unsqueeze();
    let flat = |one: Tensor<2>| one.inner().reshape([features]);
    (activated(y, activation), flat(mean), flat(variance))
}

/// The mean and the variance of each column: sums over blocks of rows, around the first row, so that little is cancelled.
fn statistics(x: &[f32], d: usize) -> (Vec<f32>, Vec<f32>) {
    let block = rows_of(d) * d.max(1);
    let n = (x.len() / d.max(1)).max(1) as f32;
    let sums = parallel::map(x.chunks(block), |rows| {
        let mut sum = vec![0.0; d];
        kernel::add_rows(rows, &mut sum);
        sum
    });
    let means: Vec<f32> = total(sums, d).into_iter().map(|sum| sum / n).collect();
    let squares = parallel::map(x.chunks(block), |rows| {
        let mut sum = vec![0.0; d];
        kernel::add_squares(rows, &means, &mut sum);
        sum
    });
    let variances = total(squares, d).into_iter().map(|sum| sum / n).collect();
    (means, variances)
}

#[derive(Clone, Debug)]
struct BatchNorm {
    means: Vec<f32>,
    /// `√(variance + ε)`.
    deviations: Vec<f32>,
    kind: Activation,
}

impl BatchNorm {
    /// `x` is multiplied by the first, and the second is added.
    fn line(&self, weight: &[f32], bias: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let by: Vec<f32> = weight.iter().zip(&self.deviations).map(|(w, d)| w / d).collect();
        let added = bias.iter().zip(&by).zip(&self.means).map(|((b, by), m)| b - by * m).collect();
        (by, added)
    }
}

impl CpuOp<3> for BatchNorm {
    /// The input, the weight, and the value of the activation function or its input.
    type Saved = (CpuTensor, CpuTensor, CpuTensor);

    fn forward(&self, [x, weight, bias]: [&CpuTensor; 3]) -> (CpuTensor, Self::Saved) {
        let (given, d) = (x.values(), self.means.len());
        let (by, added) = self.line(&weight.values(), &bias.values());
        let block = rows_of(d) * d.max(1);
        let mut before = vec![0.0; given.len()];
        let mut after = vec![0.0; if from_value(self.kind) { 0 } else { given.len() }];
        let mut others = after.chunks_mut(block);
        let pieces: Vec<_> = before.chunks_mut(block).map(|piece| (piece, others.next())).collect();
        parallel::each(pieces.into_iter().zip(given.chunks(block)), |((piece, after), x)| {
            kernel::scale_rows(x, &by, &added, piece);
            match after {
                Some(after) => values(self.kind, piece, after),
                None => in_place(self.kind, piece),
            }
        });
        let at = CpuTensor::new(before, x.dims());
        let y = if from_value(self.kind) { at.clone() } else { CpuTensor::new(after, x.dims()) };
        (y, (x.clone(), weight.clone(), at))
    }

    fn backward(
        &self,
        (x, weight, at): Self::Saved,
        by: &CpuTensor,
        needed: [bool; 3],
    ) -> [Option<CpuTensor>; 3] {
        let (given, w, at, d) = (x.values(), weight.values(), at.values(), self.means.len());
        let block = rows_of(d) * d.max(1);
        let mut dx = by.values().into_owned();
        // The sums of the gradients (that of the bias), and behind them of the gradients times x − mean.
        let parts = parallel::map(dx.chunks_mut(block).enumerate(), |(piece, by)| {
            let places = piece * block..piece * block + by.len();
            activation_gradient(self.kind, &at[places.clone()], by);
            let mut sums = vec![0.0; 2 * d];
            let (plain, with) = sums.split_at_mut(d);
            kernel::add_rows_and_products(by, &given[places], &self.means, plain, with);
            sums
        });
        let sums = total(parts, 2 * d);
        let of_weight: Vec<f32> =
            sums[d..].iter().zip(&self.deviations).map(|(s, d)| s / d).collect();
        if needed[0] {
            // (g − mean g − z mean(g z)) · weight / deviation, with z = (x − mean) / deviation: a line in g and in x.
            let n = (given.len() / d.max(1)).max(1) as f32;
            let by: Vec<f32> = w.iter().zip(&self.deviations).map(|(w, d)| w / d).collect();
            let slope: Vec<f32> =
                (0..d).map(|i| -by[i] * of_weight[i] / (n * self.deviations[i])).collect();
            let added: Vec<f32> =
                (0..d).map(|i| -by[i] * sums[i] / n - slope[i] * self.means[i]).collect();
            parallel::each(dx.chunks_mut(block).zip(given.chunks(block)), |(dx, x)| {
                kernel::combine_rows(x, &slope, &by, &added, dx);
            });
        }
        [
            needed[0].then(|| CpuTensor::new(dx, x.dims())),
            needed[1].then(|| CpuTensor::new(of_weight, [d])),
            needed[2].then(|| CpuTensor::new(sums[..d].to_vec(), [d])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::numbers;
    use crate::ops::testing::check;

    #[test]
    fn batch_norm_is_that_of_burn() {
        for (n, d) in [(0, 3), (2, 1), (5, 17), (300, 111), (2000, 33)] {
            for kind in [Activation::Identity, Activation::Relu, Activation::Gelu] {
                check(
                    [&[n, d], &[d], &[d]],
                    |[x, w, b]| batch_norm(x.reshape([n, d]), w, b, 1e-2, kind).0,
                    |[x, w, b]| composed(x.reshape([n, d]), w, b, 1e-2, kind).0,
                );
            }
        }
    }

    #[test]
    fn means_and_variances_are_those_of_burn() {
        let device = burn::tensor::Device::flex();
        let x: Vec<f32> = (0..3000).map(|at| ((at * 37) % 101) as f32 / 50.0 + 100.0).collect();
        let x = tensor(x, [1000, 3], &device);
        let [w, b] = [1.0, 0.0].map(|value| tensor(vec![value; 3], [3], &device));
        let found = batch_norm(x.clone(), w.clone(), b.clone(), 1e-5, Activation::Identity);
        let expected = composed(x, w, b, 1e-5, Activation::Identity);
        for (found, expected) in [(found.1, expected.1), (found.2, expected.2)] {
            for (a, b) in numbers(found).into_iter().zip(numbers(expected)) {
                assert!((a - b).abs() < 1e-4 * b.abs(), "{a} {b}");
            }
        }
    }
}
