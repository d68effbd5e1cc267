//! Stochastic gradient descent on documents, in parallel and with the same result on any number of threads.
//!
//! Documents are taken in batches, in an order drawn for each epoch. A document acts by the mean of the rows of its features, and
//! these means are computed for the whole batch at once. The rows of the classes, which all documents share, then take their steps
//! document by document; what these ask of the means is added to the rows of the features, in parallel by part of all rows,
//! document by document in each. So only what two documents of a batch have in common is out of date, and batches are
//! as small as it takes for that to be little.

use super::labels::{FastTextLoss, Labels};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_data::Bags;
use gradus_file::{Reader, Writer};
use gradus_kernel::bags::{add_to_each, mean_of_rows, move_rows, products};
use gradus_kernel::{Level, Rows};

/// Parts of the rows, which are changed in parallel.
const PARTS: usize = 16;

/// Documents of a batch at most.
const BATCH: usize = 32;

/// Pieces of a batch whose means are computed at once.
const PIECES: usize = 8;

/// Batches after which the size of a batch is chosen anew.
const REVISED: usize = 16;

/// A batch of fewer numbers is not worth several threads.
const LARGE: usize = 1 << 17;

/// A bound on the mutual effect of the documents of a batch, which do not see each other, relative to the effect of one
/// alone.
const COMMON: f64 = 0.5;

/// The parameters of a fit.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) dimension: usize,
    pub(super) learning_rate: f64,
    pub(super) epochs: usize,
    pub(super) loss: FastTextLoss,
    /// The number of features that are kept, from this epoch on: those of the longest rows, and the word that ends
    /// documents.
    pub(super) cutoff: Option<(usize, u64)>,
    pub(super) line_end: Option<u32>,
    pub(super) seed: u64,
}

/// The fit of some documents.
pub(super) struct Trainer<'a> {
    bags: &'a Bags,
    labels: &'a Labels,
    n_features: usize,
    /// Rows to start from, where they are given; `None` in a row that is not.
    start: Option<&'a (dyn Fn(usize) -> Option<Vec<f32>> + Sync)>,
    options: Options,
    /// The overlap of two documents: the mean product of their shares of features.
    common: f64,
    /// The start of the parts of the rows, and the number of rows.
    parts: Vec<usize>,
}

/// The rows of the features and of the classes.
#[derive(Clone)]
pub(super) struct State {
    pub(super) inputs: Rows,
    pub(super) outputs: Rows,
    /// The features that are kept, ascending; all if there are none.
    pub(super) kept: Vec<u32>,
    epoch: u64,
}

/// Memory of a batch.
struct Batch {
    means: Vec<f32>,
    changes: Vec<f32>,
    scores: Vec<f32>,
    rates: Vec<f32>,
    nodes: Vec<u32>,
}

impl<'a> Trainer<'a> {
    pub(super) fn new(
        (bags, n_features): (&'a Bags, usize),
        labels: &'a Labels,
        start: Option<&'a (dyn Fn(usize) -> Option<Vec<f32>> + Sync)>,
        options: Options,
    ) -> Self {
        let mut shares = vec![0f64; n_features];
        let mut counts = vec![0u64; n_features];
        for at in 0..bags.ends.len() {
            let features = bags.document(at);
            for &feature in features {
                shares[feature as usize] += 1.0 / features.len() as f64;
                counts[feature as usize] += 1;
            }
        }
        let n = bags.ends.len().max(1) as f64;
        let common: f64 = shares.iter().map(|share| (share / n) * (share / n)).sum();
        let total: u64 = counts.iter().sum();
        let (mut parts, mut sum) = (vec![0], 0);
        for (row, count) in counts.iter().enumerate() {
            while parts.len() < PARTS && sum * PARTS as u64 >= total * parts.len() as u64 {
                parts.push(row);
            }
            sum += count;
        }
        parts.resize(PARTS, n_features);
        parts.push(n_features);
        Self { bags, labels, n_features, start, options, common, parts }
    }

    /// The documents of a batch at this rate. A step moves the mean of another document by the rate times what the two have in
    /// common, and its scores by that times the squared lengths of the rows of the classes.
    fn batch(&self, outputs: &Rows, rate: f64) -> usize {
        let squares: f64 = outputs.as_slice().iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let curvature = (0.5 * squares / outputs.n_rows() as f64).max(1.0);
        let most = COMMON / (rate * self.common * curvature);
        most.clamp(1.0, BATCH as f64) as usize
    }

    /// The features of documents that are kept.
    fn filtered(&self, kept: &[u32]) -> Bags {
        let mut is_kept = vec![false; self.n_features];
        kept.iter().for_each(|&feature| is_kept[feature as usize] = true);
        let mut bags = Bags::default();
        for at in 0..self.bags.ends.len() {
            let features = self.bags.document(at).iter();
            bags.features.extend(features.filter(|feature| is_kept[**feature as usize]));
            bags.ends.push(bags.features.len());
        }
        bags
    }

    /// The features of the longest rows, ascending; of equal ones the first.
    fn longest(&self, inputs: &Rows, n: usize) -> Vec<u32> {
        let mut lengths = parallel::map_below(inputs.n_rows(), 1024, |at| {
            inputs.row(at).iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>()
        });
        if let Some(at) = self.options.line_end {
            lengths[at as usize] = f64::INFINITY;
        }
        let mut order: Vec<u32> = (0..inputs.n_rows() as u32).collect();
        order.sort_by(|&a, &b| lengths[b as usize].total_cmp(&lengths[a as usize]).then(a.cmp(&b)));
        order.truncate(n);
        order.sort_unstable();
        order
    }

    /// Takes the steps of a batch, and gives the sum of its losses.
    fn train(
        &self,
        bags: &Bags,
        state: &mut State,
        documents: &[u32],
        rate: f64,
        batch: &mut Batch,
    ) -> f64 {
        let (level, stride) = (Level::best(), state.inputs.stride());
        batch.means.resize(documents.len() * stride, 0.0);
        batch.changes.clear();
        batch.changes.resize(documents.len() * stride, 0.0);
        let rows = state.inputs.as_slice();
        let n_features: usize = documents.iter().map(|&at| bags.document(at as usize).len()).sum();
        let is_large = n_features * stride > LARGE;
        let piece = documents.len().div_ceil(PIECES);
        let pieces = documents.chunks(piece).zip(batch.means.chunks_mut(piece * stride));
        let work = |(documents, means): (&[u32], &mut [f32])| {
            for (&at, mean) in documents.iter().zip(means.chunks_exact_mut(stride)) {
                mean_of_rows(level, stride, rows, bags.document(at as usize), mean);
            }
        };
        match is_large {
            true => parallel::each(pieces, work),
            false => pieces.for_each(work),
        }
        let mut loss = 0.0;
        let Batch { means, changes, scores, rates, nodes } = batch;
        let of_documents = means.chunks_exact(stride).zip(changes.chunks_exact_mut(stride));
        for (&at, (mean, change)) in documents.iter().zip(of_documents) {
            let n = bags.document(at as usize).len();
            if n == 0 {
                continue;
            }
            let outputs = state.outputs.as_mut_slice();
            for targets in self.labels.rounds(at as usize, self.options.loss) {
                self.labels.nodes(&targets, nodes);
                scores.resize(nodes.len(), 0.0);
                products(level, stride, mean, outputs, nodes, scores);
                loss += self.labels.rates(&targets, self.options.loss, scores, rates);
                rates.iter_mut().for_each(|x| *x *= rate as f32);
                move_rows(level, stride, (mean, change), outputs, nodes, rates);
            }
            let share = 1.0 / n as f32;
            change.iter_mut().for_each(|x| *x *= share);
        }
        if !is_large {
            let rows = state.inputs.as_mut_slice();
            for (&at, change) in documents.iter().zip(changes.chunks_exact(stride)) {
                add_to_each(level, stride, (&mut *rows, 0), bags.document(at as usize), change);
            }
            return loss;
        }
        let lengths = self.parts.windows(2).map(|pair| (pair[1] - pair[0]) * stride);
        let cut = parallel::cut(state.inputs.as_mut_slice(), lengths.collect::<Vec<_>>());
        let changes = &*changes;
        parallel::each(cut.zip(self.parts.windows(2)), |(rows, part)| {
            for (&at, change) in documents.iter().zip(changes.chunks_exact(stride)) {
                // The features of a document ascend.
                let features = bags.document(at as usize);
                let from = features.partition_point(|&feature| (feature as usize) < part[0]);
                let to = features.partition_point(|&feature| (feature as usize) < part[1]);
                if from < to {
                    add_to_each(level, stride, (&mut *rows, part[0]), &features[from..to], change);
                }
            }
        });
        loss
    }
}

impl Solver for Trainer<'_> {
    type State = State;

    fn start(&self, _restart: usize) -> Result<State> {
        let k = self.options.dimension;
        let mut inputs = Rows::zeros(self.n_features, k);
        let stride = inputs.stride();
        parallel::each_row(inputs.as_mut_slice(), stride, |at, row| {
            if let Some(given) = self.start.and_then(|start| start(at)) {
                row[..k].copy_from_slice(&given);
                return;
            }
            let mut stream = Stream::new(self.options.seed, "fasttext.start", at as u64);
            let most = 1.0 / k as f64;
            row[..k].fill_with(|| stream.uniform_in(-most, most) as f32);
        });
        let outputs = Rows::zeros(self.labels.len(), k);
        Ok(State { inputs, outputs, kept: Vec::new(), epoch: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if let Some((n, _)) = self.options.cutoff.filter(|(_, from)| *from == state.epoch) {
            state.kept = self.longest(&state.inputs, n);
        }
        let filtered = (!state.kept.is_empty()).then(|| self.filtered(&state.kept));
        let bags = filtered.as_ref().unwrap_or(self.bags);
        let n = bags.ends.len();
        let mut order: Vec<u32> = (0..n as u32).collect();
        Stream::new(self.options.seed, "fasttext.order", state.epoch).shuffle(&mut order);
        let mut batch = Batch {
            means: Vec::new(),
            changes: Vec::new(),
            scores: Vec::new(),
            rates: Vec::new(),
            nodes: Vec::new(),
        };
        let (mut loss, mut done) = (0.0, 0);
        let (mut number, mut size) = (0, 1);
        while done < n {
            if number % 64 == 0 {
                if watch.stopped() {
                    return Ok(Step::Partial);
                }
                watch.within(done as f64 / n as f64);
            }
            let gone = (state.epoch as f64 + done as f64 / n as f64) / self.options.epochs as f64;
            let rate = self.options.learning_rate * (1.0 - gone);
            if number % REVISED == 0 {
                size = self.batch(&state.outputs, rate);
            }
            let documents = &order[done..n.min(done + size)];
            loss += self.train(bags, state, documents, rate, &mut batch);
            done += documents.len();
            number += 1;
        }
        state.epoch += 1;
        Ok(Step::Done(loss / n.max(1) as f64))
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
            let shape = [rows.n_rows(), rows.stride()];
            file.tensor(&format!("{prefix}{name}"), &shape, rows.as_slice());
        }
        file.tensor(&format!("{prefix}kept"), &[state.kept.len()], &state.kept);
        file.set(&format!("{prefix}epoch"), &state.epoch);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let mut rows = |name: &str, n: usize| -> Result<Rows> {
            let mut rows = Rows::zeros(n, self.options.dimension);
            let shape = [n, rows.stride()];
            let values = file.finite::<f32>(&format!("{prefix}{name}"), &shape)?;
            rows.as_mut_slice().copy_from_slice(&values);
            Ok(rows)
        };
        let (inputs, outputs) =
            (rows("inputs", self.n_features)?, rows("outputs", self.labels.len())?);
        let kept: Vec<u32> = file.vector(&format!("{prefix}kept"))?;
        if !kept.is_sorted() || kept.last().is_some_and(|&last| last as usize >= self.n_features) {
            return Err(file.broken("the features that are kept do not ascend"));
        }
        Ok(State { inputs, outputs, kept, epoch: file.get(&format!("{prefix}epoch"))? })
    }
}
