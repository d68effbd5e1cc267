//! The `gradus` command as a library, for a command with models of one's own.
//!
//! ```no_run
//! // In the main.rs of a crate that defines the model `Mine`:
//! # use gradus::recommenders::Als as Mine;
//! fn main() -> std::process::ExitCode {
//!     gradus_cli::run(gradus::registry().clone())
//!     // With the model: gradus_cli::run(gradus::registry().clone().with::<Mine>())
//! }
//! ```
//!
//! Such a command has everything that `gradus` has: `fit`, `select`, `evaluate`, `report`, `models` and
//! the rest, for the models of gradus and for its own.

mod checkpoints;
mod columns;
mod commands;
mod flags;
mod input;
mod output;
mod outputs;
mod parameters;
mod progress;

use clap::error::{ContextKind, ContextValue};
use gradus_app::App;
use gradus_base::text::printable_lines;
use gradus_core::registry::Registry;
use output::Failure;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::OnceLock;

static APP: OnceLock<App> = OnceLock::new();

/// The application layer of the commands.
fn app() -> &'static App {
    APP.get_or_init(|| App::new(gradus::registry().clone()))
}

/// The models there are.
fn registry() -> &'static Registry {
    &app().registry
}

/// Does what the command line asks, with these models, and gives the code to exit with.
pub fn run(registry: Registry) -> ExitCode {
    APP.get_or_init(|| App::new(registry));
    progress::watch_signals();
    let words: Vec<OsString> = std::env::args_os().collect();
    let done = match commands::command().try_get_matches_from(&words) {
        Ok(matches) => commands::run(&matches),
        // Other usage errors end here with code 2 and a hint; so do --help and --version, with code 0.
        Err(error) => {
            if let Some(failure) = unknown_model(&error, &words) {
                return fail(&failure, &words);
            }
            if error.use_stderr() && words.iter().any(|word| word == "--json") {
                let text = error.to_string();
                let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
                output::say_failure_in_json(&Failure::Usage(text.to_owned()));
            }
            error.exit()
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure, &words),
    }
}

/// The error of a model that is not in the registry. To the parser the name of a model is the name of a command.
fn unknown_model(error: &clap::Error, words: &[OsString]) -> Option<Failure> {
    let takes_model = words.get(1).is_some_and(|word| word == "fit" || word == "select");
    let name = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if takes_model => name,
        _ => return None,
    };
    let hint = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(near)) if !near.is_empty() => {
            format!("did you mean `{}`?", near.join("` or `"))
        }
        _ => "`gradus models` lists all".to_owned(),
    };
    Some(Failure::Usage(format!("there is no model `{name}`; {hint}")))
}

/// Reports a failure, and gives the code to exit with.
fn fail(failure: &Failure, words: &[OsString]) -> ExitCode {
    // The reader of a pipe has left: that is no error of ours.
    if failure.is_broken_pipe() {
        return ExitCode::SUCCESS;
    }
    if words.iter().any(|word| word == "--json") {
        output::say_failure_in_json(failure);
    }
    if !matches!(failure, Failure::Interrupted) {
        eprintln!("error: {}", printable_lines(&failure.to_string()));
    }
    failure.exit_code()
}
