//! `gradus topics MODEL [DOCUMENTS]`

use crate::columns::write_columns;
use crate::input::options_by_name;
use crate::output::{Context, Outcome, Table, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::data::Source;
use gradus_app::topics::{TopicsAnswer, topics};
use gradus_base::Error;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct TopicsArgs {
    /// The model
    model: PathBuf,

    /// Documents whose mixtures of topics are wanted; `-` for standard input
    documents: Option<PathBuf>,

    /// Number of words of each topic to show [default: 10]
    #[arg(short, value_name = "N")]
    n: Option<usize>,

    /// Show the topics, and this many of the documents that have most of each, instead of mixtures
    #[arg(long, value_name = "N", requires = "documents", conflicts_with = "output")]
    examples: Option<usize>,

    /// Where to write the mixtures, CSV, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "documents")]
    output: Option<PathBuf>,

    /// Reading option of the documents, an option of their kind of data
    #[arg(
        long,
        value_name = "NAME=VALUE",
        requires = "documents",
        help_heading = "Reading the data"
    )]
    option: Vec<String>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    TopicsArgs::augment_args(
        Command::new("topics").about(
            "Show the words of each topic of a model, or the mixture of topics of documents",
        ),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: TopicsArgs = arguments(matches)?;
    let n_words = args.n.unwrap_or(10);
    let Some(path) = &args.documents else {
        let fitted = crate::registry().load(&args.model)?;
        let found = topics(&fitted, n_words)?;
        if context.json {
            return context.json(&json!(found));
        }
        return show(&found, context);
    };
    if let Some(examples) = args.examples {
        let fitted = crate::registry().load(&args.model)?;
        let kind = crate::registry().find(fitted.kind)?.data();
        let source = Source { path: path.clone(), options: options_by_name(&args.option, kind)? };
        let found = context.reading(|remarks| {
            crate::app().topics_with_documents(&fitted, n_words, (&source, examples), remarks)
        })?;
        if context.json {
            return context.json(&json!(found));
        }
        return show(&found, context);
    }
    if args.n.is_some() {
        return Err(Error::data(
            "-n counts the words of topics and cannot be used with mixtures of documents; give --examples as well",
        )
        .into());
    }
    let mut plan = FilePlan::new(args.force, [&args.model, path]);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let fitted = crate::registry().load(&args.model)?;
    let kind = crate::registry().find(fitted.kind)?.data();
    let source = Source { path: path.clone(), options: options_by_name(&args.option, kind)? };
    let found = context.reading(|remarks| crate::app().mixtures(&fitted, &source, remarks))?;
    destination.write(|out| Ok(write_columns(out, &found, context.json)?))?;
    if let Some(path) = destination.path() {
        context.remark(format_args!("{} mixtures in {}", grouped(found.rows), path.display()));
    }
    Ok(())
}

/// A row for each topic, and below it its documents.
fn show(found: &TopicsAnswer<'_>, context: Context) -> Outcome {
    let mut table = Table::new(&[">topic", ">share", ">coherence", "words"]);
    for topic in &found.topics {
        let words: Vec<&str> = topic.words.iter().map(|word| word.word).collect();
        let share = topic.share.map_or(String::new(), |share| format!("{:.1} %", 100.0 * share));
        let coherence = topic.coherence.map_or(String::new(), |npmi| format!("{npmi:.3}"));
        table.row([topic.topic.to_string(), share, coherence, words.join(" ")]);
        for document in &topic.documents {
            let share = format!("{:.1} %", 100.0 * document.share);
            let text = format!("  {}: {}", document.document, document.text);
            table.row([String::new(), share, String::new(), text]);
        }
    }
    context.say(table)?;
    if found.topics.iter().any(|topic| topic.coherence.is_some()) {
        return context.say("coherence: NPMI of the ten top words in the documents of training");
    }
    Ok(())
}
