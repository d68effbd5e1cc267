//! The softmax of rows.

use super::pieces::rows_of;
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use burn::tensor::{Tensor, activation};
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// The softmax over the last dimension. A row of which every score is minus infinity becomes zeros.
pub fn softmax<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if is_cpu(&x.device()) { apply(Softmax, [x.into()]) } else { activation::softmax(x, D - 1) }
}

#[derive(Clone, Debug)]
struct Softmax;

impl Softmax {
    /// Changes every row of `values`; `work` gets the place of the row as well.
    fn rows(values: &mut [f32], dims: &[usize], work: impl Fn(usize, &mut [f32]) + Sync) {
        let width = dims.last().copied().unwrap_or(1).max(1);
        let block = rows_of(width) * width;
        parallel::each(values.chunks_mut(block).enumerate(), |(piece, rows)| {
            for (at, row) in rows.chunks_exact_mut(width).enumerate() {
                work(piece * block + at * width, row);
            }
        });
    }
}

impl CpuOp<1> for Softmax {
    type Saved = CpuTensor;

    fn forward(&self, [x]: [&CpuTensor; 1]) -> (CpuTensor, CpuTensor) {
        let mut y = x.values().into_owned();
        Self::rows(&mut y, &x.dims(), |_, row| {
            kernel::softmax_row(row);
        });
        let y = CpuTensor::new(y, x.dims());
        (y.clone(), y)
    }

    fn backward(&self, y: CpuTensor, by: &CpuTensor, needed: [bool; 1]) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let (mut found, dims, y) = (by.values().into_owned(), by.dims(), y.values());
        Self::rows(&mut found, &dims, |at, row| {
            kernel::softmax_gradient(&y[at..][..row.len()], row);
        });
        [Some(CpuTensor::new(found, dims))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn softmax_is_that_of_burn() {
        for shape in [[0, 2, 3], [1, 1, 2], [1, 1, 17], [2, 5, 33], [30, 10, 111]] {
            check(
                [&shape],
                |[x]| softmax(x.reshape(shape)),
                |[x]| activation::softmax(x.reshape(shape), 2),
            );
        }
    }
}
