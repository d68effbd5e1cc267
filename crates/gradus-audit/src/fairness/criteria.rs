//! Criteria of fairness for decisions and probabilities, each with its gap, an interval and a test.

use super::calibration::{self, GroupCalibration};
use super::compare::{self, Gap, Rate};
use super::statistics::Test;
use super::{AuditOptions, SensitiveGroups};
use gradus_base::{Error, Result};
use gradus_metrics::classification::{Roc, RocPoint};
use gradus_metrics::rows;
use serde::Serialize;

/// What a criterion asks to be independent of the group: `A` is the group, `Y` the truth, `R` the prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// `A ⊥ R`: predictions are alike.
    Independence,
    /// `A ⊥ R | Y`: predictions are alike among those who are alike in truth.
    Separation,
    /// `A ⊥ Y | R`: the same prediction means the same.
    Sufficiency,
}

impl Family {
    /// The name in prose, with the independence it stands for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Independence => "independence",
            Self::Separation => "separation",
            Self::Sufficiency => "sufficiency",
        }
    }
}

/// A criterion as found in data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FairnessCriterion {
    /// The name: `demographic parity`.
    pub name: &'static str,
    /// The independence that it asks for.
    pub family: Family,
    /// The figure that has to be equal in all groups, in words.
    pub compares: &'static str,
    /// The largest gap between groups; `None` where it is not defined.
    pub gap: Option<Gap>,
    /// The test that the criterion holds; `None` where the data cannot tell.
    pub test: Option<Test>,
    /// Whether the test rejects the criterion at the level of the audit.
    pub rejected: Option<bool>,
    /// Whether the whole interval of the difference is at most the tolerance of the audit: the criterion holds for
    /// practical purposes.
    pub within_tolerance: Option<bool>,
}

impl FairnessCriterion {
    pub(super) fn new(
        (name, family, compares): (&'static str, Family, &'static str),
        gap: Option<Gap>,
        test: Option<Test>,
        options: &AuditOptions,
    ) -> Self {
        let rejected = test.map(|test| test.p_value < 1.0 - options.level);
        let within_tolerance = gap.map(|gap| gap.interval[1] <= options.tolerance);
        Self { name, family, compares, gap, test, rejected, within_tolerance }
    }

    /// The verdict in words.
    pub fn verdict(&self) -> &'static str {
        match (self.rejected, self.within_tolerance) {
            (Some(true), Some(true)) => "violated, but within the tolerance",
            (Some(true), _) => "violated",
            (Some(false), Some(true)) => "holds within the tolerance",
            (Some(false), _) => "no violation shown",
            (None, Some(true)) => "within the tolerance",
            (None, _) => "cannot be told",
        }
    }
}

/// Decisions, with the truth, and what else is known of each row.
#[derive(Clone, Copy, Debug)]
pub struct Decisions<'a> {
    /// Whether the truth is the favourable class.
    pub truth: &'a [bool],
    /// Whether the decision is the favourable one.
    pub decisions: &'a [bool],
    /// The probability of the favourable class, if the model has probabilities.
    pub probability: Option<&'a [f64]>,
    /// Scores that rank the rows, for the ROC curve; the probability if they are left out.
    pub scores: Option<&'a [f64]>,
    /// Weights: a row of weight 2 counts as two rows.
    pub weights: Option<&'a [f64]>,
}

/// The rates of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupRates {
    /// The group.
    pub group: String,
    /// The number of rows.
    pub count: usize,
    /// The share whose truth is the favourable class.
    pub base_rate: Rate,
    /// The share with the favourable decision.
    pub selection_rate: Rate,
    /// The share with the favourable decision among those of the favourable class.
    pub true_positive_rate: Rate,
    /// The share with the favourable decision among the others.
    pub false_positive_rate: Rate,
    /// The share of the favourable class among those with the favourable decision.
    pub precision: Rate,
    /// The share of the other class among those with the other decision.
    pub negative_predictive_value: Rate,
    /// The share decided right.
    pub accuracy: Rate,
    /// The area below the ROC curve, if there are scores and both classes.
    pub auc: Option<f64>,
    /// The corners of the ROC curve.
    pub roc: Vec<RocPoint>,
    /// How the probabilities of the group agree with what is true, if there are probabilities.
    pub calibration: Option<GroupCalibration>,
}

/// The audit of decisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionAudit {
    /// The attribute whose groups are compared.
    pub attribute: String,
    /// The attribute that conditional criteria hold fixed, if there is one.
    pub conditional_on: Option<String>,
    /// Options of the audit.
    pub options: AuditOptions,
    /// The number of rows.
    pub count: usize,
    /// The rates over all rows.
    pub overall: GroupRates,
    /// The rates of each group.
    pub groups: Vec<GroupRates>,
    /// The criteria.
    pub criteria: Vec<FairnessCriterion>,
    /// What to be careful about: groups that are too small, for instance.
    pub warnings: Vec<String>,
}

/// Counts of a set of rows by truth and decision.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    /// `[truth][decision]`.
    cells: [[f64; 2]; 2],
}

impl Table {
    fn add(&mut self, truth: bool, decision: bool, weight: f64) {
        self.cells[usize::from(truth)][usize::from(decision)] += weight;
    }

    fn selected(&self) -> (f64, f64) {
        let [[tn, fp], [fneg, tp]] = self.cells;
        (fp + tp, tn + fp + fneg + tp)
    }

    fn positive(&self) -> (f64, f64) {
        let [[tn, fp], [fneg, tp]] = self.cells;
        (fneg + tp, tn + fp + fneg + tp)
    }

    fn right(&self) -> (f64, f64) {
        let [[tn, fp], [fneg, tp]] = self.cells;
        (tn + tp, tn + fp + fneg + tp)
    }

    fn tpr(&self) -> (f64, f64) {
        (self.cells[1][1], self.cells[1][0] + self.cells[1][1])
    }

    fn fpr(&self) -> (f64, f64) {
        (self.cells[0][1], self.cells[0][0] + self.cells[0][1])
    }

    fn precision(&self) -> (f64, f64) {
        (self.cells[1][1], self.cells[0][1] + self.cells[1][1])
    }

    fn npv(&self) -> (f64, f64) {
        (self.cells[0][0], self.cells[0][0] + self.cells[1][0])
    }
}

/// Audits decisions (and probabilities, if there are any) by group. `conditional` holds another attribute fixed: the
/// criteria of decisions are then also measured and tested within its values, and only groups of like value compared.
///
/// # Errors
/// If the lengths differ, a probability is not from 0 to 1, or no two groups have enough members.
///
/// ```
/// use gradus_audit::fairness::{AuditOptions, Decisions, SensitiveGroups, audit_decisions};
/// let (truth, decisions): (Vec<bool>, Vec<bool>) = (0..400).map(|at| (at % 2 == 0, at % 4 < 2 && at < 300)).unzip();
/// let words: Vec<&str> = (0..400).map(|at| if at < 200 { "a" } else { "b" }).collect();
/// let data = Decisions { truth: &truth, decisions: &decisions, probability: None, scores: None, weights: None };
/// let audit = audit_decisions(&data, &SensitiveGroups::from_words("g", &words)?, None, &AuditOptions::default())?;
/// let parity = &audit.criteria[0];
/// assert_eq!((parity.name, parity.gap.unwrap().difference, parity.rejected), ("demographic parity", 0.25, Some(true)));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn audit_decisions(
    data: &Decisions<'_>,
    groups: &SensitiveGroups,
    conditional: Option<&SensitiveGroups>,
    options: &AuditOptions,
) -> Result<DecisionAudit> {
    options.check()?;
    let n = data.truth.len();
    rows::same_length("decisions", n, data.decisions.len())?;
    rows::total_weight(data.weights, n)?;
    groups.check_len(n)?;
    if let Some(probability) = data.probability {
        rows::same_length("probabilities", n, probability.len())?;
        let wrong = probability.iter().position(|p| !(0.0..=1.0).contains(p));
        if let Some(row) = wrong {
            return Err(Error::data(format!(
                "probability, row {}: {} must be from 0 to 1",
                row + 1,
                probability[row]
            )));
        }
    }
    if let Some(scores) = data.scores {
        rows::same_length("scores", n, scores.len())?;
        rows::finite("scores", scores)?;
    }
    if let Some(conditional) = conditional {
        conditional.check_len(n)?;
    }
    let by_group = groups.rows();
    let (kept, warnings) = options.keep(groups, &by_group)?;
    let all: Vec<u32> = (0..n as u32).collect();
    let groups_rates: Result<Vec<GroupRates>> = groups
        .names()
        .iter()
        .zip(&by_group)
        .map(|(name, rows)| group_rates(name, data, rows, options))
        .collect();
    let mut criteria = decision_criteria(data, groups, &kept, None, options);
    if let Some(conditional) = conditional {
        criteria.extend(decision_criteria(data, groups, &kept, Some(conditional), options));
    }
    if let Some(probability) = data.probability {
        let kept_rows: Vec<&[u32]> = kept.iter().map(|&g| by_group[g].as_slice()).collect();
        criteria.extend(calibration::criteria(data, probability, &kept_rows, options));
    }
    Ok(DecisionAudit {
        attribute: groups.attribute().to_owned(),
        conditional_on: conditional.map(|c| c.attribute().to_owned()),
        options: options.clone(),
        count: n,
        overall: group_rates("all", data, &all, options)?,
        groups: groups_rates?,
        criteria,
        warnings,
    })
}

fn group_rates(
    name: &str,
    data: &Decisions<'_>,
    rows: &[u32],
    options: &AuditOptions,
) -> Result<GroupRates> {
    let mut table = Table::default();
    for &row in rows {
        let row = row as usize;
        let weight = data.weights.map_or(1.0, |weights| weights[row]);
        table.add(data.truth[row], data.decisions[row], weight);
    }
    let share = |counts| Rate::share(counts, options.level);
    let mut rates = GroupRates {
        group: name.to_owned(),
        count: rows.len(),
        base_rate: share(table.positive()),
        selection_rate: share(table.selected()),
        true_positive_rate: share(table.tpr()),
        false_positive_rate: share(table.fpr()),
        precision: share(table.precision()),
        negative_predictive_value: share(table.npv()),
        accuracy: share(table.right()),
        auc: None,
        roc: Vec::new(),
        calibration: None,
    };
    let pick =
        |values: &[f64]| -> Vec<f64> { rows.iter().map(|&row| values[row as usize]).collect() };
    let truth: Vec<bool> = rows.iter().map(|&row| data.truth[row as usize]).collect();
    let weights = data.weights.map(pick);
    let both = table.tpr().1 > 0.0 && table.fpr().1 > 0.0;
    if let (Some(scores), true) = (data.scores.or(data.probability), both) {
        let roc = Roc::new(&truth, &pick(scores), weights.as_deref())?;
        rates.auc = Some(roc.auc());
        rates.roc = roc.corners().points().to_vec();
    }
    if let (Some(probability), true) = (data.probability, table.selected().1 > 0.0) {
        let found = calibration::of_group(&truth, &pick(probability), weights.as_deref(), options)?;
        rates.calibration = Some(found);
    }
    Ok(rates)
}

/// The criteria of decisions: of all rows at once, or within the values of another attribute.
fn decision_criteria(
    data: &Decisions<'_>,
    groups: &SensitiveGroups,
    kept: &[usize],
    conditional: Option<&SensitiveGroups>,
    options: &AuditOptions,
) -> Vec<FairnessCriterion> {
    let n_strata = conditional.map_or(1, SensitiveGroups::n_groups);
    let mut place = vec![None; groups.n_groups()];
    kept.iter().enumerate().for_each(|(new, &old)| place[old] = Some(new));
    let mut tables = vec![vec![Table::default(); kept.len()]; n_strata];
    for (row, (&truth, &decision)) in data.truth.iter().zip(data.decisions).enumerate() {
        let Some(group) = place[groups.codes()[row] as usize] else { continue };
        let stratum = conditional.map_or(0, |c| c.codes()[row] as usize);
        let weight = data.weights.map_or(1.0, |weights| weights[row]);
        tables[stratum][group].add(truth, decision, weight);
    }
    let part = |of: fn(&Table) -> (f64, f64)| -> Vec<Vec<(f64, f64)>> {
        tables.iter().map(|stratum| stratum.iter().map(of).collect()).collect()
    };
    let criterion = |about, parts: &[Vec<Vec<(f64, f64)>>]| {
        // Both rates are compared, or none is.
        let gaps = parts.iter().map(|p| compare::shares(p, options.level, parts.len()));
        let gaps: Option<Vec<Gap>> = gaps.collect();
        // Given what a part holds fixed, the counts of the parts are independent.
        let test = Test::sum(parts.iter().filter_map(|p| compare::shares_test(p)));
        let gap = gaps.and_then(|gaps| gaps.into_iter().reduce(Gap::worse));
        FairnessCriterion::new(about, gap, test, options)
    };
    use Family::{Independence, Separation, Sufficiency};
    let (selected, tpr, fpr) = (part(Table::selected), part(Table::tpr), part(Table::fpr));
    if conditional.is_some() {
        return vec![
            criterion(
                (
                    "conditional demographic parity",
                    Independence,
                    "selection rate at the same value",
                ),
                &[selected],
            ),
            criterion(
                (
                    "conditional equal opportunity",
                    Separation,
                    "true positive rate at the same value",
                ),
                std::slice::from_ref(&tpr),
            ),
            criterion(
                (
                    "conditional equalised odds",
                    Separation,
                    "true and false positive rates at the same value",
                ),
                &[tpr, fpr],
            ),
        ];
    }
    let (precision, npv) = (part(Table::precision), part(Table::npv));
    vec![
        criterion(("demographic parity", Independence, "selection rate"), &[selected]),
        criterion(
            ("equal opportunity", Separation, "true positive rate"),
            std::slice::from_ref(&tpr),
        ),
        criterion(("equalised odds", Separation, "true and false positive rates"), &[tpr, fpr]),
        criterion(
            ("predictive parity", Sufficiency, "precision"),
            std::slice::from_ref(&precision),
        ),
        criterion(
            ("sufficiency of decisions", Sufficiency, "precision and negative predictive value"),
            &[precision, npv],
        ),
    ]
}
