//! Bayesian personalised ranking: learns an order from what users chose.

mod solve;

use crate::choice::{self, Climb, Part};
use crate::fitting::{self, Iterative, Stopping};
use crate::latent::LatentFactors;
use crate::ranking::Over;
use crate::tuning;
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_core::progress::Event;
use gradus_core::report::Choice;
use gradus_data::Ratings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

pub use crate::sgd::StepSchedule;

/// How the other item of a pair is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Negatives {
    /// All items that the user does not have are equally likely.
    #[default]
    Uniform,
    /// The more people have an item, the likelier: in proportion to their number to the power of `exponent`. Harder pairs, and less weight on popularity in the result.
    Popularity,
}

/// Bayesian personalised ranking: recommends items from clicks, plays or purchases.
///
/// The model scores an item for a user by `x̂ = β_i + γ_u·γ_i` and learns to rank what a user has
/// above what they do not have. The fit minimises, over each pair (user u, item i) that is there
/// and an item j drawn from those u does not have, the expectation of
///
/// `−w ln σ(x̂_ui − x̂_uj) + w λ/2 (‖γ_u‖² + ‖γ_i‖² + ‖γ_j‖² + β_i² + β_j²)`
///
/// where `σ(x) = 1/(1 + e⁻ˣ)`. Values say only that there was interest: they must not be negative,
/// a value of 0 counts as not there, and by how much it is above 0 does not matter. Sample weights
/// `w` do.
///
/// An epoch takes one step for each pair that is there, with a fresh j. Users and items are assigned
/// at random to groups, and blocks that share no user and no item run in parallel; j is drawn from
/// the group of i. The items are assigned anew in every epoch, into groups of equal size, so over the
/// epochs every j the user does not have is equally likely, as if it were drawn from all items.
/// The result does not depend on the number of threads. The objective reported is the mean loss
/// of the epoch's pairs, each just before its step, without the penalty.
///
/// With held-out data the fit is evaluated by NDCG@20: for each user with held-out items all items but
/// those of the training are ranked.
///
/// Cost of an epoch: `16 n rank` operations for `n` pairs. Confidence-weighted least squares
/// (`ials`) usually ranks better; this model needs less time for each pass over large data and
/// optimises the order directly. Use `als` or `sgd` for ratings.
///
/// Reference: Rendle, Freudenthaler, Gantner, Schmidt-Thieme: BPR: Bayesian personalized ranking
/// from implicit feedback, 2009.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Bpr {
    /// Number of latent factors of each user and item.
    #[schemars(range(min = 1, max = 4096))]
    pub rank: usize,

    /// Strength λ of the penalty on factors and biases. Left out, it is chosen by how shorter fits rank
    /// held-out items, in steps of a factor of 1.5 from 0.02.
    #[schemars(range(min = 0.0))]
    pub regularization: Option<f32>,

    /// Whether items have biases.
    pub biases: bool,

    /// How the other item of a pair is drawn.
    pub negatives: Negatives,

    /// The power to which popularity is taken under `negatives = popularity`.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub exponent: f32,

    /// Length η of a step. 0.1 instead of 0.05 ranks about as well on Gowalla.
    #[schemars(range(min = 1e-9))]
    pub learning_rate: f32,

    /// How the length of a step changes as the fit goes on. With steps of one length the last random pairs leave their
    /// noise in the factors: where users are few, the ranking was a tenth worse.
    pub schedule: StepSchedule,

    /// Largest number of epochs (for each random start). On Gowalla the ranking is still getting better after 40.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Stop when an epoch lowers the objective by less than this share of it; 0 turns this off. The
    /// objective is of random pairs and wavers.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// The number of epochs without a better score on held-out data after which the fit stops; 0 turns this off.
    #[schemars(range(max = 1_000_000))]
    pub patience: usize,

    /// Number of random starts; the best is kept, by held-out score if there is any, else by objective.
    #[schemars(range(min = 1, max = 1000))]
    pub restarts: usize,

    /// Whether the model keeps the training data, to leave out what a user has and to explain.
    pub keep_history: bool,

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Bpr {
    fn default() -> Self {
        Self {
            rank: 64,
            regularization: None,
            biases: true,
            negatives: Negatives::Uniform,
            exponent: 0.5,
            learning_rate: 0.05,
            schedule: StepSchedule::Cosine,
            max_iter: 100,
            tol: 0.0,
            patience: 10,
            restarts: 1,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Bpr {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[("regularization", self.regularization)])
    }
}

/// The strength that is tried first, the ratio of one to the next, and between what they lie.
const FIRST: f32 = 0.02;
const RATIO: f64 = 1.5;
const RANGE: (f64, f64) = (1e-4, 1.0);
/// A trial takes about this many steps, and at least this many epochs.
const TRIAL_STEPS: usize = 5_000_000;
const LEAST_EPOCHS: usize = 20;

impl Bpr {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Iterative for Bpr {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, patience, restarts, seed, .. } = *self;
        Stopping { max_iter, tol, patience, restarts, seed }
    }
}

impl Bpr {
    /// The strength that is given, or the one that ranks held-out items best, and what the report says of it.
    fn choose(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<(f32, Vec<Choice>)> {
        if let Some(regularization) = self.regularization {
            return Ok((regularization, Vec::new()));
        }
        if let Some(checkpoint) = &job.checkpoint {
            let choices = checkpoint.chosen()?;
            let found = choices.iter().find(|choice| choice.parameter == "regularization");
            if let Some(value) = found.map(|choice| choice.value as f32) {
                // A file can hold anything; what it says is checked like what a user says.
                self.clone().regularization(value).check()?;
                return Ok((value, choices));
            }
        }
        let sample = tuning::sample(data, self.seed)?;
        let Some(part) = Part::new(sample.as_ref().unwrap_or(data)) else {
            return Ok((FIRST, vec![choice::too_few("regularization", f64::from(FIRST))]));
        };
        let epochs = (TRIAL_STEPS / part.train.len().max(1)).max(LEAST_EPOCHS).min(self.max_iter);
        let trial = self.clone().max_iter(epochs).restarts(1);
        let mut tried = 0;
        let climb = Climb::new(f64::from(FIRST), RATIO, RANGE, |value| {
            tried += 1;
            let what = format!("{value:.4}");
            job.observer.notice(&Event::Choosing { model: Self::NAME, trial: tried, what: &what });
            let penalty = value as f32;
            let solver = solve::Solver::new((&trial, penalty), &part.train, None, None)?;
            let unwatched = Job::default().stop(job.stop.clone());
            let options = fitting::loop_options(&trial, Instant::now(), &part.train, &unwatched);
            let (state, _) = iterate::run(&solver, &options, &unwatched)?;
            Ok(solver.ndcg(&part.held_out, Over::All, &state))
        })?;
        Ok((climb.best as f32, vec![climb.choice("regularization")]))
    }
}

impl Fit for Bpr {
    const NAME: &'static str = "bpr";
    const CLASS: &'static str = "Bpr";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits {
        recommender: Some(RecommenderTraits {
            exact_fold_in: false,
            ..RecommenderTraits::IMPLICIT
        }),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = fitting::begin(self, data)?;
        solve::check_values(data)?;
        let (penalty, choices) = self.choose(data, job)?;
        let solver = solve::Solver::new((self, penalty), data, job.validation, job.warm_model())?;
        let options = fitting::loop_options(self, started, data, job).chosen(choices);
        let (state, mut report) = iterate::run(&solver, &options, job)?;
        report.compare_with(solver.baselines());
        report.notes.extend(solver.note());
        if state.right > 0.0 {
            report.notes.push(format!(
                "{:.1} % of the last epoch's pairs were in the right order before their step",
                100.0 * state.right
            ));
        }
        let model = solver.into_model(state);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
