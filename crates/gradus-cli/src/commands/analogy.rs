//! `gradus analogy MODEL king man woman`

use crate::output::{Context, Failure, Outcome, Table};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::embed::analogy;
use gradus_core::embed::Analogy;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct AnalogyArgs {
    /// The model, or a file of vectors as word2vec, GloVe and fastText write them
    model: PathBuf,

    /// Three words: the first is to the second as the answer to the third (king man woman: queen). With --odd, three or more
    #[arg(value_name = "WORD", num_args = 3.., required = true)]
    words: Vec<String>,

    /// Number of answers
    #[arg(short, value_name = "N", default_value_t = 5)]
    n: usize,

    /// Compare answers by the product of cosines (3CosMul) instead of the cosine with the sum (3CosAdd)
    #[arg(long)]
    multiply: bool,

    /// Name the word that is least like the others instead
    #[arg(long, conflicts_with_all = ["multiply", "n"])]
    odd: bool,
}

pub fn command() -> Command {
    AnalogyArgs::augment_args(
        Command::new("analogy").about("Complete an analogy of words, or name the odd one out"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<AnalogyArgs>(matches)?;
    let opened = context.reading(|remarks| crate::app().open_vectors(&args.model, remarks))?;
    let vectors = opened.vectors()?;
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    if args.odd {
        let odd = words[vectors.odd_one_out(&words)?];
        return if context.json { context.json(&json!({ "odd": odd })) } else { context.say(odd) };
    }
    let [a, b, c] = words[..] else {
        let n = words.len();
        return Err(Failure::Usage(format!(
            "an analogy has three words, and {n} are given (--odd takes more)"
        )));
    };
    let rule = if args.multiply { Analogy::Multiply } else { Analogy::Add };
    let found = analogy(vectors, [a, b, c], args.n, rule)?;
    if context.json {
        return context.json(&json!(found));
    }
    let score = if args.multiply { ">score" } else { ">similarity" };
    let mut table = Table::new(&[vectors.what(), score]);
    for near in &found.answers {
        table.row([near.name.to_string(), format!("{:.4}", near.similarity)]);
    }
    context.say(table)
}
