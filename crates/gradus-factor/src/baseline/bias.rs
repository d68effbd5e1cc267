//! The mean with a bias for each user and item.

use super::mean::mean_of;
use super::{Components, begin, fitted};
use crate::catalogue::{Catalogue, UserProfile};
use crate::fitting::{self, interrupted};
use crate::latent::range;
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

/// Largest number of rounds of alternation; a handful is enough except for data in long chains.
const ROUNDS: usize = 1000;
/// Biases have converged when they move by less than this share of the range of the ratings.
const STILL: f64 = 1e-7;
/// The same for biases that a fit starts from, which moves them further than this.
const ROUGH: f64 = 0.1;

/// The mean with biases: who rates high, what is rated high.
///
/// `r̂ = α + β_u + β_i`, where the mean and the biases minimise
///
/// `Σ w (r − α − β_u − β_i)² + d_u Σ_u β_u² + d_i Σ_i β_i²`.
///
/// Each bias is a damped mean of what is left to it, `β_u = Σ w (r − α − β_i) / (Σ w + d_u)`;
/// the two sides are solved in turns until nothing moves. A new user has their bias in closed
/// form. Everyone is recommended the same items, less what they have seen.
///
/// The damping of each side is the ratio `σ² / Var β` of the variance of the noise to that of its biases,
/// estimated from the data by EM (empirical Bayes); the report says what it came to. So it does not
/// depend on the scale of the ratings. `damping` sets both by hand.
///
/// Cost: two passes over the ratings a round, some ten rounds, and as many again for the damping. It is
/// what a latent factor model has to beat; use `als` for predictions that differ between users by more than a constant.
///
/// References: Koren: Factor in the neighbors, 2010, section 2.1 (baseline estimates); Searle, Casella,
/// McCulloch: Variance components, 1992.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Bias {
    /// Number of ratings with a residual of zero that are added to every user and item, so that few
    /// ratings make a small bias. Left out, it is estimated from the data, for each side.
    #[schemars(range(min = 0.0))]
    pub damping: Option<f32>,

    /// Whether predictions are clipped to the range of the training ratings.
    pub clip: bool,

    /// Whether the model keeps the training ratings, to leave out what a user has seen and to explain.
    pub keep_history: bool,
}

impl Default for Bias {
    fn default() -> Self {
        Self { damping: None, clip: true, keep_history: true }
    }
}

impl Params for Bias {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[("damping", self.damping)])
    }
}

impl Bias {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The mean and the biases of users and items.
#[derive(Clone, Debug, PartialEq)]
pub struct Biases {
    /// The constant of all predictions.
    pub mean: f64,
    /// The bias of each user.
    pub users: Vec<f32>,
    /// The bias of each item.
    pub items: Vec<f32>,
    /// The damping of users and of items.
    damping: [f32; 2],
    range: Option<(f32, f32)>,
}

/// Fits `r̂ = α + β_u + β_i` by alternating damped means; says whether they converged.
pub(crate) fn solve(data: &Ratings, damping: [f64; 2], stop: &Stop) -> Result<(Biases, bool)> {
    solve_to(STILL, data, damping, stop)
}

/// The same, roughly: for a fit that only starts there, in a few passes over the ratings.
pub(crate) fn solve_roughly(data: &Ratings, damping: [f64; 2]) -> Result<Biases> {
    Ok(solve_to(ROUGH, data, damping, &Stop::new())?.0)
}

/// The biases, when they move by less than a share of the range of the ratings.
fn solve_to(share: f64, data: &Ratings, damping: [f64; 2], stop: &Stop) -> Result<(Biases, bool)> {
    let mut mean = mean_of(data);
    let (low, high) = range(data);
    let still = (share * (f64::from(high) - f64::from(low))).max(f64::MIN_POSITIVE);
    let mut of_users = Side::new(data.by_user(), data.weights_by_user(), mean, damping[0]);
    let mut of_items = Side::new(data.by_item(), data.weights_by_item(), mean, damping[1]);
    let total = of_users.total();
    let [filled_users, filled_items] = [of_users.filled(), of_items.filled()];
    let mut users = vec![0.0; data.n_users()];
    let mut items = vec![0.0; data.n_items()];
    let mut at_rest = false;
    for _ in 0..ROUNDS {
        if stop.requested() {
            return Err(interrupted("bias"));
        }
        // What users have more and items or the mean less shows in no prediction, and alternation alone
        // would take very long to settle it. Biases cost least where those of a side add up to 0: the
        // mean takes the rest.
        let centred = |side: &Side<'_>, biases: &mut [f64], filled: f64| {
            let shift = sum(biases) / filled;
            for (row, bias) in biases.iter_mut().enumerate() {
                if side.weight(row) > 0.0 {
                    *bias -= shift;
                }
            }
            shift
        };
        let before = mean;
        if damping[0] > 0.0 && damping[1] > 0.0 {
            mean += centred(&of_users, &mut users, filled_users);
            mean += centred(&of_items, &mut items, filled_items);
        }
        (of_users.mean, of_items.mean) = (mean, mean);
        items = of_items.solve(&users);
        let (new, errors, _) = of_users.solve_with_errors(&items);
        let moved = users.iter().zip(&new).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        users = new;
        let drift = errors / total;
        let settled = moved.max((mean - before).abs()).max(drift.abs()) <= still;
        if settled {
            at_rest = true;
            break;
        }
        mean += drift;
        (of_users.mean, of_items.mean) = (mean, mean);
    }
    // The users once more from the items as the model has them: what folding in gives.
    let items: Vec<f32> = items.iter().map(|&bias| bias as f32).collect();
    let users = of_users.solve(&items).iter().map(|&bias| bias as f32).collect();
    let damping = damping.map(|damping| damping as f32);
    Ok((Biases { mean: of_users.mean, users, items, damping, range: None }, at_rest))
}

pub(super) fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// One side of the data.
pub(super) struct Side<'a> {
    rows: &'a Csr,
    weights: Option<&'a [f32]>,
    mean: f64,
    pub(super) damping: f64,
}

impl<'a> Side<'a> {
    pub(super) fn new(rows: &'a Csr, weights: Option<&'a [f32]>, mean: f64, damping: f64) -> Self {
        Self { rows, weights, mean, damping }
    }
}

impl Side<'_> {
    /// The biases of this side, given those of the other side.
    pub(super) fn solve<T: Copy + Into<f64> + Sync>(&self, others: &[T]) -> Vec<f64> {
        parallel::map_below(self.rows.n_rows(), 64, |row| {
            let (indices, values) = self.rows.row(row);
            let weights = self.weights.map(|weights| &weights[self.rows.range(row)]);
            one_bias(indices, values, weights, self.mean, self.damping, others)
        })
    }

    /// The biases of this side, given those of the other side, with the sums `Σ w e` and `Σ w e²` over the
    /// errors of all ratings then.
    pub(super) fn solve_with_errors(&self, others: &[f64]) -> (Vec<f64>, f64, f64) {
        let each = parallel::map_below(self.rows.n_rows(), 64, |row| {
            let (indices, values) = self.rows.row(row);
            let weights = self.weights.map(|weights| &weights[self.rows.range(row)]);
            let bias = one_bias(indices, values, weights, self.mean, self.damping, others);
            let known = self.mean + bias;
            let each = indices.iter().zip(values).enumerate();
            let (sum, squares) = each.fold((0.0, 0.0), |(sum, squares), (at, (&index, &value))| {
                let weight = weights.map_or(1.0, |weights| f64::from(weights[at]));
                let error = f64::from(value) - known - others[index as usize];
                (sum + weight * error, squares + weight * error * error)
            });
            (bias, sum, squares)
        });
        let (sum, squares) = each.iter().fold((0.0, 0.0), |a, b| (a.0 + b.1, a.1 + b.2));
        (each.into_iter().map(|row| row.0).collect(), sum, squares)
    }

    /// The degrees of freedom that the biases of this side take, the other side being known.
    pub(super) fn freedom(&self) -> f64 {
        let each = parallel::map_below(self.rows.n_rows(), 256, |row| {
            let weight = self.weight(row);
            if weight > 0.0 { weight / (weight + self.damping) } else { 0.0 }
        });
        each.iter().sum()
    }

    /// The sum of all weights.
    fn total(&self) -> f64 {
        (0..self.rows.n_rows()).map(|row| self.weight(row)).sum()
    }

    pub(super) fn weight(&self, row: usize) -> f64 {
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
                let damping = f64::from(self.damping[0]);
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
        let penalty = |damping: f32, biases: &[f32]| {
            let norm: f64 = biases.iter().map(|&bias| f64::from(bias) * f64::from(bias)).sum();
            f64::from(damping) * norm
        };
        squares + penalty(self.damping[0], &self.users) + penalty(self.damping[1], &self.items)
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
        baseline: true,
        recommender: Some(RecommenderTraits { similar: false, ..RecommenderTraits::EXPLICIT }),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let (options, held_out) = begin(self, data, job)?;
        let ((biases, at_rest), mut report) = iterate::direct(&options, job, || {
            let damping = match self.damping {
                Some(damping) => [f64::from(damping); 2],
                None => Components::estimate(data, true, &job.stop).damping,
            };
            let (mut biases, at_rest) = solve(data, damping, &job.stop)?;
            biases.range = self.clip.then(|| range(data));
            let score = held_out.as_ref().map(|held_out| {
                held_out.rmse(biases.range, |user, item| biases.predict(user, item))
            });
            let objective = biases.objective(data);
            Ok(((biases, at_rest), objective, score))
        })?;
        if !at_rest {
            report.notes.push(format!("the biases still moved after {ROUNDS} rounds"));
        }
        fitted(self, (data, job), self.keep_history, biases, report)
    }
}

/// The scalars of the model, in the file's header.
#[derive(Serialize, Deserialize)]
struct Scalars {
    mean: f64,
    /// The damping of users; of items too where there is no other.
    damping: f32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item_damping: Option<f32>,
    range: Option<(f32, f32)>,
}

impl ScoringRule for Biases {
    type Workspace = ();

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let Self { mean, damping: [damping, of_items], range, .. } = *self;
        file.set("model", &Scalars { mean, damping, item_damping: Some(of_items), range });
        file.tensor("user_bias", &[self.users.len()], &self.users);
        file.tensor("item_bias", &[self.items.len()], &self.items);
    }

    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self> {
        let (n_users, n_items) = (catalogue.users.len(), catalogue.items.len());
        let Scalars { mean, damping, item_damping, range } = file.get("model")?;
        let damping = [damping, item_damping.unwrap_or(damping)];
        let fits = range.is_none_or(|(low, high)| low <= high) && damping.iter().all(|&d| d >= 0.0);
        if !fits {
            return Err(file.broken("header `model`: damping or range make no sense"));
        }
        let users = file.finite("user_bias", &[n_users])?;
        let items = file.finite("item_bias", &[n_items])?;
        Ok(Self { mean, users, items, damping, range })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let [users, items] = self.damping;
        vec![
            ("mean", format!("{:.4}", self.mean)),
            ("damping", format!("{users:.2} for users, {items:.2} for items")),
        ]
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
        let count = weights + f64::from(self.damping[0]);
        rated()
            .map(|(at, (&item, &value))| {
                let surprise = f64::from(value) - self.mean - f64::from(self.items[item as usize]);
                let part = f64::from(profile.weight(at)) * surprise / count;
                if count > 0.0 { part as f32 } else { 0.0 }
            })
            .collect()
    }
}
