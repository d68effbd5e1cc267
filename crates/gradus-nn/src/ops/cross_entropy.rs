//! Cross-entropy of a softmax.

use super::{CpuOp, CpuTensor, apply};
use crate::device::{indices, is_cpu, tensor};
use burn::tensor::{Tensor, activation};
use gradus_base::parallel;
use std::sync::Arc;

/// Rows that a thread takes at a time.
const ROWS: usize = 64;

/// The weighted sum of `−log p(class)` with `p` the softmax of each row of scores. A weight of 0 leaves a row out.
///
/// # Shapes
/// Scores of `n × classes`, with a class and a weight for each row, to one number.
///
/// # Panics
/// If there are more or fewer classes or weights than rows, or a class is not below the number of columns.
pub fn cross_entropy(scores: Tensor<2>, classes: &[u32], weights: &[f32]) -> Tensor<1> {
    let [n, k] = scores.dims();
    assert_eq!(
        (n, n),
        (classes.len(), weights.len()),
        "a class and a weight for each row of scores"
    );
    assert!(classes.iter().all(|&class| (class as usize) < k), "classes below {k}");
    let device = scores.device();
    if is_cpu(&device) {
        let op = CrossEntropy { classes: classes.into(), weights: weights.into() };
        return apply(op, [scores.into()]);
    }
    let places = indices(classes.iter().map(|&class| class as i32).collect(), [n, 1], &device);
    let logs = activation::log_softmax(scores, 1).gather(1, places);
    -(logs * tensor(weights.to_vec(), [n, 1], &device)).sum()
}

#[derive(Clone, Debug)]
struct CrossEntropy {
    classes: Arc<[u32]>,
    weights: Arc<[f32]>,
}

impl CpuOp<1> for CrossEntropy {
    type Saved = (CpuTensor, Vec<f32>);

    fn forward(&self, [scores]: [&CpuTensor; 1]) -> (CpuTensor, Self::Saved) {
        let k = scores.dims()[1];
        let values = scores.values();
        let rows: Vec<usize> = (0..self.classes.len()).collect();
        let blocks: Vec<&[usize]> = rows.chunks(ROWS).collect();
        // The logarithm of the sum of exponentials of each row, and the loss of each block.
        let found = parallel::map(blocks, |block| {
            let mut loss = 0.0f64;
            let logs: Vec<f32> = block
                .iter()
                .map(|&row| {
                    let scores = &values[row * k..][..k];
                    let most = scores.iter().fold(f32::NEG_INFINITY, |most, s| most.max(*s));
                    let sum: f32 = scores.iter().map(|s| (s - most).exp()).sum();
                    let log = most + sum.ln();
                    loss +=
                        f64::from(self.weights[row] * (log - scores[self.classes[row] as usize]));
                    log
                })
                .collect();
            (logs, loss)
        });
        let loss: f64 = found.iter().map(|(_, loss)| loss).sum();
        let logs = found.into_iter().flat_map(|(logs, _)| logs).collect();
        (CpuTensor::new(vec![loss as f32], [1]), (scores.clone(), logs))
    }

    fn backward(
        &self,
        (scores, logs): Self::Saved,
        gradient: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        let k = scores.dims()[1];
        let values = scores.values();
        let by = gradient.values()[0];
        if !needed[0] {
            return [None];
        }
        let mut found = vec![0.0f32; values.len()];
        let pieces: Vec<(usize, &mut [f32])> = found.chunks_mut(ROWS * k).enumerate().collect();
        parallel::each(pieces, |(block, piece)| {
            for (at, out) in piece.chunks_mut(k).enumerate() {
                let row = block * ROWS + at;
                let weight = by * self.weights[row];
                for (out, score) in out.iter_mut().zip(&values[row * k..]) {
                    let log = score - logs[row];
                    // Products with subnormal numbers take long.
                    *out = if log > -60.0 { weight * log.exp() } else { 0.0 };
                }
                out[self.classes[row] as usize] -= weight;
            }
        });
        [Some(CpuTensor::new(found, [self.classes.len(), k]))]
    }
}
