//! Sparse linear weights between items: one non-negative elastic net an item.

mod add;
mod solve;
#[cfg(test)]
mod tests;

use crate::catalogue::{Catalogue, UserProfile};
use crate::choice::{self, Climb, Part, Subset};
use crate::fitting::Interest;
use crate::interest::{self, Strength};
use crate::scorer::{Change, Scorer, ScoringRule, not_kept, read_item_matrix};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_core::recommend::{Scored, TopN};
use gradus_core::report::Choice;
use gradus_data::{Csr, Ratings};
use gradus_file::{Reader, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use solve::{Penalties, Problem, Settings};

/// Sparse linear weights between items (SLIM): recommends what goes with the user's items.
///
/// The score of item `j` for a user with strengths `x` is `x·b_j`, and the weights of each item minimise
///
/// `½ ‖x_j − X b_j‖² + λ₁ ‖b_j‖₁ + ½ λ₂ ‖b_j‖²` with `b_j ≥ 0` and `B_jj = 0`,
///
/// a non-negative elastic net on the columns of all other items. Few weights are left, so that the model is
/// small where that of `ease` has a weight for every pair, a list is quick, and each recommendation is
/// explained by a few of the user's items. Values become strengths as `strength` says, and both penalties
/// are in units of their mean square.
///
/// Solved by coordinate descent on the Gram matrix `XᵀX`, of which the pairs of items that share a user are
/// kept, with a working set that grows until no other weight would rise. Since nothing is negative, a weight
/// can only be above 0 where the two items share more than `λ₁`: all others are never looked at. Items are
/// solved in parallel; the result does not depend on the number of threads. Cost: `Σ_u n_u²` for users with
/// `n_u` items, then for each item some passes over the pairs of those in its working set. Memory: 8 bytes for
/// each pair of items that share a user; more than `max_pairs` are refused.
///
/// Penalties that are left out are chosen, `λ₂` first: a fifth of the items of up to 2,000 users is held out and
/// ranked by the weights that the rest gives, for the 2,048 most popular items. The report says what was
/// chosen. Held-out data is scored by NDCG@20 as of `ials`. The objective in the report is the sum over the
/// items.
///
/// `update` scores users from their new items at once. A new item gets the weights into it that a fit to all interactions
/// would give it with the same penalties, and adds to known items what one step of coordinate descent gives; weights
/// between known items stay (with `items`, those into items with new interactions are solved again).
///
/// `ease` mostly ranks better where items are few; use `spectral` or `ials` where users have very many items.
///
/// Reference: Ning, Karypis: SLIM: sparse linear methods for top-N recommender systems, 2011.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Slim {
    /// The penalty λ₂ on the squares of the weights, in units of the mean square of the strengths. Left
    /// out, it is chosen by held-out items.
    #[schemars(range(min = 0.000001))]
    pub regularization: Option<f32>,

    /// The penalty λ₁ on the sum of the weights, in the same units: of interactions that are there or not,
    /// the number of users that two items must share to count at all. More leaves fewer weights. Left out,
    /// it is chosen by held-out items.
    #[schemars(range(min = 0.0))]
    pub sparsity: Option<f32>,

    /// The strength of an interaction as a function of its value.
    pub strength: Strength,

    /// The largest number of pairs of items that share a user, each of which takes 8 bytes during the fit.
    /// It is compared with `Σ_u n_u²` for users with `n_u` items, or the square of the number of items if
    /// that is less.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub max_pairs: u64,

    /// Coordinate descent on an item ends when no weight changes by more than this.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// The largest number of passes over the working set of an item, each time it has grown.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,
}

impl Default for Slim {
    fn default() -> Self {
        Self {
            regularization: None,
            sparsity: None,
            strength: Strength::Presence,
            max_pairs: 1_000_000_000,
            tol: 1e-4,
            max_iter: 100,
        }
    }
}

impl Params for Slim {}

/// The penalties where there are too few data to choose them, and where the climbs begin.
const REGULARIZATION: f64 = 100.0;
const SPARSITY: f64 = 1.0;
/// The penalties that can be chosen, and the steps from one to the next.
const REGULARIZATIONS: (f64, f64) = (0.5, 1e5);
const SPARSITIES: (f64, f64) = (0.3, 1e4);
const RATIO: f64 = 3.0;
/// The penalties are chosen on this many items, the most popular, and with weights that have settled to so much.
const SUBSET: usize = 2048;
const TRIAL_TOL: f64 = 1e-3;

impl Slim {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn check_size(&self, data: &Ratings) -> Result<()> {
        let of_user = |user: usize| (data.by_user().range(user).len() as u64).pow(2);
        let shared: u64 = (0..data.n_users()).map(of_user).sum();
        let pairs = shared.min((data.n_items() as u64).pow(2));
        if pairs <= self.max_pairs {
            return Ok(());
        }
        Err(Error::data(format!(
            "slim: up to {pairs} pairs of items share a user, more than option `max_pairs` allows, {}: the fit \
             would take {:.1} GB; raise it if there is as much, or take `spectral` or `ials`",
            self.max_pairs,
            8.0 * pairs as f64 / 1e9
        )))
    }

    /// The penalties that rank held-out items best, in units of the strengths, and what the report says of them.
    fn choose(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<(f64, f64, Vec<Choice>)> {
        let given = (self.regularization.map(f64::from), self.sparsity.map(f64::from));
        if let (Some(l2), Some(l1)) = given {
            return Ok((l2, l1, Vec::new()));
        }
        let (mut l2, mut l1) = (given.0.unwrap_or(REGULARIZATION), given.1.unwrap_or(SPARSITY));
        let part = Subset::new(data, SUBSET).and_then(|subset| Part::new(&subset.data));
        let Some(part) = part else {
            let defaults = [("regularization", given.0, l2), ("sparsity", given.1, l1)];
            let left_out = defaults.into_iter().filter(|(_, given, _)| given.is_none());
            let choices = left_out.map(|(name, _, value)| choice::too_few(name, value)).collect();
            return Ok((l2, l1, choices));
        };
        let quick = Self { tol: self.tol.max(TRIAL_TOL), ..self.clone() };
        let problem = Problem::new(&quick, &part.train)?;
        let catalogue = Catalogue::new(&part.train, true);
        let score = |l2: f64, l1: f64| -> Result<f64> {
            let (rule, _) = problem.solve(&Penalties { l1, l2 }, job, false)?;
            Ok(part.held_out.ndcg(|user, scores| rule.scores(&catalogue.of_user(user), scores)))
        };
        let mut choices = Vec::new();
        if given.0.is_none() {
            let climb = Climb::new(l2, RATIO, REGULARIZATIONS, |l2| score(l2, l1))?;
            choices.push(climb.choice("regularization"));
            l2 = climb.best;
        }
        if given.1.is_none() {
            let climb = Climb::new(l1, RATIO, SPARSITIES, |l1| score(l2, l1))?;
            choices.push(climb.choice("sparsity"));
            l1 = climb.best;
        }
        Ok((l2, l1, choices))
    }
}

impl Fit for Slim {
    const NAME: &'static str = "slim";
    const CLASS: &'static str = "Slim";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Scorer<SparseWeights>;
    const TRAITS: Traits = Traits {
        iterative: false,
        resumable: false,
        recommender: Some(RecommenderTraits::IMPLICIT),
        ..Traits::UPDATING_RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let fit = Interest::begin(self, data, job)?;
        interest::mean_square(Self::NAME, &self.strength.by_user(data))?;
        self.check_size(data)?;
        let (mut choices, mut notes) = (Vec::new(), Vec::new());
        let (rule, mut report) = iterate::direct(&fit.options, job, || {
            let (l2, l1, chosen) = self.choose(data, job)?;
            choices = chosen;
            let problem = Problem::new(self, data)?;
            let (rule, solved) = problem.solve(&Penalties { l1, l2 }, job, true)?;
            if solved.unfinished > 0 {
                notes.push(format!(
                    "{} of {} items reached max_iter {} before their weights settled to {}",
                    solved.unfinished,
                    data.n_items(),
                    self.max_iter,
                    self.tol
                ));
            }
            let score = fit.score(&rule);
            Ok((rule, solved.objective, score))
        })?;
        report.chosen = choices;
        report.notes.extend(notes);
        Ok(fit.fitted(self, data, rule, report))
    }
}

/// The weights above 0 between items.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseWeights {
    /// Row `j` holds the items that add to the score of `j`, and how much.
    matrix: Csr,
    /// The transpose: row `i` holds the items that `i` adds to.
    reach: Csr,
    /// The strength of an interaction as a function of its value.
    strength: Strength,
    /// How the weights were solved, by which new items are added; older files have nothing of it.
    settings: Option<Settings>,
}

impl SparseWeights {
    fn new(matrix: Csr, strength: Strength, settings: Option<Settings>) -> Self {
        Self { reach: matrix.transpose(), matrix, strength, settings }
    }

    /// Returns the weight from item `from` to item `to`: the change of the score of `to` for a strength of 1.
    pub fn weight(&self, from: usize, to: usize) -> f32 {
        let (items, weights) = self.matrix.row(to);
        items.binary_search(&(from as u32)).map_or(0.0, |at| weights[at])
    }
}

impl ScoringRule for SparseWeights {
    type Workspace = ();

    const FROM_HISTORY: bool = true;
    const UPDATES: bool = true;

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("strength", &self.strength);
        if let Some(settings) = &self.settings {
            file.set("settings", settings);
        }
        self.matrix.write("item_weights", file);
    }

    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self> {
        let matrix = read_item_matrix("item_weights", catalogue, file)?;
        let settings: Option<Settings> = file.get("settings")?;
        if settings.is_some_and(|settings| !settings.is_sound()) {
            return Err(
                file.broken("header `settings`: penalties that are not finite and 0 or more")
            );
        }
        Ok(Self::new(matrix, file.get("strength")?, settings))
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("item weights", self.matrix.nnz().to_string())]
    }

    fn score(&self, profile: Option<&UserProfile<'_>>, item: Option<usize>) -> f32 {
        match (profile, item) {
            (Some(profile), Some(item)) => self.parts(profile, item).iter().sum(),
            _ => 0.0,
        }
    }

    fn scores(&self, profile: &UserProfile<'_>, scores: &mut [f32]) {
        scores.fill(0.0);
        for (at, (&item, &value)) in profile.items.iter().zip(&*profile.values).enumerate() {
            let strength = self.strength.of(value, profile.weight(at));
            let (reached, weights) = self.reach.row(item as usize);
            for (&other, &weight) in reached.iter().zip(weights) {
                scores[other as usize] += strength * weight;
            }
        }
    }

    fn parts(&self, profile: &UserProfile<'_>, item: usize) -> Vec<f32> {
        let strengths = self.strength.of_profile(profile);
        let rated = profile.items.iter().zip(strengths);
        rated.map(|(&from, strength)| strength * self.weight(from as usize, item)).collect()
    }

    /// The weights into an item that is solved are those of a new fit with the same penalties. What a new item adds to a
    /// known one is one step of coordinate descent on that one, all its other weights held fixed.
    fn update(&mut self, change: &Change<'_>) -> Result<usize> {
        if change.solve.is_empty() {
            return Ok(0);
        }
        let settings = self.settings.ok_or_else(|| not_kept("the penalties"))?;
        *self = self.added(change, &settings)?;
        Ok(change.solve.len())
    }

    /// Returns the items with the largest cosine of two columns of `I + B`: what each item stands for and is
    /// recommended by.
    fn similar(&self, item: usize, n: usize) -> Result<Vec<Scored>> {
        let mut sums = vec![0.0f64; self.matrix.n_rows()];
        let mut add = |part: usize, by: f64| {
            sums[part] += by;
            let (reached, weights) = self.reach.row(part);
            for (&other, &weight) in reached.iter().zip(weights) {
                sums[other as usize] += by * f64::from(weight);
            }
        };
        let (items, weights) = self.matrix.row(item);
        add(item, 1.0);
        for (&part, &weight) in items.iter().zip(weights) {
            add(part as usize, f64::from(weight));
        }
        let norm = |item: usize| -> f64 {
            let weights = self.matrix.row(item).1.iter();
            (1.0 + weights.map(|&w| f64::from(w).powi(2)).sum::<f64>()).sqrt()
        };
        let (mut best, own) = (TopN::new(n), norm(item));
        for (other, &sum) in sums.iter().enumerate() {
            if other != item {
                let cosine = (sum / (own * norm(other))).clamp(-1.0, 1.0);
                best.push(Scored { item: other as u32, score: cosine as f32 });
            }
        }
        Ok(best.into_sorted())
    }
}
