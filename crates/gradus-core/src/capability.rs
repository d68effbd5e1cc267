//! The capabilities of a fitted model.
//!
//! A model has a capability if it implements the trait of it, which the dynamic form asks for by a method of
//! [`Model`](crate::estimator::Model). A kind of model declares its capabilities beforehand
//! ([`Traits`](crate::estimator::Traits)), so that commands, help texts and other languages know them without a fit; the
//! conformance suite compares the two.

use std::fmt;

/// Something that fitted models of some kinds can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Capability {
    /// Recommend items to users: [`Recommend`](crate::recommend::Recommend).
    Recommend,
    /// Learn from new ratings without a new fit, at least with the default parameters:
    /// [`Update`](crate::update::Update).
    Update,
    /// Predict numbers from features: [`Predict`](crate::predict::Predict).
    PredictValues,
    /// Predict classes from features: [`Predict`](crate::predict::Predict).
    PredictClasses,
    /// Transform features into others: [`Transform`](crate::transform::Transform).
    Transform,
    /// Group samples into clusters: [`Cluster`](crate::cluster::Cluster).
    Cluster,
    /// Describe documents by topics: [`Topics`](crate::topics::Topics).
    Topics,
    /// Give vectors of named things: [`Embed`](crate::embed::Embed).
    Embed,
    /// Tell how probable data is: [`Density`](crate::density::Density).
    Density,
    /// Make data like that it learned from: [`Generate`](crate::density::Generate).
    Generate,
    /// Make texts of texts: [`Translate`](crate::translate::Translate).
    Translate,
    /// Give the gradient of its outputs with respect to its inputs:
    /// [`Gradient`](crate::transform::Gradient).
    Gradient,
}

impl Capability {
    /// All of them. The conformance suite has laws for each.
    pub const ALL: &'static [Self] = &[
        Self::Recommend,
        Self::Update,
        Self::PredictValues,
        Self::PredictClasses,
        Self::Transform,
        Self::Cluster,
        Self::Topics,
        Self::Embed,
        Self::Density,
        Self::Generate,
        Self::Translate,
        Self::Gradient,
    ];

    /// Returns the name for programs: `predict_classes`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recommend => "recommend",
            Self::Update => "update",
            Self::PredictValues => "predict_values",
            Self::PredictClasses => "predict_classes",
            Self::Transform => "transform",
            Self::Cluster => "cluster",
            Self::Topics => "topics",
            Self::Embed => "embed",
            Self::Density => "density",
            Self::Generate => "generate",
            Self::Translate => "translate",
            Self::Gradient => "gradient",
        }
    }

    /// Returns the description that completes "it can …".
    pub fn verb(self) -> &'static str {
        match self {
            Self::Recommend => "recommend items to users",
            Self::Update => "learn from new ratings",
            Self::PredictValues => "predict numbers from features",
            Self::PredictClasses => "predict classes from features",
            Self::Transform => "transform features",
            Self::Cluster => "group samples into clusters",
            Self::Topics => "describe documents by topics",
            Self::Embed => "give vectors of names",
            Self::Density => "tell how probable data is",
            Self::Generate => "generate data",
            Self::Translate => "translate texts",
            Self::Gradient => "give the gradient with respect to its features",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())
    }
}

/// Capabilities in a sentence: "recommend items to users and learn from new ratings".
pub fn list(capabilities: &[Capability]) -> String {
    let verbs: Vec<&str> = capabilities.iter().map(|capability| capability.verb()).collect();
    match verbs.as_slice() {
        [] => "nothing by itself".to_owned(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_reported_in_a_sentence() {
        assert_eq!(list(&[]), "nothing by itself");
        assert_eq!(list(&Capability::ALL[..1]), "recommend items to users");
        assert_eq!(
            list(&Capability::ALL[..3]),
            "recommend items to users, learn from new ratings and predict numbers from features"
        );
        let mut names: Vec<&str> = Capability::ALL.iter().map(|one| one.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Capability::ALL.len());
    }
}
