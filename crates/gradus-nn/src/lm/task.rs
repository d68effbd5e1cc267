//! What a language model learns: windows of a text.

use super::LmNetwork;
use crate::device::numbers;
use crate::layers::Pass;
use crate::ops::cross_entropy;
use crate::train::Task;
use crate::weights::{Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::random::Stream;
use gradus_data::{END_TOKEN, TokenCodec};

/// Windows that are scored after an iteration.
const SCORED: usize = 256;

/// Tokens that are scored at once.
const AT_ONCE: usize = 1024;

/// Documents one after another, with an end before each and behind the last.
pub(super) fn stream(codec: &TokenCodec, texts: &[&str]) -> Vec<u32> {
    let mut tokens = vec![END_TOKEN];
    for encoded in codec.encode_all(texts) {
        tokens.extend(encoded);
        tokens.push(END_TOKEN);
    }
    tokens
}

/// The task of a language model.
pub(super) struct TextTask<'a> {
    pub(super) layout: &'a Layout,
    pub(super) network: &'a LmNetwork,
    /// The tokens to learn from: more than the context.
    pub(super) train: &'a [u32],
    /// Held-out tokens, at least two.
    pub(super) held: Option<&'a [u32]>,
    /// Steps in all, and in an iteration.
    pub(super) steps: (usize, usize),
    /// Windows of a step.
    pub(super) batch: usize,
}

impl TextTask<'_> {
    /// The mean loss of windows of held-out text, every `every`-th of them.
    fn held_loss(&self, weights: &Weights, every: usize) -> Option<f64> {
        let held = self.held?;
        let context = self.network.context();
        let device = weights.tensors().first().map(Tensor::device)?;
        let on_cpu = crate::device::is_cpu(&device);
        let (mut loss, mut count) = (0.0, 0);
        let windows: Vec<&[u32]> = windows(held, context).step_by(every.max(1)).collect();
        let at_once = if on_cpu { (AT_ONCE / context).max(1) } else { SCORED };
        for windows in windows.chunk_by(|a, b| a.len() == b.len()) {
            for windows in windows.chunks(at_once) {
                let (inputs, targets) = cut(windows.iter().copied());
                let logits =
                    self.network.forward(weights, &inputs, windows.len(), &Pass::predicting());
                let ones = vec![1.0; targets.len()];
                loss += f64::from(numbers(cross_entropy(logits, &targets, &ones))[0]);
                count += targets.len();
            }
        }
        Some(loss / count as f64)
    }
}

/// Windows of a text one after another; each begins with the last token of the one before, and all but the last are of
/// `context` tokens and one more.
fn windows(tokens: &[u32], context: usize) -> impl Iterator<Item = &[u32]> {
    let starts = (0..tokens.len() - 1).step_by(context);
    starts.map(move |at| &tokens[at..(at + context + 1).min(tokens.len())])
}

/// All tokens of windows but the last of each, and all but the first of each.
pub(super) fn cut<'a>(windows: impl Iterator<Item = &'a [u32]>) -> (Vec<u32>, Vec<u32>) {
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for window in windows {
        inputs.extend_from_slice(&window[..window.len() - 1]);
        targets.extend_from_slice(&window[1..]);
    }
    (inputs, targets)
}

impl Task for TextTask<'_> {
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
        let context = self.network.context();
        let mut stream = Stream::new(pass.seed(), "lm.window", 0);
        let starts: Vec<usize> =
            units.iter().map(|_| stream.index(self.train.len() - context)).collect();
        let (inputs, targets) = cut(starts.iter().map(|&at| &self.train[at..at + context + 1]));
        let logits = self.network.forward(weights, &inputs, units.len(), pass);
        let share = vec![1.0 / targets.len() as f32; targets.len()];
        cross_entropy(logits, &targets, &share)
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        let n = self.held?.len().div_ceil(self.network.context());
        self.held_loss(weights, n.div_ceil(SCORED))
    }

    fn validate_kept(&self, weights: &Weights) -> Option<f64> {
        self.held_loss(weights, 1)
    }

    fn model(&self) -> &'static str {
        "lm"
    }
}

/// The held-out loss of tokens that come with their frequency in training, each counted once more.
pub(super) fn unigram_loss(train: &[u32], held: &[u32], n: usize) -> f64 {
    let mut counts = vec![1u64; n];
    train.iter().for_each(|&token| counts[token as usize] += 1);
    let total = (train.len() + n) as f64;
    let loss = |&token: &u32| -(counts[token as usize] as f64 / total).ln();
    held[1..].iter().map(loss).sum::<f64>() / (held.len() - 1) as f64
}
