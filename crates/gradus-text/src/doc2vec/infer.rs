//! The vector of a document, with the vectors of words held fixed.

use crate::word2vec::{Negatives, keeping};
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_kernel::words::infer_steps;
use gradus_kernel::{Level, Rows};
use serde::{Deserialize, Serialize};

/// How vectors of documents are found: as in training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Inference {
    pub(super) negatives: usize,
    pub(super) negative_power: f64,
    pub(super) subsample: f64,
    pub(super) learning_rate: f32,
    pub(super) epochs: usize,
    pub(super) seed: u64,
}

/// The draws that all documents share.
pub(super) struct Draws<'a> {
    inference: &'a Inference,
    negatives: Negatives,
    keeping: Vec<u32>,
}

/// Memory to use again.
#[derive(Default)]
pub(super) struct Workspace {
    words: Vec<u32>,
    outputs: Vec<u32>,
    labels: Vec<f32>,
}

/// Words whose steps are taken together.
const TOGETHER: usize = 4;

impl<'a> Draws<'a> {
    pub(super) fn new(inference: &'a Inference, counts: &[u64]) -> Result<Self> {
        let negatives = Negatives::new(counts, inference.negative_power)?;
        Ok(Self { inference, negatives, keeping: keeping(counts, inference.subsample) })
    }

    /// Finds the vector of a document with these words, this many times each; `x` is a padded row. Without words it is 0.
    pub(super) fn find(
        &self,
        (words, counts): (&[u32], &[f64]),
        vectors: &Rows,
        work: &mut Workspace,
        x: &mut [f32],
    ) {
        let Inference { negatives, learning_rate, epochs, seed, .. } = *self.inference;
        let (k, stride, level) = (vectors.k(), vectors.stride(), Level::best());
        x.fill(0.0);
        work.words.clear();
        let mut key = 0u64;
        for (&word, &count) in words.iter().zip(counts) {
            // Counts that are no whole numbers, from a table, are rounded.
            let count = count.round().clamp(0.0, f64::from(u32::MAX)) as usize;
            work.words.extend(std::iter::repeat_n(word, count));
            // A document is known by its words, so that its vector depends on nothing else.
            key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(word) << 32 | count as u64);
        }
        if work.words.is_empty() {
            return;
        }
        let mut stream = Stream::new(seed, "doc2vec.infer", key);
        let most = 0.5 / k as f64;
        x[..k].fill_with(|| stream.uniform_in(-most, most) as f32);
        let n_steps = epochs * work.words.len();
        for epoch in 0..epochs {
            stream.shuffle(&mut work.words);
            for (at, words) in (0..).step_by(TOGETHER).zip(work.words.chunks(TOGETHER)) {
                work.outputs.clear();
                work.labels.clear();
                for &word in words {
                    let chance = self.keeping[word as usize];
                    if chance != u32::MAX && (stream.next_u64() >> 32) as u32 > chance {
                        continue;
                    }
                    work.outputs.push(word);
                    work.labels.push(1.0);
                    for _ in 0..negatives {
                        let drawn = self.negatives.draw(&mut stream);
                        if drawn != word {
                            work.outputs.push(drawn);
                            work.labels.push(0.0);
                        }
                    }
                }
                let done = (epoch * work.words.len() + at) as f64 / n_steps as f64;
                let rate = (f64::from(learning_rate) * (1.0 - done).max(1e-4)) as f32;
                let rows = (vectors.as_slice(), work.outputs.as_slice());
                infer_steps(level, stride, rate, x, rows, &work.labels);
            }
        }
    }
}
