//! The choice of a model for given data: a race within a time budget, and a leaderboard whose intervals hold.
//!
//! | file | what it does |
//! |---|---|
//! | `metric.rs` | what models are compared by, which of them take part, the losses of each |
//! | `parts.rs` | cuts the data: to learn from, to race by, to test on |
//! | `clock.rs` | the budget, and what a fit takes |
//! | `race.rs` | which model is fitted when, and on how much |
//! | `result.rs` | the leaderboard |
//!
//! **Parts.** A share of the data (20 % by default) is the test part. It is looked at once, by the models
//! that were fitted on all the rest; the race, which decides what these are, has a validation
//! part of its own (an eighth of the rest). So nothing was chosen by the test part but the winner,
//! and [the intervals](gradus_metrics::bounds::joint_intervals) hold for all models that were tested
//! at once, whichever is best.
//!
//! **Race.** With a budget, models are first fitted on a small share of the users (or samples): a power
//! of a third that leaves 20,000 units. If their times say that all of them can be fitted on everything,
//! that is done next; else all go on to three times as much, if they can in the time of the race, or the
//! better half (three at least) does. Within a stage each model has a slice of the time first, and slow
//! ones have larger slices in turn: no slow model keeps a quick one from its fit. Time that is left when
//! all are tested goes to those that were out of the race, the better ones first. A fit
//! whose time is over is stopped and takes no further part: what it has then is not the model that
//! its defaults mean. [Baselines](gradus_core::estimator::Traits::baseline) are no part of the race: they are
//! fitted on everything first, whatever the budget.
//!
//! **Clock.** With a budget the result depends on how fast the machine is, which is why every fit is
//! recorded. Without one there is no race: all models are fitted on everything, and all but the
//! times and the memory is a function of data, models and seed, on any number of threads.

pub(crate) mod clock;
mod metric;
mod parts;
mod race;
mod result;

pub use metric::{Metric, PLACES, Task};
pub use result::{Comparison, FitOutcome, FitRecord, FitStage, PartSizes, Ranked, Unranked};

use crate::search::Dependence;
use gradus_base::Result;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{AnyFitted, Estimator};
use gradus_core::progress::Stop;
use std::time::Duration;

/// How often the intervals hold.
pub const LEVEL: f64 = 0.95;

/// A comparison of models.
pub struct Compare<'a> {
    /// The models, each with its defaults.
    pub models: Vec<&'a dyn Estimator>,
    /// The metric of the comparison.
    pub metric: Metric,
    /// How much of the data is the test part, in the measure of the split.
    pub holdout: f64,
    /// The hold-out scheme of the kind of data.
    pub split: String,
    /// The groups or times of the samples; with them the scheme does not matter.
    pub rows: Dependence,
    /// Seed of the split and of the fits.
    pub seed: u64,
    /// The time budget, the fit of the winner included; no limit, and no race, if left out.
    pub budget: Option<Duration>,
    /// Whether the winner is fitted on all the data, if time allows.
    pub refit: bool,
    /// A flag that ends the comparison; what is complete by then is returned.
    pub stop: Stop,
}

/// The next fit of a comparison, for progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaceStep<'a> {
    /// The model that is fitted.
    pub model: &'a str,
    /// The purpose of the fit.
    pub stage: FitStage,
    /// The share of the training data that the model is fitted on.
    pub share: f64,
    /// The number of the fit within its stage, from 1, and the number of fits of the stage.
    pub of: (usize, usize),
}

/// The leaderboard, and the winner.
pub struct Compared {
    /// The leaderboard.
    pub comparison: Comparison,
    /// The winner: fitted on all the data, or on the training part
    /// ([`Comparison::best_on_all_data`] says which). Nothing if no model was tested.
    pub best: Option<AnyFitted>,
}

impl Compare<'_> {
    /// Compares the models on the data. `observe` is called before each fit.
    ///
    /// # Errors
    /// If the data cannot be cut, or not one model could be tested (the message has the reasons).
    pub fn run(
        &self,
        data: &dyn Dataset,
        observe: &(dyn Fn(&RaceStep<'_>) + Sync),
    ) -> Result<Compared> {
        race::run(self, data, observe)
    }
}
