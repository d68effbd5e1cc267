//! How good clusters are.
//!
//! | file | what it holds |
//! |---|---|
//! | `agreement.rs` | [`Agreement`]: clusters beside classes that are known: adjusted Rand index, mutual information, V-measure |
//! | `shape.rs` | [`Shape`]: clusters by their samples alone: Davies–Bouldin, Calinski–Harabasz |
//! | `silhouette.rs` | [`silhouettes`], [`Silhouette`], and [`Distances`] for many clusterings of the same samples |
//!
//! Each is what scikit-learn 1.9 gives for the same labels. A label that no sample has does not count.

mod agreement;
mod shape;
mod silhouette;
#[cfg(test)]
mod tests;

pub use agreement::Agreement;
pub use shape::Shape;
pub use silhouette::{Distances, Silhouette, silhouettes};

use gradus_base::{Error, Result};

/// Labels renumbered without gaps, in the order of the labels, and how many samples have each.
fn renumbered(labels: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let mut known: Vec<u32> = labels.to_vec();
    known.sort_unstable();
    known.dedup();
    let mut counts = vec![0; known.len()];
    let place = |label: &u32| known.partition_point(|k| k < label) as u32;
    let labels: Vec<u32> = labels.iter().map(place).collect();
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    (labels, counts)
}

fn same_length(what: &str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Shape {
        what: what.to_owned(),
        expected: format!("{expected} (one for each sample)"),
        got: got.to_string(),
    })
}
