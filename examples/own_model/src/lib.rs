//! Models and a kind of data from outside gradus: one model for each capability that gradus has no model of.

mod cooccurrence;
mod markov;
mod means;
mod mixture;
mod sequences;
mod standardize;

pub use cooccurrence::{Cooccurrence, WordVectors};
pub use markov::{Markov, MarkovChain};
pub use means::{Centres, Means};
pub use mixture::{Mixture, UnigramMixture};
pub use sequences::{Sequences, SequencesFile};
pub use standardize::{Standardize, Standardized};

use gradus::model::Registry;

/// The models of gradus and those of this crate.
pub fn registry() -> Registry {
    gradus::registry()
        .clone()
        .with::<Markov>()
        .with::<Standardize>()
        .with::<Means>()
        .with::<Mixture>()
        .with::<Cooccurrence>()
}
