//! The evaluation of models of features on the command line, with intervals.

use super::against;
use crate::output::{Context, Outcome, Table, grouped};
use gradus_app::evaluate::{ClassesAnswer, ValuesAnswer};
use gradus_metrics::bounds::Interval;
use serde_json::Value;

pub(super) fn show_values(found: &ValuesAnswer, context: Context) -> Outcome {
    let mut table = Table::new(&["", "", ">score", "95 %"]);
    for target in &found.targets {
        for (at, score) in target.scores.iter().enumerate() {
            let name = if at == 0 { target.target.clone() } else { String::new() };
            table.row([
                name,
                score.name.to_owned(),
                short(score.value),
                score.interval.as_ref().map(between).unwrap_or_default(),
            ]);
        }
    }
    context.say(table)?;
    context.say(format_args!("on {} samples; intervals by bootstrap", grouped(found.count)))?;
    against::show(found.against.as_deref(), context)
}

pub(super) fn show_classes(found: &ClassesAnswer, context: Context) -> Outcome {
    let mut table = Table::new(&["", ">score", "95 %"]);
    for score in &found.scores {
        let interval = score.interval.as_ref().map(between).unwrap_or_default();
        table.row([score.name.to_owned(), format!("{:.4}", score.value), interval]);
    }
    context.say(table)?;
    let mut table = Table::new(&["class", ">precision", ">recall", ">F1", ">weight"]);
    for class in &found.classes {
        let name = match &class.class {
            Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        table.row([
            name,
            format!("{:.4}", class.scores.precision),
            format!("{:.4}", class.scores.recall),
            format!("{:.4}", class.scores.f1),
            format!("{}", class.scores.support),
        ]);
    }
    context.say(table)?;
    context.say(format_args!(
        "on {} samples; intervals by bootstrap; by Hoeffding's inequality the accuracy is in {} with \
         95 % confidence whatever the distribution",
        grouped(found.count),
        between(&found.accuracy_hoeffding)
    ))?;
    if found.unknown > 0 {
        context.say(format_args!(
            "{} samples are of classes that training did not have",
            grouped(found.unknown)
        ))?;
    }
    against::show(found.against.as_deref(), context)
}

pub(super) fn between(interval: &Interval) -> String {
    // One unit says nothing of how others differ from it.
    if interval.low.is_infinite() && interval.high.is_infinite() {
        return "not known of one".into();
    }
    format!("{}–{}", short(interval.low), short(interval.high))
}

/// Four digits after the point, or fewer for large numbers.
pub(super) fn short(x: f64) -> String {
    if x.abs() >= 1000.0 { format!("{x:.1}") } else { format!("{x:.4}") }
}
