//! `gradus transform FILE DATA`

use crate::columns::write_columns;
use crate::input::Options;
use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::predict::{RowsRequest, transform};
use gradus_core::dataset::TableFile;
use std::path::PathBuf;

#[derive(Args)]
struct TransformArgs {
    /// The model
    model: PathBuf,

    /// Rows of features; `-` for standard input
    data: PathBuf,

    /// Where to write the transformed features, CSV, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Take transformed features back to those they came from
    #[arg(long)]
    inverse: bool,

    /// Write the columns of the file before the results
    #[arg(long)]
    keep: bool,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    input: Options<TableFile>,
}

pub fn command() -> Command {
    TransformArgs::augment_args(
        Command::new("transform").about(
            "Transform the features of each row of a file, or back; of a clustering its distances to the clusters",
        ),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: TransformArgs = arguments(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model, &args.data]);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let fitted = crate::registry().load(&args.model)?;
    let request = RowsRequest {
        path: args.data.clone(),
        table: args.input.0,
        keep: args.keep,
        probabilities: false,
        inverse: args.inverse,
    };
    let found = context.reading(|remarks| transform(&fitted, &request, remarks))?;
    destination.write(|out| Ok(write_columns(out, &found, context.json)?))?;
    if let Some(path) = destination.path() {
        context.remark(format_args!("{} rows in {}", grouped(found.rows), path.display()));
    }
    Ok(())
}
