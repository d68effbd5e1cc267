//! The network that tells data from noise: dense and residual for tables, a U-Net for images.

use super::unet::{Unet, UnetShape};
use crate::device::tensor;
use crate::layers::{Activation, Embedding, LayerNorm, Linear, Pass, dropout};
use crate::ops;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use gradus_data::ImageShape;
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of a denoiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DenoiserArchitecture {
    /// The number of features.
    pub inputs: usize,
    /// The number of classes; 0 of a network that knows none.
    pub classes: usize,
    /// The layers.
    pub layers: DenoiserLayers,
    /// The probability of dropout in each block.
    pub dropout: f64,
}

/// The layers of a denoiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DenoiserLayers {
    /// Residual blocks with so many hidden units each; the first number is also the width between blocks.
    Dense {
        /// The units of each.
        hidden: Vec<usize>,
    },
    /// Convolutions down to small images and up again, with shortcuts between images of one size.
    Unet {
        /// The size of the images.
        shape: ImageShape,
        /// The channels at each size.
        channels: Vec<usize>,
        /// Residual blocks at each size, on each way.
        depth: usize,
        /// Heads of the attention between the places of the smallest images.
        heads: usize,
    },
}

/// The most weights of a layer: a larger one is an error in a file.
pub(super) const MOST: usize = 1 << 32;

/// A network from noisy samples, their times and their classes to what noise or data there is in them.
#[derive(Clone, Debug)]
pub struct DenoiserNetwork {
    inputs: usize,
    frequencies: usize,
    time: (Linear, Linear),
    class: Option<(Embedding, usize)>,
    layers: Layers,
    dropout: f64,
}

#[derive(Clone, Debug)]
enum Layers {
    Dense(Dense),
    Unet(Box<Unet>),
}

#[derive(Clone, Debug)]
struct Dense {
    input: Linear,
    blocks: Vec<Block>,
    norm: LayerNorm,
    output: Linear,
}

#[derive(Clone, Debug)]
struct Block {
    norm: LayerNorm,
    first: Linear,
    time: Linear,
    second: Linear,
}

impl DenoiserNetwork {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes are not possible.
    pub fn new(architecture: &DenoiserArchitecture, layout: &mut Layout) -> Result<Self> {
        let DenoiserArchitecture { inputs, classes, layers, dropout } = architecture;
        if !(0.0..1.0).contains(dropout) {
            return Err(Error::data(format!("a dropout of {dropout} is not possible")));
        }
        let width = match layers {
            DenoiserLayers::Dense { hidden } => hidden.first().copied().unwrap_or(0),
            DenoiserLayers::Unet { channels, .. } => channels.first().copied().unwrap_or(0),
        };
        if width == 0 || width > 1 << 16 || *inputs == 0 || *classes > 1 << 20 {
            let text = format!("a width of {width} for {inputs} features and {classes} classes");
            return Err(Error::data(format!("{text} is not possible")));
        }
        // An even number of frequencies: a sine and a cosine each.
        let frequencies = width.max(32) / 2 * 2;
        let embedded = 4 * width;
        let (first, second) = layout.within("time", |layout| {
            let first = (frequencies, embedded);
            (
                Linear::new(layout, "0", first, Init::fan_in(frequencies), true),
                Linear::new(layout, "2", (embedded, embedded), Init::fan_in(embedded), true),
            )
        });
        // One more, which stands for an unknown class.
        let class = (*classes > 0).then(|| {
            let sizes = (classes + 1, embedded);
            (Embedding::new(layout, "class", sizes, Init::Normal(0.1)), *classes)
        });
        let layers = match layers {
            DenoiserLayers::Dense { hidden } => {
                Layers::Dense(dense(*inputs, hidden, embedded, layout)?)
            }
            DenoiserLayers::Unet { shape, channels, depth, heads } => {
                let shape =
                    UnetShape { image: *shape, channels, depth: *depth, heads: *heads, embedded };
                Layers::Unet(Box::new(Unet::new(&shape, *inputs, layout)?))
            }
        };
        let (time, dropout) = ((first, second), *dropout);
        Ok(Self { inputs: *inputs, frequencies, time, class, layers, dropout })
    }

    /// The number of the unknown class; `None` of a network that knows no classes.
    pub fn unknown(&self) -> Option<u32> {
        self.class.as_ref().map(|(_, classes)| *classes as u32)
    }

    /// What the network says of noisy samples at these times, from 0 (data) to 1 (noise), and of these classes.
    ///
    /// # Shapes
    /// `n × features`, `n` times and (of a network that knows classes) `n` classes to `n × features`.
    ///
    /// # Panics
    /// If there is not one time and class for each sample, or a class is not known.
    pub fn forward(
        &self,
        weights: &Weights,
        x: Tensor<2>,
        times: &[f64],
        classes: &[u32],
        pass: &Pass,
    ) -> Tensor<2> {
        let [n, _] = x.dims();
        assert_eq!(times.len(), n, "a time for each sample");
        // The product of a single row adds up in another order than that of several.
        if n == 1 && !pass.is_training() {
            let (x, times) = (Tensor::cat(vec![x.clone(), x], 0), [times[0]; 2]);
            let classes: Vec<u32> = classes.iter().flat_map(|class| [*class; 2]).collect();
            return self.forward(weights, x, &times, &classes, pass).narrow(0, 0, 1);
        }
        let waves = tensor(waves(times, self.frequencies), [n, self.frequencies], &x.device());
        let embedded = self.time.0.forward_activated(weights, waves, Activation::Silu);
        let mut embedded = self.time.1.forward(weights, embedded);
        if let Some((class, _)) = &self.class {
            assert_eq!(classes.len(), n, "a class for each sample");
            embedded = embedded + class.forward(weights, classes);
        }
        let embedded = Activation::Silu.apply(embedded);
        match &self.layers {
            Layers::Dense(layers) => layers.forward(weights, x, embedded, self.dropout, pass),
            Layers::Unet(layers) => {
                let y = layers.forward(weights, x, embedded, self.dropout, pass);
                y.reshape([n, self.inputs])
            }
        }
    }
}

/// Sines and cosines of each time, of frequencies from 1 to 1/10,000 for a time that goes to 1,000.
fn waves(times: &[f64], frequencies: usize) -> Vec<f32> {
    let half = frequencies / 2;
    let frequency = |at: usize| (-(at as f64) / half.max(1) as f64 * 10_000f64.ln()).exp() * 1000.0;
    let rows = times.iter().flat_map(|time| {
        let of = move |at: usize| {
            let angle = time * frequency(at % half);
            (if at < half { angle.sin() } else { angle.cos() }) as f32
        };
        (0..frequencies).map(of)
    });
    rows.collect()
}

fn dense(inputs: usize, hidden: &[usize], embedded: usize, layout: &mut Layout) -> Result<Dense> {
    let width = hidden[0];
    let fits = |units: &usize| *units > 0 && units.saturating_mul(width.max(embedded)) <= MOST;
    if hidden.len() > 64 || !hidden.iter().all(fits) || !fits(&inputs) {
        let text = format!("blocks of {hidden:?} units for {inputs} features are not possible");
        return Err(Error::data(text));
    }
    let input = Linear::new(layout, "input", (inputs, width), Init::fan_in(inputs), true);
    let blocks = hidden.iter().enumerate().map(|(at, &units)| {
        layout.within(format!("blocks.{at}"), |layout| Block {
            norm: LayerNorm::new(layout, "norm", width),
            first: Linear::new(layout, "first", (width, units), Init::he(width), true),
            time: Linear::new(layout, "time", (embedded, units), Init::fan_in(embedded), true),
            second: Linear::new(layout, "second", (units, width), Init::fan_in(units), true),
        })
    });
    let blocks = blocks.collect();
    let norm = LayerNorm::new(layout, "norm", width);
    // Nothing is said before anything is learned.
    let output = Linear::new(layout, "output", (width, inputs), Init::Constant(0.0), true);
    Ok(Dense { input, blocks, norm, output })
}

impl Dense {
    fn forward(
        &self,
        weights: &Weights,
        x: Tensor<2>,
        embedded: Tensor<2>,
        p: f64,
        pass: &Pass,
    ) -> Tensor<2> {
        let mut x = self.input.forward(weights, x);
        for block in &self.blocks {
            let h = block.first.forward(weights, block.norm.forward(weights, x.clone()));
            let h =
                ops::activate(h + block.time.forward(weights, embedded.clone()), Activation::Silu);
            x = x + block.second.forward(weights, dropout(h, p, pass));
        }
        let x = ops::activate(self.norm.forward(weights, x), Activation::Silu);
        self.output.forward(weights, x)
    }
}
