//! How many decisions of a model small changes of the features can reverse.

use crate::App;
use crate::report::target;
use gradus::audit::robustness::{
    Attack, Certified, Classifier, ModelClassifier, Norm, Robustness, RobustnessOptions, Smoothing,
    Space, Stolen, Stoppable, audit_with, certify, steal,
};
use gradus_base::random::Stream;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::{Remarks, TableFile};
use gradus_core::estimator::{AnyFitted, Run};
use gradus_core::predict::Predict;
use gradus_data::{Dense, Ids, ImageShape, Inputs, Matrix, Samples};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

mod page;
mod values;

pub use values::{MovedRow, ValueRobustnessAnswer, value_robustness};

/// The unit of a change of a feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureUnits {
    /// The standard deviation for the named columns of a table, the feature's own unit for images and arrays.
    #[default]
    Auto,
    /// The feature's own unit.
    Raw,
    /// The standard deviation of each feature in the audited data.
    Std,
}

/// The values that features may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureBounds {
    /// From 0 to 1 for the pixels of images, any value for other features.
    #[default]
    Auto,
    /// Any value.
    None,
    /// The range of each feature in the audited data.
    Data,
    /// These bounds for every feature.
    Between(f64, f64),
}

impl FeatureBounds {
    /// Reads `auto`, `none`, `data` or two numbers: `0,1`.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(text: &str) -> Result<Self> {
        let rule = "must be auto, none, data, or two numbers with a comma between them, the lower one first: 0,1";
        let wrong = || Error::parameter("bounds", text, rule);
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "data" => Ok(Self::Data),
            _ => {
                let (low, high) = text.split_once(',').ok_or_else(wrong)?;
                let read = |text: &str| text.trim().parse::<f64>().ok().filter(|x| !x.is_nan());
                let (low, high) = (read(low).ok_or_else(wrong)?, read(high).ok_or_else(wrong)?);
                if low > high { Err(wrong()) } else { Ok(Self::Between(low, high)) }
            }
        }
    }
}

/// An audit of robustness: the data, what may change, and the attacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RobustnessRequest {
    /// Data the model has not seen; `-` for standard input.
    pub data: PathBuf,
    /// The reading options of the table.
    pub table: TableFile,
    /// The column that holds the truth; as in training by default.
    pub target: Vec<String>,
    /// The norm of perturbations: linf, l2 or l1.
    pub norm: String,
    /// The unit of changes.
    pub units: FeatureUnits,
    /// The values that features may take.
    pub bounds: FeatureBounds,
    /// Columns that stay as they are.
    pub immutable: Vec<String>,
    /// Columns that change by whole numbers only.
    pub integer: Vec<String>,
    /// Columns with more or less of a budget: the factor by which the radius is multiplied for them.
    pub budget: Vec<(String, f64)>,
    /// Rows that are audited at most, drawn at random; 0 for all.
    pub samples: usize,
    /// Standard deviation of the noise of certificates by randomised smoothing; none if left out.
    pub smoothing: Option<f64>,
    /// The kind of model of the surrogate, for the attack by transfer.
    pub surrogate: String,
    /// The change of a predicted number that counts as moved; a tenth of the standard deviation of predictions if left out.
    pub tolerance: Option<f64>,
    /// The attacks and their options.
    #[serde(flatten)]
    pub options: RobustnessOptions,
}

impl Default for RobustnessRequest {
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            table: TableFile::default(),
            target: Vec::new(),
            norm: Norm::default().to_string(),
            units: FeatureUnits::Auto,
            bounds: FeatureBounds::Auto,
            immutable: Vec::new(),
            integer: Vec::new(),
            budget: Vec::new(),
            samples: 1000,
            smoothing: None,
            surrogate: "mlp".into(),
            tolerance: None,
            options: RobustnessOptions::default(),
        }
    }
}

/// The result of an audit of robustness.
#[derive(Clone, Debug, Serialize)]
pub struct RobustnessAnswer {
    /// The kind of model.
    pub model: String,
    /// The rows of the data.
    pub count: usize,
    /// The classes.
    pub classes: Vec<Value>,
    /// The unit of changes.
    pub units: &'static str,
    /// The numbers.
    #[serde(flatten)]
    pub found: Robustness,
    /// Certificates by randomised smoothing, if asked for.
    pub certified: Option<Certified>,
    /// Rows that fell, those with the least change first.
    pub examples: Vec<FallenRow>,
    /// The size of the images, if the features are pixels.
    #[serde(skip)]
    pub image: Option<ImageShape>,
}

/// A row that fell.
#[derive(Clone, Debug, Serialize)]
pub struct FallenRow {
    /// The number of the row in the data, from 1.
    pub row: usize,
    /// The class predicted, which is the true one.
    pub was: Value,
    /// The class predicted for the changed row.
    pub becomes: Value,
    /// The length of the change.
    pub distance: f64,
    /// The attack that found it.
    pub by: String,
    /// The changed features, the largest changes first, in units of the radius.
    pub changes: Vec<FeatureChange>,
    /// The features.
    #[serde(skip)]
    pub features: Vec<f64>,
    /// The changed features.
    #[serde(skip)]
    pub changed: Vec<f64>,
}

/// The change of one feature.
#[derive(Clone, Debug, Serialize)]
pub struct FeatureChange {
    /// The feature.
    pub feature: String,
    /// Its value.
    pub from: f64,
    /// The value that it changes to.
    pub to: f64,
}

/// Changed features that are listed for a row.
const CHANGES: usize = 8;

/// Audits a model on data it has not seen.
///
/// # Errors
/// If the data cannot be read, an option is out of range, or the model does not predict classes.
pub fn robustness(
    app: &App,
    fitted: &AnyFitted,
    request: &RobustnessRequest,
    remarks: &mut Remarks<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<RobustnessAnswer> {
    let norm = Norm::parse(&request.norm)?;
    request.options.check()?;
    if request.tolerance.is_some() {
        return Err(Error::data(
            "option `tolerance` is about predicted numbers, and the model predicts classes",
        ));
    }
    let own = ModelClassifier::new(fitted)?;
    let victim = Stoppable::new(&own, stopped);
    let model = fitted.predictor()?;
    let Some(labels) = model.outputs().labels() else {
        return Err(fitted.unsupported(Capability::PredictClasses));
    };
    if Space::of_inputs(norm, model.inputs()).unit.iter().all(|unit| *unit == 0.0) {
        return Err(Error::data(format!(
            "model `{}` learns from texts, which stay as they are: attacks change numbers, pixels and words of categories",
            fitted.kind
        )));
    }
    let all = read(request, model, remarks)?;
    let count = all.len();
    let (rows, samples) = drawn(request, &all);
    let features = samples.features().to_dense();
    Matrix::Dense(features.clone()).check_finite()?;
    let truth = truth(&samples, labels)?;
    let (space, units) = space(request, norm, model.inputs(), &features, remarks)?;
    if let Some(image) = &space.image {
        remarks.push(format!("{} images of {image}", grouped(rows.len())));
    }
    let mut options = request.options.clone();
    if options.curve.is_empty() {
        options.curve = [0.25, 0.5, 0.75, 1.5, 2.0].map(|by| by * options.eps).to_vec();
    }
    let stolen = match options.attacks.contains(&Attack::Transfer) {
        true => Some(surrogate(app, request, &victim, &space, (&all, &rows), remarks)?),
        false => None,
    };
    let other = stolen.as_ref().map(|stolen| ModelClassifier::new(&stolen.model)).transpose()?;
    let other = other.as_ref().map(|other| other as &dyn Classifier);
    let mut found = audit_with(&victim, other, &space, &features, &truth, &options, stopped)?;
    let certified = match request.smoothing {
        None => None,
        Some(sigma) => {
            let smoothing = Smoothing { sigma, seed: options.seed, ..Smoothing::default() };
            let space = Space { norm: Norm::L2, ..space.clone() };
            let radii: Vec<f64> = (0..=8).map(|step| 0.5 * sigma * f64::from(step)).collect();
            Some(certify(&victim, &space, &features, &truth, &radii, &smoothing)?)
        }
    };
    let names = model.inputs().feature_names();
    let label = |class: u32| json!(labels.get(class as usize));
    let mut examples: Vec<FallenRow> = found
        .fallen()
        .filter_map(|row| {
            let (changed, becomes) = (found.examples[row.row].as_ref()?, row.becomes?);
            let features = features.row(row.row);
            Some(FallenRow {
                row: rows[row.row] as usize + 1,
                was: label(row.predicted),
                becomes: label(becomes),
                distance: row.distance?,
                by: row.by.map(|attack| attack.to_string()).unwrap_or_default(),
                changes: changes(&space, &names, features, changed),
                features: features.to_vec(),
                changed: changed.clone(),
            })
        })
        .collect();
    examples.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.row.cmp(&b.row)));
    for row in &mut found.rows {
        row.row = rows[row.row] as usize + 1;
    }
    debug_assert_eq!(victim.n_classes(), labels.len());
    Ok(RobustnessAnswer {
        model: fitted.kind.to_owned(),
        count,
        classes: (0..labels.len() as u32).map(label).collect(),
        units,
        found,
        certified,
        examples,
        image: space.image,
    })
}

/// Samples as the model takes them.
fn read(
    request: &RobustnessRequest,
    model: &dyn Predict,
    remarks: &mut Remarks<'_>,
) -> Result<Samples> {
    let target = target(&request.target, model.outputs().names())?;
    let classes = model.outputs().labels().is_some();
    let samples =
        request.table.samples_for(&request.data, (model.inputs(), target), classes, remarks)?;
    if samples.is_empty() {
        return Err(Error::format(&request.data, "has no rows to audit"));
    }
    Ok(samples)
}

/// A surrogate, trained on decisions of the model at rows that are not audited, if there are any.
fn surrogate(
    app: &App,
    request: &RobustnessRequest,
    victim: &dyn Classifier,
    space: &Space,
    (all, audited): (&Samples, &[u32]),
    remarks: &mut Remarks<'_>,
) -> Result<Stolen> {
    let kind = app.registry.find(&request.surrogate)?;
    let able =
        kind.traits().can(Capability::PredictClasses) && kind.traits().can(Capability::Gradient);
    if !able {
        let rule = "must be a model of features that predicts classes and gives gradients, such as mlp, logistic or svm";
        return Err(Error::parameter("surrogate", &request.surrogate, rule));
    }
    let mut rest: Vec<u32> =
        (0..all.len() as u32).filter(|row| audited.binary_search(row).is_err()).collect();
    if rest.len() < 2 {
        rest = audited.to_vec();
    }
    let own = all.features().select_rows(&rest).to_dense();
    let fit = |samples: &Samples| {
        let mut params = Map::new();
        params.insert("seed".into(), request.options.seed.into());
        if kind.specs().iter().all(|spec| spec.name != "seed") {
            params.clear();
        }
        kind.fit(&params, samples, None, &Run::default())
    };
    let stolen = steal(victim, space, &own, request.options.queries, request.options.seed, &fit)?;
    remarks.push(format!(
        "a surrogate ({}) was trained on {} decisions of the model, and agrees with it in {:.1} % of others",
        request.surrogate,
        grouped(stolen.queries),
        100.0 * stolen.agreement
    ));
    Ok(stolen)
}

/// Some of the rows, and their numbers.
fn drawn(request: &RobustnessRequest, samples: &Samples) -> (Vec<u32>, Samples) {
    let n = samples.len();
    let mut stream = Stream::new(request.options.seed, "audit.rows", 0);
    if request.samples == 0 || request.samples >= n {
        return ((0..n as u32).collect(), samples.clone());
    }
    // No more are drawn than there are.
    let rows = stream.sample(n, request.samples).unwrap_or_default();
    let rows: Vec<u32> = rows.into_iter().map(|row| row as u32).collect();
    let chosen = samples.select_rows(&rows);
    (rows, chosen)
}

/// The class of each sample among those of the model; `None` of one that training did not have.
fn truth(samples: &Samples, labels: &Ids) -> Result<Vec<Option<u32>>> {
    let (codes, own) = samples.classes()?;
    let places: Vec<Option<u32>> = own.iter().map(|label| labels.find(label)).collect();
    Ok(codes.iter().map(|&code| places[code as usize]).collect())
}

/// What may change, and the unit of changes in words.
fn space(
    request: &RobustnessRequest,
    norm: Norm,
    inputs: &Inputs,
    features: &Dense<f64>,
    remarks: &mut Remarks<'_>,
) -> Result<(Space, &'static str)> {
    let mut space = Space::of_inputs(norm, inputs);
    let columns = Space::columns(inputs);
    let find = |option: &'static str, name: &String| {
        columns.iter().find(|(known, _)| known == name).map(|(_, range)| range.clone()).ok_or_else(
            || {
                let mut known: Vec<&str> =
                    columns.iter().map(|(name, _)| name.as_str()).take(12).collect();
                if columns.len() > known.len() {
                    known.push("…");
                }
                Error::parameter(
                    option,
                    name,
                    format!("is no column of the model; its columns: {}", known.join(", ")),
                )
            },
        )
    };
    let deviations = match request.units {
        FeatureUnits::Auto => matches!(inputs, Inputs::Columns(_)),
        FeatureUnits::Raw => false,
        FeatureUnits::Std => true,
    };
    if deviations {
        space.scale_by_deviation(features);
    }
    match request.bounds {
        FeatureBounds::Auto => {}
        FeatureBounds::None => {
            space.low.fill(f64::NEG_INFINITY);
            space.high.fill(f64::INFINITY);
        }
        FeatureBounds::Data => {
            for at in 0..features.n_cols() {
                space.low[at] = features.column(at).fold(f64::INFINITY, f64::min);
                space.high[at] = features.column(at).fold(f64::NEG_INFINITY, f64::max);
            }
        }
        FeatureBounds::Between(low, high) => {
            space.low.fill(low);
            space.high.fill(high);
        }
    }
    for name in &request.integer {
        find("integer", name)?.for_each(|at| space.integer[at] = true);
    }
    for (name, factor) in &request.budget {
        if !(*factor >= 0.0 && factor.is_finite()) {
            return Err(Error::parameter(
                "budget",
                format!("{name}={factor}"),
                "the factor must be a number that is 0 or more",
            ));
        }
        let range = find("budget", name)?;
        let category = space.categories.iter_mut().find(|category| category.features == range);
        match category.filter(|_| *factor > 0.0) {
            Some(category) => category.cost /= factor,
            None => range.for_each(|at| space.unit[at] *= factor),
        }
    }
    for name in &request.immutable {
        find("immutable", name)?.for_each(|at| space.unit[at] = 0.0);
    }
    if matches!(inputs, Inputs::Columns(_)) {
        let whole: Vec<&str> = columns
            .iter()
            .filter(|(_, range)| {
                let at = range.start;
                range.len() == 1
                    && !space.integer[at]
                    && space.unit[at] > 0.0
                    && space.category_of(at).is_none()
                    && features.column(at).all(|x| x.fract() == 0.0)
            })
            .map(|(name, _)| name.as_str())
            .collect();
        if !whole.is_empty() {
            let n = whole.len();
            let shown =
                if n > 8 { format!("{}, …", whole[..8].join(",")) } else { whole.join(",") };
            remarks.push(format!(
                "{n} columns hold whole numbers only; option `integer` keeps those so that it names: {shown}"
            ));
        }
    }
    space.check(features.n_cols())?;
    Ok((
        space,
        if deviations { "standard deviations of the features" } else { "units of the features" },
    ))
}

/// The largest changes of a row.
fn changes(space: &Space, names: &[String], from: &[f64], to: &[f64]) -> Vec<FeatureChange> {
    let size = |at: usize| {
        (to[at] - from[at]).abs() / if space.unit[at] > 0.0 { space.unit[at] } else { 1.0 }
    };
    let mut changed: Vec<usize> = (0..from.len()).filter(|&at| from[at] != to[at]).collect();
    changed.sort_by(|&a, &b| size(b).total_cmp(&size(a)).then(a.cmp(&b)));
    changed.truncate(CHANGES);
    let change =
        |at: usize| FeatureChange { feature: names[at].clone(), from: from[at], to: to[at] };
    changed.into_iter().map(change).collect()
}
