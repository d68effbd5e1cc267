//! Row by row: each one solved exactly, or improved by conjugate gradients.

use super::side::{Block, Side};
use super::{Ials, Solver};
use gradus_base::parallel;
use gradus_core::iterate::Watch;
use gradus_kernel::gram::Gram;
use gradus_kernel::{Level, RowCg, RowProblem, RowSolver, Rows, Totals};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A half-step: one side is solved while the other is held fixed.
pub(super) struct Half<'s> {
    pub(super) params: &'s Ials,
    /// The weight α₀ of a pair that was not observed.
    pub(super) unobserved: f32,
    pub(super) level: Level,
    pub(super) side: &'s Side<'s>,
    /// The other side, its biases, and the sums over all of it.
    pub(super) fixed: &'s Rows,
    pub(super) fixed_bias: &'s [f32],
    pub(super) totals: &'s Totals,
    /// Where the side that is solved stands.
    pub(super) from: &'s Rows,
    pub(super) from_bias: &'s [f32],
    /// The part of the iteration that this half is.
    pub(super) share: (f64, f64),
    /// Whether the errors are summed.
    pub(super) residuals: bool,
}

/// What solving one side came to.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    /// `Σ w c (t − s)²` over what was observed.
    pub(super) squares: f64,
    pub(super) penalty: f64,
    pub(super) fallbacks: u64,
}

impl Sums {
    pub(super) fn add(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            penalty: self.penalty + other.penalty,
            fallbacks: self.fallbacks + other.fallbacks,
        }
    }
}

/// What one side became: biases, factors, sums.
pub(super) type Solved = (Vec<f32>, Rows, Sums);

/// The workspace of one thread.
enum Worker {
    Exact(Box<RowSolver>),
    Steps(Box<RowCg>),
}

impl Half<'_> {
    /// Solves every row of the side. `None` if the watch said to leave.
    pub(super) fn solve(&self, watch: &Watch<'_>) -> Option<Solved> {
        match self.params.chosen() {
            Solver::Blocks => self.solve_blocks(watch),
            chosen => self.solve_rows(chosen == Solver::Cg, watch),
        }
    }

    fn solve_rows(&self, steps: bool, watch: &Watch<'_>) -> Option<Solved> {
        let (mut factors, mut bias) = if steps {
            (self.from.clone(), self.from_bias.to_vec())
        } else {
            let n_rows = self.from.n_rows();
            (Rows::zeros(n_rows, self.from.k()), vec![0.0; n_rows])
        };
        let base = self.totals.base(self.level, f64::from(self.unobserved));
        let blocks = self.side.blocks(self.fixed.stride(), factors.as_mut_slice(), &mut bias);
        let (n_blocks, done) = (blocks.len(), AtomicUsize::new(0));
        let state = || {
            let k = self.from.k();
            let worker = if steps {
                Worker::Steps(Box::new(RowCg::new(k, self.level, Some(&base))))
            } else {
                Worker::Exact(Box::new(RowSolver::new(k, self.level)))
            };
            (worker, Vec::new())
        };
        let sums = parallel::map_with(blocks, state, |(worker, targets), block| {
            if watch.stopped() {
                return Sums::default();
            }
            let sums = self.solve_block(block, &base, worker, targets);
            self.tell(watch, done.fetch_add(1, Ordering::Relaxed) + 1, n_blocks);
            sums
        });
        if done.into_inner() < n_blocks {
            return None;
        }
        Some((bias, factors, sums.into_iter().fold(Sums::default(), Sums::add)))
    }

    /// Says how far the half is, some fifty times.
    pub(super) fn tell(&self, watch: &Watch<'_>, done: usize, of: usize) {
        if done * 50 / of != (done - 1) * 50 / of {
            let (start, end) = self.share;
            watch.within(start + (end - start) * done as f64 / of as f64);
        }
    }

    fn solve_block(
        &self,
        block: Block<'_>,
        base: &Gram,
        worker: &mut Worker,
        targets: &mut Vec<f32>,
    ) -> Sums {
        let mut sums = Sums::default();
        let rows = block.factors.chunks_exact_mut(self.fixed.stride()).zip(block.bias);
        for (row, (out, out_bias)) in (block.first..).zip(rows) {
            let indices = self.side.rows.row(row).0;
            let known = |at: usize| self.fixed_bias[indices[at] as usize];
            self.side.targets(row, known, targets);
            let lambda = self.side.lambdas[row];
            let problem = RowProblem {
                factors: self.fixed.as_slice(),
                indices,
                targets,
                weights: self.side.weights(row),
                lambda,
                bias: self.params.biases.then_some(lambda),
                base: Some(base),
                pull: None,
                residuals: self.residuals,
                upcoming: &self.side.rows.indices()[self.side.rows.range(row).end..],
            };
            let solution = match worker {
                Worker::Exact(solver) => solver.solve(&problem, out),
                Worker::Steps(cg) => cg.improve(&problem, self.params.steps, out, *out_bias),
            };
            *out_bias = solution.bias;
            sums.squares += solution.squares;
            sums.penalty += penalty(lambda, out, solution.bias);
            sums.fallbacks += u64::from(solution.fallback);
        }
        sums
    }
}

/// The penalty of one row.
pub(super) fn penalty(lambda: f32, factors: &[f32], bias: f32) -> f64 {
    let norm: f64 = factors.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    f64::from(lambda) * (norm + f64::from(bias) * f64::from(bias))
}
