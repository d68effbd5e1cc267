//! `gradus completions SHELL` and `gradus man`: made from the one definition of the command line.

use crate::output::{Context, Failure, Outcome};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::io::Write as _;
use std::path::PathBuf;

pub fn completions_command() -> Command {
    Command::new("completions").about("Print completions for a shell").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .required(true)
            .value_parser(value_parser!(Shell))
            .help("The shell"),
    )
}

pub fn completions(matches: &ArgMatches, _: Context) -> Outcome {
    let Some(&shell) = matches.get_one::<Shell>("shell") else {
        return Err(Failure::Usage("completions: no shell".into()));
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut super::command(), "gradus", &mut text);
    Ok(std::io::stdout().write_all(&text)?)
}

pub fn man_command() -> Command {
    Command::new("man").about("Write the man pages into a folder").arg(
        Arg::new("folder")
            .value_name("FOLDER")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help("Where to write them"),
    )
}

pub fn man(matches: &ArgMatches, context: Context) -> Outcome {
    let Some(folder) = matches.get_one::<PathBuf>("folder") else {
        return Err(Failure::Usage("man: no folder".into()));
    };
    let refused = |error| gradus::Error::io(folder, error);
    std::fs::create_dir_all(folder).map_err(refused)?;
    clap_mangen::generate_to(super::command(), folder).map_err(refused)?;
    context.remark(format_args!("wrote the man pages to {}", folder.display()));
    Ok(())
}
