//! The report of a fit: returned beside every model, and kept in its file.

use gradus_data::Sketch;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why an iterative fit ended. Reaching the limit is information, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The tolerance was reached: by the fall of the objective, or by a certificate.
    Converged,
    /// The held-out score did not improve for as long as the patience allows.
    NoImprovement,
    /// The number of iterations asked for was done.
    MaxIterations,
    /// The solution has a closed form; there was nothing to iterate.
    Solved,
    /// Neither the objective nor its certificate improved any more, short of the tolerance: the
    /// limits of double precision. More iterations would not help.
    Stalled,
    /// A stop was requested; the model is the best so far.
    Interrupted,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged (within the tolerance)",
            Self::NoImprovement => "stopped early (the held-out score no longer improved)",
            Self::MaxIterations => "reached the number of iterations asked for",
            Self::Solved => "solved in closed form",
            Self::Stalled => "stopped short of the tolerance (rounding allows no more progress)",
            Self::Interrupted => "interrupted",
        })
    }
}

/// One point of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// The number of the random start, from 0.
    pub restart: usize,
    /// The number of the iteration, from 1.
    pub iteration: usize,
    /// The objective after it.
    pub objective: f64,
    /// The held-out score after it, if there was held-out data.
    pub validation: Option<f64>,
    /// Further measures after it, where the algorithm has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Measure>,
}

/// A named measure of an iteration, beside the objective and the held-out score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The name of the measure: `training accuracy`, `perplexity`.
    pub name: String,
    /// The value of the measure.
    pub value: f64,
}

impl Measure {
    /// A measure.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value }
    }

    /// The measures that are finite: JSON has no other numbers, and a file must be readable.
    pub(crate) fn finite(mut measures: Vec<Self>) -> Vec<Self> {
        measures.retain(|measure| measure.value.is_finite());
        measures
    }
}

/// The held-out score of a simpler model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The name of the baseline.
    pub name: String,
    /// The score of the baseline on the same held-out data.
    pub score: f64,
}

/// A parameter that was not given, and the value that the fit chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The parameter: `regularization`.
    pub parameter: String,
    /// The value that the fit used.
    pub value: f64,
    /// The reason for it.
    pub reason: String,
}

impl Choice {
    /// A choice.
    pub fn new(parameter: impl Into<String>, value: f64, reason: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), value, reason: reason.into() }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, value, reason } = self;
        let value = if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.4}") };
        write!(f, "{parameter} = {value}: {reason}")
    }
}

/// A bound on how far the solution is from the optimum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The name of the certificate: `duality gap`, `gradient norm`.
    pub name: String,
    /// The value of the certificate; 0 certifies the exact solution.
    pub value: f64,
    /// The tolerance: the fit converged if the value is at most this.
    pub tolerance: f64,
}

impl Certificate {
    /// Whether the value is within the tolerance.
    pub fn holds(&self) -> bool {
        self.value <= self.tolerance
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.holds() { "≤" } else { ">" };
        write!(f, "{} {:.2e} {sign} {:.2e}", self.name, self.value, self.tolerance)
    }
}

/// The training report of a model.
///
/// Everything in it is a function of data, parameters and seed, but for [`seconds`](Self::seconds)
/// and [`clock`](Self::clock): those are left out of the model file, so that the same fit writes
/// the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Iterations done, over all restarts.
    pub iterations: usize,
    /// Why the last start ended.
    pub stop_reason: StopReason,
    /// The objective of the model kept.
    pub objective: f64,
    /// The held-out score of the model kept.
    pub validation: Option<f64>,
    /// The metric of the held-out score, such as `rmse`.
    pub metric: String,
    /// Whether a larger held-out score is better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub higher_is_better: bool,
    /// The point of the trace that the model was taken from.
    pub best: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// One point for each iteration, over all restarts.
    pub trace: Vec<Iteration>,
    /// The held-out score of simpler models, to compare with.
    #[serde(default)]
    pub baselines: Vec<Baseline>,
    /// A bound on the distance to the optimum, if the algorithm has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// The values chosen for parameters that were not given, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<Choice>,
    /// Remarks that are no errors.
    #[serde(default)]
    pub notes: Vec<String>,
    /// A sketch of the training data, by which it can be recognised later; `None` if it was not asked
    /// for. It is stored in the file beside the report.
    #[serde(skip)]
    pub training: Option<Sketch>,
    /// Wall time of the fit. Not kept in the model file.
    #[serde(skip)]
    pub seconds: f64,
    /// Wall time at each point of the trace. Not kept in the model file.
    #[serde(skip)]
    pub clock: Vec<f64>,
}

/// The beginning of a note that is a caution: the result may not be what the user wants.
pub const CAUTION: &str = "caution: ";

/// A share of a score by which no two models are distinguished.
const BARELY: f64 = 1e-3;

impl Report {
    /// Sets the held-out scores of simpler models; where one of them is better than this model's by more than a
    /// thousandth, a caution says so. Less is below the noise of most held-out parts.
    pub fn compare_with(&mut self, baselines: Vec<Baseline>) {
        self.baselines = baselines;
        let Some(score) = self.validation else { return };
        let sign = if self.higher_is_better { 1.0 } else { -1.0 };
        let best =
            self.baselines.iter().max_by(|a, b| (sign * a.score).total_cmp(&(sign * b.score)));
        let clearly = |best: &&Baseline| sign * (best.score - score) > BARELY * score.abs();
        if let Some(best) = best.filter(clearly) {
            self.notes.push(format!(
                "{CAUTION}on the held-out data the simpler model \"{}\" is better than this one \
                 ({} {:.4} against {score:.4}): try other parameters, or use that one",
                best.name, self.metric, best.score
            ));
        }
    }

    /// The notes that are cautions, without the word `caution`.
    pub fn cautions(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().filter_map(|note| note.strip_prefix(CAUTION))
    }

    /// The report as JSON, with the times, for a program to read.
    pub fn to_json(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        value["seconds"] = self.seconds.into();
        value["cautions"] = self.cautions().collect::<Vec<_>>().into();
        if let Some(points) = value["trace"].as_array_mut() {
            for (point, seconds) in points.iter_mut().zip(&self.clock) {
                point["seconds"] = (*seconds).into();
            }
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(validation: Option<f64>, higher_is_better: bool) -> Report {
        Report {
            iterations: 1,
            stop_reason: StopReason::Solved,
            objective: 1.0,
            validation,
            metric: "score".into(),
            higher_is_better,
            best: 0,
            seed: 0,
            trace: Vec::new(),
            baselines: Vec::new(),
            certificate: None,
            chosen: Vec::new(),
            notes: Vec::new(),
            seconds: 0.0,
            clock: Vec::new(),
            training: None,
        }
    }

    #[test]
    fn a_model_that_loses_to_a_simpler_one_says_so() {
        let simple = |scores: [f64; 2]| {
            let name = |n: usize| ["mean", "biases"][n].to_owned();
            (0..2).map(|n| Baseline { name: name(n), score: scores[n] }).collect::<Vec<_>>()
        };
        let answer = |validation, higher, scores| {
            let mut report = report(validation, higher);
            report.compare_with(simple(scores));
            assert_eq!(report.baselines.len(), 2);
            report.cautions().map(str::to_owned).collect::<Vec<_>>()
        };
        let caution = answer(Some(1.2), false, [1.5, 1.1]);
        assert!(caution[0].contains("\"biases\"") && caution[0].contains("1.1000"), "{caution:?}");
        assert!(answer(Some(1.2), true, [1.3, 1.5])[0].contains("1.5000"));
        assert!(answer(Some(1.0), false, [1.5, 1.1]).is_empty());
        assert!(answer(Some(1.1), false, [1.5, 1.1]).is_empty());
        assert!(answer(Some(0.9806), false, [1.5, 0.9805]).is_empty(), "that is noise");
        assert!(answer(Some(1.6), true, [1.3, 1.5]).is_empty());
        assert!(answer(None, true, [1.3, 1.5]).is_empty());
    }
}
