//! Sums over held-out points, from which scores and their uncertainties come.

use crate::bounds::{Bootstrap, Hoeffding, Interval, Method, proportion};
use crate::metrics::rows::Sum;
use gradus_core::Result;
use serde::Serialize;

/// How sure "sure" is: two standard errors and a bit, 95 % of a normal law.
const SURE: f64 = 1.96;
/// How often all intervals of a search should hold at once.
const LEVEL: f64 = 0.95;
/// Points are dealt into at most so many groups, and only the sums of groups are kept. Points being
/// independent, so are groups; with this many a standard error is known to about two percent.
const GROUPS: usize = 1024;

/// A score with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The score: a root mean squared error, a mean log loss, a share of right answers, a mean NDCG.
    pub value: f64,
    /// Its standard error, the held-out points taken as independent.
    pub error: f64,
    /// Where the true score is. The intervals of all candidates hold at once, with 95 % confidence:
    /// by Hoeffding or exactly where the score is a mean between 0 and 1, else by bootstrap.
    pub interval: Interval,
}

/// By how much the best candidate leads the second, judged on the same points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lead {
    /// The difference of their scores: positive, but for a score they were not chosen by.
    pub difference: f64,
    /// Its standard error, from the differences point by point.
    pub error: f64,
    /// Held-out points there were.
    pub points: usize,
    /// Points it would take to tell the two apart with 95 % confidence, if they are like these;
    /// `None` if the two are equal.
    pub needed: Option<u64>,
    /// Points that are enough whatever they are like, for all candidates at once (by Hoeffding, where
    /// the score is a mean between 0 and 1).
    pub guaranteed: Option<u64>,
}

impl Lead {
    /// Whether the points at hand tell the two apart.
    pub fn is_sure(&self) -> bool {
        self.difference.abs() > SURE * self.error
    }
}

/// How a score comes from a mean loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Its root.
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

/// The losses of one candidate at some of the points.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// `Σ w l` of each group.
    sums: Vec<f64>,
    /// Whether all are 0 or 1.
    binary: bool,
}

impl Losses {
    /// Adds losses up; the first is that of point `offset` of all.
    pub(super) fn new(losses: &[f64], weights: &Weights, offset: usize) -> Self {
        let mut sums = vec![0.0; GROUPS];
        for (at, loss) in losses.iter().enumerate() {
            sums[(offset + at) % GROUPS] += weights.of(at) * loss;
        }
        Self { sums, binary: losses.iter().all(|&loss| loss == 0.0 || loss == 1.0) }
    }
}

/// How much each point counts.
#[derive(Clone, Debug)]
pub(super) enum Weights {
    /// So many points count 1.
    One(usize),
    /// Each counts so much.
    Each(Vec<f64>),
}

impl Weights {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(n) => *n,
            Self::Each(weights) => weights.len(),
        }
    }

    fn of(&self, at: usize) -> f64 {
        match self {
            Self::One(_) => 1.0,
            Self::Each(weights) => weights[at],
        }
    }
}

/// Sums of losses of all candidates, by groups of points.
pub(super) struct Tally {
    scale: Scale,
    points: usize,
    /// The weight of each group.
    weights: Vec<f64>,
    /// `Σ w²`.
    weight_squares: f64,
    unit_weights: bool,
    /// The sums of each candidate.
    losses: Vec<Losses>,
}

impl Tally {
    pub(super) fn new(n: usize, scale: Scale) -> Self {
        Self {
            scale,
            points: 0,
            weights: vec![0.0; GROUPS],
            weight_squares: 0.0,
            unit_weights: true,
            losses: vec![Losses { sums: vec![0.0; GROUPS], binary: true }; n],
        }
    }

    /// Adds points: the losses of each candidate at all of them.
    pub(super) fn add<'a>(
        &mut self,
        losses: impl IntoIterator<Item = &'a Losses>,
        weights: &Weights,
    ) {
        for at in 0..weights.len() {
            let weight = weights.of(at);
            self.weights[(self.points + at) % GROUPS] += weight;
            self.weight_squares += weight * weight;
            self.unit_weights &= weight == 1.0;
        }
        self.points += weights.len();
        for (own, new) in self.losses.iter_mut().zip(losses) {
            own.binary &= new.binary;
            own.sums.iter_mut().zip(&new.sums).for_each(|(sum, new)| *sum += new);
        }
    }

    /// The candidates, best first.
    pub(super) fn order(&self) -> Vec<usize> {
        let means: Vec<f64> = (0..self.losses.len()).map(|a| self.mean(a)).collect();
        let mut order: Vec<usize> = (0..means.len()).collect();
        order.sort_by(|&a, &b| means[a].total_cmp(&means[b]));
        order
    }

    fn weight(&self) -> f64 {
        Sum::of(self.weights.iter().copied())
    }

    fn mean(&self, a: usize) -> f64 {
        Sum::of(self.losses[a].sums.iter().copied()) / self.weight()
    }

    /// How many points of one weight there are, or as many as weighted ones are worth.
    fn size(&self) -> f64 {
        self.weight() * self.weight() / self.weight_squares
    }

    /// The standard error of a mean over the points, from what each group adds to it.
    fn error(&self, of_group: impl Fn(usize) -> f64) -> f64 {
        let groups = self.weights.iter().filter(|weight| **weight > 0.0).count() as f64;
        if groups < 2.0 {
            return 0.0;
        }
        let squares = Sum::of((0..GROUPS).map(|group| of_group(group).powi(2)));
        (squares * groups / (groups - 1.0)).sqrt() / self.weight()
    }

    /// What a group's losses are beyond the mean.
    fn beyond(&self, a: usize, mean: f64, group: usize) -> f64 {
        self.losses[a].sums[group] - mean * self.weights[group]
    }

    pub(super) fn score(&self, a: usize) -> Result<Score> {
        let mean = self.mean(a);
        let (value, slope) = self.scale.shown(mean);
        let error = slope.abs() * self.error(|group| self.beyond(a, mean, group));
        let interval = match self.scale {
            Scale::Share => self.guaranteed(a, mean)?,
            Scale::Root | Scale::Plain => self.resampled(a, mean)?,
        };
        Ok(Score { value, error, interval: self.scale.interval(interval) })
    }

    /// The level of one interval at which all of them hold at once.
    fn level(&self) -> f64 {
        1.0 - (1.0 - LEVEL) / self.losses.len() as f64
    }

    fn hoeffding(&self) -> Result<Hoeffding> {
        Hoeffding::new(0.0, 1.0, self.losses.len(), LEVEL)
    }

    /// The narrower of the intervals that hold whatever the points are like.
    fn guaranteed(&self, a: usize, mean: f64) -> Result<Interval> {
        let bound = self.hoeffding()?.interval(mean.clamp(0.0, 1.0), self.size())?;
        if !(self.unit_weights && self.losses[a].binary) {
            return Ok(bound);
        }
        let wrong = Sum::of(self.losses[a].sums.iter().copied()).round() as u64;
        let exact = proportion(wrong, self.points as u64, self.level())?;
        Ok(if exact.width() < bound.width() { exact } else { bound })
    }

    /// The bootstrap over groups.
    fn resampled(&self, a: usize, mean: f64) -> Result<Interval> {
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        for (sum, &weight) in self.losses[a].sums.iter().zip(&self.weights) {
            if weight > 0.0 {
                values.push(sum / weight);
                weights.push(weight);
            }
        }
        let level = self.level();
        if values.len() < 2 || !mean.is_finite() {
            let (low, high) = (mean, mean);
            return Ok(Interval { low, high, level: LEVEL, method: Method::Percentile });
        }
        let rounds = ((100.0 / (1.0 - level)).ceil() as usize).clamp(2000, 10_000);
        let bootstrap = Bootstrap { rounds, level, seed: 0, method: Method::Bca };
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
        let needed = (difference != 0.0).then(|| {
            let share = SURE * error / difference;
            ((self.points as f64 * share * share).ceil().min(1e18) as u64).max(1)
        });
        let guaranteed = match self.scale {
            Scale::Share => self.hoeffding()?.points_to_separate(difference)?,
            Scale::Root | Scale::Plain => None,
        };
        Ok(Lead { difference, error, points: self.points, needed, guaranteed })
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
    use gradus_core::random::Stream;

    /// Points in two parts, as two folds would come.
    fn tally(scale: Scale, losses: &[&[f64]], weights: Option<&[f64]>) -> Tally {
        let mut tally = Tally::new(losses.len(), scale);
        let n = losses[0].len();
        for part in [0..n / 2, n / 2..n] {
            let weights = match weights {
                Some(weights) => Weights::Each(weights[part.clone()].to_vec()),
                None => Weights::One(part.len()),
            };
            let new: Vec<Losses> = losses
                .iter()
                .map(|of| Losses::new(&of[part.clone()], &weights, tally.points()))
                .collect();
            tally.add(&new, &weights);
        }
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
        let both = tally(Scale::Share, &[&a, &b], None);
        let score = both.score(0).unwrap();
        assert!((score.value - 0.9).abs() < 1e-12);
        let exact = proportion(200, 2000, 0.975).unwrap();
        assert!((score.interval.low - (1.0 - exact.high)).abs() < 1e-12);
        assert_eq!((score.interval.level, score.interval.method), (0.95, Method::ClopperPearson));
        let lead = both.lead(0, 1).unwrap();
        assert!((lead.difference - 0.1).abs() < 1e-12 && lead.is_sure());
        let bound = Hoeffding::new(0.0, 1.0, 2, 0.95).unwrap();
        assert_eq!(lead.guaranteed, bound.points_to_separate(lead.difference).unwrap());
        // The other way round it trails.
        assert!((both.lead(1, 0).unwrap().difference + 0.1).abs() < 1e-12);
        // With weights it is Hoeffding, for as many points as they are worth.
        let weights: Vec<f64> = (0..2000).map(|i| f64::from(i % 2) + 1.0).collect();
        let weighted = tally(Scale::Share, &[&a, &b], Some(&weights)).score(0).unwrap();
        assert_eq!(weighted.interval.method, Method::Hoeffding);
        let n = 3000.0f64.powi(2) / 5000.0;
        let expected = bound.interval(1.0 - weighted.value, n).unwrap();
        assert!((weighted.interval.width() - expected.width()).abs() < 1e-12);
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
    fn equal_candidates_cannot_be_told_apart() {
        let tally = tally(Scale::Root, &[&[1.0, 2.0], &[1.0, 2.0]], None);
        let lead = tally.lead(0, 1).unwrap();
        assert_eq!((lead.difference, lead.error, lead.needed), (0.0, 0.0, None));
        assert!(!lead.is_sure());
        assert_eq!(tally.order(), [0, 1]);
    }
}
