//! `gradus make KIND`

mod samples;
mod sequences;

use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command, ValueEnum};
use gradus_app::make::{MakeData, MakeRequest};
use gradus_data::make::{ItemIds, RatingsSpec};
use std::path::PathBuf;

#[derive(Clone, Copy, ValueEnum)]
enum IdKind {
    /// Film titles
    Names,
    /// Numbers
    Integer,
}

#[derive(Args)]
struct RatingsArgs {
    /// Number of users
    #[arg(long, value_name = "N", default_value_t = RatingsSpec::default().users)]
    users: usize,

    /// Number of items
    #[arg(long, value_name = "N", default_value_t = RatingsSpec::default().items)]
    items: usize,

    /// Number of ratings
    #[arg(long, value_name = "N", default_value_t = RatingsSpec::default().count)]
    count: usize,

    /// Number of planted factors
    #[arg(long, value_name = "N", default_value_t = RatingsSpec::default().rank)]
    rank: usize,

    /// Standard deviation of the noise
    #[arg(long, value_name = "X", default_value_t = RatingsSpec::default().noise)]
    noise: f64,

    /// Names of items
    #[arg(long, value_enum, default_value = "names")]
    ids: IdKind,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where to write the CSV file, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    Command::new("make")
        .about("Make data with a known truth behind it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            RatingsArgs::augment_args(Command::new("ratings").about(
                "Ratings of a believable catalogue: popular and obscure items, planted factors, noise",
            ))
            .after_help(outputs::RULE),
        )
        .subcommands(samples::commands())
        .subcommand(sequences::command())
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    match matches.subcommand() {
        Some(("ratings", matches)) => ratings(matches, context),
        Some(("regression", matches)) => samples::regression(matches, context),
        Some(("blobs", matches)) => samples::blobs(matches, context),
        Some(("sequences", matches)) => sequences::run(matches, context),
        Some((name @ ("moons" | "rings" | "mixture"), matches)) => {
            samples::plane(name, matches, context)
        }
        _ => Err(Failure::Usage("make: no kind of data; see `gradus make --help`".into())),
    }
}

fn ratings(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<RatingsArgs>(matches)?;
    let spec = RatingsSpec {
        rank: args.rank,
        noise: args.noise,
        ids: match args.ids {
            IdKind::Names => ItemIds::Names,
            IdKind::Integer => ItemIds::Integer,
        },
        ..RatingsSpec::new(args.users, args.items, args.count)
    };
    let mut plan = FilePlan::new(args.force, []);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let request = MakeRequest { data: MakeData::Ratings(spec), seed: args.seed };
    make(&request, &destination, context)
}

fn make(request: &MakeRequest, destination: &Destination, context: Context) -> Outcome {
    let made = request.make()?;
    destination.write(|out| Ok(made.write(out)?))?;
    if let Some(path) = destination.path() {
        let (n, units) = (grouped(made.count), made.units);
        context.remark(format_args!("{n} {units} in {}", path.display()));
    }
    Ok(())
}
