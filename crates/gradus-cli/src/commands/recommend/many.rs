//! Recommendations for many users, written as they come.

use crate::columns::quoted;
use crate::output::{Context, Failure, Outcome, grouped, seconds};
use crate::outputs::{Destination, FilePlan};
use crate::progress::{Counter, stop_on_ctrl_c};
use clap::{Args, ValueEnum};
use gradus_app::recommend::{ManyAnswer, ManyRequest, OnUnknown, Recommender, UserList};
use gradus_core::recommend::{Filter, Scored};
use gradus_data::Id;
use rayon::prelude::*;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// The treatment of a user whom the model does not know.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum OnUnknownArg {
    /// Stop, and name them
    Fail,
    /// Leave them out, and count them
    Skip,
    /// Give them the items with the most ratings
    Popular,
}

impl From<OnUnknownArg> for OnUnknown {
    fn from(arg: OnUnknownArg) -> Self {
        match arg {
            OnUnknownArg::Fail => Self::Fail,
            OnUnknownArg::Skip => Self::Skip,
            OnUnknownArg::Popular => Self::Popular,
        }
    }
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
    on_unknown: OnUnknownArg,
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

pub fn run(
    args: &ManyArgs,
    recommender: Recommender<'_>,
    n: usize,
    filter: &Filter,
    destination: &Destination,
    context: Context,
) -> Outcome {
    let started = Instant::now();
    let json = args.is_json(context);
    let request = ManyRequest {
        users: args.users.clone(),
        user_column: args.user_column.clone(),
        on_unknown: args.on_unknown.into(),
        n,
    };
    let mut lists = recommender.recommend_many(&request, filter)?;
    let mut out = destination.open()?;
    if !json {
        let title = if recommender.titles.is_some() { ",title" } else { "" };
        writeln!(out, "user,rank,item,score{title}")
            .map_err(|error| out.with_path(error.into()))?;
    }
    let quiet = context.quiet || (context.json && destination.path().is_none());
    let counter = Counter::new(lists.total(), "users", quiet);
    let stop = stop_on_ctrl_c();
    while !stop.requested()
        && let Some(block) = lists.next_block()?
    {
        for text in as_text(&block, recommender, json) {
            out.write_all(text.as_bytes()).map_err(|error| out.with_path(error.into()))?;
        }
        counter.advance(block.len());
    }
    counter.finish();
    let done = lists.done();
    if stop.requested() {
        // A list that is not whole is no list: a file that was there before stays.
        let kept = match destination.path() {
            Some(path) => format!("; {} is left as it was", path.display()),
            None => String::new(),
        };
        context.remark(format_args!("interrupted after {} users{kept}", grouped(done.users)));
        return Err(Failure::Interrupted);
    }
    out.finish()?;
    show(&done, args.on_unknown, destination, started.elapsed().as_secs_f64(), context)
}

/// The lists of a block, as text in parts.
fn as_text(block: &[UserList], recommender: Recommender<'_>, json: bool) -> Vec<String> {
    let part = |lists: &[UserList]| {
        let mut text = String::new();
        for list in lists {
            written(&mut text, recommender, list.user.id(recommender.model), &list.items, json);
        }
        text
    };
    block.par_chunks(256).map(part).collect()
}

/// Reports what was written.
fn show(
    done: &ManyAnswer,
    on_unknown: OnUnknownArg,
    destination: &Destination,
    all: f64,
    context: Context,
) -> Outcome {
    if let Some(path) = destination.path() {
        if context.json {
            let mut answer = json!(done);
            answer["file"] = path.display().to_string().into();
            answer["seconds"] = all.into();
            return context.json(&answer);
        }
        context.remark(format_args!(
            "{} lists in {}; choosing took {} of {}",
            grouped(done.users),
            path.display(),
            seconds(done.choosing_seconds),
            seconds(all)
        ));
    }
    if done.unknown_users > 0 {
        let got = match on_unknown {
            OnUnknownArg::Popular => "got the most rated items",
            _ => "were left out",
        };
        let unknown = grouped(done.unknown_users);
        context.remark(format_args!("{unknown} users are unknown to the model and {got}"));
    }
    Ok(())
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

/// The destination of the lists, checked before the model is read.
pub fn destination(args: &ManyArgs, plan: &mut FilePlan) -> Outcome<Destination> {
    match &args.output {
        Some(path) if !args.wanted() => Err(Failure::Usage(format!(
            "--output {}: is for many users, with --users or --all",
            path.display()
        ))),
        path => plan.table_or_stdout("--output", path.as_deref()),
    }
}
