//! `gradus fit MODEL DATA -o FILE`

use super::titles::TitlesArgs;
use crate::checkpoints::{self, CheckpointArgs, CheckpointObserver};
use crate::input::options_of;
use crate::output::{Context, Failure, Outcome, Table, peak_memory, seconds};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::{arguments, given, option, parameter};
use crate::progress::stop_on_ctrl_c;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgMatches, Args, Command};
use gradus_app::data::Source;
use gradus_app::fit::FitRequest;
use gradus_core::capability::Capability;
use gradus_core::dataset::{AnyKind, RANDOM};
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_core::report::StopReason;
use gradus_data::Entity;
use gradus_file::output::{FileKind, Output};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Args)]
struct FitArgs {
    /// The data: CSV, TSV, JSON Lines or Parquet (for features also libsvm, and .npy without a target),
    /// plain, .gz or .zst; `-` for standard input
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

pub fn command() -> Command {
    Command::new("fit")
        .about("Train a model on a file of data")
        .defer(|command| by_model(command, of_model))
}

/// Adds a subcommand for each model. The flags of a model are made when it is asked for: those of all
/// models take longer than many a command does.
pub(super) fn by_model(command: Command, flags: fn(Command) -> Command) -> Command {
    by_some_models(command, |_| true, flags)
}

/// The same for some of the models.
pub(super) fn by_some_models(
    command: Command,
    takes: fn(&dyn Estimator) -> bool,
    flags: fn(Command) -> Command,
) -> Command {
    let models = crate::registry().models().iter().filter(|model| takes(**model));
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
    let Ok(model) = crate::registry().find(command.get_name()) else { return command };
    let kind = model.data();
    let command = FitArgs::augment_args(command).args(split(kind));
    let command = if model.traits().can(Capability::Recommend) {
        TitlesArgs::augment_args(command)
    } else {
        command
    };
    let keeps_no_state = !model.traits().resumable;
    let command = command
        .args(kind.options().iter().map(option))
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

/// The flag that says what is held out, where there is a choice.
fn split(kind: &dyn AnyKind) -> Option<Arg> {
    let choices = kind.schemes().iter().map(|&(name, doc)| PossibleValue::new(name).help(doc));
    let flag = Arg::new("split")
        .long("split")
        .default_value(RANDOM.0)
        .requires("holdout")
        .value_parser(PossibleValuesParser::new(choices))
        .help(
            "Hold-out scheme; with a scheme that counts for each user, --holdout may also be a number",
        );
    (kind.schemes().len() > 1).then_some(flag)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("fit: no model; see `gradus models`".into()));
    };
    let model = crate::registry().find(name)?;
    let args = arguments::<FitArgs>(matches)?;
    let params = given(&model.specs(), matches);
    let options = options_of(model.data(), matches)?;
    // Before the long wait for the data, not after it.
    let of_items = if model.traits().can(Capability::Recommend) {
        arguments::<TitlesArgs>(matches)?
    } else {
        TitlesArgs::default()
    };
    let side_tables = side_tables(&options);
    let inputs = [&args.data].into_iter().chain(&args.validation).chain(of_items.inputs());
    let inputs = inputs.chain(&side_tables);
    let mut plan = FilePlan::new(args.force, inputs);
    let output = plan.output("--output", &args.output, FileKind::Model)?;
    let checkpoints =
        CheckpointObserver::plan(&args.checkpoints, model, &output, &mut plan, context)?;
    let titles = of_items.read()?;

    let source = |path: PathBuf| Source { path, options: options.clone() };
    let split = matches.try_get_one::<String>("split").ok().flatten();
    let request = FitRequest {
        model: name.to_owned(),
        params,
        data: source(args.data.clone()),
        holdout: args.holdout,
        split: split.map_or(RANDOM.0.to_owned(), String::clone),
        validation: args.validation.map(source),
    };
    let fit = context.reading(|remarks| crate::app().prepare_fit(&request, remarks))?;
    if fit.is_streamed() {
        args.checkpoints.refuse_streamed()?;
        context.remark(format_args!("{}: {}", args.data.display(), fit.description));
    } else {
        context.remark(format_args!(
            "{}: {}, read in {}",
            args.data.display(),
            fit.description,
            seconds(fit.data.load_seconds)
        ));
    }

    let run = Run {
        warm: None,
        observer: &checkpoints,
        stop: stop_on_ctrl_c(),
        checkpoint: checkpoints.checkpoint(),
    };
    let mut fitted = match fit.run(&run) {
        Err(_) if run.stop.requested() => {
            context.remark("interrupted before the first iteration was done; nothing to save");
            checkpoints.discard();
            return Err(Failure::Interrupted);
        }
        fitted => fitted?,
    };
    of_items.give(titles, &mut fitted, context)?;
    save(&fitted, &output, context)?;
    let interrupted = fitted.report.stop_reason == StopReason::Interrupted;
    show(&fitted, &args.output, &json!(fit.data), checkpoints.to_json(interrupted), context)?;
    if interrupted {
        checkpoints.report_interruption(fitted.kind, &args.output);
        return Err(Failure::Interrupted);
    }
    checkpoints.finish()
}

/// The files of features among the options.
fn side_tables(options: &Map<String, Value>) -> Vec<PathBuf> {
    let names = Entity::ALL.map(Entity::option);
    let files = names.iter().filter_map(|name| options.get(*name).and_then(Value::as_str));
    files.map(PathBuf::from).collect()
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
    let took = seconds(report.seconds);
    match (report.iterations, report.stop_reason) {
        (1, StopReason::Solved) => {
            context.say(format_args!("{}: {} in {took}", fitted.kind, report.stop_reason))?;
        }
        (1, reason) => {
            context.say(format_args!("{}: 1 iteration in {took}, {reason}", fitted.kind))?;
        }
        (n, reason) => {
            context.say(format_args!("{}: {n} iterations in {took}, {reason}", fitted.kind))?;
        }
    }
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
    for choice in &report.chosen {
        context.remark(format_args!("chosen: {choice}"));
    }
    for note in &report.notes {
        context.remark(format_args!("note: {note}"));
    }
    context.say(format_args!("saved {}", output.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::flag_name;

    #[test]
    fn every_parameter_of_every_model_is_a_flag() {
        for model in crate::registry().models() {
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
            assert_eq!(Value::Object(given(&specs, &matches)), expected);
        }
    }

    #[test]
    fn a_flag_outside_its_range_names_the_rule() {
        let error = command().try_get_matches_from(["fit", "als", "d", "-o", "m", "--rank", "0"]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("rank") && error.contains("must be an integer from 1"), "{error}");
    }
}
