//! The audit of fairness of a model that predicts.

mod mitigation;
mod page;
mod recommender;
mod thresholds;

pub use mitigation::{Frontier, Mitigation};
pub use page::page;
pub use recommender::{
    ExposureReference, RecommenderAnswer, RecommenderAudit, RecommenderRequest, recommender_page,
};

use crate::App;
use crate::report::target;
use gradus::audit::fairness::{
    AuditOptions, DecisionAudit, Decisions, SensitiveGroups, ValueAudit, audit_decisions,
    audit_values,
};
use gradus_base::{Error, Result};
use gradus_core::dataset::{Remarks, TableFile, remark_on_source};
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::{EncodeOptions, Id, OnError, Samples, SamplesOptions, Table};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An audit of fairness: the data, and whose treatment is compared.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FairnessRequest {
    /// Data the model has not seen; `-` for standard input.
    pub data: PathBuf,
    /// How the table is read.
    pub table: TableFile,
    /// The column that holds the truth; as in training by default.
    pub target: Vec<String>,
    /// The columns of the sensitive attributes. They need not be features of the model. Each is audited, and then their
    /// intersections.
    pub group: Vec<String>,
    /// A column that conditional criteria hold fixed: only those of like value are compared.
    pub conditional: Option<String>,
    /// The class that is the favourable decision; the second of two by default.
    pub favourable: Option<String>,
    /// Options of the audit.
    pub options: AuditOptions,
}

/// The audit of one attribute, or of the intersections of several.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Audit {
    /// Of decisions between classes.
    Decisions(Box<DecisionAudit>),
    /// Of predicted numbers.
    Values(Box<ValueAudit>),
}

/// What an audit of fairness found.
#[derive(Clone, Debug, Serialize)]
pub struct FairnessAnswer {
    /// The kind of model.
    pub model: String,
    /// The number of rows.
    pub count: usize,
    /// The favourable class, of a model of classes.
    pub favourable: Option<String>,
    /// The audits: of each attribute, and of the intersections if there are several.
    pub audits: Vec<Audit>,
    /// What thresholds for each group would buy, attribute by attribute, of a model of two classes.
    pub mitigation: Vec<Mitigation>,
    /// The share of the data that the model was fitted to, if it is known.
    pub trained_on: Option<f64>,
}

impl App {
    /// Audits the fairness of a model on data it has not seen.
    ///
    /// # Errors
    /// If the model does not predict, the data cannot be read, or a group column is missing or continuous.
    pub fn audit_fairness(
        &self,
        fitted: &AnyFitted,
        request: &FairnessRequest,
        remarks: &mut Remarks<'_>,
    ) -> Result<FairnessAnswer> {
        let model = fitted.predictor()?;
        if request.group.is_empty() {
            return Err(Error::data(
                "an audit of fairness compares groups: name their columns with option `group`",
            ));
        }
        let (samples, table) = read(model, request, remarks)?;
        let groups = |name: &String| groups_of(&table, name);
        let attributes =
            request.group.iter().map(groups).collect::<Result<Vec<SensitiveGroups>>>()?;
        let conditional = request.conditional.as_ref().map(groups).transpose()?;
        let mut compared = attributes.clone();
        if attributes.len() > 1 {
            compared.push(SensitiveGroups::crossed(&attributes)?);
        }
        let trained_on =
            fitted.report.training.as_ref().and_then(|training| samples.share_in(training));
        let mut answer = FairnessAnswer {
            model: fitted.kind.to_owned(),
            count: samples.len(),
            favourable: None,
            audits: Vec::new(),
            mitigation: Vec::new(),
            trained_on,
        };
        if model.outputs().labels().is_some() {
            audit_classes(
                model,
                request,
                (&samples, &compared, conditional.as_ref()),
                &mut answer,
            )?;
        } else {
            audit_numbers(model, request, &samples, &compared, &mut answer)?;
        }
        for warning in answer.warnings() {
            remarks.push(format!("warning: {warning}"));
        }
        Ok(answer)
    }
}

impl FairnessAnswer {
    /// What to be careful about, in all audits.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.audits.iter().flat_map(|audit| match audit {
            Audit::Decisions(audit) => &audit.warnings,
            Audit::Values(audit) => &audit.warnings,
        })
    }
}

/// The groups of a column.
fn groups_of(table: &Table, name: &str) -> Result<SensitiveGroups> {
    let name = table.resolve(name)?;
    SensitiveGroups::from_column(name, table.column(name)?)
}

/// The samples as the model takes them, and the rows of the table they came from.
fn read(
    model: &dyn Predict,
    request: &FairnessRequest,
    remarks: &mut Remarks<'_>,
) -> Result<(Samples, Table)> {
    let inputs = model.inputs();
    let target = target(&request.target, model.outputs().names())?;
    let mut names: Vec<String> = target.to_vec();
    names.extend(request.group.iter().chain(&request.conditional).cloned());
    names.extend(request.table.weight_column.clone());
    let mut table = request.table.table(&request.data, Some(inputs), &names)?;
    remark_on_source(&request.data, &table, remarks);
    if request.table.on_error == OnError::Skip {
        let mut rows = inputs.complete_rows(&table)?;
        for name in &names {
            let column = table.column(table.resolve(name)?)?;
            rows.retain(|&row| !column.is_missing(row as usize));
        }
        let dropped = table.n_rows() - rows.len();
        if dropped > 0 {
            let path = request.data.display();
            remarks.push(format!("{path}: {dropped} rows left out because a value is missing"));
        }
        table = table.select_rows(&rows);
    }
    if table.n_rows() == 0 {
        return Err(Error::format(&request.data, "has no rows to audit by"));
    }
    let resolved = |name: &String| table.resolve(name).map(str::to_owned);
    let options = SamplesOptions {
        target: target.iter().map(resolved).collect::<Result<_>>()?,
        classes: model.outputs().labels().is_some(),
        weight: request.table.weight_column.as_ref().map(resolved).transpose()?,
        encode: EncodeOptions::default(),
    };
    let (samples, encoded) = Samples::from_table(&table, &options, Some(inputs))?;
    if encoded.unknown > 0 {
        remarks.push(format!(
            "{}: {} words that training did not have; each is taken as the mean of those it had",
            request.data.display(),
            encoded.unknown
        ));
    }
    Ok((samples, table))
}

fn audit_classes(
    model: &dyn Predict,
    request: &FairnessRequest,
    (samples, compared, conditional): (&Samples, &[SensitiveGroups], Option<&SensitiveGroups>),
    answer: &mut FairnessAnswer,
) -> Result<()> {
    let Some(labels) = model.outputs().labels() else { return Ok(()) };
    let known = || labels.iter().map(|label| label.to_string()).collect::<Vec<_>>().join(", ");
    let favourable = match &request.favourable {
        Some(name) => labels.find(Id::parse(name)).ok_or_else(|| Error::UnknownName {
            what: "class",
            name: name.clone(),
            known: known(),
        })?,
        None if labels.len() == 2 => 1,
        None => {
            return Err(Error::data(format!(
                "the model has {} classes; which is the favourable decision? Name it with option `favourable`: {}",
                labels.len(),
                known()
            )));
        }
    };
    let name = labels.get(favourable as usize).to_string();
    let (codes, theirs) = samples.classes()?;
    let is_favourable: Vec<bool> =
        theirs.iter().map(|label| labels.find(label) == Some(favourable)).collect();
    let truth: Vec<bool> = codes.iter().map(|&code| is_favourable[code as usize]).collect();
    let decisions: Vec<bool> =
        model.classes(samples.features())?.into_iter().map(|code| code == favourable).collect();
    let probability: Option<Vec<f64>> = model
        .probabilities(samples.features())?
        .map(|p| p.rows().map(|row| row[favourable as usize].clamp(0.0, 1.0)).collect());
    let scores = model.scores(samples.features())?;
    let scores: Vec<f64> = match scores.n_cols() {
        1 if favourable == 1 => scores.into_values(),
        1 => scores.values().iter().map(|score| -score).collect(),
        _ => scores.rows().map(|row| row[favourable as usize]).collect(),
    };
    let data = Decisions {
        truth: &truth,
        decisions: &decisions,
        probability: probability.as_deref(),
        scores: Some(&scores),
        weights: samples.weights(),
    };
    for groups in compared {
        let audit = audit_decisions(&data, groups, conditional, &request.options)?;
        answer.audits.push(Audit::Decisions(Box::new(audit)));
        let found = mitigation::evaluate(&data, &scores, groups)?;
        answer.mitigation.extend(found);
    }
    answer.favourable = Some(name);
    Ok(())
}

fn audit_numbers(
    model: &dyn Predict,
    request: &FairnessRequest,
    samples: &Samples,
    compared: &[SensitiveGroups],
    answer: &mut FairnessAnswer,
) -> Result<()> {
    let (truth, predicted) = (samples.values()?, model.scores(samples.features())?);
    if truth.n_cols() != 1 {
        return Err(Error::data(format!(
            "the model predicts {} targets; an audit of fairness is of one",
            truth.n_cols()
        )));
    }
    if request.conditional.is_some() {
        return Err(Error::data(
            "option `conditional` is about decisions, and the model predicts numbers",
        ));
    }
    for groups in compared {
        let audit = audit_values(
            truth.values(),
            predicted.values(),
            groups,
            samples.weights(),
            &request.options,
        )?;
        answer.audits.push(Audit::Values(Box::new(audit)));
    }
    Ok(())
}
