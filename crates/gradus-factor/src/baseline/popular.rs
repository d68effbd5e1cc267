//! Popularity, the baseline of recommenders.

use crate::catalogue::{Catalogue, UserProfile};
use crate::fitting;
use crate::ranking::HeldOutItems;
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
use std::time::Instant;

/// How the popularity of an item is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PopularityMeasure {
    /// The share of all pairs that are of this item: the chance that the next one is.
    #[default]
    Share,
    /// The number of users who chose it (the sum of the weights).
    Count,
    /// The sum of the values (times their weights): plays instead of players.
    Sum,
}

/// The popularity baseline: recommends the most popular items that the user has not seen.
///
/// The score of an item is the number of users who chose it, `Σ_u w_ui`, as a share of all pairs
/// unless `measure` says otherwise; it is the same for everyone. As shares the scores are the
/// maximum-likelihood estimate of the next choice of anyone; the objective in the report is the
/// entropy `−Σ p ln p` of these shares.
///
/// Cost: one pass over the data. It is what a recommender has to beat on data without opinions,
/// and what to show to a user about whom nothing is known. Use `neighbours` or a latent factor model
/// for recommendations that depend on the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct Popular {
    /// How the popularity of an item is measured.
    pub measure: PopularityMeasure,

    /// Whether the model keeps the training data, to leave out what a user has seen.
    pub keep_history: bool,
}

impl Default for Popular {
    fn default() -> Self {
        Self { measure: PopularityMeasure::Share, keep_history: true }
    }
}

impl Params for Popular {}

impl Popular {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The (weighted) number of users of each item.
pub(crate) fn popularity(data: &Ratings) -> Vec<f32> {
    counts(data, |_| 1.0).into_iter().map(|count| count as f32).collect()
}

/// The sum over each item's ratings of weight times `of(value)`.
fn counts(data: &Ratings, of: impl Fn(f32) -> f64) -> Vec<f64> {
    let rows = data.by_item();
    (0..data.n_items())
        .map(|item| {
            let each = rows.range(item).map(|at| {
                let weight = data.weights_by_item().map_or(1.0, |weights| f64::from(weights[at]));
                weight * of(rows.values()[at])
            });
            each.sum()
        })
        .collect()
}

impl Fit for Popular {
    const NAME: &'static str = "popular";
    const CLASS: &'static str = "Popular";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Scorer<Popularity>;
    const TRAITS: Traits = Traits {
        iterative: false,
        resumable: false,
        baseline: true,
        recommender: Some(RecommenderTraits { similar: false, ..RecommenderTraits::IMPLICIT }),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        fitting::check(self, data)?;
        fitting::check_weights(Self::NAME, data)?;
        fitting::check_not_negative(Self::NAME, data)?;
        let held_out =
            job.validation.map(|held_out| HeldOutItems::new(held_out, data)).transpose()?;
        let options = fitting::closed_form_options(self, started);
        let (scores, mut report) = iterate::direct(&options, job, || {
            let mut scores = match self.measure {
                PopularityMeasure::Sum => counts(data, f64::from),
                PopularityMeasure::Share | PopularityMeasure::Count => counts(data, |_| 1.0),
            };
            let total: f64 = scores.iter().sum();
            let shares = scores.iter().filter(|&&score| score > 0.0).map(|score| score / total);
            let entropy: f64 = -shares.map(|share| share * share.ln()).sum::<f64>();
            if self.measure == PopularityMeasure::Share {
                scores.iter_mut().for_each(|score| *score /= total);
            }
            let scores: Vec<f32> =
                scores.into_iter().map(|score| score.min(f64::from(f32::MAX)) as f32).collect();
            let score = held_out
                .as_ref()
                .map(|held_out| held_out.ndcg(|_, row| row.copy_from_slice(&scores)));
            Ok((scores, entropy.max(0.0), score))
        })?;
        if let Some(held_out) = &held_out {
            report.baselines = held_out.baselines(data);
        }
        let catalogue = Catalogue::new(data, self.keep_history);
        let model = Scorer::new(catalogue, Popularity { scores });
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// A score for each item, the same for everyone.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    /// The scores.
    pub scores: Vec<f32>,
}

impl ScoringRule for Popularity {
    type Workspace = ();

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.tensor("scores", &[self.scores.len()], &self.scores);
    }

    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self> {
        Ok(Self { scores: file.finite("scores", &[catalogue.items.len()])? })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn score(&self, _: Option<&UserProfile<'_>>, item: Option<usize>) -> f32 {
        item.map_or(0.0, |item| self.scores[item])
    }

    fn scores(&self, _: &UserProfile<'_>, scores: &mut [f32]) {
        scores.copy_from_slice(&self.scores);
    }

    fn parts(&self, profile: &UserProfile<'_>, _: usize) -> Vec<f32> {
        vec![0.0; profile.items.len()]
    }
}
