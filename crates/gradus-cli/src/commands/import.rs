//! `gradus import MODEL WEIGHTS -o NEW`

use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_file::output::FileKind;
use gradus_file::tensors::read_tensors;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct ImportArgs {
    /// The model that is to have these weights: it says what the inputs and the layers are
    model: PathBuf,

    /// The weights: a safetensors file, such as safetensors.torch.save_file(model.state_dict(), FILE) writes
    weights: PathBuf,

    /// Where to save the new model; may be the old one's file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    ImportArgs::augment_args(
        Command::new("import").about("Take weights that PyTorch has learned into a network"),
    )
    .after_help(format!(
        "Tensors are found by their names, and must have the shapes that `gradus info` shows of the model; those that the file \
         of weights does not have stay as they are. A model of one epoch (--max-iter 1) is enough to say what the layers are.\n\n{}",
        outputs::RULE
    ))
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<ImportArgs>(matches)?;
    // The old model is no input here: it is read whole, and the new one may take its place.
    let plan = &mut FilePlan::new(args.force, [&args.weights]);
    let output = plan.output("--output", &args.output, FileKind::Model)?;
    let fitted = crate::registry().load(&args.model)?;
    let (weights, others) = read_tensors(&args.weights)?;
    let (found, kept) = crate::registry().with_weights(&fitted, &weights)?;
    found.save_to(&output)?;
    let taken = weights.iter().filter(|one| !kept.contains(&one.name)).count();
    if context.json {
        return context.json(&json!({
            "model": found.kind,
            "file": args.output.display().to_string(),
            "taken": taken,
            "kept": kept,
            "left_out": others,
        }));
    }
    context.say(format_args!(
        "{} tensors of {} are now in {}",
        grouped(taken),
        args.weights.display(),
        args.output.display()
    ))?;
    if !kept.is_empty() {
        context.remark(format_args!("stayed as they were: {}", kept.join(", ")));
    }
    if !others.is_empty() {
        context.remark(format_args!("no floating point numbers, left out: {}", others.join(", ")));
    }
    Ok(())
}
