//! `gradus lab lr mlp train.csv --target y -o lr.html`

use super::Picture;
use crate::commands::fit::by_some_models;
use crate::input::options_of;
use crate::output::{Context, Failure, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::{arguments, given, option, parameter};
use crate::progress::stop_on_ctrl_c;
use clap::{ArgMatches, Args, Command};
use gradus_app::data::Source;
use gradus_app::fit::FitRequest;
use gradus_app::lab::learning_rate::{LearningRateAnswer, LearningRateRequest, takes_range_test};
use gradus_core::dataset::RANDOM;
use gradus_core::estimator::Run;
use gradus_report::number;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct LearningRateArgs {
    /// The training data, as `gradus fit` takes it
    data: PathBuf,

    /// The rate of the last step; the first has a ten-millionth of it
    #[arg(long, value_name = "X", default_value_t = LearningRateRequest::TO, allow_hyphen_values = true)]
    to: f64,

    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = LearningRateRequest::STEPS)]
    steps: usize,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "lr.html")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

/// Parameters that the test sets itself.
const OWN: [&str; 5] = ["schedule", "learning_rate", "max_iter", "validation_fraction", "restarts"];

pub fn command() -> Command {
    let command = Command::new("lr").about(
        "Find the learning rate of a network: its loss while the rate rises from step to step",
    );
    by_some_models(command, takes_range_test, of_model)
}

fn of_model(command: Command) -> Command {
    let Ok(model) = crate::registry().find(command.get_name()) else { return command };
    let specs = model.specs();
    LearningRateArgs::augment_args(command)
        .args(model.data().options().iter().map(option))
        .args(specs.iter().filter(|spec| !OWN.contains(&spec.name.as_str())).map(parameter))
        .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("lab lr: no model; see `gradus lab lr --help`".into()));
    };
    let model = crate::registry().find(name)?;
    let args = arguments::<LearningRateArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [&args.data])?;
    let mut specs = model.specs();
    specs.retain(|spec| !OWN.contains(&spec.name.as_str()));
    let request = LearningRateRequest {
        fit: FitRequest {
            model: name.to_owned(),
            params: given(&specs, matches),
            data: Source { path: args.data.clone(), options: options_of(model.data(), matches)? },
            holdout: None,
            split: RANDOM.0.to_owned(),
            validation: None,
        },
        to: args.to,
        steps: args.steps,
    };
    let run = Run { stop: stop_on_ctrl_c(), ..Run::default() };
    let answer = context.reading(|remarks| crate::app().learning_rate(&request, &run, remarks))?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = json!(answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    context.say(table(&answer))?;
    match (answer.suggestion, answer.least, answer.steepest) {
        (Some(suggestion), Some(least), Some(steepest)) => context.say(format_args!(
            "suggestion: --learning-rate {}; the loss is nearly least at {} and falls fastest at {}",
            number(suggestion),
            number(least),
            number(steepest)
        ))?,
        _ => context.say("the loss does not fall at any rate")?,
    }
    context.remark(LearningRateAnswer::ABOUT);
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn table(answer: &LearningRateAnswer) -> Table {
    let mut table = Table::new(&[">learning rate", ">loss of the batch", ">smoothed"]);
    for step in answer.shown(15) {
        table.row([number(step.rate), number(step.loss), number(step.smoothed)]);
    }
    table
}
