//! The learning-rate range test: the loss of a network while the rate rises from step to step.

use super::{Drawn, standalone};
use crate::App;
use crate::fit::FitRequest;
use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_core::estimator::{Estimator, Run};
use gradus_core::params::ParamKind;
use gradus_report::{Line, Page, PageTable, TableColumn, number};
use serde::Serialize;
use serde_json::{Map, Value};

/// A loss is smoothed over this share of the steps before and after it.
const WINDOWS: usize = 25;
/// Losses above so many times the first are not drawn: the curve before would be flat beside them.
const DRAWN: f64 = 1.5;
/// A loss is nearly least where so much of its fall is left.
const NEARLY: f64 = 0.03;
/// The suggested rate is that of nearly the least loss divided by this.
const BELOW: f64 = 3.0;

/// The network, its parameters and the data.
#[derive(Clone, Debug)]
pub struct LearningRateRequest {
    /// The model, its parameters and its data.
    pub fit: FitRequest,
    /// The rate of the last step; the first has a ten-millionth of it.
    pub to: f64,
    /// The number of steps.
    pub steps: usize,
}

impl LearningRateRequest {
    /// The last rate, if it is left out.
    pub const TO: f64 = 10.0;
    /// The number of steps, if it is left out.
    pub const STEPS: usize = 300;
}

/// The loss at each rate.
#[derive(Clone, Debug, Serialize)]
pub struct LearningRateAnswer {
    /// The model.
    pub model: String,
    /// A description of the data.
    pub description: String,
    /// The steps that were taken.
    pub steps: Vec<RatedStep>,
    /// The smallest rate at which the smoothed loss is nearly least, if it falls at all.
    pub least: Option<f64>,
    /// The rate at which the smoothed loss falls fastest with the logarithm of the rate.
    pub steepest: Option<f64>,
    /// A third of the rate with nearly the least loss.
    pub suggestion: Option<f64>,
}

/// One step of a range test.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RatedStep {
    /// The learning rate.
    pub rate: f64,
    /// The loss of the batch before the step.
    pub loss: f64,
    /// The mean of the losses of the steps around.
    pub smoothed: f64,
}

/// Whether a model takes a range test.
pub fn takes_range_test(model: &dyn Estimator) -> bool {
    model.specs().iter().any(|spec| {
        let choices = match &spec.kind {
            ParamKind::Choice(choices) => choices.as_slice(),
            _ => &[],
        };
        spec.name == "schedule" && choices.iter().any(|(word, _)| word == "range")
    })
}

impl App {
    /// Trains a network with a rate that rises from step to step.
    ///
    /// # Errors
    /// If the model is no network, an option is outside its range, or the data cannot be used.
    pub fn learning_rate(
        &self,
        request: &LearningRateRequest,
        run: &Run<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<LearningRateAnswer> {
        let model = self.registry.find(&request.fit.model)?;
        if !takes_range_test(model) {
            let known: Vec<&str> = (self.registry.models().iter())
                .filter(|model| takes_range_test(**model))
                .map(|model| model.name())
                .collect();
            return Err(Error::data(format!(
                "`{}` has no learning rate that follows a schedule; this experiment is for {}",
                model.name(),
                known.join(", ")
            )));
        }
        if request.steps < 20 {
            return Err(Error::parameter("steps", request.steps, "must be at least 20"));
        }
        let mut fit = request.fit.clone();
        fit.params = params(model, &fit.params, request);
        let fit = self.prepare_fit(&fit, remarks)?;
        let fitted = fit.run(run)?;
        let rate = |point: &gradus_core::report::Iteration| {
            point
                .measures
                .iter()
                .find(|measure| measure.name == "learning rate")
                .map(|one| one.value)
        };
        let trace = fitted.report.trace.iter();
        let points: Vec<(f64, f64)> = trace
            .filter_map(|point| Some((rate(point)?, point.objective)))
            // The loss of a step that was no number.
            .filter(|(_, loss)| *loss < f64::from(f32::MAX))
            .collect();
        let steps = smoothed(&points);
        let (least, steepest) = found(&steps);
        Ok(LearningRateAnswer {
            model: model.name().to_owned(),
            description: format!("{}: {}", fit.data.file, fit.description),
            steps,
            least,
            steepest,
            suggestion: least.map(|rate| rate / BELOW),
        })
    }
}

/// The parameters of the fit: those given, and those of the test.
fn params(
    model: &dyn Estimator,
    given: &Map<String, Value>,
    request: &LearningRateRequest,
) -> Map<String, Value> {
    let mut params = given.clone();
    let own = [
        ("schedule", Value::from("range")),
        ("learning_rate", request.to.into()),
        ("max_iter", request.steps.into()),
        ("validation_fraction", 0.0.into()),
        ("restarts", 1.into()),
    ];
    for (name, value) in own {
        if model.specs().iter().any(|spec| spec.name == name) {
            params.insert(name.to_owned(), value);
        }
    }
    params
}

/// Steps on each side of one whose losses its smoothed loss is the mean of.
fn window(n: usize) -> usize {
    (n / WINDOWS).max(1)
}

fn smoothed(points: &[(f64, f64)]) -> Vec<RatedStep> {
    let window = window(points.len());
    let mean = |at: usize| {
        let near = &points[at.saturating_sub(window)..(at + window + 1).min(points.len())];
        near.iter().map(|point| point.1).sum::<f64>() / near.len() as f64
    };
    let step =
        |(at, &(rate, loss)): (usize, &(f64, f64))| RatedStep { rate, loss, smoothed: mean(at) };
    points.iter().enumerate().map(step).collect()
}

/// The smallest rate at which the smoothed loss is nearly least, and the one at which it falls fastest before that.
fn found(steps: &[RatedStep]) -> (Option<f64>, Option<f64>) {
    let window = window(steps.len());
    let Some(first) = steps.first().map(|step| step.smoothed) else { return (None, None) };
    let least = steps.iter().map(|step| step.smoothed).fold(f64::INFINITY, f64::min);
    // What is nearly learned stays so over many rates: the first of them counts.
    let enough = least + NEARLY * (first - least);
    let at = steps.iter().position(|step| step.smoothed <= enough);
    // A loss that only rises says nothing.
    let Some(at) = at.filter(|&at| at > window) else { return (None, None) };
    let after = |at: usize| (at + window).min(steps.len() - 1);
    let fall = |at: usize| steps[after(at)].smoothed - steps[at - window].smoothed;
    let steepest = (window..=at).min_by(|&a, &b| fall(a).total_cmp(&fall(b)));
    (Some(steps[at].rate), steepest.map(|at| steps[at].rate))
}

impl LearningRateAnswer {
    /// How to read the picture.
    pub const ABOUT: &str = "Every step is longer than the one before. Where steps are too short the loss stays, then it falls, and \
        where they are too long it grows. A good length of the longest steps of a fit is a third of the smallest rate with nearly the least loss.";

    fn chart(&self) -> Line {
        let first = self.steps.first().map_or(0.0, |step| step.smoothed);
        let drawn = |loss: f64| loss <= DRAWN * first;
        let losses: Vec<(f64, f64)> =
            self.steps.iter().map(|step| (step.rate, step.loss)).filter(|p| drawn(p.1)).collect();
        let smooth: Vec<(f64, f64)> = self
            .steps
            .iter()
            .map(|step| (step.rate, step.smoothed))
            .filter(|p| drawn(p.1))
            .collect();
        let line = Line::new()
            .title(format!("The loss of {} as the learning rate rises", self.model))
            .faint("each batch", losses)
            .series("smoothed", smooth)
            .x_label("learning rate")
            .y_label("loss")
            .log_x();
        match self.suggestion {
            Some(suggestion) => line.marker(suggestion, "suggestion"),
            None => line,
        }
    }

    /// Steps to show in a table: about so many.
    pub fn shown(&self, n: usize) -> impl Iterator<Item = &RatedStep> {
        self.steps.iter().step_by(self.steps.len().div_ceil(n.max(1)).max(1))
    }
}

impl Drawn for LearningRateAnswer {
    fn svg(&self) -> String {
        standalone(&self.chart(), 900.0)
    }

    fn page(&self) -> Page {
        let columns = ["learning rate", "loss of the batch", "smoothed loss"];
        let mut table = PageTable::new(columns.map(TableColumn::number));
        for step in self.shown(30) {
            table = table.row(vec![step.rate.into(), step.loss.into(), step.smoothed.into()]);
        }
        let shown = |rate: Option<f64>| rate.map_or_else(|| "none".to_owned(), number);
        Page::new(format!("The learning rate of {}", self.model))
            .subtitle(format!("{}; {} steps", self.description, self.steps.len()))
            .stats([
                ("suggestion", shown(self.suggestion), "for the longest steps of a fit".to_owned()),
                ("nearly the least loss", shown(self.least), "at this rate".to_owned()),
                ("steepest fall", shown(self.steepest), "at this rate".to_owned()),
            ])
            .section("Range test", |s| s.text(Self::ABOUT).chart(self.chart()))
            .section("Numbers", |s| s.table(&table))
            .footer("gradus lab lr")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suggestion_lies_below_the_least_loss() {
        // Flat, then falling, then growing.
        let loss = |at: usize| match at {
            0..100 => 2.0,
            100..200 => 2.0 - (at - 100) as f64 / 100.0,
            _ => 1.0 + ((at - 200) as f64 / 10.0).powi(2),
        };
        let points: Vec<(f64, f64)> =
            (0..250).map(|at| (10f64.powf(at as f64 / 50.0 - 5.0), loss(at))).collect();
        let (least, steepest) = found(&smoothed(&points));
        let (least, steepest) = (least.unwrap(), steepest.unwrap());
        assert!((0.06..0.15).contains(&least), "{least}");
        assert!((1e-3..0.1).contains(&steepest), "{steepest}");
        assert_eq!(found(&smoothed(&[(1.0, 1.0), (2.0, 3.0)])), (None, None));
        assert_eq!(found(&[]), (None, None));
    }
}
