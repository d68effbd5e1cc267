//! Parameters and docs: any model.

use crate::{Check, Finding, broken_values, ensure, error_text, of_capability};
use gradus_core::capability::Capability;
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use serde_json::{Map, Value};

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "it and every parameter are documented", run: documented },
    Check { name: "its name is one word in lower case", run: named },
    Check { name: "every default obeys its own rule", run: defaults },
    Check { name: "a broken parameter is refused by name, value and rule", run: refused },
    Check { name: "an unknown parameter is refused by name", run: unknown },
    Check { name: "it can do what it declares, and says so if asked for more", run: capable },
    Check { name: "each of its capabilities has laws here", run: has_laws },
];

fn documented(model: &dyn Estimator) -> Finding {
    let (summary, details) = model.docs();
    ensure!(summary.len() > 20, "the summary is too short: {summary:?}");
    ensure!(details.len() > 200, "the details are too short");
    for spec in model.specs() {
        ensure!(spec.doc.len() > 8, "parameter `{}` has no doc comment", spec.name);
    }
    Ok(())
}

fn has_laws(model: &dyn Estimator) -> Finding {
    match without_laws(model.traits().capabilities, of_capability) {
        Some(capability) => Err(format!("there is no check of models that can {capability}")),
        None => Ok(()),
    }
}

/// The first of these capabilities that has no laws.
fn without_laws(
    capabilities: &[Capability],
    laws: impl Fn(Capability) -> Option<&'static [Check]>,
) -> Option<Capability> {
    capabilities.iter().copied().find(|&one| laws(one).unwrap_or_default().is_empty())
}

fn named(model: &dyn Estimator) -> Finding {
    let name = model.name();
    let fits = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    ensure!(fits && !name.is_empty(), "{name:?}");
    Ok(())
}

fn defaults(model: &dyn Estimator) -> Finding {
    for spec in model.specs() {
        spec.check(&spec.default).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Fits on little data.
fn fit(model: &dyn Estimator, params: &Map<String, Value>) -> gradus_base::Result<AnyFitted> {
    let data = model.data().example(20, 1, &model.traits())?;
    model.fit(params, data.as_ref(), None, &Run::default())
}

/// Checks that fitted models implement the capabilities that their kind declares.
fn capable(model: &dyn Estimator) -> Finding {
    let mut fitted = fit(model, &Map::new()).map_err(|error| error.to_string())?;
    let mut can = fitted.capabilities();
    can.extend(fitted.model.updater().map(|_| Capability::Update));
    let declared = model.traits().capabilities;
    ensure!(can == declared, "it declares {declared:?} and can {can:?}");
    ensure!(!declared.is_empty(), "it can do nothing");
    let recommends = declared.contains(&Capability::Recommend);
    ensure!(model.traits().recommender.is_some() == recommends, "traits of a recommender");
    // A capability that it lacks is refused by one message, which says what it can do instead.
    let refused = [
        (Capability::Recommend, fitted.recommend().err()),
        (Capability::PredictValues, fitted.predictor().err()),
        (Capability::Transform, fitted.transformer().err()),
        (Capability::Cluster, fitted.clusterer().err()),
        (Capability::Topics, fitted.topics().err()),
        (Capability::Embed, fitted.embedding().err()),
        (Capability::Density, fitted.density().err()),
        (Capability::Generate, fitted.generator().err()),
        (Capability::Translate, fitted.translator().err()),
        (Capability::Gradient, fitted.gradient().err()),
    ];
    for (missing, error) in refused {
        let Some(error) = error else { continue };
        let text = error.to_string();
        let answer = text.contains(missing.verb()) && text.contains(declared[0].verb());
        ensure!(answer && text.contains(model.name()), "{text:?}");
    }
    Ok(())
}

fn refused(model: &dyn Estimator) -> Finding {
    for spec in model.specs() {
        for value in broken_values(&spec.kind) {
            if spec.optional && value.is_null() {
                continue;
            }
            let mut params = Map::new();
            params.insert(spec.name.clone(), value.clone());
            let text = error_text(fit(model, &params))
                .map_err(|e| format!("{} = {value} {e}", spec.name))?;
            ensure!(
                text.contains(&format!("`{}`", spec.name)),
                "{text:?} does not name `{}`",
                spec.name
            );
            ensure!(text.contains("must be"), "{text:?} does not state the rule");
        }
    }
    Ok(())
}

fn unknown(model: &dyn Estimator) -> Finding {
    let mut params = Map::new();
    params.insert("no_such_parameter".into(), Value::from(1));
    let text = error_text(fit(model, &params))?;
    ensure!(text.contains("no_such_parameter"), "{text:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_without_laws_is_found() {
        let forgets = |forgotten: Capability| {
            move |one: Capability| if one == forgotten { None } else { of_capability(one) }
        };
        for &capability in Capability::ALL {
            assert_eq!(without_laws(Capability::ALL, forgets(capability)), Some(capability));
            assert_eq!(without_laws(&[capability], |_| Some(&[])), Some(capability));
        }
        assert_eq!(without_laws(Capability::ALL, of_capability), None);
    }
}
