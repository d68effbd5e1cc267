//! Declared properties of a kind of model.

use crate::capability::Capability;

/// Declared properties of a kind of model. The conformance suite checks them, and the command line chooses by them what
/// to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The capabilities of a fitted model.
    pub capabilities: &'static [Capability],
    /// The fit is iterative and can be interrupted. False of a closed form.
    pub iterative: bool,
    /// The fit keeps checkpoints: an interrupted fit goes on to the same result. Of a model that does
    /// not, an interrupted fit begins anew.
    pub resumable: bool,
    /// A weight of 3 equals three observations.
    pub weights: bool,
    /// The result is an average over iterations, so the last one is kept and not the best.
    pub averages: bool,
    /// A fit can start from a fitted model ([`Job::warm`](super::Job::warm)) and takes fewer iterations then.
    pub warm_start: bool,
    /// Fitted to convergence it is as good as stopped early, and started from the solution for a
    /// stronger penalty it converges to as good a one in fewer iterations: a search over penalties
    /// follows the path of them by default.
    pub warm_path: bool,
    /// The fit scores held-out data after every iteration and keeps the best iterate. A search then
    /// stops every fit early; otherwise fits go on until they converge.
    pub early_stopping: bool,
    /// A simple, cheap model that others have to beat: it takes part in every comparison of models.
    pub baseline: bool,
    /// A fit can read its rows once, without holding them ([`Fit::fit_rows`](super::Fit::fit_rows)): for files larger than memory.
    pub streams: bool,
    /// Features must be 0 or more, and negative ones are refused.
    pub non_negative: bool,
    /// Entries of the features may be missing (NaN), and count for nothing. Others refuse them.
    pub missing: bool,
    /// Properties of recommenders; `None` for other models.
    pub recommender: Option<RecommenderTraits>,
}

/// Declared properties of a recommender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecommenderTraits {
    /// Implicit feedback: values are signs of interest (clicks, plays), not opinions. They cannot be negative, an
    /// absent pair carries information too, and the model is evaluated by ranking.
    pub implicit: bool,
    /// Folding in a user by their training data gives the very user of the model.
    pub exact_fold_in: bool,
    /// The model offers similar items.
    pub similar: bool,
    /// The model learns from features of users and items (side information). Others refuse data with features.
    pub features: bool,
}

impl RecommenderTraits {
    /// A recommender of rated items that keeps every law.
    pub const EXPLICIT: Self =
        Self { implicit: false, exact_fold_in: true, similar: true, features: false };

    /// The same of signs of interest.
    pub const IMPLICIT: Self = Self { implicit: true, ..Self::EXPLICIT };
}

impl Traits {
    /// An iterative recommender of rated items that keeps every law.
    pub const RECOMMENDER: Self = Self {
        capabilities: &[Capability::Recommend],
        iterative: true,
        resumable: true,
        weights: true,
        averages: false,
        warm_start: true,
        warm_path: false,
        early_stopping: true,
        baseline: false,
        streams: false,
        non_negative: false,
        missing: false,
        recommender: Some(RecommenderTraits::EXPLICIT),
    };

    /// The same, which also learns from new ratings without a new fit.
    pub const UPDATING_RECOMMENDER: Self =
        Self { capabilities: &[Capability::Recommend, Capability::Update], ..Self::RECOMMENDER };

    /// A model that predicts numbers from features, in closed form, and has a gradient.
    pub const REGRESSION: Self = Self {
        capabilities: &[Capability::PredictValues, Capability::Gradient],
        iterative: false,
        resumable: false,
        warm_start: false,
        early_stopping: false,
        recommender: None,
        ..Self::RECOMMENDER
    };

    /// A model that predicts classes from features, in closed form, and has a gradient.
    pub const CLASSIFICATION: Self = Self {
        capabilities: &[Capability::PredictClasses, Capability::Gradient],
        ..Self::REGRESSION
    };

    /// A model that transforms features, in closed form.
    pub const TRANSFORMER: Self =
        Self { capabilities: &[Capability::Transform], ..Self::REGRESSION };

    /// A model that groups samples into clusters, step by step.
    pub const CLUSTERING: Self = Self {
        capabilities: &[Capability::Cluster],
        iterative: true,
        resumable: true,
        ..Self::REGRESSION
    };

    /// Whether a fitted model predicts from features, be it numbers or classes.
    pub fn predicts(&self) -> bool {
        self.can(Capability::PredictValues) || self.can(Capability::PredictClasses)
    }

    /// Whether a fitted model has this capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Whether it is a recommender that learns from features of users and items, too.
    pub fn takes_features(&self) -> bool {
        self.recommender.is_some_and(|traits| traits.features)
    }

    /// Whether it is a recommender that learns from signs of interest.
    pub fn is_implicit(&self) -> bool {
        self.recommender.is_some_and(|traits| traits.implicit)
    }
}
