//! `gradus report FILE -o report.html`

use super::titles::TitlesArgs;
use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, grouped};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use gradus::core::estimator::{AnyFitted, Task};
use gradus::page::{Tested, page, samples_page};
use std::path::{Path, PathBuf};

#[derive(Args)]
struct ReportArgs {
    /// The model
    model: PathBuf,

    /// Where to write the page: one HTML file that needs no network
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Data the model has not seen, to show predictions against
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// The columns that hold the truth, for a model of features [default: as in training]
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', requires = "data")]
    target: Vec<String>,

    #[command(flatten)]
    titles: TitlesArgs,

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
    let mut fitted = gradus::load(&args.model)?;
    if gradus::find(fitted.kind)?.traits().task != Task::Recommend {
        return of_samples(&args, &fitted, context);
    }
    args.titles.add_to(&mut fitted, context)?;
    let tested = match &args.data {
        Some(path) => {
            let (data, has_values) = args.input.interactions(path, context)?;
            let source = path.display().to_string();
            let tested = Tested::new(&fitted, &source, &data, has_values)?;
            if tested.is_training() {
                context.remark(format_args!(
                    "caution: {} of the {} ratings of {source} are in the training data",
                    grouped(tested.in_training.unwrap_or_default()),
                    grouped(tested.count)
                ));
            }
            Some(tested)
        }
        None => None,
    };
    let name = args.model.file_name().unwrap_or(args.model.as_os_str()).to_string_lossy();
    write(&args.output, &page(&fitted, &name, tested.as_ref()).to_html())?;
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn of_samples(args: &ReportArgs, fitted: &AnyFitted, context: Context) -> Outcome {
    let model = fitted.predictor()?;
    let names = model.outputs().names();
    let target = if args.target.is_empty() { names } else { args.target.as_slice() };
    if target.len() != names.len() {
        return Err(Failure::Usage(format!(
            "--target {}: the model predicts {}",
            target.join(","),
            names.join(",")
        )));
    }
    let samples = match &args.data {
        Some(path) => {
            let classes = model.outputs().labels().is_some();
            let inputs = (model.inputs(), target);
            Some(args.input.table().samples_for(path, inputs, classes, context)?)
        }
        None => None,
    };
    let source = args.data.as_ref().map(|path| path.display().to_string());
    let tested = source.as_deref().zip(samples.as_ref());
    let name = args.model.file_name().unwrap_or(args.model.as_os_str()).to_string_lossy();
    write(&args.output, &samples_page(fitted, &name, tested)?.to_html())?;
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

/// Writes a page.
pub fn write(path: &Path, html: &str) -> Outcome {
    Ok(std::fs::write(path, html).map_err(|error| gradus::Error::io(path, error))?)
}
