//! `gradus lab fairness -o fairness.html`

use super::Picture;
use crate::output::{Context, Failure, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::lab::fairness::{FairnessLabAnswer, FairnessLabRequest};
use gradus_report::fixed;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct FairnessArgs {
    /// The share of the favourable class in the two groups, with a comma between them
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_values_t = FairnessLabRequest::default().base_rates)]
    base_rates: Vec<f64>,

    /// Samples of each group
    #[arg(long, value_name = "N", default_value_t = FairnessLabRequest::default().samples)]
    samples: usize,

    /// How far the classes are apart, in standard deviations of the feature that tells them
    #[arg(long, value_name = "X", default_value_t = FairnessLabRequest::default().separation)]
    separation: f64,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = FairnessLabRequest::default().seed)]
    seed: u64,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "fairness.html")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    FairnessArgs::augment_args(Command::new("fairness").about(
        "Show by example that criteria of fairness exclude one another where base rates differ",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<FairnessArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [])?;
    let Ok(base_rates) = <[f64; 2]>::try_from(args.base_rates) else {
        return Err(Failure::Usage("--base-rates: must be two numbers, as in 0.3,0.5".into()));
    };
    let request = FairnessLabRequest {
        samples: args.samples,
        base_rates,
        separation: args.separation,
        seed: args.seed,
    };
    let answer = request.run()?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = json!(answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    context.say(table(&answer))?;
    context.remark(FairnessLabAnswer::ABOUT);
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn table(answer: &FairnessLabAnswer) -> Table {
    let mut table = Table::new(&[
        "decided by",
        ">accuracy",
        "selection rates",
        "true positive rates",
        "false positive rates",
        "precision",
    ]);
    let both = |rates: [f64; 2]| format!("{} and {}", fixed(rates[0], 3), fixed(rates[1], 3));
    for policy in &answer.policies {
        table.row([
            policy.name.to_owned(),
            fixed(policy.accuracy, 3),
            both(policy.selection_rate),
            both(policy.true_positive_rate),
            both(policy.false_positive_rate),
            both(policy.precision),
        ]);
    }
    table
}
