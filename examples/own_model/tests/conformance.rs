//! The laws of every gradus model, over the models of this crate.

use gradus::model::{Entry, Fit};
use own_model::{Cooccurrence, Markov, Means, Mixture, Standardize};

fn keeps_every_law<P: Fit>() {
    let failures = gradus_conformance::failures(&Entry::<P>::new());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn the_markov_chain_keeps_every_law() {
    keeps_every_law::<Markov>();
}

#[test]
fn the_transformer_keeps_every_law() {
    keeps_every_law::<Standardize>();
}

#[test]
fn the_clustering_keeps_every_law() {
    keeps_every_law::<Means>();
}

#[test]
fn the_topic_model_keeps_every_law() {
    keeps_every_law::<Mixture>();
}

#[test]
fn the_embedding_keeps_every_law() {
    keeps_every_law::<Cooccurrence>();
}
