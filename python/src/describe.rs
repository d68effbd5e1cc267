//! The registry, for the estimators of the package to be written from.

use gradus_core::capability::Capability;
use gradus_core::params::{ParamKind, ParamSpec};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Every model there is and its parameters, as JSON.
#[pyfunction]
pub fn describe() -> String {
    let models = gradus::models().iter().map(|model| {
        let (summary, rest) = model.docs();
        let traits = model.traits();
        json!({
            "name": model.name(),
            "family": model.family(),
            "class": model.class(),
            "data": model.data().name(),
            "summary": summary,
            "docs": rest,
            "capabilities": traits.capabilities.iter().map(|one| one.name()).collect::<Vec<_>>(),
            "implicit": traits.is_implicit(),
            "non_negative": traits.non_negative,
            "missing": traits.missing,
            "baseline": traits.baseline,
            "updates": traits.can(Capability::Update),
            "warm_start": traits.warm_start && traits.iterative && !traits.averages,
            "params": model.specs().iter().map(param).collect::<Vec<_>>(),
        })
    });
    Value::from_iter(models).to_string()
}

fn param(spec: &ParamSpec) -> Value {
    let kind = match &spec.kind {
        ParamKind::Bool => json!("bool"),
        ParamKind::Integer { .. } => json!("int"),
        ParamKind::Number { .. } => json!("float"),
        ParamKind::Numbers { .. } => json!("list[float]"),
        ParamKind::Integers { .. } => json!("list[int]"),
        ParamKind::Text => json!("str"),
        ParamKind::Texts => json!("list[str]"),
        ParamKind::Choice(words) => json!(words),
    };
    json!({
        "name": spec.name,
        "doc": spec.doc,
        "kind": kind,
        "rule": spec.rule(),
        "default": spec.default,
        "optional": spec.optional,
    })
}
