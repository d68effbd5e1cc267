//! Lloyd's iterations, as steps of the shared loop.

use super::data::Data;
use super::search::{self, Assignment, Moves, Prepared};
use super::start;
use super::update::Sums;
use gradus_base::Result;
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_file::{Reader, Writer};

/// Iterations after which sums are taken anew, so that the rounding of what is added and taken off does not add up.
const ANEW: u64 = 16;

/// The start of the iterations.
pub(super) enum Start<'a> {
    /// Samples drawn by k-means++.
    PlusPlus { seed: u64 },
    /// Given centres.
    Given(&'a [f64]),
}

/// Lloyd's algorithm on some samples.
pub(super) struct Lloyd<'a> {
    pub(super) data: &'a Data<'a>,
    pub(super) k: usize,
    pub(super) start: Start<'a>,
    pub(super) held_out: Option<&'a Data<'a>>,
}

/// Centres, and what follows from those of the iteration before.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) centres: Vec<f64>,
    /// The assignment to the centres of the iteration before; empty before the first.
    assignment: Assignment,
    sums: Sums,
    /// How far the centres moved since the samples were assigned; `None` where nothing is known of the bounds.
    before: Option<Vec<f64>>,
    iterations: u64,
}

impl Lloyd<'_> {
    /// The clusters of the samples by the centres of a state: as [`labels`], but with the bounds it carries.
    pub(super) fn labels(&self, state: &mut State) -> Vec<u32> {
        if state.assignment.labels.is_empty() {
            return labels(self.data, &state.centres);
        }
        let moves = state.before.take();
        let moves = moves.map(|before| Moves::new(self.data, &before, &state.centres));
        let prepared = Prepared::after(self.data, &state.centres, moves.as_ref());
        prepared.assign(self.data, &mut state.assignment, moves.as_ref());
        std::mem::take(&mut state.assignment.labels)
    }
}

/// The nearest centre of each sample.
pub(super) fn labels(data: &Data<'_>, centres: &[f64]) -> Vec<u32> {
    let mut assignment = Assignment::unknown(vec![0; data.len()]);
    Prepared::new(data, centres).assign(data, &mut assignment, None);
    assignment.labels
}

/// The nearest centre of each sample, and the weighted sum of the dissimilarities.
pub(super) fn cost(data: &Data<'_>, centres: &[f64]) -> (Vec<u32>, f64) {
    let labels = labels(data, centres);
    let sum = total(data, centres, &labels);
    (labels, sum)
}

/// The nearest centre of each sample, and how far it is.
pub(super) fn own(data: &Data<'_>, centres: &[f64]) -> (Vec<u32>, Vec<f64>) {
    let labels = labels(data, centres);
    let own = search::own(data, centres, &labels);
    (labels, own)
}

/// The weighted sum of the dissimilarities of samples to their centres.
pub(super) fn total(data: &Data<'_>, centres: &[f64], labels: &[u32]) -> f64 {
    let own = search::own(data, centres, labels);
    // In blocks, so that the sum of many is as exact as that of few.
    let sums = own.chunks(1024).enumerate().map(|(block, own)| {
        let weighted = own.iter().enumerate();
        weighted.map(|(at, own)| data.weight(block * 1024 + at) * own).sum::<f64>()
    });
    sums.sum()
}

impl Solver for Lloyd<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let centres = match self.start {
            Start::PlusPlus { seed } => start::plus_plus(self.data, self.k, seed, restart),
            Start::Given(centres) => centres.to_vec(),
        };
        Ok(State {
            centres,
            assignment: Assignment::default(),
            sums: Sums::zeros(self.k, self.data.n_features()),
            before: None,
            iterations: 0,
        })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        let data = self.data;
        let first = state.assignment.labels.is_empty();
        if first {
            state.assignment = Assignment::unknown(vec![0; data.len()]);
        }
        let moves = state.before.take().map(|before| Moves::new(data, &before, &state.centres));
        let prepared = Prepared::after(data, &state.centres, moves.as_ref());
        let changes = prepared.assign(data, &mut state.assignment, moves.as_ref());
        if first || state.iterations.is_multiple_of(ANEW) || changes.len() > data.len() / 4 {
            state.sums = Sums::of(data, self.k, &state.assignment.labels);
        } else {
            state.sums.change(data, &changes);
        }
        let filled = state.sums.fill_empty(data, &state.centres, &mut state.assignment);
        state.sums.change(data, &filled);
        state.iterations += 1;
        let before = state.centres.clone();
        state.sums.centres(data, &mut state.centres);
        let objective = match state.sums.objective(data) {
            Some(objective) => objective,
            None => total(data, &state.centres, &state.assignment.labels),
        };
        state.before = Some(before);
        Ok(Step::Done(objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out?;
        Some(cost(held_out, &state.centres).1 / held_out.total)
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        let (k, d) = (self.k, self.data.n_features());
        file.set(&format!("{prefix}iterations"), &state.iterations);
        file.tensor(&format!("{prefix}centres"), &[k, d], &state.centres);
        file.tensor(&format!("{prefix}sums"), &[k, d], &state.sums.sums);
        file.tensor(&format!("{prefix}weights"), &[k], &state.sums.weights);
        file.tensor(&format!("{prefix}counts"), &[k], &state.sums.counts);
        let labels = &state.assignment.labels;
        file.tensor(&format!("{prefix}labels"), &[labels.len()], labels);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (k, d, n) = (self.k, self.data.n_features(), self.data.len());
        let iterations = file.get(&format!("{prefix}iterations"))?;
        let centres = file.finite(&format!("{prefix}centres"), &[k, d])?;
        let sums = Sums {
            k,
            sums: file.finite(&format!("{prefix}sums"), &[k, d])?,
            weights: file.finite(&format!("{prefix}weights"), &[k])?,
            counts: file.vector(&format!("{prefix}counts"))?,
        };
        let labels: Vec<u32> = file.vector(&format!("{prefix}labels"))?;
        let fits = labels.is_empty() || labels.len() == n;
        if sums.counts.len() != k || !fits || labels.iter().any(|&label| label as usize >= k) {
            return Err(file.broken("the labels are not those of this data"));
        }
        // Nothing is known of the bounds, which only save time.
        let assignment = match labels.is_empty() {
            true => Assignment::default(),
            false => Assignment::unknown(labels),
        };
        Ok(State { centres, assignment, sums, before: None, iterations })
    }
}
