//! The fit of a network that predicts from features.

use super::adversary::Perturber;
use super::model::rows_at_once;
use super::targets::{Held, Targets, Units, doubles};
use super::{Adversary, Data, Features, Network, NetworkModel, Scaler, Training};
use crate::device::{DeviceKind, tensor};
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
use gradus_core::report::{Report, StopReason};
use gradus_data::{Dense, Samples, Target};
use gradus_file::model::checksum;
use std::borrow::Cow;
use std::time::Instant;

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
        data: &Data<'_>,
        n_outputs: usize,
    ) -> Result<<Self::Network as Network>::Architecture>;

    /// How features are scaled, learned from these rows.
    fn scaler(&self, data: &Data<'_>, rows: &[u32]) -> Scaler;

    /// The options of training on so many samples.
    fn training(&self, n: usize) -> Training;

    /// Share of the samples that is held out to choose when to stop, where no held-out data is given; 0 for none.
    fn validation_fraction(&self) -> f64;

    /// Where the weights are trained.
    fn device(&self) -> DeviceKind;

    /// Whether all classes count the same.
    fn balanced(&self) -> bool;

    /// Whether the network learns anew from all samples, where some were held out to choose the number of epochs.
    fn refit(&self) -> bool {
        false
    }

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
    data: &Data<'_>,
    validation: Option<&Data<'_>>,
    job: &Job<'_, D>,
    fingerprint: impl FnOnce() -> u64,
) -> Result<(NetworkModel<P::Network>, Report)> {
    let started = Instant::now();
    let model = P::NAME;
    let Data { samples, features, inputs } = *data;
    if samples.is_empty() {
        return Err(Error::data(format!("{model}: no samples to learn from")));
    }
    if features.n_cols() == 0 {
        return Err(Error::data(format!("{model}: the samples have no features")));
    }
    if P::TRAITS.can(Capability::PredictClasses) {
        samples.classes()?;
    } else {
        samples.values()?;
    }
    features.check_finite()?;
    if let Some(validation) = validation {
        if validation.samples.is_empty() {
            return Err(Error::data("the held-out data has no samples"));
        }
        inputs.check_width(validation.features.n_cols())?;
        validation.features.check_finite()?;
    }
    let outputs = match samples.target() {
        Target::Values(_) => Outputs::Values(samples.target_names().to_vec()),
        Target::Classes { labels, .. } => {
            Outputs::Classes { name: samples.target_names()[0].clone(), labels: labels.clone() }
        }
    };
    // What samples are held out, and the order of the others, depend on their content alone.
    let order = canonical_order(data);
    let targets = Targets::new(model, samples, params.balanced())?;
    let share = params.validation_fraction();
    let n_held_out = if validation.is_some() { 0 } else { hold_out(samples.len(), share) };
    let (held_out, rows) = order.split_at(n_held_out);
    let held = match validation {
        Some(held) => {
            let rows = (0..held.samples.len() as u32).collect();
            Some(Held::new(Cow::Borrowed(held.samples), (held.features, rows), &outputs)?)
        }
        None if held_out.is_empty() => None,
        None => {
            let mut rows = held_out.to_vec();
            rows.sort_unstable();
            let held = targets_of(samples, &rows)?;
            Some(Held::new(Cow::Owned(held), (features, rows), &outputs)?)
        }
    };

    let device = params.device().open()?;
    let architecture = params.architecture(data, targets.n_outputs())?;
    let mut layout = Layout::new();
    let network = P::Network::new(&architecture, &mut layout)?;
    let scaler = params.scaler(data, rows);
    let training = params.training(rows.len());
    let adversary = params.adversary();
    let of_an_epoch = rows.len().div_ceil(training.options.batch_size.max(1));
    // An iteration of a range test is one step.
    let of_an_epoch = if training.options.range.is_some() { 1 } else { of_an_epoch };
    let steps = training.epochs * of_an_epoch;
    let perturber = adversary
        .map(|options| Perturber::new(options, (data, rows), &scaler, steps))
        .transpose()?;
    // The epoch that stands perturbations best is kept, so held-out samples are perturbed, too.
    let held_targets = match (&held, &perturber) {
        (Some(held), Some(_)) => Some(Targets::held_out(held)),
        _ => None,
    };
    let is_perturbed = perturber.is_some();
    let task = SamplesTask::<P::Network> {
        model,
        layout: &layout,
        network: &network,
        scaler: &scaler,
        scaled: scaled(features, &scaler, rows, is_perturbed),
        features,
        rows,
        targets: &targets,
        units: targets.units(),
        held: held.as_ref(),
        perturber: perturber.as_ref(),
        held_targets: held_targets.as_ref(),
        device: device.clone(),
    };
    let warm = job.warm_model::<NetworkModel<P::Network>>().filter(|warm| warm.layout == layout);
    let warm = warm.map(|warm| warm.weights.clone());
    let trainer = Trainer {
        task: &task,
        options: training.options.clone(),
        device: device.clone(),
        warm: warm.clone(),
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
    let options = options.chosen(trainer.options.reported(training.chosen));
    let (mut state, mut report) = iterate::run(&trainer, &options, job)?;
    let is_whole = n_held_out == 0 || report.stop_reason == StopReason::Interrupted;
    let mut again = None;
    // Against perturbations, the epoch matters more than a tenth of the samples: what stands them best is kept.
    let refit = params.refit() && adversary.is_none();
    if refit && !is_whole && trainer.options.range.is_none() {
        // The share of the planned epochs after which the held-out score was best.
        let best = &report.trace[report.best];
        let (start, share) = (best.restart as u64, best.iteration as f64 / training.epochs as f64);
        let scaler = params.scaler(data, &order);
        let whole = params.training(order.len());
        let epochs = ((share * whole.epochs as f64).round() as usize).max(1);
        let scaled = scaled(features, &scaler, &order, is_perturbed);
        let task = SamplesTask { scaler: &scaler, scaled, rows: &order, held: None, ..task };
        let steps = epochs * order.len().div_ceil(whole.options.batch_size);
        let mut options_of_all = whole.options.shortened(steps);
        options_of_all.seed = options_of_all.seed.wrapping_add(start);
        let trainer = Trainer {
            task: &task,
            options: options_of_all,
            device: device.clone(),
            warm: warm.filter(|_| start == 0),
        };
        let options = LoopOptions { max_iter: epochs, restarts: 1, patience: 0, ..options };
        // The checkpoint is that of the fit before, from which this one follows.
        let job = Job {
            validation: None,
            observer: job.observer,
            stop: job.stop.clone(),
            ..Job::<D>::default()
        };
        // What is stopped before its end leaves the network of the fit before.
        match iterate::run(&trainer, &options, &job) {
            Ok((found, of_all)) if of_all.stop_reason != StopReason::Interrupted => {
                state = found;
                again = Some((scaler, epochs));
            }
            Err(error) if !job.stop.requested() => return Err(error),
            _ => report.stop_reason = StopReason::Interrupted,
        }
        report.seconds = started.elapsed().as_secs_f64();
    }
    if let Some(adversary) = adversary {
        report.notes.push(format!(
            "learned against perturbations of radius {} in {}{}",
            adversary.radius,
            adversary.norm.name(),
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
            let (few, all) = (held.samples.len(), samples.len());
            report.notes.push(match &again {
                Some((_, epochs)) => format!(
                    "{few} of {all} samples were held out to choose the number of epochs; then the network learned anew from all of \
                     them for {epochs} epochs, and the held-out score is that of the one before"
                ),
                None => format!(
                    "{few} of {all} samples were held out to choose the epoch that is kept; validation_fraction = 0 learns from all"
                ),
            });
        }
    }
    let scaler = again.map_or(scaler, |(scaler, _)| scaler);
    let weights = state.weights().to_device(&Device::flex());
    let units = targets.units();
    let inputs = inputs.clone();
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

/// The targets and weights of some samples, without their features.
fn targets_of(samples: &Samples, rows: &[u32]) -> Result<Samples> {
    let nothing = Dense::new(rows.len(), 0, Vec::new())?;
    let found = Samples::new(nothing, samples.target().select_rows(rows))?;
    match samples.weights() {
        Some(weights) => {
            found.with_weights(rows.iter().map(|&row| weights[row as usize]).collect())
        }
        None => Ok(found),
    }
}

/// The number of samples to hold out of so many.
pub fn hold_out(n: usize, share: f64) -> usize {
    if share <= 0.0 || n < FEW {
        return 0;
    }
    ((n as f64 * share).round() as usize).max(AT_LEAST.min(n / 5)).min(n - 1)
}

/// The numbers of the samples in an order that depends on their content alone, so that a fit does not depend on the order
/// in which they are given.
fn canonical_order(data: &Data<'_>) -> Vec<u32> {
    let Data { samples, features, .. } = *data;
    let d = features.n_cols();
    order_of(features, samples.weights(), |row, add| match samples.target() {
        Target::Values(y) => y.row(row).iter().enumerate().for_each(|(at, y)| add(d + at, *y)),
        Target::Classes { codes, .. } => add(d, f64::from(codes[row]) + 1.0),
    })
}

/// The numbers of samples in an order that depends on their features, their weights, and what `more` adds alone.
pub fn order_of(
    features: Features<'_>,
    weights: Option<&[f64]>,
    more: impl Fn(usize, &mut dyn FnMut(usize, f64)) + Sync,
) -> Vec<u32> {
    let (n, d) = (features.n_rows(), features.n_cols());
    let keys = parallel::map_below(n, 256, |row| {
        let mut bytes = Vec::new();
        let mut add = |at: usize, x: f64| {
            if x != 0.0 {
                bytes.extend_from_slice(&(at as u64).to_le_bytes());
                bytes.extend_from_slice(&x.to_le_bytes());
            }
        };
        features.each(row, &mut add);
        more(row, &mut add);
        if let Some(weights) = weights {
            add(d + 1, weights[row]);
        }
        checksum(&bytes)
    });
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&row| keys[row as usize]);
    // The hash is no random number: columns of a few values would come in groups.
    Stream::new(0, "nn.order", 0).shuffle(&mut order);
    order
}

/// The most scaled features that are kept from one epoch to the next: 64 MB.
const KEPT: usize = 1 << 24;

/// The scaled features of all rows to learn from, where they are few: scaling each batch anew was a tenth of a fit of a table.
/// Images are changed at random, and batches that are perturbed need features without a bound.
fn scaled(
    features: Features<'_>,
    scaler: &Scaler,
    rows: &[u32],
    is_perturbed: bool,
) -> Option<Vec<f32>> {
    let few = rows.len().saturating_mul(scaler.len()) <= KEPT;
    (few && !is_perturbed && features.matrix().is_some()).then(|| scaler.apply(features, rows))
}

/// The task of a network that predicts from features.
struct SamplesTask<'a, N> {
    model: &'static str,
    layout: &'a Layout,
    network: &'a N,
    scaler: &'a Scaler,
    /// The scaled features of `rows`, if they are kept.
    scaled: Option<Vec<f32>>,
    features: Features<'a>,
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
        let d = self.scaler.len();
        let x = match &self.scaled {
            Some(scaled) => {
                let mut x = Vec::with_capacity(rows.len() * d);
                units
                    .iter()
                    .for_each(|&unit| x.extend_from_slice(&scaled[unit as usize * d..][..d]));
                x
            }
            None => self.scaler.apply(self.features, &rows),
        };
        let x = self.network.augment(tensor(x, [rows.len(), d], &self.device), pass);
        self.targets.loss(self.network.forward(weights, x, pass), &rows)
    }

    fn validate(&self, weights: &Weights) -> Option<f64> {
        let held = self.held?;
        let mut outputs = Vec::new();
        let at_once = rows_at_once(self.scaler.len());
        for (at, rows) in held.rows.chunks(at_once).enumerate() {
            if let (Some(perturber), Some(targets)) = (self.perturber, self.held_targets) {
                let z = self.scaler.unbounded(held.features, rows);
                let parts = (self.network, weights, self.scaler);
                let places: Vec<u32> =
                    (0..rows.len()).map(|row| (at * at_once + row) as u32).collect();
                outputs.extend(doubles(perturber.outputs(parts, z, (targets, &places))));
                continue;
            }
            let x = tensor(
                self.scaler.apply(held.features, rows),
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
