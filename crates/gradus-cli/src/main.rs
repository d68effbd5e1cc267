//! The `gradus` command: train → evaluate → recommend → report.

use gradus_base::memory::LargePages;
use mimalloc::MiMalloc;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: LargePages<MiMalloc> = LargePages::over(MiMalloc);

fn main() -> ExitCode {
    gradus_cli::run(gradus::registry().clone())
}
