//! `gradus split DATA -o TRAIN --test TEST`

use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgMatches, Args, Command};
use gradus_app::split::{COLD, Part, Split, SplitRequest, split};
use gradus_core::dataset::DataKind as _;
use gradus_data::Ratings;
use gradus_file::output::Output;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Args)]
struct SplitArgs {
    /// The ratings; `-` for standard input
    data: PathBuf,

    /// Split the rows of any table (CSV, TSV, JSON Lines, libsvm) instead, each kept as it is
    #[arg(long, conflicts_with_all = ["by", "fold_in", "cold_test"])]
    rows: bool,

    /// With --rows: a column of classes, each of which gets its share on both sides
    #[arg(long, value_name = "COLUMN", requires = "rows")]
    target: Option<String>,

    /// Hold-out scheme
    #[arg(long, value_parser = PossibleValuesParser::new(schemes()), default_value = SplitRequest::default().by)]
    by: String,

    /// Amount to hold out: a share below 1, or, for per-user and last, a number of each user's
    /// ratings
    #[arg(long, value_name = "X", default_value_t = SplitRequest::default().holdout)]
    holdout: f64,

    /// Hold out part I of K equal random parts instead
    #[arg(long, value_name = "I/K", conflicts_with_all = ["by", "holdout"])]
    fold: Option<String>,

    /// Share or number of each cold user's ratings to test on; the rest are to fold them in by
    #[arg(long, value_name = "X", default_value_t = SplitRequest::default().cold_test)]
    cold_test: f64,

    /// Where to write the training part
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Where to write the held-out part
    #[arg(long, value_name = "FILE")]
    test: PathBuf,

    /// Where to write the ratings by which cold users are folded in, CSV
    #[arg(long, value_name = "FILE", required_if_eq("by", COLD))]
    fold_in: Option<PathBuf>,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    input: DataArgs,
}

/// The ways to hold out ratings.
fn schemes() -> impl Iterator<Item = PossibleValue> {
    Ratings::SCHEMES.iter().map(|&(name, doc)| PossibleValue::new(name).help(doc))
}

pub fn command() -> Command {
    SplitArgs::augment_args(
        Command::new("split")
            .about("Split ratings, or the rows of a table, into files to train and to test on"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<SplitArgs>(matches)?;
    let fold = args.fold.as_deref().map(part).transpose()?;
    if args.fold_in.is_some() && args.by != COLD {
        return Err(Failure::Usage("--fold-in goes with --by cold".into()));
    }
    if args.rows && args.data == Path::new("-") {
        return Err(Failure::Usage(
            "--rows: the rows must be in a file, not on standard input".into(),
        ));
    }
    let mut plan = FilePlan::new(args.force, [&args.data]);
    let to_train = plan.table("--output", &args.output)?;
    let to_test = plan.table("--test", &args.test)?;
    let to_fold_in = args.fold_in.as_ref().map(|path| plan.table("--fold-in", path)).transpose()?;
    let outputs: Vec<Output> =
        [Some(to_train), Some(to_test), to_fold_in].into_iter().flatten().collect();
    let request = SplitRequest {
        data: args.data,
        options: args.input.0,
        rows: args.rows,
        target: args.target,
        by: args.by,
        holdout: args.holdout,
        fold,
        cold_test: args.cold_test,
        seed: args.seed,
    };
    let Split { units, parts } = context.reading(|remarks| split(&request, remarks))?;
    let files: Vec<(&Output, &Part)> = outputs.iter().zip(&parts).collect();
    write_all(&files)?;
    if context.json {
        let record = files.iter().map(|(output, part)| {
            let file = output.path().display().to_string();
            (part.name.to_owned(), json!({"file": file, units: part.count}))
        });
        return context.json(&serde_json::Value::Object(record.collect()));
    }
    for (output, part) in &files {
        let path = output.path().display();
        context.remark(format_args!("{} {units} in {path}", grouped(part.count)));
    }
    Ok(())
}

/// Writes all files, or none: they are put in their places when all are written.
fn write_all(files: &[(&Output, &Part)]) -> Outcome {
    let mut written = Vec::new();
    for (output, part) in files {
        let mut file = output.create()?;
        part.write(&mut file).map_err(|error| gradus::Error::io(output.path(), error))?;
        written.push(file);
    }
    for file in written {
        file.commit()?;
    }
    Ok(())
}

/// `2/5`: the second of five.
fn part(text: &str) -> Outcome<(usize, usize)> {
    let wrong = || {
        Failure::Usage(format!("--fold {text}: must be I/K with 1 ≤ I ≤ K and K ≥ 2, as in 2/5"))
    };
    let (part, of) = text.split_once('/').ok_or_else(wrong)?;
    let (part, of): (usize, usize) =
        (part.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
    if part == 0 || part > of || of < 2 { Err(wrong()) } else { Ok((part, of)) }
}
