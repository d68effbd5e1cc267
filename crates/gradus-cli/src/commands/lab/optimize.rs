//! `gradus lab optimize --surface rosenbrock --optimizer gd,adam,lbfgs -o paths.svg`

use super::{Picture, point, value, values};
use crate::output::{Context, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::lab::optimize::{
    Method, OptimizeRequest, OptimizerRun, SurfaceName, place, shown_rate,
};
use gradus_report::number;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct OptimizeArgs {
    /// The surface to go down
    #[arg(long, value_parser = values(SurfaceName::ALL), default_value = "rosenbrock")]
    surface: String,

    /// The optimisers, separated by commas
    #[arg(
        long,
        value_parser = values(Method::ALL),
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "gd,momentum,nesterov,adam,newton,lbfgs"
    )]
    optimizer: Vec<String>,

    /// Step length of the methods that take one [default: as suits surface and method]
    #[arg(long, value_name = "X")]
    step: Option<f64>,

    /// Share of the last move that goes on, for momentum and nesterov [default: the best there is
    /// on the bowl; elsewhere 0.9, and for nesterov one that grows]
    #[arg(long, value_name = "X")]
    momentum: Option<f64>,

    /// Iterations at most
    #[arg(long, value_name = "N", default_value_t = OptimizeRequest::default().steps)]
    steps: usize,

    /// Starting point [default: one that suits the surface]
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

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<OptimizeArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [])?;
    let optimizers = args.optimizer.iter().map(|name| value(Method::ALL, name));
    let request = OptimizeRequest {
        surface: value(SurfaceName::ALL, &args.surface)?,
        optimizers: optimizers.collect::<Outcome<_>>()?,
        step: args.step,
        momentum: args.momentum,
        steps: args.steps,
        start: args.start.as_deref().map(point).transpose()?,
    };
    let answer = request.run()?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = json!(answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    context.say(table(&answer.runs))?;
    let (name, formula) = (answer.surface, answer.formula);
    context.remark(format_args!("\n{name}: {formula}. {}", answer.about()));
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn table(runs: &[OptimizerRun]) -> Table {
    let rates = runs.iter().any(|run| run.predicted_rate.is_some());
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
            run.optimizer.to_owned(),
            run.rate.map_or("–".into(), number),
            found.iterations.to_string(),
            found.evaluations.gradients.to_string(),
            number(found.value),
            number(found.gradient_norm),
            place(&found.x),
            found.reason.to_string(),
            run.point.clone(),
        ];
        if rates {
            cells.extend([shown_rate(run.predicted_rate), shown_rate(run.seen_rate)]);
        }
        table.row(cells);
    }
    table
}
