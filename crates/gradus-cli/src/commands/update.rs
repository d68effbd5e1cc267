//! `gradus update FILE EVENTS -o NEW`

use crate::input::DataArgs;
use crate::output::{Context, Outcome, grouped, seconds};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::update::{UpdateRequest, update};
use gradus_file::output::FileKind;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct UpdateArgs {
    /// The model
    model: PathBuf,

    /// The new ratings: new pairs, changed values, new users, new items; `-` for standard input
    events: PathBuf,

    /// Where to save the new model; may be the old one's file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Solve the known items with new ratings again, too, not only the users and the new items
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
    let request = UpdateRequest { events: args.events, options: args.input.0, items: args.items };
    let found = context.reading(|remarks| update(&mut fitted, &request, remarks))?;
    fitted.save_to(&output)?;
    if context.json {
        let mut record = json!(found);
        record["file"] = args.output.display().to_string().into();
        return context.json(&record);
    }
    if context.quiet {
        return Ok(());
    }
    let updated = &found.updated;
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
        seconds(found.update_seconds)
    ))?;
    context.say(format_args!(
        "saved {}; {} ratings added since the fit",
        args.output.display(),
        grouped(updated.since_fit as usize)
    ))
}
