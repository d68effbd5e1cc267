//! `gradus select MODEL DATA --rank 16,32,64 --regularization 0.01..1:5`

mod clusters;
mod show;

use super::fit::by_model;
use crate::input::options_of;
use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::{arguments, flag_name, given, one_line, option, parameter};
use crate::progress::stop_on_ctrl_c;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, value_parser};
use gradus::page::shown;
use gradus::select::search::{Axis, Dependence, Dimension, Plan};
use gradus_app::compare::parse_budget;
use gradus_app::data::Source;
use gradus_app::select::{
    FOLDS, SelectRequest, by_clusters, is_of_samples, is_varied, usual, usual_clusters,
};
use gradus_core::capability::Capability;
use gradus_core::params::ParamSpec;
use gradus_file::output::FileKind;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
struct SelectArgs {
    /// The data: CSV, TSV, JSON Lines or Parquet (for features also libsvm), plain, .gz or .zst; `-`
    /// for standard input
    data: PathBuf,

    /// Fit the winner on all the data and save it here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Folds of cross-validation
    #[arg(long, value_name = "K", default_value_t = FOLDS, conflicts_with = "holdout")]
    cv: usize,

    /// Hold out this share once instead
    #[arg(long, value_name = "SHARE")]
    holdout: Option<f64>,

    /// Try this many combinations drawn at random instead of all of them; a parameter may then also
    /// be drawn from a range: low..high, or low..high:log at equal ratios
    #[arg(long, value_name = "N")]
    tries: Option<usize>,

    /// Try combinations drawn at random for so long, the parameters as they are first: 90s, 5m, 1h; a share of 0.2 is held out
    /// unless --cv or --holdout say otherwise, and without parameters to vary, usual ranges are taken
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,

    #[command(flatten)]
    force: ForceArg,
}

// Flags of models that can go on from one fit to the next.
#[derive(Args)]
struct WarmArgs {
    /// Start a fit from its neighbour with a stronger penalty and go on until it converges,
    /// instead of starting at random and stopping early [default for ials, over several penalties]
    #[arg(long, conflicts_with = "cold")]
    warm: bool,

    /// Start every fit at random, and stop it when its held-out score no longer improves
    #[arg(long)]
    cold: bool,
}

// Flags of models of features.
#[derive(Args)]
struct RowArgs {
    /// Hold out samples with the same word in this column together; it is no feature then
    #[arg(long, value_name = "COLUMN", conflicts_with = "time")]
    group: Option<String>,

    /// Learn from the earlier and test on the later by this column of numbers or dates; it is no
    /// feature then
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
}

pub fn command() -> Command {
    let about = "Choose a model's parameters by trying them on held-out data";
    Command::new("select").about(about).defer(|command| by_model(command, of_model))
}

fn of_model(command: Command) -> Command {
    let Ok(model) = crate::registry().find(command.get_name()) else { return command };
    let (traits, specs) = (model.traits(), model.specs());
    let mut command = SelectArgs::augment_args(command);
    if traits.early_stopping {
        command = WarmArgs::augment_args(command);
    }
    if by_clusters(model) {
        command = clusters::ClusterArgs::augment_args(command);
    }
    if is_of_samples(model) {
        command = RowArgs::augment_args(command);
    }
    if !specs.iter().any(|spec| spec.name == "seed") {
        command = command.arg(
            Arg::new("split_seed")
                .long("split-seed")
                .value_name("N")
                .default_value("0")
                .value_parser(value_parser!(u64))
                .help("Seed of the folds and of what is drawn at random"),
        );
    }
    let more = usual(model).map_or(String::new(), |(spec, range)| {
        format!(
            " Without any, --{} is tried at 13 values at equal ratios ({range}).",
            flag_name(&spec)
        )
    });
    let more = usual_clusters(model).map_or(more, |(spec, range)| {
        format!(
            " Without any, --{} is tried over {range}. Clusters are measured by silhouette, gap and stability, and by \
             BIC and AIC where the model knows densities; --cv or --holdout measure on held-out data instead.",
            flag_name(&spec)
        )
    });
    let command = command.args(model.data().options().iter().map(option));
    command
        .after_help(format!(
            "A parameter takes several values, as in 16,32,64, or a range of values at equal \
             ratios, as in 0.01..1:5 for five from 0.01 to 1; of whole numbers also 2..12. Every combination is tried, or \
             --tries of them at random.{more}\n\n{}",
            outputs::RULE
        ))
        .args(model.specs().iter().map(values))
}

/// Values of a parameter as they were typed: what they mean depends on --tries.
#[derive(Clone)]
struct Typed(String);

/// The flag of a parameter that takes several values.
fn values(spec: &ParamSpec) -> Arg {
    if !is_varied(spec) {
        return parameter(spec);
    }
    let checked = spec.clone();
    Arg::new(spec.name.clone())
        .long(flag_name(spec))
        .help_heading("Model parameters")
        .value_name("VALUES")
        .allow_hyphen_values(true)
        .help(format!("{} [default: {}]", one_line(&spec.doc), shown(&spec.default)))
        .value_parser(move |text: &str| match Axis::parse(&checked, text) {
            Err(error) if Dimension::parse(&checked, text).is_err() => Err(error),
            _ => Ok(Typed(text.to_owned())),
        })
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("select: no model; see `gradus models`".into()));
    };
    let model = crate::registry().find(name)?;
    let args = arguments::<SelectArgs>(matches)?;
    let (fixed, varied): (Vec<_>, Vec<_>) =
        model.specs().into_iter().partition(|spec| !is_varied(spec));
    let vary = varied.iter().filter_map(|spec| {
        let Typed(text) = matches.get_one::<Typed>(&spec.name)?;
        Some((spec.name.clone(), text.clone().into()))
    });
    let (group, time) = if is_of_samples(model) {
        let RowArgs { group, time } = arguments(matches)?;
        (group, time)
    } else {
        (None, None)
    };
    let warm = if model.traits().early_stopping {
        let WarmArgs { warm, cold } = arguments(matches)?;
        if warm { Some(true) } else { cold.then_some(false) }
    } else {
        None
    };
    let usage = |error: gradus::Error| Failure::Usage(crate::flags::named(&error.to_string()));
    let budget = args.budget.as_deref().map(parse_budget).transpose().map_err(usage)?.flatten();
    let cv_is_given = matches.value_source("cv") == Some(ValueSource::CommandLine);
    let holdout = args.holdout.or((budget.is_some() && !cv_is_given).then_some(0.2));
    let request = SelectRequest {
        model: name.to_owned(),
        data: Source { path: args.data.clone(), options: options_of(model.data(), matches)? },
        params: given(&fixed, matches),
        vary: vary.collect(),
        tries: args.tries,
        budget,
        folds: args.cv,
        holdout,
        group,
        time,
        warm,
        seed: matches.try_get_one("split_seed").ok().flatten().copied(),
    };
    let candidates = crate::app().candidates(&request).map_err(|error| match error {
        // What was asked for contradicts itself, whatever the data.
        gradus::Error::Data(text) => Failure::Usage(crate::flags::named(&text)),
        other => other.into(),
    })?;
    let held_out = asks_for_held_out(matches, &args, &request);
    let mut plan = FilePlan::new(args.force, [&args.data]);
    let output = match &args.output {
        Some(path) => Some(plan.output("--output", path, FileKind::Model)?),
        None => None,
    };
    if by_clusters(model) {
        if !held_out {
            return clusters::run(matches, (&request, candidates), plan, output, context);
        }
        clusters::refuse(matches)?;
    }
    let stop = stop_on_ctrl_c();
    let selection = context.reading(|remarks| candidates.open(&request, stop.clone(), remarks))?;
    let fits = selection.fits()?;
    let to_do = match &args.budget {
        Some(budget) => format!("as many fits as {budget} allow"),
        None => format!("{} fits to do", grouped(fits)),
    };
    let (file, data) = (args.data.display(), selection.data.describe());
    context.remark(format_args!("{file}: {data}; {to_do}"));
    if selection.usual {
        context.remark(format_args!(
            "no parameter was given several values: {} is tried over a wide range",
            selection.varied.join(", ")
        ));
    }
    let bar = bar(fits, context);
    let started = Instant::now();
    let found = selection.run(&|done: usize| bar.set_position(done as u64));
    bar.finish_and_clear();
    let found = match found {
        Err(_) if stop.requested() => return Err(Failure::Interrupted),
        found => found?,
    };
    let shown = show::Shown {
        name,
        varied: &selection.varied,
        found: &found,
        seconds: started.elapsed().as_secs_f64(),
        stopped_early: model.traits().early_stopping && !selection.search.warm,
        fitted_on: match selection.search.plan {
            Plan::Folds(k) => 1.0 - 1.0 / k as f64,
            Plan::Holdout(share) => 1.0 - share,
        },
        units: match &selection.search.rows {
            Dependence::Groups(_) => "groups",
            _ if model.traits().can(Capability::Recommend) => "users",
            _ => model.data().name(),
        },
        at_an_end: selection.usual && selection.random.is_none() && selection.is_at_an_end(&found),
    };
    shown.show(context)?;
    if stop.requested() {
        context.remark(format_args!(
            "interrupted after {} of {} folds; nothing was saved",
            found.folds.0, found.folds.1
        ));
        return Err(Failure::Interrupted);
    }
    if let Some(output) = &output {
        let refitted = selection.refit(&found);
        if stop.requested() {
            context.remark("interrupted while fitting the winner; nothing was saved");
            return Err(Failure::Interrupted);
        }
        refitted?.save_to(output)?;
        let path = output.path().display();
        context.remark(format_args!("saved {path}, fitted on all the data"));
    }
    Ok(())
}

/// Whether candidates are to be measured on held-out data.
fn asks_for_held_out(matches: &ArgMatches, args: &SelectArgs, request: &SelectRequest) -> bool {
    let given = matches.value_source("cv") == Some(ValueSource::CommandLine);
    let apart = request.group.is_some() || request.time.is_some();
    given || apart || args.holdout.is_some() || args.tries.is_some() || args.budget.is_some()
}

fn bar(fits: usize, context: Context) -> ProgressBar {
    let bar = ProgressBar::new(fits as u64);
    bar.set_draw_target(if context.quiet || context.json {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    });
    let style = match crate::progress::width() {
        ..60 => "select {pos} of {len} fits",
        _ => "select {bar:24.cyan/blue} {pos} of {len} fits · {eta} left",
    };
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar
}
