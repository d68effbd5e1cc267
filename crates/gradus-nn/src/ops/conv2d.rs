//! Convolutions of images whose channels are the last dimension.

use super::activation::{
    composed as activated, from_value, gradient as activation_gradient, in_place, values,
};
use super::pieces::total;
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use crate::layers::{Activation, Window};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Tensor, module};
use gradus_base::parallel;
use gradus_kernel::gemm::{Before, Factor, product};
use gradus_kernel::network as kernel;

/// Parts of a batch whose gradients of the weights are summed apart.
const PARTS: usize = 16;

/// The sum over each window of inputs times weights, plus the bias, with the activation function in the same pass.
///
/// # Shapes
/// `n × height × width × inputs`, weights of `outputs × inputs × size × size` as in PyTorch and a bias of `outputs`, to
/// `n × places × places × outputs`.
///
/// # Panics
/// If the shapes do not fit.
pub fn conv2d(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    window: Window,
    activation: Activation,
) -> Tensor<4> {
    let ([n, height, width, channels], [outputs, inputs, rows, columns]) =
        (x.dims(), weight.dims());
    assert_eq!(
        (channels, window.size, window.size),
        (inputs, rows, columns),
        "channels and windows of the images and of the weights"
    );
    assert!(bias.as_ref().is_none_or(|b| b.dims() == [outputs]), "a bias for each output");
    if !is_cpu(&x.device()) {
        return composed(x, weight, bias, window, activation);
    }
    // A step has no gradient: it stands behind the layer.
    let kind = if activation.has_gradient() { activation } else { Activation::Identity };
    let op = Conv { n, image: [height, width], channels, outputs, window, kind };
    let y = match bias {
        Some(bias) => apply(op, [x.into(), weight.into(), bias.into()]),
        None => apply(op, [x.into(), weight.into()]),
    };
    if activation.has_gradient() { y } else { activated(y, activation) }
}

/// The same of burn's operations.
fn composed(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    window: Window,
    activation: Activation,
) -> Tensor<4> {
    let (stride, padding) = ([window.stride; 2], [window.padding; 2]);
    let options = ConvOptions::new(stride, padding, [1, 1], 1);
    let y = module::conv2d(x.permute([0, 3, 1, 2]), weight, bias, options);
    activated(y.permute([0, 2, 3, 1]), activation)
}

#[derive(Clone, Debug)]
struct Conv {
    n: usize,
    image: [usize; 2],
    channels: usize,
    outputs: usize,
    window: Window,
    kind: Activation,
}

/// The images, the weights, and the value of the activation function or its input.
type Saved = (CpuTensor, CpuTensor, CpuTensor);

impl Conv {
    fn out(&self) -> [usize; 2] {
        self.image.map(|pixels| self.window.places(pixels))
    }

    fn places(&self) -> usize {
        self.out().iter().product()
    }

    /// Numbers of an image.
    fn of_image(&self) -> usize {
        self.image[0] * self.image[1] * self.channels
    }

    /// Numbers of a window.
    fn of_window(&self) -> usize {
        self.window.size * self.window.size * self.channels
    }

    /// Whether the image is its own matrix of windows.
    fn is_pointwise(&self) -> bool {
        self.window == Window { size: 1, stride: 1, padding: 0 }
    }

    /// Calls `copy` for each run of numbers of an image that are neighbours in the matrix of windows as well: where they begin, there and
    /// there, and how many they are. The matrix is places × numbers of a window.
    #[inline]
    fn runs(&self, mut copy: impl FnMut(usize, usize, usize)) {
        let ([height, width], c) = (self.image, self.channels);
        let Window { size, stride, padding } = self.window;
        let [rows, columns] = self.out();
        for row in 0..rows {
            for column in 0..columns {
                let left = column * stride;
                // Columns of the window that lie on the image.
                let from = padding.saturating_sub(left);
                let to = (width + padding).saturating_sub(left).min(size);
                if from >= to {
                    continue;
                }
                let out = (row * columns + column) * size * size * c;
                for y in 0..size {
                    let Some(above) = (row * stride + y).checked_sub(padding) else { continue };
                    if above < height {
                        let pixel = above * width + left + from - padding;
                        copy(pixel * c, out + (y * size + from) * c, (to - from) * c);
                    }
                }
            }
        }
    }

    /// The same of the transposed matrix of windows, for one channel: runs are as long as the image is wide. They are apart by the stride
    /// in the image.
    #[inline]
    fn long_runs(&self, mut copy: impl FnMut(usize, usize, usize)) {
        let [height, width] = self.image;
        let Window { size, stride, padding } = self.window;
        let [rows, columns] = self.out();
        for at in 0..size * size {
            let (y, x) = (at / size, at % size);
            let first = padding.saturating_sub(x).div_ceil(stride);
            let last = (width + padding).saturating_sub(x).div_ceil(stride).min(columns);
            if first >= last {
                continue;
            }
            for row in 0..rows {
                let Some(above) = (row * stride + y).checked_sub(padding) else { continue };
                if above < height {
                    let pixel = above * width + first * stride + x - padding;
                    copy(pixel, (at * rows + row) * columns + first, last - first);
                }
            }
        }
    }

    /// The matrix of windows, places × numbers of a window. `held` holds it if the image does not.
    fn windows<'a>(&self, image: &'a [f32], held: &'a mut Vec<f32>) -> Factor<'a> {
        let (places, of_window, step) = (self.places(), self.of_window(), self.window.stride);
        if self.is_pointwise() {
            return Factor::new(image, of_window);
        }
        // What lies outside the image is 0 and stays so from one image to the next.
        held.resize(places * of_window, 0.0);
        if self.channels > 1 {
            self.runs(|from, to, n| held[to..][..n].copy_from_slice(&image[from..][..n]));
            return Factor::new(held, of_window);
        }
        self.long_runs(|from, to, n| {
            let to = &mut held[to..][..n];
            if step == 1 {
                to.copy_from_slice(&image[from..][..n]);
            } else {
                to.iter_mut().zip(image[from..].iter().step_by(step)).for_each(|(to, x)| *to = *x);
            }
        });
        Factor::new(held, places).transpose()
    }

    /// Adds gradients of windows (in the layout of the matrix) to the image.
    fn scatter(&self, windows: &[f32], image: &mut [f32]) {
        let step = self.window.stride;
        if self.channels > 1 {
            self.runs(|to, from, n| kernel::add(&windows[from..][..n], &mut image[to..][..n]));
        } else if step == 1 {
            self.long_runs(|to, from, n| kernel::add(&windows[from..][..n], &mut image[to..][..n]));
        } else {
            self.long_runs(|to, from, n| {
                let to = image[to..].iter_mut().step_by(step);
                to.zip(&windows[from..][..n]).for_each(|(to, x)| *to += x);
            });
        }
    }

    /// Weights as a matrix of outputs × numbers of a window, channels last.
    fn weights(&self, weight: &CpuTensor) -> Vec<f32> {
        let (area, c) = (self.window.size * self.window.size, self.channels);
        let values = weight.values();
        let mut found = vec![0.0; values.len()];
        for (from, to) in values.chunks(area * c).zip(found.chunks_mut(area * c)) {
            for at in 0..area {
                (0..c).for_each(|channel| to[at * c + channel] = from[channel * area + at]);
            }
        }
        found
    }

    /// The way back.
    fn weights_back(&self, found: &[f32]) -> Vec<f32> {
        let (area, c) = (self.window.size * self.window.size, self.channels);
        let mut values = vec![0.0; found.len()];
        for (from, to) in found.chunks(area * c).zip(values.chunks_mut(area * c)) {
            for at in 0..area {
                (0..c).for_each(|channel| to[channel * area + at] = from[at * c + channel]);
            }
        }
        values
    }

    fn forward(
        &self,
        x: &CpuTensor,
        weight: &CpuTensor,
        bias: Option<&CpuTensor>,
    ) -> (CpuTensor, Saved) {
        let (places, outputs, of_window) = (self.places(), self.outputs, self.of_window());
        let (images, w) = (x.values(), self.weights(weight));
        let b = bias.map(CpuTensor::values);
        let block = (places * outputs).max(1);
        let mut before = vec![0.0; self.n * places * outputs];
        let mut after = vec![0.0; if from_value(self.kind) { 0 } else { before.len() }];
        let mut others = after.chunks_mut(block);
        let pieces: Vec<_> = before.chunks_mut(block).map(|piece| (piece, others.next())).collect();
        let pieces = pieces.into_iter().zip(images.chunks(self.of_image().max(1)));
        parallel::each_with(pieces, Vec::new, |held, ((piece, after), image)| {
            let windows = self.windows(image, held);
            let w = Factor::new(&w, of_window).transpose();
            let shape = (places, outputs, of_window);
            product(shape, windows, w, 1.0, Before::Replaced, (piece, outputs));
            if let Some(b) = &b {
                kernel::add_to_rows(piece, b);
            }
            match after {
                Some(after) => values(self.kind, piece, after),
                None => in_place(self.kind, piece),
            }
        });
        let [rows, columns] = self.out();
        let dims = [self.n, rows, columns, outputs];
        let at = CpuTensor::new(before, dims);
        let y = if from_value(self.kind) { at.clone() } else { CpuTensor::new(after, dims) };
        (y, (x.clone(), weight.clone(), at))
    }

    fn backward(
        &self,
        (x, weight, at): &Saved,
        by: &CpuTensor,
        needed: [bool; 3],
    ) -> [Option<CpuTensor>; 3] {
        let (places, outputs, of_window) = (self.places(), self.outputs, self.of_window());
        let (of_image, of_output) = (self.of_image(), places * outputs);
        let (images, w, at, by) = (x.values(), self.weights(weight), at.values(), by.values());
        let mut dx = vec![0.0; if needed[0] { images.len() } else { 0 }];
        let part = self.n.div_ceil(PARTS).max(1);
        let mut of_x = dx.chunks_mut((part * of_image).max(1));
        let pieces: Vec<_> =
            parallel::blocks(self.n, part).map(|images| (images, of_x.next())).collect();
        let state = || [Vec::new(), Vec::new(), Vec::new()];
        let sums = parallel::map_with(pieces, state, |[held, sent, changed], (range, dx)| {
            // The gradient of the weights, and behind it that of the bias.
            let mut sums = vec![0.0; outputs * (of_window + 1)];
            let (dw, db) = sums.split_at_mut(outputs * of_window);
            let mut dx = dx.map(|dx| dx.chunks_mut(of_image.max(1)));
            for image in range {
                let places_of = image * of_output..(image + 1) * of_output;
                let mut by = &by[places_of.clone()];
                if self.kind != Activation::Identity {
                    changed.clear();
                    changed.extend_from_slice(by);
                    activation_gradient(self.kind, &at[places_of], changed);
                    by = &*changed;
                }
                let rows = Factor::new(by, outputs);
                if needed[1] {
                    let windows = self.windows(&images[image * of_image..][..of_image], held);
                    let shape = (outputs, of_window, places);
                    product(shape, rows.transpose(), windows, 1.0, Before::Kept, (dw, of_window));
                }
                if needed[2] {
                    kernel::add_rows(by, db);
                }
                let Some(dx) = dx.as_mut().and_then(Iterator::next) else { continue };
                let w = Factor::new(&w, of_window);
                if self.is_pointwise() {
                    let shape = (places, of_window, outputs);
                    product(shape, rows, w, 1.0, Before::Replaced, (dx, of_window));
                    continue;
                }
                sent.resize(places * of_window, 0.0);
                if self.channels > 1 {
                    let shape = (places, of_window, outputs);
                    product(shape, rows, w, 1.0, Before::Replaced, (&mut *sent, of_window));
                } else {
                    let shape = (of_window, places, outputs);
                    let (w, rows) = (w.transpose(), rows.transpose());
                    product(shape, w, rows, 1.0, Before::Replaced, (&mut *sent, places));
                }
                self.scatter(sent, dx);
            }
            sums
        });
        let sums = total(sums, outputs * (of_window + 1));
        let (dw, db) = sums.split_at(outputs * of_window);
        [
            needed[0].then(|| CpuTensor::new(dx, x.dims())),
            needed[1].then(|| CpuTensor::new(self.weights_back(dw), weight.dims())),
            needed[2].then(|| CpuTensor::new(db.to_vec(), [outputs])),
        ]
    }
}

impl CpuOp<3> for Conv {
    type Saved = Saved;

    fn forward(&self, [x, weight, bias]: [&CpuTensor; 3]) -> (CpuTensor, Saved) {
        self.forward(x, weight, Some(bias))
    }

    fn backward(&self, saved: Saved, by: &CpuTensor, needed: [bool; 3]) -> [Option<CpuTensor>; 3] {
        self.backward(&saved, by, needed)
    }
}

impl CpuOp<2> for Conv {
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
    fn convolutions_are_those_of_burn() {
        // Images, height, width, channels, outputs, window.
        let window = |size, stride, padding| Window { size, stride, padding };
        let cases = [
            (1, 1, 1, 1, 1, window(1, 1, 0)),
            (2, 5, 7, 3, 4, window(1, 1, 0)),
            (19, 8, 9, 2, 3, window(3, 1, 1)),
            (18, 8, 9, 1, 3, window(3, 1, 1)),
            (2, 7, 5, 1, 2, window(3, 2, 1)),
            (2, 2, 2, 2, 2, window(5, 2, 2)),
            (2, 2, 1, 1, 2, window(5, 3, 2)),
            (3, 9, 9, 2, 5, window(3, 2, 1)),
            (2, 4, 3, 2, 2, window(2, 3, 4)),
        ];
        for (at, (n, h, w, c, o, window)) in cases.into_iter().enumerate() {
            let kind = [Activation::Relu, Activation::Gelu, Activation::Identity][at % 3];
            let (image, weights) = ([n, h, w, c], [o, c, window.size, window.size]);
            check(
                [&image, &weights, &[o]],
                |[x, w, b]| conv2d(x.reshape(image), w.reshape(weights), Some(b), window, kind),
                |[x, w, b]| composed(x.reshape(image), w.reshape(weights), Some(b), window, kind),
            );
            check(
                [&image, &weights],
                |[x, w]| conv2d(x.reshape(image), w.reshape(weights), None, window, kind),
                |[x, w]| composed(x.reshape(image), w.reshape(weights), None, window, kind),
            );
        }
    }
}
