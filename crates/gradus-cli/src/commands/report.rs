//! `gradus report FILE -o report.html`

use crate::input::{DataArgs, Known};
use crate::output::{Context, Failure, Outcome};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use gradus::page::{Tested, page};
use gradus::select::metrics::rating_errors;
use std::path::{Path, PathBuf};

#[derive(Args)]
struct ReportArgs {
    /// The model
    model: PathBuf,

    /// Where to write the page: one HTML file that needs no network
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Ratings the model has not seen, to show predictions against
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    ReportArgs::augment_args(
        Command::new("report")
            .about("Draw a page about a model: the fit, its error, its parameters"),
    )
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = ReportArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let fitted = gradus::load(&args.model)?;
    let tested = match &args.data {
        Some(path) => {
            let model = fitted.recommend()?;
            let (pairs, truth) = args.input.rated_pairs(path, context)?;
            let predicted = model.predict(&Known::of(&pairs, model).indices);
            let errors = rating_errors(&truth, &predicted, None)?;
            let source = path.display().to_string();
            Some(Tested { source, truth, predicted, errors })
        }
        None => None,
    };
    let name = args.model.file_name().unwrap_or(args.model.as_os_str()).to_string_lossy();
    write(&args.output, &page(&fitted, &name, tested.as_ref()).to_html())?;
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

/// Writes a page.
pub fn write(path: &Path, html: &str) -> Outcome {
    Ok(std::fs::write(path, html).map_err(|error| gradus::Error::io(path, error))?)
}
