//! `gradus topics MODEL [DOCUMENTS]`

use crate::columns::write_columns;
use crate::input::options_by_name;
use crate::output::{Context, Outcome, Table, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::data::Source;
use gradus_app::topics::topics;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct TopicsArgs {
    /// The model
    model: PathBuf,

    /// Documents whose mixtures of topics are wanted; `-` for standard input
    documents: Option<PathBuf>,

    /// How many words of each topic to show
    #[arg(short, value_name = "N", default_value_t = 10, conflicts_with = "documents")]
    n: usize,

    /// Where to write the mixtures, CSV, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "documents")]
    output: Option<PathBuf>,

    /// How the documents are read: an option of their kind of data
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
    let Some(path) = &args.documents else {
        let fitted = crate::registry().load(&args.model)?;
        let found = topics(&fitted, args.n)?;
        if context.json {
            return context.json(&json!(found));
        }
        let mut table = Table::new(&[">topic", "word", ">probability"]);
        for topic in &found.topics {
            for word in &topic.words {
                let probability = format!("{:.4}", word.probability);
                table.row([topic.topic.to_string(), word.word.to_owned(), probability]);
            }
        }
        return context.say(table);
    };
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
