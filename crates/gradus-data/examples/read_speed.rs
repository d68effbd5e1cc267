//! Reads a file of ratings and prints how long it took and the peak of memory.
//!
//! ```text
//! cargo run --release --example read_speed -- ratings.csv
//! ```
//!
//! The number of threads is that of the machine, or `RAYON_NUM_THREADS`.

use gradus_data::{ReadOptions, read_ratings};

fn main() -> gradus_base::Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: read_speed FILE");
        std::process::exit(2);
    };
    let (ratings, summary) = read_ratings(&path, &ReadOptions::new())?;
    println!(
        "{} rows, {} users, {} items, {} ratings",
        summary.rows,
        ratings.n_users(),
        ratings.n_items(),
        ratings.len()
    );
    println!(
        "read {:.3} s ({:.0} MB/s), build {:.3} s, together {:.3} s",
        summary.seconds - summary.build_seconds,
        summary.bytes as f64 / 1e6 / (summary.seconds - summary.build_seconds),
        summary.build_seconds,
        summary.seconds
    );
    if let Some(peak) = peak_memory() {
        println!("peak memory {peak}");
    }
    Ok(())
}

/// The largest resident size so far, where the system tells.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().to_owned())
}
