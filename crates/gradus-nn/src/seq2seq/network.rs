//! The layers of an encoder and a decoder, and the search for the target.

use crate::device::numbers;
use crate::layers::{
    Activation, Block, BlockShape, Embedding, KeyValues, LayerNorm, Mask, Pass, dropout,
};
use crate::lm::LmArchitecture;
use crate::ops;
use crate::weights::{Init, Layout, Weights};
use burn::tensor::{Tensor, activation};
use gradus_base::Result;
use gradus_data::END_TOKEN;

/// An encoder of sources, and a decoder of targets whose positions attend to the encoder.
#[derive(Clone, Debug)]
pub struct Seq2SeqNetwork {
    dimension: usize,
    context: usize,
    tokens: Embedding,
    /// Places of a source, counted from its begin and from its end.
    source_places: [Embedding; 2],
    target_places: Embedding,
    encoder: Vec<Block>,
    encoder_norm: LayerNorm,
    decoder: Vec<Block>,
    decoder_norm: LayerNorm,
    dropout: f64,
}

/// What the decoder attends to: the outputs of the encoder, and how many of them are no padding.
#[derive(Clone, Debug)]
pub struct Memory {
    outputs: Tensor<3>,
    mask: Mask,
}

impl Seq2SeqNetwork {
    /// The layers, `layers` of the encoder and as many of the decoder. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes are not possible.
    pub fn new(architecture: &LmArchitecture, layout: &mut Layout) -> Result<Self> {
        architecture.check()?;
        let LmArchitecture { tokens, context, dimension, heads, layers, dropout, .. } =
            *architecture;
        // Entries of matrices and vectors have variance 1 / dimension, so that a product with a normalised position has variance 1.
        // The 0.02 of BERT and GPT-2 is that of much larger dimensions; with it addition takes twice the steps.
        let deviation = 1.0 / (dimension as f32).sqrt();
        let init = Init::Normal(deviation);
        let shape = |cross| BlockShape {
            features: dimension,
            heads,
            hidden: 4 * dimension,
            depth: layers,
            activation: Activation::Gelu,
            dropout,
            cross,
        };
        let places = (context, dimension);
        let blocks = |layout: &mut Layout, cross| -> (Vec<Block>, LayerNorm) {
            let make =
                |at| Block::with_init(layout, &format!("layers.{at}"), &shape(cross), deviation);
            let blocks = (0..layers).map(make).collect();
            (blocks, LayerNorm::new(layout, "norm", dimension))
        };
        let tokens = Embedding::new(layout, "token_embedding", (tokens, dimension), init);
        let source_places = ["source_position_embedding", "source_end_embedding"]
            .map(|name| Embedding::new(layout, name, places, init));
        let target_places = Embedding::new(layout, "target_position_embedding", places, init);
        let (encoder, encoder_norm) = layout.within("encoder", |layout| blocks(layout, false));
        let (decoder, decoder_norm) = layout.within("decoder", |layout| blocks(layout, true));
        Ok(Self {
            dimension,
            context,
            tokens,
            source_places,
            target_places,
            encoder,
            encoder_norm,
            decoder,
            decoder_norm,
            dropout,
        })
    }

    /// The most tokens of a source, and of a target with its end.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Vectors of tokens and of their places, the first of which is `first`.
    fn embedded(
        &self,
        weights: &Weights,
        (tokens, n): (&[u32], usize),
        (places, first): (&Embedding, usize),
    ) -> Tensor<3> {
        let length = tokens.len() / n;
        let x = self.tokens.forward(weights, tokens).reshape([n, length, self.dimension]);
        let at: Vec<u32> = (first as u32..(first + length) as u32).collect();
        x + places.forward(weights, &at).unsqueeze::<3>()
    }

    fn norm(&self, norm: &LayerNorm, weights: &Weights, x: Tensor<3>) -> Tensor<3> {
        let [n, length, features] = x.dims();
        norm.forward(weights, x.reshape([n * length, features])).reshape([n, length, features])
    }

    /// Encodes sources, which end in an end each.
    ///
    /// # Panics
    /// If there are none, or one is empty or longer than the context.
    pub fn encode(&self, weights: &Weights, sources: &[&[u32]], pass: &Pass) -> Memory {
        let lengths: Vec<usize> = sources.iter().map(|source| source.len()).collect();
        let tokens = padded(sources);
        let (n, length) = (sources.len(), tokens.len() / sources.len());
        let [from_begin, from_end] = &self.source_places;
        // How many tokens of the source come behind; padding is not looked at.
        let behind: Vec<u32> = lengths
            .iter()
            .flat_map(|source| (1..=length).map(move |at| source.saturating_sub(at) as u32))
            .collect();
        let ends = from_end.forward(weights, &behind).reshape([n, length, self.dimension]);
        let mask = Mask::lengths(lengths);
        let x = self.embedded(weights, (&tokens, n), (from_begin, 0)) + ends;
        let mut x = dropout(x, self.dropout, pass);
        for block in &self.encoder {
            x = block.forward(weights, x, &mask, None, pass);
        }
        Memory { outputs: self.norm(&self.encoder_norm, weights, x), mask }
    }

    /// The logits of the token after each token of targets, which are padded to one length.
    ///
    /// # Shapes
    /// `n·length × tokens`.
    pub fn decode(
        &self,
        weights: &Weights,
        targets: &[&[u32]],
        memory: &Memory,
        pass: &Pass,
    ) -> Tensor<2> {
        let tokens = padded(targets);
        let x = self.embedded(weights, (&tokens, targets.len()), (&self.target_places, 0));
        let mut x = dropout(x, self.dropout, pass);
        for block in &self.decoder {
            let memory = Some((&memory.outputs, &memory.mask));
            x = block.forward(weights, x, &Mask::causal(), memory, pass);
        }
        self.logits(weights, x)
    }

    fn logits(&self, weights: &Weights, x: Tensor<3>) -> Tensor<2> {
        let [n, length, features] = x.dims();
        let x = self.decoder_norm.forward(weights, x.reshape([n * length, features]));
        ops::linear(x, self.tokens.table(weights), None, Activation::Identity)
    }

    /// The most probable target of each source that a search with so many beams finds, without its end, and its log probability.
    pub fn search(
        &self,
        weights: &Weights,
        sources: &[&[u32]],
        beams: usize,
    ) -> Vec<(Vec<u32>, f64)> {
        let n = sources.len();
        let memory = self.encode(weights, sources, &Pass::predicting());
        // Each source is there once for each beam.
        let rows: Vec<i32> = (0..n * beams).map(|row| (row / beams) as i32).collect();
        let device = memory.outputs.device();
        let at = |rows: Vec<i32>| crate::device::indices(rows.clone(), [rows.len()], &device);
        let lengths = memory.mask.lengths.clone().unwrap_or_default();
        let mask = Mask::lengths(rows.iter().map(|&row| lengths[row as usize]).collect());
        let outputs = memory.outputs.select(0, at(rows));
        let seen: Vec<Option<KeyValues>> =
            self.decoder.iter().map(|block| block.memory(weights, outputs.clone())).collect();
        let mut caches: Vec<Option<KeyValues>> = vec![None; self.decoder.len()];
        // Of the beams of a source only the first has begun; the others would be the same.
        let empty = |row: usize| match row % beams {
            0 => Beam { tokens: Vec::new(), log: 0.0, ended: false },
            _ => Beam { tokens: Vec::new(), log: f64::NEG_INFINITY, ended: true },
        };
        let mut found: Vec<Beam> = (0..n * beams).map(empty).collect();
        for place in 0..self.context {
            // Nothing that goes on can become more probable than what it is.
            if found.chunks(beams).all(|beams| beams[0].ended) {
                break;
            }
            let last = found.iter().map(|beam| beam.tokens.last().copied().unwrap_or(END_TOKEN));
            let last: Vec<u32> = last.collect();
            let mut x = self.embedded(weights, (&last, n * beams), (&self.target_places, place));
            for ((block, cache), seen) in self.decoder.iter().zip(&mut caches).zip(&seen) {
                let memory = seen.as_ref().map(|seen| (seen, &mask));
                x = block.forward_cached(weights, x, (cache, &Mask::causal()), memory);
            }
            let logs = activation::log_softmax(self.logits(weights, x), 1);
            let k = logs.dims()[1];
            let logs = numbers(logs);
            let mut from = Vec::with_capacity(n * beams);
            let mut next = Vec::with_capacity(n * beams);
            for (source, of_source) in found.chunks(beams).enumerate() {
                let chosen = best(of_source, &logs[source * beams * k..][..beams * k], k);
                for (row, beam) in chosen {
                    from.push((source * beams + row) as i32);
                    next.push(beam);
                }
            }
            found = next;
            if beams > 1 {
                for cache in caches.iter_mut().flatten() {
                    cache.keys = cache.keys.clone().select(0, at(from.clone()));
                    cache.values = cache.values.clone().select(0, at(from.clone()));
                }
            }
        }
        let first = found.chunks(beams).map(|beams| beams[0].clone());
        let without_end = |mut beam: Beam| {
            if beam.tokens.last() == Some(&END_TOKEN) {
                beam.tokens.pop();
            }
            (beam.tokens, beam.log)
        };
        first.map(without_end).collect()
    }
}

/// A target as far as it is found.
#[derive(Clone, Debug)]
struct Beam {
    tokens: Vec<u32>,
    log: f64,
    ended: bool,
}

/// The best continuations of the beams of a source, as many as there are beams, best first, with the beam that each goes on from.
fn best(beams: &[Beam], logs: &[f32], k: usize) -> Vec<(usize, Beam)> {
    // The score, the beam, and the token; none of a beam that has ended.
    let mut found: Vec<(f64, usize, Option<u32>)> = Vec::new();
    for (row, beam) in beams.iter().enumerate() {
        if beam.ended {
            found.push((beam.log, row, None));
            continue;
        }
        let mut tokens: Vec<(f64, usize, Option<u32>)> = (0u32..)
            .zip(&logs[row * k..][..k])
            .map(|(token, log)| (beam.log + f64::from(*log), row, Some(token)))
            .collect();
        let order = |a: &(f64, usize, Option<u32>), b: &(f64, usize, Option<u32>)| {
            b.0.total_cmp(&a.0).then(a.2.cmp(&b.2))
        };
        if tokens.len() > beams.len() {
            tokens.select_nth_unstable_by(beams.len() - 1, order);
            tokens.truncate(beams.len());
        }
        found.extend(tokens);
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    found.truncate(beams.len());
    let grown = |(log, row, token): (f64, usize, Option<u32>)| {
        let mut beam = beams[row].clone();
        if let Some(token) = token {
            beam.tokens.push(token);
            beam.log = log;
            beam.ended = token == END_TOKEN;
        }
        (row, beam)
    };
    found.into_iter().map(grown).collect()
}

/// Sequences of one length, with ends behind the shorter ones.
pub(super) fn padded(sequences: &[&[u32]]) -> Vec<u32> {
    let longest = sequences.iter().map(|one| one.len()).max().unwrap_or(0);
    let mut tokens = Vec::with_capacity(longest * sequences.len());
    for sequence in sequences {
        tokens.extend_from_slice(sequence);
        tokens.extend(std::iter::repeat_n(END_TOKEN, longest - sequence.len()));
    }
    tokens
}
