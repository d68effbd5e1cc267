//! `gradus translate FILE "a text"`, `gradus translate FILE --data texts.txt`

use crate::output::{Context, Failure, Outcome};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::translate::{lines, translate};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Args)]
struct TranslateArgs {
    /// The model
    model: PathBuf,

    /// Texts to translate
    text: Vec<String>,

    /// File of texts, one a line; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    data: Option<PathBuf>,

    /// Number of unfinished translations that are looked at side by side: more find more probable ones, and take as many times as
    /// long
    #[arg(long, value_name = "N", default_value_t = 1)]
    beams: usize,

    /// Where to write the translations, one a line, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    TranslateArgs::augment_args(
        Command::new("translate")
            .about("Make texts of texts, by a model that learned from pairs of them"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: TranslateArgs = arguments(matches)?;
    let inputs: Vec<&PathBuf> = std::iter::once(&args.model).chain(&args.data).collect();
    let mut plan = FilePlan::new(args.force, inputs);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    if args.text.is_empty() && args.data.is_none() {
        return Err(Failure::Usage("no texts: give some, or a file of them with --data".into()));
    }
    let fitted = crate::registry().load(&args.model)?;
    let texts = match &args.data {
        Some(path) => context.reading(|remarks| lines(path, remarks))?,
        None => args.text,
    };
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = translate(&fitted, &texts, args.beams)?;
    if context.json {
        return context.json(&serde_json::json!(found));
    }
    // A translation is a line, also if it has line ends; control characters do not reach the terminal.
    let line = |text: &str| -> String {
        text.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect()
    };
    destination.write(|out| {
        for one in &found {
            writeln!(out, "{}", line(&one.target))?;
        }
        Ok(())
    })
}
