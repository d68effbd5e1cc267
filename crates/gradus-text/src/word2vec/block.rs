//! A block of a batch: its steps, on copies of the rows it touches.

use super::{Settings, Targets, Task};
use gradus_base::random::Stream;
use gradus_kernel::words::{WordLoss, WordSteps, cbow_steps, skipgram_steps, subtract_rows};
use gradus_kernel::{Level, Rows, dot, prefetch, softmax_steps};
use std::ops::Range;

/// Documents of a block whose vectors are compared with those of others.
const KEPT: usize = 4;

/// Words of a batch that were kept, and the number of the document of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) words: Vec<u32>,
    pub(super) documents: Vec<u32>,
}

/// The rows of one side that a block touches: copies of them, which become what the block changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    /// The words, in the order in which they were met.
    pub(super) words: Vec<u32>,
    /// The rows of the copies.
    pub(super) rows: Vec<f32>,
    /// The number of steps in which each row takes part.
    pub(super) n_steps: Vec<u32>,
    /// The sum of the squared lengths of the first rows, and their number.
    pub(super) lengths: (f64, usize),
    /// Some of the rows, where inputs are documents, each with its share of the steps.
    pub(super) some: Vec<(f64, Vec<f32>)>,
    /// The places by part of all rows, for the merge.
    pub(super) by_part: Vec<Vec<u32>>,
}

impl Touched {
    fn copy(&mut self, from: &Rows) {
        const AHEAD: usize = 4;
        let stride = from.stride();
        self.rows.clear();
        self.rows.reserve(self.words.len() * stride);
        for (at, &word) in self.words.iter().enumerate() {
            if let Some(&next) = self.words.get(at + AHEAD) {
                prefetch(from.as_slice(), next as usize * stride, stride);
            }
            self.rows.extend_from_slice(from.row(word as usize));
        }
    }

    fn clear(&mut self) {
        self.words.clear();
        self.n_steps.clear();
    }

    /// Measures some rows: the first to be met are mostly frequent words.
    fn measure(&mut self, stride: usize) {
        const MEASURED: usize = 64;
        let some = &self.rows[..self.rows.len().min(MEASURED * stride)];
        let sum = some.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        self.lengths = (sum, some.len() / stride);
    }

    /// Copies some rows, spread over all.
    fn keep_some(&mut self, stride: usize) {
        let n = self.words.len();
        let some = (0..n.min(KEPT)).map(|at| at * n / n.min(KEPT));
        let row = |at: usize| self.rows[at * stride..(at + 1) * stride].to_vec();
        self.some = some.map(|at| (f64::from(self.n_steps[at]), row(at))).collect();
    }

    /// Takes what was there before away.
    fn subtract(&mut self, from: &Rows) {
        let (stride, rows) = (from.stride(), from.as_slice());
        subtract_rows(Level::best(), stride, rows, &self.words, &mut self.rows);
    }
}

/// The root of the mean squared product of the inputs of two steps in different blocks, where inputs are documents.
///
/// What a step does to an output is done again by another as far as their inputs have one direction. Documents of different
/// blocks have little in common, much less than the squared length of one: by that length, what blocks change of a frequent
/// word would be taken for repetitions of each other, and cut to half or worse.
pub(super) fn product_across(blocks: &[&Changes]) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for (at, block) in blocks.iter().enumerate() {
        for other in &blocks[..at] {
            for (steps, x) in &block.inputs.some {
                for (more, y) in &other.inputs.some {
                    let product = f64::from(dot(Level::best(), x, y));
                    sum += steps * more * product * product;
                    n += steps * more;
                }
            }
        }
    }
    if n > 0.0 { (sum / n).sqrt() } else { 0.0 }
}

/// The changes of a block on both sides.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) inputs: Touched,
    pub(super) outputs: Touched,
    pub(super) loss: WordLoss,
    pub(super) n_words: u64,
}

/// Numbers the words of a block as they are met.
struct Places {
    of_word: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

/// Steps of the whole softmax bend the loss of a word by its probability, which is as often there as the word: an
/// occurrence counts as this many steps of a curvature of ¼.
const SOFTMAX_STEPS: u32 = 4;

impl Places {
    #[inline]
    fn of(&mut self, word: u32, touched: &mut Touched) -> u32 {
        let place = &mut self.of_word[word as usize];
        if *place == NOWHERE {
            *place = touched.words.len() as u32;
            touched.words.push(word);
            touched.n_steps.push(0);
        }
        touched.n_steps[*place as usize] += 1;
        *place
    }

    fn forget(&mut self, touched: &Touched) {
        touched.words.iter().for_each(|&word| self.of_word[word as usize] = NOWHERE);
    }
}

/// The scratch memory of a thread.
pub(super) struct Workspace {
    inputs: Places,
    outputs: Places,
    steps: WordSteps,
    drawn: Vec<u32>,
}

impl Workspace {
    pub(super) fn new(n_inputs: usize, n_outputs: usize) -> Self {
        let places = |n: usize| Places { of_word: vec![NOWHERE; n] };
        let (inputs, outputs) = (places(n_inputs), places(n_outputs));
        Self { inputs, outputs, steps: WordSteps::default(), drawn: Vec::new() }
    }

    /// Trains the words of a range as centres, starting from the vectors of all words; the changes are put into `changes`.
    pub(super) fn train(
        &mut self,
        settings: &Settings<'_>,
        (kept, centres): (&Kept, Range<usize>),
        (inputs, outputs): (&Rows, &Rows),
        rate: f32,
        mut stream: Stream,
        changes: &mut Changes,
    ) {
        changes.inputs.clear();
        changes.outputs.clear();
        changes.n_words = centres.len() as u64;
        self.plan(settings, kept, centres, &mut stream, changes);
        changes.inputs.copy(inputs);
        changes.outputs.copy(outputs);
        let (level, stride, steps) = (Level::best(), inputs.stride(), &self.steps);
        let (x, w) = (&mut changes.inputs.rows, &mut changes.outputs.rows);
        changes.loss = match (settings.targets, settings.task == Task::Cbow) {
            (Targets::Softmax, is_cbow) => softmax_steps(level, stride, rate, x, w, steps, is_cbow),
            (_, true) => cbow_steps(level, stride, rate, x, w, steps),
            (_, false) => skipgram_steps(level, stride, rate, x, w, steps),
        };
        changes.inputs.measure(inputs.stride());
        changes.outputs.measure(outputs.stride());
        if settings.task == Task::Document {
            changes.inputs.keep_some(inputs.stride());
        }
        changes.inputs.subtract(inputs);
        changes.outputs.subtract(outputs);
    }

    /// The steps of the block: for each centre a window drawn up to the largest, and the targets of its word.
    fn plan(
        &mut self,
        settings: &Settings<'_>,
        kept: &Kept,
        centres: Range<usize>,
        stream: &mut Stream,
        changes: &mut Changes,
    ) {
        self.steps.clear();
        let Self { inputs, outputs, steps, drawn } = self;
        if matches!(settings.targets, Targets::Softmax) {
            // Every word takes part in every step: its place is its number.
            changes.outputs.words.extend(0..outputs.of_word.len() as u32);
            changes.outputs.n_steps.resize(outputs.of_word.len(), 1);
        }
        let mut n_left = 0;
        for centre in centres {
            let (word, document) = (kept.words[centre], kept.documents[centre]);
            if settings.task == Task::Document {
                steps.inputs.push(inputs.of(document, &mut changes.inputs));
            } else {
                let window = 1 + stream.index(settings.window);
                let last = (centre + window + 1).min(kept.words.len());
                let before = steps.inputs.len();
                for at in centre.saturating_sub(window)..last {
                    if at != centre && kept.documents[at] == document {
                        steps.inputs.push(inputs.of(kept.words[at], &mut changes.inputs));
                    }
                }
                if steps.inputs.len() == before {
                    continue;
                }
            }
            match settings.targets {
                Targets::Negatives { negatives, n, sharing } => {
                    steps.outputs.push(outputs.of(word, &mut changes.outputs));
                    steps.labels.push(1.0);
                    if n_left == 0 {
                        drawn.clear();
                        drawn.extend((0..*n).map(|_| negatives.draw(stream)));
                        n_left = *sharing;
                    }
                    n_left -= 1;
                    for &drawn in &*drawn {
                        // The word that is there is no negative of itself.
                        if drawn != word {
                            steps.outputs.push(outputs.of(drawn, &mut changes.outputs));
                            steps.labels.push(0.0);
                        }
                    }
                }
                Targets::Softmax => {
                    steps.outputs.push(word);
                    steps.labels.push(1.0);
                    changes.outputs.n_steps[word as usize] += SOFTMAX_STEPS;
                }
                Targets::Tree(tree) => {
                    let (nodes, turns) = tree.way(word);
                    let places = nodes.iter().map(|&node| outputs.of(node, &mut changes.outputs));
                    steps.outputs.extend(places);
                    steps.labels.extend_from_slice(turns);
                }
            }
            steps.input_ends.push(steps.inputs.len() as u32);
            steps.output_ends.push(steps.outputs.len() as u32);
        }
        inputs.forget(&changes.inputs);
        outputs.forget(&changes.outputs);
    }
}
