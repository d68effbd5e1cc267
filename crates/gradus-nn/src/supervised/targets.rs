//! The targets of a network: numbers brought to mean 0 and variance 1, or classes; losses and held-out scores.

use super::Features;
use crate::device::numbers;
use crate::ops::{cross_entropy, squared_error};
use burn::tensor::Tensor;
use gradus_base::{Error, Result};
use gradus_core::predict::Outputs;
use gradus_core::report::Baseline;
use gradus_data::{Samples, Target};
use gradus_metrics::classification::log_losses;
use std::borrow::Cow;

/// Mean and standard deviation of each target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Units {
    pub mean: Vec<f64>,
    pub deviation: Vec<f64>,
}

/// What a network is to predict, for each sample.
#[derive(Debug)]
pub struct Targets {
    kind: Kind,
    /// The weight of each sample; their mean is 1.
    weights: Vec<f32>,
}

#[derive(Debug)]
enum Kind {
    /// Numbers in units of [`Units`], row by row.
    Values {
        values: Vec<f32>,
        units: Units,
    },
    Classes {
        codes: Vec<u32>,
        n_classes: usize,
    },
}

impl Targets {
    /// The targets of samples; `balanced` gives all classes the same weight.
    ///
    /// # Errors
    /// If there is no target, all weights are 0, or there is one class only.
    pub fn new(model: &str, samples: &Samples, balanced: bool) -> Result<Self> {
        let n = samples.len();
        let mut weights: Vec<f64> = samples.weights().map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
        let kind = match samples.target() {
            Target::Values(y) => {
                let units = units(samples)?;
                let k = y.n_cols();
                let scaled = y.values().iter().enumerate();
                let values = scaled
                    .map(|(at, y)| ((y - units.mean[at % k]) / units.deviation[at % k]) as f32)
                    .collect();
                Kind::Values { values, units }
            }
            Target::Classes { codes, labels } => {
                let mut sizes = vec![0.0; labels.len()];
                codes
                    .iter()
                    .zip(&weights)
                    .for_each(|(&code, weight)| sizes[code as usize] += weight);
                let present = sizes.iter().filter(|size| **size > 0.0).count();
                if present < 2 {
                    let name = codes.first().map(|&code| labels.get(code as usize).to_string());
                    return Err(Error::data(format!(
                        "{model}: all samples are of class `{}`; there must be two classes at least",
                        name.unwrap_or_default()
                    )));
                }
                if balanced {
                    let each = |(&code, weight): (&u32, &f64)| weight / sizes[code as usize];
                    weights = codes.iter().zip(&weights).map(each).collect();
                }
                Kind::Classes { codes: codes.clone(), n_classes: labels.len() }
            }
        };
        let mean = weights.iter().sum::<f64>() / n as f64;
        if mean <= 0.0 {
            return Err(Error::data(format!("{model}: all weights are 0")));
        }
        Ok(Self { kind, weights: weights.iter().map(|weight| (weight / mean) as f32).collect() })
    }

    /// The classes of held-out samples as the network knows them, all of the same weight. A class that it does not know weighs
    /// nothing.
    pub fn held_out(held: &Held<'_>) -> Self {
        let n = held.samples.len();
        let codes = held.samples.classes().map(|(codes, _)| codes).unwrap_or_default();
        let place = |row: usize| {
            codes.get(row).and_then(|&code| held.places.get(code as usize).copied().flatten())
        };
        let found: Vec<Option<u32>> = (0..n).map(place).collect();
        let n_classes = held.places.iter().flatten().max().map_or(0, |most| *most as usize + 1);
        Self {
            weights: found.iter().map(|class| f32::from(u8::from(class.is_some()))).collect(),
            kind: Kind::Classes {
                codes: found.iter().map(|class| class.unwrap_or(0)).collect(),
                n_classes,
            },
        }
    }

    /// The number of outputs that a network needs.
    pub fn n_outputs(&self) -> usize {
        match &self.kind {
            Kind::Values { units, .. } => units.mean.len(),
            Kind::Classes { n_classes, .. } => *n_classes,
        }
    }

    /// Mean and deviation of targets that are numbers; empty of classes.
    pub fn units(&self) -> Units {
        match &self.kind {
            Kind::Values { units, .. } => units.clone(),
            Kind::Classes { .. } => Units::default(),
        }
    }

    /// The mean loss of some samples: half the squared error in units of the deviation, or the cross-entropy.
    pub fn loss(&self, outputs: Tensor<2>, rows: &[u32]) -> Tensor<1> {
        let weights: Vec<f32> = rows.iter().map(|&row| self.weights[row as usize]).collect();
        let n = rows.len();
        let sum = match &self.kind {
            Kind::Classes { codes, .. } => {
                let codes: Vec<u32> = rows.iter().map(|&row| codes[row as usize]).collect();
                cross_entropy(outputs, &codes, &weights)
            }
            Kind::Values { values, units } => {
                let k = units.mean.len();
                let truth = rows.iter().flat_map(|&row| &values[row as usize * k..][..k]);
                squared_error(outputs, truth.copied().collect(), &weights)
            }
        };
        sum * (1.0 / n as f64)
    }
}

/// Mean and deviation of each target by weight. A constant one has the deviation 1.
fn units(samples: &Samples) -> Result<Units> {
    let y = samples.values()?;
    let k = y.n_cols();
    let weight = |row: usize| samples.weights().map_or(1.0, |weights| weights[row]);
    let total: f64 = (0..y.n_rows()).map(weight).sum();
    let mut mean = vec![0.0; k];
    for (row, y) in y.rows().enumerate() {
        mean.iter_mut().zip(y).for_each(|(mean, y)| *mean += weight(row) / total * y);
    }
    let mut variance = vec![0.0; k];
    for (row, y) in y.rows().enumerate() {
        let each = variance.iter_mut().zip(y).zip(&mean);
        each.for_each(|((sum, y), mean)| *sum += weight(row) / total * (y - mean) * (y - mean));
    }
    let deviation = variance.iter().zip(&mean).map(|(variance, mean): (&f64, &f64)| {
        let deviation = variance.sqrt();
        if deviation > 1e-12 * mean.abs() { deviation } else { 1.0 }
    });
    Ok(Units { deviation: deviation.collect(), mean })
}

/// Held-out samples, with the score of a network on them.
pub struct Held<'a> {
    pub samples: Cow<'a, Samples>,
    /// Their features, and which rows of these they are.
    pub features: Features<'a>,
    pub rows: Vec<u32>,
    /// The class of the network that each class of these samples is, if it knows it.
    places: Vec<Option<u32>>,
}

impl<'a> Held<'a> {
    pub fn new(
        samples: Cow<'a, Samples>,
        (features, rows): (Features<'a>, Vec<u32>),
        outputs: &Outputs,
    ) -> Result<Self> {
        let places = match outputs.labels() {
            None => {
                let (got, expected) = (samples.values()?.n_cols(), outputs.names().len());
                if got != expected {
                    let (expected, got) = (expected.to_string(), got.to_string());
                    return Err(Error::Shape { what: "held-out targets".into(), expected, got });
                }
                Vec::new()
            }
            Some(known) => samples.classes()?.1.iter().map(|label| known.find(label)).collect(),
        };
        Ok(Self { samples, features, rows, places })
    }

    /// What [`score`](Self::score) measures.
    pub fn metric(&self) -> &'static str {
        if self.places.is_empty() { "rmse" } else { "log loss" }
    }

    /// Root mean square error of numbers, log loss of classes.
    pub fn score(&self, outputs: &[f64], units: &Units) -> Option<f64> {
        let weight = |row: usize| self.samples.weights().map_or(1.0, |weights| weights[row]);
        let total: f64 = (0..self.samples.len()).map(weight).sum();
        if self.places.is_empty() {
            let y = self.samples.values().ok()?;
            let k = y.n_cols();
            let squares = y.values().iter().zip(outputs).enumerate().map(|(at, (y, z))| {
                let off = y - (units.mean[at % k] + units.deviation[at % k] * z);
                weight(at / k) * off * off
            });
            return Some((squares.sum::<f64>() / (total * k as f64)).sqrt());
        }
        let (codes, _) = self.samples.classes().ok()?;
        let truth: Vec<Option<u32>> =
            codes.iter().map(|&code| self.places[code as usize]).collect();
        let k = outputs.len() / codes.len().max(1);
        let mut probabilities = outputs.to_vec();
        probabilities.chunks_exact_mut(k.max(1)).for_each(softmax);
        let losses = log_losses(&truth, &probabilities, k);
        Some(losses.iter().enumerate().map(|(row, loss)| weight(row) * loss).sum::<f64>() / total)
    }

    /// The score of what needs no features: the mean of training, or the shares of the classes.
    pub fn baseline(&self, training: &Samples, targets: &Targets) -> Option<Baseline> {
        let n = self.samples.len();
        match &targets.kind {
            Kind::Values { units, .. } => {
                let zeros = vec![0.0; n * units.mean.len()];
                self.score(&zeros, units).map(|score| Baseline { name: "mean".into(), score })
            }
            Kind::Classes { codes, n_classes } => {
                let mut sizes = vec![0.0f64; *n_classes];
                for (row, &code) in codes.iter().enumerate() {
                    sizes[code as usize] += training.weights().map_or(1.0, |weights| weights[row]);
                }
                let total: f64 = sizes.iter().sum();
                let logs: Vec<f64> =
                    sizes.iter().map(|size| (size / total).max(f64::EPSILON).ln()).collect();
                let score = self.score(&logs.repeat(n), &Units::default())?;
                Some(Baseline { name: "shares of the classes".into(), score })
            }
        }
    }
}

/// Probabilities in proportion to `exp(s)`, in place.
pub fn softmax(scores: &mut [f64]) {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for s in scores.iter_mut() {
        *s = (*s - most).exp();
        sum += *s;
    }
    scores.iter_mut().for_each(|s| *s /= sum);
}

/// The outputs of a network in double precision.
pub fn doubles(outputs: Tensor<2>) -> Vec<f64> {
    numbers(outputs).into_iter().map(f64::from).collect()
}
