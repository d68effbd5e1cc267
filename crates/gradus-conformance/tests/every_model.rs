//! Runs every check on every model of the registry, or on those that `GRADUS_MODELS=als,mlp` names.

use gradus_conformance::{checks, data, failures, fitting, of_capability};
use gradus_core::capability::Capability;

#[test]
fn every_model_passes_every_check() {
    let chosen = std::env::var("GRADUS_MODELS").ok();
    let runs = |name: &str| chosen.as_ref().is_none_or(|all| all.split(',').any(|one| one == name));
    let failures: Vec<String> = gradus::models()
        .iter()
        .filter(|model| runs(model.name()))
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
fn every_kind_of_data_has_laws() {
    for kind in gradus::registry().kinds() {
        let models = gradus::models();
        let model = models.iter().find(|model| model.data().name() == kind.name()).unwrap();
        let laws: Vec<&str> = checks(*model).iter().map(|check| check.name).collect();
        for check in data::CHECKS.iter().chain(fitting::CHECKS) {
            assert!(laws.contains(&check.name), "{}: {}", kind.name(), check.name);
        }
    }
}

#[test]
fn every_capability_has_laws() {
    for &capability in Capability::ALL {
        let laws = of_capability(capability).unwrap_or_default();
        assert!(!laws.is_empty(), "no check of models that can {capability}");
    }
}
