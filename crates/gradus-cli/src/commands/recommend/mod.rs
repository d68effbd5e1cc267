//! `gradus recommend FILE --user ID`

use crate::output::{Context, Failure, Outcome, Table};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use gradus::core::recommend::{Explanation, Filter, Profile, Recommend, Scored, Target};
use gradus::data::{Id, Ids};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Args)]
struct RecommendArgs {
    /// The model
    model: PathBuf,

    /// The user, as the data called them
    #[arg(
        long,
        value_name = "ID",
        required_unless_present = "rated",
        conflicts_with = "rated",
        allow_hyphen_values = true
    )]
    user: Option<String>,

    /// Someone the model does not know, by what they rated (give it several times)
    #[arg(long, value_name = "ITEM=RATING", allow_hyphen_values = true)]
    rated: Vec<String>,

    /// How many items
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,

    /// Also items the user has already rated
    #[arg(long)]
    include_seen: bool,

    /// Only items listed in this file, one id a line
    #[arg(long, value_name = "FILE")]
    allow: Option<PathBuf>,

    /// Never items listed in this file, one id a line
    #[arg(long, value_name = "FILE")]
    deny: Option<PathBuf>,

    /// Show which ratings carried each score
    #[arg(long)]
    explain: bool,
}

pub fn command() -> Command {
    RecommendArgs::augment_args(
        Command::new("recommend")
            .about("Recommend items to a user, or to someone described by a few ratings"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args =
        RecommendArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let fitted = gradus::load(&args.model)?;
    let model = fitted.recommend()?;
    let profile = profile(model, &args.rated)?;
    let target = match &args.user {
        Some(user) => Target::User(find_user(model, user)?),
        None => Target::Profile(&profile),
    };
    let filter = Filter {
        allow: args
            .allow
            .as_deref()
            .map(|path| listed(model.items(), path, context))
            .transpose()?,
        deny: match &args.deny {
            Some(path) => listed(model.items(), path, context)?,
            None => Vec::new(),
        },
        include_seen: args.include_seen,
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
        return context.json(&json!({"user": args.user, "recommendations": found}));
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

/// An explanation in words and a table.
pub fn explained(model: &dyn Recommend, item: u32, reason: &Explanation) -> String {
    let name = |item: u32| model.items().get(item as usize).to_string();
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

/// The items listed in a file, one id a line. Unknown ones are counted, not refused: a list of the
/// whole shop usually holds items that nobody has rated yet.
fn listed(items: &Ids, path: &Path, context: Context) -> Outcome<Vec<u32>> {
    let text = std::fs::read_to_string(path).map_err(|error| gradus::Error::io(path, error))?;
    let ids: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let known: Vec<u32> = ids.iter().filter_map(|id| items.find(Id::Text(id))).collect();
    if known.len() < ids.len() {
        context.remark(format_args!(
            "{}: {} of {} items are unknown to the model",
            path.display(),
            ids.len() - known.len(),
            ids.len()
        ));
    }
    Ok(known)
}
