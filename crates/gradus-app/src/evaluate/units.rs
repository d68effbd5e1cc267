//! Models that neither recommend nor predict: one loss for each unit of the data, and its mean.

use super::EvaluateRequest;
use super::distances::{self, DistancesAnswer};
use crate::App;
use crate::data::Source;
use crate::predict::text_column;
use gradus::text::TextPairs;
use gradus_base::Result;
use gradus_core::dataset::{DataKind as _, Dataset, RatingsFile, Remarks};
use gradus_core::estimator::AnyFitted;
use gradus_core::params;
use gradus_data::{Samples, Target};
use gradus_metrics::bounds::{Bootstrap, Interval, proportion};
use gradus_metrics::clustering::{Agreement, Shape, Silhouette};
use gradus_metrics::topics::{Coherence, OTHER};
use gradus_select::{PER_TOKEN, UnitLosses, further_losses, unit_losses};
use serde::Serialize;
use serde_json::{Map, Value};

/// How far a model is off.
#[derive(Clone, Debug, Serialize)]
pub struct UnitsAnswer {
    /// The kind of model.
    pub model: String,
    /// The number of units.
    pub count: usize,
    /// The name of the units: `samples`.
    pub units: &'static str,
    /// The name of the measure.
    pub metric: &'static str,
    /// The value of the measure; smaller is better.
    pub value: f64,
    /// The 95 % interval of the true value.
    pub interval: Interval,
    /// Measures without an interval: of a topic model the perplexity, and the mean coherence of its topics in these
    /// documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub point_estimates: Vec<(&'static str, f64)>,
    /// Further measures, where the model has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<UnitsScore>,
    /// How far samples of a generative model are from the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distances: Option<DistancesAnswer>,
    /// Measures of the clusters, where the model groups samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClustersAnswer>,
}

/// How good clusters are.
#[derive(Clone, Debug, Serialize)]
pub struct ClustersAnswer {
    /// How many clusters have a sample of this data.
    pub clusters: usize,
    /// How much nearer samples are to their own cluster than to the next one; `None` of one cluster, or as many as samples.
    pub silhouette: Option<Silhouette>,
    /// How narrow clusters are, and how far from each other; `None` as above.
    #[serde(flatten)]
    pub shape: Option<Shape>,
    /// The column that holds the classes, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The agreement of the clusters with it.
    #[serde(flatten)]
    pub agreement: Option<Agreement>,
}

/// Measures of the clusters of some samples; `None` of a model without clusters, or of other data.
fn clusters(fitted: &AnyFitted, data: &dyn Dataset) -> Result<Option<ClustersAnswer>> {
    let Some(model) = fitted.model.clusterer() else { return Ok(None) };
    let Some(samples) = data.downcast_ref::<Samples>() else { return Ok(None) };
    // Samples of no cluster count as one more.
    let none = model.n_clusters() as u32;
    let found = model.labels(samples.features())?.into_iter();
    let labels: Vec<u32> = found.map(|label| label.unwrap_or(none)).collect();
    let mut known = labels.clone();
    known.sort_unstable();
    known.dedup();
    let features = model.measured(samples.features());
    let measurable = known.len() > 1 && known.len() < labels.len();
    let silhouette = match measurable {
        true => Some(Silhouette::new(&features, &labels, Silhouette::MOST, 0)?),
        false => None,
    };
    let shape = if measurable { Some(Shape::new(&features, &labels)?) } else { None };
    let (target, agreement) = match samples.target() {
        Target::Classes { codes, .. } if samples.has_target() => {
            (samples.target_names().first().cloned(), Some(Agreement::new(codes, &labels)?))
        }
        _ => (None, None),
    };
    Ok(Some(ClustersAnswer { clusters: known.len(), silhouette, shape, target, agreement }))
}

/// One measure of a model.
#[derive(Clone, Debug, Serialize)]
pub struct UnitsScore {
    /// The name of the measure.
    pub metric: &'static str,
    /// The value of the measure; smaller is better, except of `exact match`.
    pub value: f64,
    /// The 95 % interval of the true value.
    pub interval: Interval,
}

/// The share of the pairs whose target is what a model that translates makes of the source, token by token.
fn exact_match(fitted: &AnyFitted, data: &dyn Dataset) -> Result<Option<UnitsScore>> {
    let (Some(model), Some(pairs)) = (fitted.model.translator(), data.downcast_ref::<TextPairs>())
    else {
        return Ok(None);
    };
    let found = model.translate(&pairs.sources(), 1)?;
    let exact = found.iter().zip(pairs.targets()).filter(|(found, target)| found == target);
    let (exact, n) = (exact.count(), found.len());
    let interval = proportion(exact as u64, n as u64, LEVEL)?;
    Ok(Some(UnitsScore { metric: "exact match", value: exact as f64 / n as f64, interval }))
}

/// The level of intervals.
const LEVEL: f64 = 0.95;

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
    let inputs = inputs.or_else(|| fitted.model.density().and_then(|model| model.inputs()));
    let data: Box<dyn Dataset> = match inputs {
        // The columns that the model takes, whatever else the file has.
        Some(inputs) if request.others.is_empty() && model.data().name() == Samples::NAME => {
            let table = &request.options.table;
            // Clusters are compared with classes that are known.
            let target = match fitted.model.clusterer() {
                Some(_) => request.target.as_slice(),
                None => &[],
            };
            let classes = !target.is_empty();
            Box::new(table.samples_for(&request.data, (inputs, target), classes, remarks)?)
        }
        _ => {
            if let Some(column) = inputs.and_then(|of| text_column(of, model.data(), &request.data))
                && options.get("lines") != Some(&Value::Bool(true))
            {
                options.entry("text").or_insert(column.into());
            }
            let source = Source { path: request.data.clone(), options };
            source.open(model, None, false, remarks)?.data
        }
    };
    let losses = unit_losses(fitted, data.as_ref())?;
    let UnitsScore { metric, value, interval } = score(&losses)?;
    let further = further_losses(fitted, data.as_ref())?;
    let mut further = further.iter().map(score).collect::<Result<Vec<_>>>()?;
    further.extend(exact_match(fitted, data.as_ref())?);
    let mut point_estimates = topic_measures(fitted, data.as_ref(), value)?;
    if metric == PER_TOKEN {
        point_estimates.push(("perplexity", value.exp()));
    }
    if let Some(model) = fitted.model.density()
        && let Some(dimensions) = model.dimensions()
    {
        let name = match model.is_bound() {
            true => "bits per dimension (upper bound)",
            false => "bits per dimension",
        };
        point_estimates.push((name, dimensions.bits(value)));
    }
    let (count, units) = (losses.values.len(), data.kind());
    let model = fitted.kind.to_owned();
    let clusters = clusters(fitted, data.as_ref())?;
    let distances = match distances::is_generator(fitted) {
        true => distances::evaluate(app, fitted, request, Some(data.as_ref()), remarks)?,
        false => None,
    };
    Ok(UnitsAnswer {
        model,
        count,
        units,
        metric,
        value,
        interval,
        point_estimates,
        further,
        distances,
        clusters,
    })
}

/// Words of a topic that its coherence is computed from.
const COHERENT: usize = 10;

/// The perplexity of a topic model, and the mean coherence of its topics in these documents.
fn topic_measures(
    fitted: &AnyFitted,
    data: &dyn Dataset,
    log_perplexity: f64,
) -> Result<Vec<(&'static str, f64)>> {
    let Some(topics) = fitted.model.topics() else { return Ok(Vec::new()) };
    let mut point_estimates = Vec::new();
    if topics.completion(data).is_some() {
        point_estimates.push(("perplexity", log_perplexity.exp()));
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
        point_estimates.push(("coherence UMass", mean(&found.umass)));
        point_estimates.push(("coherence NPMI", mean(&found.npmi)));
        point_estimates.push(("coherence C_V", mean(&found.cv)));
    }
    Ok(point_estimates)
}
