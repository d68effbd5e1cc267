//! The `gradus` command: train → evaluate → recommend → report.

use gradus_base::memory::LargePages;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: LargePages = LargePages::SYSTEM;

/// Keeps memory that was freed for what is allocated next, instead of giving it back to the system at once. A step of a network frees
/// and takes again some megabytes a thousand times; the pages that the system took back and gave anew, one fault for each 4 KiB, were a
/// quarter of the processor time of a fit of `seq2seq`. Both limits have to be set: with one of them the other no longer follows what
/// the program does. `gradus_base::memory::release_freed` gives back what is free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_freed_memory() {
    /// The largest that the allocator takes; larger pieces are mapped one by one.
    const MAPPED: i32 = 32 << 20;
    // SAFETY: settings of the allocator, made before there is another thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
    }
}

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    keep_freed_memory();
    gradus_cli::run(gradus::registry().clone())
}
