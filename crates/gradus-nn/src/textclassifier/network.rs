//! The layers of a text classifier.

use crate::device::{numbers, tensor};
use crate::layers::{
    Activation, Block, BlockShape, Embedding, LayerNorm, Linear, Mask, Pass, attention::INIT,
    dropout,
};
use crate::lm::LmArchitecture;
use crate::supervised::Network;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::Result;
use gradus_base::text::grouped;
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of a text classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextArchitecture {
    /// The encoder: a decoder whose positions see all others, and that has no output of tokens.
    pub encoder: LmArchitecture,
    /// The number of classes.
    pub outputs: usize,
}

/// An encoder, the mean over its positions, and a logit for each class.
#[derive(Clone, Debug)]
pub struct TextNetwork {
    n_tokens: usize,
    length: usize,
    dimension: usize,
    tokens: Embedding,
    places: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    output: Linear,
    dropout: f64,
}

/// Texts that are predicted at once: attention needs the square of their length.
const AT_ONCE: usize = 32;

impl TextNetwork {
    /// The logits for texts of these tokens, each from 1; 0 is none.
    fn encode(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let ([n, width], device) = (x.dims(), x.device());
        let given = numbers(x);
        // What is no number of a token, as in features of other data, is none.
        let token = |value: f32| match value {
            value if value >= 1.0 && value < self.n_tokens as f32 => value as u32,
            _ => 0,
        };
        let rows: Vec<Vec<u32>> =
            given.chunks(width.max(1)).map(|row| row.iter().map(|x| token(*x)).collect()).collect();
        // A text without tokens is one without a token in its first place.
        let lengths: Vec<usize> = rows
            .iter()
            .map(|row| row.iter().rposition(|&token| token > 0).map_or(1, |at| at + 1))
            .collect();
        let longest = lengths.iter().copied().max().unwrap_or(1);
        let tokens: Vec<u32> = rows.iter().flat_map(|row| row[..longest].iter().copied()).collect();
        let places: Vec<u32> = (0..longest as u32).collect();
        let x = self.tokens.forward(weights, &tokens).reshape([n, longest, self.dimension]);
        let mut x = x + self.places.forward(weights, &places).unsqueeze::<3>();
        x = dropout(x, self.dropout, pass);
        let shares: Vec<f32> = lengths
            .iter()
            .flat_map(|&length| {
                let share = 1.0 / length as f32;
                (0..longest).map(move |at| if at < length { share } else { 0.0 })
            })
            .collect();
        let mask = Mask::lengths(lengths);
        for block in &self.blocks {
            x = block.forward(weights, x, &mask, None, pass);
        }
        let x = self.norm.forward(weights, x.reshape([n * longest, self.dimension]));
        let x = x * tensor(shares, [n * longest, 1], &device);
        let x = x.reshape([n, longest, self.dimension]).sum_dim(1).reshape([n, self.dimension]);
        self.output.forward(weights, dropout(x, self.dropout, pass))
    }
}

impl Network for TextNetwork {
    type Architecture = TextArchitecture;

    const HAS_GRADIENT: bool = false;

    fn new(architecture: &TextArchitecture, layout: &mut Layout) -> Result<Self> {
        let TextArchitecture { encoder, outputs } = architecture;
        encoder.check()?;
        LmArchitecture { tokens: *outputs, ..encoder.clone() }.check()?;
        let LmArchitecture { tokens, context, dimension, heads, layers, dropout, .. } = *encoder;
        let init = Init::Normal(INIT);
        let shape = BlockShape {
            features: dimension,
            heads,
            hidden: 4 * dimension,
            depth: layers,
            activation: Activation::Gelu,
            dropout,
            cross: false,
        };
        Ok(Self {
            n_tokens: tokens,
            length: context,
            dimension,
            tokens: Embedding::new(layout, "token_embedding", (tokens, dimension), init),
            places: Embedding::new(layout, "position_embedding", (context, dimension), init),
            blocks: (0..layers)
                .map(|at| Block::new(layout, &format!("layers.{at}"), &shape))
                .collect(),
            norm: LayerNorm::new(layout, "norm", dimension),
            output: Linear::new(layout, "output", (dimension, *outputs), init, true),
            dropout,
        })
    }

    fn shape(architecture: &TextArchitecture) -> (usize, usize) {
        (architecture.encoder.context, architecture.outputs)
    }

    fn forward(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let n = x.dims()[0];
        debug_assert_eq!(x.dims()[1], self.length);
        if pass.is_training() || n <= AT_ONCE {
            return self.encode(weights, x, pass);
        }
        let parts = (0..n)
            .step_by(AT_ONCE)
            .map(|at| self.encode(weights, x.clone().narrow(0, at, AT_ONCE.min(n - at)), pass));
        Tensor::cat(parts.collect(), 0)
    }

    fn summary(architecture: &TextArchitecture) -> Vec<(&'static str, String)> {
        let LmArchitecture { tokens, context, dimension, heads, layers, .. } = architecture.encoder;
        vec![
            ("layers", format!("{layers} of dimension {dimension}, {heads} heads")),
            ("context", format!("{} tokens", grouped(context))),
            ("tokens", grouped(tokens)),
        ]
    }
}
