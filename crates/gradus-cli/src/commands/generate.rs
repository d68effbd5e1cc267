//! `gradus generate FILE -n 100`, `gradus generate FILE --prompt "Once upon a time"`

use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::generate::{ContinueRequest, continue_text, generate};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Args)]
struct GenerateArgs {
    /// The model
    model: PathBuf,

    /// Number of samples to draw; with --prompt the most tokens to write [default: 10, with --prompt 200]
    #[arg(short, long, value_name = "N")]
    number: Option<usize>,

    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Text to continue, which may be empty; the text appears as it is written. For language models
    #[arg(long, value_name = "TEXT", help_heading = "Text")]
    prompt: Option<String>,

    /// Divisor of the logits: 1 draws tokens with the probabilities of the model, less prefers probable ones, 0 always takes the
    /// most probable one [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Text")]
    temperature: Option<f64>,

    /// Number of most probable tokens to draw from [default: all]
    #[arg(long, value_name = "K", help_heading = "Text")]
    top_k: Option<usize>,

    /// Draw only from the most probable tokens that together have this probability [default: from all]
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = "Text")]
    top_p: Option<f64>,

    /// Output file, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    GenerateArgs::augment_args(
        Command::new("generate")
            .about("Draw new data from a model of a distribution, or go on with a text"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: GenerateArgs = arguments(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model]);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let set = [
        ("--temperature", args.temperature.is_some()),
        ("--top-k", args.top_k.is_some()),
        ("--top-p", args.top_p.is_some()),
    ];
    if let Some((flag, _)) = set.iter().find(|(_, is_set)| *is_set && args.prompt.is_none()) {
        return Err(Failure::Usage(format!("{flag} is about texts: say --prompt as well")));
    }
    let fitted = crate::registry().load(&args.model)?;
    let Some(prompt) = args.prompt else {
        let data = generate(&fitted, args.number.unwrap_or(10), args.seed)?;
        destination.write(|out| Ok(data.write(out)?))?;
        if let Some(path) = destination.path() {
            let (n, kind) = (grouped(data.len()), data.kind());
            context.remark(format_args!("{n} {kind} in {}", path.display()));
        }
        return Ok(());
    };
    let defaults = ContinueRequest::default();
    let request = ContinueRequest {
        number: args.number.unwrap_or(defaults.number),
        temperature: args.temperature.unwrap_or(defaults.temperature),
        top_k: args.top_k.unwrap_or(defaults.top_k),
        top_p: args.top_p.unwrap_or(defaults.top_p),
        seed: args.seed,
        prompt,
    };
    if context.json {
        let mut text = String::new();
        continue_text(&fitted, &request, &mut |more| {
            text.push_str(more);
            true
        })?;
        return context.json(&serde_json::json!({ "prompt": request.prompt, "text": text }));
    }
    let is_shown = destination.path().is_none();
    destination.write(|out| {
        out.write_all(request.prompt.as_bytes())?;
        let mut failed = None;
        continue_text(&fitted, &request, &mut |more| {
            // Control characters do not reach a terminal, but for line ends and tabs.
            let is_plain = |c: char| !is_shown || !c.is_control() || c == '\n' || c == '\t';
            let more: String = more.chars().filter(|&c| is_plain(c)).collect();
            let written = out.write_all(more.as_bytes()).and_then(|()| out.flush());
            failed = written.err();
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        Ok(writeln!(out)?)
    })
}
