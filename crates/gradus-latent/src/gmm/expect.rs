//! The expectation step: how probable each component is for each sample, and the sums that the maximisation step needs.

use super::Covariance;
use super::mixture::{Conditional, Factors, Metric, Mixture};
use super::rows::{BLOCK, Block, Rows};
use gradus_base::parallel;
use gradus_kernel::gaussian::{self, LANES};
use gradus_kernel::{Level, dense, exp_all};

/// A component that is less probable than this for a sample gets nothing of it: its share of the sums would be lost in
/// rounding.
const NEGLIGIBLE: f64 = 1e-20;

/// Sums over samples, each weighted by how probable a component is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stats {
    /// `Σ w ln p(x)`, in the units of the space.
    pub(super) log_likelihood: f64,
    /// `Σ r`, by component.
    pub(super) mass: Vec<f64>,
    /// `Σ r (x − μ)`, components × features, about the means of the mixture.
    pub(super) first: Vec<f64>,
    /// `Σ r (x − μ)(x − μ)ᵀ`: upper triangles, one for each component or (tied) one for all; the diagonals, components ×
    /// features, of other kinds.
    pub(super) second: Vec<f64>,
}

impl Stats {
    pub(super) fn zero(mixture: &Mixture) -> Self {
        let (k, d) = (mixture.k, mixture.d);
        let second = match mixture.kind {
            Covariance::Full => k * d * d,
            Covariance::Tied => d * d,
            Covariance::Diag | Covariance::Spherical | Covariance::Unit => k * d,
        };
        Self {
            log_likelihood: 0.0,
            mass: vec![0.0; k],
            first: vec![0.0; k * d],
            second: vec![0.0; second],
        }
    }

    fn add(&mut self, other: &Self) {
        self.log_likelihood += other.log_likelihood;
        let pairs = [
            (&mut self.mass, &other.mass),
            (&mut self.first, &other.first),
            (&mut self.second, &other.second),
        ];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }
}

/// The scratch memory of a thread.
#[derive(Default)]
pub(super) struct Scratch {
    /// The block by columns, features × samples, filled up with the last sample to a multiple of [`LANES`].
    columns: Vec<f64>,
    /// Components × samples: logarithms, then probabilities.
    pub(super) shares: Vec<f64>,
    /// The log density of each sample.
    pub(super) logs: Vec<f64>,
    most: Vec<f64>,
    sums: Vec<f64>,
    conditionals: Vec<Conditional>,
    picked: Vec<u32>,
    weights: Vec<f64>,
    /// Samples in a row of `shares`.
    pub(super) stride: usize,
}

impl Scratch {
    /// The probability of component `c` for the samples of the block.
    pub(super) fn shares_of(&self, c: usize) -> &[f64] {
        &self.shares[c * self.stride..(c + 1) * self.stride]
    }

    fn transpose(&mut self, rows: &Rows, block: &Block) {
        let (d, n) = (rows.d, block.rows.len());
        self.stride = n.next_multiple_of(LANES);
        self.columns.resize(d * self.stride, 0.0);
        for at in 0..self.stride {
            let row = rows.row(block.rows.start + at.min(n - 1));
            for (j, x) in row.iter().enumerate() {
                self.columns[j * self.stride + at] = *x;
            }
        }
    }

    /// Fills `shares` and `logs` for a block.
    pub(super) fn posteriors(
        &mut self,
        rows: &Rows,
        block: &Block,
        (mixture, factors): (&Mixture, &Factors),
    ) {
        let (k, d, level) = (mixture.k, mixture.d, Level::best());
        self.transpose(rows, block);
        let stride = self.stride;
        self.shares.clear();
        self.shares.resize(k * stride, 0.0);
        match block.pattern {
            None => {
                for (c, to) in self.shares.chunks_exact_mut(stride).enumerate() {
                    let mean = mixture.mean(c);
                    match &factors.metric {
                        Metric::Lower { packed, .. } => {
                            let packed = &packed[c.min(packed.len() - 1)];
                            gaussian::distances(level, &self.columns, mean, packed, to);
                        }
                        Metric::Diagonal(scales) => {
                            let scales = &scales[c * d..(c + 1) * d];
                            gaussian::scaled_distances(level, &self.columns, mean, scales, to);
                        }
                    }
                    let constant = factors.constants[c];
                    to.iter_mut().for_each(|x| *x = constant - 0.5 * *x);
                }
            }
            Some(pattern) => {
                let pattern = &rows.patterns[pattern];
                self.conditionals.clear();
                let mut off = vec![0.0; pattern.observed.len()];
                for c in 0..k {
                    let conditional = mixture.conditional(c, pattern);
                    let (mean, log_weight) = (mixture.mean(c), mixture.weights[c].ln());
                    for (at, row) in block.rows.clone().enumerate() {
                        differences(rows.row(row), mean, &pattern.observed, &mut off);
                        self.shares[c * stride + at] = log_weight + conditional.log_density(&off);
                    }
                    self.conditionals.push(conditional);
                }
            }
        }
        self.normalize(k);
    }

    /// Turns logarithms into probabilities that add up to 1, and keeps the logarithm of their sum.
    fn normalize(&mut self, k: usize) {
        let stride = self.stride;
        let Self { shares, most, sums, logs, .. } = self;
        most.clear();
        most.extend_from_slice(&shares[..stride]);
        for of in shares.chunks_exact(stride).skip(1) {
            most.iter_mut().zip(of).for_each(|(most, x)| *most = most.max(*x));
        }
        for of in shares.chunks_exact_mut(stride) {
            of.iter_mut().zip(&*most).for_each(|(x, most)| *x -= most);
        }
        exp_all(Level::best(), &mut shares[..k * stride]);
        sums.clear();
        sums.resize(stride, 0.0);
        for of in shares.chunks_exact(stride) {
            sums.iter_mut().zip(of).for_each(|(sum, x)| *sum += x);
        }
        logs.clear();
        logs.extend(most.iter().zip(&*sums).map(|(most, sum)| most + sum.ln()));
        sums.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
        for of in shares.chunks_exact_mut(stride) {
            of.iter_mut().zip(&*sums).for_each(|(x, by)| *x *= by);
        }
    }

    /// Prepares `shares` for samples that belong to one component each.
    fn assign(&mut self, rows: &Rows, block: &Block, mixture: &Mixture, labels: &[u32]) {
        self.transpose(rows, block);
        self.shares.clear();
        self.shares.resize(mixture.k * self.stride, 0.0);
        for (at, row) in block.rows.clone().enumerate() {
            self.shares[labels[row] as usize * self.stride + at] = 1.0;
        }
        self.logs.clear();
        self.logs.resize(self.stride, 0.0);
        if let Some(pattern) = block.pattern {
            let pattern = &rows.patterns[pattern];
            self.conditionals = (0..mixture.k).map(|c| mixture.conditional(c, pattern)).collect();
        }
    }

    /// Adds what a block contributes.
    fn accumulate(&mut self, rows: &Rows, block: &Block, mixture: &Mixture, stats: &mut Stats) {
        let (k, d, stride) = (mixture.k, mixture.d, self.stride);
        let n = block.rows.len();
        let weights = &rows.weights[block.rows.clone()];
        for (log, weight) in self.logs.iter().zip(weights) {
            stats.log_likelihood += weight * log;
        }
        for of in self.shares.chunks_exact_mut(stride) {
            of[n..].fill(0.0);
            of.iter_mut().zip(weights).for_each(|(share, weight)| *share *= weight);
        }
        if block.pattern.is_some() {
            return self.accumulate_incomplete(rows, block, mixture, stats);
        }
        let level = Level::best();
        let mut unused = vec![0.0; if mixture.kind.has_matrices() { d } else { 0 }];
        for c in 0..k {
            let shares = &self.shares[c * stride..(c + 1) * stride];
            let mean = mixture.mean(c);
            self.picked.clear();
            self.weights.clear();
            for (at, share) in shares[..n].iter().enumerate() {
                if *share > NEGLIGIBLE {
                    self.picked.push(at as u32);
                    self.weights.push(*share);
                }
            }
            if self.picked.is_empty() {
                continue;
            }
            stats.mass[c] += shares.iter().sum::<f64>();
            let first = &mut stats.first[c * d..(c + 1) * d];
            if !mixture.kind.has_matrices() {
                let second = &mut stats.second[c * d..(c + 1) * d];
                gaussian::moments(level, &self.columns, mean, shares, first, second);
                continue;
            }
            gaussian::moments(level, &self.columns, mean, shares, first, &mut unused);
            let size = d * d;
            let second = match mixture.kind {
                Covariance::Full => &mut stats.second[c * size..(c + 1) * size],
                _ => &mut stats.second[..],
            };
            let (picked, start) = (&self.picked, block.rows.start);
            let shape = (picked.len(), d);
            dense::gram_of(level, shape, Some(&self.weights), second, |at, to| {
                let row = rows.row(start + picked[at] as usize);
                for ((to, x), mean) in to.iter_mut().zip(row).zip(mean) {
                    *to = x - mean;
                }
            });
        }
    }

    /// The same for samples with missing entries, whose moments are those expected given what is there.
    fn accumulate_incomplete(
        &mut self,
        rows: &Rows,
        block: &Block,
        mixture: &Mixture,
        stats: &mut Stats,
    ) {
        let (k, d, stride) = (mixture.k, mixture.d, self.stride);
        let Some(pattern) = block.pattern.map(|at| &rows.patterns[at]) else { return };
        let (observed, missing) = (&pattern.observed, &pattern.missing);
        let (mut seen, mut unseen) = (vec![0.0; observed.len()], vec![0.0; missing.len()]);
        let mut all = vec![0.0; d];
        for c in 0..k {
            let conditional = &self.conditionals[c];
            let mean = mixture.mean(c);
            let first = &mut stats.first[c * d..(c + 1) * d];
            let second = match mixture.kind {
                Covariance::Full => &mut stats.second[c * d * d..(c + 1) * d * d],
                Covariance::Tied => &mut stats.second[..],
                _ => &mut stats.second[c * d..(c + 1) * d],
            };
            let mut mass = 0.0;
            for (at, row) in block.rows.clone().enumerate() {
                let share = self.shares[c * stride + at];
                if share <= NEGLIGIBLE {
                    continue;
                }
                mass += share;
                differences(rows.row(row), mean, observed, &mut seen);
                conditional.expected(&seen, &mut unseen);
                observed.iter().zip(&seen).for_each(|(&j, x)| all[j] = *x);
                missing.iter().zip(&unseen).for_each(|(&j, x)| all[j] = *x);
                for (to, x) in first.iter_mut().zip(&all) {
                    *to += share * x;
                }
                if mixture.kind.has_matrices() {
                    for (i, to) in second.chunks_exact_mut(d).enumerate() {
                        let by = share * all[i];
                        to[i..].iter_mut().zip(&all[i..]).for_each(|(to, x)| *to += by * x);
                    }
                } else {
                    second.iter_mut().zip(&all).for_each(|(to, x)| *to += share * x * x);
                }
            }
            stats.mass[c] += mass;
            let m = missing.len();
            for (a, &i) in missing.iter().enumerate() {
                if mixture.kind.has_matrices() {
                    for (b, &j) in missing.iter().enumerate().skip(a) {
                        second[i * d + j] += mass * conditional.spread[a * m + b];
                    }
                } else {
                    second[i] += mass * conditional.spread[a];
                }
            }
        }
    }

    /// The features of a sample of the block, those that are missing as expected.
    pub(super) fn imputed(
        &self,
        rows: &Rows,
        block: &Block,
        mixture: &Mixture,
        at: usize,
        to: &mut [f64],
    ) {
        let row = rows.row(block.rows.start + at);
        to.copy_from_slice(row);
        let Some(pattern) = block.pattern.map(|at| &rows.patterns[at]) else { return };
        let (mut seen, mut unseen) =
            (vec![0.0; pattern.observed.len()], vec![0.0; pattern.missing.len()]);
        pattern.missing.iter().for_each(|&j| to[j] = 0.0);
        for (c, conditional) in self.conditionals.iter().enumerate() {
            let (mean, share) = (mixture.mean(c), self.shares[c * self.stride + at]);
            if share == 0.0 {
                continue;
            }
            differences(row, mean, &pattern.observed, &mut seen);
            conditional.expected(&seen, &mut unseen);
            for (&j, x) in pattern.missing.iter().zip(&unseen) {
                to[j] += share * (mean[j] + x);
            }
        }
    }
}

fn differences(row: &[f64], mean: &[f64], features: &[usize], to: &mut [f64]) {
    to.iter_mut().zip(features).for_each(|(to, &j)| *to = row[j] - mean[j]);
}

/// The sums over all samples under a mixture.
pub(super) fn expect(rows: &Rows, mixture: &Mixture, factors: &Factors) -> Stats {
    sums(rows, mixture, |scratch, block| scratch.posteriors(rows, block, (mixture, factors)))
}

/// The sums over all samples, each of which belongs to one component. The mixture has the means that sums are about, and
/// the covariances by which missing entries are filled in.
pub(super) fn assigned(rows: &Rows, mixture: &Mixture, labels: &[u32]) -> Stats {
    sums(rows, mixture, |scratch, block| scratch.assign(rows, block, mixture, labels))
}

fn sums(rows: &Rows, mixture: &Mixture, fill: impl Fn(&mut Scratch, &Block) + Sync) -> Stats {
    let parts: Vec<&[Block]> = rows.parts().collect();
    let parts = parallel::map_with(parts, Scratch::default, |scratch, blocks| {
        let mut stats = Stats::zero(mixture);
        for block in blocks {
            fill(scratch, block);
            scratch.accumulate(rows, block, mixture, &mut stats);
        }
        stats
    });
    let mut total = Stats::zero(mixture);
    parts.iter().for_each(|part| total.add(part));
    total
}

/// Applies `work` to every block and returns the results: it gets the probabilities of the components and the number of
/// the block's first sample in the rows.
pub(super) fn each_block<R: Send>(
    rows: &Rows,
    mixture: &Mixture,
    factors: &Factors,
    work: impl Fn(&Scratch, &Block) -> R + Sync,
) -> Vec<R> {
    debug_assert!(rows.blocks.iter().all(|block| block.rows.len() <= BLOCK));
    parallel::map_with(&rows.blocks, Scratch::default, |scratch, block| {
        scratch.posteriors(rows, block, (mixture, factors));
        work(scratch, block)
    })
}
