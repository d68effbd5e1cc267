//! `gradus predict FILE PAIRS`

use crate::columns::{quoted, write_columns};
use crate::input::DataArgs;
use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::evaluate::known;
use gradus_app::predict::{RowsRequest, predict, without};
use gradus_core::estimator::AnyFitted;
use gradus_core::recommend::PredictionInterval;
use gradus_data::Id;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

#[derive(Args)]
struct PredictArgs {
    /// The model
    model: PathBuf,

    /// Pairs of user and item, or rows of features; `-` for standard input
    data: PathBuf,

    /// Where to write the predictions, CSV, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Add the interval that contains the rating with this probability, for models that know their uncertainty
    /// (`bayes`)
    #[arg(long, value_name = "LEVEL")]
    interval: Option<f64>,

    /// Add the probability of each class or cluster, for models that know it
    #[arg(long)]
    probabilities: bool,

    /// Add this number of most probable classes with their probabilities, for models that know them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,

    /// Write the predictions alone, without the columns of the file before them
    #[arg(long)]
    only_predictions: bool,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    PredictArgs::augment_args(
        Command::new("predict")
            .about("Predict the target or the cluster of each row of a file, or the rating of each user and item"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<PredictArgs>(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model, &args.data]);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let fitted = crate::registry().load(&args.model)?;
    if fitted.model.recommend().is_none() {
        return samples(&args, &fitted, &destination, context);
    }
    let model = fitted.recommend()?;
    let pairs = args.input.pairs(&args.data, context)?;
    let indices = known(&pairs, model);
    let predicted = model.predict(&indices);
    let intervals = match args.interval {
        Some(level) => {
            let intervals = model.interval(&indices, level)?;
            Some(intervals.ok_or_else(|| without(&fitted, "give intervals", "`bayes` can"))?)
        }
        None => None,
    };
    let intervals = intervals.as_deref();
    let ids = |at: usize| (pairs.users.get(at), pairs.items.get(at));
    destination.write(|out| Ok(write(out, ids, &predicted, intervals, context.json)?))?;
    say_where(&destination, predicted.len(), context);
    let users = indices.iter().filter(|pair| pair.0.is_none()).count();
    let items = indices.iter().filter(|pair| pair.1.is_none()).count();
    if users + items > 0 {
        context.remark(format_args!(
            "{} pairs have a user and {} an item the model does not know; they got the best guess without it",
            grouped(users),
            grouped(items)
        ));
    }
    Ok(())
}

/// Predictions of a model of features: a row for each row.
fn samples(
    args: &PredictArgs,
    fitted: &AnyFitted,
    destination: &Destination,
    context: Context,
) -> Outcome {
    if args.interval.is_some() {
        return Err(without(fitted, "give intervals", "`bayes` can, of ratings").into());
    }
    let request = RowsRequest {
        path: args.data.clone(),
        table: args.input.table().clone(),
        keep: !args.only_predictions,
        probabilities: args.probabilities,
        top: args.top.map(|n| n as usize),
        inverse: false,
        impute: false,
        options: serde_json::Map::new(),
    };
    let found = context.reading(|remarks| predict(fitted, &request, remarks))?;
    destination.write(|out| Ok(write_columns(out, &found, context.json)?))?;
    say_where(destination, found.rows, context);
    Ok(())
}

fn say_where(destination: &Destination, n: usize, context: Context) {
    if let Some(path) = destination.path() {
        context.remark(format_args!("{} predictions in {}", grouped(n), path.display()));
    }
}

/// CSV with a header, or a JSON object a line.
fn write<'a>(
    out: &mut impl Write,
    ids: impl Fn(usize) -> (Id<'a>, Id<'a>),
    predicted: &[f32],
    intervals: Option<&[PredictionInterval]>,
    json: bool,
) -> std::io::Result<()> {
    if !json {
        let more = if intervals.is_some() { ",low,high" } else { "" };
        writeln!(out, "user,item,prediction{more}")?;
    }
    for (at, prediction) in predicted.iter().enumerate() {
        let (user, item) = ids(at);
        let interval = intervals.map(|intervals| intervals[at]);
        if json {
            let mut line = json!({"user": user, "item": item, "prediction": prediction});
            if let Some(PredictionInterval { low, high }) = interval {
                (line["low"], line["high"]) = (low.into(), high.into());
            }
            writeln!(out, "{line}")?;
        } else {
            write!(out, "{},{},{prediction}", quoted(user), quoted(item))?;
            if let Some(PredictionInterval { low, high }) = interval {
                write!(out, ",{low},{high}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
