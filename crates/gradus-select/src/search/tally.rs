//! Sums over held-out points, from which scores and their uncertainties come.
//!
//! Points that belong together (the ratings of one user, the samples of one group) form a unit;
//! units are independent of each other, the points of one are not. In cross-validation a user is a
//! unit of several folds, and counts once in a standard error.

use gradus_base::Result;
use gradus_metrics::bounds::{
    Bootstrap, Hoeffding, Interval, IntervalMethod, least_differing, proportion, student_quantile,
};
use gradus_metrics::rows::Sum;
use serde::Serialize;

/// How sure "sure" is: two standard errors and a bit, 95 % of a normal law.
const SURE: f64 = 1.96;
/// How often all intervals of a search should hold at once.
const LEVEL: f64 = 0.95;
/// Units are dealt into at most this many groups, and only the sums of groups are kept. Units being
/// independent, so are groups; with this many a standard error is known to about two percent.
const GROUPS: usize = 1024;

/// A score with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The score: a root mean squared error, a mean log loss, a share of right answers, a mean NDCG.
    pub value: f64,
    /// The standard error, users (or groups of samples, or samples) taken as independent. Not a number (null in JSON)
    /// where there is one only.
    pub error: f64,
    /// The interval of the true score: the mean over the folds of the scores that the models fitted there would get on
    /// ever more points. The intervals of all candidates hold together, with 95 % confidence.
    ///
    /// Where the score is a mean between 0 and 1 (accuracy, NDCG) this is a guarantee, by Hoeffding
    /// or Clopper–Pearson: it takes each fold by itself, because the folds are not independent, and
    /// pays for every iteration that a fit stopped early was chosen from. Else it is by bootstrap,
    /// nearly right for many points, and does not know of early stopping. Points too few to tell
    /// anything give the whole range of the score.
    pub interval: Interval,
}

/// The lead of the best candidate over the second, evaluated on the same points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lead {
    /// The difference of their scores: positive, but for a score they were not chosen by.
    pub difference: f64,
    /// The standard error, from the differences point by point. Not a number (null in JSON) where there is one
    /// independent point only.
    pub error: f64,
    /// The number of held-out points.
    pub points: usize,
    /// Independent groups of points, at most 1024.
    pub groups: usize,
    /// The number of groups in which the two differ.
    pub differing: usize,
    /// Points it would take to tell the two apart with 95 % confidence, if they are like these;
    /// `None` if the two are equal, or there are too few to tell.
    pub needed: Option<u64>,
    /// Points held out at once that are enough whatever they are like, for all candidates at once
    /// (by Hoeffding, where the score is a mean between 0 and 1).
    pub guaranteed: Option<u64>,
}

impl Lead {
    /// Whether the points at hand tell the two apart, with 95 % confidence: by Student's t of the
    /// differences, and at least six groups of points in which they differ.
    pub fn is_sure(&self) -> bool {
        self.differing >= least_differing(LEVEL)
            && self.difference.abs() > student_quantile(LEVEL, self.groups - 1) * self.error
    }
}

/// How a score comes from a mean loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// The root of the mean.
    Root,
    /// Itself.
    Plain,
    /// One less it: losses are between 0 and 1.
    Share,
}

impl Scale {
    /// The score, and its slope.
    fn shown(self, mean: f64) -> (f64, f64) {
        match self {
            Self::Root => {
                let root = mean.max(0.0).sqrt();
                (root, if root > 0.0 { 0.5 / root } else { 0.0 })
            }
            Self::Plain => (mean, 1.0),
            Self::Share => (1.0 - mean, -1.0),
        }
    }

    fn interval(self, of_mean: Interval) -> Interval {
        let (a, b) = (self.shown(of_mean.low).0, self.shown(of_mean.high).0);
        Interval { low: a.min(b), high: a.max(b), level: LEVEL, ..of_mean }
    }
}

/// The losses of one candidate at the points of a fold.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// `Σ w l` of each group.
    sums: Vec<f64>,
    /// Whether all are 0 or 1.
    binary: bool,
}

impl Losses {
    /// Adds up the losses at the points of a fold.
    pub(super) fn new(losses: &[f64], points: &Points) -> Self {
        let mut sums = vec![0.0; GROUPS];
        for (at, loss) in losses.iter().enumerate() {
            sums[points.group(at)] += points.weight(at) * loss;
        }
        Self { sums, binary: losses.iter().all(|&loss| loss == 0.0 || loss == 1.0) }
    }
}

/// The held-out points of a fold: how much each counts, and to which unit it belongs.
#[derive(Clone, Debug)]
pub(super) struct Points {
    pub(super) count: usize,
    /// How much each counts; 1 if not given.
    pub(super) weights: Option<Vec<f64>>,
    /// The number of the unit of each. If not given each is a unit, numbered from `first`.
    pub(super) units: Option<Vec<u32>>,
    /// The number of the first point in the whole search.
    pub(super) first: usize,
}

impl Points {
    fn weight(&self, at: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[at])
    }

    fn group(&self, at: usize) -> usize {
        self.units.as_ref().map_or(self.first + at, |units| units[at] as usize) % GROUPS
    }

    /// How many units of one weight these are worth for a mean: `(Σw)²/Σw²` over units (Kish); and
    /// whether each point is a unit of weight 1.
    fn size(&self) -> (f64, bool) {
        let mut of_units: Vec<(u32, f64)> = match &self.units {
            None => (0..self.count).map(|at| (at as u32, self.weight(at))).collect(),
            Some(units) => {
                units.iter().zip(0..).map(|(&unit, at)| (unit, self.weight(at))).collect()
            }
        };
        of_units.sort_by_key(|(unit, _)| *unit);
        let of_units = of_units.chunk_by(|a, b| a.0 == b.0);
        let (mut n, mut all, mut squares) = (0, 0.0, 0.0);
        for unit in of_units {
            let weight: f64 = unit.iter().map(|(_, weight)| weight).sum();
            n += 1;
            all += weight;
            squares += weight * weight;
        }
        let plain = n == self.count && (0..n).all(|at| self.weight(at) == 1.0);
        (if squares > 0.0 { all * all / squares } else { 0.0 }, plain)
    }
}

/// The sums of a fold.
struct Fold {
    count: usize,
    weight: f64,
    /// The number of independent points of one weight that these are worth.
    size: f64,
    /// Whether each point is independent and has weight 1.
    plain: bool,
    /// The summed loss of each candidate, and whether all of its losses are 0 or 1.
    losses: Vec<(f64, bool)>,
}

/// Sums of losses of all candidates, by groups of points.
pub(super) struct Tally {
    scale: Scale,
    points: usize,
    /// The weight of each group.
    weights: Vec<f64>,
    /// The sums of each candidate by group.
    sums: Vec<Vec<f64>>,
    /// For each candidate, the number of states from which these points chose the kept one.
    choices: Vec<f64>,
    folds: Vec<Fold>,
}

impl Tally {
    pub(super) fn new(n: usize, scale: Scale) -> Self {
        Self {
            scale,
            points: 0,
            weights: vec![0.0; GROUPS],
            sums: vec![vec![0.0; GROUPS]; n],
            choices: vec![1.0; n],
            folds: Vec::new(),
        }
    }

    /// Adds a fold: the losses of each candidate at all of its points, and how many states of the
    /// fit the points chose from.
    pub(super) fn add<'a>(
        &mut self,
        losses: impl IntoIterator<Item = (&'a Losses, f64)>,
        points: &Points,
    ) {
        let (size, plain) = points.size();
        let mut fold = Fold { count: points.count, weight: 0.0, size, plain, losses: Vec::new() };
        for at in 0..points.count {
            self.weights[points.group(at)] += points.weight(at);
            fold.weight += points.weight(at);
        }
        self.points += points.count;
        let own = self.sums.iter_mut().zip(&mut self.choices);
        for ((sums, choices), (new, chosen_from)) in own.zip(losses) {
            sums.iter_mut().zip(&new.sums).for_each(|(sum, new)| *sum += new);
            fold.losses.push((Sum::of(new.sums.iter().copied()), new.binary));
            *choices = choices.max(chosen_from);
        }
        self.folds.push(fold);
    }

    /// The candidates, best first.
    pub(super) fn order(&self) -> Vec<usize> {
        let means: Vec<f64> = (0..self.sums.len()).map(|a| self.mean(a)).collect();
        let mut order: Vec<usize> = (0..means.len()).collect();
        order.sort_by(|&a, &b| means[a].total_cmp(&means[b]));
        order
    }

    fn weight(&self) -> f64 {
        Sum::of(self.weights.iter().copied())
    }

    fn mean(&self, a: usize) -> f64 {
        Sum::of(self.sums[a].iter().copied()) / self.weight()
    }

    /// How many groups have points.
    fn groups(&self) -> usize {
        self.weights.iter().filter(|weight| **weight > 0.0).count()
    }

    /// The standard error of a mean over the points, from what each group adds to it. Not a number
    /// where there is one group only: nothing is known of the spread.
    fn error(&self, of_group: impl Fn(usize) -> f64) -> f64 {
        let groups = self.groups() as f64;
        if groups < 2.0 {
            return f64::NAN;
        }
        let squares = Sum::of((0..GROUPS).map(|group| of_group(group).powi(2)));
        (squares * groups / (groups - 1.0)).sqrt() / self.weight()
    }

    /// Returns the losses of a group beyond the mean.
    fn beyond(&self, a: usize, mean: f64, group: usize) -> f64 {
        self.sums[a][group] - mean * self.weights[group]
    }

    pub(super) fn score(&self, a: usize) -> Result<Score> {
        let mean = self.mean(a);
        let (value, slope) = self.scale.shown(mean);
        let error = slope.abs() * self.error(|group| self.beyond(a, mean, group));
        let interval = match self.scale {
            Scale::Share => self.guaranteed(a)?,
            Scale::Root | Scale::Plain => self.resampled(a, mean)?,
        };
        Ok(Score { value, error, interval: self.scale.interval(interval) })
    }

    /// All states of all candidates that the points could choose from.
    fn all_choices(&self) -> f64 {
        self.choices.iter().sum()
    }

    /// The interval that holds whatever the points are like: the mean over the folds of theirs. The
    /// models of two folds share training data, and each fold is training data of the others, so
    /// that no bound for independent points covers them together; by the union bound the intervals
    /// of all folds hold at once, and with them that of the mean.
    fn guaranteed(&self, a: usize) -> Result<Interval> {
        let n_bounds = self.all_choices() * self.folds.len() as f64;
        let level = 1.0 - (1.0 - LEVEL) / n_bounds;
        let bound = Hoeffding::new(0.0, 1.0, 1, level)?;
        let (mut low, mut high, mut exact) = (0.0, 0.0, true);
        for fold in self.folds.iter().filter(|fold| fold.weight > 0.0) {
            let (sum, binary) = fold.losses[a];
            let mut found = bound.interval((sum / fold.weight).clamp(0.0, 1.0), fold.size)?;
            if fold.plain && binary {
                let wrong = (sum.round() as u64).min(fold.count as u64);
                let counted = proportion(wrong, fold.count as u64, level)?;
                if counted.width() < found.width() {
                    found = counted;
                }
            }
            exact &= found.method == IntervalMethod::ClopperPearson;
            low += fold.weight * found.low;
            high += fold.weight * found.high;
        }
        let method = if exact { IntervalMethod::ClopperPearson } else { IntervalMethod::Hoeffding };
        let all = self.weight();
        Ok(Interval {
            low: (low / all).max(0.0),
            high: (high / all).min(1.0),
            level: LEVEL,
            method,
        })
    }

    /// The bootstrap over groups.
    fn resampled(&self, a: usize, mean: f64) -> Result<Interval> {
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        for (sum, &weight) in self.sums[a].iter().zip(&self.weights) {
            if weight > 0.0 {
                values.push(sum / weight);
                weights.push(weight);
            }
        }
        // The level of one interval at which all of them hold at once.
        let level = 1.0 - (1.0 - LEVEL) / self.sums.len() as f64;
        if values.len() < 2 || !mean.is_finite() {
            // These losses can be as large as they like.
            let (low, high) = (0.0, f64::INFINITY);
            return Ok(Interval { low, high, level: LEVEL, method: IntervalMethod::Percentile });
        }
        let rounds = ((100.0 / (1.0 - level)).ceil() as usize).clamp(2000, 10_000);
        let bootstrap = Bootstrap { rounds, level, seed: 0, method: IntervalMethod::Bca };
        let even = weights.iter().all(|weight| *weight == weights[0]);
        Ok(bootstrap.mean(&values, (!even).then_some(&weights))?.interval)
    }

    /// How far two candidates are apart; positive if the first is better.
    pub(super) fn lead(&self, best: usize, second: usize) -> Result<Lead> {
        let (m, n) = (self.mean(best), self.mean(second));
        let ((a, s), (b, t)) = (self.scale.shown(m), self.scale.shown(n));
        let error =
            self.error(|group| s * self.beyond(best, m, group) - t * self.beyond(second, n, group));
        let difference = if self.scale == Scale::Share { a - b } else { b - a };
        let needed = (difference != 0.0 && error.is_finite()).then(|| {
            let share = SURE * error / difference;
            ((self.points as f64 * share * share).ceil().min(1e18) as u64).max(1)
        });
        let guaranteed = match self.scale {
            Scale::Share => {
                let level = 1.0 - (1.0 - LEVEL) / self.all_choices();
                Hoeffding::new(0.0, 1.0, 1, level)?.points_to_separate(difference)?
            }
            Scale::Root | Scale::Plain => None,
        };
        let both = self.sums[best].iter().zip(&self.sums[second]);
        Ok(Lead {
            difference,
            error,
            points: self.points,
            groups: self.groups(),
            differing: both.filter(|(a, b)| a != b).count(),
            needed,
            guaranteed,
        })
    }

    pub(super) fn points(&self) -> usize {
        self.points
    }

    /// Whether the score is a share, so that more is better.
    pub(super) fn is_share(&self) -> bool {
        self.scale == Scale::Share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// Adds the points of a part as a fold.
    fn add(tally: &mut Tally, losses: &[&[f64]], points: &Points, choices: f64) {
        let new: Vec<Losses> = losses.iter().map(|of| Losses::new(of, points)).collect();
        tally.add(new.iter().map(|losses| (losses, choices)), points);
    }

    /// Points in two parts, as two folds would come.
    fn tally(scale: Scale, losses: &[&[f64]], weights: Option<&[f64]>) -> Tally {
        let mut tally = Tally::new(losses.len(), scale);
        let n = losses[0].len();
        for part in [0..n / 2, n / 2..n] {
            let points = Points {
                count: part.len(),
                weights: weights.map(|weights| weights[part.clone()].to_vec()),
                units: None,
                first: tally.points(),
            };
            let losses: Vec<&[f64]> = losses.iter().map(|of| &of[part.clone()]).collect();
            add(&mut tally, &losses, &points, 1.0);
        }
        tally
    }

    /// One fold, of independent points or of points that belong to units.
    fn once(scale: Scale, losses: &[&[f64]], units: Option<&[u32]>, choices: f64) -> Tally {
        let mut tally = Tally::new(losses.len(), scale);
        let units = units.map(<[u32]>::to_vec);
        let points = Points { count: losses[0].len(), weights: None, units, first: 0 };
        add(&mut tally, losses, &points, choices);
        tally
    }

    #[test]
    fn errors_and_leads_match_those_of_many_repetitions() {
        // Two candidates with a shared part in their losses; the spread of the scores over many
        // repetitions is what the standard errors claim. More points than groups, and fewer.
        for n in [400, 3000] {
            let draw = |seed: u64| {
                let mut stream = Stream::new(seed, "tally", 0);
                let (mut a, mut b) = (Vec::new(), Vec::new());
                for _ in 0..n {
                    let common = stream.normal();
                    a.push((common + 0.3 * stream.normal()).powi(2));
                    b.push((common + 0.4 * stream.normal()).powi(2));
                }
                let tally = tally(Scale::Root, &[&a, &b], None);
                let lead = tally.lead(0, 1).unwrap();
                (tally.mean(0).sqrt(), tally.error(|g| tally.beyond(0, tally.mean(0), g)), lead)
            };
            let runs: Vec<_> = (0..400).map(draw).collect();
            let spread = |values: Vec<f64>| {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
                (squares / values.len() as f64).sqrt()
            };
            let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            let seen = spread(runs.iter().map(|run| run.0).collect());
            let claimed = mean(runs.iter().map(|run| run.1 * 0.5 / run.0).collect());
            assert!((claimed / seen - 1.0).abs() < 0.12, "score: {claimed} for {seen}");
            let seen = spread(runs.iter().map(|run| run.2.difference).collect());
            let claimed = mean(runs.iter().map(|run| run.2.error).collect());
            assert!((claimed / seen - 1.0).abs() < 0.12, "lead: {claimed} for {seen}");
        }
    }

    #[test]
    fn a_score_by_hand() {
        // Mean 2.5, variance 5/3: the standard error of the mean is √(5/12).
        let found = tally(Scale::Plain, &[&[1.0, 2.0, 3.0, 4.0]], None).score(0).unwrap();
        assert_eq!(found.value, 2.5);
        assert!((found.error - (5.0f64 / 12.0).sqrt()).abs() < 1e-15);
        assert!(found.interval.low > 1.0 && found.interval.contains(2.5));
        let root = tally(Scale::Root, &[&[1.0, 2.0, 3.0, 4.0]], None).score(0).unwrap();
        assert!((root.error - found.error * 0.5 / 2.5f64.sqrt()).abs() < 1e-15);
        assert!((root.interval.high - found.interval.high.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn shares_have_guarantees() {
        let a: Vec<f64> = (0..2000).map(|i| f64::from(u8::from(i % 10 == 0))).collect();
        let b: Vec<f64> = (0..2000).map(|i| f64::from(u8::from(i % 5 == 0))).collect();
        let both = once(Scale::Share, &[&a, &b], None, 1.0);
        let score = both.score(0).unwrap();
        assert!((score.value - 0.9).abs() < 1e-12);
        let exact = proportion(200, 2000, 0.975).unwrap();
        assert!((score.interval.low - (1.0 - exact.high)).abs() < 1e-12);
        assert_eq!(
            (score.interval.level, score.interval.method),
            (0.95, IntervalMethod::ClopperPearson)
        );
        let lead = both.lead(0, 1).unwrap();
        assert!((lead.difference - 0.1).abs() < 1e-12 && lead.is_sure());
        let bound = Hoeffding::new(0.0, 1.0, 2, 0.95).unwrap();
        assert_eq!(lead.guaranteed, bound.points_to_separate(lead.difference).unwrap());
        // The other way round it trails.
        assert!((both.lead(1, 0).unwrap().difference + 0.1).abs() < 1e-12);
        // Two folds: the mean of their intervals, each at half the error.
        let folds = tally(Scale::Share, &[&a, &b], None).score(0).unwrap();
        let of_fold = proportion(100, 1000, 1.0 - 0.05 / 4.0).unwrap();
        assert!((folds.interval.width() - of_fold.width()).abs() < 1e-12);
        // With weights it is Hoeffding, for as many points as they are worth.
        let weights: Vec<f64> = (0..2000).map(|i| f64::from(i % 2) + 1.0).collect();
        let weighted = tally(Scale::Share, &[&a, &b], Some(&weights)).score(0).unwrap();
        assert_eq!(weighted.interval.method, IntervalMethod::Hoeffding);
        let n = 1500.0f64.powi(2) / 2500.0;
        let bound = Hoeffding::new(0.0, 1.0, 4, 0.95).unwrap();
        let expected = bound.interval(1.0 - weighted.value, n).unwrap();
        assert!((weighted.interval.width() - expected.width()).abs() < 1e-12);
    }

    #[test]
    fn guarantees_pay_for_every_state_that_was_chosen_from() {
        let losses: Vec<f64> = (0..500).map(|i| f64::from(i % 7) / 10.0).collect();
        let width = |choices| {
            let tally = once(Scale::Share, &[&losses, &losses], None, choices);
            tally.score(0).unwrap().interval.width()
        };
        let bound = |n| Hoeffding::new(0.0, 1.0, n, 0.95).unwrap().epsilon(500.0).unwrap();
        assert!((width(1.0) - 2.0 * bound(2)).abs() < 1e-12);
        assert!((width(30.0) - 2.0 * bound(60)).abs() < 1e-12);
    }

    /// The best of many iterations by the very points that measure it: an interval for one
    /// iteration holds far less often than it claims, that for all of them keeps its word.
    #[test]
    fn guarantees_hold_for_the_best_of_many_iterations() {
        let (n, iterations) = (60, 200);
        let (mut covered, mut without) = (0, 0);
        for repetition in 0..200 {
            let mut stream = Stream::new(repetition, "tally.choice", 0);
            let draw = |_| -> Vec<f64> {
                (0..n).map(|_| f64::from(u8::from(stream.uniform() < 0.5))).collect()
            };
            let all: Vec<Vec<f64>> = (0..iterations).map(draw).collect();
            let sum = |losses: &Vec<f64>| losses.iter().sum::<f64>();
            let best = all.iter().min_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap();
            let interval = |choices| {
                let tally = once(Scale::Share, &[best.as_slice()], None, choices);
                tally.score(0).unwrap().interval
            };
            covered += u32::from(interval(f64::from(iterations)).contains(0.5));
            without += u32::from(interval(1.0).contains(0.5));
        }
        assert!(covered >= 190 && without < 100, "{covered} {without}");
    }

    #[test]
    fn a_user_in_every_fold_counts_once() {
        // The same losses of the same 50 users in each of four folds: nothing more is known than
        // after the first.
        let losses: Vec<f64> = (0..50).map(|i| f64::from(i * 7 % 11) / 11.0).collect();
        let units: Vec<u32> = (0..50).collect();
        let of = |folds: usize, own: bool| {
            let mut tally = Tally::new(1, Scale::Share);
            for fold in 0..folds {
                let units = own.then(|| units.clone());
                let points = Points { count: 50, weights: None, units, first: 50 * fold };
                add(&mut tally, &[&losses], &points, 1.0);
            }
            tally.score(0).unwrap()
        };
        let (one, four) = (of(1, true), of(4, true));
        assert!((one.error - four.error).abs() < 1e-12);
        assert!(four.interval.width() >= one.interval.width());
        // As independent points their error would be half.
        assert!((of(4, false).error / one.error - 0.5).abs() < 0.02);
    }

    #[test]
    fn units_are_worth_what_their_points_are_worth_together() {
        let points = |weights: Option<Vec<f64>>, units: Option<Vec<u32>>| Points {
            count: 4,
            weights,
            units,
            first: 0,
        };
        assert_eq!(points(None, None).size(), (4.0, true));
        assert_eq!(points(None, Some(vec![7, 3, 9, 1])).size(), (4.0, true));
        assert_eq!(points(None, Some(vec![3, 7, 3, 7])).size(), (2.0, false));
        assert_eq!(points(Some(vec![3.0, 1.0, 0.0, 0.0]), None).size(), (1.6, false));
    }

    #[test]
    fn one_point_says_nothing_of_its_spread() {
        for scale in [Scale::Root, Scale::Plain] {
            let tally = once(scale, &[&[1.0], &[4.0]], None, 1.0);
            let score = tally.score(0).unwrap();
            assert!(score.error.is_nan(), "{score:?}");
            assert_eq!((score.interval.low, score.interval.high), (0.0, f64::INFINITY));
            let lead = tally.lead(0, 1).unwrap();
            assert!(!lead.is_sure() && lead.error.is_nan() && lead.needed.is_none(), "{lead:?}");
        }
        let share = once(Scale::Share, &[&[0.0], &[1.0]], None, 1.0);
        assert!(share.score(0).unwrap().interval.width() > 0.9);
        assert!(!share.lead(0, 1).unwrap().is_sure());
    }

    #[test]
    fn a_few_points_that_agree_are_not_sure() {
        // All differences are alike, so the standard error is 0.
        for (n, sure) in [(2, false), (5, false), (6, true)] {
            let (good, bad) = (vec![0.0; n], vec![1.0; n]);
            let lead = once(Scale::Share, &[&good, &bad], None, 1.0).lead(0, 1).unwrap();
            assert_eq!((lead.error, lead.is_sure()), (0.0, sure), "{n}");
        }
        // Of a thousand answers four differ: that happens by chance in one of eight.
        let (mut good, mut bad) = (vec![0.0; 1000], vec![0.0; 1000]);
        bad[..4].fill(1.0);
        good[4..100].fill(1.0);
        bad[4..100].fill(1.0);
        let lead = once(Scale::Share, &[&good, &bad], None, 1.0).lead(0, 1).unwrap();
        assert!(lead.difference > 1.9 * lead.error && !lead.is_sure(), "{lead:?}");
    }

    #[test]
    fn weights_equal_repetition_in_the_means() {
        let weighted = tally(Scale::Root, &[&[1.0, 4.0]], Some(&[2.0, 1.0]));
        let repeated = tally(Scale::Root, &[&[1.0, 1.0, 4.0]], None);
        assert_eq!(weighted.mean(0), repeated.mean(0));
    }

    #[test]
    fn what_differs_by_a_hair_is_not_sure() {
        // In a difference of products all digits of such an error would be lost.
        let a: Vec<f64> = (0..500).map(|i| 1e6 + f64::from(i)).collect();
        let b: Vec<f64> =
            a.iter().enumerate().map(|(i, a)| a + 1e-8 * (f64::from(i as u32 % 7) - 2.9)).collect();
        let lead = tally(Scale::Root, &[&a, &b], None).lead(0, 1).unwrap();
        assert!(lead.error > 0.0 && !lead.is_sure(), "{lead:?}");
    }

    #[test]
    fn equal_candidates_cannot_be_distinguished() {
        let tally = tally(Scale::Root, &[&[1.0, 2.0], &[1.0, 2.0]], None);
        let lead = tally.lead(0, 1).unwrap();
        assert_eq!((lead.difference, lead.error, lead.needed), (0.0, 0.0, None));
        assert!(!lead.is_sure());
        assert_eq!(tally.order(), [0, 1]);
    }
}
