//! The laws of every gradus model, over the models of this crate.

use gradus::model::Entry;
use own_model::{Markov, Standardize};

#[test]
fn the_markov_chain_keeps_every_law() {
    let failures = gradus_conformance::failures(&Entry::<Markov>::new());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn the_transformer_keeps_every_law() {
    let failures = gradus_conformance::failures(&Entry::<Standardize>::new());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
