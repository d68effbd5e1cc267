//! The layers of a vision transformer.

use crate::images::{Augment, augment, check_size};
use crate::layers::attention::INIT;
use crate::layers::{
    Activation, Block, BlockShape, Conv2d, LayerNorm, Linear, Mask, Pass, Window, dropout,
};
use crate::supervised::Network;
use crate::weights::{Init, Layout, Role, WeightId, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use gradus_data::ImageShape;
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of a vision transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VitArchitecture {
    /// The size of the images.
    pub shape: ImageShape,
    /// The number of classes.
    pub outputs: usize,
    /// Height and width of a patch.
    pub patch: usize,
    /// Features of a patch.
    pub features: usize,
    /// The number of blocks.
    pub depth: usize,
    /// Heads of attention in a block.
    pub heads: usize,
    /// Hidden units of the perceptron in a block.
    pub hidden: usize,
    /// The activation function of the perceptrons.
    pub activation: Activation,
    /// The probability of dropout behind attention and perceptrons.
    pub dropout: f64,
    /// How images are changed while the network learns.
    pub augment: Augment,
}

impl VitArchitecture {
    /// Rows and columns of patches. Images whose sides are no multiples of the patch are filled up on the right and below.
    pub fn grid(&self) -> (usize, usize) {
        let places = |side: usize| side.div_ceil(self.patch.max(1));
        (places(self.shape.height), places(self.shape.width))
    }
}

/// A vision transformer.
#[derive(Clone, Debug)]
pub struct VitNetwork {
    architecture: VitArchitecture,
    patch: Conv2d,
    class_token: WeightId,
    positions: WeightId,
    blocks: Vec<Block>,
    norm: LayerNorm,
    output: Linear,
}

/// The most weights of a layer: a larger one is an error in a file.
const MOST: usize = 1 << 32;

impl Network for VitNetwork {
    type Architecture = VitArchitecture;

    fn new(architecture: &VitArchitecture, layout: &mut Layout) -> Result<Self> {
        check(architecture)?;
        let VitArchitecture { shape, outputs, patch, features, depth, heads, .. } = *architecture;
        let (rows, columns) = architecture.grid();
        let window = Window::patches(patch);
        let inputs = patch * patch * shape.channels;
        let sizes = (shape.channels, features);
        let patch = Conv2d::new(layout, "patch", sizes, window, Init::fan_in(inputs), true);
        let init = Init::Normal(INIT);
        let class_token = layout.add("class_token", &[features], init, Role::Plain);
        let places = rows * columns + 1;
        let positions = layout.add("positions", &[places, features], init, Role::Plain);
        let block = BlockShape {
            features,
            heads,
            hidden: architecture.hidden,
            depth,
            activation: architecture.activation,
            dropout: architecture.dropout,
            cross: false,
        };
        let blocks = (0..depth).map(|at| Block::new(layout, &format!("layers.{at}"), &block));
        let blocks = blocks.collect();
        let norm = LayerNorm::new(layout, "norm", features);
        let output = Linear::new(layout, "head", (features, outputs), init, true);
        let architecture = architecture.clone();
        Ok(Self { architecture, patch, class_token, positions, blocks, norm, output })
    }

    fn shape(architecture: &VitArchitecture) -> (usize, usize) {
        (architecture.shape.len(), architecture.outputs)
    }

    fn forward(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        self.output.forward(weights, self.class_token(weights, x, pass))
    }

    fn hidden(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Option<Tensor<2>> {
        Some(self.class_token(weights, x, pass))
    }

    fn augment(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        augment(x, self.architecture.shape, self.architecture.augment, pass)
    }

    fn summary(architecture: &VitArchitecture) -> Vec<(&'static str, String)> {
        let VitArchitecture { shape, patch, features, depth, heads, .. } = architecture;
        let (rows, columns) = architecture.grid();
        vec![
            ("images", shape.to_string()),
            ("patches", format!("{rows} × {columns} of {patch} × {patch} pixels")),
            ("blocks", format!("{depth} with {heads} heads and {features} features")),
        ]
    }
}

impl VitNetwork {
    /// The class token behind the last block, normalised.
    ///
    /// # Shapes
    /// `n × pixels` to `n × features`.
    fn class_token(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let x = dropout(self.tokens(weights, x), self.architecture.dropout, pass);
        let mask = Mask::none();
        let x = self.blocks.iter().fold(x, |x, block| block.forward(weights, x, &mask, None, pass));
        let [n, _, features] = x.dims();
        self.norm.forward(weights, x.narrow(1, 0, 1).reshape([n, features]))
    }

    /// The class token and the patches, with their positions.
    ///
    /// # Shapes
    /// `n × pixels` to `n × (1 + patches) × features`.
    fn tokens(&self, weights: &Weights, x: Tensor<2>) -> Tensor<3> {
        let n = x.dims()[0];
        let VitArchitecture { shape, patch, features, .. } = self.architecture;
        let (rows, columns) = self.architecture.grid();
        let mut x = x.reshape([n, shape.height, shape.width, shape.channels]);
        let device = x.device();
        let (below, right) = (rows * patch - shape.height, columns * patch - shape.width);
        if below > 0 {
            let zeros = Tensor::zeros([n, below, shape.width, shape.channels], &device);
            x = Tensor::cat(vec![x, zeros], 1);
        }
        if right > 0 {
            let zeros = Tensor::zeros([n, rows * patch, right, shape.channels], &device);
            x = Tensor::cat(vec![x, zeros], 2);
        }
        let x = self.patch.forward(weights, x).reshape([n, rows * columns, features]);
        let class = weights.get(self.class_token, [1, 1, features]).repeat_dim(0, n);
        Tensor::cat(vec![class, x], 1)
            + weights.get(self.positions, [1, rows * columns + 1, features])
    }

    /// How much each token attends to each, in each head of each block.
    ///
    /// # Shapes
    /// `n × pixels` to `n × heads × tokens × tokens` for each block.
    pub(super) fn attention(&self, weights: &Weights, x: Tensor<2>) -> Vec<Tensor<4>> {
        let mut x = self.tokens(weights, x);
        let each = self.blocks.iter().map(|block| {
            let (y, found) = block.forward_with_weights(weights, x.clone(), &Mask::none());
            x = y;
            found
        });
        each.collect()
    }
}

/// Checks that the sizes are possible.
fn check(architecture: &VitArchitecture) -> Result<()> {
    let VitArchitecture { shape, outputs, patch, features, depth, heads, hidden, .. } =
        *architecture;
    check_size(shape)?;
    if patch == 0 || patch > shape.height.max(shape.width) {
        return Err(Error::data(format!("patches of {patch} × {patch} of images of {shape}")));
    }
    let (rows, columns) = architecture.grid();
    let sizes = [
        (patch.saturating_mul(patch), shape.channels.saturating_mul(features)),
        (rows * columns + 1, features),
        (features, 3 * features.min(MOST)),
        (features, hidden),
        (features, outputs),
    ];
    let possible = sizes.iter().all(|(a, b)| *a > 0 && *b > 0 && a.saturating_mul(*b) <= MOST);
    if !possible || depth == 0 || depth > 256 {
        let reason = format!("{depth} blocks of {features} features are not possible");
        return Err(Error::data(reason));
    }
    if heads == 0 || !features.is_multiple_of(heads) {
        let reason = format!("{features} features are no multiple of {heads} heads");
        return Err(Error::data(reason));
    }
    if !(0.0..1.0).contains(&architecture.dropout) {
        let reason = format!("a dropout of {} is not possible", architecture.dropout);
        return Err(Error::data(reason));
    }
    Ok(())
}
