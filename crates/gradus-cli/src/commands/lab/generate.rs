//! `gradus lab generate --data rings -o generate.html`

use super::{Picture, value, values};
use crate::output::{Context, Outcome, Table};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::lab::generate::{FIGURES, GenerateRequest, Maker};
use gradus_report::number;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct GenerateArgs {
    /// The figure that data lies near
    #[arg(long, value_parser = values(FIGURES), default_value = "rings")]
    data: String,

    /// The models, separated by commas
    #[arg(
        long,
        value_parser = values(Maker::ALL),
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "pixelcnn,vae,plain-gan,gan,diffusion"
    )]
    model: Vec<String>,

    /// Points to learn from
    #[arg(long, value_name = "N", default_value_t = GenerateRequest::default().samples)]
    samples: usize,

    /// Factor of the number of epochs: about a minute with 1
    #[arg(long, value_name = "X", default_value_t = GenerateRequest::default().effort)]
    effort: f64,

    /// Seed of data and models
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "generate.html")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    GenerateArgs::augment_args(Command::new("generate").about(
        "Fit generative models to points of the plane and draw them side by side: densities, samples, and where each fails",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<GenerateArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [])?;
    let models = args.model.iter().map(|name| value(Maker::ALL, name));
    let request = GenerateRequest {
        data: value(FIGURES, &args.data)?,
        models: models.collect::<Outcome<_>>()?,
        samples: args.samples,
        effort: args.effort,
        seed: args.seed,
    };
    let answer = request.run()?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = json!(answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    let mut table = Table::new(&[
        "model",
        ">seconds",
        ">modes",
        ">off the data",
        ">precision",
        ">recall",
        ">coverage",
        ">Fréchet",
        ">log density",
        "faults",
    ]);
    for run in &answer.runs {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        table.row(vec![
            run.model.to_owned(),
            format!("{:.1}", run.seconds),
            format!("{} of {}", run.covered, answer.modes),
            percent(run.off),
            percent(run.manifold.precision),
            percent(run.manifold.recall),
            percent(run.manifold.coverage),
            number(run.frechet),
            run.shown_density(),
            run.verdict.clone(),
        ]);
    }
    context.say(table)?;
    context.remark(format_args!(
        "\na mode is covered with a quarter of its share of the samples; off the data is beyond four deviations of the noise"
    ));
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}
