//! Decisions from scores that meet a constraint: a threshold, or two with a coin, for each group.
//!
//! Reference: Hardt, Price, Srebro: Equality of opportunity in supervised learning, 2016.

use super::SensitiveGroups;
use gradus_base::{Error, Result};
use gradus_metrics::rows;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What has to be equal in all groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateConstraint {
    /// The selection rate.
    #[default]
    DemographicParity,
    /// The true and the false positive rate.
    EqualizedOdds,
    /// The true positive rate (equal opportunity).
    TruePositiveRateParity,
    /// The false positive rate.
    FalsePositiveRateParity,
}

impl RateConstraint {
    /// The name for programs: `demographic_parity`.
    pub fn name(self) -> &'static str {
        match self {
            Self::DemographicParity => "demographic_parity",
            Self::EqualizedOdds => "equalized_odds",
            Self::TruePositiveRateParity => "true_positive_rate_parity",
            Self::FalsePositiveRateParity => "false_positive_rate_parity",
        }
    }

    /// The constraint of this name.
    ///
    /// # Errors
    /// If there is none; the message lists those there are.
    pub fn parse(name: &str) -> Result<Self> {
        let all = [
            Self::DemographicParity,
            Self::EqualizedOdds,
            Self::TruePositiveRateParity,
            Self::FalsePositiveRateParity,
        ];
        all.into_iter().find(|one| one.name() == name).ok_or_else(|| Error::UnknownName {
            what: "constraint",
            name: name.to_owned(),
            known: all.map(Self::name).join(", "),
        })
    }

    /// The classes (1, 0) that the constraint compares within; all rows for demographic parity.
    pub(super) fn classes(self) -> &'static [Option<bool>] {
        match self {
            Self::DemographicParity => &[None],
            Self::EqualizedOdds => &[Some(true), Some(false)],
            Self::TruePositiveRateParity => &[Some(true)],
            Self::FalsePositiveRateParity => &[Some(false)],
        }
    }
}

/// The rule of a group: the favourable decision has the probability
/// `q · c + (1 − q) (p₀ [score > t₀] + p₁ [score > t₁])`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupRule {
    /// The first threshold t₀.
    pub first: f64,
    /// The second threshold t₁.
    pub second: f64,
    /// The probability p₁ of deciding by the second threshold; p₀ is 1 − p₁.
    pub use_second: f64,
    /// The probability q of not looking at the score.
    pub ignore_score: f64,
    /// The probability c of the favourable decision if the score is not looked at.
    pub constant: f64,
}

impl GroupRule {
    /// The probability of the favourable decision for a score.
    pub fn probability(&self, score: f64) -> f64 {
        let above = |threshold: f64| f64::from(u8::from(score > threshold));
        let by_score =
            (1.0 - self.use_second) * above(self.first) + self.use_second * above(self.second);
        self.ignore_score * self.constant + (1.0 - self.ignore_score) * by_score
    }

    /// Whether a coin decides some rows.
    pub fn is_random(&self) -> bool {
        let coin = self.use_second > 0.0 && self.use_second < 1.0 && self.first != self.second;
        coin || self.ignore_score > 0.0
    }
}

/// The rules of all groups, and what they reach in expectation on the rows they were found on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRules {
    /// The rule of each group.
    pub rules: Vec<GroupRule>,
    /// The expected accuracy.
    pub accuracy: f64,
    /// The expected selection rate of each group.
    pub selection_rates: Vec<f64>,
    /// The expected true positive rate of each group.
    pub true_positive_rates: Vec<f64>,
    /// The expected false positive rate of each group.
    pub false_positive_rates: Vec<f64>,
}

/// What a threshold gives in a group: weights of its rows above it.
#[derive(Clone, Copy, Debug)]
struct Point {
    threshold: f64,
    /// False and true positives as shares of their class.
    fpr: f64,
    tpr: f64,
}

struct Curve {
    points: Vec<Point>,
    positives: f64,
    negatives: f64,
}

/// A corner of the hull: the rate that is to be equal, what is to be large, and the threshold.
#[derive(Clone, Copy, Debug)]
struct Corner {
    x: f64,
    y: f64,
    threshold: f64,
}

/// Finds the rules of greatest accuracy under a constraint, exactly: the best common rate is a corner of the hull of some
/// group, and all of them are tried. Coins between two thresholds make the rates equal, and not nearly so.
///
/// # Errors
/// If the lengths differ, a score is not finite, or a group lacks a class that the constraint needs; the message names the
/// group.
///
/// ```
/// use gradus_audit::fairness::{RateConstraint, SensitiveGroups, optimize_thresholds};
/// let scores = [0.1, 0.4, 0.6, 0.9, 0.2, 0.3, 0.5, 0.7];
/// let truth = [false, false, true, true, false, true, false, true];
/// let groups = SensitiveGroups::from_words("g", &["a", "a", "a", "a", "b", "b", "b", "b"])?;
/// let found = optimize_thresholds(&scores, &truth, &groups, None, RateConstraint::EqualizedOdds)?;
/// assert!((found.true_positive_rates[0] - found.true_positive_rates[1]).abs() < 1e-12);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn optimize_thresholds(
    scores: &[f64],
    truth: &[bool],
    groups: &SensitiveGroups,
    weights: Option<&[f64]>,
    constraint: RateConstraint,
) -> Result<ThresholdRules> {
    let n = truth.len();
    rows::same_length("scores", n, scores.len())?;
    rows::finite("scores", scores)?;
    rows::total_weight(weights, n)?;
    groups.check_len(n)?;
    check_cells(truth, groups, weights, constraint)?;
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let curves: Vec<Curve> =
        groups.rows().into_iter().map(|rows| curve(rows, scores, truth, weight)).collect();
    let total: f64 = curves.iter().map(|curve| curve.positives + curve.negatives).sum();
    let (rules, rate) = if constraint == RateConstraint::EqualizedOdds {
        equal_odds(&curves)
    } else {
        equal_rate(&curves, constraint, total)
    };
    debug_assert!(rate.is_finite());
    let mut found = ThresholdRules {
        rules,
        accuracy: 0.0,
        selection_rates: Vec::new(),
        true_positive_rates: Vec::new(),
        false_positive_rates: Vec::new(),
    };
    for (curve, rule) in curves.iter().zip(&found.rules) {
        let at = |threshold: f64| {
            let found = curve.points.iter().find(|point| point.threshold == threshold);
            found.copied().unwrap_or(Point { threshold, fpr: 0.0, tpr: 0.0 })
        };
        let (a, b) = (at(rule.first), at(rule.second));
        let mix = |a: f64, b: f64| {
            let by_score = (1.0 - rule.use_second) * a + rule.use_second * b;
            rule.ignore_score * rule.constant + (1.0 - rule.ignore_score) * by_score
        };
        let (fpr, tpr) = (mix(a.fpr, b.fpr), mix(a.tpr, b.tpr));
        let (positives, negatives) = (curve.positives, curve.negatives);
        found.accuracy += (tpr * positives + (1.0 - fpr) * negatives) / total;
        let selected = (tpr * positives + fpr * negatives) / (positives + negatives);
        found.selection_rates.push(selected);
        found.true_positive_rates.push(tpr);
        found.false_positive_rates.push(fpr);
    }
    Ok(found)
}

/// A point of the frontier: the least error at a bound on the disparity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrontierPoint {
    /// The largest difference of the rate between groups that is allowed.
    pub difference: f64,
    /// The greatest expected accuracy under that bound.
    pub accuracy: f64,
}

/// The frontier of accuracy against disparity: the greatest expected accuracy of thresholds for each group, for each bound on
/// how far the rates of the groups may be apart. Exact, as [`optimize_thresholds`] is; of equalised odds, where both rates are
/// bounded, to nine digits.
///
/// # Errors
/// As [`optimize_thresholds`]; and if a bound is not from 0 to 1.
pub fn threshold_frontier(
    scores: &[f64],
    truth: &[bool],
    groups: &SensitiveGroups,
    weights: Option<&[f64]>,
    (constraint, bounds): (RateConstraint, &[f64]),
) -> Result<Vec<FrontierPoint>> {
    let n = truth.len();
    rows::same_length("scores", n, scores.len())?;
    rows::finite("scores", scores)?;
    rows::total_weight(weights, n)?;
    groups.check_len(n)?;
    check_cells(truth, groups, weights, constraint)?;
    if let Some(bound) = bounds.iter().find(|bound| !(0.0..=1.0).contains(*bound)) {
        return Err(Error::parameter("bounds", bound, "must be from 0 to 1"));
    }
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let curves: Vec<Curve> =
        groups.rows().into_iter().map(|rows| curve(rows, scores, truth, weight)).collect();
    let total: f64 = curves.iter().map(|curve| curve.positives + curve.negatives).sum();
    if constraint == RateConstraint::EqualizedOdds {
        let odds = Odds::new(&curves, total);
        let at_bound =
            |&difference: &f64| FrontierPoint { difference, accuracy: odds.best(difference) };
        return Ok(bounds.iter().map(at_bound).collect());
    }
    let hulls = rate_hulls(&curves, constraint, total);
    // Each group alone is best at one corner; in a window of rates, at the rate of the window that is nearest to it.
    let best: Vec<f64> = hulls
        .iter()
        .map(|hull| hull.iter().fold(hull[0], |best, c| if c.y > best.y { *c } else { best }).x)
        .collect();
    let at_bound = |&difference: &f64| {
        let right = |low: f64| -> f64 {
            let window = |x: f64| x.clamp(low, (low + difference).min(1.0));
            hulls.iter().zip(&best).map(|(hull, &x)| at(hull, window(x)).0).sum()
        };
        let corners = hulls.iter().flatten().map(|corner| corner.x);
        let starts = corners.flat_map(|x| [x, (x - difference).max(0.0)]);
        let accuracy = starts.map(right).fold(0.0, f64::max);
        FrontierPoint { difference, accuracy }
    };
    Ok(bounds.iter().map(at_bound).collect())
}

/// Checks that every group has rows of every class that a constraint compares.
pub(super) fn check_cells(
    truth: &[bool],
    groups: &SensitiveGroups,
    weights: Option<&[f64]>,
    constraint: RateConstraint,
) -> Result<()> {
    for class in constraint.classes() {
        let mut members = vec![0usize; groups.n_groups()];
        for (row, &group) in groups.codes().iter().enumerate() {
            let counts = weights.is_none_or(|weights| weights[row] > 0.0);
            members[group as usize] += usize::from(counts && class.is_none_or(|c| c == truth[row]));
        }
        let Some(at) = members.iter().position(|n| *n < 2) else { continue };
        let of = match class {
            None => String::new(),
            Some(class) => format!(" of the {} class", if *class { "favourable" } else { "other" }),
        };
        let n = match members[at] {
            0 => "no sample".to_owned(),
            _ => "1 sample".to_owned(),
        };
        return Err(Error::data(format!(
            "group `{}` of `{}` has {n}{of}, and {} needs two at least to know a rate: merge the group with another, \
             or leave its rows out",
            groups.names()[at],
            groups.attribute(),
            constraint.name()
        )));
    }
    Ok(())
}

/// The points of a group from the threshold that selects nobody to the one that selects all.
fn curve(
    mut rows: Vec<u32>,
    scores: &[f64],
    truth: &[bool],
    weight: impl Fn(usize) -> f64,
) -> Curve {
    rows.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
    let of = |class: bool| -> f64 {
        rows.iter().map(|&row| row as usize).filter(|&row| truth[row] == class).map(&weight).sum()
    };
    let (positives, negatives) = (of(true), of(false));
    let share = |x: f64, all: f64| if all > 0.0 { x / all } else { 0.0 };
    let mut points = vec![Point { threshold: f64::MAX, fpr: 0.0, tpr: 0.0 }];
    let (mut fp, mut tp) = (0.0, 0.0);
    for (at, &row) in rows.iter().enumerate() {
        let row = row as usize;
        if truth[row] {
            tp += weight(row)
        } else {
            fp += weight(row)
        }
        let next = rows.get(at + 1).map(|&next| scores[next as usize]);
        if next == Some(scores[row]) {
            continue;
        }
        // Halfway to the next score, where rounding leaves room for it.
        let threshold = match next {
            None => f64::MIN,
            Some(next) => {
                let middle = 0.5 * next + 0.5 * scores[row];
                if middle < scores[row] { middle.max(next) } else { next }
            }
        };
        let last = next.is_none();
        points.push(Point {
            threshold,
            fpr: if last && negatives > 0.0 { 1.0 } else { share(fp, negatives) },
            tpr: if last && positives > 0.0 { 1.0 } else { share(tp, positives) },
        });
    }
    Curve { points, positives, negatives }
}

/// The upper concave hull of points whose x ascends.
fn hull(points: impl IntoIterator<Item = Corner>) -> Vec<Corner> {
    let mut hull: Vec<Corner> = Vec::new();
    for point in points {
        if let Some(last) = hull.last()
            && last.x == point.x
        {
            if last.y >= point.y {
                continue;
            }
            hull.pop();
        }
        while let [.., a, b] = hull.as_slice() {
            let turn = (b.x - a.x) * (point.y - a.y) - (point.x - a.x) * (b.y - a.y);
            if turn < 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The height of a hull, and the two corners about it with the share of the second.
fn at(hull: &[Corner], x: f64) -> (f64, Corner, Corner, f64) {
    let right = hull.partition_point(|corner| corner.x < x).min(hull.len() - 1);
    let (a, b) = (hull[right.saturating_sub(1)], hull[right]);
    let width = b.x - a.x;
    let share = if width > 0.0 { ((x - a.x) / width).clamp(0.0, 1.0) } else { 1.0 };
    (a.y + share * (b.y - a.y), a, b, share)
}

fn rule(hull: &[Corner], x: f64) -> GroupRule {
    let (_, a, b, share) = at(hull, x);
    GroupRule {
        first: a.threshold,
        second: b.threshold,
        use_second: share,
        ignore_score: 0.0,
        constant: 0.0,
    }
}

/// For each group, the hull of a rate and the weight of right decisions, as a share of all rows.
fn rate_hulls(curves: &[Curve], constraint: RateConstraint, total: f64) -> Vec<Vec<Corner>> {
    let of = |curve: &Curve| {
        let (p, n) = (curve.positives, curve.negatives);
        hull(curve.points.iter().map(|point| Corner {
            x: match constraint {
                RateConstraint::TruePositiveRateParity => point.tpr,
                RateConstraint::FalsePositiveRateParity => point.fpr,
                _ => (point.tpr * p + point.fpr * n) / (p + n),
            },
            y: (point.tpr * p + (1.0 - point.fpr) * n) / total,
            threshold: point.threshold,
        }))
    };
    curves.iter().map(of).collect()
}

/// One rate equal in all groups, and the expected number of right decisions largest.
fn equal_rate(curves: &[Curve], constraint: RateConstraint, total: f64) -> (Vec<GroupRule>, f64) {
    let hulls = rate_hulls(curves, constraint, total);
    let right = |x: f64| hulls.iter().map(|hull| at(hull, x).0).sum::<f64>();
    let best = hulls.iter().flatten().map(|corner| (right(corner.x), corner.x));
    // Of equally good rates the smallest.
    let (_, x) = best.fold((f64::NEG_INFINITY, 0.0), |best, one| {
        if one.0 > best.0 || one.0 == best.0 && one.1 < best.1 { one } else { best }
    });
    (hulls.iter().map(|hull| rule(hull, x)).collect(), x)
}

fn roc_hulls(curves: &[Curve]) -> Vec<Vec<Corner>> {
    let corner = |point: &Point| Corner { x: point.fpr, y: point.tpr, threshold: point.threshold };
    curves.iter().map(|curve| hull(curve.points.iter().map(corner))).collect()
}

/// The steps of a golden section: to nine digits.
const SECTIONS: usize = 46;

/// True and false positive rates of all groups in a window of each.
struct Odds {
    groups: Vec<OddsOfGroup>,
}

/// A group: points below its ROC hull and above the diagonal can be reached.
struct OddsOfGroup {
    hull: Vec<Corner>,
    /// The weight of each class as a share of all rows.
    positives: f64,
    negatives: f64,
    /// The false positive rate at which most decisions are right.
    best: f64,
}

impl OddsOfGroup {
    fn right(&self, fpr: f64, tpr: f64) -> f64 {
        self.positives * tpr + self.negatives * (1.0 - fpr)
    }

    /// The smallest false positive rate at which the true positive rate is at least this.
    fn needed(&self, tpr: f64) -> f64 {
        let right = self.hull.partition_point(|corner| corner.y < tpr).min(self.hull.len() - 1);
        let (a, b) = (self.hull[right.saturating_sub(1)], self.hull[right]);
        if b.y > a.y && tpr > a.y { a.x + (tpr - a.y) / (b.y - a.y) * (b.x - a.x) } else { a.x }
    }

    /// The most right decisions with false positive rates from `x` on and true ones from `y` on, both up to `width` more; or by how
    /// much the window is out of reach.
    fn within(&self, (x, y): (f64, f64), width: f64) -> std::result::Result<f64, f64> {
        let top = (y + width).min(1.0);
        let (low, high) = (x.max(self.needed(y)), (x + width).min(top));
        // Windows meet where rounding lets them.
        if low > high + 1e-12 {
            return Err(low - high);
        }
        let fpr = self.best.min(self.needed(top)).max(low).min(high);
        Ok(self.right(fpr, at(&self.hull, fpr).0.min(top)))
    }
}

impl Odds {
    fn new(curves: &[Curve], total: f64) -> Self {
        let groups = curves.iter().zip(roc_hulls(curves)).map(|(curve, hull)| {
            let (positives, negatives) = (curve.positives / total, curve.negatives / total);
            let mut group = OddsOfGroup { hull, positives, negatives, best: 0.0 };
            let right = |corner: &Corner| group.right(corner.x, corner.y);
            let first = group.hull[0];
            let most = group
                .hull
                .iter()
                .fold(first, |best, c| if right(c) > right(&best) { *c } else { best });
            group.best = most.x;
            group
        });
        Self { groups: groups.collect() }
    }

    /// The most right decisions with rates at most `width` apart: concave in where the windows begin.
    fn best(&self, width: f64) -> f64 {
        let value = |x: f64, y: f64| {
            let (mut sum, mut out) = (0.0, 0.0f64);
            for group in &self.groups {
                match group.within((x, y), width) {
                    Ok(right) => sum += right,
                    Err(by) => out = out.max(by),
                }
            }
            // Out of reach counts less the farther, so that the search finds its way in.
            if out > 0.0 { -1.0 - out } else { sum }
        };
        golden(|x| golden(|y| value(x, y)))
    }
}

/// The largest value of a function on [0, 1] that rises and then falls.
fn golden(value: impl Fn(f64) -> f64) -> f64 {
    let share = 0.5 * (5.0f64.sqrt() - 1.0);
    let (mut low, mut high) = (0.0, 1.0);
    let (mut left, mut right) = (1.0 - share, share);
    let (mut at_left, mut at_right) = (value(left), value(right));
    let mut best = value(low).max(value(high)).max(at_left).max(at_right);
    for _ in 0..SECTIONS {
        if at_left < at_right {
            (low, left, at_left) = (left, right, at_right);
            right = low + share * (high - low);
            at_right = value(right);
            best = best.max(at_right);
        } else {
            (high, right, at_right) = (right, left, at_left);
            left = high - share * (high - low);
            at_left = value(left);
            best = best.max(at_left);
        }
    }
    best
}

/// True and false positive rates equal in all groups: a point below the ROC hulls of all.
fn equal_odds(curves: &[Curve]) -> (Vec<GroupRule>, f64) {
    let hulls = roc_hulls(curves);
    let mut breaks: Vec<f64> = hulls.iter().flatten().map(|corner| corner.x).collect();
    breaks.sort_by(f64::total_cmp);
    breaks.dedup();
    let lowest = |x: f64| hulls.iter().map(|hull| at(hull, x).0).fold(f64::INFINITY, f64::min);
    // Between two corners every hull is a line, and the lowest of lines bends where two of them cross.
    let mut crossings = Vec::new();
    for pair in breaks.windows(2) {
        let ends: Vec<(f64, f64)> =
            hulls.iter().map(|hull| (at(hull, pair[0]).0, at(hull, pair[1]).0)).collect();
        for (i, a) in ends.iter().enumerate() {
            for b in &ends[i + 1..] {
                let (left, right) = (a.0 - b.0, a.1 - b.1);
                if left * right < 0.0 {
                    let share = left / (left - right);
                    crossings.push(pair[0] + share * (pair[1] - pair[0]));
                }
            }
        }
    }
    breaks.extend(crossings);
    let (positives, negatives) =
        curves.iter().fold((0.0, 0.0), |(p, n), curve| (p + curve.positives, n + curve.negatives));
    let right = |x: f64| positives * lowest(x) + negatives * (1.0 - x);
    let (_, x) =
        breaks.iter().map(|&x| (right(x), x)).fold((f64::NEG_INFINITY, 0.0), |best, one| {
            if one.0 > best.0 || one.0 == best.0 && one.1 < best.1 { one } else { best }
        });
    let y = lowest(x);
    let rules = hulls.iter().map(|hull| {
        let height = at(hull, x).0;
        let ignore_score = if height > y && height > x {
            ((height - y) / (height - x)).clamp(0.0, 1.0)
        } else {
            0.0
        };
        GroupRule { ignore_score, constant: x, ..rule(hull, x) }
    });
    (rules.collect(), x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn made(n: usize, seed: u64) -> (Vec<f64>, Vec<bool>, SensitiveGroups) {
        let mut stream = Stream::new(seed, "test.thresholds", 0);
        let (mut scores, mut truth, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..n {
            let group = row % 3;
            let y = stream.chance([0.2, 0.5, 0.35][group]);
            // Unlike base rates and unlike quality of the scores; ties.
            let s = stream.normal() + if y { [2.0, 0.8, 1.4][group] } else { 0.0 };
            scores.push((s * 10.0).round() / 10.0);
            truth.push(y);
            words.push(["a", "b", "c"][group]);
        }
        (scores, truth, SensitiveGroups::from_words("g", &words).unwrap())
    }

    /// Expected accuracy and the rates of each group, from the rules alone.
    fn reached(
        rules: &[GroupRule],
        (scores, truth, groups): &(Vec<f64>, Vec<bool>, SensitiveGroups),
    ) -> (f64, Vec<[f64; 3]>) {
        let mut cells = vec![[0.0; 6]; groups.n_groups()];
        let mut right = 0.0;
        for row in 0..scores.len() {
            let g = groups.codes()[row] as usize;
            let p = rules[g].probability(scores[row]);
            let y = usize::from(truth[row]);
            right += if truth[row] { p } else { 1.0 - p };
            for class in [y, 2] {
                cells[g][2 * class] += p;
                cells[g][2 * class + 1] += 1.0;
            }
        }
        let rates = cells.iter().map(|c| [c[4] / c[5], c[2] / c[3], c[0] / c[1]]).collect();
        (right / scores.len() as f64, rates)
    }

    #[test]
    fn rates_are_equal_and_what_is_promised_is_reached() {
        let data = made(900, 1);
        for (constraint, equal) in [
            (RateConstraint::DemographicParity, vec![0]),
            (RateConstraint::TruePositiveRateParity, vec![1]),
            (RateConstraint::FalsePositiveRateParity, vec![2]),
            (RateConstraint::EqualizedOdds, vec![1, 2]),
        ] {
            let found = optimize_thresholds(&data.0, &data.1, &data.2, None, constraint).unwrap();
            let (accuracy, rates) = reached(&found.rules, &data);
            assert!((accuracy - found.accuracy).abs() < 1e-12, "{constraint:?}");
            for g in 0..3 {
                let promised = [
                    found.selection_rates[g],
                    found.true_positive_rates[g],
                    found.false_positive_rates[g],
                ];
                for at in 0..3 {
                    assert!((rates[g][at] - promised[at]).abs() < 1e-12, "{constraint:?} {g} {at}");
                }
                for &at in &equal {
                    assert!(
                        (rates[g][at] - rates[0][at]).abs() < 1e-12,
                        "{constraint:?}: {rates:?}"
                    );
                }
            }
        }
    }

    /// A fine grid of common rates, as fairlearn searches, is never better.
    #[test]
    fn no_common_rate_of_a_grid_is_better() {
        let data = made(300, 2);
        let total = 300.0;
        let curves: Vec<Curve> =
            data.2.rows().into_iter().map(|rows| curve(rows, &data.0, &data.1, |_| 1.0)).collect();
        for constraint in [
            RateConstraint::DemographicParity,
            RateConstraint::TruePositiveRateParity,
            RateConstraint::EqualizedOdds,
        ] {
            let found = optimize_thresholds(&data.0, &data.1, &data.2, None, constraint).unwrap();
            for step in 0..=2000 {
                let x = f64::from(step) / 2000.0;
                let mut best = 0.0;
                if constraint == RateConstraint::EqualizedOdds {
                    let lowest = curves
                        .iter()
                        .map(|curve| chord(curve, x, constraint).1)
                        .fold(1.0, f64::min);
                    for curve in &curves {
                        best += curve.positives * lowest + curve.negatives * (1.0 - x);
                    }
                } else {
                    best += curves.iter().map(|curve| chord(curve, x, constraint).0).sum::<f64>();
                }
                assert!(best / total <= found.accuracy + 1e-12, "{constraint:?} at {x}");
            }
        }
    }

    /// The most right decisions, and the greatest true positive rate, of any coin between two thresholds at a rate.
    fn chord(curve: &Curve, x: f64, constraint: RateConstraint) -> (f64, f64) {
        let (p, n) = (curve.positives, curve.negatives);
        let rate = |point: &Point| match constraint {
            RateConstraint::DemographicParity => (point.tpr * p + point.fpr * n) / (p + n),
            RateConstraint::TruePositiveRateParity => point.tpr,
            _ => point.fpr,
        };
        let (mut right, mut tpr) = (0.0f64, 0.0f64);
        for a in &curve.points {
            for b in &curve.points {
                let (low, high) = (rate(a), rate(b));
                if low > x || high < x {
                    continue;
                }
                let share = if high > low { (x - low) / (high - low) } else { 0.0 };
                for share in if high > low { [share, share] } else { [0.0, 1.0] } {
                    let mix = |a: f64, b: f64| (1.0 - share) * a + share * b;
                    let (t, f) = (mix(a.tpr, b.tpr), mix(a.fpr, b.fpr));
                    right = right.max(t * p + (1.0 - f) * n);
                    tpr = tpr.max(t);
                }
            }
        }
        (right, tpr)
    }

    #[test]
    fn the_frontier_goes_from_parity_to_the_best_of_each_group() {
        let (scores, truth, groups) = made(600, 3);
        for constraint in
            [RateConstraint::DemographicParity, RateConstraint::TruePositiveRateParity]
        {
            let bounds = [0.0, 0.05, 0.1, 0.3, 1.0];
            let how = (constraint, bounds.as_slice());
            let found = threshold_frontier(&scores, &truth, &groups, None, how).unwrap();
            let parity = optimize_thresholds(&scores, &truth, &groups, None, constraint).unwrap();
            assert!((found[0].accuracy - parity.accuracy).abs() < 1e-12);
            assert!(found.windows(2).all(|pair| pair[0].accuracy <= pair[1].accuracy + 1e-12));
            // Without a bound each group has its own best threshold.
            let mut right = 0.0;
            for rows in groups.rows() {
                let best =
                    rows.iter().map(|&t| scores[t as usize]).chain([f64::MIN]).map(|threshold| {
                        let right = |row: &&u32| {
                            (scores[**row as usize] > threshold) == truth[**row as usize]
                        };
                        rows.iter().filter(right).count()
                    });
                right += best.max().unwrap() as f64;
            }
            assert!((found[4].accuracy - right / 600.0).abs() < 1e-12, "{found:?}");
        }
    }

    /// Of equalised odds: from the optimum with equal rates to the best of each group, and never below what a search over many
    /// rates of each group finds.
    #[test]
    fn the_frontier_of_both_rates_is_not_below_a_search() {
        let (scores, truth, groups) = made(450, 4);
        let constraint = RateConstraint::EqualizedOdds;
        let bounds: Vec<f64> = (0..=20).map(|step| f64::from(step) / 20.0).collect();
        let how = (constraint, bounds.as_slice());
        let found = threshold_frontier(&scores, &truth, &groups, None, how).unwrap();
        let parity = optimize_thresholds(&scores, &truth, &groups, None, constraint).unwrap();
        assert!((found[0].accuracy - parity.accuracy).abs() < 1e-8, "{found:?} {parity:?}");
        let how = (RateConstraint::DemographicParity, [1.0].as_slice());
        let free = threshold_frontier(&scores, &truth, &groups, None, how).unwrap();
        assert!((found[20].accuracy - free[0].accuracy).abs() < 1e-8);
        // It rises, and ever more slowly.
        let gains: Vec<f64> = found.windows(2).map(|p| p[1].accuracy - p[0].accuracy).collect();
        assert!(gains.iter().all(|gain| *gain >= -1e-8));
        assert!(gains.windows(2).all(|pair| pair[1] <= pair[0] + 1e-7), "{gains:?}");
        // Points of each group: on the hull, and drawn towards the diagonal.
        let curves: Vec<Curve> =
            groups.rows().into_iter().map(|rows| curve(rows, &scores, &truth, |_| 1.0)).collect();
        let hulls = roc_hulls(&curves);
        let mut stream = Stream::new(9, "test.odds", 0);
        for _ in 0..40_000 {
            let centre = (stream.uniform(), stream.uniform());
            let near = 0.3 * stream.uniform();
            let chosen: Vec<(f64, f64)> = hulls
                .iter()
                .map(|hull| {
                    let x = (centre.0 + near * (stream.uniform() - 0.5)).clamp(0.0, 1.0);
                    let top = at(hull, x).0;
                    (x, (centre.1 + near * (stream.uniform() - 0.5)).clamp(x.min(top), top))
                })
                .collect();
            let spread = |of: fn(&(f64, f64)) -> f64| {
                let ends =
                    chosen.iter().map(of).fold((2.0f64, -1.0f64), |e, x| (e.0.min(x), e.1.max(x)));
                ends.1 - ends.0
            };
            let apart = spread(|p| p.0).max(spread(|p| p.1));
            let right: f64 = curves
                .iter()
                .zip(&chosen)
                .map(|(c, (x, y))| c.positives * y + c.negatives * (1.0 - x))
                .sum();
            let bound = bounds.partition_point(|bound| *bound < apart).min(20);
            assert!(right / 450.0 <= found[bound].accuracy + 1e-8, "{apart} {right}");
        }
    }

    #[test]
    fn groups_without_a_rate_are_refused_by_name() {
        let groups = SensitiveGroups::from_words("sex", &["f", "m", "m", "m", "m"]).unwrap();
        let scores = [0.1, 0.2, 0.3, 0.4, 0.5];
        let truth = [true, false, true, true, false];
        let text = |constraint| {
            optimize_thresholds(&scores, &truth, &groups, None, constraint).unwrap_err().to_string()
        };
        let parity = text(RateConstraint::DemographicParity);
        assert!(
            parity.contains("group `f` of `sex` has 1 sample, and demographic_parity"),
            "{parity}"
        );
        let groups = SensitiveGroups::from_words("sex", &["f", "f", "m", "m", "m"]).unwrap();
        let error = optimize_thresholds(
            &scores,
            &[false, false, true, true, false],
            &groups,
            None,
            RateConstraint::EqualizedOdds,
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("`f`") && error.contains("no sample of the favourable class"),
            "{error}"
        );
        assert!(
            RateConstraint::parse("parity").unwrap_err().to_string().contains("equalized_odds")
        );
    }
}
