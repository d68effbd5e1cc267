//! What an encoder and a decoder learn: pairs of a source and a target.

use super::{AT_ONCE, Seq2SeqNetwork};
use crate::device::numbers;
use crate::layers::Pass;
use crate::ops::cross_entropy;
use crate::train::Task;
use crate::weights::{Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::random::Stream;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::report::Measure;
use gradus_data::{END_TOKEN, TokenCodec};
use gradus_text::TextPairs;

/// Held-out pairs that are scored after an iteration, and whose targets are searched for.
const SCORED: usize = 1024;
const SEARCHED: usize = 200;

/// A pair, with an end behind source and target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) source: Vec<u32>,
    pub(super) target: Vec<u32>,
}

impl Pair {
    /// What the decoder reads: an end, and the target without its end.
    pub(super) fn input(&self) -> Vec<u32> {
        let mut input = vec![END_TOKEN];
        input.extend_from_slice(&self.target[..self.target.len() - 1]);
        input
    }
}

/// The tokens of pairs.
///
/// # Errors
/// If a text is longer than the context.
pub(super) fn encode(codec: &TokenCodec, pairs: &TextPairs, most: usize) -> Result<Vec<Pair>> {
    let (sources, targets) = (pairs.sources(), pairs.targets());
    let (sources, targets) = (codec.encode_all(&sources), codec.encode_all(&targets));
    let mut found = Vec::with_capacity(sources.len());
    for (at, (mut source, mut target)) in sources.into_iter().zip(targets).enumerate() {
        source.push(END_TOKEN);
        target.push(END_TOKEN);
        for (what, tokens) in [("source", &source), ("target", &target)] {
            if tokens.len() > most {
                let (n, number) = (grouped(tokens.len()), grouped(at + 1));
                let rule = format!(
                    "must be at least {n}: the {what} of pair {number} has as many tokens with its end"
                );
                return Err(Error::parameter("context", most, rule));
            }
        }
        found.push(Pair { source, target });
    }
    Ok(found)
}

/// The task of an encoder and a decoder.
pub(super) struct PairsTask<'a> {
    pub(super) layout: &'a Layout,
    pub(super) network: &'a Seq2SeqNetwork,
    /// The pairs to learn from, at least one.
    pub(super) train: &'a [Pair],
    /// Held-out pairs.
    pub(super) held: &'a [Pair],
    /// Steps in all, and in an iteration.
    pub(super) steps: (usize, usize),
    /// Pairs of a step.
    pub(super) batch: usize,
}

impl PairsTask<'_> {
    /// The sum of the losses of the tokens of targets, each times `weight`.
    fn summed(&self, weights: &Weights, pairs: &[&Pair], weight: f32, pass: &Pass) -> Tensor<1> {
        let sources: Vec<&[u32]> = pairs.iter().map(|pair| &pair.source[..]).collect();
        let memory = self.network.encode(weights, &sources, pass);
        let inputs: Vec<Vec<u32>> = pairs.iter().map(|pair| pair.input()).collect();
        let inputs: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
        let logits = self.network.decode(weights, &inputs, &memory, pass);
        let targets: Vec<&[u32]> = pairs.iter().map(|pair| &pair.target[..]).collect();
        let longest = targets.iter().map(|target| target.len()).max().unwrap_or(0);
        // Padding counts for nothing.
        let shares: Vec<f32> = targets
            .iter()
            .flat_map(|target| {
                (0..longest).map(move |at| if at < target.len() { weight } else { 0.0 })
            })
            .collect();
        cross_entropy(logits, &super::network::padded(&targets), &shares)
    }

    fn held_loss(&self, weights: &Weights, most: usize) -> Option<f64> {
        let held = &self.held[..self.held.len().min(most)];
        let count: usize = held.iter().map(|pair| pair.target.len()).sum();
        let mut sum = 0.0;
        for pairs in held.chunks(AT_ONCE) {
            let pairs: Vec<&Pair> = pairs.iter().collect();
            sum += f64::from(numbers(self.summed(weights, &pairs, 1.0, &Pass::predicting()))[0]);
        }
        (count > 0).then(|| sum / count as f64)
    }
}

impl Task for PairsTask<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn n_units(&self) -> usize {
        self.steps.1 * self.batch
    }

    /// The last iteration takes the steps that are left.
    fn n_units_of(&self, epoch: u64) -> usize {
        let (all, interval) = self.steps;
        let done = (epoch as usize).saturating_mul(interval);
        all.saturating_sub(done).clamp(1, interval) * self.batch
    }

    fn loss(&self, weights: &Weights, units: &[u32], pass: &Pass) -> Tensor<1> {
        let mut stream = Stream::new(pass.seed(), "seq2seq.pair", 0);
        let pairs: Vec<&Pair> =
            units.iter().map(|_| &self.train[stream.index(self.train.len())]).collect();
        let count: usize = pairs.iter().map(|pair| pair.target.len()).sum();
        self.summed(weights, &pairs, 1.0 / count as f32, pass)
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        self.held_loss(weights, SCORED)
    }

    fn validate_kept(&self, weights: &Weights) -> Option<f64> {
        self.held_loss(weights, usize::MAX)
    }

    fn measures(&self, weights: &Weights) -> Vec<Measure> {
        let held = &self.held[..self.held.len().min(SEARCHED)];
        if held.is_empty() {
            return Vec::new();
        }
        let sources: Vec<&[u32]> = held.iter().map(|pair| &pair.source[..]).collect();
        let found = self.network.search(weights, &sources, 1);
        let is_exact = |((found, _), pair): (&(Vec<u32>, f64), &Pair)| {
            found[..] == pair.target[..pair.target.len() - 1]
        };
        let exact = found.iter().zip(held).filter(|&both| is_exact(both)).count();
        vec![Measure::new("exact match", exact as f64 / held.len() as f64)]
    }

    fn model(&self) -> &'static str {
        "seq2seq"
    }
}
