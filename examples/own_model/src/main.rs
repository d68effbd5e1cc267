//! The `gradus` command with the models of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus_cli::run(own_model::registry())
}
