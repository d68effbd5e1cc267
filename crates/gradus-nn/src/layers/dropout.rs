//! Dropout.

use super::Pass;
use crate::ops;
use burn::tensor::Tensor;

/// Sets each entry to 0 with probability `p` and divides the others by `1 − p`, while the network learns.
pub fn dropout<const D: usize>(x: Tensor<D>, p: f64, pass: &Pass) -> Tensor<D> {
    if pass.is_training() && p > 0.0 { ops::dropout(x, p, pass.seed()) } else { x }
}
