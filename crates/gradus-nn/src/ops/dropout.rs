//! Dropout.

use super::pieces::fill;
use super::{CpuOp, CpuTensor, apply};
use crate::device::{is_cpu, tensor};
use burn::tensor::Tensor;
use gradus_kernel::network as kernel;

/// Sets each entry to 0 with probability `p` (in steps of 2⁻¹⁶) and divides the others by `1 − p`. The seed decides which.
pub fn dropout<const D: usize>(x: Tensor<D>, p: f64, seed: u64) -> Tensor<D> {
    let op = Dropout { seed, limit: (p * 65536.0) as u32, keep: (1.0 / (1.0 - p)) as f32 };
    if is_cpu(&x.device()) {
        return apply(op, [x.into()]);
    }
    composed(x, &op)
}

/// The same of burn's operations: a product with a mask.
fn composed<const D: usize>(x: Tensor<D>, op: &Dropout) -> Tensor<D> {
    let (shape, device) = (x.dims(), x.device());
    let ones = vec![1.0; shape.iter().product()];
    x * tensor(op.of(&ones), shape, &device)
}

#[derive(Clone, Debug)]
struct Dropout {
    seed: u64,
    limit: u32,
    keep: f32,
}

impl Dropout {
    fn of(&self, x: &[f32]) -> Vec<f32> {
        fill(x.len(), |at, to| {
            kernel::drop_out(&x[at..][..to.len()], self.seed, at, self.limit, self.keep, to);
        })
    }
}

impl CpuOp<1> for Dropout {
    type Saved = ();

    fn forward(&self, [x]: [&CpuTensor; 1]) -> (CpuTensor, ()) {
        (CpuTensor::new(self.of(&x.values()), x.dims()), ())
    }

    fn backward(&self, (): (), by: &CpuTensor, needed: [bool; 1]) -> [Option<CpuTensor>; 1] {
        [needed[0].then(|| CpuTensor::new(self.of(&by.values()), by.dims()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::numbers;
    use crate::ops::testing::check;
    use burn::tensor::Device;

    #[test]
    fn dropout_is_a_product_with_a_mask() {
        for shape in [[0, 3], [1, 1], [1, 17], [300, 111]] {
            let op = Dropout { seed: 3, limit: 16384, keep: 4.0 / 3.0 };
            check(
                [&shape],
                |[x]| dropout(x.reshape(shape), 0.25, 3),
                |[x]| composed(x.reshape(shape), &op),
            );
        }
    }

    #[test]
    fn the_share_that_stays_and_its_mean_are_those_asked_for() {
        let x = tensor(vec![1.0; 50_000], [50_000], &Device::flex());
        for p in [0.0, 0.1, 0.9] {
            let y = numbers(dropout(x.clone(), p, 5));
            let zeros = y.iter().filter(|y| **y == 0.0).count() as f64 / 5e4;
            let mean = y.iter().map(|y| f64::from(*y)).sum::<f64>() / 5e4;
            assert!((zeros - p).abs() < 0.01 && (mean - 1.0).abs() < 0.05, "{p}: {zeros}, {mean}");
        }
        let other = numbers(dropout(x.clone(), 0.5, 6));
        assert_ne!(numbers(dropout(x, 0.5, 5)), other);
    }
}
