//! `gradus export MODEL VECTORS`

use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_file::output::FileKind;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct ExportArgs {
    /// The model: vectors of words or a classifier `fasttext`, of gradus or as word2vec, GloVe and fastText write them
    model: PathBuf,

    /// Output file: vectors as text, or binary if it ends in .bin; a model of fastText if it ends in .ftz, or in .bin
    /// and the model has n-grams or classes; compressed if so named (.gz, .zst)
    output: PathBuf,

    /// Format: text (word2vec, fastText's .vec), binary (word2vec), glove, or fasttext (its binary model) [default: by the name]
    #[arg(long, value_name = "NAME")]
    format: Option<String>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    ExportArgs::augment_args(
        Command::new("export")
            .about("Write the vectors of a model for word2vec, gensim, GloVe or fastText"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<ExportArgs>(matches)?;
    let opened = context.reading(|remarks| crate::app().open_to_export(&args.model, remarks))?;
    let format = opened.export_format(args.format.as_deref(), &args.output)?;
    let kind = match FileKind::of_text_named(&args.output) {
        FileKind::Text if !format.is_text() => FileKind::Binary,
        kind => kind,
    };
    let mut plan = FilePlan::new(args.force, [&args.model]);
    let output = plan.output("OUTPUT", &args.output, kind)?.compressed_by_name();
    output.write(|file| {
        let mut out = std::io::BufWriter::new(file);
        opened.export(format, &mut out).map_err(std::io::Error::other)??;
        std::io::Write::flush(&mut out)
    })?;
    let (n, k) = opened.size();
    if context.json {
        return context.json(&json!({ "words": n, "dimension": k, "output": args.output }));
    }
    context.say(format_args!(
        "{} vectors of {k} coordinates in {}",
        grouped(n),
        args.output.display()
    ))
}
