//! One token after another: the layers of a language model for a single position, without a graph.
//!
//! The operations of a tensor library cost more than the numbers of one position. Here a matrix times a vector is one call, and keys
//! and values of earlier positions lie where they are. Values are those of [`LmNetwork`](super::LmNetwork) but for the order of sums.

use super::{LmArchitecture, LmModel};
use crate::device::numbers;
use crate::layers::KeyValues;
use gradus_base::parallel;
use gradus_kernel::{Level, padded, scores};

/// Added to variances before they divide, as in the layer of normalisation.
const EPSILON: f32 = 1e-5;

/// Multiplications of a matrix and a vector that are worth several threads, and rows that a thread takes at a time.
const MANY: usize = 1 << 20;
const ROWS: usize = 256;

/// A matrix of outputs × inputs, its rows padded, and what is added.
struct Matrix {
    inputs: usize,
    outputs: usize,
    rows: Vec<f32>,
    bias: Vec<f32>,
}

impl Matrix {
    fn new(values: &[f32], inputs: usize, bias: Vec<f32>) -> Self {
        let stride = padded(inputs);
        let mut rows = Vec::with_capacity(values.len() / inputs * stride);
        for row in values.chunks_exact(inputs) {
            rows.extend_from_slice(row);
            rows.resize(rows.len() + stride - inputs, 0.0);
        }
        Self { inputs, outputs: values.len() / inputs, rows, bias }
    }

    /// `W x + b`; `x` is padded.
    fn apply(&self, level: Level, x: &[f32], out: &mut Vec<f32>) {
        let stride = padded(self.inputs);
        out.clear();
        out.resize(self.outputs, 0.0);
        let some = |first: usize, out: &mut [f32]| {
            let rows = &self.rows[first * stride..][..out.len() * stride];
            scores(level, self.inputs, x, rows, out);
        };
        if self.rows.len() < MANY {
            some(0, out);
        } else {
            let pieces = out.chunks_mut(ROWS).enumerate();
            parallel::each(pieces.collect::<Vec<_>>(), |(at, out)| some(at * ROWS, out));
        }
        out.iter_mut().zip(&self.bias).for_each(|(out, bias)| *out += bias);
    }
}

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Norm {
    /// The normalised features, padded.
    fn apply(&self, x: &[f32], out: &mut Vec<f32>) {
        let n = x.len() as f32;
        let mean = x.iter().sum::<f32>() / n;
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        out.clear();
        let both = self.weight.iter().zip(&self.bias);
        out.extend(x.iter().zip(both).map(|(x, (w, b))| (x - mean) * scale * w + b));
        out.resize(padded(x.len()), 0.0);
    }
}

struct Layer {
    norms: (Norm, Norm),
    inputs: Matrix,
    output: Matrix,
    first: Matrix,
    second: Matrix,
}

/// The weights of a language model, for one position at a time.
pub(super) struct Decoder {
    level: Level,
    heads: usize,
    dimension: usize,
    context: usize,
    tokens: Vec<f32>,
    places: Vec<f32>,
    layers: Vec<Layer>,
    norm: Norm,
    output: Matrix,
}

/// Keys and values of the positions that were read, layer by layer and position by position.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    length: usize,
}

impl Past {
    /// The number of positions.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Keys and values as the layers of the network keep them, of one sequence.
    pub(super) fn of(blocks: impl Iterator<Item = KeyValues>) -> Self {
        let mut past = Self::default();
        for block in blocks {
            past.length = block.len();
            for (tensor, list) in [(block.keys, &mut past.keys), (block.values, &mut past.values)] {
                // 1 × heads × length × size to length × (heads · size).
                list.push(numbers(tensor.swap_dims(1, 2)));
            }
        }
        past
    }
}

impl Decoder {
    /// The weights of a model.
    pub(super) fn new(model: &LmModel) -> Self {
        let LmArchitecture { context, dimension, heads, layers, tied, .. } = model.architecture;
        let found = |name: &str| -> Vec<f32> {
            let specs = model.layout.specs();
            let at = specs.iter().position(|spec| spec.name == name);
            at.map_or_else(Vec::new, |at| numbers(model.weights.tensors()[at].clone()))
        };
        let norm = |name: &str| Norm {
            weight: found(&format!("{name}.weight")),
            bias: found(&format!("{name}.bias")),
        };
        let linear = |name: &str, inputs: usize| {
            let (weight, bias) = match name.ends_with("in_proj") {
                true => (format!("{name}_weight"), format!("{name}_bias")),
                false => (format!("{name}.weight"), format!("{name}.bias")),
            };
            Matrix::new(&found(&weight), inputs, found(&bias))
        };
        let layer = |at: usize| {
            let of = |part: &str| format!("layers.{at}.{part}");
            Layer {
                norms: (norm(&of("norm1")), norm(&of("norm2"))),
                inputs: linear(&of("self_attn.in_proj"), dimension),
                output: linear(&of("self_attn.out_proj"), dimension),
                first: linear(&of("linear1"), dimension),
                second: linear(&of("linear2"), 4 * dimension),
            }
        };
        let tokens = found("token_embedding.weight");
        let output = match tied {
            true => Matrix::new(&tokens, dimension, Vec::new()),
            false => linear("output", dimension),
        };
        Self {
            level: Level::best(),
            heads,
            dimension,
            context,
            places: found("position_embedding.weight"),
            layers: (0..layers).map(layer).collect(),
            norm: norm("norm"),
            tokens,
            output,
        }
    }

    /// The logits of the token after the next one, which joins the past.
    ///
    /// # Panics
    /// If the context is full, or there is no such token.
    pub(super) fn read(&self, token: u32, past: &mut Past) -> Vec<f32> {
        let (d, place) = (self.dimension, past.length);
        assert!(place < self.context, "a place within the context of {}", self.context);
        let row = |table: &[f32], at: usize| table[at * d..][..d].to_vec();
        let mut x = row(&self.tokens, token as usize);
        add(&mut x, &row(&self.places, place));
        past.keys.resize_with(self.layers.len(), Vec::new);
        past.values.resize_with(self.layers.len(), Vec::new);
        let (mut z, mut y) = (Vec::new(), Vec::new());
        for (layer, (keys, values)) in
            self.layers.iter().zip(past.keys.iter_mut().zip(&mut past.values))
        {
            layer.norms.0.apply(&x, &mut z);
            layer.inputs.apply(self.level, &z, &mut y);
            keys.extend_from_slice(&y[d..2 * d]);
            values.extend_from_slice(&y[2 * d..]);
            self.attend(&y[..d], keys, values, &mut z);
            layer.output.apply(self.level, &z, &mut y);
            add(&mut x, &y);
            layer.norms.1.apply(&x, &mut z);
            layer.first.apply(self.level, &z, &mut y);
            y.iter_mut().for_each(|x| *x = gelu(*x));
            y.resize(padded(4 * d), 0.0);
            layer.second.apply(self.level, &y, &mut z);
            add(&mut x, &z);
        }
        past.length += 1;
        self.norm.apply(&x, &mut z);
        self.output.apply(self.level, &z, &mut y);
        y
    }

    /// The mean of the values of each head, weighted by the softmax of `q · k / √size`; padded.
    fn attend(&self, queries: &[f32], keys: &[f32], values: &[f32], out: &mut Vec<f32>) {
        let d = self.dimension;
        let size = d / self.heads;
        let scale = 1.0 / (size as f32).sqrt();
        out.clear();
        out.resize(padded(d), 0.0);
        let mut shares = vec![0.0f32; keys.len() / d];
        for head in 0..self.heads {
            let part = head * size..(head + 1) * size;
            let query = &queries[part.clone()];
            for (share, key) in shares.iter_mut().zip(keys.chunks_exact(d)) {
                *share =
                    scale * query.iter().zip(&key[part.clone()]).map(|(q, k)| q * k).sum::<f32>();
            }
            let most = shares.iter().fold(f32::NEG_INFINITY, |most, x| most.max(*x));
            shares.iter_mut().for_each(|x| *x = (*x - most).exp());
            let total: f32 = shares.iter().sum();
            for (share, value) in shares.iter().zip(values.chunks_exact(d)) {
                let share = share / total;
                let both = out[part.clone()].iter_mut().zip(&value[part.clone()]);
                both.for_each(|(out, value)| *out += share * value);
            }
        }
    }
}

fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}
