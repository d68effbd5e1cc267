//! `gradus fit MODEL DATA -o FILE`

use super::titles::TitlesArgs;
use crate::checkpoints::{self, CheckpointArgs, CheckpointObserver};
use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, Table, grouped, peak_memory, seconds};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::progress::stop_on_ctrl_c;
use crate::samples::SampleArgs;
use crate::splitting::SplitName;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _};
use gradus::page::shown;
use gradus_core::capability::Capability;
use gradus_core::estimator::{AnyData, AnyFitted, Estimator, Run};
use gradus_core::params::{ParamKind, ParamSpec};
use gradus_core::report::StopReason;
use gradus_data::Ratings;
use gradus_file::output::{FileKind, Output};
use gradus_metrics::split::rows;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args)]
struct FitArgs {
    /// The data: CSV, TSV, JSON Lines or Parquet (for features also libsvm), plain, .gz or .zst; `-`
    /// for standard input
    data: PathBuf,

    /// Where to save the model
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Share of the data to hold out: scored after every iteration, reason to stop early
    #[arg(long, value_name = "SHARE", conflicts_with = "validation")]
    holdout: Option<f64>,

    /// A file of data to hold out instead
    #[arg(long, value_name = "FILE")]
    validation: Option<PathBuf>,

    #[command(flatten)]
    checkpoints: CheckpointArgs,

    #[command(flatten)]
    force: ForceArg,
}

// What models of ratings are told besides.
#[derive(Args)]
struct RatingArgs {
    /// What is held out; for per-user and last, --holdout may also be a number of each user's
    /// ratings
    #[arg(long, value_enum, default_value = "random", requires = "holdout")]
    split: SplitName,

    #[command(flatten)]
    titles: TitlesArgs,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    Command::new("fit")
        .about("Train a model on a file of data")
        .defer(|command| by_model(command, of_model))
}

/// Adds a subcommand for each model. The flags of a model are made when it is asked for: those of all
/// models take longer than many a command does.
pub(super) fn by_model(command: Command, flags: fn(Command) -> Command) -> Command {
    let models = gradus::models().iter();
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("MODEL")
        .subcommand_help_heading("Models")
        .subcommands(
            models.map(|model| Command::new(model.name()).about(model.docs().0).defer(flags)),
        )
}

fn of_model(command: Command) -> Command {
    let Ok(model) = gradus::find(command.get_name()) else { return command };
    let command = FitArgs::augment_args(command);
    let command = if model.traits().can(Capability::Recommend) {
        RatingArgs::augment_args(command)
    } else {
        SampleArgs::augment_args(command)
    };
    let keeps_no_state = !model.traits().resumable;
    let command = command
        .after_help(format!(
            "`gradus models {}` explains the model.\n\n{}",
            model.name(),
            outputs::RULE
        ))
        .args(model.specs().iter().map(parameter));
    // Refused with the reason if they are given all the same.
    checkpoints::FLAGS
        .iter()
        .filter(|_| keeps_no_state)
        .fold(command, |command, flag| command.mut_arg(flag, |arg| arg.hide(true)))
}

/// `max_iter` → `max-iter`; a switch that is on by default is offered as `no-…`.
pub(super) fn flag_name(spec: &ParamSpec) -> String {
    let name = spec.name.replace('_', "-");
    if is_on_by_default(spec) { format!("no-{name}") } else { name }
}

pub(super) fn is_on_by_default(spec: &ParamSpec) -> bool {
    spec.kind == ParamKind::Bool && spec.default == Value::Bool(true)
}

/// Whether a parameter is a flag without a value. One that is neither true nor false unless it is
/// given takes a value, `true` if there is none.
pub(super) fn is_switch(spec: &ParamSpec) -> bool {
    spec.kind == ParamKind::Bool && !spec.optional
}

/// The flag of a parameter, made from its definition.
pub(super) fn parameter(spec: &ParamSpec) -> Arg {
    let arg = Arg::new(spec.name.clone()).long(flag_name(spec)).help_heading("Model parameters");
    if is_switch(spec) {
        let help = if is_on_by_default(spec) { "Turn off: " } else { "" };
        return arg.action(ArgAction::SetTrue).help(format!("{help}{}", one_line(&spec.doc)));
    }
    let default = match &spec.default {
        Value::Null => String::new(),
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
    let arg = if spec.kind == ParamKind::Bool {
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg
    };
    arg.value_name(match spec.kind {
        ParamKind::Integer { .. } => "N",
        ParamKind::Number { .. } => "X",
        ParamKind::Numbers { .. } => "X,X,…",
        ParamKind::Integers { .. } => "N,N,…",
        ParamKind::Bool => "true|false",
        _ => "WORD",
    })
    .allow_negative_numbers(true)
    .help(format!("{}{choices}{default}", one_line(&spec.doc)))
    .value_parser(move |text: &str| checked.parse(text))
}

pub(super) fn one_line(doc: &str) -> String {
    doc.split("\n\n").next().unwrap_or_default().replace('\n', " ").trim_end_matches('.').to_owned()
}

/// The parameters given on the command line.
fn parameters(specs: &[ParamSpec], matches: &ArgMatches) -> Map<String, Value> {
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

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("fit: no model; see `gradus models`".into()));
    };
    let model = gradus::find(name)?;
    let args = FitArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let params = parameters(&model.specs(), matches);
    // Before the long wait for the data, not after it.
    let recommends = model.traits().can(Capability::Recommend);
    let of_items = if recommends {
        RatingArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?.titles
    } else {
        TitlesArgs::default()
    };
    let inputs = [&args.data].into_iter().chain(&args.validation).chain(of_items.inputs());
    let mut plan = FilePlan::new(args.force, inputs);
    let output = plan.output("--output", &args.output, FileKind::Model)?;
    let checkpoints =
        CheckpointObserver::plan(&args.checkpoints, model, &output, &mut plan, context)?;
    let seed = params.get("seed").and_then(Value::as_u64).unwrap_or(0);
    let titles = of_items.read()?;

    let Loaded { train, held, told: data } = if recommends {
        ratings(&args, matches, model.traits().is_implicit(), seed, context)?
    } else {
        samples(&args, matches, model, seed, context)?
    };

    let run = Run {
        warm: None,
        observer: &checkpoints,
        stop: stop_on_ctrl_c(),
        checkpoint: checkpoints.checkpoint(),
    };
    let mut fitted = match model.fit(&params, &train, held.as_ref(), &run) {
        Err(_) if run.stop.requested() => {
            context.remark("interrupted before the first iteration was done; nothing to save");
            checkpoints.discard();
            return Err(Failure::Interrupted);
        }
        fitted => fitted?,
    };
    of_items.give(titles, &mut fitted, context)?;
    // So that `evaluate` can tell when it is given the data the model was fitted to.
    fitted.report.training = Some(train.sketch());
    save(&fitted, &output, context)?;
    let interrupted = fitted.report.stop_reason == StopReason::Interrupted;
    show(&fitted, &args.output, &data, checkpoints.to_json(interrupted), context)?;
    if interrupted {
        checkpoints.report_interruption(fitted.kind, &args.output);
        return Err(Failure::Interrupted);
    }
    checkpoints.finish()
}

/// Saves a model. One that took hours is not thrown away because the disk is full: it is kept among
/// the temporary files if it does not fit where it should be.
fn save(fitted: &AnyFitted, output: &Output, context: Context) -> Outcome {
    let Err(error) = fitted.save_to(output) else { return Ok(()) };
    if output.is_stream() {
        return Err(error.into());
    }
    let name = format!("gradus-{}-{}.gradus", fitted.kind, std::process::id());
    let elsewhere = std::env::temp_dir().join(name);
    if fitted.save(&elsewhere).is_ok() {
        context.remark(format_args!("the model is kept in {}", elsewhere.display()));
    }
    Err(error.into())
}

/// What a fit learns from, and what is told of it.
struct Loaded {
    train: AnyData,
    held: Option<AnyData>,
    told: Value,
}

fn ratings(
    args: &FitArgs,
    matches: &ArgMatches,
    implicit: bool,
    seed: u64,
    context: Context,
) -> Outcome<Loaded> {
    let RatingArgs { split, input, .. } =
        RatingArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let (ratings, summary) = if split == SplitName::Last {
        input.timed_ratings(&args.data, context)?
    } else {
        input.ratings_for(&args.data, implicit, context)?
    };
    let (train, held) = match (args.holdout, &args.validation) {
        (Some(share), _) => {
            let (train, held) = split.split(&ratings, share, seed)?;
            drop(ratings);
            (train, Some(held))
        }
        (None, Some(path)) => (ratings, Some(input.ratings_for(path, implicit, context)?.0)),
        (None, None) => (ratings, None),
    };
    let held_out = held.as_ref().map(Ratings::len);
    context.remark(format_args!(
        "{}: {} ratings of {} items by {} users, read in {}",
        args.data.display(),
        grouped(train.len() + held_out.filter(|_| args.holdout.is_some()).unwrap_or(0)),
        grouped(train.n_items()),
        grouped(train.n_users()),
        seconds(summary.seconds)
    ));
    let told = json!({
        "file": args.data.display().to_string(),
        "users": train.n_users(),
        "items": train.n_items(),
        "ratings": train.len(),
        "held_out": held_out,
        "split": args.holdout.map(|_| split.name()),
        "skipped": summary.skipped,
        "load_seconds": summary.seconds,
    });
    Ok(Loaded { train: AnyData::Ratings(train), held: held.map(AnyData::Ratings), told })
}

fn samples(
    args: &FitArgs,
    matches: &ArgMatches,
    model: &dyn Estimator,
    seed: u64,
    context: Context,
) -> Outcome<Loaded> {
    let input = SampleArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let (traits, begun) = (model.traits(), Instant::now());
    let all = input.samples(&args.data, traits, context)?;
    let load = begun.elapsed().as_secs_f64();
    let n = all.len();
    let (train, held) = match (args.holdout, &args.validation) {
        (Some(share), _) => {
            let split = match all.classes() {
                Ok((classes, _)) => rows::stratified_holdout(classes, share, seed)?.0,
                Err(_) => rows::holdout(n, share, seed)?,
            };
            (all.select_rows(&split.train), Some(all.select_rows(&split.test)))
        }
        (None, Some(path)) => {
            let held = input.held_out(path, traits, all.inputs(), context)?;
            (all, Some(held))
        }
        (None, None) => (all, None),
    };
    let kind = if train.features().is_sparse() { "sparse" } else { "dense" };
    context.remark(format_args!(
        "{}: {} samples, {} features ({kind}), read in {}",
        args.data.display(),
        grouped(n),
        grouped(train.n_features()),
        seconds(load)
    ));
    let told = json!({
        "file": args.data.display().to_string(),
        "samples": train.len(),
        "features": train.n_features(),
        "sparse": train.features().is_sparse(),
        "classes": train.labels().map(|labels| labels.len()),
        "held_out": held.as_ref().map(gradus_data::Samples::len),
        "load_seconds": load,
    });
    Ok(Loaded { train: AnyData::Samples(train), held: held.map(AnyData::Samples), told })
}

fn show(
    fitted: &AnyFitted,
    output: &Path,
    data: &Value,
    checkpoint: Value,
    context: Context,
) -> Outcome {
    let report = &fitted.report;
    if context.json {
        return context.json(&json!({
            "model": fitted.kind,
            "file": output.display().to_string(),
            "params": fitted.params,
            "data": data,
            "report": report.to_json(),
            "checkpoint": checkpoint,
            "peak_rss_bytes": peak_memory(),
        }));
    }
    if context.quiet {
        return Ok(());
    }
    context.say(format_args!(
        "{}: {} iterations in {}, {}",
        fitted.kind,
        report.iterations,
        seconds(report.seconds),
        report.stop_reason
    ))?;
    if let Some(score) = report.validation {
        let metric = report.metric.to_uppercase();
        let mut table = Table::new(&["held-out", &format!(">{metric}")]);
        for baseline in &report.baselines {
            table.row([baseline.name.clone(), format!("{:.4}", baseline.score)]);
        }
        table.row([fitted.kind.to_owned(), format!("{score:.4}")]);
        context.say(table)?;
    }
    if let Some(certificate) = &report.certificate {
        context.say(certificate)?;
    }
    for note in &report.notes {
        context.remark(format_args!("note: {note}"));
    }
    context.say(format_args!("saved {}", output.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_every_model_is_a_flag() {
        for model in gradus::models() {
            let specs = model.specs();
            let mut command = command();
            command.build();
            let command = command.find_subcommand(model.name()).unwrap().clone();
            for spec in &specs {
                let flag = flag_name(spec);
                assert!(command.get_arguments().any(|a| a.get_long() == Some(&flag)), "--{flag}");
            }
            let seeded = specs.iter().any(|spec| spec.name == "seed");
            let (more, expected) = match seeded {
                true => (&["--seed", "7"][..], json!({"seed": 7})),
                false => (&[][..], json!({})),
            };
            let words = ["x", "data.csv", "-o", "m"].iter().chain(more);
            let matches = command.try_get_matches_from(words).unwrap();
            assert_eq!(Value::Object(parameters(&specs, &matches)), expected);
        }
    }

    #[test]
    fn a_flag_outside_its_range_names_the_rule() {
        let error = command().try_get_matches_from(["fit", "als", "d", "-o", "m", "--rank", "0"]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("rank") && error.contains("must be an integer from 1"), "{error}");
    }
}
