//! The outcome of a run.

use crate::vector;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a run ended.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The norm of the gradient is within the tolerance.
    GradientSmall,
    /// The value fell by less than the tolerance.
    ValueSettled,
    /// The step was shorter than the tolerance.
    StepSmall,
    /// The value asked for is reached.
    TargetReached,
    /// The number of iterations asked for was done.
    MaxIterations,
    /// The time given is over.
    TimeUp,
    /// Someone asked it to stop.
    Stopped,
    /// No step lowers the value: rounding is all that is left, or the gradient is wrong.
    Stalled,
    /// The value left the finite numbers; the point is the last with a finite one.
    Diverged,
}

impl Reason {
    /// Whether a tolerance was met.
    pub fn converged(self) -> bool {
        matches!(
            self,
            Self::GradientSmall | Self::ValueSettled | Self::StepSmall | Self::TargetReached
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GradientSmall => "the gradient is small",
            Self::ValueSettled => "the value settled",
            Self::StepSmall => "the step is small",
            Self::TargetReached => "the target is reached",
            Self::MaxIterations => "the iterations are done",
            Self::TimeUp => "the time is up",
            Self::Stopped => "stopped on request",
            Self::Stalled => "no step goes down",
            Self::Diverged => "diverged",
        })
    }
}

/// How often an objective was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluations {
    /// Evaluations of the value alone.
    pub values: usize,
    /// Evaluations of value and gradient (over the whole sum, where the function is the mean of terms).
    pub gradients: usize,
    /// Products with the Hessian.
    pub hessian_products: usize,
}

/// One iteration of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracePoint {
    /// Iterations done; the first point, 0, is the start.
    pub iteration: usize,
    /// The value.
    pub value: f64,
    /// The norm of the gradient.
    pub gradient_norm: f64,
    /// Length of the step that led there.
    pub step: f64,
    /// Seconds since the run began.
    pub seconds: f64,
}

/// The trace of a run: its iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Every iteration, and the start before them.
    pub steps: Vec<TracePoint>,
    /// The points, if they were asked for.
    pub points: Vec<Vec<f64>>,
}

impl Trace {
    /// The values, from the start on.
    pub fn values(&self) -> Vec<f64> {
        self.steps.iter().map(|point| point.value).collect()
    }

    /// The distances of the points kept from `target`.
    pub fn distances(&self, target: &[f64]) -> Vec<f64> {
        self.points.iter().map(|x| vector::distance(x, target)).collect()
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The point found.
    pub x: Vec<f64>,
    /// The value there.
    pub value: f64,
    /// The norm of the gradient there.
    pub gradient_norm: f64,
    /// Iterations done.
    pub iterations: usize,
    /// How often the objective was asked.
    pub evaluations: Evaluations,
    /// Why it ended.
    pub reason: Reason,
    /// The iterations.
    pub trace: Trace,
    /// Wall time.
    pub seconds: f64,
}

impl Outcome {
    /// Whether a tolerance was met.
    pub fn converged(&self) -> bool {
        self.reason.converged()
    }
}
