//! Texts that a language model writes, token by token.

use super::LmModel;
use super::decode::{Decoder, Past};
use crate::device::numbers;
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Continue, Generate, Sampling};
use gradus_data::{END_TOKEN, TokenDecoder};
use gradus_text::Documents;

/// A text that a model reads and writes. Keys and values of its tokens are kept, so that each is computed once. Where the context
/// is full, the second half of it is read anew as a context of its own: the places of tokens are learned, and change.
pub(super) struct Writing<'a> {
    model: &'a LmModel,
    decoder: &'a Decoder,
    past: Past,
    /// The tokens of the past.
    tokens: Vec<u32>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(model: &'a LmModel, decoder: &'a Decoder) -> Self {
        Self { model, decoder, past: Past::default(), tokens: Vec::new() }
    }

    /// Reads further tokens, at least one, and gives the logits of the one that comes after them.
    pub(super) fn read(&mut self, tokens: &[u32]) -> Vec<f32> {
        let context = self.model.architecture.context;
        let mut tokens = tokens.to_vec();
        if self.tokens.len() + tokens.len() > context {
            let mut all = std::mem::take(&mut self.tokens);
            all.extend(tokens);
            // A long text fills the context; what is written goes on from half of it, so that tokens seldom are read twice.
            let keep = if all.len() > context + 1 { context } else { context.div_ceil(2) };
            tokens = all.split_off(all.len() - keep);
            self.past = Past::default();
        }
        self.tokens.extend(&tokens);
        if self.past.len() == 0 && tokens.len() > 1 {
            // Many at once are read by products of matrices.
            let (network, mut cache) = (&self.model.network, self.model.network.cache());
            let logits = network.forward_cached(&self.model.weights, &tokens, &mut cache);
            self.past = Past::of(cache.into_blocks());
            return numbers(logits);
        }
        let read = tokens.iter().map(|&token| self.decoder.read(token, &mut self.past));
        read.last().unwrap_or_default()
    }
}

/// Draws a token. `allowed` says which may be drawn at all.
pub(super) fn draw(
    logits: &[f32],
    allowed: impl Fn(u32) -> bool,
    sampling: &Sampling,
    stream: &mut Stream,
) -> u32 {
    let mut order: Vec<(u32, f64)> = (0u32..)
        .zip(logits)
        .filter(|(token, logit)| allowed(*token) && !logit.is_nan())
        .map(|(token, logit)| (token, f64::from(*logit)))
        .collect();
    // Equally probable tokens stand in their order.
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let Some(&(first, most)) = order.first() else { return END_TOKEN };
    if sampling.temperature == 0.0 {
        return first;
    }
    if sampling.top_k > 0 {
        order.truncate(sampling.top_k);
    }
    order.iter_mut().for_each(|(_, x)| *x = libm::exp((*x - most) / sampling.temperature));
    let total: f64 = order.iter().map(|(_, x)| x).sum();
    // The token that reaches the share is taken as well.
    let mut left = sampling.top_p * total;
    let n = order.iter().position(|(_, x)| {
        left -= x;
        left <= 0.0
    });
    order.truncate(n.map_or(order.len(), |n| n + 1));
    let total: f64 = order.iter().map(|(_, x)| x).sum();
    let mut left = stream.uniform() * total;
    let found = order.iter().find(|(_, x)| {
        left -= x;
        left < 0.0
    });
    found.map_or(first, |(token, _)| *token)
}

impl LmModel {
    /// Goes on behind the prompt until `take` says no, the document ends, or there are so many tokens.
    fn write_on(
        &self,
        decoder: &Decoder,
        (prompt, n_tokens): (&[u32], usize),
        sampling: &Sampling,
        stream: &mut Stream,
        take: &mut dyn FnMut(u32) -> bool,
    ) {
        if n_tokens == 0 {
            return;
        }
        let mut writing = Writing::new(self, decoder);
        let start = [&[END_TOKEN], prompt].concat();
        let mut logits = writing.read(&start);
        for at in 1..=n_tokens {
            let token = draw(&logits, |token| self.codec.is_learned(token), sampling, stream);
            if token == END_TOKEN || !take(token) || at == n_tokens {
                return;
            }
            logits = writing.read(&[token]);
        }
    }
}

impl Continue for LmModel {
    fn continue_text(
        &self,
        prompt: &str,
        n_tokens: usize,
        sampling: &Sampling,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        sampling.check()?;
        let mut stream = Stream::new(sampling.seed, "lm.continue", 0);
        let (mut decoder, mut bytes) = (TokenDecoder::default(), Vec::new());
        let prompt = self.codec.encode(prompt.as_bytes());
        let given = (&prompt[..], n_tokens);
        self.write_on(&Decoder::new(self), given, sampling, &mut stream, &mut |token| {
            bytes.clear();
            decoder.push(&self.codec, token, &mut bytes);
            take(&bytes)
        });
        Ok(())
    }
}

impl Generate for LmModel {
    /// Documents with the probabilities of the model. They are cut where they have as many tokens as the context.
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        let decoder = Decoder::new(self);
        let texts = parallel::map_below(n, 1, |at| {
            let mut stream = Stream::new(seed, "lm.generate", at as u64);
            let mut tokens = Vec::new();
            let most = self.architecture.context;
            let plain = Sampling::default();
            self.write_on(&decoder, (&[], most), &plain, &mut stream, &mut |token| {
                tokens.push(token);
                true
            });
            // A character that was cut at the end, or bytes that are none.
            String::from_utf8_lossy(&self.codec.decode(&tokens)).into_owned()
        });
        Ok(Box::new(Documents::new(texts).named(&self.name)))
    }

    fn continuation(&self) -> Option<&dyn Continue> {
        Some(self)
    }
}
