//! The layers of a language model.

use crate::layers::{
    Activation, Block, BlockShape, Embedding, KeyValues, LayerNorm, Linear, Mask, Pass,
    attention::INIT, dropout,
};
use crate::ops;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use serde::{Deserialize, Serialize};

/// Everything that determines the layers of a decoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LmArchitecture {
    /// The number of different tokens.
    pub tokens: usize,
    /// The number of tokens that it looks back at, the last one included.
    pub context: usize,
    /// Features of a position.
    pub dimension: usize,
    /// Heads of attention.
    pub heads: usize,
    /// The number of blocks.
    pub layers: usize,
    /// The probability of dropout behind embeddings, attention and perceptrons.
    pub dropout: f64,
    /// Whether the vectors of tokens also are the weights of the output.
    pub tied: bool,
}

/// The most weights of a tensor: a larger one is an error in a file.
const MOST: usize = 1 << 34;

/// The most blocks.
const BLOCKS: usize = 1024;

impl LmArchitecture {
    /// Refuses sizes that are not possible.
    ///
    /// # Errors
    /// Names them.
    pub fn check(&self) -> Result<()> {
        let Self { tokens, context, dimension, heads, layers, dropout, .. } = *self;
        let large = |a: usize, b: usize| a.saturating_mul(b) > MOST;
        if [tokens, context, dimension, heads, layers].contains(&0)
            || layers > BLOCKS
            || large(tokens, dimension)
            || large(context, dimension)
            || large(dimension.saturating_mul(4), dimension)
            || !(0.0..1.0).contains(&dropout)
        {
            return Err(Error::data(format!(
                "a network with {layers} layers of dimension {dimension}, {heads} heads, {tokens} tokens, a context of {context} and \
                 a dropout of {dropout} is not possible"
            )));
        }
        if !dimension.is_multiple_of(heads) {
            let rule = format!("must be a multiple of `heads` = {heads}");
            return Err(Error::parameter("dimension", dimension, rule));
        }
        Ok(())
    }
}

/// A decoder: vectors of tokens and places, blocks with causal attention, and a score for each token that may come next.
#[derive(Clone, Debug)]
pub struct LmNetwork {
    tokens: Embedding,
    places: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    output: Option<Linear>,
    dropout: f64,
    context: usize,
}

/// Keys and values of the positions that were seen: one for each block.
#[derive(Clone, Debug)]
pub struct LmCache {
    blocks: Vec<Option<KeyValues>>,
    length: usize,
}

impl LmCache {
    /// The number of positions.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Keys and values of each block that has seen a position.
    pub fn into_blocks(self) -> impl Iterator<Item = KeyValues> {
        self.blocks.into_iter().flatten()
    }
}

impl LmNetwork {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes are not possible.
    pub fn new(architecture: &LmArchitecture, layout: &mut Layout) -> Result<Self> {
        architecture.check()?;
        let LmArchitecture { tokens, context, dimension, heads, layers, dropout, tied } =
            *architecture;
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
            tokens: Embedding::new(layout, "token_embedding", (tokens, dimension), init),
            places: Embedding::new(layout, "position_embedding", (context, dimension), init),
            blocks: (0..layers)
                .map(|at| Block::new(layout, &format!("layers.{at}"), &shape))
                .collect(),
            norm: LayerNorm::new(layout, "norm", dimension),
            output: (!tied)
                .then(|| Linear::new(layout, "output", (dimension, tokens), init, false)),
            dropout,
            context,
        })
    }

    /// The number of tokens that it looks back at.
    pub fn context(&self) -> usize {
        self.context
    }

    /// The logits of the token that comes after each of the tokens, of sequences of one length.
    ///
    /// # Shapes
    /// `n × length` tokens, row by row, to `n·length × tokens`.
    ///
    /// # Panics
    /// If the sequences are longer than the context, or not of one length.
    pub fn forward(&self, weights: &Weights, tokens: &[u32], n: usize, pass: &Pass) -> Tensor<2> {
        let mut x = self.embed(weights, tokens, n, 0);
        x = dropout(x, self.dropout, pass);
        for block in &self.blocks {
            x = block.forward(weights, x, &Mask::causal(), None, pass);
        }
        let [n, length, features] = x.dims();
        self.logits(weights, x.reshape([n * length, features]))
    }

    /// An empty cache.
    pub fn cache(&self) -> LmCache {
        LmCache { blocks: vec![None; self.blocks.len()], length: 0 }
    }

    /// The logits of the token that comes after further tokens of one sequence, whose earlier ones are in the cache.
    ///
    /// # Shapes
    /// `1 × tokens`.
    ///
    /// # Panics
    /// If there is no token, or the cache has no place for them within the context.
    pub fn forward_cached(
        &self,
        weights: &Weights,
        tokens: &[u32],
        cache: &mut LmCache,
    ) -> Tensor<2> {
        let mut x = self.embed(weights, tokens, 1, cache.length);
        for (block, cache) in self.blocks.iter().zip(&mut cache.blocks) {
            x = block.forward_cached(weights, x, (cache, &Mask::causal()), None);
        }
        cache.length += tokens.len();
        let [_, length, features] = x.dims();
        self.logits(weights, x.narrow(1, length - 1, 1).reshape([1, features]))
    }

    /// Vectors of tokens plus vectors of their places, which begin at `first`.
    fn embed(&self, weights: &Weights, tokens: &[u32], n: usize, first: usize) -> Tensor<3> {
        let length = tokens.len() / n.max(1);
        assert!(
            length > 0 && length * n == tokens.len() && first + length <= self.context,
            "{n} sequences of {length} tokens from place {first} in a context of {}",
            self.context
        );
        let x = self.tokens.forward(weights, tokens);
        let features = x.dims()[1];
        let x = x.reshape([n, length, features]);
        let places: Vec<u32> = (first as u32..(first + length) as u32).collect();
        x + self.places.forward(weights, &places).unsqueeze::<3>()
    }

    fn logits(&self, weights: &Weights, x: Tensor<2>) -> Tensor<2> {
        let x = self.norm.forward(weights, x);
        match &self.output {
            Some(output) => output.forward(weights, x),
            None => ops::linear(x, self.tokens.table(weights), None, Activation::Identity),
        }
    }
}
