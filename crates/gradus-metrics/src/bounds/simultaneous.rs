//! Intervals of several models' scores, and of their differences, that hold all at once.

use super::{
    Hoeffding, Interval, IntervalMethod, check_level, effective_size, least_differing, proportion,
    student_quantile,
};
use crate::rows::{self, Sum};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use serde::Serialize;

/// Units are dealt into at most this many groups: independent units make independent groups.
const GROUPS: usize = 1024;
/// The number of groups below which the bootstrap knows the tails badly, so that Student's t with the union bound is a
/// floor.
const FEW: usize = 40;
/// The number of groups below which there is no interval.
const FEWEST: usize = 6;
/// A share with fewer right or fewer wrong answers than this is bounded exactly: the bootstrap would
/// take what it has not seen for impossible.
const RARE: usize = 20;

/// How a score comes from a mean loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossScale {
    /// The mean itself: a mean absolute error, a log loss.
    Mean,
    /// The root of the mean: for squared errors.
    Root,
    /// One less it: losses are between 0 and 1, and a larger score is better.
    Complement,
}

impl LossScale {
    /// Whether a larger score is better.
    pub fn higher_is_better(self) -> bool {
        self == Self::Complement
    }

    /// The score of a mean loss.
    pub fn score(self, mean: f64) -> f64 {
        match self {
            Self::Mean => mean,
            Self::Root => mean.max(0.0).sqrt(),
            Self::Complement => 1.0 - mean,
        }
    }

    fn slope(self, mean: f64) -> f64 {
        match self {
            Self::Mean => 1.0,
            Self::Root if mean > 0.0 => 0.5 / mean.sqrt(),
            Self::Root => 0.0,
            Self::Complement => -1.0,
        }
    }

    /// The change of the score when the mean changes by `by`, without cancellation.
    fn change(self, mean: f64, by: f64) -> f64 {
        match self {
            Self::Mean => by,
            Self::Complement => -by,
            Self::Root => {
                let both = mean.max(0.0).sqrt() + (mean + by).max(0.0).sqrt();
                if both > 0.0 { by / both } else { 0.0 }
            }
        }
    }

    /// Brings an interval of scores to where scores can be.
    fn within(self, (low, high): (f64, f64)) -> (f64, f64) {
        match self {
            Self::Mean => (low, high),
            Self::Root => (low.max(0.0), high),
            Self::Complement => (low.max(0.0), high.min(1.0)),
        }
    }
}

/// A score with the interval that holds together with those of all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JointScore {
    /// The score.
    pub value: f64,
    /// The standard error; not a number where there are too few independent units to tell.
    pub error: f64,
    /// The interval of the true score; the intervals of all models hold together.
    pub interval: Interval,
}

/// The difference of two scores with the interval that holds together with those of all pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JointDifference {
    /// The first score less the second.
    pub value: f64,
    /// The standard error, from the differences unit by unit.
    pub error: f64,
    /// The interval of the true difference; the intervals of all pairs hold together.
    pub interval: Interval,
}

impl JointDifference {
    /// Whether the points at hand tell the two apart: 0 lies outside the interval.
    pub fn is_sure(&self) -> bool {
        !self.interval.contains(0.0)
    }
}

/// Scores of several models on the same points, with [intervals that hold at once](joint_intervals).
#[derive(Clone, Debug, PartialEq)]
pub struct JointScores {
    /// The score of each model.
    pub scores: Vec<JointScore>,
    /// Independent units: users, groups of samples, or samples.
    pub units: usize,
    /// Groups that the bootstrap drew: the units, or at most 1024 groups of them.
    pub groups: usize,
    /// The difference of the scores of `a` and `b` for each pair `a < b`, in that order.
    pairs: Vec<JointDifference>,
}

impl JointScores {
    /// The score of `a` less the score of `b`.
    ///
    /// # Panics
    /// If one of them is not below the number of models.
    pub fn difference(&self, a: usize, b: usize) -> JointDifference {
        let k = self.scores.len();
        assert!(a < k && b < k, "models {a} and {b} of {k}");
        if a == b {
            let level = self.scores[a].interval.level;
            let interval = Interval { low: 0.0, high: 0.0, level, method: IntervalMethod::MaxT };
            return JointDifference { value: 0.0, error: 0.0, interval };
        }
        let (first, second) = (a.min(b), a.max(b));
        let found = self.pairs[first * (2 * k - first - 1) / 2 + second - first - 1];
        if a < b {
            return found;
        }
        let (low, high) = (-found.interval.high, -found.interval.low);
        let interval = Interval { low, high, ..found.interval };
        JointDifference { value: -found.value, interval, ..found }
    }
}

/// The points that all models were evaluated on.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvaluationPoints<'a> {
    /// How much each counts; 1 if not given.
    pub weights: Option<&'a [f64]>,
    /// The unit that each belongs to; units are independent, the points of one are not. Each point is a
    /// unit if not given.
    pub units: Option<&'a [u32]>,
}

/// Intervals of the scores of several models on the same points, and of all their differences.
///
/// The losses of all models at a point are drawn together, unit by unit, and the quantile of the largest
/// studentised error over all models takes the place of the normal quantile (max-t bootstrap). So with
/// probability `level` **all** scores lie in their intervals, and with probability `level` all
/// differences of two scores in theirs: both hold for whichever model turns out best, although it was
/// chosen by these points. Models that fail at the same points need less than the union bound
/// asks for, which is what the joint draw is for. (Westfall and Young, *Resampling-based multiple testing*,
/// 1993; Hall, *The bootstrap and Edgeworth expansion*, 1992.)
///
/// Where the bootstrap knows too little it is replaced: a share with fewer than 20 right or wrong answers
/// has Clopper and Pearson's interval with the union bound (Hoeffding's, if points have weights or units);
/// below 40 units the quantile is at least Student's with the union bound; below 6 units the interval is
/// the whole range. Two models that differ in too few units are never distinguished.
///
/// The intervals are about these fitted models on more points like these. That another draw of
/// the training data would give other models is not in them.
///
/// # Shapes
/// `losses` has a slice for each model with a value for each point; weights and units have one for each point.
///
/// # Errors
/// If there are no models or no points, lengths differ, a loss is not finite or (for
/// [`LossScale::Complement`]) outside 0 to 1, or a setting is outside its range.
///
/// ```
/// use gradus_metrics::bounds::{EvaluationPoints, LossScale, joint_intervals};
///
/// let a: Vec<f64> = (0..500).map(|i| f64::from(i * 7 % 13)).collect();
/// let b: Vec<f64> = a.iter().zip(0..).map(|(a, i)| a + f64::from(i % 3) / 4.0).collect();
/// let found = joint_intervals(&[&a, &b], EvaluationPoints::default(), LossScale::Mean, 0.95, 0)?;
/// let [a, b] = [found.scores[0].interval, found.scores[1].interval];
/// assert!(a.low <= b.high && b.low <= a.high);
/// assert!(found.difference(0, 1).is_sure());
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn joint_intervals(
    losses: &[&[f64]],
    points: EvaluationPoints<'_>,
    scale: LossScale,
    level: f64,
    seed: u64,
) -> Result<JointScores> {
    check_level(level)?;
    let Some(first) = losses.first() else {
        return Err(Error::data("intervals: there are no models"));
    };
    let n = first.len();
    let total = rows::total_weight(points.weights, n)?;
    for of in losses {
        rows::same_length("losses", n, of.len())?;
        rows::finite("losses", of)?;
        let bounded = scale != LossScale::Complement || of.iter().all(|l| (0.0..=1.0).contains(l));
        if !bounded {
            return Err(Error::data("losses: must be between 0 and 1"));
        }
    }
    if let Some(units) = points.units {
        rows::same_length("units", n, units.len())?;
    }
    let family = Family::new(losses, points, scale, total);
    let rounds = ((200.0 / (1.0 - level)).ceil() as usize).clamp(2000, 20_000);
    let (of_scores, of_pairs) = family.quantiles(level, rounds, seed);
    let scores = losses.iter().enumerate();
    let scores: Result<Vec<JointScore>> =
        scores.map(|(at, of)| family.score(at, of, points, level, of_scores)).collect();
    let (k, mut pairs) = (losses.len(), Vec::new());
    for a in 0..k {
        for b in a + 1..k {
            pairs.push(family.difference(a, b, level, of_pairs));
        }
    }
    Ok(JointScores { scores: scores?, units: family.units, groups: family.weights.len(), pairs })
}

/// Sums of losses by group.
struct Family {
    scale: LossScale,
    units: usize,
    /// The weight of each group; none is 0.
    weights: Vec<f64>,
    total: f64,
    means: Vec<f64>,
    /// The loss beyond the mean for each model and group: `Σ w (l − mean)`.
    beyond: Vec<Vec<f64>>,
}

impl Family {
    fn new(losses: &[&[f64]], points: EvaluationPoints<'_>, scale: LossScale, total: f64) -> Self {
        let n = losses[0].len();
        let weight = |row: usize| rows::weight(points.weights, row);
        let (unit_of, units): (Vec<usize>, usize) = match points.units {
            None => ((0..n).collect(), n),
            Some(units) => {
                let mut different: Vec<u32> = units.to_vec();
                different.sort_unstable();
                different.dedup();
                let place = |unit: &u32| different.partition_point(|other| other < unit);
                (units.iter().map(place).collect(), different.len())
            }
        };
        let mut weights = vec![0.0; units.min(GROUPS)];
        let group = |row: usize| unit_of[row] % units.min(GROUPS);
        (0..n).for_each(|row| weights[group(row)] += weight(row));
        let means: Vec<f64> = losses
            .iter()
            .map(|of| Sum::of((0..n).map(|row| weight(row) / total * of[row])))
            .collect();
        let beyond = losses.iter().zip(&means).map(|(of, mean)| {
            let mut sums = vec![0.0; weights.len()];
            (0..n).for_each(|row| sums[group(row)] += weight(row) * (of[row] - mean));
            sums
        });
        let mut beyond: Vec<Vec<f64>> = beyond.collect();
        // Groups that do not count say nothing of the spread.
        let kept: Vec<bool> = weights.iter().map(|weight| *weight > 0.0).collect();
        for of in beyond.iter_mut().chain([&mut weights]) {
            let mut keep = kept.iter();
            of.retain(|_| *keep.next().unwrap_or(&false));
        }
        Self { scale, units, weights, total, means, beyond }
    }

    /// The influence of each group on the difference of two scores, or on one score.
    fn influence(&self, a: usize, b: Option<usize>) -> Vec<f64> {
        let slope = |model: usize| self.scale.slope(self.means[model]);
        let (of_a, s) = (&self.beyond[a], slope(a));
        match b {
            None => of_a.iter().map(|x| s * x).collect(),
            Some(b) => {
                let t = slope(b);
                of_a.iter().zip(&self.beyond[b]).map(|(x, y)| s * x - t * y).collect()
            }
        }
    }

    /// The standard error of what has this influence.
    fn error(&self, influence: &[f64]) -> f64 {
        let groups = influence.len() as f64;
        if influence.len() < FEWEST {
            return f64::NAN;
        }
        let squares = Sum::of(influence.iter().map(|x| x * x));
        (squares * groups / (groups - 1.0)).sqrt() / self.total
    }

    /// The quantiles of the largest studentised error: over the scores, and over all differences.
    fn quantiles(&self, level: f64, rounds: usize, seed: u64) -> (f64, f64) {
        let (k, groups) = (self.means.len(), self.weights.len());
        if groups < FEWEST {
            return (f64::INFINITY, f64::INFINITY);
        }
        let singles: Vec<Vec<f64>> = (0..k).map(|a| self.influence(a, None)).collect();
        let mut pairs = Vec::new();
        for a in 0..k {
            pairs.extend((a + 1..k).map(|b| ((a, b), self.influence(a, Some(b)))));
        }
        let varies = |influence: &[f64]| self.error(influence) > 0.0;
        pairs.retain(|(_, influence)| varies(influence));
        let shown: Vec<bool> = singles.iter().map(|of| varies(of)).collect();
        let drawn = parallel::map_with(
            0..rounds as u64,
            || vec![0.0f64; groups],
            |counts, round| {
                counts.fill(0.0);
                let mut stream = Stream::new(seed, "bounds.joint", round);
                (0..groups).for_each(|_| counts[stream.index(groups)] += 1.0);
                let weight: f64 = counts.iter().zip(&self.weights).map(|(c, w)| c * w).sum();
                let squares: f64 = counts.iter().zip(&self.weights).map(|(c, w)| c * w * w).sum();
                let by = |a: usize| {
                    let sum: f64 = counts.iter().zip(&self.beyond[a]).map(|(c, x)| c * x).sum();
                    sum / weight
                };
                let by: Vec<f64> = (0..k).map(by).collect();
                let change = |a: usize| self.scale.change(self.means[a], by[a]);
                let largest = |t: f64, most: f64| if t.abs() > most { t.abs() } else { most };
                let mut most = (0.0, 0.0);
                for a in (0..k).filter(|&a| shown[a]) {
                    let error = self.drawn_error(&singles[a], counts, (weight, squares));
                    // The slope where the draw is: the error of a root goes with the root.
                    let (here, there) = (self.means[a], self.means[a] + by[a]);
                    let slopes = self.scale.slope(there) / self.scale.slope(here);
                    most.0 = largest(studentised(change(a), error * slopes.abs()), most.0);
                }
                for ((a, b), influence) in &pairs {
                    let error = self.drawn_error(influence, counts, (weight, squares));
                    most.1 = largest(studentised(change(*a) - change(*b), error), most.1);
                }
                most
            },
        );
        let quantile = |mut most: Vec<f64>, bounds: usize| {
            most.sort_unstable_by(f64::total_cmp);
            let at = (level * (most.len() as f64 + 1.0)).ceil() as usize;
            let found = most[at.clamp(1, most.len()) - 1];
            if groups >= FEW {
                return found;
            }
            let each = 1.0 - (1.0 - level) / bounds.max(1) as f64;
            found.max(student_quantile(each, groups - 1))
        };
        let (of_scores, of_pairs) = drawn.into_iter().unzip();
        (quantile(of_scores, k), quantile(of_pairs, k * (k - 1) / 2))
    }

    /// The standard error in a draw, from how often each group was drawn.
    fn drawn_error(&self, influence: &[f64], counts: &[f64], (weight, squares): (f64, f64)) -> f64 {
        let (mut sum, mut own, mut cross) = (0.0, 0.0, 0.0);
        for ((x, c), w) in influence.iter().zip(counts).zip(&self.weights) {
            sum += c * x;
            own += c * x * x;
            cross += c * x * w;
        }
        let mean = sum / weight;
        let groups = influence.len() as f64;
        let spread = own - 2.0 * mean * cross + mean * mean * squares;
        (spread.max(0.0) * groups / (groups - 1.0)).sqrt() / weight
    }

    fn score(
        &self,
        at: usize,
        losses: &[f64],
        points: EvaluationPoints<'_>,
        level: f64,
        times: f64,
    ) -> Result<JointScore> {
        let value = self.scale.score(self.means[at]);
        let error = self.error(&self.influence(at, None));
        if self.scale == LossScale::Complement
            && let Some(interval) = self.exact((at, losses), points, error, level)?
        {
            return Ok(JointScore { value, error, interval });
        }
        let (low, high) = if error.is_nan() || times.is_infinite() {
            (f64::NEG_INFINITY, f64::INFINITY)
        } else {
            (value - times * error, value + times * error)
        };
        let (low, high) = self.scale.within((low, high));
        let interval = Interval { low, high, level, method: IntervalMethod::MaxT };
        Ok(JointScore { value, error, interval })
    }

    /// The interval of a share that holds whatever the points are like, where the bootstrap says too
    /// little.
    fn exact(
        &self,
        (at, losses): (usize, &[f64]),
        points: EvaluationPoints<'_>,
        error: f64,
        level: f64,
    ) -> Result<Option<Interval>> {
        let (n, k) = (losses.len(), self.means.len());
        let binary = losses.iter().all(|&loss| loss == 0.0 || loss == 1.0);
        let wrong = losses.iter().filter(|&&loss| loss == 1.0).count();
        let rare = binary && wrong.min(n - wrong) < RARE;
        let varies = error > 0.0 && self.weights.len() >= FEWEST;
        if varies && !rare {
            return Ok(None);
        }
        let found = if binary && points.weights.is_none() && self.units == n {
            proportion(wrong as u64, n as u64, 1.0 - (1.0 - level) / k as f64)?
        } else {
            let mean = self.means[at];
            let size = effective_size(&self.weights)?;
            Hoeffding::new(0.0, 1.0, k, level)?.interval(mean.clamp(0.0, 1.0), size)?
        };
        Ok(Some(Interval { low: 1.0 - found.high, high: 1.0 - found.low, level, ..found }))
    }

    fn difference(&self, a: usize, b: usize, level: f64, times: f64) -> JointDifference {
        let value = self.scale.change(self.means[b], self.means[a] - self.means[b]);
        let influence = self.influence(a, Some(b));
        let error = self.error(&influence);
        let k = self.means.len();
        let each = 1.0 - (1.0 - level) / (k * (k - 1) / 2).max(1) as f64;
        let differing = influence.iter().filter(|x| **x != 0.0).count();
        let (mut low, mut high) = if error.is_nan() || times.is_infinite() {
            (f64::NEG_INFINITY, f64::INFINITY)
        } else {
            (value - times * error, value + times * error)
        };
        if differing < least_differing(each) {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        let interval = Interval { low, high, level, method: IntervalMethod::MaxT };
        JointDifference { value, error, interval }
    }
}

fn studentised(change: f64, error: f64) -> f64 {
    if change == 0.0 { 0.0 } else { change / error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Squared errors of `k` models at points of users: a part shared by all models, one of the user,
    /// one of the model. The expected loss of model `a` is known.
    fn draw(seed: u64, users: usize, k: usize) -> (Vec<Vec<f64>>, Vec<u32>, Vec<f64>) {
        let mut stream = Stream::new(seed, "joint.tests", 0);
        let noise = |model: usize| 0.2 + 0.02 * model as f64;
        let (mut losses, mut units) = (vec![Vec::new(); k], Vec::new());
        for user in 0..users {
            let taste = 1.4 * stream.normal();
            for _ in 0..1 + stream.index(5) {
                let common = taste + 0.7 * stream.normal();
                units.push(user as u32);
                for (model, losses) in losses.iter_mut().enumerate() {
                    losses.push((common + noise(model) * stream.normal()).powi(2));
                }
            }
        }
        // Sizes of users are independent of their errors, so the mean over points is the mean.
        let truth = (0..k).map(|model| 1.96 + 0.49 + noise(model).powi(2)).collect();
        (losses, units, truth)
    }

    fn found(losses: &[Vec<f64>], units: Option<&[u32]>, scale: LossScale) -> JointScores {
        let losses: Vec<&[f64]> = losses.iter().map(Vec::as_slice).collect();
        joint_intervals(&losses, EvaluationPoints { weights: None, units }, scale, 0.95, 7).unwrap()
    }

    /// All scores at once, and all differences at once, at least as often as they say, less what chance
    /// allows in this many repetitions. Points taken as independent do not keep that: the test can fail.
    #[test]
    fn intervals_hold_all_at_once() {
        let (repetitions, k) = (200u64, 5);
        for users in [60usize, 250] {
            let (mut scores, mut differences, mut naive, mut narrower) = (0, 0, 0, 0);
            for seed in 0..repetitions {
                let (losses, units, truth) = draw(seed, users, k);
                let truth: Vec<f64> = truth.iter().map(|mean| mean.sqrt()).collect();
                let joint = found(&losses, Some(&units), LossScale::Root);
                let all = |joint: &JointScores| {
                    joint.scores.iter().zip(&truth).all(|(s, t)| s.interval.contains(*t))
                };
                scores += u32::from(all(&joint));
                let pairs = (0..k).flat_map(|a| (0..k).map(move |b| (a, b)));
                let covered = pairs.clone().all(|(a, b)| {
                    joint.difference(a, b).interval.contains(truth[a] - truth[b])
                        || (truth[a] - truth[b]).abs() < 1e-12
                });
                differences += u32::from(covered);
                naive += u32::from(all(&found(&losses, None, LossScale::Root)));
                // The union bound would take this quantile.
                let union = student_quantile(1.0 - 0.05 / k as f64, users);
                let times =
                    (joint.scores[0].interval.high - joint.scores[0].value) / joint.scores[0].error;
                narrower += u32::from(times < union);
            }
            let least = repetitions as f64 * (0.95 - 3.0 * (0.95f64 * 0.05 / 200.0).sqrt());
            assert!(f64::from(scores) >= least, "{users} users: {scores} scores");
            assert!(f64::from(differences) >= least, "{users} users: {differences} differences");
            assert!(f64::from(naive) < least, "{users} users: {naive} without units");
            assert!(users < 100 || f64::from(narrower) > 0.9 * 200.0, "{narrower}");
        }
    }

    #[test]
    fn shares_hold_all_at_once() {
        let (mut covered, repetitions) = (0, 300u64);
        let truth = [0.9, 0.85, 0.99];
        for seed in 0..repetitions {
            let mut stream = Stream::new(seed, "joint.shares", 0);
            let mut losses = vec![Vec::new(); 3];
            for _ in 0..200 {
                let common = stream.uniform();
                for (losses, right) in losses.iter_mut().zip(truth) {
                    let u = if stream.chance(0.5) { common } else { stream.uniform() };
                    losses.push(f64::from(u8::from(u >= right)));
                }
            }
            let joint = found(&losses, None, LossScale::Complement);
            let all = joint.scores.iter().zip(truth).all(|(s, t)| s.interval.contains(t));
            covered += u32::from(all);
        }
        assert!(f64::from(covered) >= 300.0 * 0.912, "{covered}");
    }

    #[test]
    fn scores_and_errors_by_hand() {
        let losses = vec![(1..=8).map(f64::from).collect::<Vec<f64>>(), vec![2.0; 8]];
        let joint = found(&losses, None, LossScale::Mean);
        assert_eq!(joint.scores[0].value, 4.5);
        // Variance 6 of eight values.
        assert!((joint.scores[0].error - (6.0f64 / 8.0).sqrt()).abs() < 1e-12);
        assert_eq!((joint.scores[1].value, joint.scores[1].error), (2.0, 0.0));
        let (ab, ba) = (joint.difference(0, 1), joint.difference(1, 0));
        assert_eq!((ab.value, ba.value), (2.5, -2.5));
        assert_eq!(ab.interval.low, -ba.interval.high);
        assert_eq!(joint.difference(1, 1).value, 0.0);
        let root = found(&losses, None, LossScale::Root);
        assert!((root.scores[0].value - 4.5f64.sqrt()).abs() < 1e-15);
        assert!((root.difference(0, 1).value - (4.5f64.sqrt() - 2f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn weights_and_units_count() {
        let (losses, units, _) = draw(3, 80, 2);
        let slices: Vec<&[f64]> = losses.iter().map(Vec::as_slice).collect();
        let twice = vec![2.0; units.len()];
        let plain = EvaluationPoints { weights: None, units: Some(&units) };
        let even = EvaluationPoints { weights: Some(&twice), ..plain };
        let a = joint_intervals(&slices, plain, LossScale::Root, 0.95, 1).unwrap();
        let b = joint_intervals(&slices, even, LossScale::Root, 0.95, 1).unwrap();
        assert_eq!(a.units, 80);
        assert!((a.scores[0].interval.high - b.scores[0].interval.high).abs() < 1e-9);
        // A point without weight is as good as absent.
        let mut none = vec![1.0; units.len()];
        none[0] = 0.0;
        let points = EvaluationPoints { weights: Some(&none), ..plain };
        let without = joint_intervals(&slices, points, LossScale::Root, 0.95, 1).unwrap();
        let mean = losses[0][1..].iter().sum::<f64>() / (units.len() - 1) as f64;
        assert!((without.scores[0].value - mean.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_reported_is_not_reported() {
        // Few units: the whole range.
        let joint = found(&[vec![0.5; 4], vec![1.0; 4]], None, LossScale::Root);
        assert_eq!(joint.scores[0].interval.width(), f64::INFINITY);
        assert!(!joint.difference(0, 1).is_sure());
        // Equal models are not distinguished.
        let same = vec![(0..50).map(f64::from).collect::<Vec<f64>>(); 2];
        let equal = found(&same, None, LossScale::Mean).difference(0, 1);
        assert!(equal.value == 0.0 && !equal.is_sure());
        // Nothing wrong in a hundred does not mean that nothing ever is.
        let joint = found(&[vec![0.0; 100], vec![1.0; 100]], None, LossScale::Complement);
        assert_eq!((joint.scores[0].value, joint.scores[0].interval.high), (1.0, 1.0));
        let low = joint.scores[0].interval.low;
        assert!((0.94..0.97).contains(&low) && joint.scores[1].interval.high < 0.06, "{low}");
        assert_eq!(joint.scores[0].interval.method, IntervalMethod::ClopperPearson);
        // Two of three users always right: users are the units, whatever the number of points.
        let units: Vec<u32> = (0..90).map(|i| i / 30).collect();
        let losses: Vec<f64> = units.iter().map(|&unit| f64::from(u8::from(unit == 2))).collect();
        let joint = found(&[losses], Some(&units), LossScale::Complement);
        assert!(joint.scores[0].interval.width() > 0.9, "{:?}", joint.scores[0]);
    }

    #[test]
    fn bad_input_is_an_error() {
        let points = EvaluationPoints::default();
        assert!(joint_intervals(&[], points, LossScale::Mean, 0.95, 0).is_err());
        assert!(joint_intervals(&[&[]], points, LossScale::Mean, 0.95, 0).is_err());
        assert!(joint_intervals(&[&[1.0], &[1.0, 2.0]], points, LossScale::Mean, 0.95, 0).is_err());
        assert!(joint_intervals(&[&[f64::NAN]], points, LossScale::Mean, 0.95, 0).is_err());
        assert!(joint_intervals(&[&[2.0]], points, LossScale::Complement, 0.95, 0).is_err());
        assert!(joint_intervals(&[&[1.0]], points, LossScale::Mean, 1.0, 0).is_err());
        let short = EvaluationPoints { units: Some(&[1]), ..points };
        assert!(joint_intervals(&[&[1.0, 2.0]], short, LossScale::Mean, 0.95, 0).is_err());
    }

    #[test]
    fn threads_do_not_matter() {
        let (losses, units, _) = draw(1, 100, 4);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| found(&losses, Some(&units), LossScale::Root))
        };
        assert_eq!(run(1), run(3));
    }
}
