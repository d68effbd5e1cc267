//! `gradus similar FILE --item ID`

use super::recommend::{find_item, find_user, item_table, scored_json};
use super::titles::{Names, TitlesArgs};
use crate::output::{Context, Outcome, Table};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
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

    #[command(flatten)]
    titles: TitlesArgs,
}

pub fn command() -> Command {
    SimilarArgs::augment_args(
        Command::new("similar")
            .about("List the items, or users, most like another (cosine of their factors)"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<SimilarArgs>(matches)?;
    let mut fitted = crate::registry().load(&args.model)?;
    args.titles.add_to(&mut fitted, context)?;
    let model = fitted.recommend()?;
    let names = Names::of(model, fitted.titles.as_ref());
    let near: Vec<(String, f32)> = match (&args.item, &args.user) {
        (Some(item), _) => {
            let item = find_item(names, item)?;
            let found = model.similar_items(item, args.n)?;
            if context.json {
                let found: Vec<_> = found.iter().map(|scored| scored_json(names, scored)).collect();
                let id = model.items().get(item as usize);
                let mut told = json!({"item": id, "similar": found});
                if let Some(title) = names.title(item) {
                    told["title"] = title.into();
                }
                return context.json(&told);
            }
            let scored = found.iter().map(|scored| (scored.item, format!("{:.4}", scored.score)));
            return context.say(item_table(names, ">similarity", scored));
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
            found.iter().map(|scored| (id(scored.user).to_string(), scored.score)).collect()
        }
    };
    let mut table = Table::new(&[">", "user", ">similarity"]);
    for (place, (name, score)) in near.into_iter().enumerate() {
        table.row([(place + 1).to_string(), name, format!("{score:.4}")]);
    }
    context.say(table)
}
