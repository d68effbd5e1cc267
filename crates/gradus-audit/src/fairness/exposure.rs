//! Fairness of recommenders: who is shown, and who is served well.

use super::calibration::moments;
use super::compare::{self, Gap, Rate};
use super::criteria::{FairnessCriterion, Family};
use super::statistics::{Moments, quadratic_form, score_test};
use super::{AuditOptions, SensitiveGroups};
use gradus_base::{Error, Result};
use gradus_metrics::rows;
use serde::Serialize;

/// The share of attention that a group of items gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupExposure {
    /// The group of items.
    pub group: String,
    /// The number of its items.
    pub count: usize,
    /// Its share of the reference: of all items, or of what is relevant.
    pub reference: f64,
    /// Its share of the exposure: places of lists count `1 / log₂(1 + place)`.
    pub exposure: Rate,
}

/// The audit of a recommender by groups of items.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExposureAudit {
    /// The attribute whose groups are compared.
    pub attribute: String,
    /// The number of lists.
    pub count: usize,
    /// The exposure of each group.
    pub groups: Vec<GroupExposure>,
    /// Whether exposure is in proportion to the reference.
    pub criterion: FairnessCriterion,
}

/// Audits lists of recommended items (each list best first, items by number) by groups of items: whether each group has a
/// share of the exposure equal to its share of `reference`, one number an item (all equal if it is left out: the share of
/// the catalogue; or how much each item is liked).
///
/// Lists are the independent units: intervals and the test are over users.
///
/// # Errors
/// If there are fewer than two lists that are not empty, an item has no group, or the reference is negative or 0 everywhere.
///
/// ```
/// use gradus_audit::fairness::{AuditOptions, SensitiveGroups, audit_exposure};
/// let groups = SensitiveGroups::from_words("label", &["major", "major", "indie", "indie"])?;
/// let lists: Vec<Vec<u32>> = (0..60).map(|user| if user % 3 == 0 { vec![2, 0] } else { vec![0, 1] }).collect();
/// let audit = audit_exposure(&lists, &groups, None, &AuditOptions::default())?;
/// assert!(audit.groups[0].exposure.value < 0.3 && audit.groups[0].reference == 0.5);
/// assert_eq!(audit.criterion.rejected, Some(true));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn audit_exposure<L: AsRef<[u32]>>(
    lists: &[L],
    groups: &SensitiveGroups,
    reference: Option<&[f64]>,
    options: &AuditOptions,
) -> Result<ExposureAudit> {
    options.check()?;
    let k = groups.n_groups();
    let mut shares = vec![0.0; k];
    if let Some(reference) = reference {
        rows::same_length("reference", groups.len(), reference.len())?;
        rows::total_weight(Some(reference), groups.len())?;
    }
    for (item, &group) in groups.codes().iter().enumerate() {
        shares[group as usize] += reference.map_or(1.0, |reference| reference[item]);
    }
    let total: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= total);
    // The share of each list that each group gets.
    let mut of_lists: Vec<Vec<f64>> = Vec::new();
    for list in lists.iter().map(AsRef::as_ref).filter(|list| !list.is_empty()) {
        let mut mine = vec![0.0; k];
        let mut all = 0.0;
        for (place, &item) in list.iter().enumerate() {
            let Some(&group) = groups.codes().get(item as usize) else {
                return Err(Error::data(format!(
                    "item {item} of a list has no group: there are {} items",
                    groups.len()
                )));
            };
            let attention = 1.0 / (place as f64 + 2.0).log2();
            mine[group as usize] += attention;
            all += attention;
        }
        mine.iter_mut().for_each(|share| *share /= all);
        of_lists.push(mine);
    }
    let n = of_lists.len();
    if n < 2 {
        return Err(Error::data(format!(
            "exposure by group needs two lists at least that are not empty; there are {n}"
        )));
    }
    let by_group: Vec<Moments> =
        (0..k).map(|g| moments(of_lists.iter().map(|list| (list[g], 1.0)))).collect();
    let level = 1.0 - (1.0 - options.level) / k as f64;
    let (mut difference, mut low, mut high) = (0.0f64, 0.0f64, 0.0f64);
    for (of, share) in by_group.iter().zip(&shares) {
        let rate = Rate::mean(*of, level);
        let (l, h) = (rate.low - share, rate.high - share);
        difference = difference.max((of.mean - share).abs());
        low = low.max(l.max(-h));
        high = high.max(l.abs().max(h.abs()));
    }
    let ratio = by_group.iter().zip(&shares).filter(|(_, share)| **share > 0.0);
    let ratio = ratio.map(|(of, share)| (of.mean / share).min(share / of.mean)).reduce(f64::min);
    let gap = Gap { difference, interval: [low, high.min(1.0)], ratio, ratio_interval: None };
    // One list more, at the reference: lists that are all alike have no variance, and may be far from the reference.
    of_lists.push(shares.clone());
    let m = of_lists.len() as f64;
    let mean = |g: usize| of_lists.iter().map(|list| list[g]).sum::<f64>() / m;
    let means: Vec<f64> = (0..k).map(mean).collect();
    let distance: Vec<f64> = means.iter().zip(&shares).map(|(mean, share)| mean - share).collect();
    let mut covariance = vec![0.0; k * k];
    for list in &of_lists {
        for i in 0..k {
            for j in 0..k {
                covariance[i * k + j] +=
                    (list[i] - means[i]) * (list[j] - means[j]) / ((m - 1.0) * m);
            }
        }
    }
    let (statistic, rank) = quadratic_form(covariance, &distance);
    let about = (
        "proportional exposure",
        Family::Independence,
        "exposure, with the share of the reference",
    );
    let criterion = FairnessCriterion::new(about, Some(gap), score_test(statistic, rank), options);
    let members = groups.rows();
    let found = groups.names().iter().enumerate().map(|(g, name)| {
        let rate = Rate::mean(by_group[g], options.level);
        GroupExposure {
            group: name.clone(),
            count: members[g].len(),
            reference: shares[g],
            exposure: Rate { low: rate.low.max(0.0), high: rate.high.min(1.0), ..rate },
        }
    });
    Ok(ExposureAudit {
        attribute: groups.attribute().to_owned(),
        count: n,
        groups: found.collect(),
        criterion,
    })
}

/// The quality that a group of users gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupQuality {
    /// The group of users.
    pub group: String,
    /// The number of its users.
    pub count: usize,
    /// The mean quality.
    pub quality: Rate,
}

/// The audit of a recommender by groups of users.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QualityAudit {
    /// The attribute whose groups are compared.
    pub attribute: String,
    /// The quality of each group.
    pub groups: Vec<GroupQuality>,
    /// Whether all groups are served equally well.
    pub criterion: FairnessCriterion,
    /// What to be careful about.
    pub warnings: Vec<String>,
}

/// Audits a figure of quality that each user has, an NDCG for instance, by groups of users.
///
/// # Errors
/// If there is not one figure for each user, one is not finite, or no two groups have enough members.
pub fn audit_quality(
    quality: &[f64],
    groups: &SensitiveGroups,
    options: &AuditOptions,
) -> Result<QualityAudit> {
    options.check()?;
    rows::finite("quality", quality)?;
    groups.check_len(quality.len())?;
    let by_group = groups.rows();
    let (kept, warnings) = options.keep(groups, &by_group)?;
    let of = |rows: &[u32]| moments(rows.iter().map(|&row| (quality[row as usize], 1.0)));
    let means: Vec<Moments> = kept.iter().map(|&g| of(&by_group[g])).collect();
    let about = ("equal quality", Family::Separation, "mean quality");
    let gap = compare::means(&means, options.level);
    let criterion = FairnessCriterion::new(about, gap, compare::means_test(&means), options);
    let groups_found = groups.names().iter().zip(&by_group).map(|(name, rows)| GroupQuality {
        group: name.clone(),
        count: rows.len(),
        quality: Rate::mean(of(rows), options.level),
    });
    Ok(QualityAudit {
        attribute: groups.attribute().to_owned(),
        groups: groups_found.collect(),
        criterion,
        warnings,
    })
}
