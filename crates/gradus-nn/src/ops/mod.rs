//! Operations with gradients written by hand: one pass over the numbers instead of one for each elementary operation.
//!
//! On the CPU an operation implements [`CpuOp`] on slices, in parallel with a fixed order of sums, so that results do not depend
//! on the number of threads. Elsewhere it is composed of burn's operations.

mod activation;
mod attention;
mod batch_norm;
mod bernoulli;
mod causal;
mod conv2d;
mod cpu;
mod cross_entropy;
mod dropout;
mod embedding;
mod gate;
mod group_norm;
mod images;
mod layer_norm;
mod linear;
mod pieces;
mod softmax;
mod squared_error;
#[cfg(test)]
mod testing;

pub use activation::{activate, gelu, relu, sigmoid, tanh};
pub use attention::{Attention, attention, attention_probabilities, self_attention};
pub use batch_norm::batch_norm;
pub use bernoulli::{bernoulli_log_likelihood, bernoulli_loss};
pub use causal::causal_context;
pub use conv2d::conv2d;
pub use cpu::{CpuOp, CpuTensor, apply};
pub use cross_entropy::cross_entropy;
pub use dropout::dropout;
pub use embedding::embedding;
pub use gate::gate;
pub use group_norm::group_norm;
pub use images::{add_to_pixels, join_channels};
pub use layer_norm::layer_norm;
pub use linear::linear;
pub use softmax::softmax;
pub use squared_error::squared_error;
