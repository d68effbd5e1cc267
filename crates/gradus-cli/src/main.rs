//! The `gradus` command: train → evaluate → recommend → report.

use std::process::ExitCode;

#[global_allocator]
static MEMORY: gradus_base::memory::LargePages = gradus_base::memory::LargePages;

fn main() -> ExitCode {
    gradus_cli::run(gradus::registry().clone())
}
