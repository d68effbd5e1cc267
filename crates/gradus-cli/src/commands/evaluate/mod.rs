//! `gradus evaluate MODEL TEST`

mod against;
mod ranking;
pub mod rating;
mod samples;
mod units;

use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_core::capability::Capability;
use std::path::PathBuf;

#[derive(Args)]
struct EvaluateArgs {
    /// The model
    model: PathBuf,

    /// Data the model has not seen; `-` for standard input
    data: PathBuf,

    /// The columns that hold the truth, for a model of features [default: as in training]
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    target: Vec<String>,

    /// Another model of features to compare with, sample by sample
    #[arg(long, value_name = "MODEL")]
    against: Option<PathBuf>,

    /// Judge the ranking of items instead of the error of ratings; the default for models of
    /// clicks, plays and purchases
    #[arg(long, help_heading = "Ranking")]
    ranking: bool,

    /// Lengths of list to judge
    #[arg(
        long,
        value_name = "K,…",
        value_delimiter = ',',
        default_value = "5,10,20",
        help_heading = "Ranking"
    )]
    at: Vec<usize>,

    /// Test ratings of at least this count as relevant [default: all for models of clicks, plays
    /// and purchases; for models of ratings the upper quarter of the scale, 4 of 1–5]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Ranking")]
    threshold: Option<f32>,

    /// Rank each relevant item among N random items the user has not rated instead of all items;
    /// such figures cannot be compared with those of the full ranking
    #[arg(long, value_name = "N", help_heading = "Ranking")]
    sampled: Option<usize>,

    /// Seed of that draw
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Ranking")]
    seed: u64,

    /// Also the area under the ROC curve, which takes the full ranking of every user
    #[arg(long, help_heading = "Ranking")]
    auc: bool,

    /// Ratings to fold users in by, as if the model had never seen them
    #[arg(long, value_name = "FILE", help_heading = "Ranking")]
    fold_in: Option<PathBuf>,

    /// Rank also what the user has in training
    #[arg(long, help_heading = "Ranking")]
    include_seen: bool,

    /// The training ratings, for a model that did not keep them: what not to recommend again, and
    /// what the baselines are made of
    #[arg(long, value_name = "FILE")]
    train: Option<PathBuf>,

    /// An option of reading that this command has no flag for, for a model of another kind of data
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Reading the data")]
    option: Vec<String>,

    #[command(flatten)]
    input: DataArgs,
}

/// Warns if at least this share of the data was trained on.
const KNOWN: f64 = 0.5;

/// Says if much of the data is what the model was fitted to: its error there is no estimate of its
/// error on new data. Gives the share, for programs.
fn warn_of_training_data(
    share: Option<f64>,
    path: &std::path::Path,
    context: Context,
) -> serde_json::Value {
    if let Some(share) = share.filter(|&share| share >= KNOWN) {
        let how_much = match share {
            1.0 => "all".to_owned(),
            _ => format!("about {:.0} %", 100.0 * share),
        };
        context.remark(format_args!(
            "warning: {how_much} of {} is data the model was fitted to; what follows says little \
             about new data",
            path.display()
        ));
    }
    serde_json::json!(share)
}

pub fn command() -> Command {
    EvaluateArgs::augment_args(
        Command::new("evaluate")
            .about("Measure a model on data it has not seen: its error, or how well it ranks"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<EvaluateArgs>(matches)?;
    let fitted = crate::registry().load(&args.model)?;
    let traits = crate::registry().find(fitted.kind)?.traits();
    if traits.predicts() {
        return samples::run(&args, &fitted, context);
    }
    if !traits.can(Capability::Recommend) {
        return units::run(&args, matches, &fitted, context);
    }
    if args.against.is_some() {
        return Err(Failure::Usage(format!(
            "--against compares models of features, and `{}` is a recommender",
            fitted.kind
        )));
    }
    let implicit = traits.is_implicit();
    if implicit || args.ranking {
        return ranking::run(&args, &fitted, implicit, context);
    }
    let set = [
        ("--sampled", args.sampled.is_some()),
        ("--threshold", args.threshold.is_some()),
        ("--auc", args.auc),
        ("--fold-in", args.fold_in.is_some()),
        ("--include-seen", args.include_seen),
    ];
    if let Some((flag, _)) = set.iter().find(|(_, is_set)| *is_set) {
        return Err(Failure::Usage(format!(
            "{flag} is about rankings, and `{}` predicts ratings: say --ranking as well",
            fitted.kind
        )));
    }
    rating::run(&args, &fitted, context)
}
