//! The checks every gradus model passes.
//!
//! A model of gradus joins by being in the registry of the `gradus` crate: `tests/every_model.rs` runs all
//! checks on all models. A crate with a model of its own tests it in a line:
//!
//! ```
//! # use gradus::recommenders::Bias as Mine;
//! use gradus_core::estimator::Entry;
//! let failures = gradus_conformance::failures(&Entry::<Mine>::new());
//! assert!(failures.is_empty(), "{}", failures.join("\n"));
//! ```
//!
//! A check is a law that holds for any model of its kind of data, whatever
//! the algorithm; what is special to an algorithm is tested beside it.
//!
//! | module | checks on |
//! |---|---|
//! | [`contract`] | parameters, docs, reports: any model |
//! | [`data`] | the kind of data a model learns from: any kind |
//! | [`fitting`] | fits: any model of any kind of data |
//! | [`ratings`] | models that learn from ratings: reproducibility, files, weights, edge cases |
//! | [`recommending`] | models that recommend |
//! | [`samples`], [`predicting`] | models that predict from features, and from other data |
//! | [`distribution`] | models that tell how probable data is, or make data |
//! | [`features`] | models that transform features, or have a gradient |
//! | [`clusters`], [`topics`], [`embeddings`] | clusterings, topic models, embeddings |

pub mod clusters;
pub mod contract;
pub mod data;
pub mod distribution;
pub mod embeddings;
pub mod features;
pub mod fitting;
pub mod predicting;
pub mod ratings;
pub mod recommending;
pub mod samples;
pub mod side;
pub mod topics;

use gradus_core::capability::Capability;
use gradus_core::estimator::Estimator;
use gradus_core::params::ParamKind;
use serde_json::{Map, Value, json};

/// The result of a check: nothing, or a description of the failure.
pub type Finding = Result<(), String>;

/// A named law.
pub struct Check {
    /// The law in a few words.
    pub name: &'static str,
    /// Tests it on a model.
    pub run: fn(&dyn Estimator) -> Finding,
}

/// The laws of models that have a capability; `None` of a capability without any, which a test refuses.
pub fn of_capability(capability: Capability) -> Option<&'static [Check]> {
    match capability {
        Capability::Recommend => Some(recommending::CHECKS),
        Capability::Update => Some(recommending::UPDATING),
        Capability::PredictValues | Capability::PredictClasses => Some(samples::PREDICTING),
        Capability::Transform => Some(features::TRANSFORMING),
        Capability::Gradient => Some(features::GRADIENT),
        Capability::Cluster => Some(clusters::CHECKS),
        Capability::Topics => Some(topics::CHECKS),
        Capability::Embed => Some(embeddings::CHECKS),
        Capability::Density => Some(distribution::DENSITY),
        Capability::Generate => Some(distribution::GENERATING),
        Capability::Translate => Some(distribution::TRANSLATING),
        _ => None,
    }
}

/// The laws that only models of this kind of data have, besides those of [`data`] and [`fitting`].
pub fn of_data(model: &dyn Estimator) -> &'static [Check] {
    match model.data().name() {
        "ratings" => ratings::CHECKS,
        "samples" if model.traits().predicts() => samples::CHECKS,
        _ => &[],
    }
}

/// All checks that apply to a model.
pub fn checks(model: &dyn Estimator) -> Vec<&'static Check> {
    let mut checks: Vec<&Check> = contract::CHECKS.iter().collect();
    checks.extend(data::CHECKS.iter().chain(fitting::CHECKS).chain(of_data(model)));
    if model.traits().recommender.is_some() {
        checks.extend(side::CHECKS);
    }
    let of_samples = model.data().name() == "samples";
    if model.traits().predicts() && !of_samples {
        checks.extend(predicting::CHECKS);
    }
    for &capability in model.traits().capabilities {
        let predicts =
            [Capability::PredictValues, Capability::PredictClasses].contains(&capability);
        if of_samples || !predicts {
            checks.extend(of_capability(capability).unwrap_or_default());
        }
    }
    checks
}

/// The checks that a model fails, and why.
pub fn failures(model: &dyn Estimator) -> Vec<String> {
    let failure = |check: &&Check| {
        let run = std::panic::AssertUnwindSafe(|| (check.run)(model));
        let finding = std::panic::catch_unwind(run).unwrap_or_else(|_| Err("panicked".into()));
        finding.err().map(|what| format!("{}: {}: {what}", model.name(), check.name))
    };
    checks(model).iter().filter_map(failure).collect()
}

/// Fails a check with a message unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            return Err(format!($($message)+));
        }
    };
}

/// Parameters that make a fit quick, where the model has parameters of these names.
pub fn quick(model: &dyn Estimator) -> Map<String, Value> {
    let wanted = [
        ("rank", json!(4)),
        ("n_clusters", json!(3)),
        ("n_topics", json!(3)),
        ("max_iter", json!(4)),
        ("tol", json!(0.0)),
        ("seed", json!(7)),
    ];
    let specs = model.specs();
    // Components of a clustering are clusters; of other models `n_components` may mean anything.
    let clusters = model.traits().can(Capability::Cluster).then(|| ("n_components", json!(3)));
    wanted
        .into_iter()
        .chain(clusters)
        .filter(|(name, _)| specs.iter().any(|spec| spec.name == *name))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Values that break the rule of a parameter.
pub fn broken_values(kind: &ParamKind) -> Vec<Value> {
    match kind {
        ParamKind::Bool => vec![json!("maybe"), json!(3)],
        ParamKind::Integer { min, max } => {
            let mut values = vec![json!("many"), json!(1.5)];
            values.extend(i64::try_from(min - 1).ok().map(Value::from));
            values.extend(u64::try_from(max + 1).ok().map(Value::from));
            values
        }
        ParamKind::Number { min, max } => {
            let mut values = vec![json!("much"), Value::Null];
            values.extend(min.map(|(bound, _)| json!(bound - 1.0)));
            values.extend(max.map(|(bound, _)| json!(bound + 1.0)));
            values
        }
        ParamKind::Choice(_) => vec![json!("neither"), json!(1)],
        ParamKind::Numbers { min } => {
            let mut values = vec![json!("many"), json!([1.0, "x"]), json!([null])];
            values.extend(min.map(|bound| json!([bound - 1.0])));
            values
        }
        ParamKind::Integers { min, max } => {
            let mut values = vec![json!("many"), json!([1, "x"]), json!([null]), json!([1.5])];
            values.extend(i64::try_from(min - 1).ok().map(|below| json!([below])));
            values.extend(u64::try_from(max + 1).ok().map(|above| json!([above])));
            values
        }
        ParamKind::Text => vec![json!(1)],
        ParamKind::Texts => vec![json!(1), json!([1])],
    }
}

/// Describes an error or the lack of one.
pub(crate) fn error_text<T>(result: gradus_base::Result<T>) -> Result<String, String> {
    match result {
        Ok(_) => Err("was accepted".to_owned()),
        Err(error) => Ok(error.to_string()),
    }
}

/// Turns an error into a finding.
pub(crate) fn found<T>(result: gradus_base::Result<T>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
