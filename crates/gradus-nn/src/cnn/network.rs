//! The layers of a convolutional network.

use super::CnnKind;
use crate::images::{Augment, augment, check_size};
use crate::layers::pool::{max_pool, mean_pool};
use crate::layers::{
    Activation, BatchNorm, Conv2d, LayerNorm, Linear, Norm, Pass, Window, dropout,
};
use crate::supervised::Network;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use gradus_data::ImageShape;
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of a convolutional network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CnnArchitecture {
    /// The size of the images.
    pub shape: ImageShape,
    /// The number of classes.
    pub outputs: usize,
    /// Plain or residual.
    pub kind: CnnKind,
    /// The channels of each stage.
    pub channels: Vec<usize>,
    /// Convolutions (plain) or blocks of two (residual) in a stage.
    pub depth: usize,
    /// Height and width of the windows.
    pub kernel: usize,
    /// The normalisation behind each convolution.
    pub norm: Norm,
    /// The activation function.
    pub activation: Activation,
    /// The probability of dropout before the last layer.
    pub dropout: f64,
    /// How images are changed while the network learns.
    pub augment: Augment,
}

/// A convolution and its normalisation.
#[derive(Clone, Debug)]
struct Unit {
    conv: Conv2d,
    norm: Normalisation,
}

#[derive(Clone, Debug)]
enum Normalisation {
    None,
    Batch(BatchNorm),
    Layer(LayerNorm),
}

impl Unit {
    fn new(
        layout: &mut Layout,
        (conv, norm): (&str, &str),
        (inputs, outputs): (usize, usize),
        window: Window,
        kind: Norm,
    ) -> Self {
        let init = Init::he(inputs * window.size * window.size);
        // A normalisation has a bias of its own.
        let bias = kind == Norm::None;
        let conv = Conv2d::new(layout, conv, (inputs, outputs), window, init, bias);
        let norm = match kind {
            Norm::None => Normalisation::None,
            Norm::Batch => Normalisation::Batch(BatchNorm::new(layout, norm, outputs)),
            Norm::Layer => Normalisation::Layer(LayerNorm::new(layout, norm, outputs)),
        };
        Self { conv, norm }
    }

    fn forward(
        &self,
        weights: &Weights,
        x: Tensor<4>,
        activation: Activation,
        pass: &Pass,
    ) -> Tensor<4> {
        if let Normalisation::None = self.norm {
            return self.conv.forward_activated(weights, x, activation);
        }
        let y = self.conv.forward(weights, x);
        let [n, height, width, channels] = y.dims();
        let rows = y.reshape([n * height * width, channels]);
        let y = match &self.norm {
            Normalisation::None => rows,
            Normalisation::Batch(norm) => norm.forward_activated(weights, rows, activation, pass),
            Normalisation::Layer(norm) => activation.apply(norm.forward(weights, rows)),
        };
        y.reshape([n, height, width, channels])
    }
}

/// A part between two poolings.
#[derive(Clone, Debug)]
enum Part {
    Plain(Unit),
    Residual { first: Box<Unit>, second: Box<Unit>, shortcut: Option<Box<Unit>> },
    Pool,
}

/// A convolutional network.
#[derive(Clone, Debug)]
pub struct CnnNetwork {
    shape: ImageShape,
    parts: Vec<Part>,
    output: Linear,
    activation: Activation,
    dropout: f64,
    augment: Augment,
}

/// The most weights of a layer: a larger one is an error in a file.
const MOST: usize = 1 << 32;

impl Network for CnnNetwork {
    type Architecture = CnnArchitecture;

    fn new(architecture: &CnnArchitecture, layout: &mut Layout) -> Result<Self> {
        let CnnArchitecture { shape, outputs, channels, depth, kernel, .. } = architecture;
        check_size(*shape)?;
        let sizes = [&[shape.channels][..], channels, &[*outputs]].concat();
        let product = |pair: &[usize]| pair[0].saturating_mul(pair[1]);
        let areas = kernel.saturating_mul(*kernel);
        let possible = sizes.len() <= 66
            && sizes.iter().all(|&size| size > 0)
            && sizes.windows(2).all(|pair| product(pair).saturating_mul(areas) <= MOST)
            && sizes.iter().all(|&size| product(&[size, size]).saturating_mul(areas) <= MOST);
        if channels.is_empty() || !possible {
            let reason = format!("stages of {channels:?} channels are not possible");
            return Err(Error::data(reason));
        }
        if kernel % 2 == 0 || *depth == 0 || *depth > 64 {
            let reason = format!("a kernel of {kernel} and a depth of {depth} are not possible");
            return Err(Error::data(reason));
        }
        if !(0.0..1.0).contains(&architecture.dropout) {
            let reason = format!("a dropout of {} is not possible", architecture.dropout);
            return Err(Error::data(reason));
        }
        let parts = parts(architecture, layout);
        let last = channels[channels.len() - 1];
        let output = Linear::new(layout, "fc", (last, *outputs), Init::fan_in(last), true);
        let CnnArchitecture { shape, activation, dropout, augment, .. } = *architecture;
        Ok(Self { shape, parts, output, activation, dropout, augment })
    }

    fn shape(architecture: &CnnArchitecture) -> (usize, usize) {
        (architecture.shape.len(), architecture.outputs)
    }

    fn forward(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        self.output.forward(weights, dropout(self.pooled(weights, x, pass), self.dropout, pass))
    }

    fn hidden(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Option<Tensor<2>> {
        Some(self.pooled(weights, x, pass))
    }

    fn augment(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        augment(x, self.shape, self.augment, pass)
    }

    fn summary(architecture: &CnnArchitecture) -> Vec<(&'static str, String)> {
        let CnnArchitecture { shape, channels, depth, kind, kernel, .. } = architecture;
        let channels: Vec<String> = channels.iter().map(ToString::to_string).collect();
        let part = match kind {
            CnnKind::Plain => "convolution",
            CnnKind::Residual => "residual block",
        };
        let plural = if *depth == 1 { "" } else { "s" };
        vec![
            ("images", shape.to_string()),
            ("stages", format!("{} channels", channels.join(" → "))),
            ("in each stage", format!("{depth} {part}{plural} of {kernel} × {kernel}")),
        ]
    }
}

impl CnnNetwork {
    /// The mean of the last channels over an image.
    ///
    /// # Shapes
    /// `n × pixels` to `n × channels`.
    fn pooled(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let n = x.dims()[0];
        let ImageShape { height, width, channels } = self.shape;
        let mut x = x.reshape([n, height, width, channels]);
        for part in &self.parts {
            x = match part {
                Part::Pool => max_pool(x),
                Part::Plain(unit) => unit.forward(weights, x, self.activation, pass),
                Part::Residual { first, second, shortcut } => {
                    let y = first.forward(weights, x.clone(), self.activation, pass);
                    let y = second.forward(weights, y, Activation::Identity, pass);
                    let x = match shortcut {
                        Some(shortcut) => shortcut.forward(weights, x, Activation::Identity, pass),
                        None => x,
                    };
                    self.activation.apply(x + y)
                }
            };
        }
        mean_pool(x)
    }
}

/// The layers between the pixels and the mean over an image. Images are halved while both sides have four pixels at least.
fn parts(architecture: &CnnArchitecture, layout: &mut Layout) -> Vec<Part> {
    let CnnArchitecture { shape, kind, channels, depth, kernel, norm, .. } = architecture;
    let (mut height, mut width, mut inputs) = (shape.height, shape.width, shape.channels);
    let window = Window::same(*kernel);
    let mut parts = Vec::new();
    let mut pool = |parts: &mut Vec<Part>| {
        if height >= 4 && width >= 4 {
            (height, width) = (height / 2, width / 2);
            parts.push(Part::Pool);
        }
    };
    match kind {
        CnnKind::Plain => {
            for (stage, &channels) in channels.iter().enumerate() {
                if stage > 0 {
                    pool(&mut parts);
                }
                for at in 0..*depth {
                    let unit = layout.within(format!("features.{stage}.{at}"), |layout| {
                        Unit::new(layout, ("conv", "norm"), (inputs, channels), window, *norm)
                    });
                    parts.push(Part::Plain(unit));
                    inputs = channels;
                }
            }
        }
        CnnKind::Residual => {
            let sizes = (inputs, channels[0]);
            parts.push(Part::Plain(Unit::new(layout, ("conv1", "bn1"), sizes, window, *norm)));
            inputs = channels[0];
            for (stage, &channels) in channels.iter().enumerate() {
                pool(&mut parts);
                for at in 0..*depth {
                    let block = layout.within(format!("layer{}.{at}", stage + 1), |layout| {
                        let (names, sizes) = (("conv1", "bn1"), (inputs, channels));
                        let first = Unit::new(layout, names, sizes, window, *norm);
                        let (names, sizes) = (("conv2", "bn2"), (channels, channels));
                        let second = Unit::new(layout, names, sizes, window, *norm);
                        let shortcut = (inputs != channels).then(|| {
                            let names = ("downsample.0", "downsample.1");
                            let sizes = (inputs, channels);
                            Unit::new(layout, names, sizes, Window::same(1), *norm)
                        });
                        Part::Residual {
                            first: Box::new(first),
                            second: Box::new(second),
                            shortcut: shortcut.map(Box::new),
                        }
                    });
                    parts.push(block);
                    inputs = channels;
                }
            }
        }
    }
    parts
}
