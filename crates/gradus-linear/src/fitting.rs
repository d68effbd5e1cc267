//! The checks before a fit of a linear model and the scores after it.

use crate::LinearModel;
use crate::design::sum;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Job};
use gradus_core::iterate::LoopOptions;
use gradus_core::params;
use gradus_core::predict::Predict;
use gradus_core::report::Baseline;
use gradus_data::{Samples, Target};
use gradus_metrics::classification::log_losses;
use std::time::Instant;

/// Refuses data that nothing can be learned from.
pub(crate) fn check_samples(model: &str, samples: &Samples) -> Result<()> {
    if samples.is_empty() {
        return Err(Error::data(format!("{model}: no samples to learn from")));
    }
    if samples.n_features() == 0 {
        return Err(Error::data(format!("{model}: the samples have no features")));
    }
    Ok(())
}

/// Refuses a list of penalties that is empty, or beside a penalty that is given.
pub(crate) fn check_lambdas(given: Option<f64>, lambdas: Option<&[f64]>) -> Result<()> {
    match (given, lambdas) {
        (_, Some([])) => {
            Err(Error::parameter("lambdas", "[]", "must have one penalty at least, or be left out"))
        }
        (Some(_), Some(lambdas)) => Err(Error::parameter(
            "lambdas",
            format!("{lambdas:?}"),
            "must be left out where `regularization` is given: there is nothing to choose",
        )),
        _ => Ok(()),
    }
}

/// Refuses held-out data of another shape.
pub(crate) fn check_held_out(samples: &Samples, held_out: Option<&Samples>) -> Result<()> {
    let Some(held_out) = held_out else { return Ok(()) };
    if held_out.is_empty() {
        return Err(Error::data("the held-out data has no samples"));
    }
    samples.inputs().check_width(held_out.n_features())
}

/// The options of the loop; the score of held-out data is `rmse`, or `log loss` and the like.
pub(crate) fn loop_options<P: Fit>(
    params: &P,
    started: Instant,
    max_iter: usize,
    seed: u64,
    metric: &'static str,
) -> LoopOptions<'static> {
    LoopOptions {
        started: Some(started),
        model: P::NAME,
        metric,
        max_iter,
        seed,
        restarts: 1,
        params: params::record(params),
        ..LoopOptions::default()
    }
}

/// The held-out root mean square error of a model of numbers, and that of the mean of training.
pub(crate) fn held_out_rmse(
    model: &LinearModel,
    samples: &Samples,
    job: &Job<'_, Samples>,
) -> Result<Option<(f64, Vec<Baseline>)>> {
    let Some(held_out) = job.validation else { return Ok(None) };
    let (truth, scores) = (held_out.values()?, model.scores(held_out.features())?);
    if truth.n_cols() != scores.n_cols() {
        return Err(Error::Shape {
            what: "held-out targets".into(),
            expected: scores.n_cols().to_string(),
            got: truth.n_cols().to_string(),
        });
    }
    let means = means(samples)?;
    let k = means.len();
    let (mut squares, mut baseline, mut total) = (0.0, 0.0, 0.0);
    for (at, (y, p)) in truth.values().iter().zip(scores.values()).enumerate() {
        let weight = held_out.weights().map_or(1.0, |weights| weights[at / k]);
        squares += weight * (y - p) * (y - p);
        baseline += weight * (y - means[at % k]) * (y - means[at % k]);
        total += weight;
    }
    let baseline = Baseline { name: "mean".into(), score: (baseline / total).sqrt() };
    Ok(Some(((squares / total).sqrt(), vec![baseline])))
}

/// The weighted mean of each target.
pub(crate) fn means(samples: &Samples) -> Result<Vec<f64>> {
    let values = samples.values()?;
    if let (1, None) = (values.n_cols(), samples.weights()) {
        return Ok(vec![sum(values.values()) / values.n_rows() as f64]);
    }
    let mut sums = vec![0.0; values.n_cols()];
    let mut total = 0.0;
    for (row, y) in values.rows().enumerate() {
        let weight = samples.weights().map_or(1.0, |weights| weights[row]);
        sums.iter_mut().zip(y).for_each(|(sum, y)| *sum += weight * y);
        total += weight;
    }
    sums.iter_mut().for_each(|sum| *sum /= total);
    Ok(sums)
}

/// The held-out log loss and accuracy of a model of classes: `None` where a class is unknown to it.
pub(crate) fn held_out_log_loss(
    model: &LinearModel,
    job: &Job<'_, Samples>,
) -> Result<Option<(f64, Vec<Baseline>)>> {
    let Some(held_out) = job.validation else { return Ok(None) };
    let (codes, labels) = held_out.classes()?;
    let Some(known) = model.outputs().labels() else { return Ok(None) };
    let Some(probabilities) = model.probabilities(held_out.features())? else { return Ok(None) };
    let places: Vec<Option<u32>> = labels.iter().map(|label| known.find(label)).collect();
    let truth: Vec<Option<u32>> = codes.iter().map(|&code| places[code as usize]).collect();
    let losses = log_losses(&truth, probabilities.values(), probabilities.n_cols());
    let (mut loss, mut total) = (0.0, 0.0);
    for (row, one) in losses.into_iter().enumerate() {
        let weight = held_out.weights().map_or(1.0, |weights| weights[row]);
        loss += weight * one;
        total += weight;
    }
    Ok(Some((loss / total, Vec::new())))
}

/// The share of each class, by weight.
pub(crate) fn class_weights(samples: &Samples) -> Result<Vec<f64>> {
    let Target::Classes { codes, labels } = samples.target() else {
        return Err(Error::data("the target is a number, and this model predicts classes"));
    };
    let mut sums = vec![0.0; labels.len()];
    for (row, &code) in codes.iter().enumerate() {
        sums[code as usize] += samples.weights().map_or(1.0, |weights| weights[row]);
    }
    Ok(sums)
}
