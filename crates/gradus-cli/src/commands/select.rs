//! `gradus select MODEL DATA --rank 16,32,64 --regularization 0.01..1:5`

use super::fit::{flag_name, is_on_by_default, one_line, parameter};
use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, Table, check_output, grouped, seconds};
use crate::progress::stop_on_ctrl_c;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _};
use gradus::core::estimator::Run;
use gradus::core::params::{ParamKind, ParamSpec};
use gradus::page::shown;
use gradus::select::search::{Axis, Found, Plan, Search};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
struct SelectArgs {
    /// The ratings: CSV, TSV, JSON Lines or Parquet, plain, .gz or .zst; `-` for standard input
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

    /// Start a fit from its neighbour with a stronger penalty and go on until it converges,
    /// instead of starting at random and stopping early
    #[arg(long)]
    warm: bool,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    let models = gradus::models().iter().map(|model| {
        let (summary, _) = model.docs();
        SelectArgs::augment_args(Command::new(model.name()).about(summary))
            .after_help(
                "A parameter takes several values, as in --rank 16,32,64, or a range of values at \
                 equal ratios, as in --regularization 0.01..1:5 for five from 0.01 to 1. Every \
                 combination is tried.",
            )
            .args(model.specs().iter().map(values))
    });
    Command::new("select")
        .about("Choose a model's parameters by trying them on held-out data")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("MODEL")
        .subcommand_help_heading("Models")
        .subcommands(models)
}

/// The flag of a parameter that takes several values.
fn values(spec: &ParamSpec) -> Arg {
    if spec.kind == ParamKind::Bool {
        return parameter(spec);
    }
    let checked = spec.clone();
    Arg::new(spec.name.clone())
        .long(flag_name(spec))
        .help_heading("Model parameters")
        .value_name("VALUES")
        .allow_hyphen_values(true)
        .help(format!("{} [default: {}]", one_line(&spec.doc), shown(&spec.default)))
        .value_parser(move |text: &str| Axis::parse(&checked, text))
}

/// What stays as it is, and what varies.
fn given(specs: &[ParamSpec], matches: &ArgMatches) -> (Map<String, Value>, Vec<Axis>) {
    let (mut fixed, mut axes) = (Map::new(), Vec::new());
    for spec in specs {
        if spec.kind == ParamKind::Bool {
            if matches.get_flag(&spec.name) {
                fixed.insert(spec.name.clone(), Value::Bool(!is_on_by_default(spec)));
            }
        } else if let Some(axis) = matches.get_one::<Axis>(&spec.name) {
            match axis.values.as_slice() {
                [one] => {
                    fixed.insert(spec.name.clone(), one.clone());
                }
                _ => axes.push(axis.clone()),
            }
        }
    }
    (fixed, axes)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("select: no model; see `gradus models`".into()));
    };
    let model = gradus::find(name)?;
    let args = SelectArgs::from_arg_matches(matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let (fixed, axes) = given(&model.specs(), matches);
    if axes.is_empty() {
        return Err(Failure::Usage(format!(
            "select {name}: nothing to choose from; give a parameter several values, \
             as in --rank 16,32,64 or --regularization 0.01..1:5"
        )));
    }
    if let Some(output) = &args.output {
        check_output(output)?;
    }
    let seed = fixed.get("seed").and_then(Value::as_u64).unwrap_or(0);
    let search = Search {
        model,
        fixed,
        axes,
        plan: args.holdout.map_or(Plan::Folds(args.cv), Plan::Holdout),
        seed,
        warm: args.warm,
        stop: stop_on_ctrl_c(),
    };
    let (data, _) = args.input.ratings(&args.data, context)?;
    context.remark(format_args!(
        "{}: {} ratings; {} fits to do",
        args.data.display(),
        grouped(data.len()),
        grouped(search.fits())
    ));
    let bar = bar(search.fits(), context);
    let begun = Instant::now();
    let found = search.run(&data, &|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    let found = match found {
        Err(_) if search.stop.requested() => return Err(Failure::Interrupted),
        found => found?,
    };
    show(name, &search, &found, begun.elapsed().as_secs_f64(), context)?;
    if search.stop.requested() {
        context.remark(format_args!(
            "interrupted after {} of {} folds; nothing was saved",
            found.folds.0, found.folds.1
        ));
        return Err(Failure::Interrupted);
    }
    if let Some(output) = &args.output {
        let run = Run { stop: search.stop.clone(), ..Run::default() };
        search.refit(&found, &data, &run)?.save(output)?;
        context.remark(format_args!("saved {}, fitted on all the data", output.display()));
    }
    Ok(())
}

fn bar(fits: usize, context: Context) -> ProgressBar {
    let bar = ProgressBar::new(fits as u64);
    bar.set_draw_target(if context.quiet || context.json {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    });
    let style = "select {bar:24.cyan/blue} {pos} of {len} fits · {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar
}

fn show(name: &str, search: &Search<'_>, found: &Found, time: f64, context: Context) -> Outcome {
    if context.json {
        let candidates: Vec<Value> = found
            .candidates
            .iter()
            .map(|c| {
                json!({
                    "params": c.params, "score": c.score.value, "error": c.score.error,
                    "iterations": c.iterations,
                })
            })
            .collect();
        let lead = found.lead.map(|lead| {
            json!({
                "difference": lead.difference, "error": lead.error, "points": lead.points,
                "needed": lead.needed, "sure": lead.is_sure(),
            })
        });
        return context.json(&json!({
            "model": name, "metric": found.metric, "higher_is_better": found.higher_is_better,
            "folds": found.folds.0, "planned": found.folds.1, "seconds": time,
            "candidates": candidates, "lead": lead,
        }));
    }
    let metric = format!(">{}", found.metric.to_uppercase());
    let mut head: Vec<String> = search.axes.iter().map(|axis| format!(">{}", axis.name)).collect();
    head.extend([metric, ">±".into(), ">iterations".into()]);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    for candidate in &found.candidates {
        let mut row: Vec<String> =
            search.axes.iter().map(|axis| shown(&candidate.params[&axis.name])).collect();
        row.push(format!("{:.4}", candidate.score.value));
        row.push(format!("{:.4}", candidate.score.error));
        row.push(format!("{:.1}", candidate.iterations));
        table.row(row);
    }
    context.say(table)?;
    context.say(format_args!(
        "± is one standard error; {} of {} folds in {}",
        found.folds.0,
        found.folds.1,
        seconds(time)
    ))?;
    if let Some(lead) = found.lead {
        let verdict = match lead.needed {
            _ if lead.is_sure() => "told apart by these points".to_owned(),
            Some(needed) => format!("it would take about {} to be sure", grouped_u64(needed)),
            None => "the two are equal".to_owned(),
        };
        context.say(format_args!(
            "the best leads the second by {:.5} ± {:.5} on the same {} points: {verdict}",
            lead.difference,
            lead.error,
            grouped(lead.points)
        ))?;
    }
    context.say(format_args!(
        "the winner's score is a little too good: it was chosen{} by the points it is measured on",
        if search.warm { "" } else { ", and stopped," }
    ))
}

fn grouped_u64(n: u64) -> String {
    grouped(usize::try_from(n).unwrap_or(usize::MAX))
}
