//! Skip-gram and CBOW with negative sampling, in parallel and with the same result on any number of threads.
//!
//! An epoch is cut into batches of text, and each batch into up to [`BLOCKS`] blocks, by the words alone, whatever the number of threads. A block
//! takes its steps on copies of the rows it touches (`block`); when all blocks of a batch are done, what they changed is
//! put together in their order (`merge`). Windows, occurrences of frequent words and negatives are drawn from random streams of the
//! batch and of the block (`draw`).

mod block;
mod draw;
mod merge;

use crate::corpus::Corpus;
use block::{Changes, Kept, Workspace};
use draw::{Negatives, keeping};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_file::{Reader, Writer};
use gradus_kernel::Rows;
use merge::{Decay, Parts, Side, merge};
use std::ops::Range;

/// Blocks of a batch, which may run at once.
const BLOCKS: usize = 8;

/// Words of a block, those that are not kept included.
const BLOCK_WORDS: usize = 384;

/// A batch changes no row more often than about so many times: blocks do not see each other's changes.
const MOST_CHANGES: f64 = 160.0;

/// Words in a row that share their negatives, of CBOW: its steps are so short that fetching rows takes most of their time.
const CBOW_SHARING: usize = 2;

/// What a fit is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) is_cbow: bool,
    pub(crate) dimension: usize,
    pub(crate) window: usize,
    pub(crate) negatives: usize,
    pub(crate) negative_power: f64,
    pub(crate) subsample: f64,
    pub(crate) learning_rate: f32,
    pub(crate) epochs: usize,
    pub(crate) seed: u64,
}

/// What a block needs to know.
struct Settings<'a> {
    is_cbow: bool,
    window: usize,
    n_negatives: usize,
    /// So many words in a row share their negatives.
    sharing: usize,
    negatives: &'a Negatives,
}

/// The fit of one corpus.
pub(crate) struct Trainer<'a> {
    corpus: &'a Corpus,
    options: Options,
    negatives: Negatives,
    keeping: Vec<u32>,
    parts: [Parts; 2],
    n_blocks: usize,
    block_words: usize,
}

/// The vectors of the words, in the order of the corpus: as inputs and as outputs.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) inputs: Rows,
    pub(crate) outputs: Rows,
    epoch: u64,
}

impl<'a> Trainer<'a> {
    pub(crate) fn new(corpus: &'a Corpus, options: Options) -> Result<Self> {
        let counts = corpus.counts();
        let negatives = Negatives::new(counts, options.negative_power)?;
        let plain: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
        let powers: Vec<f64> =
            plain.iter().map(|x| libm::pow(*x, options.negative_power)).collect();
        let keeping = keeping(counts, options.subsample);
        let kept =
            |(count, chance): (&f64, &u32)| count * (f64::from(*chance) / f64::from(u32::MAX));
        let kept: Vec<f64> = plain.iter().zip(&keeping).map(kept).collect();
        // The words are in the order of their frequencies: the first is changed most often.
        let (all, drawn): (f64, f64) = (plain.iter().sum(), powers.iter().sum());
        let kept_share = kept.iter().sum::<f64>() / all;
        let largest = kept.iter().fold(0.0, |most: f64, x| most.max(*x)) / all;
        let as_output = largest + options.negatives as f64 * kept_share * powers[0] / drawn;
        let as_input = largest * (options.window + 1) as f64;
        let most =
            (MOST_CHANGES / as_output.max(as_input)).clamp(1.0, (BLOCKS * BLOCK_WORDS) as f64);
        // A block of few words is not worth a thread.
        let n_blocks = (most as usize / 128).clamp(1, BLOCKS);
        let block_words = (most as usize / n_blocks).max(1);
        let n = (n_blocks * block_words) as f64;
        let parts = [Parts::new(&plain, n), Parts::new(&powers, n * options.negatives as f64)];
        Ok(Self { corpus, options, negatives, keeping, parts, n_blocks, block_words })
    }

    /// The words of a batch that are kept.
    fn keep(
        &self,
        tokens: Range<usize>,
        document: &mut usize,
        mut stream: Stream,
        kept: &mut Kept,
    ) {
        kept.words.clear();
        kept.documents.clear();
        let ends = self.corpus.ends();
        for at in tokens {
            while ends[*document] <= at {
                *document += 1;
            }
            let word = self.corpus.tokens()[at];
            let chance = self.keeping[word as usize];
            if chance == u32::MAX || (stream.next_u64() >> 32) as u32 <= chance {
                kept.words.push(word);
                kept.documents.push(*document as u32);
            }
        }
    }
}

impl Solver for Trainer<'_> {
    type State = State;

    fn start(&self, _restart: usize) -> Result<State> {
        let (n, k) = (self.corpus.words().len(), self.options.dimension);
        let (mut inputs, outputs) = (Rows::zeros(n, k), Rows::zeros(n, k));
        for at in 0..n {
            let mut stream = Stream::new(self.options.seed, "word2vec.start", at as u64);
            let most = 0.5 / k as f64;
            inputs.row_mut(at)[..k].fill_with(|| stream.uniform_in(-most, most) as f32);
        }
        Ok(State { inputs, outputs, epoch: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let Self { corpus, options, negatives, parts, .. } = self;
        let settings = Settings {
            is_cbow: options.is_cbow,
            window: options.window,
            n_negatives: options.negatives,
            sharing: if options.is_cbow { CBOW_SHARING } else { 1 },
            negatives,
        };
        let n = corpus.tokens().len();
        let batch_words = self.n_blocks * self.block_words;
        let n_batches = n.div_ceil(batch_words) as u64;
        let mut work: Vec<(Workspace, Changes)> = (0..self.n_blocks)
            .map(|_| (Workspace::new(corpus.words().len()), Changes::default()))
            .collect();
        let (mut kept, mut document) = (Kept::default(), 0);
        let (mut loss, mut n_measured) = (0.0, 0);
        for (batch, tokens) in (0..).zip(parallel::blocks(n, batch_words)) {
            if watch.stopped() {
                return Ok(Step::Partial);
            }
            let number = state.epoch * n_batches + batch;
            let done =
                (state.epoch as f64 + tokens.start as f64 / n as f64) / options.epochs as f64;
            // As word2vec, to a small share of the first rate.
            let rate = (f64::from(options.learning_rate) * (1.0 - done).max(1e-4)) as f32;
            let stream = Stream::new(options.seed, "word2vec.keep", number);
            self.keep(tokens, &mut document, stream, &mut kept);
            let size = kept.words.len().div_ceil(self.n_blocks).max(1);
            let n_kept = kept.words.len();
            let pieces = work.iter_mut().enumerate().map(|(block, work)| {
                (block, work, (block * size).min(n_kept)..((block + 1) * size).min(n_kept))
            });
            parallel::each(pieces, |(block, (workspace, changes), centres)| {
                let index = number * self.n_blocks as u64 + block as u64;
                let stream = Stream::new(options.seed, "word2vec.block", index);
                let rows = (&state.inputs, &state.outputs);
                workspace.train(&settings, (&kept, centres), rows, rate, stream, changes);
                parts[0].sort(&mut changes.inputs);
                parts[1].sort(&mut changes.outputs);
            });
            let changes: Vec<&Changes> = work.iter().map(|(_, changes)| changes).collect();
            for changes in &changes {
                loss += changes.loss.loss;
                n_measured += changes.loss.n;
            }
            let sum = |of: fn(&Changes) -> (f64, usize)| {
                let lengths = changes.iter().map(|changes| of(changes));
                lengths.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            // The inputs of CBOW act by their mean alone: one of them moves it by its share, and it is as much shorter.
            let n_inputs = (options.window + 1) as f64;
            let (of_inputs, of_outputs) = match options.is_cbow {
                true => ((options.negatives + 1) as f64 / n_inputs, 1.0 / n_inputs),
                false => ((options.negatives + 1) as f64, n_inputs),
            };
            let decays = [
                Decay::new(rate, of_inputs, sum(|changes| changes.outputs.lengths)),
                Decay::new(rate, of_outputs, sum(|changes| changes.inputs.lengths)),
            ];
            merge([
                Side {
                    rows: &mut state.inputs,
                    parts: &parts[0],
                    decay: &decays[0],
                    blocks: changes.iter().map(|changes| &changes.inputs).collect(),
                },
                Side {
                    rows: &mut state.outputs,
                    parts: &parts[1],
                    decay: &decays[1],
                    blocks: changes.iter().map(|changes| &changes.outputs).collect(),
                },
            ]);
            watch.within((batch + 1) as f64 / n_batches as f64);
        }
        state.epoch += 1;
        Ok(Step::Done(if n_measured > 0 { loss / n_measured as f64 } else { 0.0 }))
    }

    fn validate(&self, _state: &State) -> Option<f64> {
        None
    }

    fn has_atomic_steps(&self) -> bool {
        false
    }

    fn depends_on_max_iter(&self) -> bool {
        true
    }

    fn keeps_last(&self) -> bool {
        true
    }

    fn write_state<'s>(&self, state: &'s State, prefix: &str, file: &mut Writer<'s>) {
        for (name, rows) in [("inputs", &state.inputs), ("outputs", &state.outputs)] {
            file.tensor(
                &format!("{prefix}{name}"),
                &[rows.n_rows(), rows.stride()],
                rows.as_slice(),
            );
        }
        file.set(&format!("{prefix}epoch"), &state.epoch);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n, k) = (self.corpus.words().len(), self.options.dimension);
        let mut rows = |name: &str| -> Result<Rows> {
            let mut rows = Rows::zeros(n, k);
            let stride = rows.stride();
            let values = file.finite::<f32>(&format!("{prefix}{name}"), &[n, stride])?;
            rows.as_mut_slice().copy_from_slice(&values);
            Ok(rows)
        };
        let (inputs, outputs) = (rows("inputs")?, rows("outputs")?);
        Ok(State { inputs, outputs, epoch: file.get(&format!("{prefix}epoch"))? })
    }
}

#[cfg(test)]
mod tests;
