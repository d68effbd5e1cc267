//! `gradus completions SHELL` and `gradus man`: made from the one definition of the command line.

use crate::output::{Context, Failure, Outcome};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{Arg, ArgMatches, Args as _, Command, value_parser};
use clap_complete::Shell;
use gradus_file::output::FileKind;
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
    let command = Command::new("man").about("Write the man pages into a folder").arg(
        Arg::new("folder")
            .value_name("FOLDER")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help("Where to write them"),
    );
    ForceArg::augment_args(command).after_help(outputs::RULE)
}

pub fn man(matches: &ArgMatches, context: Context) -> Outcome {
    let Some(folder) = matches.get_one::<PathBuf>("folder") else {
        return Err(Failure::Usage("man: no folder".into()));
    };
    let force = arguments::<ForceArg>(matches)?;
    std::fs::create_dir_all(folder).map_err(|error| gradus::Error::io(folder, error))?;
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages);
    let mut plan = FilePlan::new(force, []);
    let outputs = pages
        .iter()
        .map(|page| plan.output("man", &folder.join(page.get_filename()), FileKind::Text))
        .collect::<Outcome<Vec<_>>>()?;
    for (page, output) in pages.iter().zip(&outputs) {
        output.write(|file| page.render(file))?;
    }
    context.remark(format_args!("wrote the man pages to {}", folder.display()));
    Ok(())
}

/// The page of a command and those of its subcommands.
fn collect(command: &Command, pages: &mut Vec<clap_mangen::Man>) {
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        collect(part, pages);
    }
    pages.push(clap_mangen::Man::new(command.clone()));
}
