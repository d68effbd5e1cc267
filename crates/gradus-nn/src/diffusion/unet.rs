//! The U-Net: residual blocks at smaller and smaller sizes and back, with shortcuts between images of one size.

use super::network::MOST;
use crate::images::check_size;
use crate::layers::pool::double;
use crate::layers::{
    Activation, Attention, Conv2d, GroupNorm, Linear, Mask, Pass, Window, dropout,
};
use crate::ops;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use gradus_data::ImageShape;

/// What determines the layers.
pub(super) struct UnetShape<'a> {
    pub image: ImageShape,
    pub channels: &'a [usize],
    pub depth: usize,
    pub heads: usize,
    /// Features of the embedding of time and class.
    pub embedded: usize,
}

/// A U-Net.
#[derive(Clone, Debug)]
pub(super) struct Unet {
    image: ImageShape,
    input: Conv2d,
    down: Vec<Down>,
    middle: (Residual, Option<Places>, Residual),
    up: Vec<Up>,
    norm: GroupNorm,
    output: Conv2d,
}

/// The blocks at one size on the way down, and the convolution that halves it.
#[derive(Clone, Debug)]
struct Down {
    blocks: Vec<(Residual, Option<Places>)>,
    halved: Option<Conv2d>,
}

/// The blocks at one size on the way up, and the convolution behind the doubling to the size before.
#[derive(Clone, Debug)]
struct Up {
    blocks: Vec<(Residual, Option<Places>)>,
    doubled: Option<(Conv2d, (usize, usize))>,
}

/// Two convolutions, each behind a normalisation, and what they are added to.
#[derive(Clone, Debug)]
struct Residual {
    norms: (GroupNorm, GroupNorm),
    convs: (Conv2d, Conv2d),
    time: Linear,
    shortcut: Option<Conv2d>,
}

/// Attention between the places of an image.
#[derive(Clone, Debug)]
struct Places {
    norm: GroupNorm,
    attention: Attention,
}

impl Residual {
    fn new(layout: &mut Layout, name: &str, (from, to): (usize, usize), embedded: usize) -> Self {
        layout.within(name, |layout| {
            let conv = |layout: &mut Layout, name, sizes: (usize, usize), init| {
                Conv2d::new(layout, name, sizes, Window::same(3), init, true)
            };
            Self {
                norms: (GroupNorm::new(layout, "norm1", from), GroupNorm::new(layout, "norm2", to)),
                // A block adds nothing before anything is learned.
                convs: (
                    conv(layout, "conv1", (from, to), Init::he(9 * from)),
                    conv(layout, "conv2", (to, to), Init::Constant(0.0)),
                ),
                time: Linear::new(layout, "time", (embedded, to), Init::fan_in(embedded), true),
                shortcut: (from != to).then(|| {
                    let init = Init::fan_in(from);
                    Conv2d::new(layout, "shortcut", (from, to), Window::same(1), init, true)
                }),
            }
        })
    }

    fn forward(
        &self,
        weights: &Weights,
        x: Tensor<4>,
        embedded: &Tensor<2>,
        p: f64,
        pass: &Pass,
    ) -> Tensor<4> {
        let h = self.norms.0.forward_activated(weights, x.clone(), Activation::Silu);
        let h = self.convs.0.forward(weights, h);
        let [n, height, width, channels] = h.dims();
        let time = self.time.forward(weights, embedded.clone());
        let h = ops::add_to_pixels(h.reshape([n, height * width, channels]), time);
        let h = h.reshape([n, height, width, channels]);
        let h = self.norms.1.forward_activated(weights, h, Activation::Silu);
        let h = self.convs.1.forward(weights, dropout(h, p, pass));
        match &self.shortcut {
            Some(shortcut) => shortcut.forward(weights, x) + h,
            None => x + h,
        }
    }
}

impl Places {
    fn new(layout: &mut Layout, name: &str, channels: usize, heads: usize) -> Self {
        layout.within(name, |layout| {
            let norm = GroupNorm::new(layout, "norm", channels);
            let inits = (Init::fan_in(channels), Init::Constant(0.0));
            let attention = Attention::new(layout, "attention", (channels, heads), inits);
            Self { norm, attention }
        })
    }

    fn forward(&self, weights: &Weights, x: Tensor<4>) -> Tensor<4> {
        let [n, height, width, channels] = x.dims();
        let h = self.norm.forward_activated(weights, x.clone(), Activation::Identity);
        let h = h.reshape([n, height * width, channels]);
        let h = self.attention.forward(weights, h, &Mask::none());
        x + h.reshape([n, height, width, channels])
    }
}

/// The most places of an image that attend to each other.
const MOST_PLACES: usize = 1024;

/// The largest number of heads up to `heads` that the channels can be split into.
fn heads_for(channels: usize, heads: usize) -> usize {
    (1..=heads.min(channels)).rev().find(|heads| channels.is_multiple_of(*heads)).unwrap_or(1)
}

impl Unet {
    /// The layers.
    pub(super) fn new(shape: &UnetShape<'_>, inputs: usize, layout: &mut Layout) -> Result<Self> {
        let UnetShape { image, channels, depth, heads, embedded } = *shape;
        if check_size(image)? != inputs {
            return Err(Error::data(format!("images of {image} do not have {inputs} pixels")));
        }
        let fits =
            |&c: &usize| c > 0 && c <= 1 << 14 && c.saturating_mul(18 * c.max(embedded)) <= MOST;
        let possible = !channels.is_empty()
            && channels.len() <= 16
            && channels.iter().all(fits)
            && (1..=16).contains(&depth)
            && (1..=1024).contains(&heads);
        if !possible {
            let text = format!(
                "a U-Net of {channels:?} channels, {depth} blocks at each size and {heads} heads is not possible"
            );
            return Err(Error::data(text));
        }
        let conv =
            |layout: &mut Layout, name: &str, sizes: (usize, usize), window: Window, init| {
                Conv2d::new(layout, name, sizes, window, init, true)
            };
        let window = Window::same(3);
        let fan = |from: usize, area: usize| Init::fan_in(area * from);
        let first = (image.channels, channels[0]);
        let input = conv(layout, "input", first, window, fan(image.channels, 9));
        let (mut size, mut now) = ((image.height, image.width), channels[0]);
        let last = channels.len() - 1;
        // Attention costs the square of the number of places.
        let is_small = |size: (usize, usize)| size.0.saturating_mul(size.1) <= MOST_PLACES;
        // The channels of each block, for the shortcuts, and the sizes.
        let (mut down, mut kept, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for (at, &c) in channels.iter().enumerate() {
            let level = layout.within(format!("down.{at}"), |layout| {
                let blocks = (0..depth).map(|block| {
                    let made = Residual::new(layout, &format!("{block}"), (now, c), embedded);
                    now = c;
                    let attends = at == last && is_small(size);
                    let places = attends.then(|| {
                        let name = format!("{block}.places");
                        Places::new(layout, &name, c, heads_for(c, heads))
                    });
                    kept.push(c);
                    (made, places)
                });
                let blocks = blocks.collect();
                sizes.push(size);
                // An image that is halved has two pixels at least on each side.
                let is_halved = at < last && size.0 >= 4 && size.1 >= 4;
                let halved = is_halved.then(|| {
                    size = (size.0 / 2, size.1 / 2);
                    conv(layout, "halved", (c, c), Window::patches(2), fan(c, 4))
                });
                Down { blocks, halved }
            });
            down.push(level);
        }
        let middle = layout.within("middle", |layout| {
            let block =
                |layout: &mut Layout, name| Residual::new(layout, name, (now, now), embedded);
            let first = block(layout, "0");
            let places =
                is_small(size).then(|| Places::new(layout, "places", now, heads_for(now, heads)));
            (first, places, block(layout, "1"))
        });
        let mut up = Vec::new();
        for (at, &c) in channels.iter().enumerate().rev() {
            let level = layout.within(format!("up.{at}"), |layout| {
                let blocks = (0..depth).map(|block| {
                    let joined = now + kept.pop().unwrap_or(0);
                    let made = Residual::new(layout, &format!("{block}"), (joined, c), embedded);
                    now = c;
                    let places = (at == last && is_small(sizes[at])).then(|| {
                        let name = format!("{block}.places");
                        Places::new(layout, &name, c, heads_for(c, heads))
                    });
                    (made, places)
                });
                let blocks = blocks.collect();
                let is_doubled = at > 0 && down[at - 1].halved.is_some();
                let doubled = is_doubled.then(|| {
                    let made = conv(layout, "doubled", (c, c), window, fan(c, 9));
                    (made, sizes[at - 1])
                });
                Up { blocks, doubled }
            });
            up.push(level);
        }
        let norm = GroupNorm::new(layout, "norm", now);
        let output = conv(layout, "output", (now, image.channels), window, Init::Constant(0.0));
        Ok(Self { image, input, down, middle, up, norm, output })
    }

    /// # Shapes
    /// `n × pixels` and `n × embedded` to `n × height × width × channels`.
    pub(super) fn forward(
        &self,
        weights: &Weights,
        x: Tensor<2>,
        embedded: Tensor<2>,
        p: f64,
        pass: &Pass,
    ) -> Tensor<4> {
        let n = x.dims()[0];
        let ImageShape { height, width, channels } = self.image;
        let x = x.reshape([n, height, width, channels]);
        let mut x = self.input.forward(weights, x);
        let mut kept = Vec::new();
        for level in &self.down {
            for (block, places) in &level.blocks {
                x = block.forward(weights, x, &embedded, p, pass);
                if let Some(places) = places {
                    x = places.forward(weights, x);
                }
                kept.push(x.clone());
            }
            if let Some(conv) = &level.halved {
                x = conv.forward(weights, x);
            }
        }
        let (first, places, second) = &self.middle;
        x = first.forward(weights, x, &embedded, p, pass);
        if let Some(places) = places {
            x = places.forward(weights, x);
        }
        x = second.forward(weights, x, &embedded, p, pass);
        for level in &self.up {
            for (block, places) in &level.blocks {
                if let Some(before) = kept.pop() {
                    x = ops::join_channels(x, before);
                }
                x = block.forward(weights, x, &embedded, p, pass);
                if let Some(places) = places {
                    x = places.forward(weights, x);
                }
            }
            if let Some((conv, size)) = &level.doubled {
                x = conv.forward(weights, double(x, *size));
            }
        }
        self.output.forward(weights, self.norm.forward_activated(weights, x, Activation::Silu))
    }
}
