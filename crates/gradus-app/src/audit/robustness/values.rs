//! How far small changes of the features move the predictions of a regression.

use super::{CHANGES, FeatureChange, RobustnessRequest, changes, drawn, read, space};
use gradus::audit::robustness::{Norm, Space, ValueRobustness, audit_predictions};
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Remarks;
use gradus_core::estimator::AnyFitted;
use gradus_data::Matrix;
use gradus_report::{Line, Page, PageTable, TableColumn, number};
use serde::Serialize;

/// Rows that are listed on the page.
const LISTED: usize = 40;

/// The result of an audit of predicted numbers.
#[derive(Clone, Debug, Serialize)]
pub struct ValueRobustnessAnswer {
    /// The kind of model.
    pub model: String,
    /// The rows of the data.
    pub count: usize,
    /// The unit of changes.
    pub units: &'static str,
    /// The numbers.
    #[serde(flatten)]
    pub found: ValueRobustness,
    /// Rows whose prediction changes, the largest changes first.
    pub examples: Vec<MovedRow>,
}

/// A row whose prediction changes.
#[derive(Clone, Debug, Serialize)]
pub struct MovedRow {
    /// The number of the row in the data, from 1.
    pub row: usize,
    /// The predicted number.
    pub predicted: f64,
    /// The prediction of the changed row.
    pub becomes: f64,
    /// The changed features, the largest changes first, in units of the radius.
    pub changes: Vec<FeatureChange>,
}

/// Audits a model that predicts numbers on data it has not seen.
///
/// # Errors
/// If the data cannot be read, an option is out of range or about classes, or the model predicts no single number.
pub fn value_robustness(
    fitted: &AnyFitted,
    request: &RobustnessRequest,
    remarks: &mut Remarks<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<ValueRobustnessAnswer> {
    let norm = Norm::parse(&request.norm)?;
    let mut options = request.options.clone();
    options.check()?;
    let model = fitted.predictor()?;
    if model.outputs().labels().is_some() {
        return Err(fitted.unsupported(Capability::PredictValues));
    }
    if !options.attacks.is_empty() || request.smoothing.is_some() {
        return Err(Error::data(
            "options `attacks` and `smoothing` are about decisions, and the model predicts numbers: these are moved exactly where the \
             model is linear, and by gradient steps otherwise",
        ));
    }
    if Space::of_inputs(norm, model.inputs()).unit.iter().all(|unit| *unit == 0.0) {
        return Err(Error::data(format!(
            "model `{}` learns from texts, which stay as they are: attacks change numbers, pixels and words of categories",
            fitted.kind
        )));
    }
    let all = read(request, model, remarks)?;
    let (rows, samples) = drawn(request, &all);
    let features = samples.features().to_dense();
    Matrix::Dense(features.clone()).check_finite()?;
    let (space, units) = space(request, norm, model.inputs(), &features, remarks)?;
    if options.curve.is_empty() {
        options.curve = [0.25, 0.5, 0.75, 1.5, 2.0].map(|by| by * options.eps).to_vec();
    }
    let gradient = fitted.model.gradient();
    let mut found = audit_predictions(
        model,
        gradient,
        &space,
        &features,
        request.tolerance,
        &options,
        stopped,
    )?;
    let names = model.inputs().feature_names();
    let mut examples: Vec<MovedRow> = found
        .rows
        .iter()
        .filter(|row| row.change() > 0.0)
        .map(|row| {
            let up = row.highest - row.predicted >= row.predicted - row.lowest;
            let mut changes =
                changes(&space, &names, features.row(row.row), &found.examples[row.row]);
            changes.truncate(CHANGES);
            MovedRow {
                row: rows[row.row] as usize + 1,
                predicted: row.predicted,
                becomes: if up { row.highest } else { row.lowest },
                changes,
            }
        })
        .collect();
    let size = |row: &MovedRow| (row.becomes - row.predicted).abs();
    examples.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.row.cmp(&b.row)));
    for row in &mut found.rows {
        row.row = rows[row.row] as usize + 1;
    }
    Ok(ValueRobustnessAnswer {
        model: fitted.kind.to_owned(),
        count: all.len(),
        units,
        found,
        examples,
    })
}

impl ValueRobustnessAnswer {
    /// How to read the numbers.
    pub fn about(&self) -> &'static str {
        if self.found.exact {
            "The model is linear: no change within the radius moves a prediction further."
        } else {
            "Changes are the largest that gradient steps found: a lower bound of the largest there are."
        }
    }

    /// The page of the audit.
    pub fn page(&self) -> Page {
        let found = &self.found;
        let points = |of: fn(&gradus::audit::robustness::ValuePoint) -> f64| {
            found.curve.iter().map(move |point| (point.eps, of(point))).collect::<Vec<_>>()
        };
        let changes = Line::new()
            .title("Change of the prediction by the radius")
            .x_label(format!("radius in {}", found.norm))
            .y_label("change of the prediction")
            .series("mean over rows", points(|point| point.mean_change))
            .series("largest of any row", points(|point| point.largest_change))
            .marker(found.eps, "radius of the audit")
            .markers();
        let moved = Line::new()
            .title(format!("Rows that move by more than {}", number(found.tolerance)))
            .x_label(format!("radius in {}", found.norm))
            .y_label("share of rows")
            .series("moved", points(|point| point.moved.value))
            .faint("lower end, 95 %", points(|point| point.moved.interval.low))
            .faint("upper end, 95 %", points(|point| point.moved.interval.high))
            .markers();
        let mut table = PageTable::new(vec![
            TableColumn::number("row"),
            TableColumn::number("prediction"),
            TableColumn::number("becomes"),
            TableColumn::text("largest changes"),
        ]);
        for row in self.examples.iter().take(LISTED) {
            let changes = row.changes.iter().map(|change| {
                format!("{} {} → {}", change.feature, number(change.from), number(change.to))
            });
            table = table.row(vec![
                row.row.to_string().into(),
                number(row.predicted).into(),
                number(row.becomes).into(),
                changes.collect::<Vec<_>>().join(", ").into(),
            ]);
        }
        Page::new("Robustness of predictions")
            .subtitle(format!(
                "model `{}`, {} of {} rows, {} ≤ {} in {}",
                self.model,
                grouped(found.rows.len()),
                grouped(self.count),
                found.norm,
                number(found.eps),
                self.units
            ))
            .stats([
                ("mean change", number(found.found.mean_change), String::new()),
                ("largest change", number(found.found.largest_change), String::new()),
                (
                    "rows that move",
                    format!("{:.1} %", 100.0 * found.found.moved.value),
                    format!("by more than {}", number(found.tolerance)),
                ),
            ])
            .section("By radius", |section| {
                section.note(self.about()).columns(|s| s.chart(changes), |s| s.chart(moved))
            })
            .section("Rows that move the most", |section| section.table(&table))
            .footer("gradus audit robustness")
    }
}
