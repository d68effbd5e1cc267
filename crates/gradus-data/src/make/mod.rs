//! Planted data: data sets made from a known truth, to try, test and time models on.
//!
//! Each `…Spec` is a plain struct with defaults and setters; `make(seed)` returns the data together
//! with the truth it was made from. The same spec and seed give the same data on every machine and
//! any number of threads.
//!
//! | spec | what it makes |
//! |---|---|
//! | [`RatingsSpec`] | a catalogue of films, its users, and what they thought of them |
//! | [`LowRankSpec`] | a low-rank matrix, seen in part and through noise |
//! | [`RegressionSpec`] | a linear target, value or class, with known coefficients |
//! | [`BlobsSpec`] | Gaussian clouds around known centres |
//! | [`SequencesSpec`] | texts, and what a function makes of them |
//! | [`PlaneSpec`] | points of the plane near moons, rings and clouds on a circle |

mod blobs;
mod choose;
mod low_rank;
mod plane;
mod ratings;
mod regression;
mod sequences;
mod titles;

pub use blobs::{BlobsSpec, MadeBlobs};
pub use low_rank::{Coherence, LowRankSpec, MadeLowRank};
pub use plane::{MadePlane, PlaneFigure, PlaneSpec};
pub use ratings::{ItemIds, MadeRatings, RatingsBlock, RatingsMaker, RatingsSpec, RatingsTruth};
pub use regression::{MadeRegression, RegressionSpec, TargetKind};
pub use sequences::{MadeSequences, SequenceTask, SequencesSpec};
pub use titles::genre_name;

use gradus_base::{Error, Result};

/// A setter for each field.
macro_rules! setters {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(
            #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*
    };
}
use setters;

/// Refuses a number that is not finite or below `low`.
fn at_least(name: &str, value: f64, low: f64) -> Result<()> {
    if value >= low && value.is_finite() {
        return Ok(());
    }
    Err(Error::parameter(name, value, format!("must be finite and at least {low}")))
}

/// Refuses a number outside `low..=high`.
fn within(name: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::parameter(name, value, format!("must be between {low} and {high}")))
}

/// The most numbers in a made matrix: 16 GiB of them.
const MOST_CELLS: usize = 1 << 31;

/// Refuses a matrix that is empty or has more numbers than [`MOST_CELLS`].
fn check_sizes(n_rows: usize, n_features: usize) -> Result<()> {
    for (name, value) in [("n_samples", n_rows), ("n_features", n_features)] {
        if value == 0 {
            return Err(Error::parameter(name, value, "must be at least 1"));
        }
    }
    if n_rows.checked_mul(n_features).is_none_or(|n| n > MOST_CELLS) {
        let shape = format!("{n_rows} × {n_features}");
        let rule = format!("must be at most {MOST_CELLS} numbers in all (16 GiB)");
        return Err(Error::parameter("n_samples × n_features", shape, rule));
    }
    Ok(())
}
