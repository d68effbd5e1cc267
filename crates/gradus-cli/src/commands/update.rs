//! `gradus update FILE EVENTS -o NEW`

use crate::input::DataArgs;
use crate::output::{Context, Outcome, grouped, seconds};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_core::update::UpdateOptions;
use gradus_file::output::FileKind;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
struct UpdateArgs {
    /// The model
    model: PathBuf,

    /// The new ratings: new pairs, changed values, new users, new items; `-` for standard input
    events: PathBuf,

    /// Where to save the new model; may be the old one's file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Also solve the known items with new ratings again, not only the users and the new items
    #[arg(long)]
    items: bool,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    UpdateArgs::augment_args(
        Command::new("update").about("Add new ratings to a model without training it again"),
    )
    .after_help(format!(
        "New items are solved with the users held fixed, then the users with new ratings with the \
         items held fixed; every other row of the model stays as it is. --duplicates also says what \
         counts for a pair that was rated before. Train again when much has changed.\n\n{}",
        outputs::RULE
    ))
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<UpdateArgs>(matches)?;
    // The old model is no input here: it is read whole, and the new one may take its place.
    let output = FilePlan::new(args.force, [&args.events]).output(
        "--output",
        &args.output,
        FileKind::Model,
    )?;
    let mut fitted = crate::registry().load(&args.model)?;
    let (events, _) = args.input.ratings(&args.events, context)?;
    let started = Instant::now();
    let how = UpdateOptions { duplicates: args.input.0.duplicates, items: args.items };
    let updated = fitted.update(&events, &how)?;
    let took = started.elapsed().as_secs_f64();
    fitted.save_to(&output)?;
    if context.json {
        return context.json(&json!({
            "model": fitted.kind,
            "file": args.output.display().to_string(),
            "updated": updated,
            "update_seconds": took,
        }));
    }
    if context.quiet {
        return Ok(());
    }
    context.say(format_args!(
        "{} ratings added ({} of pairs rated before): {} users, {} of them new; {} items, {} of \
         them new; {} rows solved in {}",
        grouped(updated.events),
        grouped(updated.changed),
        grouped(updated.users),
        grouped(updated.new_users),
        grouped(updated.items),
        grouped(updated.new_items),
        grouped(updated.rows_solved),
        seconds(took)
    ))?;
    context.say(format_args!(
        "saved {}; {} ratings added since the fit",
        args.output.display(),
        grouped(updated.since_fit as usize)
    ))
}
