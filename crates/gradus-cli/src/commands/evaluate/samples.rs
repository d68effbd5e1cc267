//! How well a model of features predicts, with intervals that say how sure that is.

use super::EvaluateArgs;
use crate::output::{Context, Failure, Outcome, Table, grouped};
use gradus::core::estimator::AnyFitted;
use gradus::core::predict::{Outputs, Predict};
use gradus::data::{Ids, Samples};
use gradus::select::bounds::{Bootstrap, Hoeffding, Interval, effective_size};
use gradus::select::metrics::classification::{
    Average, Confusion, brier_many, log_loss_many, macro_auc, roc_auc,
};
use gradus::select::metrics::regression::regression_errors;
use serde_json::{Value, json};

/// Draws of the bootstrap.
const ROUNDS: usize = 1000;

pub(super) fn run(args: &EvaluateArgs, fitted: &AnyFitted, context: Context) -> Outcome {
    let model = fitted.predictor()?;
    let names = model.outputs().names();
    let target = if args.target.is_empty() { names } else { args.target.as_slice() };
    if target.len() != names.len() {
        return Err(Failure::Usage(format!(
            "--target {}: the model predicts {}",
            target.join(","),
            names.join(",")
        )));
    }
    let classes = model.outputs().labels().is_some();
    let inputs = (model.inputs(), target);
    let samples = args.input.table().samples_for(&args.data, inputs, classes, context)?;
    if samples.is_empty() {
        return Err(gradus::Error::format(&args.data, "has no rows to judge by").into());
    }
    match model.outputs() {
        Outputs::Values(_) => numbers(fitted, model, &samples, context),
        Outputs::Classes { labels, .. } => by_class(fitted, model, labels, &samples, context),
    }
}

fn numbers(
    fitted: &AnyFitted,
    model: &dyn Predict,
    samples: &Samples,
    context: Context,
) -> Outcome {
    let (truth, predicted) = (samples.values()?, model.scores(samples.features())?);
    let weights = samples.weights();
    let bootstrap = Bootstrap { rounds: ROUNDS, ..Bootstrap::default() };
    let mut targets = Vec::new();
    for (at, name) in samples.target_names().iter().enumerate() {
        let y: Vec<f64> = truth.column(at).collect();
        let p: Vec<f64> = predicted.column(at).collect();
        let errors = regression_errors(&y, &p, weights)?;
        let squares: Vec<f64> = y.iter().zip(&p).map(|(y, p)| (y - p) * (y - p)).collect();
        let absolute: Vec<f64> = squares.iter().map(|square| square.sqrt()).collect();
        let mse = bootstrap.mean(&squares, weights)?.interval;
        let mae = bootstrap.mean(&absolute, weights)?.interval;
        let rmse = Interval { low: mse.low.max(0.0).sqrt(), high: mse.high.sqrt(), ..mse };
        targets.push((name, errors, rmse, mae));
    }
    if context.json {
        let told: Vec<Value> = targets
            .iter()
            .map(|(name, errors, rmse, mae)| {
                json!({"target": name, "errors": errors, "rmse_interval": rmse, "mae_interval": mae})
            })
            .collect();
        let told = json!({"model": fitted.kind, "count": samples.len(), "targets": told});
        return context.json(&told);
    }
    let mut table = Table::new(&["", ">RMSE", "95 %", ">MAE", "95 %", ">median", ">R²"]);
    for (name, errors, rmse, mae) in &targets {
        table.row([
            (*name).clone(),
            short(errors.rmse),
            between(rmse),
            short(errors.mae),
            between(mae),
            short(errors.median_absolute),
            format!("{:.4}", errors.r2),
        ]);
    }
    context.say(table)?;
    context.say(format_args!(
        "on {} samples; intervals by bootstrap ({ROUNDS} draws)",
        grouped(samples.len())
    ))
}

/// Classes of the data in the numbering of the model; one it does not know comes after all of its.
fn known(samples: &Samples, labels: &Ids) -> Outcome<(Vec<u32>, usize)> {
    let (codes, theirs) = samples.classes()?;
    let places: Vec<Option<u32>> = theirs.iter().map(|label| labels.find(label)).collect();
    let unknown = codes.iter().filter(|code| places[**code as usize].is_none()).count();
    let place = |code: &u32| places[*code as usize].unwrap_or(labels.len() as u32);
    Ok((codes.iter().map(place).collect(), unknown))
}

fn by_class(
    fitted: &AnyFitted,
    model: &dyn Predict,
    labels: &Ids,
    samples: &Samples,
    context: Context,
) -> Outcome {
    let (truth, unknown) = known(samples, labels)?;
    let weights = samples.weights();
    let predicted = model.classes(samples.features())?;
    let n_classes = labels.len() + usize::from(unknown > 0);
    let confusion = Confusion::new(&truth, &predicted, n_classes, weights)?;
    let hits: Vec<f64> =
        truth.iter().zip(&predicted).map(|(t, p)| f64::from(u8::from(t == p))).collect();
    let bootstrap = Bootstrap { rounds: ROUNDS, ..Bootstrap::default() };
    let accuracy = bootstrap.mean(&hits, weights)?;
    let n = weights.map_or(Ok(samples.len() as f64), effective_size)?;
    let sure = Hoeffding::new(0.0, 1.0, 1, 0.95)?.interval(accuracy.estimate, n)?;
    let average = confusion.average(Average::Macro);
    let mut scores: Vec<(&str, f64, Option<Interval>)> = vec![
        ("accuracy", confusion.accuracy(), Some(accuracy.interval)),
        ("balanced accuracy", confusion.balanced_accuracy(), None),
        ("F1 (macro)", average.f1, None),
        ("Matthews", confusion.matthews(), None),
    ];
    // A class the model does not know has no score: measures of scores leave its samples out.
    let kept: Vec<u32> = (0..samples.len() as u32)
        .filter(|row| (truth[*row as usize] as usize) < labels.len())
        .collect();
    let probabilities = model.probabilities(samples.features())?;
    let decisions = model.scores(samples.features())?;
    let pick = |values: &gradus::data::Dense<f64>| -> Vec<f64> {
        kept.iter().flat_map(|row| values.row(*row as usize).to_vec()).collect()
    };
    let kept_truth: Vec<u32> = kept.iter().map(|row| truth[*row as usize]).collect();
    let kept_weights: Option<Vec<f64>> =
        weights.map(|weights| kept.iter().map(|row| weights[*row as usize]).collect());
    let kept_weights = kept_weights.as_deref();
    let auc = if decisions.n_cols() == 1 {
        let truth: Vec<bool> = kept_truth.iter().map(|class| *class == 1).collect();
        roc_auc(&truth, &pick(&decisions), kept_weights)
    } else {
        let scores = pick(probabilities.as_ref().unwrap_or(&decisions));
        macro_auc(&kept_truth, &scores, labels.len(), kept_weights)
    };
    if let Ok(auc) = auc {
        scores.push(("AUC", auc, None));
    }
    if let Some(probabilities) = &probabilities {
        let p = pick(probabilities);
        scores.push((
            "log loss",
            log_loss_many(&kept_truth, &p, labels.len(), kept_weights)?,
            None,
        ));
        scores.push(("Brier", brier_many(&kept_truth, &p, labels.len(), kept_weights)?, None));
    }
    let per_class = confusion.classes();
    let name = |class: usize| {
        if class < labels.len() { labels.get(class).to_string() } else { "(unknown)".to_owned() }
    };
    if context.json {
        let told: serde_json::Map<String, Value> = scores
            .iter()
            .map(|(name, value, interval)| {
                ((*name).to_owned(), json!({"value": value, "interval": interval}))
            })
            .collect();
        let classes: Vec<Value> = per_class
            .iter()
            .enumerate()
            .map(|(class, scores)| json!({"class": name(class), "scores": scores}))
            .collect();
        let rows: Vec<&[f64]> = (0..n_classes as u32).map(|class| confusion.row(class)).collect();
        return context.json(&json!({
            "model": fitted.kind, "count": samples.len(), "unknown": unknown, "scores": told,
            "accuracy_hoeffding": sure, "classes": classes, "confusion": rows,
        }));
    }
    let mut table = Table::new(&["", ">score", "95 %"]);
    for (name, value, interval) in &scores {
        let interval = interval.as_ref().map(between).unwrap_or_default();
        table.row([(*name).to_owned(), format!("{value:.4}"), interval]);
    }
    context.say(table)?;
    let mut table = Table::new(&["class", ">precision", ">recall", ">F1", ">weight"]);
    for (class, scores) in per_class.iter().enumerate() {
        table.row([
            name(class),
            format!("{:.4}", scores.precision),
            format!("{:.4}", scores.recall),
            format!("{:.4}", scores.f1),
            format!("{}", scores.support),
        ]);
    }
    context.say(table)?;
    context.say(format_args!(
        "on {} samples; intervals by bootstrap ({ROUNDS} draws); by Hoeffding's inequality the accuracy is in {} with 95 % confidence whatever the distribution",
        grouped(samples.len()),
        between(&sure)
    ))?;
    if unknown > 0 {
        context.say(format_args!(
            "{} samples are of classes that training did not have",
            grouped(unknown)
        ))?;
    }
    Ok(())
}

fn between(interval: &Interval) -> String {
    format!("{}–{}", short(interval.low), short(interval.high))
}

/// Four digits after the point, or fewer for large numbers.
fn short(x: f64) -> String {
    if x.abs() >= 1000.0 { format!("{x:.1}") } else { format!("{x:.4}") }
}
