//! The commands, one file each.

mod analogy;
mod audit;
mod compare;
mod demo;
mod evaluate;
mod export;
mod fit;
mod generate;
mod import;
mod info;
mod lab;
mod make;
mod models;
mod predict;
mod recommend;
mod report;
mod sample;
mod select;
mod shell;
mod similar;
mod split;
pub mod titles;
mod topics;
mod transform;
mod translate;
mod update;

use crate::output::{Context, Failure, Outcome};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// A command: its name, its definition, its work.
type Entry = (fn() -> Command, fn(&ArgMatches, Context) -> Outcome);

const COMMANDS: &[Entry] = &[
    (demo::command, demo::run),
    (split::command, split::run),
    (fit::command, fit::run),
    (compare::command, compare::run),
    (select::command, select::run),
    (evaluate::command, evaluate::run),
    (recommend::command, recommend::run),
    (similar::command, similar::run),
    (analogy::command, analogy::run),
    (export::command, export::run),
    (import::command, import::run),
    (update::command, update::run),
    (predict::command, predict::run),
    (transform::command, transform::run),
    (topics::command, topics::run),
    (generate::command, generate::run),
    (sample::command, sample::run),
    (translate::command, translate::run),
    (info::command, info::run),
    (audit::command, audit::run),
    (report::command, report::run),
    (models::command, models::run),
    (make::command, make::run),
    (lab::command, lab::run),
    (shell::completions_command, shell::completions),
    (shell::man_command, shell::man),
];

/// The whole command line. Completions and man pages are made from this same definition.
pub fn command() -> Command {
    Command::new("gradus")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Machine learning from the command line: train, evaluate, recommend, report")
        .after_help("Start with `gradus demo`, then `gradus fit als ratings.csv -o m.gradus`.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .args_override_self(true)
        .arg(
            Arg::new("json")
                .long("json")
                .global(true)
                .action(ArgAction::SetTrue)
                .help("Print JSON for a program to read")
                .help_heading("Output"),
        )
        .arg(
            Arg::new("quiet")
                .long("quiet")
                .short('q')
                .global(true)
                .action(ArgAction::SetTrue)
                .help("No progress bar and no remarks, only the result")
                .help_heading("Output"),
        )
        .arg(
            Arg::new("threads")
                .long("threads")
                .global(true)
                .value_name("N")
                .value_parser(value_parser!(u16).range(1..=1024))
                .help("Number of threads; results do not depend on it [default: all cores]")
                .help_heading("Output"),
        )
        .subcommands(COMMANDS.iter().map(|(definition, _)| definition()))
}

/// Does what the command line asks.
pub fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        return Err(Failure::Usage("no command; see `gradus --help`".into()));
    };
    if let Some(&threads) = matches.get_one::<u16>("threads") {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build_global()
            .map_err(|error| Failure::Usage(format!("--threads {threads}: {error}")))?;
    }
    let context = Context { json: matches.get_flag("json"), quiet: matches.get_flag("quiet") };
    let found = COMMANDS.iter().find(|(definition, _)| definition().get_name() == name);
    match found {
        Some((_, work)) => work(matches, context),
        None => Err(Failure::Usage(format!("unknown command `{name}`; see `gradus --help`"))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
    }
}
