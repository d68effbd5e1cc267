//! Models that neither recommend nor predict: one loss for each unit of the data, and its mean.

use super::EvaluateRequest;
use crate::App;
use crate::data::Source;
use gradus_base::Result;
use gradus_core::dataset::{Dataset, RatingsFile, Remarks};
use gradus_core::estimator::AnyFitted;
use gradus_core::params;
use gradus_metrics::bounds::{Bootstrap, Interval};
use gradus_select::{UnitLosses, further_losses, unit_losses};
use serde::Serialize;
use serde_json::{Map, Value};

/// How far a model is off.
#[derive(Clone, Debug, Serialize)]
pub struct UnitsAnswer {
    /// The kind of model.
    pub model: String,
    /// The number of units.
    pub count: usize,
    /// What units are called: `samples`.
    pub units: &'static str,
    /// What is measured.
    pub metric: &'static str,
    /// Its value; smaller is better.
    pub value: f64,
    /// Where the truth is with 95 % confidence.
    pub interval: Interval,
    /// Further measures, where the model has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<UnitsScore>,
}

/// One measure of a model.
#[derive(Clone, Debug, Serialize)]
pub struct UnitsScore {
    /// What is measured.
    pub metric: &'static str,
    /// Its value; smaller is better.
    pub value: f64,
    /// Where the truth is with 95 % confidence.
    pub interval: Interval,
}

/// The mean of losses, or its root.
fn score(losses: &UnitLosses) -> Result<UnitsScore> {
    let found = Bootstrap::default().mean(&losses.values, None)?;
    let (mut value, mut interval) = (found.estimate, found.interval);
    if losses.root {
        value = value.sqrt();
        (interval.low, interval.high) = (interval.low.max(0.0).sqrt(), interval.high.sqrt());
    }
    Ok(UnitsScore { metric: losses.metric, value, interval })
}

pub(super) fn evaluate(
    app: &App,
    fitted: &AnyFitted,
    request: &EvaluateRequest,
    remarks: &mut Remarks<'_>,
) -> Result<UnitsAnswer> {
    let model = app.registry.find(fitted.kind)?;
    // Those options that its kind of data shares with others, where they were set; then its own.
    let given = params::record(&request.options);
    let defaults = params::record(&RatingsFile::default());
    let specs = model.data().options();
    let shared = given.into_iter().filter(|(name, value): &(String, Value)| {
        specs.iter().any(|spec| spec.name == *name) && defaults.get(name) != Some(value)
    });
    let mut options: Map<String, Value> = shared.collect();
    options.extend(request.others.clone());
    let inputs = fitted.model.transformer().map(|model| model.inputs());
    let inputs = inputs.or_else(|| fitted.model.clusterer().map(|model| model.inputs()));
    let data: Box<dyn Dataset> = match inputs {
        // The columns that the model takes, whatever else the file has.
        Some(inputs) if request.others.is_empty() => {
            let table = &request.options.table;
            Box::new(table.samples_for(&request.data, (inputs, &[]), false, remarks)?)
        }
        _ => {
            let source = Source { path: request.data.clone(), options };
            source.open(model, None, false, remarks)?.data
        }
    };
    let losses = unit_losses(fitted, data.as_ref())?;
    let UnitsScore { metric, value, interval } = score(&losses)?;
    let further = further_losses(fitted, data.as_ref())?;
    let further = further.iter().map(score).collect::<Result<_>>()?;
    let (count, units) = (losses.values.len(), data.kind());
    let model = fitted.kind.to_owned();
    Ok(UnitsAnswer { model, count, units, metric, value, interval, further })
}
