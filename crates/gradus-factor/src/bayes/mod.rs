//! Bayesian matrix factorisation by Gibbs sampling.
//!
//! | file | what it holds |
//! |---|---|
//! | `solve.rs` | one iteration, and the state between iterations |
//! | `half.rs` | all rows of one side, given the other |
//! | `hyper.rs` | the Gaussian that the rows of one side come from |
//! | `implicit.rs` | what a row gains from the list of its ratings |
//! | `links.rs` | what a row gains from its features |
//! | `typical.rs` | where a row without ratings is |
//! | `samples.rs` | the draws that are kept |
//! | `diagnose.rs` | whether the chain has run long enough |
//! | `posterior/` | the fitted model: predicting, intervals, recommending, folding in, explaining |
//! | `dense.rs` | small matrices in double precision |

mod dense;
mod diagnose;
mod half;
mod hyper;
mod implicit;
mod links;
mod posterior;
mod samples;
mod solve;
mod typical;

pub use posterior::{Posterior, Spread};

use crate::als::Als;
use crate::fitting::{self, Iterative, Stopping};
use crate::latent::{Normalised, Normalize};
use crate::side::Strengths;
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::params::Params;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bayesian matrix factorisation by Gibbs sampling: the best predictions of ratings, each with an interval.
///
/// The model is `r = α + b_u + b_i + p_u·q_i + ε` with noise `ε ~ N(0, 1/τ)`. A rating of weight `w`
/// counts as `w` equal ratings: its likelihood is taken to the power `w`, in the rows and in `τ`
/// alike. A user's `(p_u, b_u)` comes from a Gaussian `N(μ, Λ⁻¹)` over `rank + 1` dimensions,
/// an item's `(q_i, b_i)` from another, and both Gaussians have a Normal–Wishart prior; so there is
/// no penalty to tune, and more factors do not overfit. The prior expects biases of the variances that
/// `bias` estimates and small factors, and weighs three tenths of the rows: where ratings are too thin to tell
/// users apart, factors stay small and predictions are near those of `bias`. With `implicit_side` the mean of a user's
/// Gaussian is `μ + |N(u)|^-½ Σ_{j ∈ N(u)} y_j` over the items `N(u)` that the user rated: what
/// a user chose to rate says something about the user, whatever the rating. Items gain from their users in
/// the same way.
///
/// With features of users or items (side information) the mean of a row's Gaussian is `μ + Wᵀ(x − x̄)` besides, and the link
/// matrix `W` is drawn with the rest; its strength has a prior of its own for each column of features, and a column
/// that says nothing is left out. Users and items without ratings are then known by their features.
///
/// A user or item without ratings is at the row that all ratings together would give (in each draw, given the other side), and what its
/// features add: not at `μ`, which with `implicit_side` is far from all rows that have a list.
///
/// One iteration draws, each given all the rest: both Gaussians, the `y`, `W`, every item, every user,
/// and the noise `τ`. The result is not one set of factors but many: a prediction is the mean over the
/// draws kept (with each draw of the items, every user at their mean given it), and their spread with
/// the noise gives an interval (`gradus predict --interval 0.9`). α is the mean of
/// the ratings; the difference of the level of all ratings from it is drawn with the means of the biases.
/// Ratings are standardised inside, so their scale does not matter. The objective in the report is
/// the training RMSE of the last draw, which does not fall for ever but settles at the noise; the
/// held-out score is that of the model as it would be kept now (in the burn-in: of the last draw).
/// The notes of the report say whether the chain has settled.
///
/// Cost of an iteration: that of an iteration of `als`, and three passes over the ratings for each
/// implicit side. The model holds `2.5 · keep_samples · (rank + 1)` bytes for each user and
/// `2 · keep_samples · (rank + 1)` for each item, twice that where users gain from their lists: 8 and
/// 13 KB at the defaults.
///
/// Use `als` where seconds or megabytes matter more than the last percent of error, and another model
/// for clicks, plays or purchases.
///
/// References: Salakhutdinov, Mnih: Bayesian probabilistic matrix factorization using Markov chain
/// Monte Carlo, 2008; Rendle, Zhang, Koren: On the difficulty of evaluating baselines, 2019 (how
/// good it is); Simm and others: Macau, 2017 (rows whose mean depends on features).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct Bayes {
    /// Number of latent factors of each user and item. More do not overfit; 32 is enough for a million ratings.
    #[schemars(range(min = 1, max = 1024))]
    pub rank: usize,

    /// Whether the list of what was rated counts besides the ratings themselves.
    pub implicit_side: ImplicitSide,

    /// Iterations in all, those of the burn-in included.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Iterations before draws count, until the chain has forgotten its start; at most half of `max_iter`.
    #[schemars(range(max = 1_000_000))]
    pub burn_in: usize,

    /// Draws that the model keeps, evenly spread over those that count. More make better means and a larger file.
    #[schemars(range(min = 1, max = 65_536))]
    pub keep_samples: usize,

    /// The number of iterations without a better error on held-out ratings after which the fit stops; 0 turns this off.
    /// An average rarely gets worse, so this is of use only to save time.
    #[schemars(range(max = 1_000_000))]
    pub patience: usize,

    /// Whether predictions and intervals are clipped to the range of the training ratings.
    pub clip: bool,

    /// Whether the model keeps the training ratings, to leave out what a user has seen and to explain.
    pub keep_history: bool,

    /// Seed of the random numbers.
    pub seed: u64,
}

/// The lists of ratings that count besides the ratings themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImplicitSide {
    /// No lists: plain Bayesian matrix factorisation.
    None,
    /// The list of a user's ratings adds to the user.
    Users,
    /// The list of an item's ratings adds to the item.
    Items,
    /// Both.
    #[default]
    Both,
}

impl ImplicitSide {
    /// Whether users gain, and whether items do.
    fn sides(self) -> (bool, bool) {
        (matches!(self, Self::Users | Self::Both), matches!(self, Self::Items | Self::Both))
    }
}

impl Default for Bayes {
    fn default() -> Self {
        Self {
            rank: 32,
            implicit_side: ImplicitSide::Both,
            max_iter: 500,
            burn_in: 80,
            keep_samples: 100,
            patience: 0,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Bayes {}

impl Bayes {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Bayes {
    /// Returns which columns of features are informative, by a short fit of `als`.
    fn strengths(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Strengths> {
        if !data.has_features() {
            return Ok(Strengths::default());
        }
        let input = Normalised::new(Normalize::None, data);
        let estimator = Als::new().seed(self.seed);
        crate::als::strengths(&estimator, (&input, None), job, Self::NAME)
    }
}

impl Iterative for Bayes {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, patience, seed, .. } = *self;
        Stopping { max_iter, tol: 0.0, patience, restarts: 1, seed }
    }
}

impl Fit for Bayes {
    const NAME: &'static str = "bayes";
    const CLASS: &'static str = "Bayes";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Posterior;
    const TRAITS: Traits = Traits {
        averages: true,
        recommender: Some(RecommenderTraits { features: true, ..RecommenderTraits::EXPLICIT }),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = fitting::begin(self, data)?;
        let mut choices = Vec::new();
        let strengths = self.strengths(data, job)?;
        strengths.tell(true, data, &mut choices);
        let solver = solve::Solver::new(self, data, job.validation, &strengths)?;
        let (state, mut report) = fitting::run(self, &solver, (started, choices), data, job)?;
        let counted = &state.scalars[solver.burn_in().min(state.scalars.len())..];
        report.notes.extend(diagnose::notes(counted));
        fitting::note_fallbacks(&mut report, "row draws", state.fallbacks);
        let model = Posterior::new(&solver, state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod cold_tests;
#[cfg(test)]
mod tests;
