//! `gradus generate FILE -n 100`

use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use std::path::PathBuf;

#[derive(Args)]
struct GenerateArgs {
    /// The model
    model: PathBuf,

    /// Number of samples to draw
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    number: usize,

    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Output file, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    GenerateArgs::augment_args(
        Command::new("generate").about("Draw new data from a model of a distribution"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: GenerateArgs = arguments(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model]);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let fitted = crate::registry().load(&args.model)?;
    let data = fitted.generator()?.generate(args.number, args.seed)?;
    destination.write(|out| Ok(data.write(out)?))?;
    if let Some(path) = destination.path() {
        let (n, kind) = (grouped(data.len()), data.kind());
        context.remark(format_args!("{n} {kind} in {}", path.display()));
    }
    Ok(())
}
