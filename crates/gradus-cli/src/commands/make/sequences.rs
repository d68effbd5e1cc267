//! Pairs of texts where the second is a function of the first.

use super::make;
use crate::output::{Context, Outcome};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command, ValueEnum};
use gradus_app::make::{MakeData, MakeRequest};
use gradus_data::make::{SequenceTask, SequencesSpec};
use std::path::PathBuf;

#[derive(Clone, Copy, ValueEnum)]
enum Task {
    /// The letters of a word from behind
    Reverse,
    /// The letters of a word in the order of the alphabet
    Sort,
    /// The sum of two numbers
    Addition,
}

#[derive(Args)]
struct SequencesArgs {
    /// What becomes of a source
    #[arg(long, value_enum, default_value = "reverse")]
    task: Task,

    /// Number of pairs; no source is there twice
    #[arg(long, value_name = "N", default_value_t = SequencesSpec::default().count)]
    count: usize,

    /// Most letters of a word, or digits of a summand [default: 10 letters, 3 digits]
    #[arg(long, value_name = "N")]
    length: Option<usize>,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where to write the CSV file, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,
}

pub(super) fn command() -> Command {
    SequencesArgs::augment_args(Command::new("sequences").about(
        "Pairs of texts, source and target, to learn a function of texts from: reverse, sort, addition",
    ))
    .after_help(outputs::RULE)
}

pub(super) fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<SequencesArgs>(matches)?;
    let task = match args.task {
        Task::Reverse => SequenceTask::Reverse,
        Task::Sort => SequenceTask::Sort,
        Task::Addition => SequenceTask::Addition,
    };
    let spec = SequencesSpec { count: args.count, task, length: args.length };
    let mut plan = FilePlan::new(args.force, []);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let request = MakeRequest { data: MakeData::Sequences(spec), seed: args.seed };
    make(&request, &destination, context)
}
