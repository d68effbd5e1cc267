//! Group normalisation.

use super::activation::{
    composed as activated, from_value, gradient as activation_gradient, in_place, values,
};
use super::pieces::total;
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use crate::layers::Activation;
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// `activation((x − mean) / √(variance + ε) · weight + bias)` with mean and variance of each group of channels of each sample over
/// all of its places.
///
/// # Shapes
/// `n × places × channels`, `channels` and `channels` to `n × places × channels`. A group is `channels / groups` consecutive ones.
///
/// # Panics
/// If the shapes do not fit, or the groups are not all of one size.
pub fn group_norm(
    x: Tensor<3>,
    weight: Tensor<1>,
    bias: Tensor<1>,
    groups: usize,
    epsilon: f64,
    activation: Activation,
) -> Tensor<3> {
    let [_, _, channels] = x.dims();
    assert!(
        weight.dims() == [channels] && bias.dims() == [channels],
        "a weight and a bias for each of {channels} channels"
    );
    assert!(
        groups > 0 && channels.is_multiple_of(groups),
        "{channels} channels in {groups} groups"
    );
    if !is_cpu(&x.device()) {
        return composed(x, weight, bias, groups, epsilon, activation);
    }
    let kind = if activation.has_gradient() { activation } else { Activation::Identity };
    let op = GroupNorm { groups, epsilon: epsilon as f32, kind };
    let y = apply(op, [x.into(), weight.into(), bias.into()]);
    if activation.has_gradient() { y } else { activated(y, activation) }
}

/// The same of burn's operations.
fn composed(
    x: Tensor<3>,
    weight: Tensor<1>,
    bias: Tensor<1>,
    groups: usize,
    epsilon: f64,
    activation: Activation,
) -> Tensor<3> {
    let [n, _, channels] = x.dims();
    let size = channels / groups;
    // The mean over places, then over the channels of a group: nothing has to be moved.
    let mean = |x: Tensor<3>| -> Tensor<3> {
        let of_groups = x.mean_dim(1).reshape([n * groups, size]).mean_dim(1);
        of_groups.expand([n * groups, size]).reshape([n, 1, channels])
    };
    let centred = x.clone() - mean(x);
    let variance = mean(centred.clone() * centred.clone());
    let x = centred / (variance + epsilon).sqrt();
    activated(x * weight.unsqueeze() + bias.unsqueeze(), activation)
}

#[derive(Clone, Debug)]
struct GroupNorm {
    groups: usize,
    epsilon: f32,
    kind: Activation,
}

/// The mean and the divisor's inverse of each channel: those of its group.
type Statistics = (Vec<f32>, Vec<f32>);

impl GroupNorm {
    /// Sums of the channels of a group, on each of its channels.
    fn of_groups(&self, channels: &mut [f32], by: f32) {
        let size = (channels.len() / self.groups).max(1);
        for group in channels.chunks_mut(size) {
            let sum: f32 = group.iter().sum();
            group.fill(sum * by);
        }
    }

    fn statistics(&self, x: &[f32], d: usize) -> Statistics {
        let by = self.groups as f32 / x.len().max(1) as f32;
        let mut means = vec![0.0; d];
        kernel::add_rows(x, &mut means);
        self.of_groups(&mut means, by);
        let mut inverses = vec![0.0; d];
        kernel::add_squares(x, &means, &mut inverses);
        self.of_groups(&mut inverses, by);
        inverses.iter_mut().for_each(|v| *v = 1.0 / (*v + self.epsilon).sqrt());
        (means, inverses)
    }
}

impl CpuOp<3> for GroupNorm {
    /// The input, the weight, the value of the activation function or its input, and the statistics of each sample.
    type Saved = (CpuTensor, CpuTensor, CpuTensor, Vec<Statistics>);

    fn forward(&self, [x, weight, bias]: [&CpuTensor; 3]) -> (CpuTensor, Self::Saved) {
        let dims = x.dims();
        let (d, size) = (dims[2], (dims[1] * dims[2]).max(1));
        let (given, w, b) = (x.values(), weight.values(), bias.values());
        let mut before = vec![0.0; given.len()];
        let mut after = vec![0.0; if from_value(self.kind) { 0 } else { given.len() }];
        let mut others = after.chunks_mut(size);
        let pieces: Vec<_> = before.chunks_mut(size).map(|piece| (piece, others.next())).collect();
        let pieces = pieces.into_iter().zip(given.chunks(size));
        let statistics = parallel::map(pieces, |((piece, after), x)| {
            let (means, inverses) = self.statistics(x, d);
            let by: Vec<f32> = w.iter().zip(&inverses).map(|(w, inverse)| w * inverse).collect();
            let added: Vec<f32> =
                b.iter().zip(&by).zip(&means).map(|((b, by), mean)| b - by * mean).collect();
            kernel::scale_rows(x, &by, &added, piece);
            match after {
                Some(after) => values(self.kind, piece, after),
                None => in_place(self.kind, piece),
            }
            (means, inverses)
        });
        let at = CpuTensor::new(before, dims.clone());
        let y = if from_value(self.kind) { at.clone() } else { CpuTensor::new(after, dims) };
        (y, (x.clone(), weight.clone(), at, statistics))
    }

    fn backward(
        &self,
        (x, weight, at, statistics): Self::Saved,
        by: &CpuTensor,
        needed: [bool; 3],
    ) -> [Option<CpuTensor>; 3] {
        let dims = x.dims();
        let (d, size) = (dims[2], (dims[1] * dims[2]).max(1));
        let (given, w, at) = (x.values(), weight.values(), at.values());
        let mut dx = by.values().into_owned();
        let pieces: Vec<_> = dx.chunks_mut(size).zip(&statistics).enumerate().collect();
        let count = (size / self.groups.max(1)).max(1) as f32;
        let parts = parallel::map(pieces, |(sample, (to, (means, inverses)))| {
            let places = sample * size..sample * size + to.len();
            let given = &given[places.clone()];
            activation_gradient(self.kind, &at[places], to);
            // The sums of the gradients of each channel, and behind them of their products with x − mean.
            let mut sums = vec![0.0; 2 * d];
            let (plain, products) = sums.split_at_mut(d);
            kernel::add_rows_and_products(to, given, means, plain, products);
            let with_weight = |sums: &[f32]| -> Vec<f32> {
                let mut sums: Vec<f32> = sums.iter().zip(&*w).map(|(sum, w)| sum * w).collect();
                self.of_groups(&mut sums, 1.0 / count);
                sums
            };
            let (first, second) = (with_weight(plain), with_weight(products));
            // In three vectors: what is multiplied by x, by the gradient, and added.
            let slope: Vec<f32> =
                inverses.iter().zip(&second).map(|(i, second)| -i * i * i * second).collect();
            let factor: Vec<f32> = w.iter().zip(inverses).map(|(w, i)| w * i).collect();
            let added = inverses.iter().zip(&first).zip(slope.iter().zip(means));
            let added: Vec<f32> =
                added.map(|((i, first), (slope, mean))| -i * first - slope * mean).collect();
            kernel::combine_rows(given, &slope, &factor, &added, to);
            products.iter_mut().zip(inverses).for_each(|(sum, inverse)| *sum *= inverse);
            sums
        });
        let sums = total(parts, 2 * d);
        [
            needed[0].then(|| CpuTensor::new(dx, dims)),
            needed[1].then(|| CpuTensor::new(sums[d..].to_vec(), [d])),
            needed[2].then(|| CpuTensor::new(sums[..d].to_vec(), [d])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{numbers, tensor};
    use crate::ops::testing::check;
    use burn::tensor::Device;

    #[test]
    fn group_norm_is_that_of_burn() {
        for (at, (shape, groups)) in
            [([1, 1, 4], 2), ([1, 5, 6], 3), ([3, 7, 8], 1), ([2, 49, 33], 33), ([9, 16, 24], 4)]
                .into_iter()
                .enumerate()
        {
            let kind = [Activation::Identity, Activation::Silu, Activation::Relu][at % 3];
            let d = shape[2];
            check(
                [&shape, &[d], &[d]],
                |[x, w, b]| group_norm(x.reshape(shape), w, b, groups, 1e-2, kind),
                |[x, w, b]| composed(x.reshape(shape), w, b, groups, 1e-2, kind),
            );
        }
    }

    #[test]
    fn a_group_has_mean_0_and_variance_1() {
        let (n, places, d, groups) = (2, 11, 6, 2);
        let x = crate::layers::testing::noise(n * places * d, 3);
        let device = Device::flex();
        let given = tensor(x.iter().map(|x| 5.0 * x - 2.0).collect(), [n, places, d], &device);
        let (ones, zeros) =
            (tensor(vec![1.0; d], [d], &device), tensor(vec![0.0; d], [d], &device));
        let y = numbers(group_norm(given, ones, zeros, groups, 1e-5, Activation::Identity));
        for sample in y.chunks(places * d) {
            for group in 0..groups {
                let of = sample.chunks(d).flat_map(|row| &row[group * 3..][..3]);
                let of: Vec<f64> = of.map(|y| f64::from(*y)).collect();
                let mean = of.iter().sum::<f64>() / of.len() as f64;
                let variance = of.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / of.len() as f64;
                assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4, "{mean} {variance}");
            }
        }
    }
}
