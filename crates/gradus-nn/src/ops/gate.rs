//! The gated activation of PixelCNN and WaveNet.

use super::pieces::rows_of;
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use burn::tensor::{Tensor, activation};
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// `tanh(a) · σ(b)`, where `a` is the first half of the columns and `b` the second.
///
/// # Shapes
/// `n × 2k` to `n × k`.
///
/// # Panics
/// If the number of columns is odd.
pub fn gate(x: Tensor<2>) -> Tensor<2> {
    assert!(x.dims()[1].is_multiple_of(2), "two halves of the columns");
    if is_cpu(&x.device()) { apply(Gate, [x.into()]) } else { composed(x) }
}

/// The same of burn's operations.
fn composed(x: Tensor<2>) -> Tensor<2> {
    let k = x.dims()[1] / 2;
    let a = activation::tanh(x.clone().narrow(1, 0, k));
    a * activation::sigmoid(x.narrow(1, k, k))
}

#[derive(Clone, Debug)]
struct Gate;

impl CpuOp<1> for Gate {
    /// The hyperbolic tangents and the sigmoids.
    type Saved = CpuTensor;

    fn forward(&self, [x]: [&CpuTensor; 1]) -> (CpuTensor, CpuTensor) {
        let dims = x.dims();
        let (n, width) = (dims[0], dims[1]);
        let k = width / 2;
        let block = rows_of(width);
        let mut halves = x.values().into_owned();
        let mut out = vec![0.0f32; n * k];
        let pieces = halves.chunks_mut((block * width).max(1));
        parallel::each(pieces.zip(out.chunks_mut((block * k).max(1))), |(rows, out)| {
            for (row, out) in rows.chunks_exact_mut(width).zip(out.chunks_exact_mut(k)) {
                let (a, b) = row.split_at_mut(k);
                kernel::tanh(a);
                kernel::sigmoid(b);
                out.iter_mut().zip(a.iter().zip(b.iter())).for_each(|(out, (a, b))| *out = a * b);
            }
        });
        (CpuTensor::new(out, [n, k]), CpuTensor::new(halves, dims))
    }

    fn backward(
        &self,
        halves: CpuTensor,
        by: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let dims = halves.dims();
        let (width, by) = (dims[1], by.values());
        let k = width / 2;
        let block = rows_of(width);
        let mut found = halves.values().into_owned();
        let pieces = found.chunks_mut((block * width).max(1));
        parallel::each(pieces.zip(by.chunks((block * k).max(1))), |(rows, by)| {
            for (row, by) in rows.chunks_exact_mut(width).zip(by.chunks_exact(k)) {
                let (a, b) = row.split_at_mut(k);
                for ((a, b), by) in a.iter_mut().zip(b).zip(by) {
                    let (t, s) = (*a, *b);
                    *a = by * s * (1.0 - t * t);
                    *b = by * t * s * (1.0 - s);
                }
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
    fn the_gate_is_that_of_burn() {
        for (n, k) in [(1, 1), (3, 5), (700, 32)] {
            check(
                [&[n, 2 * k]],
                |[x]| gate(x.reshape([n, 2 * k])),
                |[x]| composed(x.reshape([n, 2 * k])),
            );
        }
    }
}
