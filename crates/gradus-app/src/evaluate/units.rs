//! Models that neither recommend nor predict: one loss for each unit of the data, and its mean.

use super::EvaluateRequest;
use crate::App;
use crate::data::Source;
use crate::predict::text_column;
use gradus_base::Result;
use gradus_core::dataset::{DataKind as _, Dataset, RatingsFile, Remarks};
use gradus_core::estimator::AnyFitted;
use gradus_core::params;
use gradus_data::Samples;
use gradus_metrics::bounds::{Bootstrap, Interval};
use gradus_metrics::topics::{Coherence, OTHER};
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
    /// Facts without an interval: of a topic model the perplexity, and the mean coherence of its topics in these
    /// documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(&'static str, f64)>,
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
        Some(inputs) if request.others.is_empty() && model.data().name() == Samples::NAME => {
            let table = &request.options.table;
            Box::new(table.samples_for(&request.data, (inputs, &[]), false, remarks)?)
        }
        _ => {
            if let Some(column) = inputs.and_then(|of| text_column(of, model.data(), &request.data))
            {
                if options.get("lines") != Some(&Value::Bool(true)) {
                    options.entry("text").or_insert(column.into());
                }
            }
            let source = Source { path: request.data.clone(), options };
            source.open(model, None, false, remarks)?.data
        }
    };
    let losses = unit_losses(fitted, data.as_ref())?;
    let UnitsScore { metric, value, interval } = score(&losses)?;
    let further = further_losses(fitted, data.as_ref())?;
    let further = further.iter().map(score).collect::<Result<_>>()?;
    let facts = topic_facts(fitted, data.as_ref(), value)?;
    let (count, units) = (losses.values.len(), data.kind());
    let model = fitted.kind.to_owned();
    Ok(UnitsAnswer { model, count, units, metric, value, interval, facts, further })
}

/// Words of a topic that its coherence is computed from.
const COHERENT: usize = 10;

/// The perplexity of a topic model, and the mean coherence of its topics in these documents.
fn topic_facts(
    fitted: &AnyFitted,
    data: &dyn Dataset,
    log_perplexity: f64,
) -> Result<Vec<(&'static str, f64)>> {
    let Some(topics) = fitted.model.topics() else { return Ok(Vec::new()) };
    let mut facts = Vec::new();
    if topics.completion(data).is_some() {
        facts.push(("perplexity", log_perplexity.exp()));
    }
    if let Some(texts) = topics.word_sequences(data, OTHER) {
        let place: std::collections::HashMap<&str, u32> =
            topics.words().iter().map(String::as_str).zip(0..).collect();
        let tops: Vec<Vec<u32>> = topics
            .top_words(COHERENT)
            .iter()
            .map(|top| top.iter().filter_map(|(word, _)| place.get(word).copied()).collect())
            .collect();
        let found = Coherence::new(&tops, &texts?);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        facts.push(("coherence UMass", mean(&found.umass)));
        facts.push(("coherence NPMI", mean(&found.npmi)));
        facts.push(("coherence C_V", mean(&found.cv)));
    }
    Ok(facts)
}
