//! Linear layers, with their activation function in the same pass.

use super::activation::{
    composed as activated, from_value, gradient as activation_gradient, in_place, values,
};
use super::pieces::{rows_of_product, total};
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use crate::layers::Activation;
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::gemm::{Before, Factor, product};
use gradus_kernel::network as kernel;
use std::borrow::Cow;

/// `activation(x Wᵀ + b)`, with `W` of outputs × inputs as in PyTorch.
///
/// # Shapes
/// `n × inputs`, `outputs × inputs` and `outputs` to `n × outputs`.
///
/// # Panics
/// If the shapes do not fit.
pub fn linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<2> {
    let ([_, d], [outputs, inputs]) = (x.dims(), weight.dims());
    assert_eq!(d, inputs, "columns of x and inputs of the weights");
    assert!(bias.as_ref().is_none_or(|b| b.dims() == [outputs]), "a bias for each output");
    if !is_cpu(&x.device()) {
        return composed(x, weight, bias, activation);
    }
    // A step has no gradient: it stands behind the layer.
    let op = Linear(if activation.has_gradient() { activation } else { Activation::Identity });
    let y = match bias {
        Some(bias) => apply(op, [x.into(), weight.into(), bias.into()]),
        None => apply(op, [x.into(), weight.into()]),
    };
    if activation.has_gradient() { y } else { activated(y, activation) }
}

/// The same of burn's operations.
fn composed(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<2> {
    let y = x.matmul(weight.transpose());
    activated(if let Some(bias) = bias { y + bias.unsqueeze() } else { y }, activation)
}

#[derive(Clone, Debug)]
struct Linear(Activation);

/// What the gradient needs: `x`, `W`, and the value of the activation function or its input.
#[derive(Clone, Debug)]
struct Saved {
    x: CpuTensor,
    weight: CpuTensor,
    at: CpuTensor,
}

impl Linear {
    fn forward(
        &self,
        x: &CpuTensor,
        weight: &CpuTensor,
        bias: Option<&CpuTensor>,
    ) -> (CpuTensor, Saved) {
        let (n, [outputs, inputs]) = (x.dims()[0], sizes(weight));
        let (a, w) = (x.values(), weight.values());
        let b = bias.map(CpuTensor::values);
        let mut before = vec![0.0; n * outputs];
        let mut after = vec![0.0; if from_value(self.0) { 0 } else { n * outputs }];
        let rows = rows_of_product(n, inputs * outputs);
        let block = rows * outputs.max(1);
        let mut others = after.chunks_mut(block);
        let pieces: Vec<_> = before.chunks_mut(block).map(|piece| (piece, others.next())).collect();
        parallel::each(pieces.into_iter().enumerate(), |(at, (piece, after))| {
            let first = at * rows;
            let some = piece.len() / outputs;
            let a = Factor::new(&a[first * inputs..], inputs);
            let w = Factor::new(&w, inputs).transpose();
            product((some, outputs, inputs), a, w, 1.0, Before::Replaced, (piece, outputs));
            if let Some(b) = &b {
                kernel::add_to_rows(piece, b);
            }
            match after {
                Some(after) => values(self.0, piece, after),
                None => in_place(self.0, piece),
            }
        });
        let at = CpuTensor::new(before, [n, outputs]);
        let y = if from_value(self.0) { at.clone() } else { CpuTensor::new(after, [n, outputs]) };
        (y, Saved { x: x.clone(), weight: weight.clone(), at })
    }

    /// The gradients of `x`, `W` and `b`.
    fn backward(&self, saved: &Saved, by: &CpuTensor, needed: [bool; 3]) -> [Option<CpuTensor>; 3] {
        let (n, [outputs, inputs]) = (by.dims()[0], sizes(&saved.weight));
        let (x, w, at, by) =
            (saved.x.values(), saved.weight.values(), saved.at.values(), by.values());
        let mut dx = vec![0.0; if needed[0] { n * inputs } else { 0 }];
        let block = rows_of_product(n, inputs * outputs);
        // First by rows of samples: the gradient before the activation function, that of the bias, and that of x.
        let mut before = if self.0 == Activation::Identity { Vec::new() } else { by.to_vec() };
        let mut of_x = dx.chunks_mut((block * inputs).max(1));
        let mut of_before = before.chunks_mut((block * outputs).max(1));
        let pieces: Vec<_> =
            parallel::blocks(n, block).map(|rows| (rows, of_before.next(), of_x.next())).collect();
        let parts = parallel::map(pieces, |(rows, before, dx)| {
            let places = rows.start * outputs..rows.end * outputs;
            let by = match before {
                Some(before) => {
                    activation_gradient(self.0, &at[places], before);
                    before
                }
                None => &by[places],
            };
            sent(by, &w, (outputs, inputs), dx, needed[2])
        });
        let by = if self.0 == Activation::Identity { by } else { Cow::Owned(before) };
        let dx = needed[0].then(|| CpuTensor::new(dx, [n, inputs]));
        let db = needed[2].then(|| CpuTensor::new(total(parts, outputs), [outputs]));
        // Then by rows of the weights, over all samples.
        let dw = needed[1].then(|| {
            let mut dw = vec![0.0; outputs * inputs];
            let block = rows_of_product(outputs, inputs * n);
            parallel::each(dw.chunks_mut((block * inputs).max(1)).enumerate(), |(piece, dw)| {
                let some = dw.len() / inputs;
                let by =
                    Factor::new(by.get(piece * block..).unwrap_or_default(), outputs).transpose();
                product(
                    (some, inputs, n),
                    by,
                    Factor::new(&x, inputs),
                    1.0,
                    Before::Replaced,
                    (dw, inputs),
                );
            });
            CpuTensor::new(dw, [outputs, inputs])
        });
        [dx, dw, db]
    }
}

/// What some rows of gradients send to `x`; their sum, for the bias.
fn sent(
    by: &[f32],
    w: &[f32],
    (outputs, inputs): (usize, usize),
    dx: Option<&mut [f32]>,
    bias: bool,
) -> Vec<f32> {
    if let Some(dx) = dx {
        let n = dx.len() / inputs.max(1);
        let (by, w) = (Factor::new(by, outputs), Factor::new(w, inputs));
        product((n, inputs, outputs), by, w, 1.0, Before::Replaced, (dx, inputs));
    }
    let mut sum = vec![0.0; if bias { outputs } else { 0 }];
    if bias {
        kernel::add_rows(by, &mut sum);
    }
    sum
}

fn sizes(weight: &CpuTensor) -> [usize; 2] {
    let dims = weight.dims();
    [dims[0], dims[1]]
}

impl CpuOp<3> for Linear {
    type Saved = Saved;

    fn forward(&self, [x, weight, bias]: [&CpuTensor; 3]) -> (CpuTensor, Saved) {
        self.forward(x, weight, Some(bias))
    }

    fn backward(&self, saved: Saved, by: &CpuTensor, needed: [bool; 3]) -> [Option<CpuTensor>; 3] {
        self.backward(&saved, by, needed)
    }
}

impl CpuOp<2> for Linear {
    type Saved = Saved;

    fn forward(&self, [x, weight]: [&CpuTensor; 2]) -> (CpuTensor, Saved) {
        self.forward(x, weight, None)
    }

    fn backward(&self, saved: Saved, by: &CpuTensor, [x, w]: [bool; 2]) -> [Option<CpuTensor>; 2] {
        let [dx, dw, _] = self.backward(&saved, by, [x, w, false]);
        [dx, dw]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn linear_layers_are_those_of_burn() {
        use Activation::{Gelu, Identity, Relu, Sigmoid, Tanh};
        for kind in [Identity, Relu, Sigmoid, Tanh, Gelu] {
            for (n, inputs, outputs) in
                [(0, 3, 2), (1, 1, 1), (1, 5, 3), (7, 17, 9), (257, 33, 130)]
            {
                check(
                    [&[n, inputs], &[outputs, inputs], &[outputs]],
                    |[x, w, b]| {
                        linear(x.reshape([n, inputs]), w.reshape([outputs, inputs]), Some(b), kind)
                    },
                    |[x, w, b]| {
                        composed(
                            x.reshape([n, inputs]),
                            w.reshape([outputs, inputs]),
                            Some(b),
                            kind,
                        )
                    },
                );
                check(
                    [&[n, inputs], &[outputs, inputs]],
                    |[x, w]| {
                        linear(x.reshape([n, inputs]), w.reshape([outputs, inputs]), None, kind)
                    },
                    |[x, w]| {
                        composed(x.reshape([n, inputs]), w.reshape([outputs, inputs]), None, kind)
                    },
                );
            }
        }
    }
}
