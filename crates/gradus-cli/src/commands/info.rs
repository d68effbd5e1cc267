//! `gradus info FILE`

use crate::input::DataArgs;
use crate::output::{Context, Outcome, Table, grouped, peak_memory, seconds};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::page::shown;
use gradus_app::info::{
    CheckpointInfo, Coefficients, InfoAnswer, InfoRequest, ModelInfo, RatingsInfo, TableInfo,
    VerifiedInfo,
};
use serde_json::json;
use std::path::PathBuf;

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
    let request = InfoRequest {
        file: args.file,
        verify: args.verify,
        table: args.table,
        options: args.input.0,
    };
    let found = context.reading(|remarks| crate::app().info(&request, remarks))?;
    if context.json {
        let mut record = json!(found);
        if matches!(found, InfoAnswer::Ratings(_)) {
            record["peak_rss_bytes"] = peak_memory().into();
        }
        return context.json(&record);
    }
    match &found {
        InfoAnswer::Verified(found) => context.say(verified(found)),
        InfoAnswer::Checkpoint(found) => context.say(checkpoint(found)),
        InfoAnswer::Model(found) => model(found, context),
        InfoAnswer::Table(found) => table(found, context),
        InfoAnswer::Ratings(found) => context.say(ratings(found)),
    }
}

fn verified(found: &VerifiedInfo) -> String {
    let VerifiedInfo { file, tensors, .. } = found;
    if found.verified {
        format!("{file}: header and {tensors} tensors match their checksums")
    } else {
        format!("{file}: written by an early version, which recorded no checksums")
    }
}

fn checkpoint(found: &CheckpointInfo) -> Table {
    let mut table = Table::new(&["checkpoint of", &found.checkpoint]);
    table.row(["iterations".to_owned(), found.iteration.to_string()]);
    for (name, value) in &found.params {
        table.row([name.replace('_', "-"), shown(value)]);
    }
    table
}

fn model(found: &ModelInfo, context: Context) -> Outcome {
    let report = &found.report;
    let mut table = Table::new(&["model", found.model]);
    for (name, value) in &found.summary {
        table.row([name.as_str(), value.as_str().unwrap_or_default()]);
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
    for (name, value) in &found.params {
        table.row([name.replace('_', "-"), shown(value)]);
    }
    if let Some(titles) = found.titles {
        table.row(["titles kept".to_owned(), grouped(titles)]);
    }
    context.say(table)?;
    if let Some(found) = &found.coefficients {
        coefficients(found, context)?;
    }
    for choice in &report.chosen {
        context.say(format_args!("chosen: {choice}"))?;
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
fn coefficients(found: &Coefficients, context: Context) -> Outcome {
    let (used, scores) = (found.features.len(), found.scores.len());
    let (shown, of_scores) = (used.min(COEFFICIENTS), &found.scores[..scores.min(SCORES)]);
    let mut heads = vec!["coefficient of".to_owned()];
    heads.extend(of_scores.iter().map(|score| format!(">{}", score.name)));
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for (at, feature) in found.features.iter().enumerate().take(shown) {
        let mut row = vec![feature.clone()];
        row.extend(of_scores.iter().map(|score| figure(score.values[at])));
        table.row(row);
    }
    let mut row = vec!["(intercept)".to_owned()];
    row.extend(of_scores.iter().map(|score| figure(score.intercept)));
    table.row(row);
    context.say("")?;
    context.say(table)?;
    let more = if used > shown {
        format!("the {shown} largest of {} coefficients", grouped(used))
    } else {
        format!("all {} coefficients", grouped(used))
    };
    let classes = if scores > SCORES {
        format!(", of the first {SCORES} of {scores} classes or targets")
    } else {
        String::new()
    };
    context.say(format_args!(
        "{more} that are not 0, of {} features{classes}; for features as they are, not scaled",
        grouped(found.n_features)
    ))
}

/// Five significant digits.
fn figure(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e6).contains(&x.abs()) {
        return format!("{x:.4e}");
    }
    let digits = if x == 0.0 { 0 } else { x.abs().log10().floor() as i32 };
    format!("{x:.*}", usize::try_from(4 - digits).unwrap_or(0))
}

fn table(found: &TableInfo, context: Context) -> Outcome {
    let layout = found.layout.as_ref().map(ToString::to_string).unwrap_or_default();
    let (rows, columns) = (grouped(found.rows), grouped(found.columns.len()));
    context.say(format_args!("{rows} rows, {columns} columns; {layout}"))?;
    let mut shown = Table::new(&["", "column", "type", ">missing", ">different", "range or words"]);
    for (at, column) in found.columns.iter().enumerate() {
        let what = match column.range {
            Some(range) => format!("{} to {}, mean {:.4}", range.min, range.max, range.mean),
            None => {
                let words = column.most_frequent.as_deref().unwrap_or_default();
                let some: Vec<String> = words
                    .iter()
                    .map(|(word, n)| format!("{} ({})", start(word), grouped(*n)))
                    .collect();
                let more = if column.different > words.len() { ", …" } else { "" };
                format!("{}{more}", some.join(", "))
            }
        };
        shown.row([
            (at + 1).to_string(),
            column.name.clone(),
            column.kind.to_owned(),
            grouped(column.missing),
            grouped(column.different),
            what,
        ]);
    }
    context.say(shown)
}

/// The start of a word; a column of texts has long ones.
fn start(word: &str) -> String {
    const MOST: usize = 32;
    match word.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

fn ratings(found: &RatingsInfo) -> Table {
    let mut table = Table::new(&["ratings", &format!(">{}", grouped(found.ratings))]);
    table.row(["users".to_owned(), grouped(found.users)]);
    table.row(["items".to_owned(), grouped(found.items)]);
    table.row(["density".to_owned(), format!("{:.3} %", 100.0 * found.density)]);
    table.row(["smallest".to_owned(), found.min.to_string()]);
    table.row(["mean".to_owned(), format!("{:.4}", found.mean)]);
    table.row(["largest".to_owned(), found.max.to_string()]);
    table.row(["rows skipped".to_owned(), grouped(found.skipped as usize)]);
    table.row(["read in".to_owned(), seconds(found.load_seconds)]);
    table
}
