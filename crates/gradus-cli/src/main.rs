//! The `gradus` command: train → evaluate → recommend → report.

mod commands;
mod flags;
mod input;
mod lists;
mod output;
mod progress;
mod samples;
mod splitting;

use output::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Usage errors end here with code 2 and a hint.
    let matches = commands::command().get_matches();
    match commands::run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => ExitCode::from(130),
        // The reader of a pipe has left: that is no error of ours.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
