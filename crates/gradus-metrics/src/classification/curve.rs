//! Curves over all thresholds: ROC, and precision against recall.
//!
//! Rows are sorted once by score; rows of one score pass a threshold together, so ties are exact and
//! the order of the rows does not matter.

use crate::rows::{self, Sum};
use gradus_base::{Error, Result};
use serde::Serialize;

/// One threshold of a [`Roc`]: rows that score at least so much are called yes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RocPoint {
    /// The threshold: a score that occurs, or infinity at the start, where nothing is called yes.
    pub threshold: f64,
    /// The share of the no rows that are called yes.
    pub false_positive_rate: f64,
    /// The share of the yes rows that are called yes.
    pub true_positive_rate: f64,
}

/// The receiver operating characteristic: what share of the yes rows is found at the cost of what
/// share of the no rows.
///
/// ```
/// use gradus_metrics::classification::Roc;
///
/// let roc = Roc::new(&[false, false, true, true], &[0.1, 0.4, 0.35, 0.8], None)?;
/// assert_eq!(roc.auc(), 0.75);
/// assert_eq!(roc.points().len(), 5);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Roc {
    points: Vec<RocPoint>,
    auc: f64,
}

impl Roc {
    /// The curve of these scores.
    ///
    /// # Shapes
    /// `truth`, `scores` and `weights` have one value for each row.
    ///
    /// # Errors
    /// If the lengths differ, a score is not a number, a weight is negative or not finite, or one of
    /// yes and no has no rows.
    pub fn new(truth: &[bool], scores: &[f64], weights: Option<&[f64]>) -> Result<Self> {
        let steps = Steps::of(truth, scores, weights)?.with_both()?;
        let mut points = Vec::with_capacity(steps.steps.len() + 1);
        points.push(RocPoint {
            threshold: f64::INFINITY,
            false_positive_rate: 0.0,
            true_positive_rate: 0.0,
        });
        steps.accumulate(|threshold, yes, no| {
            points.push(RocPoint {
                threshold,
                false_positive_rate: no / steps.no,
                true_positive_rate: yes / steps.yes,
            });
        });
        Ok(Self { points, auc: steps.auc() })
    }

    /// The points from (0, 0) to (1, 1), one for each different score.
    pub fn points(&self) -> &[RocPoint] {
        &self.points
    }

    /// The area below the curve: the chance that a yes row scores above a no row, a tie counting
    /// half.
    pub fn auc(&self) -> f64 {
        self.auc
    }

    /// The same curve without the points in the middle of straight stretches.
    #[must_use]
    pub fn corners(&self) -> Self {
        let straight = |a: &RocPoint, b: &RocPoint, c: &RocPoint| {
            let step = |p: &RocPoint, q: &RocPoint| {
                (
                    q.false_positive_rate - p.false_positive_rate,
                    q.true_positive_rate - p.true_positive_rate,
                )
            };
            let (one, two) = (step(a, b), step(b, c));
            (one.0 == 0.0 && two.0 == 0.0) || (one.1 == 0.0 && two.1 == 0.0)
        };
        let last = self.points.len() - 1;
        let keep = |&at: &usize| {
            let around = || straight(&self.points[at - 1], &self.points[at], &self.points[at + 1]);
            at == 0 || at == last || !around()
        };
        let points = (0..self.points.len()).filter(keep).map(|at| self.points[at]).collect();
        Self { points, auc: self.auc }
    }
}

/// The area below the ROC curve, without keeping the curve.
///
/// # Errors
/// As [`Roc::new`].
///
/// ```
/// use gradus_metrics::classification::roc_auc;
/// assert_eq!(roc_auc(&[false, true, true], &[1.0, 1.0, 2.0], None)?, 0.75);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn roc_auc(truth: &[bool], scores: &[f64], weights: Option<&[f64]>) -> Result<f64> {
    Ok(Steps::of(truth, scores, weights)?.with_both()?.auc())
}

/// The mean over classes of the area below the ROC curve of each class against the rest. Classes
/// without rows are left out.
///
/// # Shapes
/// `scores` has a row for each of `truth`, of `n_classes` values.
///
/// # Errors
/// If the shapes differ, a class is not below `n_classes`, a score is not a number, or there are
/// rows of fewer than two classes.
///
/// ```
/// use gradus_metrics::classification::macro_auc;
/// let scores = [0.8, 0.1, 0.1, 0.2, 0.5, 0.3, 0.1, 0.3, 0.6];
/// assert_eq!(macro_auc(&[0, 1, 2], &scores, 3, None)?, 1.0);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn macro_auc(
    truth: &[u32],
    scores: &[f64],
    n_classes: usize,
    weights: Option<&[f64]>,
) -> Result<f64> {
    rows::table("scores", scores, truth.len(), n_classes)?;
    rows::classes("truth", truth, n_classes)?;
    rows::total_weight(weights, truth.len())?;
    let mut there = vec![false; n_classes];
    for (row, &class) in truth.iter().enumerate() {
        there[class as usize] |= rows::weight(weights, row) > 0.0;
    }
    let there: Vec<usize> = (0..n_classes).filter(|&class| there[class]).collect();
    if there.len() < 2 {
        return Err(one_sided(&format!("all are of class {}", there.first().unwrap_or(&0))));
    }
    let mut sum = Sum::default();
    for &class in &there {
        let yes: Vec<bool> = truth.iter().map(|&t| t as usize == class).collect();
        let column: Vec<f64> = scores.iter().skip(class).step_by(n_classes).copied().collect();
        sum.add(roc_auc(&yes, &column, weights)?);
    }
    Ok(sum.value() / there.len() as f64)
}

/// One threshold of a [`PrecisionRecall`]: rows that score at least so much are called yes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrecisionRecallPoint {
    /// The threshold, a score that occurs.
    pub threshold: f64,
    /// The share of the rows called yes that are.
    pub precision: f64,
    /// The share of the yes rows that are called yes.
    pub recall: f64,
}

/// Precision against recall over all thresholds: the curve to look at where yes is rare.
///
/// ```
/// use gradus_metrics::classification::PrecisionRecall;
///
/// let truth = [false, false, true, true];
/// let curve = PrecisionRecall::new(&truth, &[0.1, 0.4, 0.35, 0.8], None)?;
/// assert_eq!(curve.average_precision(), 0.5 * 1.0 + 0.5 * (2.0 / 3.0));
/// assert_eq!(curve.share(), 0.5);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrecisionRecall {
    points: Vec<PrecisionRecallPoint>,
    average_precision: f64,
    share: f64,
}

impl PrecisionRecall {
    /// The curve of these scores.
    ///
    /// # Errors
    /// As [`Roc::new`], except that there need be no no rows.
    pub fn new(truth: &[bool], scores: &[f64], weights: Option<&[f64]>) -> Result<Self> {
        let steps = Steps::of(truth, scores, weights)?.with_yes()?;
        let mut points = Vec::with_capacity(steps.steps.len());
        steps.accumulate(|threshold, yes, no| {
            let precision = yes / (yes + no);
            points.push(PrecisionRecallPoint { threshold, precision, recall: yes / steps.yes });
        });
        let share = steps.yes / (steps.yes + steps.no);
        Ok(Self { points, average_precision: steps.average_precision(), share })
    }

    /// The points in the order of falling thresholds, so of rising recall; one for each different
    /// score. scikit-learn gives them in the other order, and a point of precision 1 and recall 0
    /// besides.
    pub fn points(&self) -> &[PrecisionRecallPoint] {
        &self.points
    }

    /// `Σ (recall − recall before) · precision`: the area below the curve drawn in steps, without
    /// the optimism of straight lines between its points.
    pub fn average_precision(&self) -> f64 {
        self.average_precision
    }

    /// The share of the rows that are yes: the precision of guessing.
    pub fn share(&self) -> f64 {
        self.share
    }
}

/// Average precision, without keeping the curve.
///
/// # Errors
/// As [`PrecisionRecall::new`].
///
/// ```
/// use gradus_metrics::classification::average_precision;
/// assert_eq!(average_precision(&[true, false, true], &[3.0, 2.0, 1.0], None)?, 0.5 + 0.5 * (2.0 / 3.0));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn average_precision(truth: &[bool], scores: &[f64], weights: Option<&[f64]>) -> Result<f64> {
    Ok(Steps::of(truth, scores, weights)?.with_yes()?.average_precision())
}

/// The weight of the yes and the no rows of each score, best first.
struct Steps {
    steps: Vec<(f64, f64, f64)>,
    yes: f64,
    no: f64,
}

impl Steps {
    fn of(truth: &[bool], scores: &[f64], weights: Option<&[f64]>) -> Result<Self> {
        rows::same_length("scores", truth.len(), scores.len())?;
        rows::total_weight(weights, truth.len())?;
        if let Some(at) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::data(format!("scores, row {}: NaN is not a score", at + 1)));
        }
        let counts = |&row: &usize| rows::weight(weights, row) > 0.0;
        let mut rows: Vec<(f64, f64)> = (0..truth.len())
            .filter(counts)
            .map(|row| {
                let weight = self::rows::weight(weights, row);
                (scores[row], if truth[row] { weight } else { -weight })
            })
            .collect();
        // Weights within a score are sorted too, so that their sum is the same in any order.
        rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1)));
        let steps: Vec<_> = rows
            .chunk_by(|a, b| a.0 == b.0)
            .map(|tied| {
                let of = |sign: f64| Sum::of(tied.iter().map(|row| (sign * row.1).max(0.0)));
                (tied[0].0, of(1.0), of(-1.0))
            })
            .collect();
        let yes = Sum::of(steps.iter().map(|step| step.1));
        let no = Sum::of(steps.iter().map(|step| step.2));
        Ok(Self { steps, yes, no })
    }

    fn with_yes(self) -> Result<Self> {
        if self.yes > 0.0 { Ok(self) } else { Err(one_sided("no row is yes")) }
    }

    fn with_both(self) -> Result<Self> {
        let this = self.with_yes()?;
        if this.no > 0.0 { Ok(this) } else { Err(one_sided("every row is yes")) }
    }

    /// Calls with each threshold and the weight of the yes and no rows that reach it.
    fn accumulate(&self, mut tell: impl FnMut(f64, f64, f64)) {
        let (mut yes, mut no) = (Sum::default(), Sum::default());
        for &(threshold, good, bad) in &self.steps {
            yes.add(good);
            no.add(bad);
            // A compensated sum may pass its total in the last bit.
            tell(threshold, yes.value().min(self.yes), no.value().min(self.no));
        }
    }

    fn auc(&self) -> f64 {
        let (mut above, mut won) = (Sum::default(), Sum::default());
        for &(_, good, bad) in &self.steps {
            won.add(bad / self.no * ((above.value() + 0.5 * good) / self.yes));
            above.add(good);
        }
        won.value().clamp(0.0, 1.0)
    }

    fn average_precision(&self) -> f64 {
        let (mut sum, mut yes, mut called) = (Sum::default(), Sum::default(), Sum::default());
        for &(_, good, bad) in &self.steps {
            yes.add(good);
            called.add(good + bad);
            sum.add(good / self.yes * (yes.value() / called.value()));
        }
        sum.value().clamp(0.0, 1.0)
    }
}

fn one_sided(why: &str) -> Error {
    Error::data(format!("a curve needs rows of both kinds to tell apart: {why}"))
}
