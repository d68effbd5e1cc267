//! The generator and the discriminator.

use crate::device::is_cpu;
use crate::images::check_size;
use crate::layers::pool::double;
use crate::layers::{Activation, Conv2d, GroupNorm, Linear, Norm, Pass, Window};
use crate::mlp::{MlpArchitecture, MlpNetwork};
use crate::supervised::Network as _;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use gradus_data::ImageShape;
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of both networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GanArchitecture {
    /// The number of features.
    pub inputs: usize,
    /// The length of a code.
    pub latent: usize,
    /// The layers.
    pub layers: GanLayers,
}

/// The layers of both networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GanLayers {
    /// Hidden layers with so many units; the generator has them in the other order.
    Dense {
        /// The units of each.
        hidden: Vec<usize>,
    },
    /// Convolutions, between which images are halved by the discriminator and doubled by the generator.
    Convolutional {
        /// The size of the images.
        shape: ImageShape,
        /// The channels at each size, from the largest images to the smallest.
        channels: Vec<usize>,
    },
}

/// The most weights of a layer: a larger one is an error in a file.
const MOST: usize = 1 << 32;

/// A network that makes data of codes.
#[derive(Clone, Debug)]
pub struct Generator {
    layers: Make,
}

#[derive(Clone, Debug)]
enum Make {
    Dense(MlpNetwork),
    Convolutional(Box<Up>),
}

/// A convolution with what follows it, and the size that images are doubled to before it.
type UpConv = (Conv2d, GroupNorm, Option<(usize, usize)>);

#[derive(Clone, Debug)]
struct Up {
    shape: ImageShape,
    code: Linear,
    /// Height, width and channels behind the code.
    first: [usize; 3],
    norm: GroupNorm,
    convs: Vec<UpConv>,
    output: Conv2d,
}

/// A network that tells data from what the generator makes: a score, above 0 for data.
#[derive(Clone, Debug)]
pub struct Discriminator {
    layers: Tell,
}

#[derive(Clone, Debug)]
enum Tell {
    Dense(MlpNetwork),
    Convolutional(Box<Down>),
}

#[derive(Clone, Debug)]
struct Down {
    shape: ImageShape,
    convs: Vec<Conv2d>,
    score: Linear,
}

/// The size of the images at each number of channels: halved while both sides keep 4 pixels.
fn sizes(shape: ImageShape, levels: usize) -> Vec<(usize, usize)> {
    let mut size = (shape.height, shape.width);
    let next = |_| {
        let this = size;
        if size.0 >= 8 && size.1 >= 8 {
            size = (size.0 / 2, size.1 / 2);
        }
        this
    };
    (0..levels).map(next).collect()
}

impl GanArchitecture {
    /// Checks the sizes.
    ///
    /// # Errors
    /// If they are not possible.
    fn check(&self) -> Result<()> {
        let Self { inputs, latent, layers } = self;
        let wrong = |text: String| Err(Error::data(format!("{text} is not possible")));
        if *latent == 0 || *latent > 1 << 20 || *inputs == 0 {
            return wrong(format!("a code of {latent} numbers for {inputs} features"));
        }
        let GanLayers::Convolutional { shape, channels } = layers else { return Ok(()) };
        if check_size(*shape)? != *inputs {
            return Err(Error::data(format!("images of {shape} do not have {inputs} pixels")));
        }
        let fits = |&c: &usize| c > 0 && c <= 1 << 14;
        if channels.is_empty() || channels.len() > 16 || !channels.iter().all(fits) {
            return wrong(format!("a network of {channels:?} channels"));
        }
        let (rows, columns) = sizes(*shape, channels.len())[channels.len() - 1];
        let flat = rows.saturating_mul(columns).saturating_mul(channels[channels.len() - 1]);
        if flat.saturating_mul(*latent) > MOST {
            return wrong(format!("a code of {latent} numbers for {channels:?} channels"));
        }
        Ok(())
    }
}

fn perceptron(inputs: usize, hidden: Vec<usize>, outputs: usize) -> MlpArchitecture {
    let (activation, norm, dropout) = (Activation::Silu, Norm::None, 0.0);
    MlpArchitecture { inputs, hidden, outputs, activation, norm, dropout }
}

impl Generator {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes are not possible.
    pub fn new(architecture: &GanArchitecture, layout: &mut Layout) -> Result<Self> {
        architecture.check()?;
        let GanArchitecture { inputs, latent, layers } = architecture;
        let layers = match layers {
            GanLayers::Dense { hidden } => {
                let hidden = hidden.iter().rev().copied().collect();
                Make::Dense(MlpNetwork::new(&perceptron(*latent, hidden, *inputs), layout)?)
            }
            GanLayers::Convolutional { shape, channels } => {
                let sizes = sizes(*shape, channels.len());
                let last = channels.len() - 1;
                let ((rows, columns), c) = (sizes[last], channels[last]);
                let code = Linear::new(
                    layout,
                    "code",
                    (*latent, rows * columns * c),
                    Init::he(*latent),
                    true,
                );
                let norm = GroupNorm::new(layout, "norm", c);
                let convs = (0..last).rev().map(|at| {
                    let (from, to) = (channels[at + 1], channels[at]);
                    let doubled = (sizes[at] != sizes[at + 1]).then_some(sizes[at]);
                    layout.within(format!("up.{at}"), |layout| {
                        let (window, init) = (Window::same(3), Init::he(9 * from));
                        let conv = Conv2d::new(layout, "conv", (from, to), window, init, true);
                        (conv, GroupNorm::new(layout, "norm", to), doubled)
                    })
                });
                let convs = convs.collect();
                let to_image = (channels[0], shape.channels);
                let init = Init::fan_in(9 * channels[0]);
                let output = Conv2d::new(layout, "output", to_image, Window::same(3), init, true);
                let (shape, first) = (*shape, [rows, columns, c]);
                Make::Convolutional(Box::new(Up { shape, code, first, norm, convs, output }))
            }
        };
        Ok(Self { layers })
    }

    /// The scaled samples of codes.
    ///
    /// # Shapes
    /// `n × latent` to `n × features`.
    pub fn forward(&self, weights: &Weights, codes: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match &self.layers {
            Make::Dense(network) => network.forward(weights, codes, pass),
            Make::Convolutional(layers) => {
                let n = codes.dims()[0];
                // The product of a single row adds up in another order than that of several.
                if n == 1 && is_cpu(&codes.device()) {
                    let two = Tensor::cat(vec![codes.clone(), codes], 0);
                    return self.forward(weights, two, pass).narrow(0, 0, 1);
                }
                let [height, width, channels] = layers.first;
                let x = layers.code.forward(weights, codes);
                let x = x.reshape([n, height, width, channels]);
                let mut x = layers.norm.forward_activated(weights, x, Activation::Silu);
                for (conv, norm, doubled) in &layers.convs {
                    if let Some(size) = doubled {
                        x = double(x, *size);
                    }
                    x = norm.forward_activated(weights, conv.forward(weights, x), Activation::Silu);
                }
                // Pixels are from −1 to 1.
                let x = layers.output.forward_activated(weights, x, Activation::Tanh);
                x.reshape([n, layers.shape.len()])
            }
        }
    }
}

impl Discriminator {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes are not possible.
    pub fn new(architecture: &GanArchitecture, layout: &mut Layout) -> Result<Self> {
        architecture.check()?;
        let layers = match &architecture.layers {
            GanLayers::Dense { hidden } => {
                let network = perceptron(architecture.inputs, hidden.clone(), 1);
                Tell::Dense(MlpNetwork::new(&network, layout)?)
            }
            GanLayers::Convolutional { shape, channels } => {
                let sizes = sizes(*shape, channels.len());
                let (mut from, mut before) = (shape.channels, sizes[0]);
                let convs = channels.iter().zip(&sizes).enumerate().map(|(at, (&to, &size))| {
                    // Windows that overlap look at every pixel, wherever an image is halved.
                    let halved = size != before;
                    let window = match halved {
                        true => Window { size: 4, stride: 2, padding: 1 },
                        false => Window::same(3),
                    };
                    let init = Init::he(window.size * window.size * from);
                    let name = format!("conv.{at}");
                    let conv = Conv2d::new(layout, &name, (from, to), window, init, true);
                    (from, before) = (to, size);
                    conv
                });
                let convs = convs.collect();
                let (rows, columns) = sizes[sizes.len() - 1];
                let flat = rows * columns * from;
                let score = Linear::new(layout, "score", (flat, 1), Init::fan_in(flat), true);
                Tell::Convolutional(Box::new(Down { shape: *shape, convs, score }))
            }
        };
        Ok(Self { layers })
    }

    /// The scores of scaled samples.
    ///
    /// # Shapes
    /// `n × features` to `n × 1`.
    pub fn forward(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match &self.layers {
            Tell::Dense(network) => network.forward(weights, x, pass),
            Tell::Convolutional(layers) => {
                let n = x.dims()[0];
                let ImageShape { height, width, channels } = layers.shape;
                let mut x = x.reshape([n, height, width, channels]);
                for conv in &layers.convs {
                    x = conv.forward_activated(weights, x, Activation::Silu);
                }
                let [_, height, width, channels] = x.dims();
                layers.score.forward(weights, x.reshape([n, height * width * channels]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_halved_to_4_pixels_at_least() {
        let shape = |height, width| ImageShape { height, width, channels: 1 };
        assert_eq!(sizes(shape(28, 28), 3), [(28, 28), (14, 14), (7, 7)]);
        assert_eq!(sizes(shape(28, 28), 4), [(28, 28), (14, 14), (7, 7), (7, 7)]);
        assert_eq!(sizes(shape(9, 7), 2), [(9, 7), (9, 7)]);
        // A window of 4 with a margin of 1 halves as these sizes do, odd ones as well.
        for size in 8..40 {
            assert_eq!(Window { size: 4, stride: 2, padding: 1 }.places(size), size / 2);
        }
    }
}
