//! `gradus lab minmax -o minmax.svg`

use super::{Picture, point, value, values};
use crate::output::{Context, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::lab::minmax::{Game, MinMaxRequest};
use gradus_report::number;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct MinMaxArgs {
    /// How the players take steps, separated by commas
    #[arg(
        long,
        value_parser = values(Game::ALL),
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "simultaneous,alternating,extragradient,optimistic"
    )]
    method: Vec<String>,

    /// Length of a step
    #[arg(long, value_name = "X", default_value_t = MinMaxRequest::default().step)]
    step: f64,

    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = MinMaxRequest::default().steps)]
    steps: usize,

    /// Starting point
    #[arg(long, value_name = "X,Y", allow_hyphen_values = true, default_value = "1,1")]
    start: String,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "minmax.svg")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    MinMaxArgs::augment_args(Command::new("minmax").about(
        "Draw the paths of two players on min max x y: why descent and ascent at once spiral away",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<MinMaxArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [])?;
    let methods = args.method.iter().map(|name| value(Game::ALL, name));
    let request = MinMaxRequest {
        methods: methods.collect::<Outcome<_>>()?,
        step: args.step,
        steps: args.steps,
        start: point(&args.start)?,
    };
    let answer = request.run()?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = json!(answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    let mut table = Table::new(&[
        "steps",
        ">gradients a step",
        ">distance at the end",
        ">rate predicted",
        ">rate seen",
        "outcome",
    ]);
    for run in &answer.runs {
        table.row(vec![
            run.method.to_owned(),
            run.gradients.to_string(),
            number(run.distance),
            format!("{:.5}", run.predicted_rate),
            format!("{:.5}", run.seen_rate),
            run.outcome.to_owned(),
        ]);
    }
    context.say(table)?;
    context.remark(format_args!("\n{}", answer.about()));
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}
