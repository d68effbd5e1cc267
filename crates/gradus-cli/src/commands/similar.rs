//! `gradus similar FILE --item ID`

use super::recommend::{find_item, find_user, scored_json};
use crate::output::{Context, Failure, Outcome, Table};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct SimilarArgs {
    /// The model
    model: PathBuf,

    /// The item, as the data called it
    #[arg(
        long,
        value_name = "ID",
        required_unless_present = "user",
        conflicts_with = "user",
        allow_hyphen_values = true
    )]
    item: Option<String>,

    /// A user instead: the users most like them
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    user: Option<String>,

    /// How many
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
}

pub fn command() -> Command {
    SimilarArgs::augment_args(
        Command::new("similar")
            .about("List the items, or users, most like another (cosine of their factors)"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = SimilarArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let fitted = gradus::load(&args.model)?;
    let model = fitted.recommend()?;
    let (what, near): (_, Vec<(String, f32)>) = match (&args.item, &args.user) {
        (Some(item), _) => {
            let item = find_item(model, item)?;
            let found = model.similar_items(item, args.n)?;
            if context.json {
                let found: Vec<_> = found.iter().map(|scored| scored_json(model, scored)).collect();
                let item = model.items().get(item as usize);
                return context.json(&json!({"item": item, "similar": found}));
            }
            let name = |item: u32| model.items().get(item as usize).to_string();
            ("item", found.iter().map(|scored| (name(scored.item), scored.score)).collect())
        }
        (None, user) => {
            let user = find_user(model, user.as_deref().unwrap_or_default())?;
            let found = model.similar_users(user, args.n)?;
            let id = |user: u32| model.users().get(user as usize);
            if context.json {
                let found: Vec<_> = found
                    .iter()
                    .map(|scored| json!({"user": id(scored.user), "score": scored.score}))
                    .collect();
                return context.json(&json!({"user": id(user), "similar": found}));
            }
            let near = found.iter().map(|scored| (id(scored.user).to_string(), scored.score));
            ("user", near.collect())
        }
    };
    let mut table = Table::new(&[">", what, ">similarity"]);
    for (place, (name, score)) in near.into_iter().enumerate() {
        table.row([(place + 1).to_string(), name, format!("{score:.4}")]);
    }
    context.say(table)
}
