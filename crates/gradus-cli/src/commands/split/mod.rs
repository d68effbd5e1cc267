//! `gradus split DATA -o TRAIN --test TEST`

mod rows;

use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgMatches, Args, Command};
use gradus_core::dataset::{DataKind as _, Dataset, Held, RANDOM};
use gradus_data::Ratings;
use gradus_data::split::{Amount, ColdUsers, cold_users, folds};
use gradus_file::output::{Output, OutputFile};
use serde_json::json;
use std::path::PathBuf;

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

    /// What is held out
    #[arg(long, value_parser = PossibleValuesParser::new(schemes()), default_value = RANDOM.0)]
    by: String,

    /// How much to hold out: a share below 1, or, for per-user and last, a number of each user's
    /// ratings
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    holdout: f64,

    /// Hold out part I of K equal random parts instead
    #[arg(long, value_name = "I/K", conflicts_with_all = ["by", "holdout"])]
    fold: Option<String>,

    /// Share or number of each cold user's ratings to test on; the rest are to fold them in by
    #[arg(long, value_name = "X", default_value_t = 0.2)]
    cold_test: f64,

    /// Where to write the training part
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Where to write the held-out part
    #[arg(long, value_name = "FILE")]
    test: PathBuf,

    /// Where to write what cold users are folded in by, CSV
    #[arg(long, value_name = "FILE", required_if_eq("by", "cold"))]
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
    if args.fold_in.is_some() && args.by != "cold" {
        return Err(Failure::Usage("--fold-in goes with --by cold".into()));
    }
    let mut plan = FilePlan::new(args.force, [&args.data]);
    let to_train = plan.table("--output", &args.output)?;
    let to_test = plan.table("--test", &args.test)?;
    if args.rows {
        return rows::run(&args, fold, [to_train, to_test], context);
    }
    let to_fold_in = args.fold_in.as_ref().map(|path| plan.table("--fold-in", path)).transpose()?;
    let (ratings, summary) = args.input.timed_ratings(&args.data, context)?;
    let (train, test, fold_in) = match (fold, args.by.as_str()) {
        (Some((part, of)), _) => {
            let (train, test) = folds(&ratings, of, args.seed)?.get(part - 1)?;
            (train, test, None)
        }
        (None, "cold") => {
            let ColdUsers { train, fold_in, test } =
                cold_users(&ratings, args.holdout, Amount::from_number(args.cold_test), args.seed)?;
            (train, test, Some(fold_in))
        }
        (None, by) => {
            let Held { train, held_out } = ratings.hold_out(by, args.holdout, args.seed)?;
            let ratings = |data: &dyn Dataset| data.of_kind::<Ratings>().cloned();
            (ratings(train.as_ref())?, ratings(held_out.as_ref())?, None)
        }
    };
    let rated = summary.columns.rating.is_some();
    let mut files = vec![("train", &to_train, &train), ("test", &to_test, &test)];
    if let (Some(output), Some(fold_in)) = (&to_fold_in, &fold_in) {
        files.push(("fold_in", output, fold_in));
    }
    write_all(&files, |out, ratings| ratings.write_csv(rated, out))?;
    if context.json {
        let record = files.iter().map(|(name, output, ratings)| {
            let file = output.path().display().to_string();
            ((*name).to_owned(), json!({"file": file, "ratings": ratings.len()}))
        });
        return context.json(&serde_json::Value::Object(record.collect()));
    }
    for (_, output, ratings) in &files {
        let path = output.path().display();
        context.remark(format_args!("{} ratings in {path}", grouped(ratings.len())));
    }
    Ok(())
}

/// Writes all files, or none: they are put in their places when all are written.
fn write_all<T>(
    files: &[(&str, &Output, T)],
    write: impl Fn(&mut OutputFile, &T) -> std::io::Result<()>,
) -> Outcome {
    let mut written = Vec::new();
    for (_, output, part) in files {
        let mut file = output.create()?;
        write(&mut file, part).map_err(|error| gradus::Error::io(output.path(), error))?;
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
