//! What a diffusion model learns: the noise, or what stands for it, in samples with noise.

use super::network::DenoiserNetwork;
use super::process::{Prediction, Process};
use crate::device::{numbers, tensor};
use crate::generative::labelled::Part;
use crate::layers::Pass;
use crate::ops::squared_error;
use crate::supervised::Scaler;
use crate::train::Task;
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::parallel;
use gradus_base::random::Stream;

/// Rows that are scored at once.
const ROWS: usize = 256;

/// The task of a denoiser.
pub(super) struct DenoisingTask<'a> {
    pub layout: &'a Layout,
    pub network: &'a DenoiserNetwork,
    pub process: &'a Process,
    pub prediction: Prediction,
    pub scaler: &'a Scaler,
    pub training: &'a Part<'a>,
    pub held: Option<&'a Part<'a>>,
    /// The probability with which the class of a sample is hidden.
    pub class_dropout: f64,
    /// Draws the samples that are kept of the course of the fit.
    pub sampler: &'a (dyn Fn(&Weights) -> Vec<f32> + Sync),
    pub device: Device,
}

/// Noisy samples, and what is to be said of them.
pub(super) struct Noisy {
    pub x: Vec<f32>,
    pub target: Vec<f32>,
    pub times: Vec<f64>,
}

/// Noise added to scaled samples; each has a time and a stream of its own.
pub(super) fn noisy(
    process: &Process,
    prediction: Prediction,
    z: &[f32],
    times: &[usize],
    stream: impl Fn(usize) -> Stream + Sync,
) -> Noisy {
    let d = z.len() / times.len().max(1);
    let mut both = vec![0.0f32; 2 * z.len()];
    parallel::each_row(&mut both, (2 * d).max(1), |row, both| {
        let (x, target) = both.split_at_mut(d);
        let mut stream = stream(row);
        let (signal, noise) = process.factors(times[row]);
        let (signal, noise) = (signal as f32, noise as f32);
        for ((x, target), z) in x.iter_mut().zip(target).zip(&z[row * d..][..d]) {
            let e = stream.normal() as f32;
            *x = signal * z + noise * e;
            *target = match prediction {
                Prediction::Noise => e,
                Prediction::Velocity => signal * e - noise * z,
            };
        }
    });
    let (mut x, mut target) = (Vec::with_capacity(z.len()), Vec::with_capacity(z.len()));
    for both in both.chunks_exact((2 * d).max(1)) {
        x.extend_from_slice(&both[..d]);
        target.extend_from_slice(&both[d..]);
    }
    let last = process.n_steps() as f64;
    Noisy { x, target, times: times.iter().map(|t| *t as f64 / last).collect() }
}

impl DenoisingTask<'_> {
    /// The time of each held-out sample: spread evenly over all steps, the same ones after each epoch.
    fn held_times(&self, units: std::ops::Range<usize>) -> Vec<usize> {
        let n = self.process.n_steps();
        // Multiples of the golden ratio are spread evenly, however many there are.
        let share = |unit: usize| (unit as f64 * 0.618_033_988_749_895).fract();
        units.map(|unit| 1 + (share(unit) * n as f64) as usize % n).collect()
    }

    /// The root of the mean squared error on held-out samples; `said` gets noisy samples, their times and classes.
    fn error(&self, held: &Part<'_>, said: impl Fn(&Noisy, &[u32]) -> Option<Tensor<2>>) -> f64 {
        let d = self.scaler.len();
        let (mut sum, mut total) = (0.0, 0.0);
        for first in (0..held.len()).step_by(ROWS) {
            let units = first..(first + ROWS).min(held.len());
            let z = self.scaler.apply(held.features, &held.rows[units.clone()]);
            let stream = |row: usize| Stream::new(0, "nn.diffusion.held", (first + row) as u64);
            let times = self.held_times(units.clone());
            let found = noisy(self.process, self.prediction, &z, &times, stream);
            let classes = held.classes.get(units.clone()).unwrap_or_default();
            let weights = &held.weights[units.clone()];
            let shape = [units.len(), d];
            let y = said(&found, classes).unwrap_or_else(|| Tensor::zeros(shape, &self.device));
            sum += 2.0 * f64::from(numbers(squared_error(y, found.target, weights))[0]);
            total += weights.iter().map(|weight| f64::from(*weight)).sum::<f64>();
        }
        (sum / (total * d as f64)).sqrt()
    }

    /// The error of a network that says 0 of everything.
    pub(super) fn error_of_nothing(&self, held: &Part<'_>) -> f64 {
        self.error(held, |_, _| None)
    }
}

impl Task for DenoisingTask<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn n_units(&self) -> usize {
        self.training.len()
    }

    fn loss(&self, weights: &Weights, units: &[u32], pass: &Pass) -> Tensor<1> {
        let (n, d) = (units.len(), self.scaler.len());
        let (rows, row_weights, mut classes) = self.training.of(units);
        let z = self.scaler.apply(self.training.features, &rows);
        let seed = pass.seed();
        let mut stream = Stream::new(seed, "nn.diffusion.times", 0);
        // One time of each n-th part of the steps: the mean over a batch varies less than with times drawn apart.
        let steps = self.process.n_steps();
        let times: Vec<usize> = (0..n)
            .map(|at| {
                let share = (at as f64 + stream.uniform()) / n as f64;
                1 + ((share * steps as f64) as usize).min(steps - 1)
            })
            .collect();
        if let Some(unknown) = self.network.unknown() {
            classes.iter_mut().for_each(|class| {
                if stream.chance(self.class_dropout) {
                    *class = unknown;
                }
            });
        }
        let stream = |row: usize| Stream::new(seed, "nn.diffusion.noise", row as u64);
        let found = noisy(self.process, self.prediction, &z, &times, stream);
        let x = tensor(found.x, [n, d], &self.device);
        let y = self.network.forward(weights, x, &found.times, &classes, pass);
        squared_error(y, found.target, &row_weights) * (2.0 / (n * d) as f64)
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        let held = self.held?;
        let d = self.scaler.len();
        Some(self.error(held, |found, classes| {
            let x = tensor(found.x.clone(), [found.times.len(), d], &self.device);
            let pass = Pass::predicting();
            Some(self.network.forward(weights, x, &found.times, classes, &pass))
        }))
    }

    fn samples(&self, weights: &Weights) -> Option<Vec<f32>> {
        Some((self.sampler)(weights))
    }

    fn model(&self) -> &'static str {
        "diffusion"
    }
}
