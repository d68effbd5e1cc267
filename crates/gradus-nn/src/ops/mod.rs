//! Operations with gradients written by hand: one pass over the numbers instead of one for each elementary operation.
//!
//! On the CPU an operation implements [`CpuOp`] on slices, in parallel with a fixed order of sums, so that results do not depend
//! on the number of threads. Elsewhere it is composed of burn's operations.

mod activation;
mod cpu;
mod cross_entropy;
mod linear;
mod pieces;
#[cfg(test)]
mod testing;

pub use activation::{activate, gelu, relu, sigmoid, tanh};
pub use cpu::{CpuOp, CpuTensor, apply};
pub use cross_entropy::cross_entropy;
pub use linear::linear;
