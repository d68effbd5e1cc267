//! The log likelihood of binary numbers given scores.

use super::pieces::rows_of;
use super::{CpuOp, CpuTensor, apply};
use crate::device::{is_cpu, tensor};
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;
use std::sync::Arc;

/// Factors from 1 to 2 whose product is a number.
const FACTORS: usize = 32;

/// The sum of `−x log σ(s) − (1 − x) log(1 − σ(s))` over all scores `s` and numbers `x` from 0 to 1.
///
/// # Shapes
/// Scores of `n × k`, with a number for each, to one number.
///
/// # Panics
/// If there are more or fewer numbers.
pub fn bernoulli_loss(scores: Tensor<2>, truth: Vec<f32>) -> Tensor<1> {
    let [n, k] = scores.dims();
    assert_eq!(n * k, truth.len(), "a number for each score");
    if is_cpu(&scores.device()) {
        return apply(Bernoulli { truth: truth.into() }, [scores.into()]);
    }
    composed(scores, truth)
}

/// The same of burn's operations.
fn composed(scores: Tensor<2>, truth: Vec<f32>) -> Tensor<1> {
    let (dims, device) = (scores.dims(), scores.device());
    let softplus =
        ((scores.clone().abs() * -1.0).exp() + 1.0).log() + scores.clone().clamp_min(0.0);
    (softplus - scores * tensor(truth, dims, &device)).sum()
}

/// `x s − log(1 + exp(s))`, summed over a row: the log likelihood of its numbers.
pub fn bernoulli_log_likelihood(scores: &[f32], truth: &[f32], held: &mut Vec<f32>) -> f64 {
    held.clear();
    held.extend(scores.iter().map(|s| -s.abs()));
    kernel::exp32_all(held);
    let logs = held
        .chunks(FACTORS)
        .map(|some| some.iter().fold(1.0f64, |all, e| all * (1.0 + f64::from(*e))).ln());
    let rest: f64 = logs.sum();
    let linear: f64 = scores.iter().zip(truth).map(|(s, x)| f64::from(x * s - s.max(0.0))).sum();
    linear - rest
}

#[derive(Clone, Debug)]
struct Bernoulli {
    truth: Arc<[f32]>,
}

impl CpuOp<1> for Bernoulli {
    type Saved = CpuTensor;

    fn forward(&self, [scores]: [&CpuTensor; 1]) -> (CpuTensor, CpuTensor) {
        let k = scores.dims()[1].max(1);
        let block = rows_of(k) * k;
        let values = scores.values();
        let pieces: Vec<_> = values.chunks(block).zip(self.truth.chunks(block)).collect();
        // A sum for each block, in their order.
        let sums = parallel::map(pieces, |(scores, truth)| {
            bernoulli_log_likelihood(scores, truth, &mut Vec::with_capacity(scores.len()))
        });
        let sum = -sums.into_iter().sum::<f64>();
        (CpuTensor::new(vec![sum as f32], [1]), scores.clone())
    }

    fn backward(
        &self,
        scores: CpuTensor,
        by: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let (dims, by, mut found) = (scores.dims(), by.values()[0], scores.values().into_owned());
        let k = dims[1].max(1);
        let block = rows_of(k) * k;
        let pieces: Vec<_> = found.chunks_mut(block).zip(self.truth.chunks(block)).collect();
        parallel::each(pieces, |(found, truth)| {
            kernel::sigmoid(found);
            found.iter_mut().zip(truth).for_each(|(p, x)| *p = by * (*p - x));
        });
        [Some(CpuTensor::new(found, dims))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn the_loss_is_that_of_burn() {
        for (n, k) in [(1, 1), (5, 3), (300, 111)] {
            let truth: Vec<f32> = (0..n * k).map(|at| (at % 5) as f32 / 4.0).collect();
            check(
                [&[n, k]],
                |[x]| bernoulli_loss(x.reshape([n, k]), truth.clone()),
                |[x]| composed(x.reshape([n, k]), truth.clone()),
            );
        }
    }

    #[test]
    fn large_scores_do_not_overflow() {
        let found =
            bernoulli_log_likelihood(&[200.0, -200.0, 0.0], &[1.0, 1.0, 0.0], &mut Vec::new());
        assert!((found - (-200.0 - 2.0f64.ln())).abs() < 1e-4, "{found}");
    }
}
