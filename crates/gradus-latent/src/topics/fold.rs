//! The mixture of topics of a document, given the topics.

use gradus_base::parallel;
use gradus_base::random::Stream;
use gradus_data::{Csr, Dense};

/// Documents that make a piece of work.
const BLOCK: usize = 16;
/// Steps at most, and the change of the mixture at which they end.
const STEPS: usize = 100;
const TOLERANCE: f64 = 1e-5;

/// Topics as documents are folded into them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Topics {
    /// `φ`, words × topics.
    pub(crate) phi: Vec<f32>,
    /// The prior of the mixtures; zeros for the maximum of the likelihood.
    pub(crate) alpha: Vec<f64>,
    /// The mixture of a document without known words.
    pub(crate) share: Vec<f64>,
}

impl Topics {
    /// Topics with `φ_wk = (n_wk + β) / (n_k + Vβ)` from counts of words in topics, words × topics.
    pub(crate) fn new(counts: &[f32], alpha: Vec<f64>, beta: f64, share: Vec<f64>) -> Self {
        let k = alpha.len();
        let n_words = counts.len() / k;
        let mut totals = vec![beta * n_words as f64; k];
        for row in counts.chunks_exact(k) {
            totals.iter_mut().zip(row).for_each(|(total, count)| *total += f64::from(*count));
        }
        let phi = |row: &[f32]| -> Vec<f32> {
            let of = |(count, total): (&f32, &f64)| match *total > 0.0 {
                true => ((f64::from(*count) + beta) / total) as f32,
                // A topic without words, which no prior fills: any distribution is as good.
                false => 1.0 / n_words as f32,
            };
            row.iter().zip(&totals).map(of).collect()
        };
        Self { phi: counts.chunks_exact(k).flat_map(phi).collect(), alpha, share }
    }

    fn row(&self, word: u32) -> &[f32] {
        let k = self.alpha.len();
        &self.phi[word as usize * k..][..k]
    }

    /// The mixture of a document: `θ_k ∝ α_k + Σ_w n_w p(k | w)` with `p(k | w) ∝ θ_k φ_wk`, repeated until it stays.
    /// That is expectation maximisation, which never lowers the posterior density of `θ` (with `α + 1` as prior).
    pub(crate) fn mixture(&self, words: &[u32], counts: &[f64], mixture: &mut [f64]) {
        mixture.copy_from_slice(&self.share);
        let n: f64 = counts.iter().sum();
        if n <= 0.0 {
            return;
        }
        let k = mixture.len();
        let total = n + self.alpha.iter().sum::<f64>();
        // What is uniform where no prior says otherwise must not begin where a topic has no share.
        mixture.iter_mut().for_each(|share| *share = share.max(1e-12));
        let mut single: Vec<f32> = vec![0.0; k];
        let mut next: Vec<f32> = vec![0.0; k];
        let mut joint: Vec<f32> = vec![0.0; k];
        for _ in 0..STEPS {
            single.iter_mut().zip(mixture.iter()).for_each(|(to, from)| *to = *from as f32);
            next.fill(0.0);
            for (&word, &count) in words.iter().zip(counts) {
                let sum = product(&single, self.row(word), &mut joint);
                if sum > 0.0 {
                    let scale = count as f32 / sum;
                    next.iter_mut().zip(&joint).for_each(|(next, joint)| *next += scale * joint);
                }
            }
            let mut change = 0.0;
            for ((share, next), alpha) in mixture.iter_mut().zip(&next).zip(&self.alpha) {
                let better = (alpha + f64::from(*next)) / total;
                change += (better - *share).abs();
                *share = better;
            }
            if change < TOLERANCE {
                break;
            }
        }
        let sum: f64 = mixture.iter().sum();
        if sum > 0.0 {
            mixture.iter_mut().for_each(|share| *share /= sum);
        } else {
            mixture.copy_from_slice(&self.share);
        }
    }

    /// The mixture of every document.
    pub(crate) fn mixtures(&self, counts: &Csr<f64>) -> Dense<f64> {
        let k = self.alpha.len();
        let mut all = vec![0.0; counts.n_rows() * k];
        let pieces = all.chunks_mut(BLOCK * k).enumerate();
        parallel::each(pieces, |(block, rows)| {
            for (at, row) in rows.chunks_exact_mut(k).enumerate() {
                let (words, values) = counts.row(block * BLOCK + at);
                self.mixture(words, values, row);
            }
        });
        Dense::from_fn(counts.n_rows(), k, |row, topic| all[row * k + topic])
    }

    /// The probability of a word of a document with this mixture.
    pub(crate) fn probability(&self, mixture: &[f64], word: u32) -> f64 {
        mixture.iter().zip(self.row(word)).map(|(share, phi)| share * f64::from(*phi)).sum()
    }

    /// Document completion: of each document the log probability of the second half of its words given the first, and the
    /// number of words in the second half. Words take turns, in the order of the vocabulary.
    pub(crate) fn completion(&self, counts: &Csr<f64>) -> Vec<(f64, f64)> {
        parallel::map_below(counts.n_rows(), BLOCK, |row| {
            let (words, values) = counts.row(row);
            let (first, second) = halves(values);
            let mut mixture = vec![0.0; self.alpha.len()];
            self.mixture(words, &first, &mut mixture);
            let (mut log, mut n) = (0.0, 0.0);
            for (&word, &count) in words.iter().zip(&second) {
                if count > 0.0 {
                    let p = self.probability(&mixture, word).max(f64::MIN_POSITIVE);
                    log += count * p.ln();
                    n += count;
                }
            }
            (log, n)
        })
    }

    /// An estimate of the log probability of the words of a document, `ln Σ_z p(w, z | α, φ)`, from left to right with this many
    /// particles (Wallach et al.: Evaluation methods for topic models, 2009, algorithm 3). It takes the square of the number
    /// of words. Without a prior there is no such probability.
    pub(crate) fn left_to_right(&self, words: &[u32], particles: usize, mut stream: Stream) -> f64 {
        let k = self.alpha.len();
        let sum: f64 = self.alpha.iter().sum();
        let mut topics = vec![vec![0usize; words.len()]; particles];
        let mut counts = vec![vec![0.0f64; k]; particles];
        let mut weights = vec![0.0f64; k];
        let mut draw = |word: u32, counts: &[f64], stream: &mut Stream| -> (usize, f64) {
            let mut total = 0.0;
            for (topic, weight) in weights.iter_mut().enumerate() {
                total += (counts[topic] + self.alpha[topic]) * f64::from(self.row(word)[topic]);
                *weight = total;
            }
            let place = stream.uniform() * total;
            (weights.iter().position(|weight| *weight > place).unwrap_or(k - 1), total)
        };
        let mut log = 0.0;
        for (at, &word) in words.iter().enumerate() {
            let mut p = 0.0;
            for (topics, counts) in topics.iter_mut().zip(&mut counts) {
                for before in 0..at {
                    counts[topics[before]] -= 1.0;
                    topics[before] = draw(words[before], counts, &mut stream).0;
                    counts[topics[before]] += 1.0;
                }
                let (topic, total) = draw(word, counts, &mut stream);
                p += total / (at as f64 + sum);
                topics[at] = topic;
                counts[topic] += 1.0;
            }
            log += (p / particles as f64).max(f64::MIN_POSITIVE).ln();
        }
        log
    }

    /// The log probability of each document given its own mixture.
    pub(crate) fn log_likelihood(&self, counts: &Csr<f64>) -> Vec<f64> {
        parallel::map_below(counts.n_rows(), BLOCK, |row| {
            let (words, values) = counts.row(row);
            let mut mixture = vec![0.0; self.alpha.len()];
            self.mixture(words, values, &mut mixture);
            let log = |(&word, &count): (&u32, &f64)| {
                count * self.probability(&mixture, word).max(f64::MIN_POSITIVE).ln()
            };
            words.iter().zip(values).filter(|(_, count)| **count > 0.0).map(log).sum()
        })
    }
}

/// The element-wise product, and its sum in eight parts.
pub(crate) fn product(a: &[f32], b: &[f32], to: &mut [f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let n = to.len() / 8 * 8;
    for at in (0..n).step_by(8) {
        for lane in 0..8 {
            let x = a[at + lane] * b[at + lane];
            to[at + lane] = x;
            sums[lane] += x;
        }
    }
    let mut rest = 0.0;
    for at in n..to.len() {
        to[at] = a[at] * b[at];
        rest += to[at];
    }
    sums.iter().sum::<f32>() + rest
}

/// The counts of a document cut in two: every other word, in the order of the vocabulary.
pub(crate) fn halves(counts: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut turn = 0.0;
    counts
        .iter()
        .map(|&count| {
            // The first of an odd number of words goes where it is the turn.
            let first = ((count + 1.0 - turn) / 2.0).floor();
            turn = (turn + count) % 2.0;
            (first, count - first)
        })
        .unzip()
}

/// Numbers that add up to 1, in these proportions.
pub(crate) fn normalised(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    if sum > 0.0 {
        return weights.iter().map(|weight| weight / sum).collect();
    }
    vec![1.0 / weights.len() as f64; weights.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_topics() -> Topics {
        let counts = [8.0, 1.0, 1.0, 5.0, 1.0, 4.0];
        Topics::new(&counts, vec![0.4, 0.7], 0.5, vec![0.4 / 1.1, 0.7 / 1.1])
    }

    #[test]
    fn words_take_turns_in_halves() {
        let (first, second) = halves(&[1.0, 1.0, 3.0, 2.0, 0.0, 1.0]);
        assert_eq!(first, [1.0, 0.0, 2.0, 1.0, 0.0, 0.0]);
        assert_eq!(second, [0.0, 1.0, 1.0, 1.0, 0.0, 1.0]);
        assert_eq!(halves(&[]), (vec![], vec![]));
    }

    /// Steps of the mixture never lower the posterior density, and end where a fine grid has its maximum.
    #[test]
    fn a_mixture_is_the_mode_of_its_posterior() {
        let topics = two_topics();
        let (words, counts) = ([0, 1, 2], [3.0, 1.0, 2.0]);
        let density = |share: f64| -> f64 {
            let theta = [share, 1.0 - share];
            let prior: f64 = theta.iter().zip(&topics.alpha).map(|(t, a)| a * t.ln()).sum();
            let of = |(&word, &n): (&u32, &f64)| n * topics.probability(&theta, word).ln();
            prior + words.iter().zip(&counts).map(of).sum::<f64>()
        };
        let mut found = [0.0; 2];
        topics.mixture(&words, &counts, &mut found);
        let grid = (1..10_000).map(|at| f64::from(at) / 10_000.0);
        let best = grid.max_by(|a, b| density(*a).total_cmp(&density(*b))).unwrap();
        assert!((found[0] - best).abs() < 1e-3, "{found:?} and {best}");
        assert!((found[0] + found[1] - 1.0).abs() < 1e-12);
    }

    /// Against the sum over all topics of all words. One sweep over the words before does not quite reach their posterior, so
    /// that a small bias stays however many particles there are.
    #[test]
    fn left_to_right_estimates_the_probability_of_a_document() {
        let topics = two_topics();
        let words = [0u32, 2, 1, 1, 0];
        let mut exact = 0.0;
        for which in 0..1 << words.len() {
            let (mut p, mut n) = (1.0, [0.0f64; 2]);
            for (at, &word) in words.iter().enumerate() {
                let topic = which >> at & 1;
                p *= (n[topic] + topics.alpha[topic]) / (at as f64 + 1.1);
                p *= f64::from(topics.row(word)[topic]);
                n[topic] += 1.0;
            }
            exact += p;
        }
        let found = topics.left_to_right(&words, 20_000, Stream::new(1, "test", 0));
        assert!((found - exact.ln()).abs() < 0.05, "{found} and {}", exact.ln());
    }
}
