//! The `gradus` command: train → evaluate → recommend → report.

use gradus_base::memory::LargePages;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: LargePages = LargePages::SYSTEM;

fn main() -> ExitCode {
    gradus_cli::run(gradus::registry().clone())
}
