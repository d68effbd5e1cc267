//! Fairness: measures and audits of arrays, thresholds, and models that learn from groups.

use crate::app::to_json;
use crate::data::{Features, labels};
use crate::error::raise;
use crate::fit::{record, watched};
use crate::model::Model;
use crate::threads::inside;
use gradus::audit::fairness::{
    AuditOptions, Decisions, FairModel, GroupMeasure, GroupedSamples, MeasureByGroup,
    RateConstraint, SensitiveGroups, audit_decisions, audit_exposure, audit_quality, audit_values,
    optimize_thresholds,
};
use gradus_core::estimator::Run;
use gradus_core::predict::Predict;
use gradus_data::{Samples, Target};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;

/// The name of an attribute, the names of its groups, and the group of each row.
type Attribute<'py> = (String, Vec<String>, PyReadonlyArray1<'py, u32>);

fn groups((name, names, codes): &Attribute<'_>) -> PyResult<SensitiveGroups> {
    SensitiveGroups::new(name, names.clone(), codes.as_array().to_vec()).map_err(raise)
}

fn crossed(attributes: &[Attribute<'_>]) -> PyResult<SensitiveGroups> {
    let all = attributes.iter().map(groups).collect::<PyResult<Vec<SensitiveGroups>>>()?;
    SensitiveGroups::crossed(&all).map_err(raise)
}

fn numbers(array: &PyReadonlyArray1<'_, f64>) -> Vec<f64> {
    array.as_array().iter().copied().collect()
}

fn options(text: &str) -> PyResult<AuditOptions> {
    serde_json::from_str(text).map_err(|error| PyRuntimeError::new_err(format!("options: {error}")))
}

/// Refuses numbers that are so many different ones that they are no groups.
#[pyfunction]
pub fn check_groups(name: &str, values: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
    SensitiveGroups::from_numbers(name, &numbers(&values)).map(drop).map_err(raise)
}

/// A measure over all rows and in each group of the intersections of attributes: the value over all, the names of the
/// groups, and the value in each.
#[pyfunction]
#[pyo3(signature = (measure, truth, predicted, attributes, weights=None))]
pub fn measure_by_group(
    py: Python<'_>,
    measure: &str,
    truth: PyReadonlyArray1<'_, f64>,
    predicted: PyReadonlyArray1<'_, f64>,
    attributes: Vec<Attribute<'_>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<(f64, Vec<String>, Vec<f64>)> {
    let measure = GroupMeasure::parse(measure).map_err(raise)?;
    let groups = crossed(&attributes)?;
    let (truth, predicted) = (numbers(&truth), numbers(&predicted));
    let weights = weights.as_ref().map(numbers);
    let found = inside(py, || {
        MeasureByGroup::new(measure, &truth, &predicted, &groups, weights.as_deref())
    })?;
    let found = found.map_err(raise)?;
    Ok((found.overall, groups.names().to_vec(), found.values))
}

/// The audit of decisions (0 or 1) as JSON.
#[pyfunction]
#[pyo3(signature = (options, truth, decisions, attributes, probability=None, scores=None, conditional=None, weights=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
pub fn fairness_of_decisions(
    py: Python<'_>,
    options: &str,
    truth: PyReadonlyArray1<'_, bool>,
    decisions: PyReadonlyArray1<'_, bool>,
    attributes: Vec<Attribute<'_>>,
    probability: Option<PyReadonlyArray1<'_, f64>>,
    scores: Option<PyReadonlyArray1<'_, f64>>,
    conditional: Option<Attribute<'_>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<String> {
    let options = self::options(options)?;
    let groups = crossed(&attributes)?;
    let conditional = conditional.as_ref().map(self::groups).transpose()?;
    let (truth, decisions) = (truth.as_array().to_vec(), decisions.as_array().to_vec());
    let [probability, scores, weights] =
        [probability, scores, weights].map(|array| array.as_ref().map(numbers));
    let found = inside(py, || {
        let data = Decisions {
            truth: &truth,
            decisions: &decisions,
            probability: probability.as_deref(),
            scores: scores.as_deref(),
            weights: weights.as_deref(),
        };
        audit_decisions(&data, &groups, conditional.as_ref(), &options)
    })?;
    to_json(&found.map_err(raise)?)
}

/// The audit of predicted numbers as JSON.
#[pyfunction]
#[pyo3(signature = (options, truth, predicted, attributes, weights=None))]
pub fn fairness_of_values(
    py: Python<'_>,
    options: &str,
    truth: PyReadonlyArray1<'_, f64>,
    predicted: PyReadonlyArray1<'_, f64>,
    attributes: Vec<Attribute<'_>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<String> {
    let options = self::options(options)?;
    let groups = crossed(&attributes)?;
    let (truth, predicted) = (numbers(&truth), numbers(&predicted));
    let weights = weights.as_ref().map(numbers);
    let found =
        inside(py, || audit_values(&truth, &predicted, &groups, weights.as_deref(), &options))?;
    to_json(&found.map_err(raise)?)
}

/// The audit of lists of items by groups of items, as JSON. An item below 0 ends its list.
#[pyfunction]
#[pyo3(signature = (options, lists, attributes, reference=None))]
pub fn fairness_of_exposure(
    options: &str,
    lists: PyReadonlyArray2<'_, i64>,
    attributes: Vec<Attribute<'_>>,
    reference: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<String> {
    let options = self::options(options)?;
    let groups = crossed(&attributes)?;
    let mut all: Vec<Vec<u32>> = Vec::new();
    for list in lists.as_array().rows() {
        let items = list.iter().take_while(|item| **item >= 0);
        // An item too large to be one is refused below, as one without a group.
        all.push(items.map(|&item| u32::try_from(item).unwrap_or(u32::MAX)).collect());
    }
    let reference = reference.as_ref().map(numbers);
    to_json(&audit_exposure(&all, &groups, reference.as_deref(), &options).map_err(raise)?)
}

/// The audit of a figure that each user has, by groups of users, as JSON.
#[pyfunction]
pub fn fairness_of_quality(
    options: &str,
    quality: PyReadonlyArray1<'_, f64>,
    attributes: Vec<Attribute<'_>>,
) -> PyResult<String> {
    let options = self::options(options)?;
    let groups = crossed(&attributes)?;
    to_json(&audit_quality(&numbers(&quality), &groups, &options).map_err(raise)?)
}

/// The rules of decision for each group, as JSON.
#[pyfunction]
#[pyo3(signature = (constraint, scores, truth, attributes, weights=None))]
pub fn group_thresholds(
    py: Python<'_>,
    constraint: &str,
    scores: PyReadonlyArray1<'_, f64>,
    truth: PyReadonlyArray1<'_, bool>,
    attributes: Vec<Attribute<'_>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<String> {
    let constraint = RateConstraint::parse(constraint).map_err(raise)?;
    let groups = crossed(&attributes)?;
    let (scores, truth) = (numbers(&scores), truth.as_array().to_vec());
    let weights = weights.as_ref().map(numbers);
    let found = inside(py, || {
        optimize_thresholds(&scores, &truth, &groups, weights.as_deref(), constraint)
    })?;
    to_json(&found.map_err(raise)?)
}

/// Fits the model `name` to samples with groups.
#[pyfunction]
#[pyo3(signature = (name, params, features, attributes, codes, classes, weights=None, target=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
pub fn fit_grouped(
    py: Python<'_>,
    name: &str,
    params: &str,
    features: &Features,
    attributes: Vec<Attribute<'_>>,
    codes: PyReadonlyArray1<'_, u32>,
    classes: &Bound<'_, PyAny>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    target: Option<Vec<String>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let model = gradus::find(name).map_err(raise)?;
    let params = record(params)?;
    let target_values =
        Target::Classes { codes: codes.as_array().to_vec(), labels: labels(classes)? };
    let attributes = attributes.iter().map(groups).collect::<PyResult<Vec<SensitiveGroups>>>()?;
    let weights = weights.as_ref().map(numbers);
    let (matrix, inputs) = (features.matrix.clone(), features.inputs.clone());
    let keep = Arc::new(matrix.clone());
    let work = move |run: &Run<'_>| {
        let mut samples = Samples::new(matrix, target_values)?;
        if let Some(inputs) = inputs {
            samples = samples.with_inputs(inputs)?;
        }
        if let Some(weights) = weights {
            samples = samples.with_weights(weights)?;
        }
        if let Some(names) = target {
            samples = samples.with_target_names(names)?;
        }
        model.fit(&params, &GroupedSamples::new(samples, attributes)?, None, run)
    };
    let fitted = watched(py, false, progress, work, keep)?;
    Ok(Model { fitted: Arc::new(fitted) })
}

/// The names of the group columns that a model needs to predict; none if it needs none, or is another kind of model.
#[pyfunction]
pub fn group_columns(model: &Model) -> Vec<String> {
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    any.downcast_ref::<FairModel>().map(FairModel::group_columns).unwrap_or_default()
}

/// The class of each row, as an index, by a model that learned from groups.
#[pyfunction]
#[pyo3(signature = (model, features, attributes=None, probabilities=false))]
pub fn decide_grouped(
    py: Python<'_>,
    model: &Model,
    features: &Features,
    attributes: Option<Vec<Attribute<'_>>>,
    probabilities: bool,
) -> PyResult<Vec<f64>> {
    let any: &dyn std::any::Any = model.fitted.model.as_ref();
    let Some(fair) = any.downcast_ref::<FairModel>() else {
        return Err(PyRuntimeError::new_err("a model that learned from groups is needed"));
    };
    let attributes = attributes.unwrap_or_default();
    let attributes = attributes.iter().map(|(name, names, codes)| {
        SensitiveGroups::of_any(name, names.clone(), codes.as_array().to_vec()).map_err(raise)
    });
    let attributes = attributes.collect::<PyResult<Vec<SensitiveGroups>>>()?;
    let matrix = &features.matrix;
    let found = inside(py, || -> gradus::Result<Vec<f64>> {
        let wide;
        let matrix = if fair.needs_groups() && matrix.n_cols() < fair.inputs().n_features() {
            wide = fair.with_groups(matrix, &attributes)?;
            &wide
        } else {
            matrix
        };
        if probabilities {
            return fair.decision_probabilities(matrix);
        }
        Ok(fair.classes(matrix)?.into_iter().map(f64::from).collect())
    })?;
    found.map_err(raise)
}
