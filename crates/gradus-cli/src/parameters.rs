//! Flags made from definitions: the parameters of a model, and the options of a kind of data.

use crate::output::{Failure, Outcome};
use clap::{Arg, ArgAction, ArgMatches, FromArgMatches};
use gradus::page::shown;
use gradus_core::params::{ParamKind, ParamSpec};
use serde_json::{Map, Value};

/// The heading of the flags of a model.
const OF_MODELS: &str = "Model parameters";
/// The heading of the flags that say how a file is read.
const OF_DATA: &str = "Reading the data";

/// `max_iter` → `max-iter`; a switch that is on by default is offered as `no-…`.
pub fn flag_name(spec: &ParamSpec) -> String {
    let name = spec.name.replace('_', "-");
    if is_on_by_default(spec) { format!("no-{name}") } else { name }
}

pub fn is_on_by_default(spec: &ParamSpec) -> bool {
    spec.kind == ParamKind::Bool && spec.default == Value::Bool(true)
}

/// Whether a parameter is a flag without a value. One that is neither true nor false unless it is
/// given takes a value, `true` if there is none.
pub fn is_switch(spec: &ParamSpec) -> bool {
    spec.kind == ParamKind::Bool && !spec.optional
}

/// The flag of a parameter of a model.
pub fn parameter(spec: &ParamSpec) -> Arg {
    let arg = flag(spec).help_heading(OF_MODELS);
    let arg = if spec.name == "n_topics" { arg.visible_alias("topics") } else { arg };
    // Written `--flag` or `--flag=false`, so that a file may follow.
    if spec.kind == ParamKind::Bool && spec.optional {
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg
    }
}

/// The flag of an option that says how a file is read.
pub fn option(spec: &ParamSpec) -> Arg {
    let arg = flag(spec).help_heading(OF_DATA);
    match spec.kind {
        ParamKind::Bool if spec.optional => arg.action(ArgAction::Set).value_name("BOOL"),
        ParamKind::Text if spec.name.ends_with("column") => arg.value_name("COLUMN"),
        ParamKind::Text if spec.name.ends_with("features") => arg.value_name("FILE"),
        ParamKind::Texts if spec.name.ends_with("values") => {
            arg.value_name("WORD,…").allow_hyphen_values(true)
        }
        ParamKind::Texts => arg.value_name("COLUMN,…"),
        _ => arg,
    }
}

fn flag(spec: &ParamSpec) -> Arg {
    let arg = Arg::new(spec.name.clone()).long(flag_name(spec));
    if is_switch(spec) {
        let help = if is_on_by_default(spec) { "Turn off: " } else { "" };
        return arg.action(ArgAction::SetTrue).help(format!("{help}{}", one_line(&spec.doc)));
    }
    let default = match &spec.default {
        Value::Null => String::new(),
        Value::Array(list) if list.is_empty() => String::new(),
        value => format!(" [default: {}]", shown(value)),
    };
    let choices = match &spec.kind {
        ParamKind::Choice(choices) => {
            let words: Vec<_> = choices.iter().map(|(word, _)| word.as_str()).collect();
            format!(" [{}]", words.join("|"))
        }
        _ => String::new(),
    };
    let checked = spec.clone();
    arg.value_name(match spec.kind {
        ParamKind::Integer { .. } => "N",
        ParamKind::Number { .. } => "X",
        ParamKind::Numbers { .. } => "X,X,…",
        ParamKind::Integers { .. } => "N,N,…",
        ParamKind::Texts => "WORD,…",
        ParamKind::Bool => "true|false",
        _ => "WORD",
    })
    .allow_negative_numbers(true)
    .help(format!("{}{choices}{default}", one_line(&spec.doc)))
    .value_parser(move |text: &str| checked.parse(text))
}

pub fn one_line(doc: &str) -> String {
    doc.split("\n\n").next().unwrap_or_default().replace('\n', " ").trim_end_matches('.').to_owned()
}

/// The parameters given on the command line.
pub fn given(specs: &[ParamSpec], matches: &ArgMatches) -> Map<String, Value> {
    let mut record = Map::new();
    for spec in specs {
        if is_switch(spec) {
            if matches.get_flag(&spec.name) {
                record.insert(spec.name.clone(), Value::Bool(!is_on_by_default(spec)));
            }
        } else if let Some(value) = matches.get_one::<Value>(&spec.name) {
            record.insert(spec.name.clone(), value.clone());
        }
    }
    record
}

/// The arguments of a command.
pub fn arguments<T: FromArgMatches>(matches: &ArgMatches) -> Outcome<T> {
    T::from_arg_matches(matches).map_err(|error| {
        let text = error.to_string();
        Failure::Usage(text.trim().strip_prefix("error: ").unwrap_or(text.trim()).to_owned())
    })
}
