//! Variational inference: batch, and online over batches of documents.
//!
//! `q(θ_d) = Dirichlet(γ_d)`, `q(φ_k) = Dirichlet(λ_k)`. The step of a document repeats
//! `γ_dk = α_k + θ̃_dk Σ_w n_dw φ̃_wk / Σ_j θ̃_dj φ̃_wj` with `θ̃ = exp E[ln θ]`, `φ̃ = exp E[ln φ]`, until it stays; the
//! step of the topics sets `λ` to the expected counts plus `β` (batch), or moves it towards what the documents of a
//! batch tell, with a rate that falls (online).

use super::gibbs::Plan;
use crate::topics::corpus::HeldOut;
use crate::topics::fold::{Topics, normalised};
use crate::topics::special::{digamma, exp_digamma, inverse_digamma, log_gamma_and_digamma};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_data::Csr;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, dots, exp_digamma_all, padded, sum_rows};

/// Documents, and words, that make a piece of work.
const BLOCK: usize = 16;
/// Steps of a document at most, and the mean change of `γ` at which they end.
const STEPS: usize = 100;
const TOLERANCE: f32 = 1e-3;
/// A topic with fewer words of a document than this takes no part in further steps of it.
const NEGLIGIBLE: f32 = 1e-4;
/// The steps after which such topics are left out.
const CHECKS: [usize; 4] = [3, 6, 12, 24];
/// The rate of the `t`-th batch is `(OFFSET + t)^−DECAY`.
const OFFSET: f64 = 10.0;
const DECAY: f64 = 0.7;
const LEAST: f64 = 1e-5;

/// The state of the fit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    restart: usize,
    iteration: usize,
    /// Batches so far.
    updates: u64,
    /// `λ − β`, words × topics.
    pub(super) counts: Vec<f32>,
    pub(super) alpha: Vec<f64>,
    pub(super) beta: f64,
}

impl State {
    /// Batches so far.
    pub(super) fn updates(&self) -> u64 {
        self.updates
    }
}

/// The solver, without its data.
pub(super) struct Variational {
    pub(super) plan: Plan,
    pub(super) n_words: usize,
}

/// The expected counts of some documents.
struct Expected {
    /// `θ̃`, documents × padded topics.
    theta: Vec<f32>,
    /// `n_dw / Σ_k θ̃_dk φ̃_wk` of each entry.
    weights: Vec<f32>,
    /// `Σ_d E[ln θ_d]`.
    logs: Vec<f64>,
    /// Documents with words.
    n: f64,
    /// The part of the bound that belongs to these documents.
    bound: f64,
}

/// The scratch memory of the steps of a document.
#[derive(Default)]
struct Scratch {
    /// The topics that still take part, and of these the prior, `γ` and `θ̃`.
    active: Vec<u32>,
    alpha: Vec<f32>,
    gamma: Vec<f32>,
    theta: Vec<f32>,
    /// `φ̃` of the words of the document in these topics, and the numbers of its rows; empty while all take part.
    rows: Vec<f32>,
    places: Vec<u32>,
    norms: Vec<f32>,
    sums: Vec<f32>,
    left: Vec<usize>,
    spare: Vec<f32>,
}

impl Scratch {
    fn begin(&mut self, n_words: usize, alpha: &[f32], gamma: &[f32], theta: &[f32]) {
        self.active.clear();
        self.active.extend(0..alpha.len() as u32);
        for (to, from) in
            [(&mut self.alpha, alpha), (&mut self.gamma, gamma), (&mut self.theta, theta)]
        {
            to.clear();
            to.extend_from_slice(from);
        }
        self.norms.resize(n_words, 0.0);
    }

    /// Leaves out topics that have next to nothing of the document, if they are many: says whether it did. `whole` holds `φ̃`
    /// of all words, the length of its rows, and the words of the document, while all topics take part.
    fn leave_out(&mut self, whole: Option<(&[f32], usize, &[u32])>) -> bool {
        let m = self.active.len();
        let is_left = |at: &usize| self.gamma[*at] - self.alpha[*at] > NEGLIGIBLE;
        self.left.clear();
        self.left.extend((0..m).filter(is_left));
        if self.left.is_empty() || self.left.len() * 4 > 3 * m {
            return false;
        }
        let (narrow, n_words) = (padded(self.left.len()), self.norms.len());
        self.spare.clear();
        self.spare.resize(n_words * narrow, 0.0);
        for (at, to) in self.spare.chunks_exact_mut(narrow).enumerate() {
            let row = match whole {
                Some((phi, stride, words)) => &phi[words[at] as usize * stride..][..m],
                None => &self.rows[at * padded(m)..][..m],
            };
            to.iter_mut().zip(&self.left).for_each(|(to, &topic)| *to = row[topic]);
        }
        std::mem::swap(&mut self.rows, &mut self.spare);
        self.places.clear();
        self.places.extend(0..n_words as u32);
        // Places only move down.
        for (to, &at) in self.left.iter().enumerate() {
            self.active[to] = self.active[at];
            self.alpha[to] = self.alpha[at];
            self.gamma[to] = self.gamma[at];
            self.theta[to] = self.theta[at];
        }
        let n = self.left.len();
        self.active.truncate(n);
        self.alpha.truncate(n);
        self.gamma.truncate(n);
        self.theta.truncate(n);
        self.theta.resize(narrow, 0.0);
        true
    }
}

impl Variational {
    pub(super) fn start(&self, restart: usize) -> State {
        let k = self.plan.n_topics;
        let mut counts = vec![0.0f32; self.n_words * k];
        parallel::each_row(&mut counts, k, |row, values| {
            let index = (restart as u64) << 32 | row as u64;
            let mut stream = Stream::new(self.plan.seed, "lda.lambda", index);
            // As Hoffman's code starts: gamma deviates of mean 1, all alike but for a tenth.
            values.iter_mut().for_each(|x| *x = (stream.gamma(100.0) * 0.01) as f32);
        });
        State {
            restart,
            iteration: 0,
            updates: 0,
            counts,
            alpha: vec![self.plan.alpha.unwrap_or(1.0 / k as f64); k],
            beta: self.plan.beta.unwrap_or(0.01),
        }
    }

    /// `φ̃` of words, others stay 0; words × padded topics.
    fn phi(&self, state: &State, counts: &Csr<f64>, rows: &[u32]) -> Vec<f32> {
        let k = self.plan.n_topics;
        let stride = padded(k);
        let parts = parallel::map(state.counts.chunks(1024 * k), |piece| {
            let mut totals = vec![0.0f64; k];
            for row in piece.chunks_exact(k) {
                totals.iter_mut().zip(row).for_each(|(total, x)| *total += f64::from(*x));
            }
            totals
        });
        let mut totals = vec![state.beta * self.n_words as f64; k];
        for part in &parts {
            totals.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        let scale: Vec<f32> = totals.iter().map(|&n| (1.0 / exp_digamma(n)) as f32).collect();
        let mut used = vec![false; self.n_words];
        for &row in rows {
            counts.row(row as usize).0.iter().for_each(|&word| used[word as usize] = true);
        }
        let (level, beta) = (Level::best(), state.beta as f32);
        let mut phi = vec![0.0f32; self.n_words * stride];
        parallel::each(phi.chunks_mut(BLOCK * stride).enumerate(), |(block, piece)| {
            for (at, row) in piece.chunks_exact_mut(stride).enumerate() {
                let word = block * BLOCK + at;
                if used[word] {
                    let of_word = &state.counts[word * k..][..k];
                    let row = &mut row[..k];
                    row.iter_mut().zip(of_word).for_each(|(to, n)| *to = n + beta);
                    exp_digamma_all(level, row);
                    row.iter_mut().zip(&scale).for_each(|(to, scale)| *to *= scale);
                }
            }
        });
        phi
    }

    /// The step of the documents in these rows.
    fn expect(&self, state: &State, phi: &[f32], counts: &Csr<f64>, rows: &[u32]) -> Expected {
        let k = self.plan.n_topics;
        let (stride, level) = (padded(k), Level::best());
        let alpha: Vec<f32> = state.alpha.iter().map(|&alpha| alpha as f32).collect();
        let alpha_sum: f64 = state.alpha.iter().sum();
        let log_alpha: f64 = libm::lgamma(alpha_sum)
            - state.alpha.iter().map(|&alpha| libm::lgamma(alpha)).sum::<f64>();
        let parts = parallel::map(rows.chunks(BLOCK), |rows| {
            let mut found = Expected {
                theta: Vec::with_capacity(rows.len() * stride),
                weights: Vec::new(),
                logs: vec![0.0; k],
                n: 0.0,
                bound: 0.0,
            };
            let mut gamma = vec![0.0f32; stride];
            let mut scratch = Scratch::default();
            let mut norms: Vec<f32> = Vec::new();
            let mut weights: Vec<f32> = Vec::new();
            for &row in rows {
                let (words, values) = counts.row(row as usize);
                let mut theta = vec![0.0f32; stride];
                theta[..k].fill(1.0);
                if words.is_empty() {
                    found.theta.extend(&theta);
                    continue;
                }
                let n: f64 = values.iter().sum();
                gamma[..k].fill((alpha_sum / k as f64 + n / k as f64) as f32);
                norms.resize(words.len(), 0.0);
                weights.resize(words.len(), 0.0);
                self.repeat(phi, (words, values), &alpha, (&mut gamma, &mut theta), &mut scratch);
                dots(level, phi, words, &theta, &mut norms);
                let total: f64 = gamma[..k].iter().map(|x| f64::from(*x)).sum();
                let of_total = digamma(total);
                for ((weight, norm), count) in weights.iter_mut().zip(&norms).zip(values) {
                    let norm = norm.max(f32::MIN_POSITIVE);
                    *weight = *count as f32 / norm;
                    found.bound += count * (f64::from(norm).ln() - of_total);
                }
                found.bound += log_alpha - libm::lgamma(total);
                for topic in 0..k {
                    let gamma = f64::from(gamma[topic]);
                    let (log_gamma, psi) = log_gamma_and_digamma(gamma);
                    let log = psi - of_total;
                    found.logs[topic] += log;
                    found.bound += (state.alpha[topic] - gamma) * log + log_gamma;
                }
                found.n += 1.0;
                found.theta.extend(&theta);
                found.weights.extend(&weights);
            }
            found
        });
        let mut all = Expected {
            theta: Vec::with_capacity(rows.len() * stride),
            weights: Vec::new(),
            logs: vec![0.0; k],
            n: 0.0,
            bound: 0.0,
        };
        for part in parts {
            all.theta.extend(part.theta);
            all.weights.extend(part.weights);
            all.logs.iter_mut().zip(part.logs).for_each(|(all, part)| *all += part);
            all.n += part.n;
            all.bound += part.bound;
        }
        all
    }

    /// Repeats the step of a document until `γ` stays. Topics that have next to nothing of the document are left out of
    /// further steps, in which the rest stands side by side: of a hundred topics some ten are left.
    fn repeat(
        &self,
        phi: &[f32],
        (words, values): (&[u32], &[f64]),
        alpha: &[f32],
        (gamma, theta): (&mut [f32], &mut [f32]),
        scratch: &mut Scratch,
    ) {
        let (k, level) = (self.plan.n_topics, Level::best());
        scratch.begin(words.len(), alpha, &gamma[..k], theta);
        let mut is_whole = true;
        for step in 1..=STEPS {
            let m = scratch.active.len();
            let (from, at): (&[f32], &[u32]) = match is_whole {
                true => (phi, words),
                false => (&scratch.rows, &scratch.places),
            };
            dots(level, from, at, &scratch.theta, &mut scratch.norms);
            for (norm, count) in scratch.norms.iter_mut().zip(values) {
                *norm = *count as f32 / norm.max(f32::MIN_POSITIVE);
            }
            scratch.sums.resize(padded(m), 0.0);
            sum_rows(level, m, from, at, Some(&scratch.norms), &mut scratch.sums);
            let mut change = 0.0f32;
            let of_topics = scratch.gamma.iter_mut().zip(&mut scratch.theta);
            for ((gamma, theta), (alpha, sum)) in
                of_topics.zip(scratch.alpha.iter().zip(&scratch.sums))
            {
                let better = alpha + *theta * sum;
                change += (better - *gamma).abs();
                *gamma = better;
                *theta = better;
            }
            exp_digamma_all(level, &mut scratch.theta[..m]);
            let ends = change < TOLERANCE * k as f32 || step == STEPS;
            if !ends && !CHECKS.contains(&step) {
                continue;
            }
            for (at, &topic) in scratch.active.iter().enumerate() {
                gamma[topic as usize] = scratch.gamma[at];
                theta[topic as usize] = scratch.theta[at];
            }
            if ends {
                break;
            }
            let from = is_whole.then_some((phi, padded(k), words));
            is_whole &= !scratch.leave_out(from);
        }
    }

    /// One batch: the documents, then the topics, then the priors. Gives the part of the bound that belongs to the
    /// documents. `rate` is how far the topics move; the batch stands for `scale` times its documents.
    pub(super) fn update(
        &self,
        state: &mut State,
        (counts, rows): (&Csr<f64>, &[u32]),
        (rate, scale): (f64, f64),
    ) -> f64 {
        let k = self.plan.n_topics;
        let (stride, level) = (padded(k), Level::best());
        let phi = self.phi(state, counts, rows);
        let found = self.expect(state, &phi, counts, rows);
        // The documents of each word, in order.
        let mut starts = vec![0usize; self.n_words + 1];
        for &row in rows {
            counts.row(row as usize).0.iter().for_each(|&word| starts[word as usize + 1] += 1);
        }
        for word in 0..self.n_words {
            starts[word + 1] += starts[word];
        }
        let n_entries = starts[self.n_words];
        let (mut docs, mut weights) = (vec![0u32; n_entries], vec![0.0f32; n_entries]);
        let (mut next, mut entry) = (starts.clone(), 0);
        for (slot, &row) in (0u32..).zip(rows) {
            for &word in counts.row(row as usize).0 {
                let place = &mut next[word as usize];
                docs[*place] = slot;
                weights[*place] = found.weights[entry];
                *place += 1;
                entry += 1;
            }
        }
        let (keep, take) = ((1.0 - rate) as f32, (rate * scale) as f32);
        parallel::each(state.counts.chunks_mut(BLOCK * k).enumerate(), |(block, piece)| {
            let mut sums = vec![0.0f32; stride];
            for (at, row) in piece.chunks_exact_mut(k).enumerate() {
                let word = block * BLOCK + at;
                let range = starts[word]..starts[word + 1];
                row.iter_mut().for_each(|n| *n *= keep);
                if !range.is_empty() {
                    let weights = Some(&weights[range.clone()]);
                    sum_rows(level, k, &found.theta, &docs[range], weights, &mut sums);
                    let phi = &phi[word * stride..][..k];
                    for ((n, sum), phi) in row.iter_mut().zip(&sums).zip(phi) {
                        *n += take * sum * phi;
                    }
                }
            }
        });
        state.updates += 1;
        // The first steps of the topics tell nothing of the priors.
        if self.plan.alpha.is_none() && found.n > 0.0 && state.updates > 2 {
            let sum = digamma(state.alpha.iter().sum());
            for (alpha, logs) in state.alpha.iter_mut().zip(&found.logs) {
                let best = inverse_digamma(sum + logs / found.n).max(LEAST);
                *alpha = (*alpha).powf(1.0 - rate.min(0.5)) * best.powf(rate.min(0.5));
            }
        }
        found.bound
    }

    /// The part of the bound that belongs to the topics, and a better `β`.
    pub(super) fn of_topics(&self, state: &mut State) -> f64 {
        let k = self.plan.n_topics;
        let (beta, v) = (state.beta, self.n_words as f64);
        let parts = parallel::map(state.counts.chunks(1024 * k), |piece| {
            let (mut totals, mut logs) = (vec![0.0f64; k], vec![0.0f64; k]);
            let (mut gammas, mut digammas) = (0.0, 0.0);
            for row in piece.chunks_exact(k) {
                for (topic, n) in row.iter().enumerate() {
                    let n = f64::from(*n);
                    totals[topic] += n + beta;
                    let (log_gamma, psi) = log_gamma_and_digamma(n + beta);
                    digammas += psi;
                    // Weighted by β − λ = −n.
                    logs[topic] -= n * psi;
                    gammas += log_gamma;
                }
            }
            (totals, logs, gammas, digammas)
        });
        let (mut totals, mut logs) = (vec![0.0f64; k], 0.0);
        let (mut bound, mut digammas) = (0.0, 0.0);
        for (of_totals, of_logs, gammas, psi) in parts {
            totals.iter_mut().zip(&of_totals).for_each(|(all, part)| *all += part);
            logs += of_logs.iter().sum::<f64>();
            bound += gammas;
            digammas += psi;
        }
        bound += logs;
        let mut mean = digammas;
        for &total in &totals {
            let n = total - v * beta;
            bound += n * digamma(total) - libm::lgamma(total);
            bound += libm::lgamma(v * beta) - v * libm::lgamma(beta);
            mean -= v * digamma(total);
        }
        mean /= v * k as f64;
        if self.plan.beta.is_none() && state.iteration > 1 {
            let best = inverse_digamma(digamma(v * beta) + mean).max(LEAST);
            if best.is_finite() {
                state.beta = (beta * best).sqrt();
            }
        }
        bound
    }
}

/// The solver, bound to its counts.
pub(super) struct Passes<'a> {
    pub(super) inner: Variational,
    pub(super) counts: &'a Csr<f64>,
    pub(super) n_tokens: f64,
    /// Documents of a batch; `None`: all of them, and no rate.
    pub(super) batch: Option<usize>,
    pub(super) held_out: Option<HeldOut>,
}

/// The rate of a batch.
pub(super) fn rate(updates: u64) -> f64 {
    (OFFSET + updates as f64).powf(-DECAY)
}

impl Solver for Passes<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        Ok(self.inner.start(restart))
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        let n = self.counts.n_rows();
        let mut order: Vec<u32> = (0..n as u32).collect();
        let mut bound = 0.0;
        match self.batch {
            None => bound += self.inner.update(state, (self.counts, &order), (1.0, 1.0)),
            Some(batch) => {
                let index = (state.restart as u64) << 32 | state.iteration as u64;
                Stream::new(self.inner.plan.seed, "lda.order", index).shuffle(&mut order);
                for rows in order.chunks(batch) {
                    let step = (rate(state.updates), n as f64 / rows.len() as f64);
                    bound += self.inner.update(state, (self.counts, rows), step);
                }
            }
        }
        state.iteration += 1;
        bound += self.inner.of_topics(state);
        Ok(Step::Done(-bound / self.n_tokens))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let share = normalised(&state.alpha);
        let topics = Topics::new(&state.counts, state.alpha.clone(), state.beta, share);
        Some(held_out.perplexity(&topics))
    }

    fn keeps_last(&self) -> bool {
        true
    }

    fn write_state<'b>(&self, state: &'b State, prefix: &str, file: &mut Writer<'b>) {
        let k = self.inner.plan.n_topics;
        file.tensor(&format!("{prefix}counts"), &[self.inner.n_words, k], &state.counts);
        file.tensor(&format!("{prefix}alpha"), &[k], &state.alpha);
        file.tensor_owned(&format!("{prefix}beta"), &[1], vec![state.beta]);
        let numbers = vec![state.restart as u64, state.iteration as u64, state.updates];
        file.tensor_owned(&format!("{prefix}numbers"), &[3], numbers);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let k = self.inner.plan.n_topics;
        let counts = file.finite(&format!("{prefix}counts"), &[self.inner.n_words, k])?;
        let alpha = file.finite(&format!("{prefix}alpha"), &[k])?;
        let beta: Vec<f64> = file.finite(&format!("{prefix}beta"), &[1])?;
        let numbers: Vec<u64> = file.tensor(&format!("{prefix}numbers"), &[3])?;
        let (restart, iteration) = (numbers[0] as usize, numbers[1] as usize);
        Ok(State { restart, iteration, updates: numbers[2], counts, alpha, beta: beta[0] })
    }
}
