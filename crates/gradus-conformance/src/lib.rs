//! The checks every gradus model passes.
//!
//! A model joins by being in the registry of the `gradus` crate: `tests/every_model.rs` runs all
//! checks on all models. A check is a law that holds for any model of its kind of data, whatever
//! the algorithm; what is special to an algorithm is tested beside it.
//!
//! | module | checks on |
//! |---|---|
//! | [`contract`] | parameters, docs, reports: any model |
//! | [`ratings`] | models that learn from ratings: reproducibility, files, weights, edge cases |
//! | [`recommending`] | models that recommend |
//! | [`samples`] | models that predict from features |

pub mod contract;
pub mod ratings;
pub mod recommending;
pub mod samples;

use gradus_core::capability::Capability;
use gradus_core::estimator::Estimator;
use gradus_core::params::ParamKind;
use serde_json::{Map, Value, json};

/// What a check finds: nothing, or what is wrong.
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
        _ => None,
    }
}

/// The laws of models that learn from a kind of data; `None` of a kind without any, which a test refuses.
pub fn of_data(kind: &str) -> Option<&'static [Check]> {
    match kind {
        "ratings" => Some(ratings::CHECKS),
        "samples" => Some(samples::CHECKS),
        _ => None,
    }
}

/// All checks that apply to a model.
pub fn checks(model: &dyn Estimator) -> Vec<&'static Check> {
    let mut checks: Vec<&Check> = contract::CHECKS.iter().collect();
    checks.extend(of_data(model.data()).unwrap_or_default());
    for &capability in model.traits().capabilities {
        checks.extend(of_capability(capability).unwrap_or_default());
    }
    checks
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
    let wanted =
        [("rank", json!(4)), ("max_iter", json!(4)), ("tol", json!(0.0)), ("seed", json!(7))];
    let specs = model.specs();
    wanted
        .into_iter()
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
    }
}

/// Describes an error or the lack of one.
pub(crate) fn error_text<T>(result: gradus::Result<T>) -> Result<String, String> {
    match result {
        Ok(_) => Err("was accepted".to_owned()),
        Err(error) => Ok(error.to_string()),
    }
}

/// Turns an error into a finding.
pub(crate) fn found<T>(result: gradus::Result<T>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
