//! How well a model of features predicts, with intervals that say how sure that is.

use super::{EvaluateArgs, against};
use crate::output::{Context, Failure, Outcome, Table, grouped};
use gradus::select::judge::{Named, judge_classes, judge_values};
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::{Id, Ids, Samples};
use gradus_metrics::bounds::Interval;
use serde_json::{Map, Value, json};

pub(super) fn run(args: &EvaluateArgs, fitted: &AnyFitted, context: Context) -> Outcome {
    let model = fitted.predictor()?;
    let target = target(args, model)?;
    let samples = read(args, model, target, context)?;
    let known = fitted.report.training.as_ref().and_then(|training| samples.share_in(training));
    let known = super::warn_of_training_data(known, &args.data, context);
    let judged = if model.outputs().labels().is_some() {
        by_class(fitted, model, &samples, context)?
    } else {
        numbers(fitted, model, &samples, context)?
    };
    let compared = match &args.against {
        Some(path) => Some(against::compare(args, (fitted, &samples), path, target, context)?),
        None => None,
    };
    if let Some(mut told) = judged {
        told["against"] = compared.unwrap_or_default();
        told["trained_on"] = known;
        return context.json(&told);
    }
    Ok(())
}

/// The columns that hold the truth.
fn target<'a>(args: &'a EvaluateArgs, model: &'a dyn Predict) -> Outcome<&'a [String]> {
    let names = model.outputs().names();
    let target = if args.target.is_empty() { names } else { args.target.as_slice() };
    if target.len() != names.len() {
        return Err(Failure::Usage(format!(
            "--target {}: the model predicts {}",
            target.join(","),
            names.join(",")
        )));
    }
    Ok(target)
}

/// Samples as the model takes them.
pub(super) fn read(
    args: &EvaluateArgs,
    model: &dyn Predict,
    target: &[String],
    context: Context,
) -> Outcome<Samples> {
    let classes = model.outputs().labels().is_some();
    let inputs = (model.inputs(), target);
    let samples = context
        .reading(|remarks| args.input.table().samples_for(&args.data, inputs, classes, remarks))?;
    if samples.is_empty() {
        return Err(gradus::Error::format(&args.data, "has no rows to judge by").into());
    }
    Ok(samples)
}

/// Prints, or gives what is to be told in JSON.
fn numbers(
    fitted: &AnyFitted,
    model: &dyn Predict,
    samples: &Samples,
    context: Context,
) -> Outcome<Option<Value>> {
    let targets = judge_values(model, samples)?;
    if context.json {
        let told: Vec<Value> = targets
            .iter()
            .map(|judged| {
                let [rmse, mae, ..] = judged.scores.as_slice() else { return Value::Null };
                json!({
                    "target": judged.target, "errors": judged.errors,
                    "rmse_interval": rmse.interval, "mae_interval": mae.interval,
                    "scores": scores(&judged.scores),
                })
            })
            .collect();
        let told = json!({"model": fitted.kind, "count": samples.len(), "targets": told});
        return Ok(Some(told));
    }
    let mut table = Table::new(&["", "", ">score", "95 %"]);
    for judged in &targets {
        for (at, score) in judged.scores.iter().enumerate() {
            let target = if at == 0 { judged.target.clone() } else { String::new() };
            table.row([
                target,
                score.name.to_owned(),
                short(score.value),
                score.interval.as_ref().map(between).unwrap_or_default(),
            ]);
        }
    }
    context.say(table)?;
    context.say(format_args!("on {} samples; intervals by bootstrap", grouped(samples.len())))?;
    Ok(None)
}

fn scores(scores: &[Named]) -> Value {
    let told = |score: &Named| {
        (score.name.to_owned(), json!({"value": score.value, "interval": score.interval}))
    };
    Value::Object(scores.iter().map(told).collect::<Map<String, Value>>())
}

/// Prints, or gives what is to be told in JSON.
fn by_class(
    fitted: &AnyFitted,
    model: &dyn Predict,
    samples: &Samples,
    context: Context,
) -> Outcome<Option<Value>> {
    let judged = judge_classes(model, samples)?;
    let per_class = judged.confusion.classes();
    if context.json {
        let classes: Vec<Value> = per_class
            .iter()
            .zip(&judged.names)
            .map(|(scores, name)| json!({"class": class(model, name), "scores": scores}))
            .collect();
        let n = judged.names.len() as u32;
        let rows: Vec<&[f64]> = (0..n).map(|class| judged.confusion.row(class)).collect();
        return Ok(Some(json!({
            "model": fitted.kind, "count": samples.len(), "unknown": judged.unknown,
            "scores": scores(&judged.scores), "accuracy_hoeffding": judged.sure,
            "classes": classes, "confusion": rows,
        })));
    }
    let mut table = Table::new(&["", ">score", "95 %"]);
    for score in &judged.scores {
        let interval = score.interval.as_ref().map(between).unwrap_or_default();
        table.row([score.name.to_owned(), format!("{:.4}", score.value), interval]);
    }
    context.say(table)?;
    let mut table = Table::new(&["class", ">precision", ">recall", ">F1", ">weight"]);
    for (scores, name) in per_class.iter().zip(&judged.names) {
        table.row([
            name.clone(),
            format!("{:.4}", scores.precision),
            format!("{:.4}", scores.recall),
            format!("{:.4}", scores.f1),
            format!("{}", scores.support),
        ]);
    }
    context.say(table)?;
    context.say(format_args!(
        "on {} samples; intervals by bootstrap; by Hoeffding's inequality the accuracy is in {} with \
         95 % confidence whatever the distribution",
        grouped(samples.len()),
        between(&judged.sure)
    ))?;
    if judged.unknown > 0 {
        context.say(format_args!(
            "{} samples are of classes that training did not have",
            grouped(judged.unknown)
        ))?;
    }
    Ok(None)
}

/// A class as the data called it, a number or text.
fn class<'a>(model: &dyn Predict, name: &'a str) -> Id<'a> {
    match model.outputs().labels() {
        Some(Ids::Int(_)) => Id::parse(name),
        _ => Id::Text(name),
    }
}

pub(super) fn between(interval: &Interval) -> String {
    format!("{}–{}", short(interval.low), short(interval.high))
}

/// Four digits after the point, or fewer for large numbers.
pub(super) fn short(x: f64) -> String {
    if x.abs() >= 1000.0 { format!("{x:.1}") } else { format!("{x:.4}") }
}
