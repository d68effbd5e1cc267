//! Recommendations for many users, written as they come.

use crate::columns::quoted;
use crate::output::{Context, Failure, Outcome, grouped, seconds};
use crate::outputs::{Destination, FilePlan};
use crate::progress::{Counter, stop_on_ctrl_c};
use clap::{Args, ValueEnum};
use gradus_app::filter::USER_NAMES;
use gradus_app::lists::Rows;
use gradus_app::recommend::Recommender;
use gradus_core::recommend::{Filter, Recommend, Scored};
use gradus_data::{Id, Ids, TextColumn};
use rayon::prelude::*;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Lists of users are held in memory for so many recommendations at most.
const HELD: usize = 1 << 20;
/// Users in a block at most; enough that preparing the items is little beside the work.
const BLOCK: usize = 1 << 15;

/// What to do with a user the model does not know.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum OnUnknown {
    /// Stop, and name them
    Fail,
    /// Leave them out, and count them
    Skip,
    /// Give them the items with the most ratings
    Popular,
}

// Not a doc comment: clap would show it in place of the command's.
#[derive(Args)]
#[command(next_help_heading = "Many users")]
pub struct ManyArgs {
    /// The users listed in this file, one id a line, or a column of a table (CSV, Parquet, …); `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub users: Option<PathBuf>,

    /// Every user the model knows
    #[arg(long)]
    pub all: bool,

    /// Where to write the lists: CSV, or JSON Lines if so named, compressed if so named [default:
    /// standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Column of the users in their file, by name or position from 1
    #[arg(long, value_name = "COLUMN", requires = "users")]
    user_column: Option<String>,

    /// What to do with a listed user the model does not know
    #[arg(long, value_enum, default_value = "fail")]
    on_unknown: OnUnknown,
}

impl ManyArgs {
    pub fn wanted(&self) -> bool {
        self.all || self.users.is_some()
    }

    /// Whether lists are JSON Lines.
    fn is_json(&self, context: Context) -> bool {
        let Some(path) = &self.output else { return context.json };
        let name = path.to_string_lossy().to_ascii_lowercase();
        let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        match plain.rsplit_once('.') {
            Some((_, "jsonl" | "ndjson" | "json")) => true,
            Some((_, "csv")) => false,
            _ => context.json,
        }
    }
}

/// What the lists are for: a user of the model, or a name it does not know.
enum For {
    User(u32),
    Unknown(String),
}

pub fn run(
    args: &ManyArgs,
    names: Recommender<'_>,
    n: usize,
    filter: &Filter,
    destination: &Destination,
    context: Context,
) -> Outcome {
    let model = names.model;
    let started = Instant::now();
    let json = args.is_json(context);
    let mut out = destination.open()?;
    if !json {
        let title = if names.titles.is_some() { ",title" } else { "" };
        writeln!(out, "user,rank,item,score{title}")
            .map_err(|error| out.with_path(error.into()))?;
    }
    let mut lists = Lists { popular: None, unknown: 0, written: 0, choosing: 0.0 };
    let total = args.all.then(|| model.users().len());
    let counter = Counter::new(
        total,
        "users",
        context.quiet || (context.json && destination.path().is_none()),
    );
    let stop = stop_on_ctrl_c();
    let size = (HELD / n.max(1)).clamp(1024, BLOCK);
    let mut users = users(args, model)?;
    loop {
        let block: Vec<For> = users.by_ref().take(size).collect::<Outcome<_>>()?;
        if block.is_empty() || stop.requested() {
            break;
        }
        let block = lists.settle(block, args.on_unknown, names)?;
        let lines = lists.lists(&block, names, n, filter, json)?;
        for line in lines {
            out.write_all(line.as_bytes()).map_err(|error| out.with_path(error.into()))?;
        }
        counter.advance(block.len());
    }
    counter.finish();
    if stop.requested() {
        // A list that is not whole is no list: a file that was there before stays.
        let kept = match destination.path() {
            Some(path) => format!("; {} is left as it was", path.display()),
            None => String::new(),
        };
        context.remark(format_args!("interrupted after {} users{kept}", grouped(lists.written)));
        return Err(Failure::Interrupted);
    }
    out.finish()?;
    lists.tell(destination, started.elapsed().as_secs_f64(), context)
}

/// The users asked for, one after another.
fn users<'a>(
    args: &'a ManyArgs,
    model: &'a dyn Recommend,
) -> Outcome<Box<dyn Iterator<Item = Outcome<For>> + 'a>> {
    let Some(path) = &args.users else {
        return Ok(Box::new((0..model.users().len() as u32).map(|user| Ok(For::User(user)))));
    };
    let wanted =
        TextColumn { what: "users", names: USER_NAMES, given: args.user_column.as_deref() };
    Ok(Box::new(Rows::open(path, &[wanted])?.map(|row| {
        let mut row = row?;
        let name = row.swap_remove(0);
        Ok(match model.users().find(Id::Text(&name)) {
            Some(user) => For::User(user),
            None => For::Unknown(name),
        })
    })))
}

/// How far it has come.
struct Lists {
    /// The list of those the model does not know, once it was needed.
    popular: Option<Vec<Scored>>,
    unknown: usize,
    written: usize,
    /// Seconds spent on choosing, without reading and writing.
    choosing: f64,
}

impl Lists {
    /// Does with unknown users what was asked.
    fn settle(
        &mut self,
        block: Vec<For>,
        on_unknown: OnUnknown,
        names: Recommender<'_>,
    ) -> Outcome<Vec<For>> {
        let mut kept = Vec::with_capacity(block.len());
        for user in block {
            if let For::Unknown(name) = &user {
                self.unknown += 1;
                match on_unknown {
                    OnUnknown::Fail => {
                        let error = names.find_user(name).err().map(|error| error.to_string());
                        return Err(Failure::Gradus(gradus::Error::data(format!(
                            "{}; or go on without such users, --on-unknown skip or popular",
                            error.unwrap_or_default()
                        ))));
                    }
                    OnUnknown::Skip => continue,
                    OnUnknown::Popular => {}
                }
            }
            kept.push(user);
        }
        Ok(kept)
    }

    /// The lists of a block, as text.
    fn lists(
        &mut self,
        block: &[For],
        names: Recommender<'_>,
        n: usize,
        filter: &Filter,
        json: bool,
    ) -> Outcome<Vec<String>> {
        let model = names.model;
        let known: Vec<u32> = block
            .iter()
            .filter_map(|user| match user {
                For::User(user) => Some(*user),
                For::Unknown(_) => None,
            })
            .collect();
        if known.len() < block.len() && self.popular.is_none() {
            self.popular = Some(popular(model, n, filter)?);
        }
        let started = Instant::now();
        let found = model.top_many(&known, n, filter)?;
        self.choosing += started.elapsed().as_secs_f64();
        let popular = self.popular.as_deref().unwrap_or_default();
        let mut found = found.iter();
        let lists: Vec<(Id<'_>, &[Scored])> = block
            .iter()
            .map(|user| match user {
                For::User(user) => {
                    let list = found.next().map(Vec::as_slice).unwrap_or_default();
                    (model.users().get(*user as usize), list)
                }
                // Of the same type as those the model knows.
                For::Unknown(name) => match model.users() {
                    Ids::Text(_) => (Id::Text(name), popular),
                    Ids::Int(_) => (Id::parse(name), popular),
                },
            })
            .collect();
        self.written += lists.len();
        Ok(lists
            .par_chunks(256)
            .map(|lists| {
                let mut text = String::new();
                for (user, list) in lists {
                    written(&mut text, names, *user, list, json);
                }
                text
            })
            .collect())
    }

    fn tell(&self, destination: &Destination, all: f64, context: Context) -> Outcome {
        let Some(path) = destination.path() else { return self.remark(context) };
        if context.json {
            return context.json(&json!({
                "file": path.display().to_string(),
                "users": self.written,
                "unknown_users": self.unknown,
                "choosing_seconds": self.choosing,
                "seconds": all,
            }));
        }
        context.remark(format_args!(
            "{} lists in {}; choosing took {} of {}",
            grouped(self.written),
            path.display(),
            seconds(self.choosing),
            seconds(all)
        ));
        self.remark(context)
    }

    fn remark(&self, context: Context) -> Outcome {
        if self.unknown > 0 {
            context.remark(format_args!(
                "{} users are unknown to the model and {}",
                grouped(self.unknown),
                if self.popular.is_some() { "got the most rated items" } else { "were left out" }
            ));
        }
        Ok(())
    }
}

/// The most rated items that the filter lets through, with the model's guess for anyone.
fn popular(model: &dyn Recommend, n: usize, filter: &Filter) -> Outcome<Vec<Scored>> {
    let history = model.history().ok_or_else(|| {
        gradus::Error::data(
            "--on-unknown popular: the model was fitted with keep_history = false and does not \
             know how often an item was rated",
        )
    })?;
    let n_items = model.items().len();
    let mut counts = vec![0f32; n_items];
    history.indices().iter().for_each(|&item| counts[item as usize] += 1.0);
    let allowed = filter.allowed(n_items, Some(history))?;
    let mut best = filter.best(n, &counts, allowed.as_deref(), &[]);
    let pairs: Vec<_> = best.iter().map(|scored| (None, Some(scored.item))).collect();
    for (scored, score) in best.iter_mut().zip(model.predict(&pairs)) {
        scored.score = score;
    }
    Ok(best)
}

/// The lines of one list.
fn written(text: &mut String, names: Recommender<'_>, user: Id<'_>, list: &[Scored], json: bool) {
    use std::fmt::Write as _;
    // Writing to a string cannot fail.
    if json {
        let items: Vec<_> = list.iter().map(|scored| names.scored(scored)).collect();
        let _ = writeln!(text, "{}", json!({"user": user, "recommendations": items}));
        return;
    }
    let user = quoted(user);
    for (place, scored) in list.iter().enumerate() {
        let item = quoted(names.model.items().get(scored.item as usize));
        let _ = write!(text, "{user},{},{item},{}", place + 1, scored.score);
        if names.titles.is_some() {
            let title = names.title(scored.item).unwrap_or_default();
            let _ = write!(text, ",{}", quoted(Id::Text(title)));
        }
        text.push('\n');
    }
}

/// Where the lists go, checked before the model is read.
pub fn destination(args: &ManyArgs, plan: &mut FilePlan) -> Outcome<Destination> {
    match &args.output {
        Some(path) if !args.wanted() => Err(Failure::Usage(format!(
            "--output {}: is for many users, with --users or --all",
            path.display()
        ))),
        path => plan.table_or_stdout("--output", path.as_deref()),
    }
}
