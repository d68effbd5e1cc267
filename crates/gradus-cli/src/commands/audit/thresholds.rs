//! `gradus audit thresholds MODEL DATA --group sex -o fair.gradus`

use crate::input::Options;
use crate::output::{Context, Outcome};
use crate::outputs::{FilePlan, ForceArg, RULE};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::audit::fairness::{FairThresholds, RateConstraint};
use gradus_app::audit::fairness::FairnessRequest;
use gradus_core::dataset::TableFile;
use gradus_file::output::FileKind;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct ThresholdsArgs {
    /// The model: one that decides between two classes
    model: PathBuf,

    /// Data the model has not seen, by which the thresholds are chosen; `-` for standard input
    data: PathBuf,

    /// Where to save the model with its thresholds
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Columns of the sensitive attributes, with commas between them; the model then needs them to predict
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', required = true)]
    group: Vec<String>,

    /// The rate that has to be equal in all groups
    #[arg(
        long,
        value_name = "RATE",
        default_value = RateConstraint::DemographicParity.name(),
        value_parser = [
            RateConstraint::DemographicParity.name(),
            RateConstraint::EqualizedOdds.name(),
            RateConstraint::TruePositiveRateParity.name(),
            RateConstraint::FalsePositiveRateParity.name(),
        ]
    )]
    constraint: String,

    /// The column that holds the truth [default: as in training]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    target: Vec<String>,

    /// Seed of the coins that decide between two thresholds
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    table: Options<TableFile>,
}

pub fn command() -> Command {
    ThresholdsArgs::augment_args(Command::new("thresholds").about(
        "Put thresholds for each group around a fitted model, so that a rate is equal in all groups",
    ))
    .after_help(RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<ThresholdsArgs>(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model, &args.data]);
    let output = plan.output("--output", &args.output, FileKind::Model)?;
    let fitted = crate::registry().load(&args.model)?;
    let request = FairnessRequest {
        data: args.data,
        table: args.table.0,
        target: args.target,
        group: args.group,
        ..FairnessRequest::default()
    };
    let params =
        FairThresholds::new().constraint(RateConstraint::parse(&args.constraint)?).seed(args.seed);
    let fair = context
        .reading(|remarks| crate::app().fit_thresholds(fitted, &request, &params, remarks))?;
    fair.save_to(&output)?;
    if context.json {
        return context.json(&json!({ "model": args.output, "notes": fair.report.notes }));
    }
    fair.report.notes.iter().for_each(|note| context.remark(note));
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}
