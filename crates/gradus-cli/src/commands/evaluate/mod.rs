//! `gradus evaluate MODEL TEST`

mod against;
mod clusters;
mod distances;
mod ranking;
mod rating;
mod samples;
mod words;

use crate::input::{DataArgs, options_by_name};
use crate::output::{Context, Failure, Outcome, Table, grouped};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::evaluate::{
    DistancesRequest, EvaluateRequest, Evaluation, RankingRequest, evaluate_words,
};
use gradus_core::capability::Capability;
use std::path::PathBuf;

#[derive(Args)]
struct EvaluateArgs {
    /// The model
    model: PathBuf,

    /// Data the model has not seen; `-` for standard input. Of vectors of words: pairs of words with their similarity, as
    /// WordSim-353 and SimLex-999 have them, or analogies as Google's
    data: PathBuf,

    /// The columns that hold the truth, for a model of features [default: as in training]
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    target: Vec<String>,

    /// Another model of features to compare with, sample by sample
    #[arg(long, value_name = "MODEL")]
    against: Option<PathBuf>,

    /// A network that predicts classes: samples of a generative model are compared with the data over its features [default: of tables over
    /// the standardised columns]
    #[arg(long, value_name = "MODEL", help_heading = "Generative models")]
    classifier: Option<PathBuf>,

    /// Samples to draw [default: as many as there are data, at most 5,000]
    #[arg(long, value_name = "N", help_heading = "Generative models")]
    samples: Option<usize>,

    /// Steps of the draw from noise to data
    #[arg(long, value_name = "N", help_heading = "Generative models")]
    steps: Option<usize>,

    /// Strength of the guidance of the draw
    #[arg(long, value_name = "X", help_heading = "Generative models")]
    guidance: Option<f64>,

    /// Where samples are drawn: cpu or gpu
    #[arg(long, value_name = "NAME", help_heading = "Generative models")]
    device: Option<String>,

    /// Evaluate the ranking of items instead of the error of ratings; the default for models of
    /// clicks, plays and purchases
    #[arg(long, help_heading = "Ranking")]
    ranking: bool,

    /// Lengths of list to evaluate
    #[arg(
        long,
        value_name = "K,…",
        value_delimiter = ',',
        default_values_t = RankingRequest::default().at,
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
    #[arg(long, value_name = "N", default_value_t = RankingRequest::default().seed, help_heading = "Ranking")]
    seed: u64,

    /// Compute the area under the ROC curve, too, which takes the full ranking of every user
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

pub fn command() -> Command {
    EvaluateArgs::augment_args(
        Command::new("evaluate")
            .about("Measure a model on data it has not seen: its error, or how well it ranks"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<EvaluateArgs>(matches)?;
    if let Some(vectors) = words::vectors(&args.model, context)? {
        let found = evaluate_words(vectors.vectors()?, &args.data)?;
        if context.json {
            return context.json(&serde_json::json!(found));
        }
        return words::show(&found, context);
    }
    let fitted = crate::registry().load(&args.model)?;
    let model = crate::registry().find(fitted.kind)?;
    let ranks =
        model.traits().can(Capability::Recommend) && (model.traits().is_implicit() || args.ranking);
    let set = [
        ("--sampled", args.sampled.is_some()),
        ("--threshold", args.threshold.is_some()),
        ("--auc", args.auc),
        ("--fold-in", args.fold_in.is_some()),
        ("--include-seen", args.include_seen),
    ];
    if let Some((flag, _)) = set.iter().find(|(_, is_set)| *is_set && !ranks) {
        return Err(Failure::Usage(format!(
            "{flag} is about rankings, and `{}` {}",
            fitted.kind,
            if model.traits().can(Capability::Recommend) {
                "predicts ratings: say --ranking as well"
            } else {
                "is no recommender"
            }
        )));
    }
    let ranking = RankingRequest {
        at: args.at,
        threshold: args.threshold,
        sampled: args.sampled,
        seed: args.seed,
        auc: args.auc,
        fold_in: args.fold_in,
        include_seen: args.include_seen,
    };
    let request = EvaluateRequest {
        data: args.data,
        options: args.input.0,
        others: options_by_name(&args.option, model.data())?,
        target: args.target,
        name: Some(args.model.display().to_string()),
        against: args.against,
        train: args.train,
        distances: DistancesRequest {
            classifier: args.classifier,
            samples: args.samples,
            steps: args.steps,
            guidance: args.guidance,
            device: args.device,
            seed: DistancesRequest::default().seed,
        },
        ranking: ranks.then_some(ranking),
    };
    let found = context.reading(|remarks| crate::app().evaluate(&fitted, &request, remarks))?;
    if context.json {
        return context.json(&serde_json::json!(found));
    }
    match &found {
        Evaluation::Ratings(found) => rating::show(found, context),
        Evaluation::Ranking(found) => ranking::show(found, args.include_seen, context),
        Evaluation::Values(found) => samples::show_values(found, context),
        Evaluation::Classes(found) => samples::show_classes(found, context),
        Evaluation::Words(found) => words::show(found, context),
        Evaluation::Units(found) => {
            let mut table = Table::new(&["", ">score", "95 %"]);
            let interval = samples::between(&found.interval);
            table.row([found.metric.to_owned(), samples::short(found.value), interval]);
            for (name, value) in &found.point_estimates {
                table.row([(*name).to_owned(), samples::short(*value), String::new()]);
            }
            for other in &found.further {
                let interval = samples::between(&other.interval);
                table.row([other.metric.to_owned(), samples::short(other.value), interval]);
            }
            context.say(table)?;
            let n = grouped(found.count);
            let exact = found.further.iter().any(|other| other.interval.method.is_exact());
            let also = if exact { ", of shares exact" } else { "" };
            context.say(format_args!("on {n} {}; interval by bootstrap{also}", found.units))?;
            found.clusters.as_ref().map_or(Ok(()), |found| clusters::show(found, context))?;
            found.distances.as_ref().map_or(Ok(()), |found| distances::show(found, context))
        }
        Evaluation::Distances(found) => distances::show(found, context),
    }
}
