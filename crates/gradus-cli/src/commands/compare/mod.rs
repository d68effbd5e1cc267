//! `gradus compare ratings.csv --budget 10m -o best.gradus`

mod show;

use crate::input::options_of;
use crate::output::{Context, Failure, Outcome};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::{arguments, option};
use crate::progress::stop_on_ctrl_c;
use clap::{Arg, ArgMatches, Args, Command};
use gradus::select::compare::{FitStage, RaceStep};
use gradus_app::compare::{
    CompareOptions, CompareRequest, compare_json, compare_page, metric_names, parse_budget,
};
use gradus_app::data::Source;
use gradus_core::params::ParamSpec;
use gradus_file::output::FileKind;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
struct CompareArgs {
    /// The data: ratings, or with --target a table of features; CSV, TSV, JSON Lines or Parquet (for
    /// features also libsvm), plain, .gz or .zst; `-` for standard input
    data: PathBuf,

    /// Fit the winner on all the data and save it here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Draw the comparison on a page: one HTML file that needs no network; `-` for standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Time budget, the fit of the winner included: 90s, 10m, 1h; none for no limit and
    /// no race, so that the result does not depend on the clock
    #[arg(long, value_name = "TIME", default_value = "5m", allow_hyphen_values = true)]
    budget: String,

    /// Compare these models; baselines take part in any case [default: all that fit the data]
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',')]
    models: Vec<String>,

    /// Leave these models out
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',')]
    without: Vec<String>,

    /// Task of a table [regression|classification; default: by the type of the target]
    #[arg(long, value_name = "WORD")]
    task: Option<String>,

    /// Share of the data in the test part, looked at once
    #[arg(long, value_name = "SHARE", default_value_t = CompareOptions::default().holdout)]
    holdout: f64,

    /// Hold-out scheme of ratings [random|per-user|last|cold]
    #[arg(long, value_name = "WORD", default_value_t = CompareOptions::default().split)]
    split: String,

    /// Hold out samples with the same word in this column together; it is no feature then
    #[arg(long, value_name = "COLUMN", conflicts_with = "time")]
    group: Option<String>,

    /// Learn from the earlier and test on the later samples by this column of numbers or dates; it is
    /// no feature then
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Seed of the split and of the fits
    #[arg(long, value_name = "N", default_value_t = CompareOptions::default().seed)]
    seed: u64,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    let about = "Compare models on your data within a time budget: a leaderboard, and the winner";
    Command::new("compare").about(about).defer(|command| {
        let command = CompareArgs::augment_args(command)
            .arg(
                Arg::new("metric").long("metric").value_name("WORD").help(format!(
                    "Metric by which models are compared [{}; default: rmse, ndcg for --implicit, accuracy of \
                     classes]",
                    metric_names().join("|")
                )),
            )
            .after_help(format!(
                "Every model that fits the data takes part, each with its defaults (`gradus models` \
                 lists them). Models race on growing parts of the data; those that are left are fitted on \
                 everything but the test part, and tested on that once.\n\n{}",
                outputs::RULE
            ));
        command.args(options().iter().map(option))
    })
}

/// The options of both kinds of data, each once.
fn options() -> Vec<ParamSpec> {
    let mut all: Vec<ParamSpec> = Vec::new();
    let kinds =
        [false, true].into_iter().filter_map(|target| crate::app().compared_kind(target).ok());
    for spec in kinds.flat_map(|kind| kind.options()) {
        if all.iter().all(|known| known.name != spec.name) {
            all.push(spec);
        }
    }
    all
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<CompareArgs>(matches)?;
    let usage = |error: gradus::Error| Failure::Usage(crate::flags::named(&error.to_string()));
    let budget = parse_budget(&args.budget).map_err(usage)?;
    let given = |name: &str| {
        let source = matches.value_source(name);
        source.is_some_and(|source| source == clap::parser::ValueSource::CommandLine)
    };
    let kind = crate::app().compared_kind(given("target"))?;
    let own = kind.options();
    let foreign = options()
        .into_iter()
        .find(|spec| given(&spec.name) && own.iter().all(|known| known.name != spec.name));
    if let Some(spec) = foreign {
        let flag = crate::parameters::flag_name(&spec);
        return Err(Failure::Usage(format!(
            "--{flag} is no option of {}: {}",
            kind.name(),
            if given("target") {
                "--target says that the data is a table"
            } else {
                "give --target"
            }
        )));
    }
    let mut plan = FilePlan::new(args.force, [&args.data]);
    let output = match &args.output {
        Some(path) => Some(plan.output("--output", path, FileKind::Model)?),
        None => None,
    };
    let page = match &args.report {
        Some(path) => Some(plan.page_or_stdout("--report", path)?),
        None => None,
    };
    let request = CompareRequest {
        data: Source { path: args.data.clone(), options: options_of(kind, matches)? },
        how: CompareOptions {
            models: args.models,
            without: args.without,
            budget,
            metric: matches.get_one::<String>("metric").cloned(),
            task: args.task,
            holdout: args.holdout,
            split: args.split,
            group: args.group,
            time: args.time,
            seed: args.seed,
            // Nobody would see the model.
            refit: output.is_some(),
        },
    };
    let stop = stop_on_ctrl_c();
    let app = crate::app();
    let comparing =
        context.reading(|remarks| app.prepare_compare(&request, stop.clone(), remarks))?;
    let description = comparing.data.describe();
    context.remark(format_args!(
        "{}: {description}; {} models, {}",
        args.data.display(),
        comparing.compare.models.len(),
        match budget {
            Some(seconds) => format!("{} at most", show::time(seconds)),
            None => "no limit of time".to_owned(),
        }
    ));
    let bar = spinner(context);
    let found = comparing.run(&|step: &RaceStep<'_>| bar.set_message(answer(step)));
    bar.finish_and_clear();
    let found = found?;
    let comparison = &found.comparison;
    if context.json {
        context.json(&compare_json(comparison, comparing.data.as_ref()).into())?;
    } else if page.as_ref().is_none_or(|page| page.path().is_some()) {
        show::show(comparison, context)?;
    }
    if let Some(page) = &page {
        let name = args.data.file_name().unwrap_or(args.data.as_os_str()).to_string_lossy();
        let html = compare_page(comparison, &format!("Models on {name}"), &description);
        page.write(|out| Ok(out.write_all(html.as_bytes())?))?;
        if let Some(path) = page.path() {
            context.remark(format_args!("wrote {}", path.display()));
        }
    }
    if let (Some(output), Some(best)) = (&output, &found.best) {
        best.save_to(output)?;
        let on = if comparison.best_on_all_data { "all the data" } else { "the training part" };
        let (path, kind) = (output.path().display(), best.kind);
        context.remark(format_args!("saved {path}: {kind}, fitted on {on}"));
    }
    if comparison.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

fn answer(step: &RaceStep<'_>) -> String {
    let (at, of) = step.of;
    match step.stage {
        FitStage::Race => {
            format!("race on {:.0} % · {} ({at} of {of})", 100.0 * step.share, step.model)
        }
        FitStage::Test => format!("test · {} ({at} of {of})", step.model),
        FitStage::Refit => format!("{} on all the data", step.model),
    }
}

fn spinner(context: Context) -> ProgressBar {
    let bar = ProgressBar::no_length();
    bar.set_draw_target(if context.quiet || context.json {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    });
    if let Ok(style) = ProgressStyle::with_template("compare {spinner} {elapsed} · {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
