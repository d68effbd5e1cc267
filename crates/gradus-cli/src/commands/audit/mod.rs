//! `gradus audit …`: audits of a model, one file each.

mod fairness;
mod robustness;
mod thresholds;

use super::Entry;
use crate::output::{Context, Failure, Outcome};
use clap::{ArgMatches, Command};

const AUDITS: &[Entry] = &[
    (robustness::command, robustness::run),
    (fairness::command, fairness::run),
    (thresholds::command, thresholds::run),
];

pub fn command() -> Command {
    Command::new("audit")
        .about("Audit a model: whether small changes reverse its decisions, whether it treats groups alike; and thresholds for each group")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(AUDITS.iter().map(|(definition, _)| definition()))
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let found = matches.subcommand().and_then(|(name, matches)| {
        let audit = AUDITS.iter().find(|(definition, _)| definition().get_name() == name)?;
        Some((audit.1, matches))
    });
    match found {
        Some((work, matches)) => work(matches, context),
        None => Err(Failure::Usage("audit: no such audit; see `gradus audit --help`".into())),
    }
}
