//! The layers of a PixelCNN: two stacks of gated convolutions that see earlier pixels only.
//!
//! The vertical stack sees all rows above a pixel, the horizontal stack the pixels to its left and what the vertical stack knows of the
//! row above; so no earlier pixel is out of sight (there is no blind spot) and none but earlier ones is seen.

use crate::images::check_size;
use crate::layers::{Activation, Linear, Pass, Window, dropout};
use crate::ops::{causal_context, conv2d, gate, gelu};
use crate::weights::{Init, Layout, Role, WeightId, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::{Error, Result};
use gradus_data::ImageShape;
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of a PixelCNN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PixelCnnArchitecture {
    /// The size of the images.
    pub shape: ImageShape,
    /// The number of levels of a pixel.
    pub levels: usize,
    /// The channels of a layer.
    pub channels: usize,
    /// The number of layers.
    pub depth: usize,
    /// Height and width of the windows of the first layer, and of the others.
    pub kernels: (usize, usize),
    /// The probability of dropout behind each gate.
    pub dropout: f64,
}

/// One layer of both stacks.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// Inputs of both stacks.
    pub inputs: usize,
    pub kernel: usize,
    /// The convolution of the vertical stack: weights of 2 channels × inputs × kernel × kernel, and a bias.
    pub vertical: (WeightId, WeightId),
    /// From the context of a pixel to both halves of the gate of the horizontal stack.
    pub horizontal: Linear,
    /// Behind the gate.
    pub out: Linear,
    /// Whether the pixel itself is out of sight, and nothing is added to.
    pub first: bool,
}

impl Layer {
    /// How far to the left the pixels are that the horizontal stack sees.
    pub fn offsets(&self) -> Vec<usize> {
        (usize::from(self.first)..=self.kernel / 2).rev().collect()
    }
}

/// The outputs of one channel of the pixels.
#[derive(Clone, Debug)]
struct Head {
    hidden: Linear,
    /// What the earlier channels of the same pixel add.
    earlier: Option<Linear>,
    out: Linear,
}

/// A PixelCNN.
#[derive(Clone, Debug)]
pub struct PixelCnnNetwork {
    pub(super) shape: ImageShape,
    pub(super) levels: usize,
    pub(super) channels: usize,
    dropout: f64,
    pub(super) layers: Vec<Layer>,
    heads: Vec<Head>,
}

/// The most weights of a layer: a larger one is an error in a file.
const MOST: usize = 1 << 30;

impl PixelCnnNetwork {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes are not possible.
    pub fn new(architecture: &PixelCnnArchitecture, layout: &mut Layout) -> Result<Self> {
        let PixelCnnArchitecture { shape, levels, channels, depth, kernels, dropout } =
            *architecture;
        check_size(shape)?;
        let widest = kernels.0.max(kernels.1);
        let size = widest
            .checked_mul(widest)
            .and_then(|n| n.checked_mul(channels)?.checked_mul(channels)?.checked_mul(8));
        let possible = size.is_some_and(|size| (1..=MOST).contains(&size))
            && (1..=1024).contains(&depth)
            && (2..=65_536).contains(&levels)
            && matches!(shape.channels, 1 | 3)
            && !kernels.0.is_multiple_of(2)
            && !kernels.1.is_multiple_of(2)
            && (0.0..1.0).contains(&dropout);
        if !possible {
            let text = format!(
                "a PixelCNN of {depth} layers with {channels} channels, windows of {kernels:?} and {levels} levels is not possible"
            );
            return Err(Error::data(text));
        }
        let layers = (0..depth).map(|at| {
            let first = at == 0;
            // A channel of ones tells where the image ends.
            let inputs = if first { shape.channels + 1 } else { channels };
            let kernel = if first { kernels.0 } else { kernels.1 };
            layout.within(format!("layers.{at}"), |layout| {
                let seen = (kernel / 2 + 1) * kernel * inputs;
                let init = Init::Normal(1.0 / (seen as f32).sqrt());
                let vertical = layout.within("vertical", |layout| {
                    let shape = [2 * channels, inputs, kernel, kernel];
                    let weight = layout.add("weight", &shape, init, Role::Decayed);
                    let bias =
                        layout.add("bias", &[2 * channels], Init::Constant(0.0), Role::Plain);
                    (weight, bias)
                });
                let offsets = kernel / 2 + usize::from(!first);
                let context = offsets * inputs + 2 * channels;
                let init = Init::Normal(1.0 / (context as f32).sqrt());
                let sizes = (context, 2 * channels);
                let horizontal = Linear::new(layout, "horizontal", sizes, init, true);
                let init = Init::fan_in(channels);
                let out = Linear::new(layout, "out", (channels, channels), init, true);
                Layer { inputs, kernel, vertical, horizontal, out, first }
            })
        });
        let layers = layers.collect();
        let wide = 2 * channels;
        let heads = (0..shape.channels).map(|at| {
            layout.within(format!("heads.{at}"), |layout| {
                let hidden =
                    Linear::new(layout, "hidden", (channels, wide), Init::he(channels), true);
                let earlier = (at > 0).then(|| {
                    let init = Init::Normal(0.5);
                    Linear::new(layout, "earlier", (at, wide), init, false)
                });
                let out = Linear::new(layout, "out", (wide, levels), Init::fan_in(wide), true);
                Head { hidden, earlier, out }
            })
        });
        let heads = heads.collect();
        Ok(Self { shape, levels, channels, dropout, layers, heads })
    }

    /// Levels of images as inputs: from −1 to 1, and a channel of ones.
    ///
    /// # Shapes
    /// `n × pixels × channels` to `n × height × width × (channels + 1)`.
    pub(super) fn inputs(&self, levels: &[u32], device: &Device) -> Tensor<4> {
        let ImageShape { height, width, channels } = self.shape;
        let n = levels.len() / self.shape.len();
        let mut values = Vec::with_capacity(n * height * width * (channels + 1));
        for pixel in levels.chunks_exact(channels) {
            values.extend(pixel.iter().map(|level| self.input(*level)));
            values.push(1.0);
        }
        crate::device::tensor(values, [n, height, width, channels + 1], device)
    }

    /// The input of a level.
    pub(super) fn input(&self, level: u32) -> f32 {
        2.0 * level as f32 / (self.levels - 1) as f32 - 1.0
    }

    /// The scores of the levels of each pixel given those before it, for each channel.
    ///
    /// # Shapes
    /// Inputs of `n × height × width × (channels + 1)` to `(n height width) × levels` for each channel.
    pub fn forward(&self, weights: &Weights, x: Tensor<4>, pass: &Pass) -> Vec<Tensor<2>> {
        let [n, height, width, _] = x.dims();
        let (pixels, c) = (n * height * width, self.channels);
        let (mut vertical, mut horizontal) = (x.clone(), x.clone());
        let last = self.layers.len() - 1;
        for (at, layer) in self.layers.iter().enumerate() {
            let k = layer.kernel;
            let weight = weights.get(layer.vertical.0, [2 * c, layer.inputs, k, k]);
            let weight = weight.clone() * rows_above(k, &weight.device());
            let bias = Some(weights.flat(layer.vertical.1));
            let window = Window::same(k);
            let above = conv2d(vertical, weight, bias, window, Activation::Identity);
            let context = causal_context(horizontal.clone(), above.clone(), &layer.offsets());
            let gated = gate(layer.horizontal.forward(weights, context));
            let out = layer.out.forward(weights, dropout(gated, self.dropout, pass));
            horizontal = if layer.first {
                out.reshape([n, height, width, c])
            } else {
                horizontal + out.reshape([n, height, width, c])
            };
            vertical = if at == last {
                // Nothing is above it.
                x.clone()
            } else {
                gate(above.reshape([pixels, 2 * c])).reshape([n, height, width, c])
            };
        }
        let h = horizontal.reshape([pixels, c]);
        let scores = |channel: usize| {
            let earlier = x.clone().narrow(3, 0, channel.max(1)).reshape([pixels, channel.max(1)]);
            self.scores(weights, h.clone(), earlier, channel)
        };
        (0..self.heads.len()).map(scores).collect()
    }

    /// The scores of the levels of one channel, from the last layer and the earlier channels of the same pixels.
    pub(super) fn scores(
        &self,
        weights: &Weights,
        h: Tensor<2>,
        earlier: Tensor<2>,
        channel: usize,
    ) -> Tensor<2> {
        let head = &self.heads[channel];
        let mut hidden = head.hidden.forward(weights, gelu(h));
        if let Some(more) = &head.earlier {
            hidden = hidden + more.forward(weights, earlier);
        }
        head.out.forward(weights, gelu(hidden))
    }

    /// The number of channels of the pixels.
    pub(super) fn n_channels(&self) -> usize {
        self.heads.len()
    }
}

/// 1 at the rows of a window up to its middle, 0 below.
fn rows_above(kernel: usize, device: &Device) -> Tensor<4> {
    let seen = (kernel / 2 + 1) * kernel;
    let values = (0..kernel * kernel).map(|at| f32::from(u8::from(at < seen))).collect();
    crate::device::tensor(values, [1, 1, kernel, kernel], device)
}
