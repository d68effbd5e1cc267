//! The leaderboard.

use super::metric::{Losses, Metric};
use super::{Compare, LEVEL};
use gradus_base::{Error, Result};
use gradus_metrics::bounds::{
    EvaluationPoints, Interval, JointDifference, JointScores, joint_intervals,
};
use serde::Serialize;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The metric of the score.
    pub metric: Metric,
    /// The name of the metric for people.
    pub title: String,
    /// Whether a larger score is better.
    pub higher_is_better: bool,
    /// How often all intervals of scores hold at once, and all intervals of differences.
    pub level: f64,
    /// The models that were tested, best first; of equal ones the first of the models given.
    pub rows: Vec<Ranked>,
    /// The models that were not, and why.
    pub others: Vec<Unranked>,
    /// The best on the test part.
    pub winner: Option<String>,
    /// The models that the test part does not tell apart from the winner; the winner is the first.
    pub not_distinguished: Vec<String>,
    /// The model of these that was fitted in the shortest time.
    pub fastest: Option<String>,
    /// The smallest model of these.
    pub smallest: Option<String>,
    /// Whether the winner was fitted on all the data in the end, and not on the training part alone.
    pub best_on_all_data: bool,
    /// Whether it was asked to stop before it was done.
    pub interrupted: bool,
    /// Sizes of the parts of the data.
    pub parts: PartSizes,
    /// The independent units: `users`, `groups` or `samples`.
    pub units: &'static str,
    /// The number of independent units in the test part.
    pub n_units: usize,
    /// The time budget, in seconds.
    pub budget: Option<f64>,
    /// The time of the comparison, in seconds.
    pub seconds: f64,
    /// The seed of the split and of the fits.
    pub seed: u64,
    /// Every fit in the order in which it was done.
    pub fits: Vec<FitRecord>,
    /// Things worth knowing.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Describes the result in a sentence, without its full stop.
    pub fn verdict(&self) -> String {
        let Some(winner) = &self.winner else { return "no model was tested".to_owned() };
        let others: Vec<&str> = self.not_distinguished.iter().skip(1).map(String::as_str).collect();
        if others.is_empty() {
            return match self.rows.len() {
                1 => format!("{winner} is the only model that was tested"),
                _ => format!("{winner} is best, distinguished from all others by these points"),
            };
        }
        let fastest = self.fastest.as_deref().unwrap_or_default();
        let smallest = match self.smallest.as_deref() {
            Some(name) if name != fastest => format!("{name} is"),
            _ => "is".to_owned(),
        };
        format!(
            "{winner} is best, not distinguished from {}; of these {fastest} was fitted in the shortest time and \
             {smallest} the smallest",
            others.join(", "),
        )
    }
}

/// A model that was tested.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// The model.
    pub model: String,
    /// The score on the test part.
    pub score: f64,
    /// The standard error of the score.
    pub error: f64,
    /// The interval of the true score; the intervals of all models hold together.
    pub interval: Interval,
    /// The score less that of the winner, from the same points, with an interval; the intervals of all differences hold
    /// together.
    pub difference: JointDifference,
    /// Whether the test part distinguishes the model from the winner.
    pub distinguished: bool,
    /// The time of the fit on the training part, in seconds.
    pub seconds: f64,
    /// The growth of the resident memory of the process at its peak during that fit, sampled every few milliseconds, in
    /// bytes; absent where the system does not report it.
    pub memory: Option<u64>,
    /// The size of the model: of all arrays in its file, in bytes.
    pub bytes: u64,
    /// Whether the model is a baseline.
    pub baseline: bool,
}

/// A model that was not tested.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unranked {
    /// The model.
    pub model: String,
    /// Why.
    pub reason: String,
    /// The last score in the race, on the validation part.
    pub score: Option<f64>,
    /// The share of the training data that this score comes from.
    pub share: Option<f64>,
}

/// Sizes of the parts of the data, in ratings or samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartSizes {
    /// The size of the training part of the tested models: all data but the test part.
    pub train: usize,
    /// The size of the part of `train` that decided the race; 0 without a race.
    pub validation: usize,
    /// The size of the test part.
    pub test: usize,
}

/// The purpose of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FitStage {
    /// The race, on a share of the training part.
    Race,
    /// The test, on the whole training part.
    Test,
    /// The winner on all the data.
    Refit,
}

/// How a fit ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FitOutcome {
    /// The fit completed.
    Complete,
    /// The fit was stopped because its time was over.
    OutOfTime,
    /// The comparison was asked to stop.
    Interrupted,
    /// The fit failed, with this message.
    Failed(String),
}

/// One fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitRecord {
    /// The model.
    pub model: String,
    /// The purpose of the fit.
    pub stage: FitStage,
    /// The share of the training part.
    pub share: f64,
    /// Ratings or samples it was fitted on.
    pub units: usize,
    /// The time of the fit, in seconds.
    pub seconds: f64,
    /// The outcome of the fit.
    pub outcome: FitOutcome,
    /// The score, on the validation part (race) or the test part.
    pub score: Option<f64>,
}

/// A model that was tested, before the leaderboard is made.
pub(super) struct Tested {
    pub(super) model: &'static str,
    pub(super) place: usize,
    pub(super) losses: Losses,
    pub(super) score: f64,
    pub(super) seconds: f64,
    pub(super) memory: Option<u64>,
    pub(super) bytes: u64,
    pub(super) baseline: bool,
}

/// Whether a score is better than another.
pub(super) fn better(metric: Metric, a: f64, b: f64) -> bool {
    if metric.higher_is_better() { a > b } else { a < b }
}

/// The leaderboard of what was tested; the rest is filled in by the race.
///
/// # Errors
/// If the losses cannot be compared.
pub(super) fn leaderboard(compare: &Compare<'_>, mut tested: Vec<Tested>) -> Result<Comparison> {
    let metric = compare.metric;
    tested.sort_by(|a, b| {
        let order = a.score.total_cmp(&b.score);
        let order = if metric.higher_is_better() { order.reverse() } else { order };
        order.then(a.place.cmp(&b.place))
    });
    let joint = match tested.first() {
        None => None,
        Some(first) => {
            let losses: Vec<&[f64]> =
                tested.iter().map(|one| one.losses.values.as_slice()).collect();
            let points = EvaluationPoints {
                weights: first.losses.weights.as_deref(),
                units: first.losses.units.as_deref(),
            };
            Some(joint_intervals(&losses, points, metric.scale(), LEVEL, compare.seed)?)
        }
    };
    let rows: Vec<Ranked> = match &joint {
        None => Vec::new(),
        Some(joint) => tested.iter().enumerate().map(|(at, one)| row(joint, at, one)).collect(),
    };
    let together: Vec<&Ranked> = rows.iter().filter(|row| !row.distinguished).collect();
    let name = |row: &&Ranked| row.model.clone();
    Ok(Comparison {
        metric,
        title: metric.title(),
        higher_is_better: metric.higher_is_better(),
        level: LEVEL,
        winner: rows.first().map(|row| row.model.clone()),
        not_distinguished: together.iter().map(|row| row.model.clone()).collect(),
        fastest: together.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).map(name),
        smallest: together.iter().min_by_key(|row| row.bytes).map(name),
        best_on_all_data: false,
        interrupted: false,
        parts: PartSizes::default(),
        units: "samples",
        n_units: joint.as_ref().map_or(0, |joint| joint.units),
        budget: compare.budget.map(|budget| budget.as_secs_f64()),
        seconds: 0.0,
        seed: compare.seed,
        fits: Vec::new(),
        notes: Vec::new(),
        others: Vec::new(),
        rows,
    })
}

fn row(joint: &JointScores, at: usize, one: &Tested) -> Ranked {
    let score = joint.scores[at];
    let difference = joint.difference(at, 0);
    Ranked {
        model: one.model.to_owned(),
        score: score.value,
        error: score.error,
        interval: score.interval,
        difference,
        distinguished: difference.is_sure(),
        seconds: one.seconds,
        memory: one.memory,
        bytes: one.bytes,
        baseline: one.baseline,
    }
}

/// Checks that two models were evaluated at the same points.
///
/// # Errors
/// If they were not.
pub(super) fn same_points(first: &Losses, other: &Losses) -> Result<()> {
    if first.values.len() == other.values.len() && first.units == other.units {
        return Ok(());
    }
    Err(Error::data(format!(
        "it was evaluated at {} points, and others at {}, so that it cannot be compared",
        other.values.len(),
        first.values.len()
    )))
}
