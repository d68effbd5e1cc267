//! Sums over held-out points, from which scores and their uncertainties come.

/// How sure "sure" is: two standard errors and a bit, 95 % of a normal law.
const SURE: f64 = 1.96;

/// A score with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The score: a root mean squared error, or a mean NDCG.
    pub value: f64,
    /// Its standard error, the held-out points taken as independent.
    pub error: f64,
}

/// By how much the best candidate leads the second, judged on the same points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lead {
    /// The difference of their scores, positive.
    pub difference: f64,
    /// Its standard error, from the differences point by point.
    pub error: f64,
    /// Held-out points there were.
    pub points: usize,
    /// Points it would take to tell the two apart with 95 % confidence; `None` if they are equal.
    pub needed: Option<u64>,
}

impl Lead {
    /// Whether the points at hand tell the two apart.
    pub fn is_sure(&self) -> bool {
        self.difference > SURE * self.error
    }
}

/// Weighted sums of losses and of their products, for all pairs of candidates.
pub(super) struct Tally {
    n: usize,
    points: usize,
    weight: f64,
    /// `Σ w²`, for the variance of a weighted mean.
    weight_squares: f64,
    sums: Vec<f64>,
    /// `Σ w l_a l_b`, row by row.
    products: Vec<f64>,
}

impl Tally {
    pub(super) fn new(n: usize) -> Self {
        Self {
            n,
            points: 0,
            weight: 0.0,
            weight_squares: 0.0,
            sums: vec![0.0; n],
            products: vec![0.0; n * n],
        }
    }

    /// Adds points: `losses[candidate][point]`.
    pub(super) fn add(&mut self, losses: &[&[f32]], weights: &[f32]) {
        self.points += weights.len();
        for (at, &w) in weights.iter().enumerate() {
            let w = f64::from(w);
            self.weight += w;
            self.weight_squares += w * w;
            for (a, of_a) in losses.iter().enumerate() {
                let loss = w * f64::from(of_a[at]);
                self.sums[a] += loss;
                let products = &mut self.products[a * self.n..][..self.n];
                for (product, of_b) in products[a..].iter_mut().zip(&losses[a..]) {
                    *product += loss * f64::from(of_b[at]);
                }
            }
        }
    }

    /// The candidates, best first.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.n).collect();
        order.sort_by(|&a, &b| self.sums[a].total_cmp(&self.sums[b]));
        order
    }

    fn mean(&self, a: usize) -> f64 {
        self.sums[a] / self.weight
    }

    /// The covariance of the losses of two candidates at a point.
    fn covariance(&self, a: usize, b: usize) -> f64 {
        let at = a.min(b) * self.n + a.max(b);
        self.products[at] / self.weight - self.mean(a) * self.mean(b)
    }

    /// What the standard deviation at a point is divided by in a mean.
    fn shrink(&self) -> f64 {
        self.weight / self.weight_squares.sqrt()
    }

    /// The slope of the score as a function of the mean loss, and the score.
    fn shown(&self, a: usize, higher_is_better: bool) -> (f64, f64) {
        let mean = self.mean(a);
        if higher_is_better {
            return (-1.0, -mean);
        }
        let root = mean.max(0.0).sqrt();
        (if root > 0.0 { 0.5 / root } else { 0.0 }, root)
    }

    pub(super) fn score(&self, a: usize, higher_is_better: bool) -> Score {
        let (slope, value) = self.shown(a, higher_is_better);
        let deviation = self.covariance(a, a).max(0.0).sqrt();
        Score { value, error: slope.abs() * deviation / self.shrink() }
    }

    pub(super) fn lead(&self, best: usize, second: usize, higher_is_better: bool) -> Lead {
        let ((s, a), (t, b)) =
            (self.shown(best, higher_is_better), self.shown(second, higher_is_better));
        let (vb, vs) = (self.covariance(best, best), self.covariance(second, second));
        let variance = s * s * vb + t * t * vs - 2.0 * s * t * self.covariance(best, second);
        let difference = (a - b).abs();
        let error = variance.max(0.0).sqrt() / self.shrink();
        let needed = (difference > 0.0).then(|| {
            let share = SURE * error / difference;
            (self.points as f64 * share * share).ceil().min(1e18) as u64
        });
        Lead { difference, error, points: self.points, needed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_core::random::Stream;

    #[test]
    fn errors_and_leads_match_those_of_many_repetitions() {
        // Two candidates with a shared part in their losses; the spread of the scores over many
        // repetitions is what the standard errors claim.
        let n = 400;
        let draw = |seed: u64| {
            let mut stream = Stream::new(seed, "tally", 0);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for _ in 0..n {
                let common = stream.normal();
                a.push((common + 0.3 * stream.normal()).powi(2) as f32);
                b.push((common + 0.4 * stream.normal()).powi(2) as f32);
            }
            let mut tally = Tally::new(2);
            // In two parts, as two folds would come.
            tally.add(&[&a[..n / 2], &b[..n / 2]], &vec![1.0; n / 2]);
            tally.add(&[&a[n / 2..], &b[n / 2..]], &vec![1.0; n / 2]);
            let gap = tally.score(1, false).value - tally.score(0, false).value;
            (tally.score(0, false), gap, tally.lead(0, 1, false))
        };
        let runs: Vec<_> = (0..600).map(draw).collect();
        let spread = |values: Vec<f64>| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            (squares / values.len() as f64).sqrt()
        };
        let seen = spread(runs.iter().map(|run| run.0.value).collect());
        let claimed = runs.iter().map(|run| run.0.error).sum::<f64>() / runs.len() as f64;
        assert!((claimed / seen - 1.0).abs() < 0.1, "score: {claimed} for {seen}");
        let seen = spread(runs.iter().map(|run| run.1).collect());
        let claimed = runs.iter().map(|run| run.2.error).sum::<f64>() / runs.len() as f64;
        assert!((claimed / seen - 1.0).abs() < 0.1, "lead: {claimed} for {seen}");
    }

    #[test]
    fn weights_equal_repetition_in_the_means() {
        let (mut weighted, mut repeated) = (Tally::new(1), Tally::new(1));
        weighted.add(&[&[1.0, 4.0]], &[2.0, 1.0]);
        repeated.add(&[&[1.0, 1.0, 4.0]], &[1.0; 3]);
        assert_eq!(weighted.score(0, false).value, repeated.score(0, false).value);
    }

    #[test]
    fn equal_candidates_cannot_be_told_apart() {
        let mut tally = Tally::new(2);
        tally.add(&[&[1.0, 2.0], &[1.0, 2.0]], &[1.0, 1.0]);
        let lead = tally.lead(0, 1, false);
        assert_eq!((lead.difference, lead.error, lead.needed), (0.0, 0.0, None));
        assert!(!lead.is_sure());
        assert_eq!(tally.order(), [0, 1]);
    }
}
