//! What thresholds for each group would buy: accuracy against disparity.

use gradus::audit::fairness::{
    Against, Aggregate, Decisions, FrontierPoint, GroupMeasure, MeasureByGroup, RateConstraint,
    SensitiveGroups, equalized_odds_difference, optimize_thresholds, threshold_frontier,
};
use gradus_base::Result;
use serde::Serialize;

/// What thresholds for each group would buy.
#[derive(Clone, Debug, Serialize)]
pub struct Mitigation {
    /// The attribute.
    pub attribute: String,
    /// The constraint: `demographic_parity`.
    pub constraint: &'static str,
    /// The accuracy of the decisions as they are.
    pub accuracy: f64,
    /// The difference that the constraint is about, of the decisions as they are.
    pub difference: f64,
    /// The expected accuracy of thresholds for each group, chosen on the other half of the rows.
    pub accuracy_after: f64,
    /// The difference of their expected rates, on rows they were not chosen on.
    pub difference_after: f64,
    /// The greatest accuracy for each bound on the difference (of equalised odds on that of either rate), on all rows.
    pub frontier: Frontier,
}

/// The frontier of accuracy against disparity.
#[derive(Clone, Debug, Serialize)]
pub struct Frontier {
    /// The points, by rising difference.
    pub points: Vec<FrontierPoint>,
}

/// The constraints that are tried.
const TRIED: [RateConstraint; 3] = [
    RateConstraint::DemographicParity,
    RateConstraint::TruePositiveRateParity,
    RateConstraint::EqualizedOdds,
];

/// Thresholds chosen on half of the rows and evaluated on the other half, twice. Groups too small for a rate leave out
/// the constraints that need it.
pub(super) fn evaluate(
    data: &Decisions<'_>,
    scores: &[f64],
    groups: &SensitiveGroups,
) -> Result<Vec<Mitigation>> {
    let number = |values: &[bool]| -> Vec<f64> {
        values.iter().map(|&value| f64::from(u8::from(value))).collect()
    };
    let (truth, decisions) = (number(data.truth), number(data.decisions));
    let mut found = Vec::new();
    for constraint in TRIED {
        // A group too small for a rate is said in the warnings of the audit.
        let Ok(expected) = across(data, scores, groups, constraint) else { continue };
        let accuracy = GroupMeasure::AccuracyScore.of(&truth, &decisions, data.weights)?;
        let difference = match constraint {
            RateConstraint::EqualizedOdds => {
                let how = (Against::BetweenGroups, Aggregate::WorstCase);
                equalized_odds_difference(&truth, &decisions, groups, data.weights, how)?
            }
            other => {
                let measure = match other {
                    RateConstraint::DemographicParity => GroupMeasure::SelectionRate,
                    _ => GroupMeasure::TruePositiveRate,
                };
                MeasureByGroup::new(measure, &truth, &decisions, groups, data.weights)?
                    .difference(Against::BetweenGroups)
            }
        };
        let most = (1.5 * difference).clamp(0.05, 1.0);
        let bounds: Vec<f64> = (0..=24).map(|step| most * f64::from(step) / 24.0).collect();
        let how = (constraint, bounds.as_slice());
        let points = threshold_frontier(scores, data.truth, groups, data.weights, how)?;
        let frontier = Frontier { points };
        let (accuracy_after, difference_after) =
            expected_rates(data, groups, &expected, constraint);
        found.push(Mitigation {
            attribute: groups.attribute().to_owned(),
            constraint: constraint.name(),
            accuracy,
            difference,
            accuracy_after,
            difference_after,
            frontier,
        });
    }
    Ok(found)
}

/// The probability of the favourable decision for each row, by rules from the other half of the rows.
fn across(
    data: &Decisions<'_>,
    scores: &[f64],
    groups: &SensitiveGroups,
    constraint: RateConstraint,
) -> Result<Vec<f64>> {
    let mut expected = vec![0.0; scores.len()];
    // Rows of a group take turns, so that both halves have about as many of each.
    let mut seen = vec![[0usize; 2]; groups.n_groups()];
    let half: Vec<usize> = groups
        .codes()
        .iter()
        .zip(data.truth)
        .map(|(&group, &truth)| {
            let count = &mut seen[group as usize][usize::from(truth)];
            *count += 1;
            *count % 2
        })
        .collect();
    for side in 0..2 {
        let rows: Vec<usize> = (0..scores.len()).filter(|&row| half[row] != side).collect();
        let names = groups.names().to_vec();
        let codes = rows.iter().map(|&row| groups.codes()[row]).collect();
        let theirs = SensitiveGroups::new(groups.attribute(), names, codes)?;
        if theirs.n_groups() != groups.n_groups() {
            return Err(gradus_base::Error::data("a group has members in one half only"));
        }
        let weights: Option<Vec<f64>> =
            data.weights.map(|weights| rows.iter().map(|&row| weights[row]).collect());
        let rules = optimize_thresholds(
            &rows.iter().map(|&row| scores[row]).collect::<Vec<f64>>(),
            &rows.iter().map(|&row| data.truth[row]).collect::<Vec<bool>>(),
            &theirs,
            weights.as_deref(),
            constraint,
        )?;
        for row in (0..scores.len()).filter(|&row| half[row] == side) {
            let rule = &rules.rules[groups.codes()[row] as usize];
            expected[row] = rule.probability(scores[row]);
        }
    }
    Ok(expected)
}

/// The expected accuracy, and the difference that a constraint is about.
fn expected_rates(
    data: &Decisions<'_>,
    groups: &SensitiveGroups,
    expected: &[f64],
    constraint: RateConstraint,
) -> (f64, f64) {
    let weight = |row: usize| data.weights.map_or(1.0, |weights| weights[row]);
    let (mut right, mut total) = (0.0, 0.0);
    let mut cells = vec![[[0.0; 2]; 3]; groups.n_groups()];
    for (row, &p) in expected.iter().enumerate() {
        let (w, truth) = (weight(row), data.truth[row]);
        right += w * if truth { p } else { 1.0 - p };
        total += w;
        for part in [usize::from(truth), 2] {
            let cell = &mut cells[groups.codes()[row] as usize][part];
            cell[0] += w * p;
            cell[1] += w;
        }
    }
    let gap = |part: usize| {
        let rates = cells.iter().map(|c| c[part][0] / c[part][1]).filter(|rate| !rate.is_nan());
        let ends = rates.fold((f64::MAX, f64::MIN), |(a, b), rate| (a.min(rate), b.max(rate)));
        ends.1 - ends.0
    };
    let difference = match constraint {
        RateConstraint::DemographicParity => gap(2),
        RateConstraint::TruePositiveRateParity => gap(1),
        RateConstraint::FalsePositiveRateParity => gap(0),
        RateConstraint::EqualizedOdds => gap(0).max(gap(1)),
    };
    (right / total, difference)
}
