//! Two models judged on the same samples.

use super::EvaluateArgs;
use super::samples::{between, read, short};
use crate::output::{Context, Failure, Outcome, Table, grouped};
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::{Samples, Target};
use gradus_metrics::bounds::{Comparison, Interval, Separation, compare as judge};
use gradus_metrics::classification::LEAST_PROBABILITY;
use serde_json::{Value, json};
use std::path::Path;

/// A loss at every sample, smaller is better.
struct Losses {
    name: &'static str,
    values: Vec<f64>,
    range: Option<(f64, f64)>,
}

/// Compares a model with that in a file; prints, and gives what is to be told in JSON.
pub(super) fn compare(
    args: &EvaluateArgs,
    (fitted, samples): (&AnyFitted, &Samples),
    path: &Path,
    target: &[String],
    context: Context,
) -> Outcome<Value> {
    let other = crate::registry().load(path)?;
    let (ours, theirs) = (fitted.predictor()?, other.predictor()?);
    if ours.outputs().labels().is_some() != theirs.outputs().labels().is_some()
        || ours.outputs().names().len() != theirs.outputs().names().len()
    {
        return Err(Failure::Usage(format!(
            "--against {}: predicts {}, and {} predicts {}",
            path.display(),
            what(theirs),
            args.model.display(),
            what(ours)
        )));
    }
    let again = read(args, theirs, target, context)?;
    let (a, b) = (losses(ours, samples)?, losses(theirs, &again)?);
    let names = [args.model.display().to_string(), path.display().to_string()];
    let mut told = Vec::new();
    for a in &a {
        // What one of the two cannot tell is not compared.
        let Some(b) = b.iter().find(|b| b.name == a.name) else { continue };
        let found = judge(&[&a.values, &b.values], samples.weights(), a.range, 0.95, 0)?;
        if !context.json {
            show(a.name, &names, &found, context)?;
        }
        told.push(json!({
            "loss": a.name, "models": names, "means": found.means, "intervals": found.intervals,
            "best": names[found.order[0]], "lead": found.lead,
        }));
    }
    Ok(Value::Array(told))
}

fn what(model: &dyn Predict) -> String {
    match model.outputs().labels() {
        Some(labels) => format!("{} classes", labels.len()),
        None => format!("numbers ({})", model.outputs().names().join(", ")),
    }
}

fn losses(model: &dyn Predict, samples: &Samples) -> Outcome<Vec<Losses>> {
    let features = samples.features();
    let (codes, labels) = match samples.target() {
        Target::Values(truth) => {
            let predicted = model.scores(features)?;
            let n = truth.n_cols().max(1) as f64;
            let loss = |(y, p): (&[f64], &[f64])| {
                y.iter().zip(p).map(|(y, p)| (y - p) * (y - p)).sum::<f64>() / n
            };
            let values = truth.rows().zip(predicted.rows()).map(loss).collect();
            return Ok(vec![Losses { name: "squared error", values, range: None }]);
        }
        Target::Classes { codes, labels } => (codes, labels),
    };
    let known = model.outputs().labels();
    let places: Vec<Option<u32>> = labels.iter().map(|label| known?.find(label)).collect();
    let truth: Vec<Option<u32>> = codes.iter().map(|code| places[*code as usize]).collect();
    let wrong = truth
        .iter()
        .zip(model.classes(features)?)
        .map(|(truth, predicted)| f64::from(u8::from(*truth != Some(predicted))))
        .collect();
    let mut found = vec![Losses { name: "errors", values: wrong, range: Some((0.0, 1.0)) }];
    if let Some(probabilities) = model.probabilities(features)? {
        let loss = |(truth, row): (&Option<u32>, &[f64])| {
            let p = truth.and_then(|class| row.get(class as usize).copied()).unwrap_or(0.0);
            -p.max(LEAST_PROBABILITY).ln()
        };
        let values = truth.iter().zip(probabilities.rows()).map(loss).collect();
        found.push(Losses { name: "log loss", values, range: None });
    }
    Ok(found)
}

/// The square root for people, of what is a square.
fn shown(name: &str, x: f64) -> f64 {
    if name == "squared error" { x.max(0.0).sqrt() } else { x }
}

fn show(name: &str, models: &[String; 2], found: &Comparison, context: Context) -> Outcome {
    let title = match name {
        "squared error" => "RMSE",
        "errors" => "share of errors",
        other => other,
    };
    let mut table = Table::new(&["", &format!(">{title}"), "both within, 95 %"]);
    for &at in &found.order {
        let Interval { low, high, .. } = found.intervals[at];
        let interval =
            Interval { low: shown(name, low), high: shown(name, high), ..found.intervals[at] };
        let mean = short(shown(name, found.means[at]));
        table.row([models[at].clone(), mean, between(&interval)]);
    }
    context.say("")?;
    context.say(table)?;
    let Some(lead) = &found.lead else { return Ok(()) };
    context.say(separation(name, lead))
}

fn separation(name: &str, lead: &Separation) -> String {
    let what = match name {
        "squared error" => "mean squared errors differ",
        "errors" => "shares of errors differ",
        _ => "log losses differ",
    };
    let many = |n: u64| grouped(usize::try_from(n).unwrap_or(usize::MAX));
    let verdict = match lead.needed {
        _ if lead.sure => "told apart by these points".to_owned(),
        Some(needed) => format!("it would take about {} to tell them apart", many(needed)),
        None => "the two are equal".to_owned(),
    };
    let guaranteed = lead.guaranteed.map_or(String::new(), |n| {
        format!(" ({} are enough whatever they are like, by Hoeffding)", many(n))
    });
    format!(
        "the {what} by {} ± {} on the same {} points: {verdict}{guaranteed}",
        small(lead.difference),
        small(lead.standard_error),
        grouped(lead.points)
    )
}

/// Five digits after the point; of less than that three digits and a power of ten.
fn small(x: f64) -> String {
    if x == 0.0 || x.abs() >= 1e-4 { format!("{x:.5}") } else { format!("{x:.2e}") }
}
