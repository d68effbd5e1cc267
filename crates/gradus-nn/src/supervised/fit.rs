//! The fit of a network that predicts from features.

use super::adversary::Perturber;
use super::targets::{Held, Targets, Units, doubles};
use super::{AdversarialNorm, Adversary, Network, NetworkModel, Scaler, Training};
use crate::device::tensor;
use crate::layers::Pass;
use crate::train::{Task, Trainer};
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::capability::Capability;
use gradus_core::estimator::{Fit, Job};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params;
use gradus_core::predict::Outputs;
use gradus_core::report::Report;
use gradus_data::{Matrix, Samples, Target};
use gradus_file::model::checksum;
use std::borrow::Cow;
use std::time::Instant;

/// Rows that are scored at once.
const ROWS: usize = 1024;

/// A model that trains a [`Network`] on samples.
pub trait Supervised: Fit {
    /// The network.
    type Network: Network;

    /// The layers for so many inputs and outputs.
    ///
    /// # Errors
    /// If the inputs do not fit the network.
    fn architecture(
        &self,
        samples: &Samples,
        n_outputs: usize,
    ) -> Result<<Self::Network as Network>::Architecture>;

    /// How features are scaled, learned from these rows.
    fn scaler(&self, samples: &Samples, rows: &[u32]) -> Scaler;

    /// The options of training on so many samples.
    fn training(&self, n: usize) -> Training;

    /// Share of the samples that is held out to choose when to stop, where no held-out data is given; 0 for none.
    fn validation_fraction(&self) -> f64;

    /// Whether all classes count the same.
    fn balanced(&self) -> bool;

    /// The perturbations to learn against, if any.
    fn adversary(&self) -> Option<Adversary> {
        None
    }

    /// Epochs without improvement after which the fit ends, and the number of random starts.
    fn patience_and_restarts(&self) -> (usize, usize);
}

/// Fewer samples than these are all learned from.
const FEW: usize = 100;

/// Held-out samples that there should be at least, up to a fifth of all: the best epoch by a few is the best by chance.
const AT_LEAST: usize = 100;

/// Trains a network on samples.
///
/// # Errors
/// If the samples cannot be learned from, or the held-out samples do not fit them.
pub fn fit<P: Supervised, D>(
    params: &P,
    samples: &Samples,
    validation: Option<&Samples>,
    job: &Job<'_, D>,
    fingerprint: impl FnOnce() -> u64,
) -> Result<(NetworkModel<P::Network>, Report)> {
    let started = Instant::now();
    let model = P::NAME;
    if samples.is_empty() {
        return Err(Error::data(format!("{model}: no samples to learn from")));
    }
    if samples.n_features() == 0 {
        return Err(Error::data(format!("{model}: the samples have no features")));
    }
    if P::TRAITS.can(Capability::PredictClasses) {
        samples.classes()?;
    } else {
        samples.values()?;
    }
    samples.features().check_finite()?;
    if let Some(validation) = validation {
        if validation.is_empty() {
            return Err(Error::data("the held-out data has no samples"));
        }
        samples.inputs().check_width(validation.n_features())?;
        validation.features().check_finite()?;
    }
    let outputs = match samples.target() {
        Target::Values(_) => Outputs::Values(samples.target_names().to_vec()),
        Target::Classes { labels, .. } => {
            Outputs::Classes { name: samples.target_names()[0].clone(), labels: labels.clone() }
        }
    };
    // What samples are held out, and the order of the others, depend on their content alone.
    let order = canonical_order(samples);
    let targets = Targets::new(model, samples, params.balanced())?;
    let share = params.validation_fraction();
    let n_held_out = match validation {
        None if share > 0.0 && samples.len() >= FEW => {
            ((samples.len() as f64 * share).round() as usize).max(AT_LEAST.min(samples.len() / 5))
        }
        _ => 0,
    };
    let (held_out, rows) = order.split_at(n_held_out.min(samples.len() - 1));
    let held_out = (!held_out.is_empty()).then(|| {
        let mut rows = held_out.to_vec();
        rows.sort_unstable();
        samples.select_rows(&rows)
    });
    let held = validation.map(Cow::Borrowed).or(held_out.map(Cow::Owned));
    let held = held.as_deref().map(|held| Held::new(held, &outputs)).transpose()?;

    let device = Device::flex();
    let architecture = params.architecture(samples, targets.n_outputs())?;
    let mut layout = Layout::new();
    let network = P::Network::new(&architecture, &mut layout)?;
    let scaler = params.scaler(samples, rows);
    let training = params.training(rows.len());
    let adversary = params.adversary();
    let perturber =
        adversary.map(|options| Perturber::new(options, samples, rows, &scaler)).transpose()?;
    // The epoch that stands perturbations best is kept, so held-out samples are perturbed, too.
    let held_targets = match (&held, &perturber) {
        (Some(held), Some(_)) => Some(Targets::held_out(held)),
        _ => None,
    };
    let task = SamplesTask::<P::Network> {
        model,
        layout: &layout,
        network: &network,
        scaler: &scaler,
        features: samples.features(),
        rows,
        targets: &targets,
        units: targets.units(),
        held: held.as_ref(),
        perturber: perturber.as_ref(),
        held_targets: held_targets.as_ref(),
        device: device.clone(),
    };
    let warm = job.warm_model::<NetworkModel<P::Network>>().filter(|warm| warm.layout == layout);
    let trainer = Trainer {
        task: &task,
        options: training.options.clone(),
        device: device.clone(),
        warm: warm.map(|warm| warm.weights.clone()),
    };
    let (patience, restarts) = params.patience_and_restarts();
    let options = LoopOptions {
        started: Some(started),
        model,
        metric: held.as_ref().map_or("rmse", Held::metric),
        max_iter: training.epochs,
        patience,
        restarts,
        seed: training.options.seed,
        params: params::record(params),
        fingerprint: job.checkpoint.as_ref().map_or(0, |_| fingerprint()),
        ..LoopOptions::default()
    };
    let (state, mut report) = iterate::run(&trainer, &options.chosen(training.chosen), job)?;
    if let Some(adversary) = adversary {
        report.notes.push(format!(
            "learned against perturbations of radius {} in {}{}",
            adversary.radius,
            match adversary.norm {
                AdversarialNorm::Linf => "linf",
                AdversarialNorm::L2 => "l2",
            },
            if held.is_some() {
                "; the held-out log loss is that of perturbed samples"
            } else {
                ""
            }
        ));
    }
    if let Some(held) = &held {
        report.compare_with(held.baseline(samples, &targets).into_iter().collect());
        if validation.is_none() {
            report.notes.push(format!(
                "{} of {} samples were held out to choose the epoch that is kept; validation_fraction = 0 learns from all",
                held.samples.len(),
                samples.len()
            ));
        }
    }
    let weights = state.weights().to_device(&Device::flex());
    let units = targets.units();
    let inputs = samples.inputs().clone();
    let model = NetworkModel {
        inputs,
        outputs,
        scaler,
        units,
        architecture,
        layout: layout.clone(),
        network: network.clone(),
        weights,
    };
    Ok((model, report))
}

/// The numbers of the samples in an order that depends on their content alone, so that a fit does not depend on the order
/// in which they are given.
fn canonical_order(samples: &Samples) -> Vec<u32> {
    let keys = parallel::map_below(samples.len(), 256, |row| {
        let mut bytes = Vec::new();
        let mut add = |at: usize, x: f64| {
            if x != 0.0 {
                bytes.extend_from_slice(&(at as u64).to_le_bytes());
                bytes.extend_from_slice(&x.to_le_bytes());
            }
        };
        match samples.features() {
            Matrix::Dense(dense) => {
                dense.row(row).iter().enumerate().for_each(|(at, x)| add(at, *x))
            }
            Matrix::Sparse(sparse) => {
                let (columns, values) = sparse.row(row);
                columns.iter().zip(values).for_each(|(at, x)| add(*at as usize, *x));
            }
        }
        let d = samples.n_features();
        match samples.target() {
            Target::Values(y) => y.row(row).iter().enumerate().for_each(|(at, y)| add(d + at, *y)),
            Target::Classes { codes, .. } => add(d, f64::from(codes[row]) + 1.0),
        }
        if let Some(weights) = samples.weights() {
            add(d + 1, weights[row]);
        }
        checksum(&bytes)
    });
    let mut order: Vec<u32> = (0..samples.len() as u32).collect();
    order.sort_by_key(|&row| keys[row as usize]);
    // The hash is no random number: columns of a few values would come in groups.
    Stream::new(0, "nn.order", 0).shuffle(&mut order);
    order
}

/// The task of a network that predicts from features.
struct SamplesTask<'a, N> {
    model: &'static str,
    layout: &'a Layout,
    network: &'a N,
    scaler: &'a Scaler,
    features: &'a Matrix,
    /// The rows to learn from.
    rows: &'a [u32],
    targets: &'a Targets,
    units: Units,
    held: Option<&'a Held<'a>>,
    perturber: Option<&'a Perturber>,
    held_targets: Option<&'a Targets>,
    device: Device,
}

impl<N: Network> Task for SamplesTask<'_, N> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn n_units(&self) -> usize {
        self.rows.len()
    }

    fn loss(&self, weights: &Weights, units: &[u32], pass: &Pass) -> Tensor<1> {
        let rows: Vec<u32> = units.iter().map(|&unit| self.rows[unit as usize]).collect();
        if let Some(perturber) = self.perturber.filter(|_| pass.is_training()) {
            let z = self.scaler.unbounded(self.features, &rows);
            let z = tensor(z, [rows.len(), self.scaler.len()], &self.device);
            let z = self.network.augment(z, pass);
            let parts = (self.network, weights, self.scaler);
            return perturber.loss(parts, &z, (self.targets, &rows), pass);
        }
        let x = tensor(
            self.scaler.apply(self.features, &rows),
            [rows.len(), self.scaler.len()],
            &self.device,
        );
        let x = self.network.augment(x, pass);
        self.targets.loss(self.network.forward(weights, x, pass), &rows)
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        let held = self.held?;
        let features = held.samples.features();
        let rows: Vec<u32> = (0..features.n_rows() as u32).collect();
        let mut outputs = Vec::new();
        for rows in rows.chunks(ROWS) {
            if let (Some(perturber), Some(targets)) = (self.perturber, self.held_targets) {
                let z = self.scaler.unbounded(features, rows);
                let parts = (self.network, weights, self.scaler);
                outputs.extend(doubles(perturber.outputs(parts, z, (targets, rows))));
                continue;
            }
            let x = tensor(
                self.scaler.apply(features, rows),
                [rows.len(), self.scaler.len()],
                &self.device,
            );
            outputs.extend(doubles(self.network.forward(weights, x, &Pass::predicting())));
        }
        held.score(&outputs, &self.units)
    }

    fn model(&self) -> &'static str {
        self.model
    }
}
