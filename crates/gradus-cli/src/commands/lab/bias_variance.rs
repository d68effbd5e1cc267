//! `gradus lab biasvariance ridge --vary regularization 1e-4..10:9 -o bv.html`

use super::Picture;
use crate::input::SampleArgs;
use crate::output::{Context, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::page::shown;
use gradus_app::lab::bias_variance::{BiasVarianceAnswer, BiasVarianceRequest};
use gradus_report::number;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Args)]
struct BiasVarianceArgs {
    /// The model: one that predicts from features, as `gradus models` lists
    model: String,

    /// The parameter that makes it more or less complex, and its values: as in regularization
    /// 1e-4..10:9, or degree 1,2,3
    #[arg(long, num_args = 2, value_names = ["PARAMETER", "VALUES"], required = true, allow_hyphen_values = true)]
    vary: Vec<String>,

    /// Another parameter and its value; may be given several times
    #[arg(long, num_args = 2, value_names = ["PARAMETER", "VALUE"], action = clap::ArgAction::Append, allow_hyphen_values = true)]
    set: Vec<String>,

    /// Number of fits for each value
    #[arg(long, value_name = "N", default_value_t = BiasVarianceRequest::default().rounds)]
    rounds: usize,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = BiasVarianceRequest::default().seed)]
    seed: u64,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "biasvariance.html")]
    output: PathBuf,

    /// A file of samples to resample [default: planted data]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Share of the file that is tested on
    #[arg(long, value_name = "SHARE", default_value_t = BiasVarianceRequest::default().holdout)]
    holdout: f64,

    /// Planted samples to learn from
    #[arg(long, value_name = "N", default_value_t = BiasVarianceRequest::default().samples, help_heading = "Planted data")]
    samples: usize,

    /// Features of planted samples
    #[arg(long, value_name = "N", default_value_t = BiasVarianceRequest::default().features, help_heading = "Planted data")]
    features: usize,

    /// Standard deviation of the noise of planted samples
    #[arg(long, value_name = "X", default_value_t = BiasVarianceRequest::default().noise, help_heading = "Planted data")]
    noise: f64,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    input: SampleArgs,
}

pub fn command() -> Command {
    BiasVarianceArgs::augment_args(Command::new("biasvariance").about(
        "Take the error of a model apart into bias and variance, by fitting it on many samples",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<BiasVarianceArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, &args.data)?;
    let [parameter, values] = [0, 1].map(|at| args.vary[at].clone());
    let pair = |pair: &[String]| (pair[0].clone(), pair[1].clone());
    let request = BiasVarianceRequest {
        model: args.model,
        parameter,
        values,
        set: args.set.chunks_exact(2).map(pair).collect(),
        rounds: args.rounds,
        seed: args.seed,
        data: args.data,
        options: args.input.0,
        holdout: args.holdout,
        samples: args.samples,
        features: args.features,
        noise: args.noise,
    };
    let answer = context.reading(|remarks| crate::app().bias_variance(&request, remarks))?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = as_json(&answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    context.say(table(&answer))?;
    if let Some(best) = answer.best() {
        let (value, total) = (shown(&best.value), number(best.total));
        context
            .say(format_args!("the least error is {total}, at {} = {value}", answer.parameter))?;
    }
    context.remark(answer.about());
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn as_json(answer: &BiasVarianceAnswer) -> Value {
    let bias = if answer.classes { "bias" } else { "bias_squared" };
    let points: Vec<Value> = answer
        .points
        .iter()
        .map(|p| {
            json!({
                "value": p.value, bias: p.bias, "variance": p.variance, "noise": p.noise,
                "helpful_variance": p.helpful_variance, "total": p.total,
            })
        })
        .collect();
    json!({
        "model": answer.model, "parameter": answer.parameter, "rounds": answer.rounds,
        "noise_known": answer.noise_known, "points": points,
        "best": answer.best().map(|p| &p.value),
    })
}

fn table(answer: &BiasVarianceAnswer) -> Table {
    let bias = if answer.classes { ">bias" } else { ">bias²" };
    let parameter = format!(">{}", answer.parameter);
    let mut table = Table::new(&[&parameter, bias, ">variance", ">noise", ">total"]);
    for point in &answer.points {
        let noise = match (answer.noise_known, answer.classes) {
            (true, _) => number(point.noise),
            // What variance saves has a sign.
            (false, true) => format!("−{} saved", number(point.helpful_variance)),
            (false, false) => "in the bias".into(),
        };
        let cells = [shown(&point.value), number(point.bias), number(point.variance), noise];
        table.row(cells.into_iter().chain([number(point.total)]));
    }
    table
}
