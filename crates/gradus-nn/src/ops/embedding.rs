//! Rows of a table by their numbers.

use super::pieces::rows;
use super::{CpuOp, CpuTensor, apply};
use crate::device::{indices, is_cpu};
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;
use std::sync::Arc;

/// The rows of a table that `ids` name.
///
/// # Shapes
/// A table of `rows × size` to `ids × size`.
///
/// # Panics
/// If a number is not below the number of rows.
pub fn embedding(table: Tensor<2>, ids: &[u32]) -> Tensor<2> {
    let [n, _] = table.dims();
    assert!(ids.iter().all(|&id| (id as usize) < n), "numbers below {n}");
    if is_cpu(&table.device()) {
        return apply(Embedding { ids: ids.into() }, [table.into()]);
    }
    composed(table, ids)
}

/// The same of burn's operations.
fn composed(table: Tensor<2>, ids: &[u32]) -> Tensor<2> {
    let device = table.device();
    let ids = ids.iter().map(|&id| id as i32).collect::<Vec<i32>>();
    let n = ids.len();
    table.select(0, indices(ids, [n], &device))
}

#[derive(Clone, Debug)]
struct Embedding {
    ids: Arc<[u32]>,
}

impl CpuOp<1> for Embedding {
    /// The sizes of the table.
    type Saved = [usize; 2];

    fn forward(&self, [table]: [&CpuTensor; 1]) -> (CpuTensor, [usize; 2]) {
        let dims = table.dims();
        let (d, values) = (dims[1], table.values());
        let mut found = Vec::with_capacity(self.ids.len() * d);
        for &id in &*self.ids {
            found.extend_from_slice(&values[id as usize * d..][..d]);
        }
        (CpuTensor::new(found, [self.ids.len(), d]), [dims[0], d])
    }

    fn backward(
        &self,
        [n, d]: [usize; 2],
        by: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let by = by.values();
        let mut found = vec![0.0; n * d];
        // A piece of the table goes through all numbers, so that the order of sums is theirs.
        let block = rows(n);
        parallel::each(found.chunks_mut((block * d).max(1)).enumerate(), |(piece, table)| {
            let first = piece * block;
            for (at, &id) in self.ids.iter().enumerate() {
                let row = (id as usize).wrapping_sub(first);
                if row < block {
                    kernel::add(&by[at * d..][..d], &mut table[row * d..][..d]);
                }
            }
        });
        [Some(CpuTensor::new(found, [n, d]))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn embedding_is_that_of_burn() {
        for (n, d, count) in [(1, 1, 1), (1, 3, 5), (7, 17, 9), (300, 20, 1000)] {
            let ids: Vec<u32> = (0..count).map(|i| (i * i * 31 % n) as u32).collect();
            check(
                [&[n, d]],
                |[x]| embedding(x.reshape([n, d]), &ids),
                |[x]| composed(x.reshape([n, d]), &ids),
            );
        }
    }
}
