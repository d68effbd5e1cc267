//! Multi-head attention, and the blocks of transformers.

use super::{Activation, LayerNorm, Layout, Linear, Pass, Weights, dropout};
use crate::ops;
use crate::weights::{Init, Role, WeightId};
use burn::tensor::Tensor;

/// Which positions may be attended to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mask {
    /// Whether a position sees only itself and those before it. Where there are more keys than queries, the queries are the last
    /// positions.
    pub causal: bool,
    /// The number of keys of each sample that may be seen: those behind it are padding. At least 1 each.
    pub lengths: Option<Vec<usize>>,
}

impl Mask {
    /// Every position sees every other.
    pub fn none() -> Self {
        Self::default()
    }

    /// Every position sees itself and those before it.
    pub fn causal() -> Self {
        Self { causal: true, lengths: None }
    }

    /// Every position sees the first positions of its sample, so many of each.
    pub fn lengths(lengths: Vec<usize>) -> Self {
        Self { causal: false, lengths: Some(lengths) }
    }

    /// Whether a query of a sample may see a key.
    pub fn allows(
        &self,
        sample: usize,
        (query, queries): (usize, usize),
        (key, keys): (usize, usize),
    ) -> bool {
        let behind = self.causal && key + queries > query + keys;
        let padding = self.lengths.as_ref().is_some_and(|lengths| key >= lengths[sample]);
        !behind && !padding
    }

    /// The same for an operation on so many heads; `each` heads are a sample of their own.
    fn operation(&self, heads: usize, each: usize) -> ops::Attention {
        let repeated = |lengths: &Vec<usize>| {
            lengths.iter().flat_map(|length| std::iter::repeat_n(*length, each)).collect()
        };
        let lengths = self.lengths.as_ref().map(repeated);
        ops::Attention { heads, causal: self.causal, lengths }
    }
}

/// How much each query attends to each key: the softmax of `q · k / √size`.
///
/// # Shapes
/// `n × heads × queries × size` and `n × heads × keys × size` to `n × heads × queries × keys`, without gradients.
pub fn attention_weights(q: Tensor<4>, k: Tensor<4>, mask: &Mask) -> Tensor<4> {
    let ([n, heads, queries, size], keys) = (q.dims(), k.dims()[2]);
    let (q, k) = (q.reshape([n * heads, queries, size]), k.reshape([n * heads, keys, size]));
    let found = ops::attention_probabilities(q, k, &mask.operation(1, heads));
    found.reshape([n, heads, queries, keys])
}

/// Scaled dot-product attention: for each query the mean of the values, weighted by [`attention_weights`].
///
/// # Shapes
/// Queries of `n × heads × queries × size`, keys and values of `n × heads × keys × size`, to
/// `n × heads × queries × size`.
pub fn attend(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, mask: &Mask) -> Tensor<4> {
    let ([n, heads, queries, size], keys) = (q.dims(), k.dims()[2]);
    let flat = |x: Tensor<4>, length| x.reshape([n * heads, length, size]);
    let (q, k, v) = (flat(q, queries), flat(k, keys), flat(v, keys));
    let y = ops::attention(q, k, v, &mask.operation(1, heads));
    y.reshape([n, heads, queries, size])
}

/// Applies a function of rows of features to each position.
///
/// # Shapes
/// `n × length × features` to `n × length × outputs`.
pub fn each_position(x: Tensor<3>, f: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Tensor<3> {
    let [n, length, features] = x.dims();
    let y = f(x.reshape([n * length, features]));
    let outputs = y.dims()[1];
    y.reshape([n, length, outputs])
}

/// Keys and values of positions that were seen before, so that they are not computed again.
#[derive(Clone, Debug)]
pub struct KeyValues {
    /// `n × heads × length × size`.
    pub keys: Tensor<4>,
    /// `n × heads × length × size`.
    pub values: Tensor<4>,
}

impl KeyValues {
    /// The number of positions.
    pub fn len(&self) -> usize {
        self.keys.dims()[2]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These positions, then those of `next`.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            keys: Tensor::cat(vec![self.keys, next.keys], 2),
            values: Tensor::cat(vec![self.values, next.values], 2),
        }
    }

    /// The last positions, at most so many.
    #[must_use]
    pub fn last(self, most: usize) -> Self {
        let n = self.len();
        if n <= most {
            return self;
        }
        Self {
            keys: self.keys.narrow(2, n - most, most),
            values: self.values.narrow(2, n - most, most),
        }
    }
}

/// Multi-head attention, with the tensors of PyTorch's `MultiheadAttention`: `in_proj_weight` and `in_proj_bias` hold the
/// projections of queries, keys and values one below the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    features: usize,
    heads: usize,
    weight: WeightId,
    bias: WeightId,
    output: Linear,
}

impl Attention {
    /// Attention with so many heads; `output` are the initial weights of the projection behind it.
    ///
    /// # Panics
    /// If the number of features is not a multiple of the number of heads.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        (features, heads): (usize, usize),
        (inputs, output): (Init, Init),
    ) -> Self {
        assert!(
            heads > 0 && features.is_multiple_of(heads),
            "{features} features are no multiple of {heads} heads"
        );
        layout.within(name, |layout| Self {
            features,
            heads,
            weight: layout.add("in_proj_weight", &[3 * features, features], inputs, Role::Decayed),
            bias: layout.add("in_proj_bias", &[3 * features], Init::Constant(0.0), Role::Plain),
            output: Linear::new(layout, "out_proj", (features, features), output, true),
        })
    }

    /// The number of heads.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Some of the projections: `count` of them from `first` on, each split into heads.
    fn project<const N: usize>(
        &self,
        weights: &Weights,
        x: Tensor<3>,
        first: usize,
    ) -> [Tensor<4>; N] {
        let ([n, length, d], e) = (x.dims(), self.features);
        let (mut w, mut b) = (weights.get(self.weight, [3 * e, e]), weights.flat(self.bias));
        if N < 3 {
            w = w.narrow(0, first * e, N * e);
            b = b.narrow(0, first * e, N * e);
        }
        let y = ops::linear(x.reshape([n * length, d]), w, Some(b), Activation::Identity);
        let y = y.reshape([n, length, N * self.heads, e / self.heads]).swap_dims(1, 2);
        std::array::from_fn(|at| y.clone().narrow(1, at * self.heads, self.heads))
    }

    /// Queries of each head.
    ///
    /// # Shapes
    /// `n × length × features` to `n × heads × length × size`.
    pub fn queries(&self, weights: &Weights, x: Tensor<3>) -> Tensor<4> {
        let [queries] = self.project(weights, x, 0);
        queries
    }

    /// Keys and values of each head.
    ///
    /// # Shapes
    /// `n × length × features`.
    pub fn key_values(&self, weights: &Weights, x: Tensor<3>) -> KeyValues {
        let [keys, values] = self.project(weights, x, 1);
        KeyValues { keys, values }
    }

    /// Queries, keys and values of each head, of the same positions: one product for the three.
    ///
    /// # Shapes
    /// `n × length × features`.
    pub fn parts(&self, weights: &Weights, x: Tensor<3>) -> (Tensor<4>, KeyValues) {
        let [queries, keys, values] = self.project(weights, x, 0);
        (queries, KeyValues { keys, values })
    }

    /// The outputs for these queries.
    ///
    /// # Shapes
    /// `n × heads × length × size` to `n × length × features`.
    pub fn outputs(
        &self,
        weights: &Weights,
        queries: Tensor<4>,
        seen: KeyValues,
        mask: &Mask,
    ) -> Tensor<3> {
        let [n, heads, length, size] = queries.dims();
        let y = attend(queries, seen.keys, seen.values, mask).swap_dims(1, 2);
        let y = y.reshape([n * length, heads * size]);
        self.output.forward(weights, y).reshape([n, length, self.features])
    }

    /// Self-attention: positions attend to each other.
    ///
    /// # Shapes
    /// `n × length × features` to the same.
    pub fn forward(&self, weights: &Weights, x: Tensor<3>, mask: &Mask) -> Tensor<3> {
        let ([n, length, d], e) = (x.dims(), self.features);
        let (w, b) = (weights.get(self.weight, [3 * e, e]), weights.flat(self.bias));
        let x = ops::linear(x.reshape([n * length, d]), w, Some(b), Activation::Identity);
        let y = ops::self_attention(x.reshape([n, length, 3 * e]), &mask.operation(self.heads, 1));
        self.output.forward(weights, y.reshape([n * length, e])).reshape([n, length, e])
    }

    /// Cross-attention: positions of `x` attend to those of `memory`.
    ///
    /// # Shapes
    /// `n × length × features` and `n × keys × features` to `n × length × features`.
    pub fn forward_cross(
        &self,
        weights: &Weights,
        x: Tensor<3>,
        memory: Tensor<3>,
        mask: &Mask,
    ) -> Tensor<3> {
        let ([n, length, d], [_, keys, _], e) = (x.dims(), memory.dims(), self.features);
        let (w, b) = (weights.get(self.weight, [3 * e, e]), weights.flat(self.bias));
        let rows = [(x, length), (memory.clone(), keys), (memory, keys)];
        let mut parts = rows.into_iter().enumerate().map(|(at, (x, length))| {
            let w = w.clone().narrow(0, at * e, e);
            let b = b.clone().narrow(0, at * e, e);
            let y = ops::linear(x.reshape([n * length, d]), w, Some(b), Activation::Identity);
            y.reshape([n, length, e])
        });
        let [q, k, v] = std::array::from_fn(|_| parts.next().expect("three parts"));
        let y = ops::attention(q, k, v, &mask.operation(self.heads, 1));
        self.output.forward(weights, y.reshape([n * length, e])).reshape([n, length, e])
    }
}

/// What determines a block of a transformer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockShape {
    /// Features of a position.
    pub features: usize,
    /// Heads of attention; the number of features is a multiple of it.
    pub heads: usize,
    /// Hidden units of the perceptron behind the attention.
    pub hidden: usize,
    /// Blocks of the network: initial weights that add to the residual stream are divided by the root of twice their number.
    pub depth: usize,
    /// The activation function of the perceptron.
    pub activation: Activation,
    /// The probability of dropout behind attention and perceptron.
    pub dropout: f64,
    /// Whether positions attend to a memory as well: the outputs of an encoder.
    pub cross: bool,
}

/// The deviation of initial weights, as in BERT, GPT-2 and the vision transformer.
pub const INIT: f32 = 0.02;

/// What a block with cross-attention attends to.
#[derive(Clone, Copy)]
enum Seen<'a> {
    /// The outputs of an encoder, whose keys and values are computed.
    Positions(&'a Tensor<3>),
    /// Keys and values that were computed before.
    KeyValues(&'a KeyValues),
}

/// A block of a transformer with the normalisation first (pre-norm): `x + attention(norm(x))`, then (with a memory) the same with
/// cross-attention, then `x + perceptron(norm(x))`. The tensors are those of PyTorch's `TransformerEncoderLayer` and
/// `TransformerDecoderLayer` with `norm_first=True`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    attention: Attention,
    cross: Option<(LayerNorm, Attention)>,
    first: Linear,
    second: Linear,
    norms: (LayerNorm, LayerNorm),
    activation: Activation,
    dropout: f64,
}

impl Block {
    /// A block.
    ///
    /// # Panics
    /// If the number of features is not a multiple of the number of heads.
    pub fn new(layout: &mut Layout, name: &str, shape: &BlockShape) -> Self {
        Self::with_init(layout, name, shape, INIT)
    }

    /// A block whose matrices begin with this standard deviation.
    ///
    /// # Panics
    /// If the number of features is not a multiple of the number of heads.
    pub fn with_init(layout: &mut Layout, name: &str, shape: &BlockShape, init: f32) -> Self {
        let BlockShape { features, heads, hidden, depth, activation, dropout, cross } = *shape;
        let inner = Init::Normal(init);
        let residual = Init::Normal(init / (2.0 * depth.max(1) as f32).sqrt());
        let sizes = (features, heads);
        layout.within(name, |layout| {
            let attention = Attention::new(layout, "self_attn", sizes, (inner, residual));
            let memory =
                cross.then(|| Attention::new(layout, "multihead_attn", sizes, (inner, residual)));
            let first = Linear::new(layout, "linear1", (features, hidden), inner, true);
            let second = Linear::new(layout, "linear2", (hidden, features), residual, true);
            let norm1 = LayerNorm::new(layout, "norm1", features);
            let norm2 = LayerNorm::new(layout, "norm2", features);
            // PyTorch calls the last normalisation norm3 where there is cross-attention.
            let (cross, last) = match memory {
                None => (None, norm2),
                Some(memory) => (Some((norm2, memory)), LayerNorm::new(layout, "norm3", features)),
            };
            Self { attention, cross, first, second, norms: (norm1, last), activation, dropout }
        })
    }

    /// The self-attention.
    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    /// Keys and values of a memory, for [`forward_cached`](Self::forward_cached); `None` of a block without cross-attention.
    ///
    /// # Shapes
    /// `n × keys × features`.
    pub fn memory(&self, weights: &Weights, memory: Tensor<3>) -> Option<KeyValues> {
        self.cross.as_ref().map(|(_, attention)| attention.key_values(weights, memory))
    }

    /// The outputs. `memory` is what a block with cross-attention attends to, and which of its positions it may see.
    ///
    /// # Shapes
    /// `n × length × features` to the same.
    pub fn forward(
        &self,
        weights: &Weights,
        x: Tensor<3>,
        mask: &Mask,
        memory: Option<(&Tensor<3>, &Mask)>,
        pass: &Pass,
    ) -> Tensor<3> {
        let memory = memory.map(|(memory, mask)| (Seen::Positions(memory), mask));
        self.steps(weights, x, (&mut None, mask), memory, pass)
    }

    /// The outputs of further positions: they attend to those in `cache` as well, and join them.
    ///
    /// # Shapes
    /// `n × length × features` to the same.
    pub fn forward_cached(
        &self,
        weights: &Weights,
        x: Tensor<3>,
        (cache, mask): (&mut Option<KeyValues>, &Mask),
        memory: Option<(&KeyValues, &Mask)>,
    ) -> Tensor<3> {
        let mut held = Some(cache.take());
        let memory = memory.map(|(seen, mask)| (Seen::KeyValues(seen), mask));
        let y = self.steps(weights, x, (&mut held, mask), memory, &Pass::predicting());
        *cache = held.flatten();
        y
    }

    /// The outputs, and how much each head of each position attends to each position.
    ///
    /// # Shapes
    /// `n × length × features` to the same, and `n × heads × length × length`.
    pub fn forward_with_weights(
        &self,
        weights: &Weights,
        x: Tensor<3>,
        mask: &Mask,
    ) -> (Tensor<3>, Tensor<4>) {
        let z = each_position(x.clone(), |x| self.norms.0.forward(weights, x));
        let (queries, seen) = self.attention.parts(weights, z);
        let found = attention_weights(queries, seen.keys, mask);
        (self.forward(weights, x, mask, None, &Pass::predicting()), found)
    }

    fn steps(
        &self,
        weights: &Weights,
        x: Tensor<3>,
        (cache, mask): (&mut Option<Option<KeyValues>>, &Mask),
        memory: Option<(Seen<'_>, &Mask)>,
        pass: &Pass,
    ) -> Tensor<3> {
        let z = each_position(x.clone(), |x| self.norms.0.forward(weights, x));
        let y = match cache {
            None => self.attention.forward(weights, z, mask),
            Some(cache) => {
                let (queries, mut seen) = self.attention.parts(weights, z);
                if let Some(before) = cache.take() {
                    seen = before.then(seen);
                }
                *cache = Some(seen.clone());
                self.attention.outputs(weights, queries, seen, mask)
            }
        };
        let mut x = x + dropout(y, self.dropout, pass);
        if let (Some((norm, attention)), Some((seen, mask))) = (&self.cross, memory) {
            let z = each_position(x.clone(), |x| norm.forward(weights, x));
            let y = match seen {
                Seen::Positions(memory) => {
                    attention.forward_cross(weights, z, memory.clone(), mask)
                }
                Seen::KeyValues(seen) => {
                    let queries = attention.queries(weights, z);
                    attention.outputs(weights, queries, seen.clone(), mask)
                }
            };
            x = x + dropout(y, self.dropout, pass);
        }
        let y = each_position(x.clone(), |x| {
            let x = self.norms.1.forward(weights, x);
            let x = self.first.forward_activated(weights, x, self.activation);
            self.second.forward(weights, x)
        });
        x + dropout(y, self.dropout, pass)
    }
}

#[cfg(test)]
mod tests;
