//! The mean of all ratings.

use super::{begin, fitted};
use crate::catalogue::{Catalogue, UserProfile};
use crate::scorer::{Scorer, ScoringRule};
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mean of all ratings: predicts the same for everyone and everything.
///
/// `r̂ = α` with `α = Σ w r / Σ w`, which minimises `Σ w (r − α)²` over all constants. Its error is
/// the spread of the ratings, so a model that does not beat it has learned nothing. All items
/// score alike; recommendations come in the order of the ids.
///
/// Cost: one pass over the ratings. Use `bias` for the least that tells items apart, and `popular`
/// for recommendations without ratings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct Mean {
    /// Whether the model keeps the training ratings, to leave out what a user has seen.
    pub keep_history: bool,
}

impl Default for Mean {
    fn default() -> Self {
        Self { keep_history: true }
    }
}

impl Params for Mean {}

impl Mean {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The (weighted) mean of the ratings; 0 where nothing weighs anything.
pub(super) fn mean_of(data: &Ratings) -> f64 {
    let (sum, weight) = data.iter().fold((0.0, 0.0), |(sum, weight), rating| {
        let w = f64::from(rating.weight);
        (sum + w * f64::from(rating.value), weight + w)
    });
    if weight > 0.0 { sum / weight } else { 0.0 }
}

impl Fit for Mean {
    const NAME: &'static str = "mean";
    const CLASS: &'static str = "Mean";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Scorer<ConstantRating>;
    const TRAITS: Traits = Traits {
        iterative: false,
        resumable: false,
        baseline: true,
        recommender: Some(RecommenderTraits { similar: false, ..RecommenderTraits::EXPLICIT }),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let (options, held_out) = begin(self, data, job)?;
        let (mean, report) = iterate::direct(&options, job, || {
            let mean = mean_of(data);
            let squares = data.iter().map(|r| {
                let error = f64::from(r.value) - mean;
                f64::from(r.weight) * error * error
            });
            let score = held_out.as_ref().map(|held_out| held_out.rmse(None, |_, _| mean as f32));
            Ok((mean, squares.sum(), score))
        })?;
        fitted(self, (data, job), self.keep_history, ConstantRating { mean }, report)
    }
}

/// The same score for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantRating {
    /// The score.
    pub mean: f64,
}

impl ScoringRule for ConstantRating {
    type Workspace = ();

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("model", self);
    }

    fn read(file: &mut Reader, _: &Catalogue) -> Result<Self> {
        file.get("model")
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("mean", format!("{:.4}", self.mean))]
    }

    fn score(&self, _: Option<&UserProfile<'_>>, _: Option<usize>) -> f32 {
        self.mean as f32
    }

    fn parts(&self, profile: &UserProfile<'_>, _: usize) -> Vec<f32> {
        vec![0.0; profile.items.len()]
    }
}
