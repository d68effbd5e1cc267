//! `gradus lab …`: experiments that show how things work, one file each.

mod bias_variance;
mod optimize;
mod recovery;

use super::Entry;
use crate::output::{Context, Failure, Outcome};
use clap::{ArgMatches, Command};

const LABS: &[Entry] = &[
    (optimize::command, optimize::run),
    (bias_variance::command, bias_variance::run),
    (recovery::command, recovery::run),
];

pub fn command() -> Command {
    Command::new("lab")
        .about("Experiments that show how things work, with pictures")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(LABS.iter().map(|(definition, _)| definition()))
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let found = matches.subcommand().and_then(|(name, matches)| {
        let lab = LABS.iter().find(|(definition, _)| definition().get_name() == name)?;
        Some((lab.1, matches))
    });
    match found {
        Some((work, matches)) => work(matches, context),
        None => Err(Failure::Usage("lab: no such experiment; see `gradus lab --help`".into())),
    }
}
