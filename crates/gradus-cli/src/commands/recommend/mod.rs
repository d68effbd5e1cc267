//! `gradus recommend FILE --user ID`

mod filters;
mod many;

use crate::output::{Context, Failure, Outcome, Table};
use crate::outputs::{self, FilePlan, ForceArg};
use clap::{ArgGroup, ArgMatches, Args, Command, FromArgMatches as _};
use filters::FilterArgs;
use gradus::core::recommend::{Explanation, Profile, Recommend, Scored, Target};
use gradus::core::text::printable;
use gradus::data::{Id, Ids};
use many::ManyArgs;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Args)]
struct RecommendArgs {
    /// The model
    model: PathBuf,

    /// The user, as the data called them
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    user: Option<String>,

    /// Someone the model does not know, by what they rated (give it several times)
    #[arg(long, value_name = "ITEM=RATING", allow_hyphen_values = true)]
    rated: Vec<String>,

    /// The other way round: the users whom this item suits best
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    item: Option<String>,

    /// How many
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,

    /// Show which ratings carried each score
    #[arg(long, conflicts_with_all = ["users", "all", "item"])]
    explain: bool,

    #[command(flatten)]
    many: ManyArgs,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    filter: FilterArgs,
}

pub fn command() -> Command {
    RecommendArgs::augment_args(
        Command::new("recommend")
            .about("Recommend items to a user, to many, or to someone described by a few ratings"),
    )
    .after_help(outputs::RULE)
    .group(ArgGroup::new("whom").args(["user", "rated", "users", "all", "item"]).required(true))
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args =
        RecommendArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let inputs = [&args.model].into_iter().chain(&args.many.users).chain(args.filter.inputs());
    let destination = many::destination(&args.many, &mut FilePlan::new(args.force, inputs))?;
    let fitted = gradus::load(&args.model)?;
    let model = fitted.recommend()?;
    if let Some(item) = &args.item {
        return best_users(&args, model, item, context);
    }
    let filter = args.filter.filter(model, context)?;
    if args.many.wanted() {
        return many::run(&args.many, model, args.n, &filter, &destination, context);
    }
    let profile = profile(model, &args.rated)?;
    let target = match &args.user {
        Some(user) => Target::User(find_user(model, user)?),
        None => Target::Profile(&profile),
    };
    let found = model.top(&target, args.n, &filter)?;
    let reasons: Vec<Option<Explanation>> = found
        .iter()
        .map(|scored| args.explain.then(|| model.explain(&target, scored.item)).transpose())
        .collect::<gradus::Result<_>>()?;
    if context.json {
        let found: Vec<Value> = found
            .iter()
            .zip(&reasons)
            .map(|(scored, reason)| {
                let mut value = scored_json(model, scored);
                if let Some(reason) = reason {
                    value["explanation"] = explanation_json(model, reason);
                }
                value
            })
            .collect();
        // As the data called them, a number or text.
        let user = match target {
            Target::User(user) => json!(model.users().get(user as usize)),
            Target::Profile(_) => Value::Null,
        };
        return context.json(&json!({"user": user, "recommendations": found}));
    }
    if found.is_empty() {
        context.remark("nothing to recommend: every item is rated or filtered out");
    }
    let mut table = Table::new(&[">", "item", ">score"]);
    for (place, scored) in found.iter().enumerate() {
        let name = model.items().get(scored.item as usize).to_string();
        table.row([(place + 1).to_string(), name, format!("{:.3}", scored.score)]);
    }
    context.say(table)?;
    for (scored, reason) in found.iter().zip(&reasons) {
        if let Some(reason) = reason {
            context.say(explained(model, scored.item, reason))?;
        }
    }
    Ok(())
}

/// The users whom an item suits best.
fn best_users(
    args: &RecommendArgs,
    model: &dyn Recommend,
    item: &str,
    context: Context,
) -> Outcome {
    let item = find_item(model, item)?;
    let found = model.top_users(item, args.n, args.filter.include_seen())?;
    if context.json {
        let found: Vec<Value> = found
            .iter()
            .map(|scored| {
                json!({"user": model.users().get(scored.user as usize), "score": scored.score})
            })
            .collect();
        return context.json(&json!({"item": model.items().get(item as usize), "users": found}));
    }
    let mut table = Table::new(&[">", "user", ">score"]);
    for (place, scored) in found.iter().enumerate() {
        let name = model.users().get(scored.user as usize).to_string();
        table.row([(place + 1).to_string(), name, format!("{:.3}", scored.score)]);
    }
    context.say(table)
}

/// An explanation in words and a table.
pub fn explained(model: &dyn Recommend, item: u32, reason: &Explanation) -> String {
    let name = |item: u32| printable(&model.items().get(item as usize).to_string()).into_owned();
    let mut table = Table::new(&["because of", ">rated", ">adds"]);
    for part in reason.contributions.iter().take(5) {
        let added = format!("{:+.3}", part.contribution);
        table.row([name(part.item), part.value.to_string(), added]);
    }
    let rest: f32 = reason.contributions.iter().skip(5).map(|part| part.contribution).sum();
    if reason.contributions.len() > 5 {
        let others = format!("{} other ratings", reason.contributions.len() - 5);
        table.row([others, String::new(), format!("{rest:+.3}")]);
    }
    format!(
        "\nwhy {}: {:.3} = {:.3} for anyone, and\n{table}",
        name(item),
        reason.score,
        reason.base
    )
}

pub fn scored_json(model: &dyn Recommend, scored: &Scored) -> Value {
    json!({"item": model.items().get(scored.item as usize), "score": scored.score})
}

fn explanation_json(model: &dyn Recommend, reason: &Explanation) -> Value {
    let parts: Vec<Value> = reason
        .contributions
        .iter()
        .map(|part| {
            let item = model.items().get(part.item as usize);
            json!({"item": item, "rated": part.value, "adds": part.contribution})
        })
        .collect();
    json!({"score": reason.score, "base": reason.base, "contributions": parts})
}

/// The index of a user.
pub fn find_user(model: &dyn Recommend, user: &str) -> gradus::Result<u32> {
    model.users().find(Id::Text(user)).ok_or_else(|| gradus::Error::UnknownId {
        what: "user",
        id: user.to_owned(),
        hint: "the model was not trained on this user; describe them by a few ratings instead, \
               --rated ITEM=RATING, and they are folded in without retraining"
            .into(),
    })
}

/// The index of an item; a near miss is hinted at.
pub fn find_item(model: &dyn Recommend, item: &str) -> gradus::Result<u32> {
    model.items().find(Id::Text(item)).ok_or_else(|| {
        let wanted = item.to_lowercase();
        let near: Vec<String> = match model.items() {
            Ids::Text(items) if !wanted.is_empty() => items
                .iter()
                .filter(|name| name.to_lowercase().contains(&wanted))
                .take(3)
                .map(|name| format!("`{name}`"))
                .collect(),
            _ => Vec::new(),
        };
        gradus::Error::UnknownId {
            what: "item",
            id: item.to_owned(),
            hint: if near.is_empty() {
                "the model was not trained on this item".into()
            } else {
                format!("did you mean {}?", near.join(", "))
            },
        }
    })
}

/// `ITEM=RATING` each.
fn profile(model: &dyn Recommend, rated: &[String]) -> Outcome<Profile> {
    let mut profile = Profile::default();
    for text in rated {
        let wrong =
            || Failure::Usage(format!("--rated {text}: must be ITEM=RATING, as in --rated 42=4.5"));
        let (item, value) = text.rsplit_once('=').ok_or_else(wrong)?;
        profile.items.push(find_item(model, item)?);
        profile.values.push(value.trim().parse().map_err(|_| wrong())?);
    }
    Ok(profile)
}
