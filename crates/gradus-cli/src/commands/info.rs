//! `gradus info FILE`

mod table;

use crate::input::DataArgs;
use crate::output::{Context, Outcome, Table, grouped, peak_memory, seconds};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::linear::LinearModel;
use gradus::page::{largest_coefficients, linear_model, score_names, shown};
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict as _;
use gradus_data::rating_columns;
use gradus_file::Reader;
use gradus_file::output::FileKind;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Args)]
struct InfoArgs {
    /// A model, a checkpoint, a table or a file of ratings
    file: PathBuf,

    /// Read a model or checkpoint to its end and compare everything in it with its checksums
    #[arg(long)]
    verify: bool,

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
    let args = arguments::<InfoArgs>(matches)?;
    let kind = FileKind::of(&args.file)?;
    let named = args.file.extension().is_some_and(|extension| extension == "gradus");
    let is_ours = matches!(kind, Some(FileKind::Model | FileKind::Checkpoint));
    if args.verify {
        verify(&args.file, context)
    } else if kind == Some(FileKind::Checkpoint) {
        checkpoint(&args.file, context)
    } else if is_ours || named {
        model(&args.file, &crate::registry().load(&args.file)?, context)
    } else if args.table {
        table::run(&args.file, args.input.table(), context)
    } else {
        data(&args, context)
    }
}

/// Compares everything in a file with its checksums.
fn verify(path: &Path, context: Context) -> Outcome {
    let mut file = Reader::open(path)?;
    file.verify()?;
    let (tensors, sums) = (file.tensors().len(), file.has_checksums());
    if context.json {
        return context.json(&json!({
            "file": path.display().to_string(),
            "kind": file.kind(),
            "tensors": tensors,
            "verified": sums,
        }));
    }
    let path = path.display();
    context.say(if sums {
        format!("{path}: header and {tensors} tensors match their checksums")
    } else {
        format!("{path}: written by an early version, which recorded no checksums")
    })
}

/// What the checkpoint of a fit holds.
fn checkpoint(path: &Path, context: Context) -> Outcome {
    let file = Reader::open(path)?;
    let name = file.kind().trim_end_matches(".checkpoint").to_owned();
    // Checkpoints of version 0.1 have another key.
    let key = if file.header().contains_key("loop") { "loop" } else { "course" };
    let at: Value = file.get(key)?;
    let params: Map<String, Value> = file.get("params")?;
    if context.json {
        return context.json(&json!({
            "checkpoint": name,
            "file": path.display().to_string(),
            "restart": at["restart"],
            "iteration": at["iteration"],
            "params": params,
        }));
    }
    let mut table = Table::new(&["checkpoint of", &name]);
    table.row(["iterations".to_owned(), at["iteration"].to_string()]);
    for (name, value) in &params {
        table.row([name.replace('_', "-"), shown(value)]);
    }
    context.say(table)
}
/// The most columns of ratings without names: user, item, value, time.
const RATING_COLUMNS: usize = 4;

fn model(path: &Path, fitted: &AnyFitted, context: Context) -> Outcome {
    let facts: Map<String, Value> =
        fitted.model.summary().into_iter().map(|(name, fact)| (name.into(), fact.into())).collect();
    let linear = linear_model(fitted);
    if context.json {
        return context.json(&json!({
            "model": fitted.kind,
            "file": path.display().to_string(),
            "facts": facts,
            "params": fitted.params,
            "report": fitted.report,
            "titles": fitted.titles.as_ref().map(gradus_data::Titles::len),
            "coefficients": linear.map(coefficients_json),
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
    if let Some(titles) = &fitted.titles {
        table.row(["titles kept".to_owned(), grouped(titles.len())]);
    }
    context.say(table)?;
    if let Some(model) = linear {
        coefficients(model, context)?;
    }
    for note in &report.notes {
        context.say(format_args!("note: {note}"))?;
    }
    Ok(())
}

/// Features whose coefficients are shown.
const COEFFICIENTS: usize = 20;
/// Scores (targets or classes) whose coefficients are shown side by side.
const SCORES: usize = 6;

/// The largest coefficients.
fn coefficients(model: &LinearModel, context: Context) -> Outcome {
    let names = model.inputs().feature_names();
    let (order, used) = largest_coefficients(model, COEFFICIENTS);
    let w = model.coefficients();
    let scores = score_names(model);
    let shown = w.n_rows().min(SCORES);
    let mut heads = vec!["coefficient of".to_owned()];
    heads.extend(scores.iter().take(shown).map(|name| format!(">{name}")));
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for &feature in &order {
        let mut row = vec![names[feature].clone()];
        row.extend((0..shown).map(|score| figure(w[(score, feature)])));
        table.row(row);
    }
    let mut row = vec!["(intercept)".to_owned()];
    row.extend(model.intercepts().iter().take(shown).map(|&value| figure(value)));
    table.row(row);
    context.say("")?;
    context.say(table)?;
    let more = if used > order.len() {
        format!("the {} largest of {} coefficients", order.len(), grouped(used))
    } else {
        format!("all {} coefficients", grouped(used))
    };
    let classes = if w.n_rows() > shown {
        format!(", of the first {shown} of {} classes or targets", w.n_rows())
    } else {
        String::new()
    };
    context.say(format_args!(
        "{more} that are not 0, of {} features{classes}; for features as they are, not scaled",
        grouped(w.n_cols())
    ))
}

/// All coefficients that are not 0.
fn coefficients_json(model: &LinearModel) -> Value {
    let names = model.inputs().feature_names();
    let w = model.coefficients();
    let (order, _) = largest_coefficients(model, usize::MAX);
    let of = |score: usize| -> Map<String, Value> {
        order.iter().map(|&feature| (names[feature].clone(), w[(score, feature)].into())).collect()
    };
    let scores = score_names(model).into_iter().enumerate().take(w.n_rows());
    let scores = scores.map(|(score, name)| {
        json!({"name": name, "intercept": model.intercepts()[score], "coefficients": of(score)})
    });
    scores.collect()
}

/// Five significant digits.
fn figure(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e6).contains(&x.abs()) {
        return format!("{x:.4e}");
    }
    let digits = if x == 0.0 { 0 } else { x.abs().log10().floor() as i32 };
    format!("{x:.*}", usize::try_from(4 - digits).unwrap_or(0))
}

/// Whether a file is one of ratings: its header names users and items, or it has no header and no more columns than
/// ratings have, or its rows are of different lengths, as those of an adjacency list.
fn is_ratings(args: &InfoArgs, context: Context) -> bool {
    let Ok(table) = args.input.table().head(&args.file) else { return true };
    let names: Vec<String> = table.names().iter().map(|&name| name.to_owned()).collect();
    let named = rating_columns(&names).iter().take(2).all(Option::is_some);
    let header = table.source().is_none_or(|source| source.layout.header);
    let quiet = Context { quiet: true, ..context };
    // One column may be lists of items behind a user that blanks separate.
    let lists =
        || table.n_cols() == 1 && args.input.ratings_or_interactions(&args.file, quiet).is_ok();
    named || !header && (2..=RATING_COLUMNS).contains(&table.n_cols()) || lists()
}

fn data(args: &InfoArgs, context: Context) -> Outcome {
    // A pipe cannot be read twice.
    let guess = !args.input.0.says_ratings() && args.file.is_file();
    if guess && !is_ratings(args, context) {
        return table::run(&args.file, args.input.table(), context);
    }
    let (ratings, summary) = args.input.ratings_or_interactions(&args.file, context)?;
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
