//! `gradus lab backprop -o backprop.html`

use super::Picture;
use crate::output::{Context, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::nn::Activation;
use gradus_app::lab::backprop::{BackpropAnswer, BackpropRequest};
use gradus_base::Error;
use gradus_report::number;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct BackpropArgs {
    /// The features of the sample, with commas between them
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, default_values_t = BackpropRequest::default().input)]
    input: Vec<f64>,

    /// Number of units of each hidden layer, with commas between them
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = BackpropRequest::default().hidden)]
    hidden: Vec<usize>,

    /// The targets of the sample, with commas between them
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, default_values_t = BackpropRequest::default().target)]
    target: Vec<f64>,

    /// Activation function of the hidden layers: identity, sigmoid, tanh, relu, gelu, silu or step
    #[arg(long, value_name = "NAME", default_value = "tanh")]
    activation: String,

    /// Seed of the weights
    #[arg(long, value_name = "N", default_value_t = BackpropRequest::default().seed)]
    seed: u64,

    /// Where to write the picture: an .svg file or an .html file
    #[arg(short, long, value_name = "FILE", default_value = "backprop.html")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    BackpropArgs::augment_args(Command::new("backprop").about(
        "Go forward and back through a small network, number by number, beside finite differences",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<BackpropArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [])?;
    let known = "must be identity, sigmoid, tanh, relu, gelu, silu or step";
    let activation: Activation = serde_json::from_value(json!(args.activation))
        .map_err(|_| Error::parameter("activation", &args.activation, known))?;
    let request = BackpropRequest {
        input: args.input,
        hidden: args.hidden,
        target: args.target,
        activation,
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
    context.remark(format_args!(
        "loss {}; the largest difference from finite differences is {:.1e}",
        number(answer.loss),
        answer.largest_difference
    ));
    context.remark(BackpropAnswer::ABOUT);
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn table(answer: &BackpropAnswer) -> Table {
    let mut table = Table::new(&["layer", "unit", ">z", ">h", ">∂L/∂h", ">∂L/∂z"]);
    for (at, layer) in answer.layers.iter().enumerate() {
        for unit in 0..layer.outputs.len() {
            table.row(vec![
                (at + 1).to_string(),
                (unit + 1).to_string(),
                number(layer.sums[unit]),
                number(layer.outputs[unit]),
                number(layer.output_gradients[unit]),
                number(layer.sum_gradients[unit]),
            ]);
        }
    }
    table
}
