//! `gradus similar FILE --item ID`, `--word WORD` of vectors of words, or `--document TEXT` of a model of documents

use super::recommend::{item_table, user_table};
use super::titles::TitlesArgs;
use crate::input::options_by_name;
use crate::output::{Context, Failure, Outcome, Table};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::data::Source;
use gradus_app::embed::similar_names;
use gradus_app::recommend::Recommender;
use gradus_data::TextFile;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Args)]
struct SimilarArgs {
    /// The model
    model: PathBuf,

    /// The item, as the data called it
    #[arg(
        long,
        value_name = "ID",
        required_unless_present_any = ["user", "name", "document"],
        conflicts_with_all = ["user", "name", "document"],
        allow_hyphen_values = true
    )]
    item: Option<String>,

    /// A user instead: the users most like them
    #[arg(long, value_name = "ID", conflicts_with = "name", allow_hyphen_values = true)]
    user: Option<String>,

    /// A word (or another name) instead: the words most like it, of a model that has vectors of words, or of a file of vectors
    /// as word2vec, GloVe and fastText write them
    #[arg(long, visible_alias = "word", value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,

    /// The text of a document instead, `@FILE` for that of a file: the documents of --among most like it, of a model
    /// of topics or one that transforms documents
    #[arg(
        long,
        value_name = "TEXT",
        requires = "among",
        conflicts_with_all = ["user", "name"],
        allow_hyphen_values = true
    )]
    document: Option<String>,

    /// The documents to compare it with: a file or a folder
    #[arg(long, value_name = "DOCUMENTS", requires = "document")]
    among: Option<PathBuf>,

    /// Reading option of these documents, an option of their kind of data, such as text=body
    #[arg(long, value_name = "NAME=VALUE", requires = "among")]
    option: Vec<String>,

    /// How many
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,

    #[command(flatten)]
    titles: TitlesArgs,
}

pub fn command() -> Command {
    SimilarArgs::augment_args(
        Command::new("similar")
            .about("List the items, users, words or documents most like another"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<SimilarArgs>(matches)?;
    if let Some(name) = &args.name {
        let opened = context.reading(|remarks| crate::app().open_vectors(&args.model, remarks))?;
        let vectors = opened.vectors()?;
        let found = similar_names(vectors, name, args.n)?;
        if context.json {
            return context.json(&json!(found));
        }
        let mut table = Table::new(&[vectors.what(), ">similarity"]);
        for near in &found.similar {
            table.row([near.name.to_string(), format!("{:.4}", near.similarity)]);
        }
        return context.say(table);
    }
    let mut fitted = crate::registry().load(&args.model)?;
    args.titles.add_to(&mut fitted, context)?;
    if let (Some(text), Some(path)) = (&args.document, &args.among) {
        let text = match text.strip_prefix('@') {
            Some(file) => {
                TextFile::read(Path::new(file))?
                    .ok_or_else(|| Failure::Usage(format!("--document: {file} is no text")))?
                    .text
            }
            None => text.clone(),
        };
        let kind = crate::registry().find(fitted.kind)?.data();
        let among = Source { path: path.clone(), options: options_by_name(&args.option, kind)? };
        let found = context.reading(|remarks| {
            crate::app().similar_documents(&fitted, (&text, args.n), &among, remarks)
        })?;
        if context.json {
            return context.json(&json!(found));
        }
        let mut table = Table::new(&["document", ">similarity", "text"]);
        for near in &found.similar {
            table.row([near.document.clone(), format!("{:.4}", near.share), near.text.clone()]);
        }
        return context.say(table);
    }
    let recommender = Recommender::of(&fitted)?;
    if let Some(item) = &args.item {
        let found = recommender.similar_items(item, args.n)?;
        if context.json {
            return context.json(&json!(found));
        }
        let titled = recommender.titles.is_some();
        return context.say(item_table(titled, ">similarity", &found.similar, 4));
    }
    let found = recommender.similar_users(args.user.as_deref().unwrap_or_default(), args.n)?;
    if context.json {
        return context.json(&json!(found));
    }
    let scores = found.similar.iter().map(|scored| (scored.user, format!("{:.4}", scored.score)));
    context.say(user_table(">similarity", scores))
}
