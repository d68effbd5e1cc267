//! `gradus recommend FILE --user ID`

mod filters;
mod many;

use super::titles::TitlesArgs;
use crate::output::{Context, Failure, Outcome, Table};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgGroup, ArgMatches, Args, Command};
use filters::FilterArgs;
use gradus_app::recommend::{
    DescribedAnswer, Explained, FeaturePart, RecommendRequest, Recommender, ScoredItem,
};
use gradus_base::text::printable;
use gradus_data::Id;
use many::ManyArgs;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct RecommendArgs {
    /// The model
    model: PathBuf,

    /// The user, as the data called them
    #[arg(long, value_name = "ID", allow_hyphen_values = true, conflicts_with_all = ["rated", "features", "users", "all", "item"])]
    user: Option<String>,

    /// Someone the model does not know, by what they rated (give it several times)
    #[arg(long, value_name = "ITEM=RATING", allow_hyphen_values = true, conflicts_with_all = ["users", "all", "item"])]
    rated: Vec<String>,

    /// People the model does not know, by their features: a table with the columns that it was fitted with
    /// (--user-features); together with --rated a table of one row
    #[arg(long, value_name = "FILE", conflicts_with_all = ["users", "all", "item"])]
    features: Option<PathBuf>,

    /// The other way round: the users whom this item suits best
    #[arg(long, value_name = "ID", allow_hyphen_values = true, conflicts_with_all = ["users", "all"])]
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
    .group(
        ArgGroup::new("whom")
            .args(["user", "rated", "features", "users", "all", "item"])
            .required(true)
            .multiple(true),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<RecommendArgs>(matches)?;
    let filters = args.filter.request();
    let inputs = [&args.model].into_iter().chain(&args.many.users).chain(filters.inputs());
    let inputs = inputs.chain(args.titles.inputs()).chain(&args.features);
    let destination = many::destination(&args.many, &mut FilePlan::new(args.force, inputs))?;
    let mut fitted = crate::registry().load(&args.model)?;
    args.titles.add_to(&mut fitted, context)?;
    let recommender = Recommender::of(&fitted)?;
    if let Some(item) = &args.item {
        let found = recommender.users_for(item, args.n, args.filter.include_seen())?;
        if context.json {
            return context.json(&json!(found));
        }
        let scores = found.users.iter().map(|scored| (scored.user, format!("{:.3}", scored.score)));
        return context.say(user_table(">score", scores));
    }
    let filter = args.filter.filter(recommender.model, context)?;
    if args.many.wanted() {
        return many::run(&args.many, recommender, args.n, &filter, &destination, context);
    }
    let request = RecommendRequest {
        user: args.user,
        rated: args.rated.iter().map(|text| rated(text)).collect::<Outcome<_>>()?,
        n: args.n,
        explain: args.explain,
    };
    if let Some(path) = &args.features {
        let found = context
            .reading(|remarks| recommender.recommend_described(path, &request, &filter, remarks))?;
        return described(recommender, &found, context);
    }
    let found = recommender.recommend(&request, &filter)?;
    if context.json {
        return context.json(&json!(found));
    }
    if found.recommendations.is_empty() {
        context.remark("nothing to recommend: every item is rated or filtered out");
    }
    let titled = recommender.titles.is_some();
    context.say(item_table(titled, ">score", &found.recommendations, 3))?;
    for item in &found.recommendations {
        if let Some(reason) = &item.explanation {
            context.say(explained(item, reason))?;
        }
    }
    Ok(())
}

/// The lists of people described by features.
fn described(
    recommender: Recommender<'_>,
    found: &[DescribedAnswer<'_>],
    context: Context,
) -> Outcome {
    if context.json {
        return context.json(&json!(found));
    }
    for answer in found {
        if found.len() > 1 {
            context.say(format_args!("{}:", printable(&answer.user)))?;
        }
        let titled = recommender.titles.is_some();
        context.say(item_table(titled, ">score", &answer.recommendations, 3))?;
        for item in &answer.recommendations {
            if let Some(reason) = &item.explanation {
                context.say(explained(item, reason))?;
            }
        }
    }
    Ok(())
}

/// A table of items with a figure each; with their titles where there are any.
pub fn item_table(titled: bool, figure: &str, items: &[ScoredItem<'_>], digits: usize) -> Table {
    let heads = [">", "item", "title", figure];
    let heads: Vec<&str> = heads.into_iter().filter(|head| titled || *head != "title").collect();
    let mut table = Table::new(&heads);
    for (place, scored) in items.iter().enumerate() {
        let mut row = vec![(place + 1).to_string(), scored.item.to_string()];
        if titled {
            row.push(scored.title.unwrap_or_default().to_owned());
        }
        row.push(format!("{:.digits$}", scored.score));
        table.row(row);
    }
    table
}

/// A table of users with a figure each.
pub fn user_table<'a>(figure: &str, users: impl Iterator<Item = (Id<'a>, String)>) -> Table {
    let mut table = Table::new(&[">", "user", figure]);
    for (place, (user, figure)) in users.enumerate() {
        table.row([(place + 1).to_string(), user.to_string(), figure]);
    }
    table
}

/// The id of an item, with its title if it has one.
fn named(item: Id<'_>, title: Option<&str>) -> String {
    let name = match title {
        Some(title) => format!("{title} [{item}]"),
        None => item.to_string(),
    };
    printable(&name).into_owned()
}

/// An explanation in words and a table.
pub fn explained(item: &ScoredItem<'_>, reason: &Explained<'_>) -> String {
    const SHOWN: usize = 5;
    let mut table = Table::new(&["because of", ">rated", ">adds"]);
    for part in reason.contributions.iter().take(SHOWN) {
        let added = format!("{:+.3}", part.adds);
        table.row([named(part.item, part.title), part.rated.to_string(), added]);
    }
    let rest: f32 = reason.contributions.iter().skip(SHOWN).map(|part| part.adds).sum();
    if reason.contributions.len() > SHOWN {
        let others = format!("{} other ratings", reason.contributions.len() - SHOWN);
        table.row([others, String::new(), format!("{rest:+.3}")]);
    }
    let of_features = |parts: &[FeaturePart], table: &mut Table| {
        for part in parts.iter().take(SHOWN) {
            table.row([part.feature.clone(), String::new(), format!("{:+.3}", part.adds)]);
        }
        let rest: f32 = parts.iter().skip(SHOWN).map(|part| part.adds).sum();
        if parts.len() > SHOWN {
            let others = format!("{} other features", parts.len() - SHOWN);
            table.row([others, String::new(), format!("{rest:+.3}")]);
        }
    };
    of_features(&reason.user_features, &mut table);
    let mut text = format!(
        "\nwhy {}: {:.3} = {:.3} for anyone, and\n{table}",
        named(item.item, item.title),
        reason.score,
        reason.base
    );
    if !reason.item_features.is_empty() {
        let mut table = Table::new(&["features of the item", ">", ">adds"]);
        of_features(&reason.item_features, &mut table);
        text.push_str(&format!("\n{table}"));
    }
    text
}

/// `ITEM=RATING`.
fn rated(text: &str) -> Outcome<(String, f32)> {
    let wrong =
        || Failure::Usage(format!("--rated {text}: must be ITEM=RATING, as in --rated 42=4.5"));
    let (item, value) = text.rsplit_once('=').ok_or_else(wrong)?;
    Ok((item.to_owned(), value.trim().parse().map_err(|_| wrong())?))
}
