//! Row by row: each one solved exactly, or improved by conjugate gradients.

use super::side::Side;
use super::{Ials, IalsSolver};
use crate::blocks::{Block, map_watched};
use crate::half::Sums;
use crate::vectors::Vectors;
use gradus_core::iterate::Watch;
use gradus_kernel::gram::Gram;
use gradus_kernel::{Level, RowCg, RowProblem, RowSolver, Totals};

/// A half-step: one side is solved while the other is held fixed.
pub(super) struct Half<'s> {
    pub(super) params: &'s Ials,
    /// The weight α₀ of a pair that was not observed.
    pub(super) unobserved: f32,
    pub(super) level: Level,
    pub(super) side: &'s Side<'s>,
    /// The other side, and the sums over all of it.
    pub(super) fixed: &'s Vectors,
    pub(super) totals: &'s Totals,
    /// The side that is solved, as it is before.
    pub(super) from: &'s Vectors,
    /// The part of the iteration that this half is.
    pub(super) share: (f64, f64),
    /// Whether the errors are summed.
    pub(super) residuals: bool,
}

/// The workspace of one thread.
enum Worker {
    Exact(Box<RowSolver>),
    Steps(Box<RowCg>),
}

impl Half<'_> {
    /// Solves every row of the side. `None` if the fit was asked to stop.
    pub(super) fn solve(&self, watch: &Watch<'_>) -> Option<(Vectors, Sums)> {
        match self.params.chosen() {
            IalsSolver::Blocks => self.solve_blocks(watch),
            chosen => self.solve_rows(chosen == IalsSolver::Cg, watch),
        }
    }

    fn solve_rows(&self, steps: bool, watch: &Watch<'_>) -> Option<(Vectors, Sums)> {
        let k = self.from.factors.k();
        let mut solved =
            if steps { self.from.clone() } else { Vectors::zeros(self.from.factors.n_rows(), k) };
        let base = self.totals.base(self.level, f64::from(self.unobserved));
        let state = || {
            let worker = if steps {
                Worker::Steps(Box::new(RowCg::new(k, self.level, Some(&base))))
            } else {
                Worker::Exact(Box::new(RowSolver::new(k, self.level)))
            };
            (worker, Vec::new())
        };
        let blocks = solved.blocks(&self.side.blocks);
        let sums = map_watched(blocks, watch, self.share, state, |(worker, targets), block| {
            self.solve_block(block, &base, worker, targets)
        })?;
        Some((solved, sums.into_iter().fold(Sums::default(), Sums::add)))
    }

    fn solve_block(
        &self,
        block: Block<'_>,
        base: &Gram,
        worker: &mut Worker,
        targets: &mut Vec<f32>,
    ) -> Sums {
        let mut sums = Sums::default();
        for (row, out, out_bias) in block.rows() {
            let indices = self.side.rows.row(row).0;
            let known = |at: usize| self.fixed.bias[indices[at] as usize];
            self.side.targets(row, known, targets);
            let lambda = self.side.lambdas[row];
            let problem = RowProblem {
                factors: self.fixed.factors.as_slice(),
                indices,
                targets,
                weights: self.side.weights(row),
                lambda,
                bias: self.params.biases.then_some(lambda),
                base: Some(base),
                linear: None,
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
