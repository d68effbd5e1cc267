//! Adversarial training: the loss of samples is that of the worst perturbation within a radius, found by projected gradient steps
//! (Madry et al., 2018), or the loss of the samples and the distance of the outputs of perturbed ones (TRADES, Zhang et al., 2019).

use super::targets::Targets;
use super::{Data, Network, Scaler};
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::weights::Weights;
use burn::tensor::{Tensor, activation};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_data::Inputs;
use gradus_optim::AdversarialNorm;

/// Rows whose deviation stands for that of all.
const SAMPLE: usize = 50_000;
/// Deviation of the noise that TRADES starts from, as a share of the radius: at the sample itself its distance has no slope.
const NOISE: f32 = 0.01;
/// Steps against held-out samples, at least. A network that learned against one step may know that step by its looks, and stand no others:
/// by its own attack it would seem robust.
const HELD_STEPS: usize = 10;
/// Steps together go this many radii, so that every point of the ball can be reached.
const REACH: f32 = 2.5;
/// Share of the steps over which the radius grows to its full size. A network that meets the full radius before it knows the classes may
/// learn nothing but their shares: for MNIST at 0.3 in linf that is where plain adversarial training gets stuck.
const RAMP: f64 = 0.2;

/// The options of adversarial training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adversary {
    /// The radius of perturbations: of images in units of pixels, which go from 0 to 1; of tables in standard deviations of the features.
    pub radius: f64,
    /// The norm.
    pub norm: AdversarialNorm,
    /// Gradient steps for each perturbation.
    pub steps: usize,
    /// Weight of the distance between outputs (TRADES); 0 learns from perturbed samples alone.
    pub trades: f64,
}

/// An adversary with what it needs to know of the features.
#[derive(Debug)]
pub struct Perturber {
    options: Adversary,
    /// The change of each feature that counts as 1, after scaling.
    unit: Vec<f32>,
    /// Scaled values of features at their bounds, of images.
    bounds: Option<(Vec<f32>, Vec<f32>)>,
    /// The number of steps over which the radius grows.
    ramp: u64,
}

/// What a perturbation is to make large.
enum Aim<'a> {
    /// The loss of the true classes.
    Loss(&'a Targets, &'a [u32]),
    /// The distance to these logarithms of probabilities.
    Distance(Box<Tensor<2>>),
}

impl Perturber {
    /// What the adversary needs to know of the training rows; `steps` is the number of steps of the training.
    ///
    /// # Errors
    /// If bounds cannot be scaled.
    pub fn new(
        options: Adversary,
        (data, rows): (&Data<'_>, &[u32]),
        scaler: &Scaler,
        steps: usize,
    ) -> Result<Self> {
        let ramp = (RAMP * steps as f64) as u64;
        let d = data.features.n_cols();
        let factor = scaler.factors();
        let is_images = matches!(data.inputs, Inputs::Images(_));
        let Some(matrix) = data.features.matrix().filter(|_| !is_images) else {
            let at = |value: f64| -> Result<Vec<f32>> {
                let row = gradus_data::Matrix::from(gradus_data::Dense::full(1, d, value));
                Ok(scaler.apply(&row, &[0]))
            };
            let bounds = Some((at(0.0)?, at(1.0)?));
            return Ok(Self { options, unit: factor.to_vec(), bounds, ramp });
        };
        let x = matrix.select_rows(&rows[..rows.len().min(SAMPLE)]).to_dense();
        let n = x.n_rows().max(1) as f64;
        let deviation = parallel::map_below(d, 8, |at| {
            let mean = x.column(at).sum::<f64>() / n;
            (x.column(at).map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt()
        });
        let unit = deviation
            .iter()
            .zip(factor)
            .map(|(deviation, factor)| *deviation as f32 * factor)
            .collect();
        Ok(Self { options, unit, bounds: None, ramp })
    }

    /// The radius in a step: it grows to its full size first.
    fn radius(&self, step: u64) -> f32 {
        let share = if step < self.ramp { (step + 1) as f64 / self.ramp as f64 } else { 1.0 };
        (share * self.options.radius) as f32
    }

    /// The mean loss of samples under perturbations; `z` are their features, scaled but not bounded.
    pub fn loss<N: Network>(
        &self,
        (network, weights, scaler): (&N, &Weights, &Scaler),
        z: &Tensor<2>,
        (targets, rows): (&Targets, &[u32]),
        pass: &Pass,
    ) -> Tensor<1> {
        let fixed = weights.untracked();
        let values = numbers(z.clone());
        let shape = z.dims();
        let device = z.device();
        let as_inputs = |values: Vec<f32>| tensor(scaler.bounded_values(values), shape, &device);
        let stream = Stream::new(pass.seed(), "nn.adversary", 0);
        let how = (self.radius(pass.step()), self.options.steps, stream);
        if self.options.trades == 0.0 {
            let aim = Aim::Loss(targets, rows);
            let worst = self.perturbed((network, &fixed, scaler), &values, shape, &aim, how);
            return targets.loss(network.forward(weights, as_inputs(worst), pass), rows);
        }
        let clean = network.forward(&fixed, as_inputs(values.clone()), &Pass::predicting());
        let aim = Aim::Distance(Box::new(activation::log_softmax(clean, 1)));
        let worst = self.perturbed((network, &fixed, scaler), &values, shape, &aim, how);
        let outputs = network.forward(weights, as_inputs(values), pass);
        let moved = network.forward(weights, as_inputs(worst), pass);
        let distance = distance(activation::log_softmax(outputs.clone(), 1), moved);
        targets.loss(outputs, rows) + distance * (self.options.trades / shape[0].max(1) as f64)
    }

    /// The outputs at samples perturbed to raise the loss of their classes.
    pub fn outputs<N: Network>(
        &self,
        (network, weights, scaler): (&N, &Weights, &Scaler),
        z: Vec<f32>,
        (targets, rows): (&Targets, &[u32]),
    ) -> Tensor<2> {
        let shape = [rows.len(), self.unit.len()];
        let fixed = weights.untracked();
        let aim = Aim::Loss(targets, rows);
        let stream = Stream::new(0, "nn.adversary.held", 0);
        let how = (self.radius(u64::MAX), self.options.steps.max(HELD_STEPS), stream);
        let worst = self.perturbed((network, &fixed, scaler), &z, shape, &aim, how);
        let x = tensor(scaler.bounded_values(worst), shape, &fixed.device());
        network.forward(&fixed, x, &Pass::predicting())
    }

    /// Scaled features after the steps of the adversary.
    fn perturbed<N: Network>(
        &self,
        (network, weights, scaler): (&N, &Weights, &Scaler),
        z: &[f32],
        shape: [usize; 2],
        aim: &Aim<'_>,
        (eps, steps, mut stream): (f32, usize, Stream),
    ) -> Vec<f32> {
        let d = shape[1];
        let steps = steps.max(1);
        let size = (REACH * eps / steps as f32).min(1.25 * eps);
        let device = weights.device();
        let mut delta = vec![0.0f32; z.len()];
        let seed = stream.next_u64();
        let trades = matches!(aim, Aim::Distance(_));
        parallel::each_row(&mut delta, d.max(1), |row, delta| {
            let mut stream = Stream::new(seed, "nn.adversary.row", row as u64);
            for x in delta.iter_mut() {
                *x = match (trades, self.options.norm) {
                    (true, _) => NOISE * eps * stream.normal() as f32,
                    (false, AdversarialNorm::Linf) => eps * stream.uniform_in(-1.0, 1.0) as f32,
                    (false, AdversarialNorm::L2) => {
                        eps / (d as f32).sqrt() * stream.normal() as f32
                    }
                };
            }
            self.project(eps, &z[row * d..][..d], delta);
        });
        for _ in 0..steps {
            let moved: Vec<f32> = self.moved(z, &delta);
            let x = tensor(scaler.bounded_values(moved.clone()), shape, &device);
            let x = x.autodiff().require_grad();
            let outputs = network.forward(weights, x.clone(), &Pass::predicting());
            let value = match aim {
                Aim::Loss(targets, rows) => targets.loss(outputs, rows),
                Aim::Distance(logs) => distance(logs.as_ref().clone(), outputs),
            };
            let slopes = x.grad(&value.backward()).map(numbers);
            let Some(mut slopes) = slopes else { break };
            scaler.slopes(&moved, &mut slopes);
            let slopes = &slopes;
            parallel::each_row(&mut delta, d.max(1), |row, delta| {
                let slopes = &slopes[row * d..][..d];
                match self.options.norm {
                    AdversarialNorm::Linf => {
                        for ((x, g), unit) in delta.iter_mut().zip(slopes).zip(&self.unit) {
                            let g = g * unit;
                            *x += if g == 0.0 { 0.0 } else { size * g.signum() };
                        }
                    }
                    AdversarialNorm::L2 => {
                        let squares =
                            slopes.iter().zip(&self.unit).map(|(g, unit)| (g * unit) * (g * unit));
                        let length = squares.sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
                        let each = delta.iter_mut().zip(slopes).zip(&self.unit);
                        each.for_each(|((x, g), unit)| *x += size * g * unit / length);
                    }
                }
                self.project(eps, &z[row * d..][..d], delta);
            });
        }
        self.moved(z, &delta)
    }

    fn moved(&self, z: &[f32], delta: &[f32]) -> Vec<f32> {
        let d = self.unit.len().max(1);
        z.iter()
            .zip(delta)
            .enumerate()
            .map(|(at, (z, delta))| z + delta * self.unit[at % d])
            .collect()
    }

    /// Moves a perturbation into the ball, and into the bounds of the features.
    fn project(&self, eps: f32, z: &[f32], delta: &mut [f32]) {
        match self.options.norm {
            AdversarialNorm::Linf => delta.iter_mut().for_each(|x| *x = x.clamp(-eps, eps)),
            AdversarialNorm::L2 => {
                let length = delta.iter().map(|x| x * x).sum::<f32>().sqrt();
                if length > eps {
                    delta.iter_mut().for_each(|x| *x *= eps / length);
                }
            }
        }
        if let Some((low, high)) = &self.bounds {
            for (at, x) in delta.iter_mut().enumerate() {
                let unit = self.unit[at];
                if unit > 0.0 {
                    // What an augmentation put outside of the bounds stays where it is.
                    let (least, most) =
                        (((low[at] - z[at]) / unit).min(0.0), ((high[at] - z[at]) / unit).max(0.0));
                    *x = x.max(least).min(most);
                }
            }
        }
    }
}

/// The sum over rows of the Kullback–Leibler divergence of the softmax of `outputs` from given probabilities.
fn distance(logs: Tensor<2>, outputs: Tensor<2>) -> Tensor<1> {
    let others = activation::log_softmax(outputs, 1);
    (logs.clone().exp() * (logs - others)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The radius of a training of 50 steps grows over the first ten.
    #[test]
    fn the_radius_grows_and_then_stays() {
        let options = Adversary { radius: 0.3, norm: AdversarialNorm::Linf, steps: 1, trades: 0.0 };
        let perturber = Perturber { options, unit: vec![1.0], bounds: None, ramp: 10 };
        let radii: Vec<f32> = (0..12).map(|step| perturber.radius(step)).collect();
        assert!((radii[0] - 0.03).abs() < 1e-6 && (radii[4] - 0.15).abs() < 1e-6, "{radii:?}");
        assert!(radii.windows(2).all(|pair| pair[0] <= pair[1]));
        // Held-out samples meet the full radius, and so do the passes of whoever counts no steps.
        assert_eq!((radii[9], radii[11], perturber.radius(u64::MAX)), (0.3, 0.3, 0.3));
        let at_once = Perturber { ramp: 0, ..perturber };
        assert_eq!(at_once.radius(0), 0.3);
    }
}
