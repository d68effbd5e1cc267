//! Runs every check on every model of the registry.

use gradus_conformance::{checks, failures, of_capability};
use gradus_core::capability::Capability;

#[test]
fn every_model_passes_every_check() {
    let failures: Vec<String> = gradus::models()
        .iter()
        .flat_map(|model| {
            let (failed, all) = (failures(*model), checks(*model).len());
            println!("{}: {} of {all} checks passed", model.name(), all - failed.len());
            failed
        })
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = gradus::models().iter().map(|model| model.name()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn every_capability_has_laws() {
    for &capability in Capability::ALL {
        let laws = of_capability(capability).unwrap_or_default();
        assert!(!laws.is_empty(), "no check of models that can {capability}");
    }
}
