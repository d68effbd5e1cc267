//! The `gradus` command: train → evaluate → recommend → report.

mod checkpoints;
mod commands;
mod flags;
mod input;
mod lists;
mod output;
mod outputs;
mod progress;
mod samples;
mod splitting;

use gradus_base::text::printable_lines;
use output::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: gradus_base::memory::LargePages = gradus_base::memory::LargePages;

fn main() -> ExitCode {
    progress::watch_signals();
    let words: Vec<OsString> = std::env::args_os().collect();
    let matches = match commands::command().try_get_matches_from(&words) {
        Ok(matches) => matches,
        // Usage errors end here with code 2 and a hint; so do --help and --version, with code 0.
        Err(error) => {
            if error.use_stderr() && words.iter().any(|word| word == "--json") {
                let text = error.to_string();
                let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
                output::say_failure_in_json(&Failure::Usage(text.to_owned()));
            }
            error.exit()
        }
    };
    let failure = match commands::run(&matches) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    // The reader of a pipe has left: that is no error of ours.
    if failure.is_broken_pipe() {
        return ExitCode::SUCCESS;
    }
    if words.iter().any(|word| word == "--json") {
        output::say_failure_in_json(&failure);
    }
    if !matches!(failure, Failure::Interrupted) {
        eprintln!("error: {}", printable_lines(&failure.to_string()));
    }
    failure.exit_code()
}
