//! `gradus audit …`: audits of models that predict, one file each.

mod robustness;

use super::Entry;
use crate::output::{Context, Failure, Outcome};
use clap::{ArgMatches, Command};

const AUDITS: &[Entry] = &[(robustness::command, robustness::run)];

pub fn command() -> Command {
    Command::new("audit")
        .about("Audit a model: what small changes of the features can do to its decisions")
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
