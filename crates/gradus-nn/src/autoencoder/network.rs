//! The encoder and the decoder of an autoencoder.

use crate::images::check_size;
use crate::layers::pool::{double, max_pool};
use crate::layers::{Activation, Conv2d, Linear, Norm, Pass, Window};
use crate::mlp::{MlpArchitecture, MlpNetwork};
use crate::supervised::Network as _;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use gradus_data::ImageShape;
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of an autoencoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoencoderArchitecture {
    /// The number of features.
    pub inputs: usize,
    /// The length of a code.
    pub code: usize,
    /// The layers between them.
    pub coding: Coding,
    /// The activation function.
    pub activation: Activation,
}

/// The layers between features and code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    /// Hidden layers with so many units; the decoder has them in the other order.
    Dense {
        /// The units of each.
        hidden: Vec<usize>,
    },
    /// Convolutions, behind each of which images are halved.
    Convolutional {
        /// The size of the images.
        shape: ImageShape,
        /// The channels of each.
        channels: Vec<usize>,
        /// Height and width of the windows.
        kernel: usize,
    },
}

/// An encoder and a decoder.
#[derive(Clone, Debug)]
pub struct AutoencoderNetwork {
    layers: Layers,
    activation: Activation,
}

#[derive(Clone, Debug)]
enum Layers {
    Dense { encoder: MlpNetwork, decoder: MlpNetwork },
    Convolutional(Box<Convolutional>),
}

#[derive(Clone, Debug)]
struct Convolutional {
    shape: ImageShape,
    /// The convolutions of the encoder, each with the size of its images if they are halved behind it.
    down: Vec<(Conv2d, Option<(usize, usize)>)>,
    /// From the last channels to the code, and back.
    code: (Linear, Linear),
    /// Height, width and channels before the code.
    last: [usize; 3],
    /// The convolutions of the decoder, each with the size that images have before it.
    up: Vec<(Conv2d, Option<(usize, usize)>)>,
}

/// The most weights of a layer: a larger one is an error in a file.
const MOST: usize = 1 << 32;

impl AutoencoderNetwork {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn new(architecture: &AutoencoderArchitecture, layout: &mut Layout) -> Result<Self> {
        Self::with_outputs(architecture, architecture.code, layout)
    }

    /// The same with another number of outputs of the encoder than numbers of a code.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub(crate) fn with_outputs(
        architecture: &AutoencoderArchitecture,
        outputs: usize,
        layout: &mut Layout,
    ) -> Result<Self> {
        let AutoencoderArchitecture { inputs, code, coding, activation } = architecture;
        let (inputs, code, activation) = (*inputs, *code, *activation);
        let layers = match coding {
            Coding::Dense { hidden } => {
                let perceptron = |inputs: usize, hidden: Vec<usize>, outputs: usize| {
                    let (norm, dropout) = (Norm::None, 0.0);
                    MlpArchitecture { inputs, hidden, outputs, activation, norm, dropout }
                };
                let down = perceptron(inputs, hidden.clone(), outputs);
                let up = perceptron(code, hidden.iter().rev().copied().collect(), inputs);
                let encoder = layout.within("encoder", |layout| MlpNetwork::new(&down, layout))?;
                let decoder = layout.within("decoder", |layout| MlpNetwork::new(&up, layout))?;
                Layers::Dense { encoder, decoder }
            }
            Coding::Convolutional { shape, channels, kernel } => {
                if check_size(*shape)? != inputs {
                    let text = format!("images of {shape} do not have {inputs} pixels");
                    return Err(Error::data(text));
                }
                let made = convolutional(*shape, channels, *kernel, (code, outputs), layout)?;
                Layers::Convolutional(Box::new(made))
            }
        };
        Ok(Self { layers, activation })
    }

    /// The codes of standardised features.
    ///
    /// # Shapes
    /// `n × features` to `n × code`.
    pub fn encode(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match &self.layers {
            Layers::Dense { encoder, .. } => encoder.forward(weights, x, pass),
            Layers::Convolutional(layers) => {
                let n = x.dims()[0];
                let ImageShape { height, width, channels } = layers.shape;
                let mut x = x.reshape([n, height, width, channels]);
                for (conv, halved) in &layers.down {
                    x = conv.forward_activated(weights, x, self.activation);
                    if halved.is_some() {
                        x = max_pool(x);
                    }
                }
                let [height, width, channels] = layers.last;
                // Channels first, as PyTorch flattens images.
                let x = x.permute([0, 3, 1, 2]).reshape([n, channels * height * width]);
                layers.code.0.forward(weights, x)
            }
        }
    }

    /// The standardised features of codes.
    ///
    /// # Shapes
    /// `n × code` to `n × features`.
    pub fn decode(&self, weights: &Weights, code: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match &self.layers {
            Layers::Dense { decoder, .. } => decoder.forward(weights, code, pass),
            Layers::Convolutional(layers) => {
                let n = code.dims()[0];
                let [height, width, channels] = layers.last;
                let x = layers.code.1.forward_activated(weights, code, self.activation);
                let mut x = x.reshape([n, channels, height, width]).permute([0, 2, 3, 1]);
                for (at, (conv, size)) in layers.up.iter().enumerate() {
                    if let Some(size) = size {
                        x = double(x, *size);
                    }
                    x = if at + 1 == layers.up.len() {
                        conv.forward(weights, x)
                    } else {
                        conv.forward_activated(weights, x, self.activation)
                    };
                }
                x.reshape([n, layers.shape.len()])
            }
        }
    }
}

fn convolutional(
    shape: ImageShape,
    channels: &[usize],
    kernel: usize,
    (code, outputs): (usize, usize),
    layout: &mut Layout,
) -> Result<Convolutional> {
    let sizes = [&[shape.channels][..], channels].concat();
    let product = |pair: &[usize]| pair[0].saturating_mul(pair[1]);
    let area = kernel.saturating_mul(kernel);
    let possible = !channels.is_empty()
        && sizes.len() <= 65
        && sizes.iter().all(|&size| size > 0)
        && sizes.windows(2).all(|pair| product(pair).saturating_mul(area) <= MOST);
    if !possible || kernel.is_multiple_of(2) {
        let text = format!(
            "convolutions of {channels:?} channels with windows of {kernel} are not possible"
        );
        return Err(Error::data(text));
    }
    let window = Window::same(kernel);
    let conv = |layout: &mut Layout, at: usize, (inputs, outputs): (usize, usize)| {
        let init = Init::he(inputs * window.size * window.size);
        Conv2d::new(layout, &format!("conv.{at}"), (inputs, outputs), window, init, true)
    };
    let (mut height, mut width) = (shape.height, shape.width);
    let down: Vec<_> = layout.within("encoder", |layout| {
        let pairs = sizes.windows(2).enumerate();
        let made = pairs.map(|(at, pair)| {
            let layer = conv(layout, at, (pair[0], pair[1]));
            // An image that is halved has two pixels at least on each side.
            let halved = (height >= 4 && width >= 4).then_some((height, width));
            if halved.is_some() {
                (height, width) = (height / 2, width / 2);
            }
            (layer, halved)
        });
        made.collect()
    });
    let last = [height, width, sizes[sizes.len() - 1]];
    let flat = last.iter().try_fold(1usize, |product, side| product.checked_mul(*side));
    let flat = flat.filter(|flat| code > 0 && flat.saturating_mul(code.max(outputs)) <= MOST);
    let flat =
        flat.ok_or_else(|| Error::data(format!("a code of {code} numbers is not possible")))?;
    let encode = layout.within("encoder", |layout| {
        Linear::new(layout, "code", (flat, outputs), Init::fan_in(flat), true)
    });
    let decode = layout.within("decoder", |layout| {
        Linear::new(layout, "code", (code, flat), Init::he(code), true)
    });
    let up = layout.within("decoder", |layout| {
        let pairs = sizes.windows(2).zip(&down).rev().enumerate();
        let made =
            pairs.map(|(at, (pair, (_, halved)))| (conv(layout, at, (pair[1], pair[0])), *halved));
        made.collect()
    });
    Ok(Convolutional { shape, down, code: (encode, decode), last, up })
}
