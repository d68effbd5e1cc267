//! Skip-gram, CBOW and paragraph vectors, in parallel and with the same result on any number of threads.
//!
//! An epoch is cut into batches of text, and each batch into up to [`BLOCKS`] blocks, by the words alone, whatever the number of threads. A block
//! takes its steps on copies of the rows it touches (`block`); when all blocks of a batch are done, what they changed is
//! put together in their order (`merge`). Windows, occurrences of frequent words and negatives are drawn from random streams of the
//! batch and of the block (`draw`). The losses differ in the targets of a prediction: negative examples drawn at random,
//! all words, or the turns on the way to the word through a tree (`tree`).
//! With character n-grams, the words of a batch are put together before it (`composed`).

mod block;
mod composed;
mod draw;
mod merge;
mod tree;

use crate::corpus::{Corpus, END};
use crate::vectors::Subwords;
use block::{Changes, Kept, Workspace};
use composed::{Composed, Composition};
pub(crate) use draw::{Negatives, keeping};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_data::CharNgrams;
use gradus_file::{Reader, Writer};
use gradus_kernel::Rows;
use merge::{Decay, Parts, Side, merge};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use tree::Tree;

/// Blocks of a batch, which may run at once.
const BLOCKS: usize = 8;

/// Words of a block, those that are not kept included.
const BLOCK_WORDS: usize = 384;

/// Words of a batch, and of a block, where words are made of parts. The words of a batch share most of their n-grams, and are put together
/// from the rows before it: vectors of batches of thousands of words have learned less from the same text, that of rare words most.
const COMPOSED: (usize, usize) = (128, 32);

/// A batch changes no row more often than about this many times: blocks do not see each other's changes.
const MOST_CHANGES: f64 = 160.0;

/// Most words of the whole softmax, which takes steps against all of them.
const MOST_SOFTMAX_WORDS: usize = 1 << 16;

/// The curvature of the softmax in an input is at most the mean square of the outputs: that of so many logistic losses.
const SOFTMAX_PARTNERS: f64 = 4.0;

/// The share of the steps from which on a node of the tree counts as changed too often in a batch.
const ROOT_SHARE: f64 = 0.25;

/// Words in a row that share their negatives, where a step has one input: steps are so short that fetching rows takes most
/// of their time.
const SHARING: usize = 2;

/// The loss of predicting a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Word2vecLoss {
    /// Words drawn at random (negative sampling)
    #[default]
    Negative,
    /// All other words: exact, and slow for more than some thousand words
    Softmax,
    /// The turns on the way to the word in Huffman's tree of all words (hierarchical softmax)
    Hierarchical,
}

/// The inputs from which words are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Each word from each of its neighbours.
    Skipgram,
    /// Each word from the mean of its neighbours.
    Cbow,
    /// Each word from its document: inputs are documents.
    Document,
}

impl Task {
    /// How often a text of this many words is gone through. Vectors of two million words of Wikipedia order the pairs of
    /// WordSim-353 by ρ = .43 after 5 times of `skipgram` and by .55 after 20 and after 40; `cbow` by .26 and .50. Half a
    /// million words need 20 times and 50. From ten
    /// (twenty) million words on it is five times, as in word2vec.
    fn epochs(self, n_words: usize) -> usize {
        let (enough, most) = match self {
            Self::Skipgram | Self::Document => (50_000_000_usize, 25),
            Self::Cbow => (100_000_000, 50),
        };
        enough.div_ceil(n_words.max(1)).clamp(5, most)
    }
}

/// The parameters of a fit.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) loss: Word2vecLoss,
    pub(crate) dimension: usize,
    pub(crate) window: usize,
    pub(crate) negatives: usize,
    pub(crate) negative_power: f64,
    pub(crate) subsample: f64,
    pub(crate) learning_rate: f32,
    /// Left out, chosen by the number of words.
    pub(crate) epochs: Option<usize>,
    /// The character n-grams that words are made of, besides a row of their own; none if the longest have length 0.
    pub(crate) ngrams: CharNgrams,
    pub(crate) seed: u64,
}

/// The targets of a prediction, by the loss.
enum Targets {
    /// `n` negative examples drawn at random, which `sharing` words in a row share.
    Negatives {
        negatives: Negatives,
        n: usize,
        sharing: usize,
    },
    Softmax,
    Tree(Tree),
}

/// The settings of a block.
struct Settings<'a> {
    task: Task,
    window: usize,
    targets: &'a Targets,
}

/// The fit of one corpus.
pub(crate) struct Trainer<'a> {
    corpus: &'a Corpus,
    options: Options,
    pub(crate) epochs: usize,
    targets: Targets,
    /// Input vectors: one of each word, or of each document.
    n_inputs: usize,
    /// Output vectors: one of each word, or of each inner node of the tree.
    n_outputs: usize,
    /// Outputs that a step moves, in the mean.
    partners: f64,
    keeping: Vec<u32>,
    parts: [Parts; 2],
    composition: Option<Composition>,
    n_blocks: usize,
    block_words: usize,
}

/// The vectors of the inputs and the outputs, in the order of the corpus.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) inputs: Rows,
    pub(crate) outputs: Rows,
    epoch: u64,
}

impl<'a> Trainer<'a> {
    pub(crate) fn new(corpus: &'a Corpus, options: Options) -> Result<Self> {
        let counts = corpus.counts();
        let n_words = counts.len();
        let plain: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
        let keeping = keeping(counts, options.subsample);
        let kept =
            |(count, chance): (&f64, &u32)| count * (f64::from(*chance) / f64::from(u32::MAX));
        let kept: Vec<f64> = plain.iter().zip(&keeping).map(kept).collect();
        // The words are in the order of their frequencies: the first is changed most often.
        let all: f64 = plain.iter().sum();
        let kept_share = kept.iter().sum::<f64>() / all;
        let largest = kept.iter().fold(0.0, |most: f64, x| most.max(*x)) / all;
        // Of the outputs: how often each is changed beside the others, the changes of all by a word, and those of the first.
        let (targets, weights, partners, as_output) = match options.loss {
            Word2vecLoss::Negative => {
                let negatives = Negatives::new(counts, options.negative_power)?;
                let powers: Vec<f64> =
                    plain.iter().map(|x| libm::pow(*x, options.negative_power)).collect();
                let n = options.negatives;
                let first = powers[0] / powers.iter().sum::<f64>();
                let sharing = if options.task == Task::Skipgram { 1 } else { SHARING };
                let targets = Targets::Negatives { negatives, n, sharing };
                (targets, powers, (n + 1) as f64, largest + n as f64 * kept_share * first)
            }
            Word2vecLoss::Softmax => {
                if n_words > MOST_SOFTMAX_WORDS {
                    let rule = format!(
                        "is for at most {MOST_SOFTMAX_WORDS} words, and there are {n_words}: take `negative` or \
                         `hierarchical`, or fewer words by `max_words` or `min_count`"
                    );
                    return Err(Error::parameter("loss", "softmax", rule));
                }
                (Targets::Softmax, plain.clone(), SOFTMAX_PARTNERS, 2.0 * largest)
            }
            Word2vecLoss::Hierarchical => {
                let tree = Tree::new(counts);
                let weights = tree.counts().to_vec();
                let turns = weights.iter().sum::<f64>() / all;
                // The root takes part in every step. It and the nodes below it are changed more often than words may be: the
                // mean of blocks is near enough for so few rows that all steps move.
                (Targets::Tree(tree), weights, turns, kept_share * ROOT_SHARE)
            }
        };
        let (of_inputs, as_input) = match options.task {
            Task::Document => {
                let mut lengths = Vec::with_capacity(corpus.n_documents());
                corpus.each_document(|document| {
                    lengths.push(document.len() as f64);
                    true
                })?;
                // The words of a document are in one block or few, one after the other.
                (lengths, 0.0)
            }
            Task::Skipgram | Task::Cbow => (plain, largest * (options.window + 1) as f64),
        };
        // A block of fewer words is not worth a thread.
        let (largest_batch, least) = match options.ngrams.max_n {
            0 => (BLOCKS * BLOCK_WORDS, 128),
            _ => COMPOSED,
        };
        let most = (MOST_CHANGES / as_output.max(as_input)).clamp(1.0, largest_batch as f64);
        let n_blocks = (most as usize / least).clamp(1, BLOCKS);
        let block_words = (most as usize / n_blocks).max(1);
        let n = (n_blocks * block_words) as f64;
        let parts = [Parts::new(&of_inputs, n), Parts::new(&weights, n * partners)];
        let composition = (options.ngrams.max_n > 0)
            .then(|| Composition::new(corpus, &options.ngrams, n * kept_share));
        let (n_inputs, n_outputs) = (of_inputs.len(), weights.len());
        let epochs = options.epochs.unwrap_or_else(|| options.task.epochs(corpus.n_tokens()));
        Ok(Self {
            corpus,
            options,
            epochs,
            targets,
            n_inputs,
            n_outputs,
            partners,
            keeping,
            parts,
            composition,
            n_blocks,
            block_words,
        })
    }

    /// The number of rows of the state that inputs are made of.
    fn n_rows(&self) -> usize {
        self.composition.as_ref().map_or(self.n_inputs, Composition::n_rows)
    }

    /// The vectors of the words.
    pub(crate) fn vectors<'s>(&self, state: &'s State) -> Cow<'s, Rows> {
        match &self.composition {
            Some(composition) => Cow::Owned(composition.all(&state.inputs)),
            None => Cow::Borrowed(&state.inputs),
        }
    }

    /// The vectors of character n-grams, if words have them.
    pub(crate) fn subwords(&self, state: &State) -> Result<Option<Subwords>> {
        let Some(composition) = &self.composition else { return Ok(None) };
        let (n, k) = (self.corpus.words().len(), self.options.dimension);
        let rows = n..n + composition.buckets().len();
        let values = rows.flat_map(|at| &state.inputs.row(at)[..k]).copied().collect();
        let buckets = Some(composition.buckets().to_vec());
        Subwords::new(self.options.ngrams, buckets, k, values).map(Some)
    }

    /// The words of a batch that are kept.
    fn keep(
        &self,
        tokens: Range<usize>,
        document: &mut u32,
        mut stream: Stream,
        kept: &mut Kept,
    ) -> Result<()> {
        kept.words.clear();
        kept.documents.clear();
        for &word in &*self.corpus.part(tokens.start, tokens.len())? {
            if word == END {
                *document += 1;
                continue;
            }
            let chance = self.keeping[word as usize];
            if chance == u32::MAX || (stream.next_u64() >> 32) as u32 <= chance {
                kept.words.push(word);
                kept.documents.push(*document);
            }
        }
        Ok(())
    }
}

impl Solver for Trainer<'_> {
    type State = State;

    fn start(&self, _restart: usize) -> Result<State> {
        let (n, k) = (self.n_rows(), self.options.dimension);
        let (mut inputs, outputs) = (Rows::zeros(n, k), Rows::zeros(self.n_outputs, k));
        for at in 0..n {
            let mut stream = Stream::new(self.options.seed, "word2vec.start", at as u64);
            // A mean of several rows is shorter than each of them.
            let most = if self.composition.is_some() { 1.0 } else { 0.5 } / k as f64;
            inputs.row_mut(at)[..k].fill_with(|| stream.uniform_in(-most, most) as f32);
        }
        Ok(State { inputs, outputs, epoch: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let Self { corpus, options, targets, parts, partners, .. } = self;
        let Options { task, window, .. } = *options;
        let settings = Settings { task, window, targets };
        let n = corpus.len();
        let batch_words = self.n_blocks * self.block_words;
        let n_batches = n.div_ceil(batch_words) as u64;
        let mut work: Vec<(Workspace, Changes)> = (0..self.n_blocks)
            .map(|_| (Workspace::new(self.n_inputs, self.n_outputs), Changes::default()))
            .collect();
        let (mut kept, mut document) = (Kept::default(), 0);
        let (mut loss, mut n_measured) = (0.0, 0);
        let composition = self.composition.as_ref();
        let mut composed = composition.map(|of_words| Composed::new(of_words, options.dimension));
        for (batch, tokens) in (0..).zip(parallel::blocks(n, batch_words)) {
            if watch.stopped() {
                return Ok(Step::Partial);
            }
            let number = state.epoch * n_batches + batch;
            let done = (state.epoch as f64 + tokens.start as f64 / n as f64) / self.epochs as f64;
            // As word2vec, to a small share of the first rate.
            let rate = (f64::from(options.learning_rate) * (1.0 - done).max(1e-4)) as f32;
            let stream = Stream::new(options.seed, "word2vec.keep", number);
            self.keep(tokens, &mut document, stream, &mut kept)?;
            if let Some(composed) = &mut composed {
                composed.compose(&state.inputs, &kept.words);
            }
            let inputs = composed.as_ref().map_or(&state.inputs, |composed| &composed.vectors);
            let size = kept.words.len().div_ceil(self.n_blocks).max(1);
            let n_kept = kept.words.len();
            let pieces = work.iter_mut().enumerate().map(|(block, work)| {
                (block, work, (block * size).min(n_kept)..((block + 1) * size).min(n_kept))
            });
            parallel::each(pieces, |(block, (workspace, changes), centres)| {
                let index = number * self.n_blocks as u64 + block as u64;
                let stream = Stream::new(options.seed, "word2vec.block", index);
                let rows = (inputs, &state.outputs);
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
            let n_inputs = (window + 1) as f64;
            let (of_inputs, of_outputs) = match task {
                Task::Skipgram => (*partners, n_inputs),
                Task::Cbow => (partners / n_inputs, 1.0 / n_inputs),
                Task::Document => (*partners, 1.0),
            };
            let decays = [
                Decay::new(rate, of_inputs, sum(|changes| changes.outputs.lengths)),
                Decay::new(rate, of_outputs, sum(|changes| changes.inputs.lengths)),
            ];
            let inputs = match &mut composed {
                Some(composed) => &mut composed.vectors,
                None => &mut state.inputs,
            };
            merge([
                Side {
                    rows: inputs,
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
            if let Some(composed) = &mut composed {
                composed.spread(&mut state.inputs, &changes, &decays[0]);
            }
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
        let (n, k) = (self.n_rows(), self.options.dimension);
        let mut rows = |name: &str, n: usize| -> Result<Rows> {
            let mut rows = Rows::zeros(n, k);
            let stride = rows.stride();
            let values = file.finite::<f32>(&format!("{prefix}{name}"), &[n, stride])?;
            rows.as_mut_slice().copy_from_slice(&values);
            Ok(rows)
        };
        let (inputs, outputs) = (rows("inputs", n)?, rows("outputs", self.n_outputs)?);
        Ok(State { inputs, outputs, epoch: file.get(&format!("{prefix}epoch"))? })
    }
}

#[cfg(test)]
mod tests;
