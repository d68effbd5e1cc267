//! Runs every check on every model of the registry.

use gradus_conformance::{checks, of_capability, of_data};
use gradus_core::capability::Capability;
use std::panic::AssertUnwindSafe;

#[test]
fn every_model_passes_every_check() {
    let mut failures = Vec::new();
    for model in gradus::models() {
        let checks = checks(*model);
        let failed: Vec<String> = checks
            .iter()
            .filter_map(|check| {
                let finding = std::panic::catch_unwind(AssertUnwindSafe(|| (check.run)(*model)))
                    .unwrap_or_else(|_| Err("panicked".into()));
                finding.err().map(|what| format!("{}: {}: {what}", model.name(), check.name))
            })
            .collect();
        println!(
            "{}: {} of {} checks passed",
            model.name(),
            checks.len() - failed.len(),
            checks.len()
        );
        failures.extend(failed);
    }
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
fn every_capability_and_every_kind_of_data_has_laws() {
    for &capability in Capability::ALL {
        let laws = of_capability(capability).unwrap_or_default();
        assert!(!laws.is_empty(), "no check of models that can {capability}");
    }
    for model in gradus::models() {
        let laws = of_data(model.data()).unwrap_or_default();
        assert!(!laws.is_empty(), "no check of models that learn from {}", model.data());
    }
}
