//! `gradus evaluate FILE DATA`

use crate::input::{DataArgs, Known};
use crate::output::{Context, Failure, Outcome, Table, grouped};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use gradus::select::metrics::rating_errors;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct EvaluateArgs {
    /// The model
    model: PathBuf,

    /// Ratings the model has not seen; `-` for standard input
    data: PathBuf,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    EvaluateArgs::augment_args(
        Command::new("evaluate").about("Measure a model's error on ratings it has not seen"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args =
        EvaluateArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let fitted = gradus::load(&args.model)?;
    let model = fitted.recommend()?;
    let (pairs, truth) = args.input.rated_pairs(&args.data, context)?;
    let Known { indices, users: unknown_users, items: unknown_items } = Known::of(&pairs, model);
    let predicted = model.predict(&indices);
    let errors = rating_errors(&truth, &predicted, None)?;
    if context.json {
        return context.json(&json!({
            "model": fitted.kind,
            "rmse": errors.rmse,
            "mae": errors.mae,
            "count": errors.count,
            "unknown_users": unknown_users,
            "unknown_items": unknown_items,
        }));
    }
    let mut table = Table::new(&["", ">"]);
    table.row(["RMSE".to_owned(), format!("{:.4}", errors.rmse)]);
    table.row(["MAE".to_owned(), format!("{:.4}", errors.mae)]);
    table.row(["ratings".to_owned(), grouped(errors.count)]);
    if unknown_users + unknown_items > 0 {
        table.row(["of users unknown to the model".to_owned(), grouped(unknown_users)]);
        table.row(["of items unknown to the model".to_owned(), grouped(unknown_items)]);
    }
    context.say(table)
}
