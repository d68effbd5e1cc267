//! `gradus sample FILE -n 64 -o grid.png`

use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::sample::{SampleForm, SampleRequest};
use std::path::{Path, PathBuf};

#[derive(Args)]
struct SampleArgs {
    /// The model
    model: PathBuf,

    /// Number of samples to draw [default: 64, with --complete as many as the file has, up to 64]
    #[arg(short, long, value_name = "N")]
    number: Option<usize>,

    /// Seed of the draw: the same seed gives the same samples
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Class to draw from, of a model that learned classes
    #[arg(long, value_name = "NAME")]
    class: Option<String>,

    /// Strength of the guidance towards the class: 0 for none
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    guidance: Option<f64>,

    /// Number of steps from noise to data, of a model that takes steps
    #[arg(long, value_name = "N")]
    steps: Option<usize>,

    /// Divisor of the logits, or factor of the deviation of the noise: less than 1 prefers what is probable [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    temperature: Option<f64>,

    /// Where to compute: cpu or gpu, of a model that can do so on a graphics card [default: cpu]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Images (or rows of a table) to complete: the upper part is kept, the rest is drawn
    #[arg(long, value_name = "FILE")]
    complete: Option<PathBuf>,

    /// Share that is kept of what is completed [default: 0.5]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, requires = "complete")]
    keep: Option<f64>,

    /// Output file, whose name says the form: .png (images side by side, or points), .npy, .svg or .html (points of a table of two
    /// columns), or a table, compressed if so named [default: a table on standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    SampleArgs::augment_args(
        Command::new("sample").about(
            "Draw samples from a generative model: a picture of images, an array, or a table",
        ),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: SampleArgs = arguments(matches)?;
    let inputs = [&args.model].into_iter().chain(&args.complete);
    let mut plan = FilePlan::new(args.force, inputs);
    let form = args.output.as_deref().map_or(SampleForm::Table, SampleForm::of);
    let destination = match args.output.as_deref() {
        Some(path) if form != SampleForm::Table && path != Path::new("-") => {
            let output = plan.output("--output", path, form.kind(path))?;
            Destination::File(Box::new(output))
        }
        path => plan.table_or_stdout("--output", path)?,
    };
    let fitted = crate::registry().load(&args.model)?;
    let defaults = SampleRequest::default();
    let request = SampleRequest {
        number: args.number,
        seed: args.seed,
        class: args.class,
        guidance: args.guidance,
        steps: args.steps,
        temperature: args.temperature,
        device: args.device,
        complete: args.complete,
        keep: args.keep.unwrap_or(defaults.keep),
    };
    let app = crate::app();
    let data = context.reading(|remarks| app.sample(&fitted, &request, remarks))?;
    let title = format!("Samples of {}", args.model.display());
    destination.write(|out| Ok(form.write(data.as_ref(), &title, out)??))?;
    if let Some(path) = destination.path() {
        let (n, kind) = (grouped(data.len()), data.kind());
        context.remark(format_args!("{n} {kind} in {}", path.display()));
    }
    Ok(())
}
