//! Two models evaluated on the same samples.

use super::EvaluateRequest;
use super::samples::read;
use crate::App;
use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::Samples;
use gradus_metrics::bounds::{Interval, Separation, compare as separate};
use gradus_select::samples::{SampleLosses, sample_losses};
use serde::Serialize;
use std::path::Path;

/// A loss at every sample, smaller is better.
struct Losses {
    name: &'static str,
    values: Vec<f64>,
    range: Option<(f64, f64)>,
}

/// Two models beside each other by one loss.
#[derive(Clone, Debug, Serialize)]
pub struct LossComparison {
    /// The loss.
    pub loss: &'static str,
    /// The two models: the one that is evaluated, and the file of the other.
    pub models: [String; 2],
    /// The mean losses of the two models.
    pub means: Vec<f64>,
    /// The intervals of the mean losses, which hold together with 95 % confidence.
    pub intervals: Vec<Interval>,
    /// The better one.
    pub best: String,
    /// How far the two are apart.
    pub lead: Option<Separation>,
}

/// Compares a model with that in a file.
pub(super) fn compare(
    app: &App,
    request: &EvaluateRequest,
    (fitted, samples): (&AnyFitted, &Samples),
    path: &Path,
    target: &[String],
    remarks: &mut Remarks<'_>,
) -> Result<Vec<LossComparison>> {
    let other = app.registry.load(path)?;
    let (ours, theirs) = (fitted.predictor()?, other.predictor()?);
    if ours.outputs().labels().is_some() != theirs.outputs().labels().is_some()
        || ours.outputs().names().len() != theirs.outputs().names().len()
    {
        return Err(Error::data(format!(
            "option `against` = {}: predicts {}, and this model predicts {}",
            path.display(),
            what(theirs),
            what(ours)
        )));
    }
    let again = read(request, theirs, target, remarks)?;
    let (a, b) = (losses(ours, samples)?, losses(theirs, &again)?);
    let name = request.name.clone().unwrap_or_else(|| fitted.kind.to_owned());
    let models = [name, path.display().to_string()];
    let mut all = Vec::new();
    for a in &a {
        // What one of the two cannot tell is not compared.
        let Some(b) = b.iter().find(|b| b.name == a.name) else { continue };
        let found = separate(&[&a.values, &b.values], samples.weights(), a.range, 0.95, 0)?;
        all.push(LossComparison {
            loss: a.name,
            best: models[found.order[0]].clone(),
            models: models.clone(),
            means: found.means,
            intervals: found.intervals,
            lead: found.lead,
        });
    }
    Ok(all)
}

fn what(model: &dyn Predict) -> String {
    match model.outputs().labels() {
        Some(labels) => format!("{} classes", labels.len()),
        None => format!("numbers ({})", model.outputs().names().join(", ")),
    }
}

fn losses(model: &dyn Predict, samples: &Samples) -> Result<Vec<Losses>> {
    let loss = |name, values, range| Losses { name, values, range };
    Ok(match sample_losses(model, samples)? {
        SampleLosses::Squared(values) => vec![loss("squared error", values, None)],
        SampleLosses::Classes { wrong, log } => {
            let log = log.map(|values| loss("log loss", values, None));
            [loss("errors", wrong, Some((0.0, 1.0)))].into_iter().chain(log).collect()
        }
    })
}
