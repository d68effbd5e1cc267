//! The mean with a bias for each user and item.

use super::mean::mean_of;
use super::scores;
use crate::catalogue::{Catalogue, UserProfile};
use crate::fitting::{self, interrupted};
use crate::latent::{HeldOut, range};
use crate::scorer::{Scorer, ScoringRule};
use derive_setters::Setters;
use gradus_base::{Result, parallel};
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_core::progress::Stop;
use gradus_data::{Csr, Ratings};
use gradus_file::{Reader, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Largest number of rounds of alternation; a handful is enough except for data in long chains.
const ROUNDS: usize = 1000;
/// Biases have converged when they move by less than this share of the range of the ratings.
const STILL: f64 = 1e-7;

/// The mean with biases: who rates high, what is rated high.
///
/// `r̂ = α + β_u + β_i`, where α is the mean of all ratings and the biases minimise
///
/// `Σ w (r − α − β_u − β_i)² + damping (Σ_u β_u² + Σ_i β_i²)`.
///
/// Each bias is a damped mean of what is left to it, `β_u = Σ w (r − α − β_i) / (Σ w + damping)`;
/// the two sides are solved in turns until nothing moves. A new user has their bias in closed
/// form. Everyone is recommended the same items, less what they have seen.
///
/// Cost: two passes over the ratings a round, some ten rounds. It is what a latent factor model
/// has to beat; use `als` for predictions that tell tastes apart.
///
/// Reference: Koren: Factor in the neighbors, 2010, section 2.1 (baseline estimates).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct Bias {
    /// Number of ratings with a residual of zero that are added to every user and item, so that few
    /// ratings make a small bias. 5 is near the best on MovieLens.
    #[schemars(range(min = 0.0))]
    pub damping: f32,

    /// Whether predictions are clipped to the range of the training ratings.
    pub clip: bool,

    /// Whether the model keeps the training ratings, to leave out what a user has seen and to explain.
    pub keep_history: bool,
}

impl Default for Bias {
    fn default() -> Self {
        Self { damping: 5.0, clip: true, keep_history: true }
    }
}

impl Params for Bias {}

impl Bias {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The mean and the biases of users and items.
#[derive(Clone, Debug, PartialEq)]
pub struct Biases {
    /// The (weighted) mean of all ratings.
    pub mean: f64,
    /// The bias of each user.
    pub users: Vec<f32>,
    /// The bias of each item.
    pub items: Vec<f32>,
    damping: f32,
    range: Option<(f32, f32)>,
}

/// Fits `r̂ = α + β_u + β_i` by alternating damped means; says whether they converged.
pub(super) fn solve(data: &Ratings, damping: f64, stop: &Stop) -> Result<(Biases, bool)> {
    let mean = mean_of(data);
    let (low, high) = range(data);
    let still = (STILL * (f64::from(high) - f64::from(low))).max(f64::MIN_POSITIVE);
    let of_users = Side { rows: data.by_user(), weights: data.weights_by_user(), mean, damping };
    let of_items = Side { rows: data.by_item(), weights: data.weights_by_item(), mean, damping };
    let mut users = vec![0.0; data.n_users()];
    let mut items = vec![0.0; data.n_items()];
    let mut at_rest = false;
    for _ in 0..ROUNDS {
        if stop.requested() {
            return Err(interrupted("bias"));
        }
        // What users have more and items less shows in no prediction, and alternation alone would
        // take very long to settle it: the damping decides it at once.
        let shift = (sum(&items) - sum(&users)) / (of_users.filled() + of_items.filled());
        let shifted = |(row, bias): (usize, &f64)| {
            if of_users.weight(row) > 0.0 { bias + shift } else { *bias }
        };
        users = users.iter().enumerate().map(shifted).collect();
        items = of_items.solve(&users);
        let new = of_users.solve(&items);
        let moved = users.iter().zip(&new).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        users = new;
        if moved <= still {
            at_rest = true;
            break;
        }
    }
    // The users once more from the items as the model has them: what folding in gives.
    let items: Vec<f32> = items.iter().map(|&bias| bias as f32).collect();
    let users = of_users.solve(&items).iter().map(|&bias| bias as f32).collect();
    Ok((Biases { mean, users, items, damping: damping as f32, range: None }, at_rest))
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// One side of the data.
struct Side<'a> {
    rows: &'a Csr,
    weights: Option<&'a [f32]>,
    mean: f64,
    damping: f64,
}

impl Side<'_> {
    /// The biases of this side, given those of the other side.
    fn solve<T: Copy + Into<f64> + Sync>(&self, others: &[T]) -> Vec<f64> {
        parallel::map_below(self.rows.n_rows(), 64, |row| {
            let (indices, values) = self.rows.row(row);
            let weights = self.weights.map(|weights| &weights[self.rows.range(row)]);
            one_bias(indices, values, weights, self.mean, self.damping, others)
        })
    }

    fn weight(&self, row: usize) -> f64 {
        let range = self.rows.range(row);
        self.weights.map_or(range.len() as f64, |w| w[range].iter().map(|&w| f64::from(w)).sum())
    }

    /// The number of rows that have a rating with a weight above 0.
    fn filled(&self) -> f64 {
        (0..self.rows.n_rows()).filter(|&row| self.weight(row) > 0.0).count() as f64
    }
}

/// The bias of one row: the damped mean of its residuals.
fn one_bias<T: Copy + Into<f64>>(
    indices: &[u32],
    values: &[f32],
    weights: Option<&[f32]>,
    mean: f64,
    damping: f64,
    others: &[T],
) -> f64 {
    let (mut sum, mut count) = (0.0, damping);
    for (at, (&index, &value)) in indices.iter().zip(values).enumerate() {
        let weight = weights.map_or(1.0, |weights| f64::from(weights[at]));
        sum += weight * (f64::from(value) - mean - others[index as usize].into());
        count += weight;
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

impl Biases {
    pub(super) fn predict(&self, user: Option<u32>, item: Option<u32>) -> f32 {
        let of = |biases: &[f32], row: Option<u32>| row.map_or(0.0, |row| biases[row as usize]);
        self.mean as f32 + of(&self.users, user) + of(&self.items, item)
    }

    /// The bias of a user: as trained, or from the ratings of the profile.
    fn of(&self, profile: &UserProfile<'_>) -> f32 {
        profile.user.map_or_else(
            || {
                let damping = f64::from(self.damping);
                let (items, values) = (&profile.items, &profile.values);
                one_bias(items, values, profile.weights, self.mean, damping, &self.items) as f32
            },
            |user| self.users[user],
        )
    }

    fn objective(&self, data: &Ratings) -> f64 {
        let squares: f64 = data
            .iter()
            .map(|r| {
                let biases = self.users[r.user as usize] + self.items[r.item as usize];
                let error = f64::from(r.value) - self.mean - f64::from(biases);
                f64::from(r.weight) * error * error
            })
            .sum();
        let both = self.users.iter().chain(&self.items);
        let penalty: f64 = both.map(|&bias| f64::from(bias) * f64::from(bias)).sum();
        squares + f64::from(self.damping) * penalty
    }
}

impl Fit for Bias {
    const NAME: &'static str = "bias";
    const CLASS: &'static str = "Bias";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Scorer<Biases>;
    const TRAITS: Traits = Traits {
        iterative: false,
        resumable: false,
        recommender: Some(RecommenderTraits { similar: false, ..RecommenderTraits::EXPLICIT }),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        fitting::check(self, data)?;
        fitting::check_weights(Self::NAME, data)?;
        let held_out =
            job.validation.map(|held_out| HeldOut::new(held_out, data.users(), data.items()));
        let held_out = held_out.transpose()?;
        let options = fitting::closed_form_options(self, started);
        let ((biases, at_rest), mut report) = iterate::direct(&options, job, || {
            let (mut biases, at_rest) = solve(data, f64::from(self.damping), &job.stop)?;
            biases.range = self.clip.then(|| range(data));
            let score = held_out.as_ref().map(|held_out| {
                held_out.rmse(biases.range, |user, item| biases.predict(user, item))
            });
            let objective = biases.objective(data);
            Ok(((biases, at_rest), objective, score))
        })?;
        if let Some(held_out) = job.validation {
            report.baselines = scores(data, held_out)?;
        }
        if !at_rest {
            report.notes.push(format!("the biases still moved after {ROUNDS} rounds"));
        }
        let model = Scorer::new(Catalogue::new(data, self.keep_history), biases);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// The scalars of the model, in the file's header.
#[derive(Serialize, Deserialize)]
struct Scalars {
    mean: f64,
    damping: f32,
    range: Option<(f32, f32)>,
}

impl ScoringRule for Biases {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let Self { mean, damping, range, .. } = *self;
        file.set("model", &Scalars { mean, damping, range });
        file.tensor("user_bias", &[self.users.len()], &self.users);
        file.tensor("item_bias", &[self.items.len()], &self.items);
    }

    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self> {
        let (n_users, n_items) = (catalogue.users.len(), catalogue.items.len());
        let Scalars { mean, damping, range } = file.get("model")?;
        let fits = range.is_none_or(|(low, high)| low <= high) && damping >= 0.0;
        if !fits {
            return Err(file.broken("header `model`: damping or range make no sense"));
        }
        let users = file.finite("user_bias", &[n_users])?;
        let items = file.finite("item_bias", &[n_items])?;
        Ok(Self { mean, users, items, damping, range })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("mean", format!("{:.4}", self.mean))]
    }

    fn score(&self, profile: Option<&UserProfile<'_>>, item: Option<usize>) -> f32 {
        let user = profile.map_or(0.0, |profile| self.of(profile));
        self.mean as f32 + user + item.map_or(0.0, |item| self.items[item])
    }

    fn scores(&self, profile: &UserProfile<'_>, scores: &mut [f32]) {
        let start = self.mean as f32 + self.of(profile);
        for (score, bias) in scores.iter_mut().zip(&self.items) {
            *score = start + bias;
        }
    }

    fn range(&self) -> Option<(f32, f32)> {
        self.range
    }

    /// The bias is a mean of the ratings' surprises: each adds its share of it.
    fn parts(&self, profile: &UserProfile<'_>, _: usize) -> Vec<f32> {
        let rated = || profile.items.iter().zip(&*profile.values).enumerate();
        let weights: f64 = rated().map(|(at, _)| f64::from(profile.weight(at))).sum();
        let count = weights + f64::from(self.damping);
        rated()
            .map(|(at, (&item, &value))| {
                let surprise = f64::from(value) - self.mean - f64::from(self.items[item as usize]);
                let part = f64::from(profile.weight(at)) * surprise / count;
                if count > 0.0 { part as f32 } else { 0.0 }
            })
            .collect()
    }
}
