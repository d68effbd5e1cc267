//! Convolutions of images. Channels are the last dimension, as in the files of images: rows of channels lie together, so that a
//! convolution is one matrix product, and a layer for rows of features serves the pixels of images as well.

use super::{Activation, Layout, Weights};
use crate::ops;
use crate::weights::{Init, Role, WeightId};
use burn::tensor::Tensor;

/// The window of a convolution: its size, the step from one place to the next, and the zeros around the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Height and width.
    pub size: usize,
    /// The distance of two places.
    pub stride: usize,
    /// Rows and columns of zeros on each side.
    pub padding: usize,
}

impl Window {
    /// A window of an odd size at every pixel: the outputs have the size of the image.
    pub fn same(size: usize) -> Self {
        Self { size, stride: 1, padding: size / 2 }
    }

    /// Windows side by side: the patches of an image.
    pub fn patches(size: usize) -> Self {
        Self { size, stride: size, padding: 0 }
    }

    /// The number of places along a side of so many pixels.
    pub fn places(&self, pixels: usize) -> usize {
        (pixels + 2 * self.padding).checked_sub(self.size).map_or(0, |rest| rest / self.stride + 1)
    }
}

/// A convolution, with the weights of PyTorch's `Conv2d`: outputs × inputs × height × width.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv2d {
    inputs: usize,
    outputs: usize,
    window: Window,
    weight: WeightId,
    bias: Option<WeightId>,
}

impl Conv2d {
    /// A convolution with these initial weights.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        (inputs, outputs): (usize, usize),
        window: Window,
        init: Init,
        bias: bool,
    ) -> Self {
        let shape = [outputs, inputs, window.size, window.size];
        layout.within(name, |layout| {
            let weight = layout.add("weight", &shape, init, Role::Decayed);
            let bias =
                bias.then(|| layout.add("bias", &[outputs], Init::Constant(0.0), Role::Plain));
            Self { inputs, outputs, window, weight, bias }
        })
    }

    /// The outputs.
    ///
    /// # Shapes
    /// `n × height × width × inputs` to `n × places × places × outputs`.
    pub fn forward(&self, weights: &Weights, x: Tensor<4>) -> Tensor<4> {
        self.forward_activated(weights, x, Activation::Identity)
    }

    /// The values of an activation function at the outputs, in the same pass.
    ///
    /// # Shapes
    /// `n × height × width × inputs` to `n × places × places × outputs`.
    pub fn forward_activated(
        &self,
        weights: &Weights,
        x: Tensor<4>,
        activation: Activation,
    ) -> Tensor<4> {
        let k = self.window.size;
        let w = weights.get(self.weight, [self.outputs, self.inputs, k, k]);
        let bias = self.bias.map(|bias| weights.flat(bias));
        ops::conv2d(x, w, bias, self.window, activation)
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{numbers, tensor};
    use crate::layers::testing::{check_gradients, noise};
    use burn::tensor::Device;

    const WINDOWS: [(usize, usize, Window); 5] = [
        (5, 4, Window { size: 3, stride: 1, padding: 1 }),
        (7, 6, Window { size: 3, stride: 2, padding: 1 }),
        (6, 6, Window { size: 2, stride: 2, padding: 0 }),
        (2, 1, Window { size: 5, stride: 1, padding: 2 }),
        (4, 3, Window { size: 1, stride: 1, padding: 0 }),
    ];

    #[test]
    fn a_convolution_is_the_sum_over_windows() {
        let (n, inputs, outputs) = (2, 3, 4);
        for (height, width, window) in WINDOWS {
            let Window { size, stride, padding } = window;
            let x = noise(n * height * width * inputs, 1);
            let w = noise(outputs * inputs * size * size, 2);
            let device = Device::flex();
            let found = ops::conv2d(
                tensor(x.clone(), [n, height, width, inputs], &device),
                tensor(w.clone(), [outputs, inputs, size, size], &device),
                None,
                window,
                Activation::Identity,
            );
            let [_, rows, columns, _] = found.dims();
            let found = numbers(found);
            for (at, found) in found.into_iter().enumerate() {
                let (output, place) = (at % outputs, at / outputs);
                let (column, row) = (place % columns, place / columns % rows);
                let image = place / columns / rows;
                let mut sum = 0.0;
                for (dy, dx) in (0..size).flat_map(|dy| (0..size).map(move |dx| (dy, dx))) {
                    let (y, x_at) = (row * stride + dy, column * stride + dx);
                    let inside = y >= padding
                        && x_at >= padding
                        && y < height + padding
                        && x_at < width + padding;
                    for input in (0..inputs).filter(|_| inside) {
                        let pixel = (image * height + y - padding) * width + x_at - padding;
                        sum += f64::from(x[pixel * inputs + input])
                            * f64::from(w[((output * inputs + input) * size + dy) * size + dx]);
                    }
                }
                assert!((f64::from(found) - sum).abs() < 1e-4, "{window:?} {sum}");
            }
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        for (height, width, window) in WINDOWS {
            for bias in [false, true] {
                let mut layout = Layout::new();
                let conv =
                    Conv2d::new(&mut layout, "conv", (2, 3), window, Init::Normal(0.3), bias);
                check_gradients(&layout, [2, height, width, 2], true, |weights, x, _| {
                    conv.forward(weights, x)
                });
            }
        }
    }

    #[test]
    fn a_window_larger_than_the_image_has_no_place() {
        assert_eq!(Window::patches(4).places(3), 0);
        assert_eq!(Window::patches(4).places(9), 2);
        assert_eq!(Window::same(3).places(9), 9);
    }
}
