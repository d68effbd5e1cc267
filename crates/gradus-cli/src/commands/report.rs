//! `gradus report FILE -o report.html`

use super::titles::TitlesArgs;
use crate::input::DataArgs;
use crate::output::{Context, Outcome};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::report::{ReportRequest, report};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Args)]
struct ReportArgs {
    /// The model
    model: PathBuf,

    /// Where to write the page: one HTML file that needs no network; `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Data the model has not seen, to show predictions against; of vectors of words a file of analogies
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
    if fitted.model.recommend().is_some() {
        args.titles.add_to(&mut fitted, context)?;
    }
    let name = args.model.file_name().unwrap_or(args.model.as_os_str()).to_string_lossy();
    let request = ReportRequest {
        title: name.into_owned(),
        data: args.data,
        options: args.input.0,
        target: args.target,
    };
    let html = context.reading(|remarks| report(&fitted, &request, remarks))?;
    write(&destination, &html, context)
}

/// Writes a page.
fn write(to: &Destination, html: &str, context: Context) -> Outcome {
    to.write(|out| Ok(out.write_all(html.as_bytes())?))?;
    if let Some(path) = to.path() {
        context.remark(format_args!("wrote {}", path.display()));
    }
    Ok(())
}
