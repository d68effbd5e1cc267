//! The way back from noise to data, and the bound on the log density.

use super::network::DenoiserNetwork;
use super::process::{Prediction, Process};
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::weights::Weights;
use gradus_base::parallel;
use gradus_base::random::Stream;

/// A trained denoiser with what it takes to use it.
pub(super) struct Denoiser<'a> {
    pub network: &'a DenoiserNetwork,
    pub weights: &'a Weights,
    pub process: &'a Process,
    pub prediction: Prediction,
    /// The least and the largest number of each feature: what data the network predicts is kept within them.
    pub bounds: &'a [(f32, f32)],
}

/// How samples are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    /// Steps from noise to data.
    pub steps: usize,
    /// The share of the noise of the posterior that each step adds again: 1 of ancestral sampling, 0 of DDIM.
    pub eta: f64,
    /// How much further than to the prediction for the class, away from that without a class.
    pub guidance: f64,
}

/// Called after each step with the number of steps that are left of the process, and the samples.
pub(super) type Seen<'a> = &'a mut dyn FnMut(usize, &[f32]);

impl Denoiser<'_> {
    /// The data that the network sees in noisy samples.
    fn data(&self, x: &[f32], times: &[usize], classes: &[u32]) -> Vec<f32> {
        let (n, d) = (times.len(), self.bounds.len());
        let device = self.weights.device();
        let last = self.process.n_steps() as f64;
        let of_time: Vec<f64> = times.iter().map(|t| *t as f64 / last).collect();
        let given = tensor(x.to_vec(), [n, d], &device);
        let pass = Pass::predicting();
        let said = self.network.forward(self.weights, given, &of_time, classes, &pass);
        let mut said = numbers(said);
        parallel::each_row(&mut said, d.max(1), |row, said| {
            let (a, b) = self.process.data_from(self.prediction, times[row]);
            let (a, b) = (a as f32, b as f32);
            for (said, x) in said.iter_mut().zip(&x[row * d..][..d]) {
                *said = a * x + b * *said;
            }
        });
        said
    }

    /// Keeps predicted data within what data can be.
    fn clamp(&self, data: &mut [f32]) {
        for row in data.chunks_exact_mut(self.bounds.len().max(1)) {
            for (x, (low, high)) in row.iter_mut().zip(self.bounds) {
                // What is no number stays so, and is noticed.
                *x = if *x < *low {
                    *low
                } else if *x > *high {
                    *high
                } else {
                    *x
                };
            }
        }
    }

    /// Samples from noise; each has a class (of a network that knows some) and a stream of its own.
    pub(super) fn sample(
        &self,
        streams: &mut [Stream],
        classes: &[u32],
        way: Way,
        mut seen: Option<Seen<'_>>,
    ) -> Vec<f32> {
        let (n, d) = (streams.len(), self.bounds.len());
        let fill = |streams: &mut [Stream]| {
            let mut noise = vec![0.0f32; n * d];
            let rows: Vec<_> = noise.chunks_mut(d.max(1)).zip(streams).collect();
            parallel::each(rows, |(row, stream)| {
                row.iter_mut().for_each(|x| *x = stream.normal() as f32);
            });
            noise
        };
        let mut x = fill(streams);
        let times = self.process.times(way.steps);
        if let Some(seen) = &mut seen {
            seen(times[0], &x);
        }
        let unknown = self.network.unknown().filter(|_| way.guidance > 0.0);
        for pair in times.windows(2) {
            let (t, s) = (pair[0], pair[1]);
            let mut data = match unknown {
                None => self.data(&x, &vec![t; n], classes),
                Some(unknown) => {
                    // Both in one pass: those with their class, then those without.
                    let both = [&x[..], &x].concat();
                    let all = [classes, &vec![unknown; n]].concat();
                    let found = self.data(&both, &vec![t; 2 * n], &all);
                    let (with, without) = found.split_at(n * d);
                    let w = way.guidance as f32;
                    with.iter().zip(without).map(|(a, b)| a + w * (a - b)).collect()
                }
            };
            self.clamp(&mut data);
            let step = self.process.step(s, t, way.eta);
            let (a, b) = (step.of_data as f32, step.of_noisy as f32);
            let deviation = step.variance.sqrt() as f32;
            x.iter_mut().zip(&data).for_each(|(x, data)| *x = a * data + b * *x);
            if deviation > 0.0 {
                let noise = fill(streams);
                x.iter_mut().zip(noise).for_each(|(x, e)| *x += deviation * e);
            }
            if let Some(seen) = &mut seen {
                seen(s, &x);
            }
        }
        x
    }

    /// A lower bound on the log density of each scaled sample (of images of `levels` values the log probability), estimated by so many
    /// of its terms. The noise of a sample is that of its stream.
    pub(super) fn bound(
        &self,
        z: &[f32],
        classes: &[u32],
        levels: Option<usize>,
        terms: usize,
        counts: &[bool],
        stream: impl Fn(usize) -> Stream,
    ) -> Vec<f64> {
        let (d, steps) = (self.bounds.len(), self.process.n_steps());
        let n = z.len() / d.max(1);
        let mut streams: Vec<Stream> = (0..n).map(stream).collect();
        // Steps are drawn with the probability of what their terms are at most, in the mean: that of data with variance 1.
        let weight =
            |t: usize| self.process.bound_weight(t) / (1.0 + self.process.signal_to_noise(t));
        let mut sums = vec![0.0f64];
        (2..=steps).for_each(|t| sums.push(sums[sums.len() - 1] + weight(t)));
        let total = sums[sums.len() - 1];
        let squares = |a: &[f32], b: &[f32]| -> f64 {
            let off = a.iter().zip(b).zip(counts).filter(|(_, counts)| **counts);
            off.map(|((a, b), _)| f64::from(a - b).powi(2)).sum()
        };
        let offsets: Vec<f64> = streams.iter_mut().map(Stream::uniform).collect();
        let mut bound = vec![0.0f64; n];
        for term in 0..=terms {
            // The first step is always there: it is where data comes out.
            let times: Vec<usize> = (0..n)
                .map(|row| match term {
                    0 => 1,
                    _ if steps < 2 => 1,
                    _ => {
                        let share = (term as f64 - 1.0 + offsets[row]) / terms as f64 * total;
                        (1 + sums.partition_point(|sum| *sum <= share)).clamp(2, steps)
                    }
                })
                .collect();
            let mut x = z.to_vec();
            for ((row, t), stream) in x.chunks_exact_mut(d.max(1)).zip(&times).zip(&mut streams) {
                let (signal, noise) = self.process.factors(*t);
                for x in row {
                    *x = (signal * f64::from(*x) + noise * stream.normal()) as f32;
                }
            }
            let mut data = self.data(&x, &times, classes);
            self.clamp(&mut data);
            let rows = z.chunks_exact(d.max(1)).zip(data.chunks_exact(d.max(1)));
            for (row, (z, data)) in rows.enumerate() {
                let t = times[row];
                if term == 0 {
                    let variance = 1.0 - self.process.kept(1);
                    let each = z.iter().zip(data).zip(counts).filter(|(_, counts)| **counts);
                    bound[row] += each
                        .map(|((z, x), _)| {
                            log_density(f64::from(*z), f64::from(*x), variance, levels)
                        })
                        .sum::<f64>();
                } else {
                    let probability = weight(t) / total;
                    let divergence = self.process.bound_weight(t) * squares(z, data);
                    bound[row] -= divergence / (probability * terms as f64);
                }
            }
        }
        // What is left of the data in the noise at the end.
        let kept = self.process.kept(steps);
        for (bound, z) in bound.iter_mut().zip(z.chunks_exact(d.max(1))) {
            for (z, _) in z.iter().zip(counts).filter(|(_, counts)| **counts) {
                *bound -= 0.5 * (kept * f64::from(*z).powi(2) - kept - (-kept).ln_1p());
            }
        }
        bound
    }
}

/// The log density at `z` of the normal distribution around `x`; the log probability of its level, where there are levels between −1 and
/// 1.
fn log_density(z: f64, x: f64, variance: f64, levels: Option<usize>) -> f64 {
    let Some(levels) = levels else {
        return -0.5 * ((z - x).powi(2) / variance + (2.0 * std::f64::consts::PI * variance).ln());
    };
    let half = 1.0 / (levels as f64 - 1.0);
    let deviation = variance.sqrt();
    let below = |edge: f64| 0.5 * libm::erfc(-(edge - x) / (deviation * std::f64::consts::SQRT_2));
    let level = ((z + 1.0) / (2.0 * half)).round();
    let centre = level * 2.0 * half - 1.0;
    // The outermost levels take all that lies beyond. Of two tails the difference is taken on the side where it does not cancel.
    let (low, high) = (centre - half, centre + half);
    let (low, high) = (if level <= 0.0 { f64::NEG_INFINITY } else { low }, high);
    let high = if level >= levels as f64 - 1.0 { f64::INFINITY } else { high };
    let inside = if low > x {
        let above =
            |edge: f64| 0.5 * libm::erfc((edge - x) / (deviation * std::f64::consts::SQRT_2));
        above(low) - above(high)
    } else {
        below(high) - below(low)
    };
    inside.max(1e-300).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probabilities_of_all_levels_add_up_to_1() {
        for levels in [2, 5, 256] {
            for (x, variance) in [(0.3, 1e-4), (-1.0, 0.5), (0.999, 4e-5)] {
                let level = |at: usize| 2.0 * at as f64 / (levels as f64 - 1.0) - 1.0;
                let all =
                    (0..levels).map(|at| log_density(level(at), x, variance, Some(levels)).exp());
                assert!((all.sum::<f64>() - 1.0).abs() < 1e-12, "{levels} {x} {variance}");
            }
        }
        // Without levels it is the density.
        let peak = log_density(0.0, 0.0, 1.0, None);
        assert!((peak + 0.5 * (2.0 * std::f64::consts::PI).ln()).abs() < 1e-12);
    }
}
