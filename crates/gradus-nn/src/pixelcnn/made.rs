//! The same for tables: a masked dense network whose outputs for a feature depend on the features before it alone, and the mixture of
//! logistic distributions that they describe.

use crate::layers::Activation;
use crate::ops::linear;
use crate::weights::{Init, Layout, Role, WeightId, Weights};
use burn::tensor::{Device, Tensor, activation};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use serde::{Deserialize, Serialize};

/// Everything that determines the layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MadeArchitecture {
    /// The number of features.
    pub inputs: usize,
    /// The units of each hidden layer.
    pub hidden: Vec<usize>,
    /// The logistic distributions in the mixture of each feature.
    pub components: usize,
}

/// A masked dense network (MADE).
#[derive(Clone, Debug)]
pub struct MadeNetwork {
    inputs: usize,
    pub(super) components: usize,
    layers: Vec<Masked>,
}

#[derive(Clone, Debug)]
struct Masked {
    weight: WeightId,
    bias: WeightId,
    /// The degree of each input and of each output: an output sees the inputs of its degree and below; the outputs of the last layer
    /// those below.
    degrees: (Vec<usize>, Vec<usize>),
    last: bool,
}

impl Masked {
    fn mask(&self, device: &Device) -> Tensor<2> {
        let (inputs, outputs) = &self.degrees;
        let seen =
            |output: usize, input: usize| if self.last { input < output } else { input <= output };
        let values = outputs.iter().flat_map(|output| {
            inputs.iter().map(move |input| f32::from(u8::from(seen(*output, *input))))
        });
        crate::device::tensor(values.collect(), [outputs.len(), inputs.len()], device)
    }
}

/// The most weights of a layer: a larger one is an error in a file.
const MOST: usize = 1 << 28;
/// The least logarithm of a scale, in standard deviations of a feature: a column of few values must not get an infinite density.
const LEAST: f32 = -7.0;
/// The logarithm of a scale where the network says 0. Components that are wide at first stay so for long, with outliers in samples.
const USUAL: f32 = -1.5;

/// The logarithm of a scale.
fn log_scale(output: f32) -> f64 {
    f64::from((output + USUAL).max(LEAST))
}

impl MadeNetwork {
    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes are not possible.
    pub fn new(architecture: &MadeArchitecture, layout: &mut Layout) -> Result<Self> {
        let MadeArchitecture { inputs, ref hidden, components } = *architecture;
        let outputs = inputs.saturating_mul(components).saturating_mul(3);
        let sizes = [&[inputs][..], hidden, &[outputs]].concat();
        let fits = |pair: &[usize]| (1..=MOST).contains(&pair[0].saturating_mul(pair[1]));
        if !sizes.windows(2).all(fits) || hidden.len() > 64 {
            let text = format!("a masked network of {sizes:?} units is not possible");
            return Err(Error::data(text));
        }
        // Degrees of hidden units go from 1 to that of the last feature but one, in turn.
        let most = inputs.saturating_sub(1).max(1);
        let of_hidden = |units: usize| (0..units).map(|unit| 1 + unit % most).collect::<Vec<_>>();
        let mut degrees: Vec<Vec<usize>> = vec![(1..=inputs).collect()];
        degrees.extend(hidden.iter().map(|units| of_hidden(*units)));
        degrees.push((0..outputs).map(|at| 1 + at / (3 * components)).collect());
        let n = degrees.len() - 1;
        let layers = degrees.windows(2).enumerate().map(|(at, pair)| {
            layout.within(format!("layers.{at}"), |layout| {
                let last = at + 1 == n;
                let shape = [pair[1].len(), pair[0].len()];
                let init = if last { Init::fan_in(shape[1]) } else { Init::he(shape[1]) };
                let weight = layout.add("weight", &shape, init, Role::Decayed);
                // The components of a mixture have to differ at first.
                let init = if last { Init::Uniform(1.0) } else { Init::Constant(0.0) };
                let bias = layout.add("bias", &[shape[0]], init, Role::Plain);
                Masked { weight, bias, degrees: (pair[0].clone(), pair[1].clone()), last }
            })
        });
        let layers = layers.collect();
        Ok(Self { inputs, components, layers })
    }

    /// The parameters of the mixture of each feature: scores, centres and logarithms of scales.
    ///
    /// # Shapes
    /// `n × features` to `n × features × 3 components`.
    pub fn forward(&self, weights: &Weights, x: Tensor<2>) -> Tensor<3> {
        let mut x = x;
        let n = x.dims()[0];
        for layer in &self.layers {
            let sizes = [layer.degrees.1.len(), layer.degrees.0.len()];
            let weight = weights.get(layer.weight, sizes);
            let weight = weight.clone() * layer.mask(&weight.device());
            let kind = if layer.last { Activation::Identity } else { Activation::Gelu };
            x = linear(x, weight, Some(weights.flat(layer.bias)), kind);
        }
        x.reshape([n, self.inputs, 3 * self.components])
    }

    /// The sum of the negative log densities of standardised features, those of `counted` alone.
    ///
    /// # Shapes
    /// Features of `n × features`, and a weight of 0 or 1 for each feature.
    pub fn loss(&self, weights: &Weights, x: Tensor<2>, counted: &[f32]) -> Tensor<1> {
        let (n, k) = (x.dims()[0], self.components);
        let found = self.forward(weights, x.clone());
        let device = found.device();
        let logs = activation::log_softmax(found.clone().narrow(2, 0, k), 2);
        let centres = found.clone().narrow(2, k, k);
        let scales = (found.narrow(2, 2 * k, k) + USUAL).clamp_min(LEAST);
        let z = (centres * -1.0 + x.reshape([n, self.inputs, 1])) * (scales.clone() * -1.0).exp();
        // The density of a logistic distribution is even: −|z| − 2 log(1 + exp(−|z|)) does not overflow.
        let z = z.abs();
        let each = logs - scales - z.clone() - ((z * -1.0).exp() + 1.0).log() * 2.0;
        let most = each.clone().max_dim(2).detach();
        let all = (each - most.clone()).exp().sum_dim(2).log() + most;
        let counted = crate::device::tensor(counted.to_vec(), [1, self.inputs, 1], &device);
        -(all * counted).sum()
    }
}

/// The mixture of logistic distributions of a feature.
pub(super) struct Mixture<'a> {
    scores: &'a [f32],
    centres: &'a [f32],
    scales: &'a [f32],
}

impl<'a> Mixture<'a> {
    /// The mixture that so many outputs of the network describe.
    pub fn new(outputs: &'a [f32]) -> Self {
        let k = outputs.len() / 3;
        Self { scores: &outputs[..k], centres: &outputs[k..2 * k], scales: &outputs[2 * k..] }
    }

    /// The logarithm of the density.
    pub fn log_density(&self, x: f64) -> f64 {
        let most = self.scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let of = |score: &f32| f64::from(score - most);
        let total = self.scores.iter().map(|score| of(score).exp()).sum::<f64>().ln();
        let each: Vec<f64> = (0..self.scores.len())
            .map(|at| {
                let scale = log_scale(self.scales[at]);
                let z = ((x - f64::from(self.centres[at])) * (-scale).exp()).abs();
                of(&self.scores[at]) - total - scale - z - 2.0 * (-z).exp().ln_1p()
            })
            .collect();
        let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most + each.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
    }

    /// A draw; `temperature` divides the scores and multiplies the scales.
    pub fn draw(&self, stream: &mut Stream, temperature: f64) -> f64 {
        let at = super::sample::choose(self.scores, stream, temperature);
        let u = stream.uniform().clamp(1e-12, 1.0 - 1e-12);
        let scale = log_scale(self.scales[at]).exp() * temperature;
        f64::from(self.centres[at]) + scale * (u / (1.0 - u)).ln()
    }
}
