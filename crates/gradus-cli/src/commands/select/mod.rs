//! `gradus select MODEL DATA --rank 16,32,64 --regularization 0.01..1:5`

mod show;

use super::fit::{by_model, flag_name, is_on_by_default, is_switch, one_line, parameter};
use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::progress::stop_on_ctrl_c;
use crate::samples::SampleArgs;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _};
use gradus::page::shown;
use gradus::select::search::{Axis, Dimension, Plan, Random, Rows, Search};
use gradus_core::capability::Capability;
use gradus_core::estimator::{AnyData, Estimator, Run};
use gradus_core::params::{ParamKind, ParamSpec};
use gradus_file::output::FileKind;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value};
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
    #[arg(long, value_name = "K", default_value_t = 5, conflicts_with = "holdout")]
    cv: usize,

    /// Hold out this share once instead
    #[arg(long, value_name = "SHARE")]
    holdout: Option<f64>,

    /// Try so many combinations drawn at random instead of all of them; a parameter may then also
    /// be drawn from a range: low..high, or low..high:log at equal ratios
    #[arg(long, value_name = "N")]
    tries: Option<usize>,

    #[command(flatten)]
    force: ForceArg,
}

// What models of ratings are told besides.
#[derive(Args)]
struct RatingArgs {
    /// Start a fit from its neighbour with a stronger penalty and go on until it converges,
    /// instead of starting at random and stopping early [default for ials, over several penalties]
    #[arg(long, conflicts_with = "cold")]
    warm: bool,

    /// Start every fit at random, and stop it when its held-out score no longer improves
    #[arg(long)]
    cold: bool,

    #[command(flatten)]
    input: DataArgs,
}

// What models of features are told besides.
#[derive(Args)]
struct RowArgs {
    /// Hold out samples with the same word in this column together; it is no feature then
    #[arg(long, value_name = "COLUMN", conflicts_with = "time")]
    group: Option<String>,

    /// Learn from the earlier and test on the later by this column of numbers or dates; it is no
    /// feature then
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Seed of the folds and of what is drawn at random
    #[arg(long, value_name = "N", default_value_t = 0)]
    split_seed: u64,

    #[command(flatten)]
    input: SampleArgs,
}

pub fn command() -> Command {
    let about = "Choose a model's parameters by trying them on held-out data";
    Command::new("select").about(about).defer(|command| by_model(command, of_model))
}

fn of_model(command: Command) -> Command {
    let Ok(model) = gradus::find(command.get_name()) else { return command };
    let command = SelectArgs::augment_args(command);
    let (command, more) = if model.traits().can(Capability::Recommend) {
        (RatingArgs::augment_args(command), String::new())
    } else {
        let usual = usual(&model.specs()).map_or(String::new(), |(spec, range)| {
            format!(
                " Without any, --{} is tried at 13 values at equal ratios ({range}).",
                flag_name(&spec)
            )
        });
        (RowArgs::augment_args(command), usual)
    };
    command
        .after_help(format!(
            "A parameter takes several values, as in 16,32,64, or a range of values at equal \
             ratios, as in 0.01..1:5 for five from 0.01 to 1. Every combination is tried, or \
             --tries of them at random.{more}\n\n{}",
            outputs::RULE
        ))
        .args(model.specs().iter().map(values))
}

/// Values of a parameter as they were typed: what they mean depends on --tries.
#[derive(Clone)]
struct Typed(String);

/// Whether a parameter can be given several values, to choose from.
fn is_varied(spec: &ParamSpec) -> bool {
    let lists = matches!(spec.kind, ParamKind::Numbers { .. } | ParamKind::Integers { .. });
    !lists && spec.kind != ParamKind::Bool
}

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

/// The parameter to vary when none is named, and over what.
fn usual(specs: &[ParamSpec]) -> Option<(ParamSpec, &'static str)> {
    // A penalty depends on the scale of the target, so a wide range; `c` of a margin does not.
    [("regularization", "1e-6..1e6"), ("c", "1e-3..1e3")].into_iter().find_map(|(name, range)| {
        let spec = specs.iter().find(|spec| spec.name == name)?;
        let fits = Axis::parse(spec, &format!("{range}:13")).is_ok();
        fits.then(|| (spec.clone(), range))
    })
}

/// What stays as it is, and what varies.
#[derive(Default)]
struct Given {
    fixed: Map<String, Value>,
    axes: Vec<Axis>,
    dimensions: Vec<Dimension>,
    /// Whether the range is not the user's.
    usual: bool,
}

impl Given {
    fn read(specs: &[ParamSpec], matches: &ArgMatches, random: bool) -> Outcome<Self> {
        let mut given = Self::default();
        for spec in specs {
            if is_switch(spec) {
                if matches.get_flag(&spec.name) {
                    let value = Value::Bool(!is_on_by_default(spec));
                    given.fixed.insert(spec.name.clone(), value);
                }
            } else if !is_varied(spec) {
                if let Some(value) = matches.get_one::<Value>(&spec.name) {
                    given.fixed.insert(spec.name.clone(), value.clone());
                }
            } else if let Some(Typed(text)) = matches.get_one::<Typed>(&spec.name) {
                given.vary(spec, text, random)?;
            }
        }
        Ok(given)
    }

    fn vary(&mut self, spec: &ParamSpec, text: &str, random: bool) -> Outcome {
        match Axis::parse(spec, text) {
            Ok(axis) if axis.values.len() == 1 => {
                self.fixed.insert(spec.name.clone(), axis.values[0].clone());
            }
            _ if random => self.dimensions.push(Dimension::parse(spec, text)?),
            Ok(axis) => self.axes.push(axis),
            Err(error) => {
                return Err(Failure::Usage(format!(
                    "{error}; a range without a count is drawn from at random: say --tries N as well"
                )));
            }
        }
        Ok(())
    }

    /// The names of what varies.
    fn varied(&self) -> Vec<String> {
        let axes = self.axes.iter().map(|axis| axis.name.clone());
        axes.chain(self.dimensions.iter().map(|dimension| dimension.name.clone())).collect()
    }
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("select: no model; see `gradus models`".into()));
    };
    let model = gradus::find(name)?;
    let args = SelectArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let random = args.tries.is_some();
    let specs = model.specs();
    let mut given = Given::read(&specs, matches, random)?;
    let of_samples = !model.traits().can(Capability::Recommend);
    if given.varied().is_empty() && of_samples {
        let free = usual(&specs).filter(|(spec, _)| !given.fixed.contains_key(&spec.name));
        if let Some((spec, range)) = free {
            given.usual = true;
            given.vary(&spec, &format!("{range}:{}", if random { "log" } else { "13" }), random)?;
        }
    }
    if given.varied().is_empty() {
        let example = if of_samples { "" } else { "--rank 16,32,64 or " };
        return Err(Failure::Usage(format!(
            "select {name}: nothing to choose from; give a parameter several values, \
             as in {example}--regularization 0.01..1:5"
        )));
    }
    let output = match &args.output {
        Some(path) => {
            let mut plan = FilePlan::new(args.force, [&args.data]);
            Some(plan.output("--output", path, FileKind::Model)?)
        }
        None => None,
    };
    let along = given.axes.iter().any(|axis| axis.name == "regularization");
    let loaded = load(model, &args, matches, (&given.fixed, along), context)?;
    let varied = given.varied();
    let random =
        args.tries.map(|tries| Random { dimensions: given.dimensions, tries, seed: loaded.seed });
    let search = Search {
        model,
        fixed: given.fixed,
        axes: given.axes,
        plan: args.holdout.map_or(Plan::Folds(args.cv), Plan::Holdout),
        rows: loaded.rows,
        seed: loaded.seed,
        warm: loaded.warm,
        stop: stop_on_ctrl_c(),
    };
    let fits = match &random {
        Some(random) => search.fits_random(random)?,
        None => search.fits(),
    };
    context.remark(format_args!(
        "{}: {}; {} fits to do",
        args.data.display(),
        loaded.told,
        grouped(fits)
    ));
    if given.usual {
        context.remark(format_args!(
            "no parameter was given several values: {} is tried over a wide range",
            varied.join(", ")
        ));
    }
    let bar = bar(fits, context);
    let begun = Instant::now();
    let tell = |done: usize| bar.set_position(done as u64);
    let found = match &random {
        Some(random) => search.run_random(random, &loaded.data, &tell),
        None => search.run(&loaded.data, &tell),
    };
    bar.finish_and_clear();
    let found = match found {
        Err(_) if search.stop.requested() => return Err(Failure::Interrupted),
        found => found?,
    };
    let shown = show::Shown {
        name,
        varied: &varied,
        found: &found,
        seconds: begun.elapsed().as_secs_f64(),
        stopped_early: !of_samples && !search.warm,
        fitted_on: match search.plan {
            Plan::Folds(k) => 1.0 - 1.0 / k as f64,
            Plan::Holdout(share) => 1.0 - share,
        },
        units: match &search.rows {
            Rows::Groups(_) => "groups",
            _ if of_samples => "samples",
            _ => "users",
        },
        at_an_end: given.usual
            && random.is_none()
            && at_an_end(&search, &found.candidates[0].params),
    };
    shown.show(context)?;
    if search.stop.requested() {
        context.remark(format_args!(
            "interrupted after {} of {} folds; nothing was saved",
            found.folds.0, found.folds.1
        ));
        return Err(Failure::Interrupted);
    }
    if let Some(output) = &output {
        let run = Run { stop: search.stop.clone(), ..Run::default() };
        let refitted = search.refit(&found, &loaded.data, &run);
        if search.stop.requested() {
            context.remark("interrupted while fitting the winner; nothing was saved");
            return Err(Failure::Interrupted);
        }
        let mut fitted = refitted?;
        fitted.report.training = Some(loaded.data.sketch());
        fitted.save_to(output)?;
        let path = output.path().display();
        context.remark(format_args!("saved {path}, fitted on all the data"));
    }
    Ok(())
}

/// Whether the best is the first or last value of an axis.
fn at_an_end(search: &Search<'_>, best: &Map<String, Value>) -> bool {
    search.axes.iter().any(|axis| {
        let value = best.get(&axis.name);
        axis.values.len() > 2 && (axis.values.first() == value || axis.values.last() == value)
    })
}

/// The data, and how it is to be held out.
struct Loaded {
    data: AnyData,
    rows: Rows,
    seed: u64,
    warm: bool,
    told: String,
}

fn load(
    model: &dyn Estimator,
    args: &SelectArgs,
    matches: &ArgMatches,
    (fixed, along): (&Map<String, Value>, bool),
    context: Context,
) -> Outcome<Loaded> {
    let usage = |error: clap::Error| Failure::Usage(error.to_string());
    let traits = model.traits();
    if traits.can(Capability::Recommend) {
        let RatingArgs { warm, cold, input } =
            RatingArgs::from_arg_matches(matches).map_err(usage)?;
        let (ratings, _) = input.ratings_for(&args.data, traits.is_implicit(), context)?;
        return Ok(Loaded {
            told: format!("{} ratings", grouped(ratings.len())),
            data: AnyData::Ratings(ratings),
            rows: Rows::Any,
            seed: fixed.get("seed").and_then(Value::as_u64).unwrap_or(0),
            warm: warm || (!cold && along && model.traits().warm_path),
        });
    }
    let rows = RowArgs::from_arg_matches(matches).map_err(usage)?;
    let apart = [rows.group.as_deref(), rows.time.as_deref()];
    let (samples, [group, time]) = rows.input.samples_apart(&args.data, traits, apart, context)?;
    Ok(Loaded {
        told: format!(
            "{} samples, {} features",
            grouped(samples.len()),
            grouped(samples.n_features())
        ),
        data: AnyData::Samples(samples),
        rows: match (group, time) {
            (Some(ranks), _) => Rows::Groups(ranks),
            (_, Some(ranks)) => Rows::Times(ranks.into_iter().map(i64::from).collect()),
            (None, None) => Rows::Any,
        },
        seed: rows.split_seed,
        warm: true,
    })
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
