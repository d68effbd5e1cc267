//! `gradus predict FILE PAIRS`

use crate::columns::{beside, quoted, spread, write_columns};
use crate::input::{DataArgs, Known};
use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_core::dataset::Features;
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Outputs;
use gradus_core::recommend::Interval;
use gradus_data::Id;
use serde_json::{Value, json};
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

    /// Also the interval that holds the rating with this probability, for models that know how sure they are (`bayes`)
    #[arg(long, value_name = "LEVEL")]
    interval: Option<f64>,

    /// Also the probability of each class, for models of classes that know it
    #[arg(long)]
    probabilities: bool,

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
            .about("Predict the target of each row of a file, or the rating of each user and item"),
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
    let known = Known::of(&pairs, model);
    let predicted = model.predict(&known.indices);
    let intervals = match args.interval {
        Some(level) => {
            let intervals = model.interval(&known.indices, level)?;
            Some(intervals.ok_or_else(|| without(&fitted, "give intervals", "`bayes` can"))?)
        }
        None => None,
    };
    let intervals = intervals.as_deref();
    let ids = |at: usize| (pairs.users.get(at), pairs.items.get(at));
    destination.write(|out| Ok(write(out, ids, &predicted, intervals, context.json)?))?;
    say_where(&destination, predicted.len(), context);
    if known.users + known.items > 0 {
        context.remark(format_args!(
            "{} pairs have a user and {} an item the model does not know; they got the best guess without it",
            grouped(known.users),
            grouped(known.items)
        ));
    }
    Ok(())
}

/// The error of something that a model cannot give beside its predictions.
fn without(fitted: &AnyFitted, capability: &'static str, others: &str) -> gradus::Error {
    let (model, instead) = (fitted.kind.to_owned(), others.to_owned());
    gradus::Error::Unsupported { model, capability, instead }
}

/// Predictions of a model of features: a row for each row.
fn samples(
    args: &PredictArgs,
    fitted: &AnyFitted,
    destination: &Destination,
    context: Context,
) -> Outcome {
    let model = fitted.predictor()?;
    if args.interval.is_some() {
        return Err(without(fitted, "give intervals", "`bayes` can, of ratings").into());
    }
    let Features { matrix: features, table, rows } = context
        .reading(|remarks| args.input.table().features(&args.data, model.inputs(), remarks))?;
    let mut columns: Vec<(String, Vec<Value>)> = Vec::new();
    match model.outputs() {
        Outputs::Values(names) => {
            let scores = model.scores(&features)?;
            for (at, name) in names.iter().enumerate() {
                columns.push((name.clone(), scores.column(at).map(Value::from).collect()));
            }
        }
        Outputs::Classes { name, labels } => {
            let classes = model.classes(&features)?;
            let label = |class: &u32| json!(labels.get(*class as usize));
            columns.push((name.clone(), classes.iter().map(label).collect()));
            if args.probabilities {
                let probabilities = model.probabilities(&features)?.ok_or_else(|| {
                    without(fitted, "give probabilities", "`logistic` can, and `svm --probability`")
                })?;
                for (at, label) in labels.iter().enumerate() {
                    let values = probabilities.column(at).map(Value::from).collect();
                    columns.push((format!("p({label})"), values));
                }
            }
        }
    }
    let n = table.as_ref().map_or(features.n_rows(), gradus_data::Table::n_rows);
    let mut columns = spread(columns, &rows, n);
    if let Some(table) = table.filter(|_| !args.only_predictions) {
        columns = beside(&table, columns);
    }
    destination.write(|out| Ok(write_columns(out, n, &columns, context.json)?))?;
    say_where(destination, n, context);
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
    intervals: Option<&[Interval]>,
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
            if let Some(Interval { low, high }) = interval {
                (line["low"], line["high"]) = (low.into(), high.into());
            }
            writeln!(out, "{line}")?;
        } else {
            write!(out, "{},{},{prediction}", quoted(user), quoted(item))?;
            if let Some(Interval { low, high }) = interval {
                write!(out, ",{low},{high}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
