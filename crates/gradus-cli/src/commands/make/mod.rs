//! `gradus make KIND`

mod samples;

use crate::columns::quoted;
use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command, ValueEnum};
use gradus_data::make::{ItemIds, RatingsSpec};
use std::io::Write;
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
    #[arg(long, value_name = "N", default_value_t = 1000)]
    users: usize,

    /// Number of items
    #[arg(long, value_name = "N", default_value_t = 500)]
    items: usize,

    /// Number of ratings
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    count: usize,

    /// Number of planted factors
    #[arg(long, value_name = "N", default_value_t = 8)]
    rank: usize,

    /// Standard deviation of the noise
    #[arg(long, value_name = "X", default_value_t = 0.7)]
    noise: f64,

    /// What items are called
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
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    match matches.subcommand() {
        Some(("ratings", matches)) => ratings(matches, context),
        Some(("regression", matches)) => samples::regression(matches, context),
        Some(("blobs", matches)) => samples::blobs(matches, context),
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
    destination.write(|out| write(out, &spec, args.seed))?;
    if let Some(path) = destination.path() {
        context.remark(format_args!("{} ratings in {}", grouped(args.count), path.display()));
    }
    Ok(())
}

/// Writes the ratings block by block, so that memory does not grow with their number.
fn write(out: &mut (impl Write + Send), spec: &RatingsSpec, seed: u64) -> Outcome {
    let maker = spec.plan(seed)?;
    let items: Vec<String> = maker.items().iter().map(quoted).collect();
    let users: Vec<String> = maker.users().iter().map(quoted).collect();
    let mut failed = None;
    writeln!(out, "user,item,rating")?;
    let ended = maker.for_each_block(|block| {
        for rating in block.iter() {
            let (user, item) = (&users[rating.user as usize], &items[rating.item as usize]);
            if let Err(error) = writeln!(out, "{user},{item},{}", rating.value) {
                failed = Some(error);
                return Err(gradus::Error::data("cannot write"));
            }
        }
        Ok(())
    });
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(ended?),
    }
}
