//! Expectation maximisation.

use super::Plsa;
use crate::topics::corpus::HeldOut;
use crate::topics::fold::{Topics, normalised, product};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_data::Csr;
use gradus_file::{Reader, Writer};

/// Rows that make a piece of work.
const BLOCK: usize = 64;

/// The solver, bound to its counts.
pub(super) struct Em<'a> {
    params: &'a Plsa,
    /// Documents × words.
    counts: &'a Csr<f64>,
    /// Words × documents.
    by_word: Csr<f64>,
    n_tokens: f64,
    held_out: Option<HeldOut>,
}

/// Expected counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// The probabilities of topics in documents, documents × topics.
    docs: Vec<f32>,
    /// The probabilities of words in topics, words × topics.
    pub(super) words: Vec<f32>,
}

impl<'a> Em<'a> {
    pub(super) fn new(params: &'a Plsa, counts: &'a Csr<f64>, held_out: Option<HeldOut>) -> Self {
        let n_tokens = counts.values().iter().sum();
        Self { params, counts, by_word: counts.transpose(), n_tokens, held_out }
    }

    /// Rows divided by their sums.
    fn shares(&self, counts: &[f32]) -> Vec<f32> {
        let k = self.params.n_topics;
        let mut shares = counts.to_vec();
        for row in shares.chunks_exact_mut(k) {
            let sum: f32 = row.iter().sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|x| *x /= sum);
            }
        }
        shares
    }

    /// The probability of each word in each topic, words × topics.
    fn phi(&self, words: &[f32]) -> Vec<f32> {
        let k = self.params.n_topics;
        let mut totals = vec![0.0f64; k];
        for row in words.chunks_exact(k) {
            totals.iter_mut().zip(row).for_each(|(total, x)| *total += f64::from(*x));
        }
        let divide = |row: &[f32]| -> Vec<f32> {
            let of = |(x, total): (&f32, &f64)| match *total > 0.0 {
                true => (f64::from(*x) / total) as f32,
                false => 0.0,
            };
            row.iter().zip(&totals).map(of).collect()
        };
        words.chunks_exact(k).flat_map(divide).collect()
    }

    /// The expected counts of the rows of one side, given the probabilities of both; and the log likelihood.
    fn expected(&self, rows: &Csr<f64>, own: &[f32], other: &[f32]) -> (Vec<f32>, f64) {
        let k = self.params.n_topics;
        let power = self.params.temperature as f32;
        let mut all = vec![0.0f32; rows.n_rows() * k];
        let pieces = all.chunks_mut(BLOCK * k).enumerate();
        let logs = parallel::map(pieces, |(block, results)| {
            let mut joint = vec![0.0f32; k];
            let mut log = 0.0f64;
            for (at, result) in results.chunks_exact_mut(k).enumerate() {
                let row = block * BLOCK + at;
                let (columns, values) = rows.row(row);
                for (&column, &count) in columns.iter().zip(values) {
                    let sum = product(
                        &own[row * k..][..k],
                        &other[column as usize * k..][..k],
                        &mut joint,
                    );
                    log += count * f64::from(sum.max(f32::MIN_POSITIVE)).ln();
                    let mut sum = sum;
                    if power != 1.0 {
                        joint.iter_mut().for_each(|x| *x = x.powf(power));
                        sum = joint.iter().sum();
                    }
                    if sum > 0.0 {
                        let scale = count as f32 / sum;
                        result.iter_mut().zip(&joint).for_each(|(to, x)| *to += scale * x);
                    }
                }
            }
            log
        });
        (all, logs.iter().sum())
    }
}

impl Solver for Em<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let (k, seed) = (self.params.n_topics, self.params.seed);
        let random = |purpose: &str, n: usize| {
            let mut values = vec![0.0f32; n * k];
            parallel::each_row(&mut values, k, |row, values| {
                let index = (restart as u64) << 32 | row as u64;
                let mut stream = Stream::new(seed, purpose, index);
                values.iter_mut().for_each(|x| *x = stream.exponential() as f32);
            });
            values
        };
        let mut words = random("plsa.words", self.counts.n_cols());
        for (word, row) in words.chunks_exact_mut(k).enumerate() {
            let total: f64 = self.by_word.row(word).1.iter().sum();
            row.iter_mut().for_each(|x| *x *= total as f32);
        }
        // Mixtures start even, so that words tell topics apart first.
        Ok(State { docs: vec![1.0; self.counts.n_rows() * k], words })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        let (theta, phi) = (self.shares(&state.docs), self.phi(&state.words));
        let (docs, _) = self.expected(self.counts, &theta, &phi);
        watch.within(0.5);
        let (words, _) = self.expected(&self.by_word, &phi, &theta);
        *state = State { docs, words };
        let (theta, phi) = (self.shares(&state.docs), self.phi(&state.words));
        let k = self.params.n_topics;
        let logs = parallel::map(parallel::blocks(self.counts.n_rows(), BLOCK), |rows| {
            let mut log = 0.0f64;
            for row in rows {
                let (columns, values) = self.counts.row(row);
                for (&column, &count) in columns.iter().zip(values) {
                    let pairs = theta[row * k..][..k].iter().zip(&phi[column as usize * k..][..k]);
                    let p: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    log += count * p.max(f64::MIN_POSITIVE).ln();
                }
            }
            log
        });
        Ok(Step::Done(-logs.iter().sum::<f64>() / self.n_tokens))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let k = self.params.n_topics;
        let mut totals = vec![0.0f64; k];
        for row in state.words.chunks_exact(k) {
            totals.iter_mut().zip(row).for_each(|(total, x)| *total += f64::from(*x));
        }
        let topics = Topics::new(&state.words, vec![0.0; k], 0.0, normalised(&totals));
        Some(held_out.perplexity(&topics))
    }

    fn write_state<'b>(&self, state: &'b State, prefix: &str, file: &mut Writer<'b>) {
        let k = self.params.n_topics;
        file.tensor(&format!("{prefix}docs"), &[self.counts.n_rows(), k], &state.docs);
        file.tensor(&format!("{prefix}words"), &[self.counts.n_cols(), k], &state.words);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let k = self.params.n_topics;
        let docs = file.finite(&format!("{prefix}docs"), &[self.counts.n_rows(), k])?;
        let words = file.finite(&format!("{prefix}words"), &[self.counts.n_cols(), k])?;
        Ok(State { docs, words })
    }
}
