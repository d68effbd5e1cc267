//! `gradus models [NAME]`

use crate::output::{Context, Outcome, Table};
use clap::{Arg, ArgMatches, Command};
use gradus::page::shown;
use gradus_core::estimator::Estimator;
use gradus_core::params::{ParamKind, ParamSpec};
use serde_json::{Value, json};

pub fn command() -> Command {
    Command::new("models")
        .about("List the models there are, or explain one")
        .arg(Arg::new("name").value_name("NAME").help("The model to explain"))
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    match matches.get_one::<String>("name") {
        Some(name) => explain(crate::registry().find(name)?, context),
        None => list(context),
    }
}

fn list(context: Context) -> Outcome {
    if context.json {
        let models = crate::registry().models().iter().map(|model| describe(*model));
        return context.json(&Value::Array(models.collect()));
    }
    let mut table = Table::new(&["model", "learns from", "what it is"]);
    for model in crate::registry().models() {
        table.row([model.name().to_owned(), model.data().name().to_owned(), model.docs().0]);
    }
    context.say(table)
}

fn describe(model: &dyn Estimator) -> Value {
    let (summary, details) = model.docs();
    let params: Vec<Value> = model
        .specs()
        .iter()
        .map(|spec| {
            let choices = match &spec.kind {
                ParamKind::Choice(choices) => {
                    json!(choices.iter().map(|(word, _)| word).collect::<Vec<_>>())
                }
                _ => Value::Null,
            };
            json!({"name": spec.name, "doc": spec.doc, "default": spec.default, "rule": spec.rule(), "choices": choices})
        })
        .collect();
    json!({"name": model.name(), "data": model.data().name(), "capabilities": capabilities(model), "summary": summary, "details": details, "params": params})
}

fn capabilities(model: &dyn Estimator) -> Vec<&'static str> {
    model.traits().capabilities.iter().map(|capability| capability.name()).collect()
}

fn explain(model: &dyn Estimator, context: Context) -> Outcome {
    if context.json {
        return context.json(&describe(model));
    }
    let (summary, details) = model.docs();
    context.say(format_args!("{} — {summary}\n\n{details}\n\nParameters\n", model.name()))?;
    for spec in model.specs() {
        context.say(format_args!("  {} ({})", spec.name, default(&spec)))?;
        context.say(format_args!("      {}", spec.doc.replace('\n', " ")))?;
        if let ParamKind::Choice(choices) = &spec.kind {
            for (word, doc) in choices {
                context.say(format_args!("        {word}: {}", doc.replace('\n', " ")))?;
            }
        } else {
            context.say(format_args!("      {}", spec.rule()))?;
        }
    }
    context.say(format_args!("\nTrain it: gradus fit {} DATA -o m.gradus", model.name()))
}

fn default(spec: &ParamSpec) -> String {
    match &spec.default {
        Value::Null => "not given".into(),
        value => format!("default {}", shown(value)),
    }
}
