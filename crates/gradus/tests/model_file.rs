//! The check of the fuzzer of model files, over its corpus and over every model there is.

#[path = "../../../fuzz/checks/model_file.rs"]
mod checks;

use gradus_core::estimator::Run;
use serde_json::Map;

/// Recommenders and models of features alike: the fuzzer once took every model for a recommender.
#[test]
fn every_model_passes_the_check_of_the_fuzzer() {
    for model in gradus::models() {
        let data = model.data().example(60, 1, &model.traits()).unwrap();
        let fitted = model.fit(&Map::new(), data.as_ref(), None, &Run::default()).unwrap();
        let bytes = fitted.to_bytes().unwrap();
        assert_eq!(checks::check(&bytes), Some(model.name()));
        // Broken in the middle it may be anything, but no panic.
        for at in (0..bytes.len()).step_by(bytes.len() / 20 + 1) {
            let mut broken = bytes.clone();
            broken[at] ^= 0x55;
            checks::check(&broken);
        }
    }
}

#[test]
fn the_corpus_holds_every_model() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model_file");
    let mut kinds = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        kinds.extend(checks::check(&std::fs::read(entry.unwrap().path()).unwrap()));
    }
    for model in gradus::models() {
        assert!(kinds.contains(model.name()), "no file of `{}` in the corpus", model.name());
    }
}
