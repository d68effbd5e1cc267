//! Activation functions.

use super::pieces::fill;
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use crate::layers::Activation;
use burn::tensor::{Tensor, activation};
use gradus_kernel::network as kernel;

/// The exact GELU: `x Φ(x)`.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activate(x, Activation::Gelu)
}

/// The hyperbolic tangent.
pub fn tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activate(x, Activation::Tanh)
}

/// `max(x, 0)`.
pub fn relu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activate(x, Activation::Relu)
}

/// `1 / (1 + exp(−x))`.
pub fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activate(x, Activation::Sigmoid)
}

/// An activation function, entry by entry.
pub fn activate<const D: usize>(x: Tensor<D>, kind: Activation) -> Tensor<D> {
    match kind {
        Activation::Identity => x,
        _ if is_cpu(&x.device()) && kind.has_gradient() => apply(Activate(kind), [x.into()]),
        _ => composed(x, kind),
    }
}

/// The same of burn's operations.
pub(super) fn composed<const D: usize>(x: Tensor<D>, kind: Activation) -> Tensor<D> {
    match kind {
        Activation::Identity => x,
        Activation::Sigmoid => activation::sigmoid(x),
        Activation::Tanh => activation::tanh(x),
        Activation::Relu => activation::relu(x),
        Activation::Gelu => activation::gelu(x),
        Activation::Silu => activation::silu(x),
        Activation::Step => x.greater_elem(0.0).float(),
    }
}

/// Whether the gradient is found from the value alone.
pub(super) fn from_value(kind: Activation) -> bool {
    !matches!(kind, Activation::Gelu | Activation::Silu)
}

/// Values of the function, from inputs of the same number.
pub(super) fn values(kind: Activation, x: &[f32], to: &mut [f32]) {
    match kind {
        Activation::Gelu => kernel::gelu(x, to),
        Activation::Silu => kernel::silu(x, to),
        _ => {
            to.copy_from_slice(x);
            in_place(kind, to);
        }
    }
}

/// Replaces inputs by values; not for GELU and SiLU.
pub(super) fn in_place(kind: Activation, x: &mut [f32]) {
    match kind {
        Activation::Identity => {}
        Activation::Sigmoid => kernel::sigmoid(x),
        Activation::Tanh => kernel::tanh(x),
        Activation::Relu => kernel::relu(x),
        Activation::Gelu | Activation::Silu | Activation::Step => unreachable!("not in place"),
    }
}

/// Multiplies gradients by that of the function; `at` is its value, or its input where the value does not tell.
pub(super) fn gradient(kind: Activation, at: &[f32], gradient: &mut [f32]) {
    match kind {
        Activation::Identity => {}
        Activation::Sigmoid => kernel::sigmoid_gradient(at, gradient),
        Activation::Tanh => kernel::tanh_gradient(at, gradient),
        Activation::Relu => kernel::relu_gradient(at, gradient),
        Activation::Gelu => kernel::gelu_gradient(at, gradient),
        Activation::Silu => kernel::silu_gradient(at, gradient),
        Activation::Step => gradient.fill(0.0),
    }
}

#[derive(Clone, Debug)]
struct Activate(Activation);

impl CpuOp<1> for Activate {
    /// The value, or the input where the value does not tell the gradient.
    type Saved = CpuTensor;

    fn forward(&self, [x]: [&CpuTensor; 1]) -> (CpuTensor, CpuTensor) {
        let input = x.values();
        let found = fill(input.len(), |at, to| values(self.0, &input[at..][..to.len()], to));
        let y = CpuTensor::new(found, x.dims());
        let saved = if from_value(self.0) { y.clone() } else { x.clone() };
        (y, saved)
    }

    fn backward(
        &self,
        saved: CpuTensor,
        by: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let (saved, by) = (saved.values(), by);
        let values = by.values();
        let found = fill(values.len(), |at, to| {
            to.copy_from_slice(&values[at..][..to.len()]);
            gradient(self.0, &saved[at..][..to.len()], to);
        });
        [Some(CpuTensor::new(found, by.dims()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn activations_are_those_of_burn() {
        use Activation::{Gelu, Relu, Sigmoid, Silu, Tanh};
        for kind in [Sigmoid, Tanh, Relu, Gelu, Silu] {
            for shape in [[0, 3], [1, 1], [1, 17], [5, 33], [300, 111]] {
                check(
                    [&shape],
                    |[x]| activate(x.reshape(shape), kind),
                    |[x]| composed(x.reshape(shape), kind),
                );
            }
        }
    }
}
