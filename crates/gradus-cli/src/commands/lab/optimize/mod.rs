//! `gradus lab optimize --surface rosenbrock --optimizer gd,adam,lbfgs -o paths.svg`

mod draw;
mod surface;

use crate::output::{Context, Failure, Outcome, Table};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command, ValueEnum};
use gradus::optim::diagnose::{self, Curvature};
use gradus::optim::{Descent, Lbfgs, Newton, Optimizer, Schedule, UpdateRule};
use gradus_file::output::FileKind;
use gradus_report::number;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use surface::{Surface, SurfaceName};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Steepest descent
    Gd,
    /// Steepest descent, each step halved until the value falls enough
    Backtracking,
    /// The heavy ball
    Momentum,
    /// Nesterov's momentum
    Nesterov,
    /// AdaGrad
    Adagrad,
    /// RMSProp
    Rmsprop,
    /// Adam
    Adam,
    /// Adam with decoupled decay
    Adamw,
    /// Truncated Newton with a trust region to fall back on
    Newton,
    /// L-BFGS with a strong Wolfe line search
    Lbfgs,
}

#[derive(Args)]
struct OptimizeArgs {
    /// The surface to go down
    #[arg(long, value_enum, default_value = "rosenbrock")]
    surface: SurfaceName,

    /// The optimisers, separated by commas
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "gd,momentum,nesterov,adam,newton,lbfgs"
    )]
    optimizer: Vec<Method>,

    /// Step length of the methods that take one [default: as suits surface and method]
    #[arg(long, value_name = "X")]
    step: Option<f64>,

    /// Share of the last move that goes on, for momentum and nesterov [default: the best there is
    /// on the bowl; elsewhere 0.9, and for nesterov one that grows]
    #[arg(long, value_name = "X")]
    momentum: Option<f64>,

    /// Iterations at most
    #[arg(long, value_name = "N", default_value_t = 200)]
    steps: usize,

    /// Where to start [default: as suits the surface]
    #[arg(long, value_name = "X,Y", allow_hyphen_values = true)]
    start: Option<String>,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "paths.svg")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    OptimizeArgs::augment_args(
        Command::new("optimize").about("Draw the paths of optimisers down a surface"),
    )
    .after_help(outputs::RULE)
}

/// One optimiser and what it came to.
struct Run {
    name: &'static str,
    outcome: gradus::optim::Outcome,
    /// Update rule and rate, where theory has something to say.
    rule: Option<(UpdateRule, f64)>,
    predicted: Option<f64>,
    seen: Option<f64>,
    point: diagnose::Point,
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<OptimizeArgs>(matches)?;
    let extension = args.output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !matches!(extension, "svg" | "html") {
        let text = format!("--output {}: must end in .svg or .html", args.output.display());
        return Err(Failure::Usage(text));
    }
    let kind = if extension == "svg" { FileKind::Drawing } else { FileKind::Page };
    let output = FilePlan::new(args.force, []).output("--output", &args.output, kind)?;
    let surface = args.surface.surface()?;
    let start = args.start.as_deref().map(point).transpose()?.unwrap_or(surface.start);
    let curvature = diagnose::curvature(&*surface.objective, &start, 0)?;
    let mut runs = Vec::new();
    for (at, &method) in args.optimizer.iter().enumerate() {
        if args.optimizer[..at].contains(&method) {
            continue;
        }
        runs.push(one(&args, &surface, &start, &curvature, method)?);
    }
    let (low, high) = surface.corners();
    let convexity = diagnose::probe_convexity(&*surface.objective, &low, &high, 200, 0)?;
    let picture = draw::picture(&surface, start, &runs);
    let text = if extension == "svg" { picture.svg() } else { picture.html(&convexity) };
    output.write(|file| file.write_all(text.as_bytes()))?;
    if context.json {
        return context.json(&json!({
            "surface": surface.name,
            "formula": surface.formula,
            "start": start,
            "convex_segments": convexity.segments,
            "convexity_witness": convexity.witness.as_ref().map(|w| json!({
                "from": w.from, "to": w.to, "at": w.at, "value": w.value, "chord": w.chord,
            })),
            "curvature_at_start": {"largest": curvature.largest, "smallest": curvature.smallest},
            "runs": runs.iter().map(to_json).collect::<Vec<_>>(),
            "output": args.output.display().to_string(),
        }));
    }
    context.say(table(&runs))?;
    let (name, formula) = (surface.name, surface.formula);
    context.remark(format_args!("\n{name}: {formula}. {}", surface.about(&convexity)));
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

/// `-1.2,1`: a point of two coordinates.
fn point(text: &str) -> Outcome<[f64; 2]> {
    let wrong =
        || Failure::Usage(format!("--start {text}: must be two finite numbers, as in -1.2,1"));
    let (x, y) = text.split_once(',').ok_or_else(wrong)?;
    let read = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    Ok([read(x).ok_or_else(wrong)?, read(y).ok_or_else(wrong)?])
}

/// The method with its settings for this surface, and its rule and rate.
fn method(
    args: &OptimizeArgs,
    surface: &Surface,
    curvature: &Curvature,
    method: Method,
) -> (Box<dyn Optimizer>, Option<(UpdateRule, f64)>) {
    let control = gradus::optim::Control {
        max_iter: args.steps,
        keep_points: true,
        ..gradus::optim::Control::default()
    };
    let (mu, l) = (curvature.smallest, curvature.largest);
    let root = curvature.condition().sqrt();
    let textbook = (root - 1.0) / (root + 1.0);
    let (rule, rate) = match method {
        Method::Newton => return (Box::new(Newton::new().cg_tol(1e-10).control(control)), None),
        Method::Lbfgs => return (Box::new(Lbfgs::new().control(control)), None),
        Method::Backtracking => {
            return (Box::new(Descent::backtracking().control(control)), None);
        }
        Method::Gd => (UpdateRule::Plain, if surface.quadratic { 1.0 / l } else { surface.step }),
        Method::Momentum if surface.quadratic => {
            let best = 4.0 / (l.sqrt() + mu.sqrt()).powi(2);
            (UpdateRule::HeavyBall { momentum: args.momentum.unwrap_or(textbook * textbook) }, best)
        }
        Method::Momentum => {
            (UpdateRule::HeavyBall { momentum: args.momentum.unwrap_or(0.9) }, surface.step)
        }
        Method::Nesterov if surface.quadratic => {
            (UpdateRule::Nesterov { momentum: Some(args.momentum.unwrap_or(textbook)) }, 1.0 / l)
        }
        Method::Nesterov => (UpdateRule::Nesterov { momentum: args.momentum }, surface.step),
        Method::Adagrad => (UpdateRule::ADAGRAD, 0.5),
        Method::Rmsprop => (UpdateRule::RMSPROP, 0.05),
        Method::Adam => (UpdateRule::ADAM, 0.1),
        Method::Adamw => (UpdateRule::adamw(0.01), 0.1),
    };
    let rate = args.step.unwrap_or(rate);
    let solver = Descent::new(rule, Schedule::constant(rate)).control(control);
    (Box::new(solver), Some((rule, rate)))
}

fn one(
    args: &OptimizeArgs,
    surface: &Surface,
    start: &[f64],
    curvature: &Curvature,
    choice: Method,
) -> Outcome<Run> {
    let (solver, rule) = method(args, surface, curvature, choice);
    let outcome = solver.minimize(&*surface.objective, start)?;
    let point = diagnose::optimality(&*surface.objective, &outcome.x, 1e-5)
        .map_or(diagnose::Point::NotStationary, |found| found.point);
    let (mut predicted, mut seen) = (None, None);
    if surface.quadratic {
        predicted = rule.and_then(|(rule, rate)| {
            diagnose::predicted_rate(rule, rate, curvature.smallest, curvature.largest)
        });
        seen = diagnose::observed_rate(&outcome.trace.distances(&surface.minima[0]));
    }
    let name = if choice == Method::Backtracking { "backtracking" } else { solver.name() };
    Ok(Run { name, outcome, rule, predicted, seen, point })
}

fn shown_rate(rate: Option<f64>) -> String {
    rate.map_or("–".into(), |rate| format!("{rate:.4}"))
}

fn table(runs: &[Run]) -> Table {
    let rates = runs.iter().any(|run| run.predicted.is_some());
    let mut headers = vec![
        "optimizer",
        ">step",
        ">iterations",
        ">gradients",
        ">value",
        ">gradient norm",
        "ends at",
        "why",
        "what is there",
    ];
    if rates {
        headers.extend([">rate predicted", ">rate seen"]);
    }
    let mut table = Table::new(&headers);
    for run in runs {
        let found = &run.outcome;
        let mut cells = vec![
            run.name.to_owned(),
            run.rule.map_or("–".into(), |(_, rate)| number(rate)),
            found.iterations.to_string(),
            found.evaluations.gradients.to_string(),
            number(found.value),
            number(found.gradient_norm),
            place(&found.x),
            found.reason.to_string(),
            run.point.to_string(),
        ];
        if rates {
            cells.extend([shown_rate(run.predicted), shown_rate(run.seen)]);
        }
        table.row(cells);
    }
    table
}

fn place(x: &[f64]) -> String {
    // Rounding errors around 0 are not worth their digits.
    let short = |x: f64| number(if x.abs() < 1e-9 { 0.0 } else { x });
    format!("({}, {})", short(x[0]), short(x[1]))
}

fn to_json(run: &Run) -> Value {
    let found = &run.outcome;
    json!({
        "optimizer": run.name,
        "rate": run.rule.map(|(_, rate)| rate),
        "iterations": found.iterations,
        "evaluations": found.evaluations,
        "value": found.value,
        "gradient_norm": found.gradient_norm,
        "x": found.x,
        "reason": found.reason,
        "point": run.point.to_string(),
        "predicted_rate": run.predicted,
        "seen_rate": run.seen,
        "trace": found.trace,
    })
}
