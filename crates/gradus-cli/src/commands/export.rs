//! `gradus export MODEL VECTORS`

use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::text::{VectorFormat, check_export};
use gradus_app::embed::{export_vectors, vector_format};
use gradus_file::output::FileKind;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct ExportArgs {
    /// The model, or a file of vectors as word2vec, GloVe and fastText write them
    model: PathBuf,

    /// Where to write its vectors: binary if it ends in .bin, else text; compressed if so named (.gz, .zst)
    output: PathBuf,

    /// Format: text (word2vec, fastText's .vec), binary (word2vec) or glove [default: by the name]
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
    let format = vector_format(args.format.as_deref(), &args.output)?;
    let kind = match (FileKind::of_text_named(&args.output), format) {
        (FileKind::Text, VectorFormat::Binary) => FileKind::Binary,
        (kind, _) => kind,
    };
    let mut plan = FilePlan::new(args.force, [&args.model]);
    let output = plan.output("OUTPUT", &args.output, kind)?.compressed_by_name();
    let opened = context.reading(|remarks| crate::app().open_vectors(&args.model, remarks))?;
    let vectors = opened.vectors()?;
    check_export(vectors)?;
    output.write(|file| {
        let mut out = std::io::BufWriter::new(file);
        export_vectors(vectors, format, &mut out)?;
        std::io::Write::flush(&mut out)
    })?;
    let (n, k) = (vectors.names().len(), vectors.dimension());
    if context.json {
        return context.json(&json!({ "words": n, "dimension": k, "output": args.output }));
    }
    context.say(format_args!(
        "{} vectors of {k} coordinates in {}",
        grouped(n),
        args.output.display()
    ))
}
