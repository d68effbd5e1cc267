//! `gradus lab tradeoff -o tradeoff.html`

use super::Picture;
use crate::output::{Context, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::lab::tradeoff::{TradeoffAnswer, TradeoffRequest};
use gradus_report::number;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct TradeoffArgs {
    /// Number of weak features
    #[arg(long, value_name = "N", default_value_t = TradeoffRequest::default().weak)]
    weak: usize,

    /// The mean of a weak feature, by the sign of the class; its deviation is 1
    #[arg(long, value_name = "X", default_value_t = TradeoffRequest::default().strength, allow_negative_numbers = true)]
    strength: f64,

    /// How often the strong feature has the sign of the class
    #[arg(long, value_name = "SHARE", default_value_t = TradeoffRequest::default().reliability)]
    reliability: f64,

    /// The largest radius of perturbations to train against [default: twice the strength]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    radius: Option<f64>,

    /// Number of samples to learn from
    #[arg(long, value_name = "N", default_value_t = TradeoffRequest::default().train)]
    train: usize,

    /// Number of samples to test on
    #[arg(long, value_name = "N", default_value_t = TradeoffRequest::default().test)]
    test: usize,

    /// Seed of the samples
    #[arg(long, value_name = "N", default_value_t = TradeoffRequest::default().seed)]
    seed: u64,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "tradeoff.html")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    TradeoffArgs::augment_args(
        Command::new("tradeoff")
            .about("Train against perturbations: what robustness costs in accuracy"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<TradeoffArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [])?;
    let request = TradeoffRequest {
        weak: args.weak,
        strength: args.strength,
        reliability: args.reliability,
        radius: args.radius,
        train: args.train,
        test: args.test,
        seed: args.seed,
    };
    let answer = request.run()?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = json!(answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    let robust = format!(">robust at {}", number(answer.radius));
    let mut table =
        Table::new(&[">trained against", ">accuracy", &robust, ">share of the strong feature"]);
    for model in &answer.models {
        table.row([
            number(model.radius),
            format!("{:.4}", model.accuracy),
            format!("{:.4}", model.robust),
            format!("{:.3}", model.strong),
        ]);
    }
    context.say(table)?;
    context.remark(TradeoffAnswer::ABOUT);
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}
