//! How data becomes noise, and the formulas of the way back.

use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much noise each step adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoiseSchedule {
    /// `ᾱ = cos²`: noise grows evenly, so that few steps are spent where all is noise. Best for small images and for tables.
    #[default]
    Cosine,
    /// The variance of the noise of a step grows in a straight line, as in the first paper.
    Linear,
}

/// What the network says of a noisy sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Prediction {
    /// `v = √ᾱ ε − √(1 − ᾱ) x₀`: neither noise nor data alone, so that it means something at every step.
    #[default]
    Velocity,
    /// The noise `ε`, as in the first paper.
    Noise,
}

/// The share of the cosine that is left out at its beginning, so that the first step adds some noise.
const OFFSET: f64 = 0.008;
/// The largest variance of the noise of a step.
const LARGEST: f64 = 0.999;

/// The forward process `q(xₜ | x₀) = N(√ᾱₜ x₀, (1 − ᾱₜ) I)` for `t = 1, …, T`.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// `ᾱₜ` for `t = 0, …, T`, from 1 downwards.
    kept: Vec<f64>,
}

/// The mean of `q(xₜ₋₁ | xₜ, x₀)` as a sum of both, and its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posterior {
    /// The factor of `x₀`.
    pub of_data: f64,
    /// The factor of `xₜ`.
    pub of_noisy: f64,
    /// The variance of each number.
    pub variance: f64,
}

impl Process {
    /// The process of so many steps.
    ///
    /// # Errors
    /// If there are fewer than 2 steps, or more than 100,000.
    pub fn new(kind: NoiseSchedule, n_steps: usize) -> Result<Self> {
        if !(2..=100_000).contains(&n_steps) {
            return Err(Error::parameter("n_steps", n_steps, "must be from 2 to 100000"));
        }
        let n = n_steps as f64;
        // The rates of the first paper are those of 1,000 steps.
        let (first, last) = (1e-4 * 1000.0 / n, 0.02 * 1000.0 / n);
        let cosine = |t: f64| {
            ((t / n + OFFSET) / (1.0 + OFFSET) * std::f64::consts::FRAC_PI_2).cos().powi(2)
        };
        let mut kept = vec![1.0f64];
        for t in 1..=n_steps {
            let beta = match kind {
                NoiseSchedule::Linear => first + (last - first) * (t - 1) as f64 / (n - 1.0),
                NoiseSchedule::Cosine => 1.0 - cosine(t as f64) / cosine((t - 1) as f64),
            };
            kept.push(kept[t - 1] * (1.0 - beta.clamp(1e-12, LARGEST)));
        }
        Ok(Self { kept })
    }

    /// The number of steps.
    pub fn n_steps(&self) -> usize {
        self.kept.len() - 1
    }

    /// `ᾱₜ`: the share of the variance of a noisy sample that is data; 1 for `t = 0`.
    pub fn kept(&self, t: usize) -> f64 {
        self.kept[t]
    }

    /// The factors of data and of noise in a noisy sample: `√ᾱₜ` and `√(1 − ᾱₜ)`.
    pub fn factors(&self, t: usize) -> (f64, f64) {
        (self.kept[t].sqrt(), (1.0 - self.kept[t]).sqrt())
    }

    /// `ᾱₜ / (1 − ᾱₜ)`.
    pub fn signal_to_noise(&self, t: usize) -> f64 {
        self.kept[t] / (1.0 - self.kept[t])
    }

    /// `q(xₛ | xₜ, x₀)` for `s < t`.
    pub fn posterior(&self, s: usize, t: usize) -> Posterior {
        let (a, b) = (self.kept[s], self.kept[t]);
        // The share kept, and the variance added, from s to t.
        let ratio = b / a;
        Posterior {
            of_data: a.sqrt() * (1.0 - ratio) / (1.0 - b),
            of_noisy: ratio.sqrt() * (1.0 - a) / (1.0 - b),
            variance: (1.0 - a) / (1.0 - b) * (1.0 - ratio),
        }
    }

    /// A step of a way back from `xₜ` to `xₛ`: that of DDIM with `eta` 0, which adds no noise, and the posterior, of ancestral sampling,
    /// with `eta` 1.
    pub fn step(&self, s: usize, t: usize, eta: f64) -> Posterior {
        let (a, b) = (self.kept[s], self.kept[t]);
        let variance = eta * eta * self.posterior(s, t).variance;
        // The noise that the network saw, but for what is drawn anew.
        let noise = ((1.0 - a - variance).max(0.0) / (1.0 - b)).sqrt();
        Posterior { of_data: a.sqrt() - noise * b.sqrt(), of_noisy: noise, variance }
    }

    /// The factors of the noisy sample and of what the network says in the data that they stand for.
    pub fn data_from(&self, prediction: Prediction, t: usize) -> (f64, f64) {
        let (signal, noise) = self.factors(t);
        match prediction {
            Prediction::Noise => (1.0 / signal, -noise / signal),
            Prediction::Velocity => (signal, -noise),
        }
    }

    /// The steps `t` that a way back of so many steps goes through, from `T` to 0: spread evenly.
    pub fn times(&self, steps: usize) -> Vec<usize> {
        let n = self.n_steps();
        let steps = steps.clamp(1, n);
        (0..=steps).rev().map(|at| (at * n + steps / 2) / steps).collect()
    }

    /// The weight of the squared error of the data in the bound at step `t > 1`:
    /// `½ (SNR(t − 1) − SNR(t))`, the divergence of the posterior from the one with predicted data.
    pub fn bound_weight(&self, t: usize) -> f64 {
        0.5 * (self.signal_to_noise(t - 1) - self.signal_to_noise(t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn both() -> [Process; 2] {
        [NoiseSchedule::Cosine, NoiseSchedule::Linear].map(|kind| Process::new(kind, 1000).unwrap())
    }

    #[test]
    fn schedules_fall_from_data_to_noise() {
        for process in both() {
            assert_eq!((process.n_steps(), process.kept(0)), (1000, 1.0));
            for t in 1..=1000 {
                assert!(process.kept(t) < process.kept(t - 1) && process.kept(t) > 0.0);
                let (signal, noise) = process.factors(t);
                assert!((signal * signal + noise * noise - 1.0).abs() < 1e-12);
            }
            assert!(process.kept(1) > 0.999 && process.kept(1000) < 1e-4);
        }
        // The rates of the first paper: from 0.0001 to 0.02.
        let linear = &both()[1];
        assert!((1.0 - linear.kept(1) - 1e-4).abs() < 1e-12);
        assert!((1.0 - linear.kept(1000) / linear.kept(999) - 0.02).abs() < 1e-9);
        // Half of the cosine's way is half of its variance.
        assert!((both()[0].kept(500) - 0.5).abs() < 0.02);
        assert!(Process::new(NoiseSchedule::Linear, 1).is_err());
        // Few steps, as tests and toys have them, are possible, too.
        for n in [2, 7, 15] {
            for kind in [NoiseSchedule::Cosine, NoiseSchedule::Linear] {
                let process = Process::new(kind, n).unwrap();
                assert!((1..=n).all(|t| process.kept(t) < process.kept(t - 1)));
                assert!(process.kept(n) > 0.0);
            }
        }
    }

    #[test]
    fn the_posterior_is_that_of_a_simulation() {
        // x₀ is one of few values, so that a simulation can tell them apart; xₛ and xₜ are drawn step by step.
        let process = Process::new(NoiseSchedule::Linear, 40).unwrap();
        for (s, t) in [(9, 10), (4, 20), (0, 7)] {
            let (n, mut stream) = (400_000, Stream::new(1, "test", t as u64));
            let x0 = 0.7;
            // Regression of xₛ on xₜ: its slope, its intercept and its residual variance are those of the posterior.
            let (mut sums, mut pairs) = ([0.0f64; 5], Vec::with_capacity(n));
            for _ in 0..n {
                let (mut x, mut at_s) = (x0, x0);
                for step in 1..=t {
                    let ratio = process.kept(step) / process.kept(step - 1);
                    x = ratio.sqrt() * x + (1.0 - ratio).sqrt() * stream.normal();
                    if step == s {
                        at_s = x;
                    }
                }
                pairs.push((x, at_s));
                let parts = [x, at_s, x * x, x * at_s, at_s * at_s];
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
            let [mx, ms, mxx, mxs, _] = sums.map(|sum| sum / n as f64);
            let slope = (mxs - mx * ms) / (mxx - mx * mx);
            let intercept = ms - slope * mx;
            let residual = pairs.iter().map(|(x, y)| (y - intercept - slope * x).powi(2));
            let variance = residual.sum::<f64>() / n as f64;
            let found = process.posterior(s, t);
            assert!((found.of_noisy - slope).abs() < 5e-3, "{} {slope}", found.of_noisy);
            assert!((found.of_data * x0 - intercept).abs() < 5e-3, "{} {intercept}", found.of_data);
            assert!((found.variance - variance).abs() < 5e-3, "{} {variance}", found.variance);
            // The noisy sample itself has the mean and variance of the closed form.
            let (signal, noise) = process.factors(t);
            assert!((mx - signal * x0).abs() < 5e-3);
            assert!((mxx - mx * mx - noise * noise).abs() < 1e-2);
        }
    }

    #[test]
    fn both_predictions_stand_for_the_same_data() {
        for process in both() {
            for t in [1, 10, 400, 999] {
                let (signal, noise) = process.factors(t);
                let (x0, e) = (0.3, -1.2);
                let x = signal * x0 + noise * e;
                let said =
                    [(Prediction::Noise, e), (Prediction::Velocity, signal * e - noise * x0)];
                for (prediction, said) in said {
                    let (a, b) = process.data_from(prediction, t);
                    assert!((a * x + b * said - x0).abs() < 1e-9, "{prediction:?} {t}");
                }
            }
        }
    }

    #[test]
    fn the_divergence_of_two_posteriors_is_the_weighted_error_of_the_data() {
        let process = Process::new(NoiseSchedule::Cosine, 100).unwrap();
        for t in 2..=100 {
            let Posterior { of_data, variance, .. } = process.posterior(t - 1, t);
            // Two normal distributions of one variance whose means are off by `of_data` times the error.
            let divergence = of_data * of_data / (2.0 * variance);
            let weight = process.bound_weight(t);
            assert!((divergence / weight - 1.0).abs() < 1e-9, "{t}: {divergence} {weight}");
        }
    }

    #[test]
    fn a_step_with_all_noise_is_the_posterior_and_one_without_keeps_the_noise() {
        for process in both() {
            for (s, t) in [(0, 1), (1, 2), (499, 500), (999, 1000), (300, 700)] {
                let (step, posterior) = (process.step(s, t, 1.0), process.posterior(s, t));
                let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{s} {t}: {a} {b}");
                near(step.of_data, posterior.of_data);
                near(step.of_noisy, posterior.of_noisy);
                near(step.variance, posterior.variance);
                // DDIM leads from a sample with some noise to the same with less of the same noise.
                let (x0, e) = (-0.4, 1.3);
                let at = |time: usize| {
                    let (signal, noise) = process.factors(time);
                    signal * x0 + noise * e
                };
                let step = process.step(s, t, 0.0);
                near(step.of_data * x0 + step.of_noisy * at(t), at(s));
                assert_eq!(step.variance, 0.0);
            }
        }
    }

    #[test]
    fn a_way_back_goes_from_noise_to_data() {
        let process = Process::new(NoiseSchedule::Cosine, 1000).unwrap();
        assert_eq!(process.times(4), [1000, 750, 500, 250, 0]);
        assert_eq!(process.times(1), [1000, 0]);
        let all = process.times(5000);
        assert!(all.len() == 1001 && all.windows(2).all(|pair| pair[0] == pair[1] + 1));
        for steps in [2, 3, 7, 999] {
            let times = process.times(steps);
            assert_eq!((times.len(), times[0], times[steps]), (steps + 1, 1000, 0));
            assert!(times.windows(2).all(|pair| pair[0] > pair[1]));
        }
    }
}
