//! Collapsed Gibbs sampling, as the loop of all fits wants it.

use super::grid::{Grid, Lists};
use super::sweep::{Priors, Scratch, sweep};
use crate::topics::corpus::HeldOut;
use crate::topics::fold::{Topics, normalised};
use crate::topics::special::{Tails, digamma, log_rising};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_data::Csr;
use gradus_file::{Reader, Writer};

/// Every this many sweeps the priors are optimised, and at the end topics are averaged over sweeps.
pub(super) const EVERY: usize = 10;
/// Fixed-point steps each time.
const STEPS: usize = 5;
/// No prior falls below this: a topic that no document has would never come back, and logarithms end.
const LEAST: f64 = 1e-5;
/// The share of sweeps, at the end, that topics are averaged over.
const AVERAGED: f64 = 0.25;

/// The parameters of a fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) n_topics: usize,
    /// `None`: optimised.
    pub(super) alpha: Option<f64>,
    pub(super) beta: Option<f64>,
    pub(super) max_iter: usize,
    pub(super) seed: u64,
}

/// The sampler, bound to its tokens.
pub(super) struct Gibbs {
    plan: Plan,
    grid: Grid,
    n_words: usize,
    held_out: Option<HeldOut>,
}

/// The topics of all tokens, and the counts that follow from them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) restart: usize,
    pub(super) iteration: usize,
    /// The topics of the tokens of each block.
    topics: Vec<Vec<u16>>,
    /// The counts of each group of documents, and of words.
    docs: Vec<Lists>,
    words: Vec<Lists>,
    /// `n_k`.
    totals: Vec<i64>,
    pub(super) alpha: Vec<f64>,
    pub(super) beta: f64,
    /// Sums of `n_wk` over some of the last sweeps, words × topics; empty before them.
    summed: Vec<f32>,
    n_summed: u64,
}

impl Gibbs {
    pub(super) fn new(plan: Plan, counts: &Csr<f64>, held_out: Option<HeldOut>) -> Self {
        Self { plan, grid: Grid::new(counts), n_words: counts.n_cols(), held_out }
    }

    fn first_summed(&self) -> usize {
        self.plan.max_iter - (self.plan.max_iter as f64 * AVERAGED) as usize
    }

    /// The counts of topics that these tokens have.
    fn counted(&self, topics: &[Vec<u16>]) -> (Vec<Lists>, Vec<Lists>, Vec<i64>) {
        let (k, n) = (self.plan.n_topics, self.grid.n_groups());
        let empty = |groups: &[Vec<u32>], sizes: &[u64]| -> Vec<Lists> {
            let lists =
                |rows: &Vec<u32>| Lists::new(rows.iter().map(|&row| sizes[row as usize]), k);
            groups.iter().map(lists).collect()
        };
        let mut docs = empty(&self.grid.docs.groups, &self.grid.doc_sizes);
        let mut words = empty(&self.grid.words.groups, &self.grid.word_sizes);
        let mut totals = vec![0i64; k];
        for (at, (block, topics)) in self.grid.blocks.iter().zip(topics).enumerate() {
            let mut start = 0;
            for &(word, end) in &block.words {
                let tokens = start..end as usize;
                for (&doc, &topic) in block.docs[tokens.clone()].iter().zip(&topics[tokens]) {
                    let topic = u32::from(topic);
                    docs[at / n].add(doc as usize, topic);
                    words[at % n].add(word as usize, topic);
                    totals[topic as usize] += 1;
                }
                start = end as usize;
            }
        }
        (docs, words, totals)
    }

    /// The counts of each word in each topic: the mean over the last sweeps, or those of the state.
    ///
    /// # Shapes
    /// Words × topics.
    pub(super) fn word_topics(&self, state: &State) -> Vec<f32> {
        if state.n_summed > 0 {
            let share = 1.0 / state.n_summed as f32;
            return state.summed.iter().map(|sum| sum * share).collect();
        }
        let mut all = vec![0.0; self.n_words * self.plan.n_topics];
        self.add_word_topics(state, &mut all);
        all
    }

    fn add_word_topics(&self, state: &State, sums: &mut [f32]) {
        let k = self.plan.n_topics;
        for (words, lists) in self.grid.words.groups.iter().zip(&state.words) {
            for (&word, list) in words.iter().zip(lists.rows()) {
                let row = &mut sums[word as usize * k..][..k];
                list.iter().for_each(|&(topic, count)| row[topic as usize] += count as f32);
            }
        }
    }

    /// `−ln p(words, topics | α, β)` for each token.
    fn objective(&self, state: &State) -> f64 {
        let of_docs = |(docs, lists): (&Vec<u32>, &Lists), table: &Rising| -> f64 {
            let sum: f64 = state.alpha.iter().sum();
            let of_doc = |(&doc, list): (&u32, &[(u32, u32)])| {
                let topics = list.iter().map(|&(topic, count)| table.get(topic as usize, count));
                topics.sum::<f64>() - log_rising(sum, self.grid.doc_sizes[doc as usize] as f64)
            };
            docs.iter().zip(lists.rows()).map(of_doc).sum()
        };
        let of_alpha = Rising::new(&state.alpha);
        let of_beta = Rising::new(std::slice::from_ref(&state.beta));
        let docs = parallel::map(self.grid.docs.groups.iter().zip(&state.docs), |group| {
            of_docs(group, &of_alpha)
        });
        let words = parallel::map(&state.words, |lists| {
            lists.rows().flatten().map(|&(_, count)| of_beta.get(0, count)).sum::<f64>()
        });
        let all_beta = self.n_words as f64 * state.beta;
        let topics: f64 = state.totals.iter().map(|&n| log_rising(all_beta, n as f64)).sum();
        let log = docs.iter().sum::<f64>() + words.iter().sum::<f64>() - topics;
        -log / self.grid.n_tokens as f64
    }

    /// The best priors for these topics, by fixed-point steps (Minka: Estimating a Dirichlet distribution, 2000).
    fn optimise(&self, state: &mut State) {
        if self.plan.alpha.is_none() {
            let parts = parallel::map(&state.docs, |lists| {
                let mut tails = vec![Tails::new(); self.plan.n_topics];
                for &(topic, count) in lists.rows().flatten() {
                    tails[topic as usize].add(count.into());
                }
                tails
            });
            let mut tails = vec![Tails::new(); self.plan.n_topics];
            for part in parts {
                tails.iter_mut().zip(part).for_each(|(all, part)| all.merge(part));
            }
            tails.iter_mut().for_each(Tails::finish);
            let mut lengths = Tails::new();
            self.grid.doc_sizes.iter().for_each(|&size| lengths.add(size));
            lengths.finish();
            for _ in 0..STEPS {
                let below = lengths.sum(state.alpha.iter().sum());
                for (alpha, tails) in state.alpha.iter_mut().zip(&tails) {
                    *alpha = (*alpha * tails.sum(*alpha) / below).max(LEAST);
                }
            }
        }
        if self.plan.beta.is_none() {
            let mut tails = Tails::new();
            for lists in &state.words {
                lists.rows().flatten().for_each(|&(_, count)| tails.add(count.into()));
            }
            tails.finish();
            let v = self.n_words as f64;
            for _ in 0..STEPS {
                let at = v * state.beta;
                let below: f64 =
                    state.totals.iter().map(|&n| digamma(at + n as f64) - digamma(at)).sum();
                let better = state.beta * tails.sum(state.beta) / (v * below);
                if better.is_finite() {
                    state.beta = better.max(LEAST);
                }
            }
        }
    }
}

/// `ln Γ(x + n) − ln Γ(x)` for some `x` and all `n`; those of small `n` are computed once.
struct Rising<'a> {
    of: &'a [f64],
    table: Vec<f64>,
}

impl<'a> Rising<'a> {
    const SMALL: usize = 64;

    fn new(of: &'a [f64]) -> Self {
        let mut table = Vec::with_capacity(of.len() * Self::SMALL);
        for &x in of {
            let mut sum = 0.0;
            for n in 0..Self::SMALL {
                table.push(sum);
                sum += libm::log(x + n as f64);
            }
        }
        Self { of, table }
    }

    #[inline]
    fn get(&self, at: usize, n: u32) -> f64 {
        if (n as usize) < Self::SMALL {
            return self.table[at * Self::SMALL + n as usize];
        }
        log_rising(self.of[at], n.into())
    }
}

impl Solver for Gibbs {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let k = self.plan.n_topics;
        let topics = parallel::map(self.grid.blocks.iter().enumerate(), |(at, block)| {
            let mut stream =
                Stream::new(self.plan.seed, "lda.start", (restart as u64) << 32 | at as u64);
            block.docs.iter().map(|_| stream.index(k) as u16).collect::<Vec<u16>>()
        });
        let (docs, words, totals) = self.counted(&topics);
        Ok(State {
            restart,
            iteration: 0,
            topics,
            docs,
            words,
            totals,
            // Of Griffiths and Steyvers (2004) is 50 / K; fewer topics in a document are a better start.
            alpha: vec![self.plan.alpha.unwrap_or((5.0 / k as f64).min(0.5)); k],
            beta: self.plan.beta.unwrap_or(0.01),
            summed: Vec::new(),
            n_summed: 0,
        })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        // So that a sweep depends on the topics alone, and a chain that is read from a checkpoint goes on alike.
        parallel::each(state.docs.iter_mut().chain(&mut state.words), |lists| lists.sort());
        let n = self.grid.n_groups();
        let priors = Priors {
            alpha: state.alpha.iter().map(|&alpha| alpha as f32).collect(),
            beta: state.beta as f32,
            beta_sum: (state.beta * self.n_words as f64) as f32,
        };
        let of_sweep = (state.restart as u64) << 48 | (state.iteration as u64) << 16;
        for round in 0..n {
            let mut words: Vec<Option<&mut Lists>> = state.words.iter_mut().map(Some).collect();
            let mut topics: Vec<Option<&mut Vec<u16>>> =
                state.topics.iter_mut().map(Some).collect();
            let pieces: Vec<_> = (0..n)
                .zip(&mut state.docs)
                .map(|(a, docs)| {
                    let b = (a + round) % n;
                    let (words, topics) = (words[b].take(), topics[a * n + b].take());
                    (a * n + b, docs, words, topics)
                })
                .collect();
            let totals = &state.totals;
            let scratch = || Scratch::new(self.plan.n_topics);
            let changes =
                parallel::map_with(pieces, scratch, |scratch, (at, docs, words, topics)| {
                    let (Some(words), Some(topics)) = (words, topics) else { return Vec::new() };
                    let stream = Stream::new(self.plan.seed, "lda.sweep", of_sweep | at as u64);
                    let block = &self.grid.blocks[at];
                    sweep(block, topics, (docs, words), (totals, &priors), stream, scratch)
                });
            for change in changes {
                state.totals.iter_mut().zip(change).for_each(|(total, change)| *total += change);
            }
            watch.within((round + 1) as f64 / n as f64);
        }
        state.iteration += 1;
        if state.iteration.is_multiple_of(EVERY) {
            self.optimise(state);
        }
        let (last, first) = (self.plan.max_iter, self.first_summed());
        if state.iteration > first && (last - state.iteration).is_multiple_of(EVERY / 2) {
            if state.summed.is_empty() {
                state.summed = vec![0.0; self.n_words * self.plan.n_topics];
            }
            let mut summed = std::mem::take(&mut state.summed);
            self.add_word_topics(state, &mut summed);
            state.summed = summed;
            state.n_summed += 1;
        }
        Ok(Step::Done(self.objective(state)))
    }

    /// Every tenth sweep: it takes longer than a sweep.
    fn validate(&self, state: &State) -> Option<f64> {
        state.iteration.is_multiple_of(EVERY).then(|| self.validate_kept(state)).flatten()
    }

    fn validate_kept(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let share = normalised(&state.alpha);
        let topics = Topics::new(&self.word_topics(state), state.alpha.clone(), state.beta, share);
        Some(held_out.perplexity(&topics))
    }

    fn keeps_last(&self) -> bool {
        true
    }

    fn depends_on_max_iter(&self) -> bool {
        true
    }

    fn write_state<'b>(&self, state: &'b State, prefix: &str, file: &mut Writer<'b>) {
        let topics: Vec<u8> =
            state.topics.iter().flatten().flat_map(|topic| topic.to_le_bytes()).collect();
        file.tensor_owned(&format!("{prefix}topics"), &[topics.len()], topics);
        file.tensor(&format!("{prefix}alpha"), &[state.alpha.len()], &state.alpha);
        file.tensor(&format!("{prefix}summed"), &[state.summed.len()], &state.summed);
        file.tensor_owned(&format!("{prefix}beta"), &[1], vec![state.beta]);
        let numbers = vec![state.restart as u64, state.iteration as u64, state.n_summed];
        file.tensor_owned(&format!("{prefix}numbers"), &[3], numbers);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let k = self.plan.n_topics;
        let n_tokens = self.grid.n_tokens as usize;
        let bytes: Vec<u8> = file.tensor(&format!("{prefix}topics"), &[2 * n_tokens])?;
        let mut all = bytes.as_chunks::<2>().0.iter().map(|&bytes| u16::from_le_bytes(bytes));
        if all.clone().any(|topic| usize::from(topic) >= k) {
            return Err(file.broken(format!("`{prefix}topics`: a topic is not below {k}")));
        }
        let topics: Vec<Vec<u16>> = self
            .grid
            .blocks
            .iter()
            .map(|block| all.by_ref().take(block.docs.len()).collect())
            .collect();
        let alpha: Vec<f64> = file.finite(&format!("{prefix}alpha"), &[k])?;
        let summed: Vec<f32> = file.vector(&format!("{prefix}summed"))?;
        let beta: Vec<f64> = file.finite(&format!("{prefix}beta"), &[1])?;
        let numbers: Vec<u64> = file.tensor(&format!("{prefix}numbers"), &[3])?;
        if !summed.is_empty() && summed.len() != k * self.n_words {
            return Err(file.broken(format!("`{prefix}summed` has another size")));
        }
        let (docs, words, totals) = self.counted(&topics);
        Ok(State {
            restart: numbers[0] as usize,
            iteration: numbers[1] as usize,
            n_summed: numbers[2],
            topics,
            docs,
            words,
            totals,
            alpha,
            beta: beta[0],
            summed,
        })
    }
}

#[cfg(test)]
impl Gibbs {
    /// The state as a checkpoint would give it back.
    pub(super) fn rebuilt(&self, state: &State) -> State {
        let (docs, words, totals) = self.counted(&state.topics);
        State { docs, words, totals, ..state.clone() }
    }

    /// The topic of each token, document by document, words ascending.
    pub(super) fn topics_of(&self, state: &State) -> Vec<Vec<(u32, u16)>> {
        let n = self.grid.n_groups();
        let mut all = vec![Vec::new(); self.grid.doc_sizes.len()];
        for (at, (block, topics)) in self.grid.blocks.iter().zip(&state.topics).enumerate() {
            let mut start = 0;
            for &(word, end) in &block.words {
                let word = self.grid.words.groups[at % n][word as usize];
                let tokens = start..end as usize;
                for (&doc, &topic) in block.docs[tokens.clone()].iter().zip(&topics[tokens]) {
                    let doc = self.grid.docs.groups[at / n][doc as usize];
                    all[doc as usize].push((word, topic));
                }
                start = end as usize;
            }
        }
        all.iter_mut().for_each(|tokens| tokens.sort_unstable());
        all
    }
}
