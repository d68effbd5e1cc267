//! The fitted model of a network that predicts from features.

use super::targets::{Units, doubles, softmax};
use super::{Network, Scaler};
use crate::device::{numbers, tensor};
use crate::images::check_shape;
use crate::layers::Pass;
use crate::weights::{Layout, Weights};
use burn::tensor::Device;
use gradus_base::{Error, Result};
use gradus_core::dataset::{Dataset, ImageSet};
use gradus_core::estimator::Model;
use gradus_core::predict::{Outputs, Predict, check_features};
use gradus_core::transform::{Gradient, ScoresAndGradient, Weigh};
use gradus_data::{Dense, Inputs, Matrix, Samples};
use gradus_file::{Reader, Writer};
use gradus_text::Documents;
use std::borrow::Cow;

/// Rows that are predicted at once, of so many features: the outputs of the layers of a network for images are tens of times as large
/// as the images.
pub(super) fn rows_at_once(d: usize) -> usize {
    ((1 << 18) / d.max(1)).clamp(32, 1024)
}

/// A fitted network that predicts numbers or classes from features.
#[derive(Clone, Debug)]
pub struct NetworkModel<N: Network> {
    pub(crate) inputs: Inputs,
    pub(super) outputs: Outputs,
    pub(crate) scaler: Scaler,
    pub(super) units: Units,
    pub(crate) architecture: N::Architecture,
    pub(super) layout: Layout,
    pub(crate) network: N,
    pub(crate) weights: Weights,
}

impl<N: Network> NetworkModel<N> {
    /// What determines its layers.
    pub fn architecture(&self) -> &N::Architecture {
        &self.architecture
    }

    /// The network.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// The names and shapes of the weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// How features are brought to the units of the network.
    pub fn scaler(&self) -> &Scaler {
        &self.scaler
    }

    /// The outputs of the network for each row: numbers in units of the targets, or logits of the classes.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    pub fn logits(&self, features: &Matrix) -> Result<Dense<f64>> {
        check_features(&self.inputs, features)?;
        let (n, k) = (features.n_rows(), N::shape(&self.architecture).1);
        let mut values = Vec::with_capacity(n * k);
        let rows: Vec<u32> = (0..n as u32).collect();
        for rows in rows.chunks(rows_at_once(self.scaler.len())) {
            let x = tensor(
                self.scaler.apply(features, rows),
                [rows.len(), self.scaler.len()],
                &Device::flex(),
            );
            values.extend(doubles(self.network.forward(&self.weights, x, &Pass::predicting())));
        }
        let units = &self.units;
        for (at, value) in values.iter_mut().enumerate().filter(|_| !units.mean.is_empty()) {
            *value = units.mean[at % k] + units.deviation[at % k] * *value;
        }
        Dense::new(n, k, values)
    }
}

impl<N: Network> NetworkModel<N> {
    /// What the last layer of the network computes its outputs from, for each row; `None` of a network without hidden layers.
    ///
    /// # Shapes
    /// `n × features` to `n × hidden features`.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    pub fn hidden_features(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        check_features(&self.inputs, features)?;
        let (d, rows) = (self.scaler.len(), (0..features.n_rows() as u32).collect::<Vec<u32>>());
        let (mut values, mut width) = (Vec::new(), 0);
        // A row of zeros where there are none tells how many features there are.
        let blocks =
            if rows.is_empty() { vec![&rows[..]] } else { rows.chunks(rows_at_once(d)).collect() };
        for rows in blocks {
            let mut z = self.scaler.apply(features, rows);
            z.resize(rows.len().max(1) * d, 0.0);
            let x = tensor(z, [rows.len().max(1), d], &Device::flex());
            let Some(found) = self.network.hidden(&self.weights, x, &Pass::predicting()) else {
                return Ok(None);
            };
            width = found.dims()[1];
            values.extend_from_slice(&doubles(found)[..rows.len() * width]);
        }
        Dense::new(rows.len(), width, values).map(Some)
    }
}

impl<N: Network> Predict for NetworkModel<N> {
    fn hidden(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        self.hidden_features(features)
    }

    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    fn samples<'a>(&self, data: &'a dyn Dataset) -> Result<Cow<'a, Samples>> {
        if let Some(documents) = data.downcast_ref::<Documents>() {
            return super::samples_of("the model", &self.inputs, documents).map(Cow::Owned);
        }
        match data.downcast_ref::<ImageSet>() {
            Some(images) => {
                check_shape(&self.inputs, images)?;
                Ok(Cow::Owned(images.images().to_samples(Some(true))?))
            }
            None => Ok(Cow::Borrowed(data.of_kind::<Samples>()?)),
        }
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        let logits = self.logits(features)?;
        match &self.outputs {
            Outputs::Classes { labels, .. } if labels.len() == 2 => {
                let margins = logits.rows().map(|row| row[1] - row[0]).collect();
                Dense::new(logits.n_rows(), 1, margins)
            }
            _ => Ok(logits),
        }
    }

    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        if self.outputs.labels().is_none() {
            return Ok(None);
        }
        let mut logits = self.logits(features)?;
        let k = logits.n_cols();
        logits.values_mut().chunks_exact_mut(k.max(1)).for_each(softmax);
        Ok(Some(logits))
    }
}

impl<N: Network> Gradient for NetworkModel<N> {
    fn n_outputs(&self) -> usize {
        match &self.outputs {
            Outputs::Classes { labels, .. } if labels.len() == 2 => 1,
            Outputs::Classes { labels, .. } => labels.len(),
            Outputs::Values(names) => names.len(),
        }
    }

    fn input_gradient(&self, features: &Matrix, output: usize) -> Result<Dense<f64>> {
        check_features(&self.inputs, features)?;
        if output >= self.n_outputs() {
            let rule = format!("must be below {}, the number of outputs", self.n_outputs());
            return Err(Error::parameter("output", output, rule));
        }
        let (n, d) = features.shape();
        let mut values = Vec::with_capacity(n * d);
        let rows: Vec<u32> = (0..n as u32).collect();
        for rows in rows.chunks(rows_at_once(d)) {
            let x = tensor(self.scaler.apply(features, rows), [rows.len(), d], &Device::flex());
            let x = x.autodiff().require_grad();
            let outputs = self.network.forward(&self.weights, x.clone(), &Pass::predicting());
            let column = |at: usize| outputs.clone().narrow(1, at, 1).sum();
            let binary =
                matches!(&self.outputs, Outputs::Classes { labels, .. } if labels.len() == 2);
            let sum = if binary { column(1) - column(0) } else { column(output) };
            let found = x.grad(&sum.backward()).map(numbers);
            let found = found.unwrap_or_else(|| vec![0.0; rows.len() * d]);
            let slopes = self.scaler.derivative(features, rows);
            let unit = self.units.deviation.get(output).copied().unwrap_or(1.0);
            values.extend(found.iter().zip(&slopes).map(|(g, slope)| unit * f64::from(g * slope)));
        }
        Dense::new(n, d, values)
    }

    fn scores_and_gradient(
        &self,
        features: &Matrix,
        weigh: &mut Weigh<'_>,
    ) -> Result<Option<ScoresAndGradient>> {
        check_features(&self.inputs, features)?;
        let (n, d) = features.shape();
        let (k, n_outputs) = (N::shape(&self.architecture).1, self.n_outputs());
        let binary = n_outputs == 1 && k == 2;
        let unit = |at: usize| self.units.deviation.get(at).copied().unwrap_or(1.0);
        let mean = |at: usize| self.units.mean.get(at).copied().unwrap_or(0.0);
        let (mut scores, mut values) =
            (Vec::with_capacity(n * n_outputs), Vec::with_capacity(n * d));
        let all: Vec<u32> = (0..n as u32).collect();
        let at_once = rows_at_once(d);
        for (part, rows) in all.chunks(at_once).enumerate() {
            let x = tensor(self.scaler.apply(features, rows), [rows.len(), d], &Device::flex());
            let x = x.autodiff().require_grad();
            let outputs = self.network.forward(&self.weights, x.clone(), &Pass::predicting());
            let mut found = doubles(outputs.clone().inner());
            if binary {
                found = found.chunks_exact(2).map(|pair| pair[1] - pair[0]).collect();
            } else {
                let each = found.iter_mut().enumerate();
                each.for_each(|(at, z)| *z = mean(at % k) + unit(at % k) * *z);
            }
            let found = Dense::new(rows.len(), n_outputs, found)?;
            let by = weigh(part * at_once, &found);
            let weights: Vec<f32> = if binary {
                by.values().iter().flat_map(|by| [-*by as f32, *by as f32]).collect()
            } else {
                by.values().iter().enumerate().map(|(at, by)| (by * unit(at % k)) as f32).collect()
            };
            let sum = (outputs * tensor(weights, [rows.len(), k], &Device::flex())).sum();
            let back = x.grad(&sum.backward()).map(numbers);
            let back = back.unwrap_or_else(|| vec![0.0; rows.len() * d]);
            let slopes = self.scaler.derivative(features, rows);
            values.extend(back.iter().zip(&slopes).map(|(g, slope)| f64::from(g * slope)));
            scores.extend_from_slice(found.values());
        }
        let scores = Dense::new(n, n_outputs, scores)?;
        Ok(Some(ScoresAndGradient { scores, gradient: Dense::new(n, d, values)? }))
    }
}

impl<N: Network> Model for NetworkModel<N> {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        self.outputs.write(file);
        file.set("architecture", &self.architecture);
        self.scaler.write(file);
        if !self.units.mean.is_empty() {
            let k = self.units.mean.len();
            file.tensor("target.mean", &[k], &self.units.mean);
            file.tensor("target.deviation", &[k], &self.units.deviation);
        }
        self.weights.write(&self.layout, "", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let (inputs, outputs) = (Inputs::read(file)?, Outputs::read(file)?);
        let architecture: N::Architecture = file.get("architecture")?;
        let mut layout = Layout::new();
        let network = N::new(&architecture, &mut layout).map_err(|error| file.broken(error))?;
        let (d, k) = N::shape(&architecture);
        let expected = outputs.labels().map_or(outputs.names().len(), |labels| labels.len());
        if d != inputs.n_features() || k != expected {
            return Err(file.broken("its layers do not fit its inputs and outputs"));
        }
        let scaler = Scaler::read(file, d)?;
        let units = match outputs.labels() {
            Some(_) => Units::default(),
            None => Units {
                mean: file.finite("target.mean", &[k])?,
                deviation: file.finite("target.deviation", &[k])?,
            },
        };
        let weights = Weights::read(&layout, "", file, &Device::flex())?;
        Ok(Self { inputs, outputs, scaler, units, architecture, layout, network, weights })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts = N::summary(&self.architecture);
        facts.push(("weights", gradus_base::text::grouped(self.layout.n_weights())));
        match &self.outputs {
            Outputs::Values(names) => facts.push(("targets", names.len().to_string())),
            Outputs::Classes { labels, .. } => facts.push(("classes", labels.len().to_string())),
        }
        facts
    }

    fn predictor(&self) -> Option<&dyn Predict> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        N::HAS_GRADIENT.then_some(self as &dyn Gradient)
    }
}
