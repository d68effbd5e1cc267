//! Fairness of predicted numbers, and of any figure that each row has.

use super::calibration::moments;
use super::compare::{self, Rate};
use super::criteria::{FairnessCriterion, Family};
use super::statistics::Moments;
use super::{AuditOptions, SensitiveGroups};
use gradus_base::Result;
use gradus_metrics::rows;
use serde::Serialize;

/// The figures of a group of predicted numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupValues {
    /// The group.
    pub group: String,
    /// The number of rows.
    pub count: usize,
    /// The mean of the truth.
    pub mean_truth: Rate,
    /// The mean prediction.
    pub mean_prediction: Rate,
    /// The mean of truth less prediction: positive where the group is underrated.
    pub mean_residual: Rate,
    /// The mean absolute error.
    pub mean_absolute_error: Rate,
    /// The root mean squared error.
    pub root_mean_squared_error: f64,
}

/// The audit of predicted numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueAudit {
    /// The attribute whose groups are compared.
    pub attribute: String,
    /// Options of the audit; the tolerance is a share of the standard deviation of the truth.
    pub options: AuditOptions,
    /// The number of rows.
    pub count: usize,
    /// The figures over all rows.
    pub overall: GroupValues,
    /// The figures of each group.
    pub groups: Vec<GroupValues>,
    /// The criteria.
    pub criteria: Vec<FairnessCriterion>,
    /// What to be careful about.
    pub warnings: Vec<String>,
}

/// Audits predicted numbers by group: whether groups have the same mean prediction (independence), the same mean residual
/// (no group is systematically over- or underrated) and the same mean absolute error.
///
/// # Errors
/// If the lengths differ, a number is not finite, or no two groups have enough members.
///
/// ```
/// use gradus_audit::fairness::{AuditOptions, SensitiveGroups, audit_values};
/// let truth: Vec<f64> = (0..100).map(f64::from).collect();
/// let predicted: Vec<f64> = (0..100).map(|at| f64::from(at) - if at % 2 == 0 { 9.0 } else { 0.0 }).collect();
/// let words: Vec<&str> = (0..100).map(|at| ["a", "b"][at % 2]).collect();
/// let audit = audit_values(&truth, &predicted, &SensitiveGroups::from_words("g", &words)?, None, &AuditOptions::default())?;
/// assert_eq!(audit.groups[0].mean_residual.value, 9.0);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn audit_values(
    truth: &[f64],
    predicted: &[f64],
    groups: &SensitiveGroups,
    weights: Option<&[f64]>,
    options: &AuditOptions,
) -> Result<ValueAudit> {
    options.check()?;
    rows::same_length("predictions", truth.len(), predicted.len())?;
    rows::total_weight(weights, truth.len())?;
    rows::finite("truth", truth)?;
    rows::finite("predictions", predicted)?;
    groups.check_len(truth.len())?;
    let by_group = groups.rows();
    let (kept, warnings) = options.keep(groups, &by_group)?;
    let all: Vec<u32> = (0..truth.len() as u32).collect();
    let weight = |row: u32| weights.map_or(1.0, |weights| weights[row as usize]);
    let of = |rows: &[u32], what: &dyn Fn(usize) -> f64| {
        moments(rows.iter().map(|&row| (what(row as usize), weight(row))))
    };
    let residual = |row: usize| truth[row] - predicted[row];
    let figures = |name: &str, rows: &[u32]| {
        let mean = |what: &dyn Fn(usize) -> f64| Rate::mean(of(rows, what), options.level);
        GroupValues {
            group: name.to_owned(),
            count: rows.len(),
            mean_truth: mean(&|row| truth[row]),
            mean_prediction: mean(&|row| predicted[row]),
            mean_residual: mean(&residual),
            mean_absolute_error: mean(&|row| residual(row).abs()),
            root_mean_squared_error: of(rows, &|row| residual(row).powi(2)).mean.sqrt(),
        }
    };
    let spread = of(&all, &|row| truth[row]).variance.sqrt();
    let in_units = AuditOptions { tolerance: options.tolerance * spread, ..options.clone() };
    let criterion = |about, what: &dyn Fn(usize) -> f64| {
        let means: Vec<Moments> = kept.iter().map(|&g| of(&by_group[g], what)).collect();
        let gap = compare::means(&means, options.level);
        FairnessCriterion::new(about, gap, compare::means_test(&means), &in_units)
    };
    let criteria = vec![
        criterion(("equal mean prediction", Family::Independence, "mean prediction"), &|row| {
            predicted[row]
        }),
        criterion(
            ("equal mean residual", Family::Sufficiency, "mean of truth less prediction"),
            &residual,
        ),
        criterion(
            ("equal mean absolute error", Family::Separation, "mean absolute error"),
            &|row| residual(row).abs(),
        ),
    ];
    let names = groups.names().iter().zip(&by_group);
    Ok(ValueAudit {
        attribute: groups.attribute().to_owned(),
        options: options.clone(),
        count: truth.len(),
        overall: figures("all", &all),
        groups: names.map(|(name, rows)| figures(name, rows)).collect(),
        criteria,
        warnings,
    })
}
