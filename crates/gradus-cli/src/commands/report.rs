//! `gradus report FILE -o report.html`

use super::titles::TitlesArgs;
use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::page::{Tested, any_page, page, samples_page};
use gradus_core::estimator::AnyFitted;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Args)]
struct ReportArgs {
    /// The model
    model: PathBuf,

    /// Where to write the page: one HTML file that needs no network; `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Data the model has not seen, to show predictions against
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// The columns that hold the truth, for a model of features [default: as in training]
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', requires = "data")]
    target: Vec<String>,

    #[command(flatten)]
    force: ForceArg,

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
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<ReportArgs>(matches)?;
    let inputs = [&args.model].into_iter().chain(&args.data).chain(args.titles.inputs());
    let mut plan = FilePlan::new(args.force, inputs);
    let destination = plan.page_or_stdout("--output", &args.output)?;
    let mut fitted = crate::registry().load(&args.model)?;
    if fitted.model.recommend().is_none() {
        return of_samples(&args, &fitted, &destination, context);
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
    write(&destination, &page(&fitted, &name, tested.as_ref()).to_html(), context)
}

fn of_samples(
    args: &ReportArgs,
    fitted: &AnyFitted,
    destination: &Destination,
    context: Context,
) -> Outcome {
    let name = args.model.file_name().unwrap_or(args.model.as_os_str()).to_string_lossy();
    if fitted.model.predictor().is_none() {
        if args.data.is_some() {
            // The message says what the model can do instead.
            fitted.predictor()?;
        }
        return write(destination, &any_page(fitted, &name).to_html(), context);
    }
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
            Some(context.reading(|remarks| {
                args.input.table().samples_for(path, inputs, classes, remarks)
            })?)
        }
        None => None,
    };
    let source = args.data.as_ref().map(|path| path.display().to_string());
    let tested = source.as_deref().zip(samples.as_ref());
    write(destination, &samples_page(fitted, &name, tested)?.to_html(), context)
}

/// Writes a page.
fn write(to: &Destination, html: &str, context: Context) -> Outcome {
    to.write(|out| Ok(out.write_all(html.as_bytes())?))?;
    if let Some(path) = to.path() {
        context.remark(format_args!("wrote {}", path.display()));
    }
    Ok(())
}
