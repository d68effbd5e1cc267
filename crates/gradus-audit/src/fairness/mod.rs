//! Fairness: how decisions, errors and probabilities differ between the groups of a sensitive attribute.
//!
//! | what | of what |
//! |---|---|
//! | [`SensitiveGroups`] | the group of each row; intersections of several attributes |
//! | [`MeasureByGroup`] | any measure in each group, its difference and ratio |
//! | [`audit_decisions`] | the criteria of decisions and probabilities, each with an interval and a test |
//! | [`audit_values`] | the criteria of predicted numbers |
//! | [`audit_exposure`], [`audit_quality`] | recommenders, by groups of items and of users |
//! | [`GroupedSamples`] | samples with groups: what the mitigations learn from |
//! | [`FairReduction`] | mitigation in training: logistic regressions under a constraint |
//! | [`FairPenalty`] | mitigation in training: a penalty on differences of mean scores |
//! | [`FairThresholds`], [`optimize_thresholds`] | mitigation after training: thresholds for each group |
//! | [`FairFeatures`] | mitigation before training: features that do not tell the group, weights |
//!
//! **Tests.** The hypothesis is that a criterion holds. Shares are compared by the generalised Mantel–Haenszel test, means by
//! Welch's, probabilities by score tests; all compare any number of groups at once and reject a criterion that holds at the
//! rate `1 − level`. **Intervals** of a gap hold for all pairs of groups at once (Bonferroni): the largest gap of many groups is
//! large by chance alone, which a plain interval of two groups would take for unfairness.
//!
//! **Small groups.** A group with fewer members than [`AuditOptions::min_group`] is shown with its (wide) intervals, and left
//! out of the criteria with a warning.

mod base;
mod calibration;
mod compare;
mod criteria;
mod exposure;
mod grouped;
mod groups;
mod measures;
mod mitigate;
mod model;
mod penalty;
mod reduction;
mod simplex;
mod statistics;
mod thresholds;
mod values;

pub use calibration::GroupCalibration;
pub use compare::{Gap, Rate};
pub use criteria::{
    DecisionAudit, Decisions, FairnessCriterion, Family, GroupRates, audit_decisions,
};
pub use exposure::{
    ExposureAudit, GroupExposure, GroupQuality, QualityAudit, audit_exposure, audit_quality,
};
pub use grouped::{GroupedFile, GroupedSamples};
pub use groups::{MAX_GROUPS, SensitiveGroups};
pub use measures::{
    Against, Aggregate, GroupMeasure, MeasureByGroup, equalized_odds_difference,
    equalized_odds_ratio,
};
pub use mitigate::{FairFeatures, FairThresholds};
pub use model::{DecisionRule, FairModel};
pub use penalty::FairPenalty;
pub use reduction::FairReduction;
pub use statistics::{Test, TestMethod, chi_square_tail};
pub use thresholds::{
    FrontierPoint, GroupRule, RateConstraint, ThresholdRules, optimize_thresholds,
    threshold_frontier,
};
pub use values::{GroupValues, ValueAudit, audit_values};

use gradus_base::{Error, Result};
use serde::{Deserialize, Serialize};

/// Options of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditOptions {
    /// The level of intervals; a criterion is rejected where its test is rarer than `1 − level`.
    pub level: f64,
    /// Gaps up to this hold for practical purposes: 0.05, five points of a rate.
    pub tolerance: f64,
    /// Groups of fewer members are left out of the criteria: 20, below which tests are not at their stated rate.
    pub min_group: usize,
    /// The number of bins of calibration curves.
    pub n_bins: usize,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { level: 0.95, tolerance: 0.05, min_group: 20, n_bins: 10 }
    }
}

impl AuditOptions {
    fn check(&self) -> Result<()> {
        if !(self.level > 0.0 && self.level < 1.0) {
            let rule = "must be greater than 0 and less than 1";
            return Err(Error::parameter("level", self.level, rule));
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            return Err(Error::parameter("tolerance", self.tolerance, "must be at least 0"));
        }
        if self.min_group < 2 {
            return Err(Error::parameter("min_group", self.min_group, "must be at least 2"));
        }
        if !(1..=1000).contains(&self.n_bins) {
            return Err(Error::parameter("n_bins", self.n_bins, "must be from 1 to 1000"));
        }
        Ok(())
    }

    /// The groups that are large enough to compare, and warnings of the others.
    fn keep(
        &self,
        groups: &SensitiveGroups,
        by_group: &[Vec<u32>],
    ) -> Result<(Vec<usize>, Vec<String>)> {
        let (mut kept, mut warnings) = (Vec::new(), Vec::new());
        for (at, rows) in by_group.iter().enumerate() {
            if rows.len() >= self.min_group {
                kept.push(at);
                continue;
            }
            let members =
                if rows.len() == 1 { "1 member".into() } else { format!("{} members", rows.len()) };
            warnings.push(format!(
                "group `{}` of `{}` has {members}, fewer than {} (option `min_group`): its rates say next to nothing, \
                 and the criteria leave it out",
                groups.names()[at],
                groups.attribute(),
                self.min_group
            ));
        }
        if kept.len() < 2 {
            return Err(Error::data(format!(
                "groups of `{}`: fewer than two have {} members (option `min_group`), so there is nothing to compare; {}",
                groups.attribute(),
                self.min_group,
                warnings.join("; ")
            )));
        }
        Ok((kept, warnings))
    }
}

#[cfg(test)]
mod mitigate_tests;
#[cfg(test)]
mod tests;
