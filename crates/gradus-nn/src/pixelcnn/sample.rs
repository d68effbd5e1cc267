//! Sampling pixel by pixel, with the activations of earlier pixels kept: a pixel costs what one pixel of the network costs, not what an
//! image does.
//!
//! Of the horizontal stacks the activations of the row at hand are kept, of the vertical stacks those of the rows that a window
//! reaches. After a row is drawn, the vertical stacks are computed for that row alone.

use super::network::PixelCnnNetwork;
use crate::device::{numbers, tensor};
use crate::layers::Activation;
use crate::ops::{gate, linear};
use crate::weights::Weights;
use burn::tensor::{Device, Tensor};
use gradus_base::parallel;
use gradus_base::random::Stream;

/// Images that are drawn together.
const BLOCK: usize = 32;

/// Draws a number with the softmax of scores, divided by the temperature; 0 takes the largest.
pub(super) fn choose(scores: &[f32], stream: &mut Stream, temperature: f64) -> usize {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if temperature <= 0.0 {
        return scores.iter().position(|score| *score == most).unwrap_or(0);
    }
    let by = |score: &f32| (f64::from(score - most) / temperature).exp();
    let total: f64 = scores.iter().map(by).sum();
    let mut left = stream.uniform() * total;
    for (at, score) in scores.iter().enumerate() {
        left -= by(score);
        if left < 0.0 {
            return at;
        }
    }
    scores.len() - 1
}

/// The random numbers of an image.
pub(super) fn stream(seed: u64, image: usize) -> Stream {
    Stream::new(seed, "pixelcnn.sample", image as u64)
}

/// What is drawn.
pub(super) struct Request<'a> {
    pub n: usize,
    pub seed: u64,
    pub temperature: f64,
    /// The levels of an image to begin with, of which the first so many are kept.
    pub begun: Option<&'a (dyn Fn(usize) -> Vec<u32> + Sync)>,
    pub kept: usize,
}

/// Draws images: their levels, one image after another.
pub(super) fn sample(net: &PixelCnnNetwork, weights: &Weights, request: &Request<'_>) -> Vec<u32> {
    let windows: Vec<Tensor<2>> =
        (0..net.layers.len()).map(|at| row_weights(net, weights, at)).collect();
    let blocks: Vec<_> = parallel::blocks(request.n, BLOCK).collect();
    let drawn = parallel::map(blocks, |images| {
        let b = images.len();
        let mut streams: Vec<Stream> = images.clone().map(|at| stream(request.seed, at)).collect();
        let begun: Option<Vec<Vec<u32>>> = request.begun.map(|begun| images.map(begun).collect());
        let mut state = State::new(net, b);
        let mut levels = vec![0u32; b * net.shape.len()];
        let (c, d) = (net.n_channels(), net.shape.len());
        for row in 0..net.shape.height {
            for column in 0..net.shape.width {
                let first = (row * net.shape.width + column) * c;
                // Activations of a row are needed as soon as one of its pixels is drawn.
                let is_kept = (row + 1) * net.shape.width * c <= request.kept;
                let h = (!is_kept).then(|| state.pixel(net, weights, column));
                for channel in 0..c {
                    let at = first + channel;
                    let scores = match (&h, at < request.kept) {
                        (Some(h), false) => {
                            let earlier = state.earlier(row, column, channel);
                            let h = h.clone();
                            numbers(net.scores(weights, h, earlier, channel))
                        }
                        _ => Vec::new(),
                    };
                    for (image, stream) in streams.iter_mut().enumerate() {
                        let level = if at < request.kept {
                            begun.as_ref().map_or(0, |begun| begun[image][at])
                        } else {
                            let scores = &scores[image * net.levels..][..net.levels];
                            choose(scores, stream, request.temperature) as u32
                        };
                        levels[image * d + at] = level;
                        state.set(image, (row, column, channel), net.input(level));
                    }
                }
            }
            state.end_row(net, weights, &windows, row);
        }
        levels
    });
    drawn.concat()
}

/// The weights of a vertical convolution for the rows that it sees: gates × (rows, columns, channels).
fn row_weights(net: &PixelCnnNetwork, weights: &Weights, at: usize) -> Tensor<2> {
    let layer = &net.layers[at];
    let (k, inputs, outputs) = (layer.kernel, layer.inputs, 2 * net.channels);
    let values = numbers(weights.flat(layer.vertical.0));
    let seen = (k / 2 + 1) * k;
    let mut found = Vec::with_capacity(outputs * seen * inputs);
    for output in 0..outputs {
        for place in 0..seen {
            found
                .extend((0..inputs).map(|input| values[(output * inputs + input) * k * k + place]));
        }
    }
    tensor(found, [outputs, seen * inputs], &Device::flex())
}

/// The activations that are kept.
struct State {
    images: usize,
    width: usize,
    height: usize,
    /// The inputs of the vertical stack of each layer: image × height × width × channels; the first are the images.
    vertical: Vec<Vec<f32>>,
    /// What the vertical stack of each layer says of the row above, before its gate: image × width × 2 channels.
    above: Vec<Vec<f32>>,
    /// The inputs of the horizontal stack of each layer but the first, in this row: image × width × channels.
    horizontal: Vec<Vec<f32>>,
    /// The row at hand.
    row: usize,
    /// The channels of the images, with that of ones.
    inputs: usize,
}

impl State {
    fn new(net: &PixelCnnNetwork, images: usize) -> Self {
        let (height, width) = (net.shape.height, net.shape.width);
        let vertical =
            net.layers.iter().map(|layer| vec![0.0; images * height * width * layer.inputs]);
        let mut vertical: Vec<Vec<f32>> = vertical.collect();
        let inputs = net.layers[0].inputs;
        vertical[0].iter_mut().skip(inputs - 1).step_by(inputs).for_each(|one| *one = 1.0);
        let n = net.layers.len();
        let above = vec![vec![0.0; images * width * 2 * net.channels]; n];
        let horizontal = vec![vec![0.0; images * width * net.channels]; n];
        Self { images, width, height, vertical, above, horizontal, row: 0, inputs }
    }

    fn set(&mut self, image: usize, (row, column, channel): (usize, usize, usize), value: f32) {
        let pixel = (image * self.height + row) * self.width + column;
        self.vertical[0][pixel * self.inputs + channel] = value;
    }

    /// The channels of a pixel before this one, as inputs.
    fn earlier(&self, row: usize, column: usize, channel: usize) -> Tensor<2> {
        let n = channel.max(1);
        let mut values = Vec::with_capacity(self.images * n);
        for image in 0..self.images {
            let pixel = (image * self.height + row) * self.width + column;
            values.extend_from_slice(&self.vertical[0][pixel * self.inputs..][..n]);
        }
        tensor(values, [self.images, n], &Device::flex())
    }

    /// The last layer at a pixel of the row at hand.
    fn pixel(&mut self, net: &PixelCnnNetwork, weights: &Weights, column: usize) -> Tensor<2> {
        let c = net.channels;
        let device = Device::flex();
        let mut last = Vec::new();
        for (at, layer) in net.layers.iter().enumerate() {
            let (offsets, a) = (layer.offsets(), layer.inputs);
            let size = offsets.len() * a + 2 * c;
            let mut context = vec![0.0f32; self.images * size];
            for (image, out) in context.chunks_exact_mut(size).enumerate() {
                let line = match at {
                    0 => &self.vertical[0][(image * self.height + self.row) * self.width * a..],
                    _ => &self.horizontal[at][image * self.width * a..],
                };
                for (place, &by) in offsets.iter().enumerate() {
                    if by <= column {
                        out[place * a..][..a].copy_from_slice(&line[(column - by) * a..][..a]);
                    }
                }
                let above = &self.above[at][(image * self.width + column) * 2 * c..][..2 * c];
                out[size - 2 * c..].copy_from_slice(above);
            }
            let context = tensor(context, [self.images, size], &device);
            let gated = gate(layer.horizontal.forward(weights, context));
            let mut out = numbers(layer.out.forward(weights, gated));
            if !layer.first {
                for (image, out) in out.chunks_exact_mut(c).enumerate() {
                    let before = &self.horizontal[at][(image * self.width + column) * c..][..c];
                    out.iter_mut().zip(before).for_each(|(out, x)| *out += x);
                }
            }
            if let Some(next) = self.horizontal.get_mut(at + 1) {
                for (image, out) in out.chunks_exact(c).enumerate() {
                    next[(image * self.width + column) * c..][..c].copy_from_slice(out);
                }
            }
            last = out;
        }
        tensor(last, [self.images, c], &device)
    }

    /// Computes the vertical stacks of a row that is drawn, for the next one.
    fn end_row(
        &mut self,
        net: &PixelCnnNetwork,
        weights: &Weights,
        windows: &[Tensor<2>],
        row: usize,
    ) {
        self.row = row + 1;
        if self.row == self.height {
            return;
        }
        let (c, device) = (net.channels, Device::flex());
        for (at, layer) in net.layers.iter().enumerate() {
            let (k, a) = (layer.kernel, layer.inputs);
            let half = k / 2;
            let size = (half + 1) * k * a;
            let mut values = vec![0.0f32; self.images * self.width * size];
            for (pixel, out) in values.chunks_exact_mut(size).enumerate() {
                let (image, column) = (pixel / self.width, pixel % self.width);
                // Columns of the window that lie on the image.
                let from = half.saturating_sub(column);
                let to = (self.width + half - column).min(k);
                for y in 0..=half {
                    let Some(line) = (row + y).checked_sub(half) else { continue };
                    let first = (image * self.height + line) * self.width + column + from - half;
                    let n = (to - from) * a;
                    out[(y * k + from) * a..][..n]
                        .copy_from_slice(&self.vertical[at][first * a..][..n]);
                }
            }
            let x = tensor(values, [self.images * self.width, size], &device);
            let bias = Some(weights.flat(layer.vertical.1));
            let found = linear(x, windows[at].clone(), bias, Activation::Identity);
            if at + 1 < net.layers.len() {
                let next = numbers(gate(found.clone()));
                for (image, line) in next.chunks_exact(self.width * c).enumerate() {
                    let first = (image * self.height + row) * self.width * c;
                    self.vertical[at + 1][first..][..line.len()].copy_from_slice(line);
                }
            }
            self.above[at] = numbers(found);
        }
    }
}
