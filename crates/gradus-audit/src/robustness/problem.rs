//! Some rows under attack: evaluation of perturbed rows in batches, with queries counted.

use super::classifier::Classifier;
use super::loss::AttackLoss;
use super::space::{Moves, Space};
use gradus_base::{Error, Result};
use gradus_data::Dense;
use std::cell::RefCell;

/// Rows that are evaluated at once: enough to keep a network busy, few enough to fit the memory of its layers.
const BATCH: usize = 512;

/// A perturbation of a row.
pub(super) type Point<'a> = (u32, &'a [f64]);

/// A loss, the scores and the gradient of the loss at one point.
pub(super) struct Slope {
    pub loss: f64,
    pub scores: Vec<f64>,
    pub gradient: Vec<f64>,
}

impl Slope {
    /// The class of the highest score.
    pub fn class(&self) -> u32 {
        strongest(&self.scores)
    }
}

/// Rows, their true classes, and a classifier to deceive.
pub(super) struct Problem<'a> {
    pub victim: &'a dyn Classifier,
    pub moves: Moves<'a>,
    pub truth: Vec<u32>,
    /// The radius of the ball that perturbations must stay in, for changes of words.
    pub eps: f64,
    queries: RefCell<Vec<u64>>,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Problem<'a> {
    pub fn new(
        victim: &'a dyn Classifier,
        space: &'a Space,
        rows: Dense<f64>,
        truth: Vec<u32>,
        ids: Vec<u64>,
        stopped: &'a dyn Fn() -> bool,
    ) -> Self {
        let queries = RefCell::new(vec![0; truth.len()]);
        let moves = Moves::new(space, rows, ids);
        Self { victim, moves, truth, eps: f64::INFINITY, queries, stopped }
    }

    /// The same rows against another classifier.
    pub fn against(&self, other: &'a dyn Classifier) -> Self {
        let queries = RefCell::new(vec![0; self.truth.len()]);
        Self {
            victim: other,
            moves: self.moves.clone(),
            truth: self.truth.clone(),
            eps: self.eps,
            queries,
            stopped: self.stopped,
        }
    }

    /// The number of coordinates of a perturbation.
    pub fn n_moves(&self) -> usize {
        self.moves.len()
    }

    /// The number of evaluations of a row so far.
    pub fn queries(&self, row: u32) -> u64 {
        self.queries.borrow()[row as usize]
    }

    /// Counts evaluations.
    ///
    /// # Errors
    /// If somebody asked to stop.
    fn count(&self, points: &[Point<'_>]) -> Result<()> {
        if (self.stopped)() {
            return Err(Error::data("the audit was stopped"));
        }
        let mut queries = self.queries.borrow_mut();
        points.iter().for_each(|(row, _)| queries[*row as usize] += 1);
        Ok(())
    }

    /// The scores of each class at some points.
    pub fn scores(&self, points: &[Point<'_>]) -> Result<Dense<f64>> {
        let k = self.victim.n_classes();
        let mut all = Vec::with_capacity(points.len() * k);
        for part in points.chunks(BATCH) {
            self.count(part)?;
            let found = self.victim.scores(&self.moves.lift_all(part, self.eps))?;
            all.extend_from_slice(found.values());
        }
        Dense::new(points.len(), k, all)
    }

    /// The predicted class at some points.
    pub fn decide(&self, points: &[Point<'_>]) -> Result<Vec<u32>> {
        let mut all = Vec::with_capacity(points.len());
        for part in points.chunks(BATCH) {
            self.count(part)?;
            all.extend(self.victim.decide(&self.moves.lift_all(part, self.eps))?);
        }
        Ok(all)
    }

    /// The loss of each point, its scores and its gradient; the loss may differ from point to point.
    pub fn slopes(
        &self,
        points: &[Point<'_>],
        loss: impl Fn(usize) -> AttackLoss,
    ) -> Result<Vec<Slope>> {
        let mut all = Vec::with_capacity(points.len());
        for (part, rows) in points.chunks(BATCH).enumerate() {
            self.count(rows)?;
            let mut losses = vec![0.0; rows.len()];
            let found = self.victim.scores_and_gradient(
                &self.moves.lift_all(rows, self.eps),
                &mut |first, scores| {
                    let mut weights = Dense::full(scores.n_rows(), scores.n_cols(), 0.0);
                    for at in 0..scores.n_rows() {
                        let point = first + at;
                        let truth = self.truth[rows[point].0 as usize];
                        let loss = loss(part * BATCH + point);
                        losses[point] = loss.value(scores.row(at), truth, weights.row_mut(at));
                    }
                    weights
                },
            )?;
            for (at, loss) in losses.into_iter().enumerate() {
                let mut gradient = vec![0.0; self.n_moves()];
                self.moves.pull(found.gradient.row(at), &mut gradient);
                all.push(Slope { loss, scores: found.scores.row(at).to_vec(), gradient });
            }
        }
        Ok(all)
    }

    /// The margin of each point: positive where another class has the higher score.
    pub fn margins(&self, points: &[Point<'_>]) -> Result<Vec<f64>> {
        let scores = self.scores(points)?;
        let mut slopes = vec![0.0; scores.n_cols()];
        let margin = |(row, scores): (&Point<'_>, &[f64])| {
            let truth = self.truth[row.0 as usize];
            // Of equal scores the first class is predicted.
            let fallen = strongest(scores) != truth;
            let margin = AttackLoss::Margin.value(scores, truth, &mut slopes);
            if fallen { margin.max(f64::MIN_POSITIVE) } else { margin.min(0.0) }
        };
        Ok(points.iter().zip(scores.rows()).map(margin).collect())
    }
}

/// The class of the highest score, the first of equals.
pub(super) fn strongest(scores: &[f64]) -> u32 {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best as u32
}

/// What an attack found for each row: a perturbation that changes the decision.
pub(super) type Found = Vec<Option<Vec<f64>>>;

/// The classes of clean rows by falling score, without the true one: the order in which targets are tried.
pub(super) fn rivals(problem: &Problem<'_>, rows: &[u32]) -> Result<Vec<Vec<u32>>> {
    let zeros = vec![0.0; problem.n_moves()];
    let points: Vec<Point<'_>> = rows.iter().map(|&row| (row, &zeros[..])).collect();
    let scores = problem.scores(&points)?;
    let order = |(row, scores): (&u32, &[f64])| {
        let truth = problem.truth[*row as usize];
        let mut order: Vec<u32> =
            (0..scores.len() as u32).filter(|&class| class != truth).collect();
        order.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
        order
    };
    Ok(rows.iter().zip(scores.rows()).map(order).collect())
}
