//! Dropout.

use super::Pass;
use crate::device::tensor;
use burn::tensor::Tensor;
use gradus_base::random::Stream;

/// Sets each entry to 0 with probability `p` and divides the others by `1 − p`, while the network learns.
pub fn dropout<const D: usize>(x: Tensor<D>, p: f64, pass: &Pass) -> Tensor<D> {
    if !pass.is_training() || p <= 0.0 {
        return x;
    }
    let shape = x.dims();
    let mut stream = Stream::new(pass.seed(), "nn.dropout", 0);
    // Sixteen bits for an entry: four entries for a number of the stream.
    let (limit, keep) = ((p * 65536.0) as u64, (1.0 / (1.0 - p)) as f32);
    let n: usize = shape.iter().product();
    let mut mask = Vec::with_capacity(n + 3);
    while mask.len() < n {
        let bits = stream.next_u64();
        mask.extend((0..4).map(|at| if (bits >> (16 * at)) & 0xffff < limit { 0.0 } else { keep }));
    }
    mask.truncate(n);
    let device = x.device();
    x * tensor(mask, shape, &device)
}
