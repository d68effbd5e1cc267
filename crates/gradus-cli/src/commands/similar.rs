//! `gradus similar FILE --item ID`

use super::recommend::{find_item, scored_json};
use crate::output::{Context, Failure, Outcome, Table};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct SimilarArgs {
    /// The model
    model: PathBuf,

    /// The item, as the data called it
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    item: String,

    /// How many
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
}

pub fn command() -> Command {
    SimilarArgs::augment_args(
        Command::new("similar").about("List the items most like another (cosine of their factors)"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = SimilarArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let fitted = gradus::load(&args.model)?;
    let model = fitted.recommend()?;
    let item = find_item(model, &args.item)?;
    let found = model.similar_items(item, args.n)?;
    if context.json {
        let found: Vec<_> = found.iter().map(|scored| scored_json(model, scored)).collect();
        return context.json(&json!({"item": model.items().get(item as usize), "similar": found}));
    }
    let mut table = Table::new(&[">", "item", ">similarity"]);
    for (place, scored) in found.iter().enumerate() {
        let name = model.items().get(scored.item as usize).to_string();
        table.row([(place + 1).to_string(), name, format!("{:.4}", scored.score)]);
    }
    context.say(table)
}
