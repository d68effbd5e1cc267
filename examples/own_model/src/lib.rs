//! A model, a transformer and a kind of data from outside gradus.

mod markov;
mod sequences;
mod standardize;

pub use markov::{Markov, MarkovChain};
pub use sequences::{Sequences, SequencesFile};
pub use standardize::{Standardize, Standardized};

use gradus::model::Registry;

/// The models of gradus and those of this crate.
pub fn registry() -> Registry {
    gradus::registry().clone().with::<Markov>().with::<Standardize>()
}
