//! Models of features: how well they predict, with intervals that say how sure that is.

use super::against::{self, LossComparison};
use super::{EvaluateRequest, Evaluation, remark_on_training_data};
use crate::App;
use crate::predict::lines;
use crate::report::target;
use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::{Ids, Samples};
use gradus_metrics::bounds::Interval;
use gradus_metrics::classification::ClassScores;
use gradus_metrics::regression::RegressionErrors;
use gradus_select::samples::{NamedScore, evaluate_classes, evaluate_values};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// How well a model predicts numbers.
#[derive(Clone, Debug, Serialize)]
pub struct ValuesAnswer {
    /// The kind of model.
    pub model: String,
    /// The number of samples.
    pub count: usize,
    /// The scores of each target.
    pub targets: Vec<TargetAnswer>,
    /// The comparison with another model, loss by loss.
    pub against: Option<Vec<LossComparison>>,
    /// The share of the data that the model was fitted to, if it is known.
    pub trained_on: Option<f64>,
}

/// The errors of the predictions of one target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetAnswer {
    /// The target.
    pub target: String,
    /// All errors.
    pub errors: RegressionErrors,
    /// The 95 % interval of the root mean squared error.
    pub rmse_interval: Option<Interval>,
    /// The 95 % interval of the mean absolute error.
    pub mae_interval: Option<Interval>,
    /// The scores by name, with intervals.
    #[serde(serialize_with = "by_name")]
    pub scores: Vec<NamedScore>,
}

/// How well a model predicts classes.
#[derive(Clone, Debug, Serialize)]
pub struct ClassesAnswer {
    /// The kind of model.
    pub model: String,
    /// The number of samples.
    pub count: usize,
    /// Samples of classes that training did not have.
    pub unknown: usize,
    /// The scores by name, with intervals.
    #[serde(serialize_with = "by_name")]
    pub scores: Vec<NamedScore>,
    /// The interval of the accuracy by Hoeffding's inequality, which holds for any distribution.
    pub accuracy_hoeffding: Interval,
    /// The scores of each class.
    pub classes: Vec<ClassAnswer>,
    /// The confusion matrix: a row for each true class, a column for each predicted class.
    pub confusion: Vec<Vec<f64>>,
    /// The comparison with another model, loss by loss.
    pub against: Option<Vec<LossComparison>>,
    /// The share of the data that the model was fitted to, if it is known.
    pub trained_on: Option<f64>,
}

/// The scores of the predictions of one class.
#[derive(Clone, Debug, Serialize)]
pub struct ClassAnswer {
    /// The class as the data called it, a number or text.
    pub class: Value,
    /// The scores of the class.
    pub scores: ClassScores,
}

/// Scores as a map from their names.
fn by_name<S: Serializer>(scores: &[NamedScore], serializer: S) -> Result<S::Ok, S::Error> {
    let entry = |score: &NamedScore| {
        (score.name, json!({"value": score.value, "interval": score.interval}))
    };
    serializer.collect_map(scores.iter().map(entry))
}

pub(super) fn evaluate(
    app: &App,
    fitted: &AnyFitted,
    request: &EvaluateRequest,
    remarks: &mut Remarks<'_>,
) -> Result<Evaluation> {
    let model = fitted.predictor()?;
    let target = target(&request.target, model.outputs().names())?;
    let samples = read(request, model, target, remarks)?;
    let trained_on =
        fitted.report.training.as_ref().and_then(|training| samples.share_in(training));
    remark_on_training_data(trained_on, &request.data, remarks);
    let against = match &request.against {
        Some(path) => {
            Some(against::compare(app, request, (fitted, &samples), path, target, remarks)?)
        }
        None => None,
    };
    let (kind, count) = (fitted.kind.to_owned(), samples.len());
    let Some(labels) = model.outputs().labels() else {
        let targets = evaluate_values(model, &samples)?.into_iter().map(|evaluated| {
            let interval = |at: usize| evaluated.scores.get(at).and_then(|score| score.interval);
            TargetAnswer {
                rmse_interval: interval(0),
                mae_interval: interval(1),
                target: evaluated.target,
                errors: evaluated.errors,
                scores: evaluated.scores,
            }
        });
        let targets = targets.collect();
        return Ok(Evaluation::Values(ValuesAnswer {
            model: kind,
            count,
            targets,
            against,
            trained_on,
        }));
    };
    let evaluated = evaluate_classes(model, &samples)?;
    let per_class = evaluated.confusion.classes();
    let class = |name: &String| match labels {
        Ids::Int(_) => json!(gradus_data::Id::parse(name)),
        Ids::Text(_) => json!(name),
    };
    let classes = per_class.iter().zip(&evaluated.names);
    let rows = 0..evaluated.names.len() as u32;
    Ok(Evaluation::Classes(ClassesAnswer {
        model: kind,
        count,
        unknown: evaluated.unknown,
        classes: classes
            .map(|(scores, name)| ClassAnswer { class: class(name), scores: *scores })
            .collect(),
        confusion: rows.map(|class| evaluated.confusion.row(class).to_vec()).collect(),
        scores: evaluated.scores,
        accuracy_hoeffding: evaluated.sure,
        against,
        trained_on,
    }))
}

/// Samples as the model takes them.
pub(super) fn read(
    request: &EvaluateRequest,
    model: &dyn Predict,
    target: &[String],
    remarks: &mut Remarks<'_>,
) -> Result<Samples> {
    if let Some(documents) = lines(model.inputs(), &request.data, &request.options.table, remarks)?
    {
        return Ok(model.samples(&documents)?.into_owned());
    }
    let classes = model.outputs().labels().is_some();
    let inputs = (model.inputs(), target);
    let samples = request.options.table.samples_for(&request.data, inputs, classes, remarks)?;
    if samples.is_empty() {
        return Err(Error::format(&request.data, "has no rows to evaluate by"));
    }
    Ok(samples)
}
