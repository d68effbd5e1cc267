//! `gradus recommend FILE --user ID`

mod filters;
mod many;

use super::titles::{Names, TitlesArgs};
use crate::output::{Context, Failure, Outcome, Table};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgGroup, ArgMatches, Args, Command};
use filters::FilterArgs;
use gradus_base::text::printable;
use gradus_core::recommend::{Explanation, Profile, Recommend, Scored, Target};
use gradus_data::{Id, Ids};
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
    titles: TitlesArgs,

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
    let args = arguments::<RecommendArgs>(matches)?;
    let inputs = [&args.model].into_iter().chain(&args.many.users).chain(args.filter.inputs());
    let inputs = inputs.chain(args.titles.inputs());
    let destination = many::destination(&args.many, &mut FilePlan::new(args.force, inputs))?;
    let mut fitted = crate::registry().load(&args.model)?;
    args.titles.add_to(&mut fitted, context)?;
    let model = fitted.recommend()?;
    let names = Names::of(model, fitted.titles.as_ref());
    if let Some(item) = &args.item {
        return best_users(&args, names, item, context);
    }
    let filter = args.filter.filter(model, context)?;
    if args.many.wanted() {
        return many::run(&args.many, names, args.n, &filter, &destination, context);
    }
    let profile = profile(names, &args.rated)?;
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
                let mut value = scored_json(names, scored);
                if let Some(reason) = reason {
                    value["explanation"] = explanation_json(names, reason);
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
    let scored = found.iter().map(|scored| (scored.item, format!("{:.3}", scored.score)));
    context.say(item_table(names, ">score", scored))?;
    for (scored, reason) in found.iter().zip(&reasons) {
        if let Some(reason) = reason {
            context.say(explained(names, scored.item, reason))?;
        }
    }
    Ok(())
}

/// A table of items with a figure each; with their titles where there are any.
pub fn item_table(
    names: Names<'_>,
    figure: &str,
    items: impl Iterator<Item = (u32, String)>,
) -> Table {
    let titled = names.titles.is_some();
    let heads = [">", "item", "title", figure];
    let heads: Vec<&str> = heads.into_iter().filter(|head| titled || *head != "title").collect();
    let mut table = Table::new(&heads);
    for (place, (item, figure)) in items.enumerate() {
        let mut row =
            vec![(place + 1).to_string(), names.model.items().get(item as usize).to_string()];
        if titled {
            row.push(names.title(item).unwrap_or_default().to_owned());
        }
        row.push(figure);
        table.row(row);
    }
    table
}

/// The users whom an item suits best.
fn best_users(args: &RecommendArgs, names: Names<'_>, item: &str, context: Context) -> Outcome {
    let model = names.model;
    let item = find_item(names, item)?;
    let found = model.top_users(item, args.n, args.filter.include_seen())?;
    if context.json {
        let found: Vec<Value> = found
            .iter()
            .map(|scored| {
                json!({"user": model.users().get(scored.user as usize), "score": scored.score})
            })
            .collect();
        let mut told = json!({"item": model.items().get(item as usize), "users": found});
        if let Some(title) = names.title(item) {
            told["title"] = title.into();
        }
        return context.json(&told);
    }
    let mut table = Table::new(&[">", "user", ">score"]);
    for (place, scored) in found.iter().enumerate() {
        let name = model.users().get(scored.user as usize).to_string();
        table.row([(place + 1).to_string(), name, format!("{:.3}", scored.score)]);
    }
    context.say(table)
}

/// An explanation in words and a table.
pub fn explained(names: Names<'_>, item: u32, reason: &Explanation) -> String {
    let name = |item: u32| printable(&names.name(item)).into_owned();
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

pub fn scored_json(names: Names<'_>, scored: &Scored) -> Value {
    let mut value =
        json!({"item": names.model.items().get(scored.item as usize), "score": scored.score});
    if let Some(title) = names.title(scored.item) {
        value["title"] = title.into();
    }
    value
}

fn explanation_json(names: Names<'_>, reason: &Explanation) -> Value {
    let parts: Vec<Value> = reason
        .contributions
        .iter()
        .map(|part| {
            let item = names.model.items().get(part.item as usize);
            let mut value = json!({"item": item, "rated": part.value, "adds": part.contribution});
            if let Some(title) = names.title(part.item) {
                value["title"] = title.into();
            }
            value
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

/// The index of an item, by its id or by its whole title; a near miss is hinted at.
pub fn find_item(names: Names<'_>, item: &str) -> gradus::Result<u32> {
    let items = names.model.items();
    if let Some(found) = items.find(Id::Text(item)) {
        return Ok(found);
    }
    let wanted = item.trim().to_lowercase();
    let titled = || names.titles.iter().flat_map(|titles| titles.iter());
    let mut same = titled().filter(|(_, title)| title.to_lowercase() == wanted);
    if let (Some((id, _)), None) = (same.next(), same.next())
        && let Some(found) = items.find(id)
    {
        return Ok(found);
    }
    let of_titles = titled()
        .filter(|(id, title)| title.to_lowercase().contains(&wanted) && items.find(*id).is_some())
        .map(|(id, title)| format!("`{id}` ({title})"));
    let of_ids = match items {
        Ids::Text(ids) => Some(ids),
        Ids::Int(_) => None,
    };
    let of_ids = of_ids.into_iter().flat_map(|ids| ids.iter());
    let of_ids =
        of_ids.filter(|id| id.to_lowercase().contains(&wanted)).map(|id| format!("`{id}`"));
    let near: Vec<String> =
        if wanted.is_empty() { Vec::new() } else { of_titles.chain(of_ids).take(3).collect() };
    Err(gradus::Error::UnknownId {
        what: "item",
        id: item.to_owned(),
        hint: if near.is_empty() {
            "the model was not trained on this item".into()
        } else {
            format!("did you mean {}?", near.join(", "))
        },
    })
}

/// `ITEM=RATING` each.
fn profile(names: Names<'_>, rated: &[String]) -> Outcome<Profile> {
    let mut profile = Profile::default();
    for text in rated {
        let wrong =
            || Failure::Usage(format!("--rated {text}: must be ITEM=RATING, as in --rated 42=4.5"));
        let (item, value) = text.rsplit_once('=').ok_or_else(wrong)?;
        profile.items.push(find_item(names, item)?);
        profile.values.push(value.trim().parse().map_err(|_| wrong())?);
    }
    Ok(profile)
}
