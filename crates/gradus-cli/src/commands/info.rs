//! `gradus info FILE`

mod table;

use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, Table, grouped, peak_memory, seconds};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use gradus::core::estimator::AnyFitted;
use gradus::data::Format;
use gradus::page::shown;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Args)]
struct InfoArgs {
    /// A model, a table or a file of ratings
    file: PathBuf,

    /// Take the file as a table, even if it could be one of ratings
    #[arg(long)]
    table: bool,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    InfoArgs::augment_args(
        Command::new("info").about("Tell what a model file, a table or a file of ratings holds"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = InfoArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    if args.file.extension().is_some_and(|extension| extension == "gradus") {
        model(&args.file, &gradus::load(&args.file)?, context)
    } else if args.table {
        table::run(&args.file, &args.input.table(), context)
    } else {
        data(&args, context)
    }
}

/// Whether rows of this width without names are likely to be ratings: user, item, value, time.
const RATING_COLUMNS: usize = 4;

fn model(path: &Path, fitted: &AnyFitted, context: Context) -> Outcome {
    let facts: Map<String, Value> =
        fitted.model.facts().into_iter().map(|(name, fact)| (name.into(), fact.into())).collect();
    if context.json {
        return context.json(&json!({
            "model": fitted.kind,
            "file": path.display().to_string(),
            "facts": facts,
            "params": fitted.params,
            "report": fitted.report,
        }));
    }
    let report = &fitted.report;
    let mut table = Table::new(&["model", fitted.kind]);
    for (name, fact) in &facts {
        table.row([name.as_str(), fact.as_str().unwrap_or_default()]);
    }
    table.row(["iterations".to_owned(), report.iterations.to_string()]);
    table.row(["ended".to_owned(), report.stop_reason.to_string()]);
    table.row(["objective".to_owned(), format!("{:.6e}", report.objective)]);
    if let Some(certificate) = &report.certificate {
        table.row(["certificate".to_owned(), certificate.to_string()]);
    }
    if let Some(score) = report.validation {
        table.row([format!("held-out {}", report.metric), format!("{score:.4}")]);
    }
    for baseline in &report.baselines {
        table.row([format!("  {}", baseline.name), format!("{:.4}", baseline.score)]);
    }
    for (name, value) in &fitted.params {
        table.row([name.replace('_', "-"), shown(value)]);
    }
    context.say(table)?;
    for note in &report.notes {
        context.say(format_args!("note: {note}"))?;
    }
    Ok(())
}

fn data(args: &InfoArgs, context: Context) -> Outcome {
    let (ratings, summary) = match args.input.ratings_for(&args.file, true, context) {
        Ok(read) => read,
        // What has no users and items may be a table. A pipe cannot be read twice.
        Err(error) if args.input.tells_ratings() || !args.file.is_file() => return Err(error),
        Err(_) => return table::run(&args.file, &args.input.table(), context),
    };
    let unnamed =
        summary.columns.user.parse::<usize>().is_ok() && summary.format != Format::Adjacency;
    if unnamed && !args.input.tells_ratings() && args.file.is_file() {
        let read = args.input.table().table(&args.file, None, &[]);
        if read.is_ok_and(|table| table.n_cols() > RATING_COLUMNS) {
            return table::run(&args.file, &args.input.table(), context);
        }
    }
    let count = ratings.len();
    let (mut low, mut high, mut sum) = (f32::INFINITY, f32::NEG_INFINITY, 0.0);
    for &value in ratings.by_user().values() {
        (low, high) = (low.min(value), high.max(value));
        sum += f64::from(value);
    }
    let mean = sum / count as f64;
    let density = count as f64 / (ratings.n_users() as f64 * ratings.n_items() as f64);
    if context.json {
        return context.json(&json!({
            "file": args.file.display().to_string(),
            "users": ratings.n_users(),
            "items": ratings.n_items(),
            "ratings": count,
            "density": density,
            "min": low,
            "mean": mean,
            "max": high,
            "skipped": summary.skipped,
            "load_seconds": summary.seconds,
            "peak_rss_bytes": peak_memory(),
        }));
    }
    let mut table = Table::new(&["ratings", &format!(">{}", grouped(count))]);
    table.row(["users".to_owned(), grouped(ratings.n_users())]);
    table.row(["items".to_owned(), grouped(ratings.n_items())]);
    table.row(["density".to_owned(), format!("{:.3} %", 100.0 * density)]);
    table.row(["smallest".to_owned(), low.to_string()]);
    table.row(["mean".to_owned(), format!("{mean:.4}")]);
    table.row(["largest".to_owned(), high.to_string()]);
    table.row(["rows skipped".to_owned(), grouped(summary.skipped as usize)]);
    table.row(["read in".to_owned(), seconds(summary.seconds)]);
    context.say(table)
}
