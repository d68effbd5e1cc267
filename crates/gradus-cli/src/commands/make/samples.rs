//! Tables of samples with a known truth behind them.

use super::make;
use crate::output::{Context, Outcome};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command, ValueEnum};
use gradus_app::make::{MakeData, MakeRequest};
use gradus_data::make::{BlobsSpec, PlaneFigure, PlaneSpec, RegressionSpec, TargetKind};
use std::path::PathBuf;

#[derive(Clone, Copy, ValueEnum)]
enum TargetName {
    /// A number
    Value,
    /// 0 or 1, with the logistic probability of that number
    Class,
}

#[derive(Args)]
struct TableArgs {
    /// Number of samples
    #[arg(long, value_name = "N", default_value_t = 1000)]
    samples: usize,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where to write the CSV file, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,
}

impl TableArgs {
    fn destination(&self) -> Outcome<Destination> {
        FilePlan::new(self.force, []).table_or_stdout("--output", self.output.as_deref())
    }
}

#[derive(Args)]
struct RegressionArgs {
    #[command(flatten)]
    table: TableArgs,

    /// Number of features
    #[arg(long, value_name = "N", default_value_t = RegressionSpec::default().n_features)]
    features: usize,

    /// Number of features that matter [default: all]
    #[arg(long, value_name = "N")]
    informative: Option<usize>,

    /// Standard deviation of the coefficients
    #[arg(long, value_name = "X", default_value_t = RegressionSpec::default().scale)]
    scale: f64,

    /// The value where all features are 0
    #[arg(long, value_name = "X", default_value_t = RegressionSpec::default().intercept, allow_negative_numbers = true)]
    intercept: f64,

    /// Standard deviation of the noise
    #[arg(long, value_name = "X", default_value_t = RegressionSpec::default().noise)]
    noise: f64,

    /// Ratio of the largest to the smallest singular value of the features
    #[arg(long, value_name = "X", default_value_t = RegressionSpec::default().condition)]
    condition: f64,

    /// Share of the targets that is moved far off, or of the classes that is swapped
    #[arg(long, value_name = "SHARE", default_value_t = RegressionSpec::default().outliers)]
    outliers: f64,

    /// Type of the target
    #[arg(long, value_enum, default_value = "value")]
    target: TargetName,
}

#[derive(Args)]
struct BlobsArgs {
    #[command(flatten)]
    table: TableArgs,

    /// Number of features
    #[arg(long, value_name = "N", default_value_t = BlobsSpec::default().n_features)]
    features: usize,

    /// Number of classes
    #[arg(long, value_name = "N", default_value_t = BlobsSpec::default().n_centers)]
    centers: usize,

    /// Standard deviation of the centres' coordinates
    #[arg(long, value_name = "X", default_value_t = BlobsSpec::default().separation)]
    separation: f64,

    /// Standard deviation of the points around their centre, one for all or one each
    #[arg(long, value_name = "X,…", value_delimiter = ',', default_value = "1")]
    spread: Vec<f64>,

    /// How often each centre is drawn [default: all alike]
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    weights: Vec<f64>,
}

#[derive(Args)]
struct PlaneArgs {
    #[command(flatten)]
    table: TableArgs,

    /// Number of rings or clouds [default: 2 rings, 8 clouds; moons are 2]
    #[arg(long, value_name = "N")]
    parts: Option<usize>,

    /// Standard deviation of the points around the figure [default: 0.1, of a mixture 0.05]
    #[arg(long, value_name = "X")]
    noise: Option<f64>,
}

pub(super) fn commands() -> [Command; 5] {
    let plane = |name: &'static str, about: &'static str| {
        PlaneArgs::augment_args(Command::new(name).about(about)).after_help(outputs::RULE)
    };
    [
        RegressionArgs::augment_args(Command::new("regression").about(
            "A table of features x1, x2, … and a target y that depends on them linearly, with noise",
        ))
        .after_help(outputs::RULE),
        BlobsArgs::augment_args(Command::new("blobs").about(
            "A table of features x1, x2, … and a class y: Gaussian clouds around random centres",
        ))
        .after_help(outputs::RULE),
        plane("moons", "Points x1, x2 near two half circles, and the class y: which of the two"),
        plane("rings", "Points x1, x2 near circles around 0, and the class y: which of them"),
        plane("mixture", "Points x1, x2 of Gaussian clouds on a circle, and the class y: which of them"),
    ]
}

pub(super) fn regression(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<RegressionArgs>(matches)?;
    let spec = RegressionSpec {
        informative: args.informative,
        scale: args.scale,
        intercept: args.intercept,
        noise: args.noise,
        condition: args.condition,
        outliers: args.outliers,
        target: match args.target {
            TargetName::Value => TargetKind::Value,
            TargetName::Class => TargetKind::Class,
        },
        ..RegressionSpec::new(args.table.samples, args.features)
    };
    let request = MakeRequest { data: MakeData::Regression(spec), seed: args.table.seed };
    make(&request, &args.table.destination()?, context)
}

pub(super) fn blobs(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<BlobsArgs>(matches)?;
    let spec = BlobsSpec {
        separation: args.separation,
        spreads: args.spread,
        weights: args.weights,
        ..BlobsSpec::new(args.table.samples, args.features, args.centers)
    };
    let request = MakeRequest { data: MakeData::Blobs(spec), seed: args.table.seed };
    make(&request, &args.table.destination()?, context)
}

pub(super) fn plane(name: &str, matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<PlaneArgs>(matches)?;
    let figure = match name {
        "rings" => PlaneFigure::Rings,
        "mixture" => PlaneFigure::Mixture,
        _ => PlaneFigure::Moons,
    };
    let spec = PlaneSpec::new(figure, args.table.samples).n_parts(args.parts).noise(args.noise);
    let request = MakeRequest { data: MakeData::Plane(spec), seed: args.table.seed };
    make(&request, &args.table.destination()?, context)
}
