//! The factorisation by alternating least squares: every row and its bias solved exactly, side by side.

use super::Glove;
use super::problem::{Problem, Sides, read_rows, start, write_rows};
use gradus_base::{Result, parallel};
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::Csr;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, RowProblem, RowSolver, Rows};
use std::borrow::Cow;

/// Rows handed to a thread at a time: their numbers of entries differ much.
const ROWS: usize = 16;
/// Blocks of rows between two questions whether to stop.
const BLOCKS: usize = 64;

/// Vectors start this large: much smaller ones would be pushed to zero by the penalty in the first iteration.
const START: f64 = 1.0;

/// The solver, bound to its data.
pub(super) struct Als<'a> {
    params: &'a Glove,
    problem: &'a Problem,
    by_word: Entries<'a>,
    /// `None` of a symmetric matrix: it is the same by context.
    by_context: Option<Entries<'a>>,
}

/// The logarithms of counts by the rows of a side, and their weights.
struct Entries<'a> {
    logs: Cow<'a, Csr<f32>>,
    weights: Vec<f32>,
}

impl<'a> Entries<'a> {
    fn new(problem: &Problem, logs: Cow<'a, Csr<f32>>) -> Self {
        let blocks = logs.values().chunks(1 << 14);
        let weigh = |block: &[f32]| block.iter().map(|&log| problem.weight(log)).collect();
        let weights: Vec<Vec<f32>> = parallel::map(blocks, weigh);
        Self { weights: weights.concat(), logs }
    }
}

impl<'a> Als<'a> {
    pub(super) fn new(params: &'a Glove, problem: &'a Problem) -> Self {
        let by_word = Entries::new(problem, Cow::Borrowed(&problem.logs));
        let by_context = (!problem.symmetric)
            .then(|| Entries::new(problem, Cow::Owned(problem.logs.transpose())));
        Self { params, problem, by_word, by_context }
    }

    /// Solves all rows of a side. Gives the sum of the weighted squared residuals, or `None` if it was stopped: some
    /// rows are then solved and others not.
    fn half(
        &self,
        entries: &Entries<'_>,
        (fixed, fixed_biases): (&Rows, &[f32]),
        (rows, biases): (&mut Rows, &mut [f32]),
        watch: &Watch<'_>,
        from: f64,
    ) -> Option<f64> {
        let (k, stride) = (rows.k(), rows.stride());
        let blocks = rows.as_mut_slice().chunks_mut(ROWS * stride).zip(biases.chunks_mut(ROWS));
        let mut blocks: Vec<_> = blocks.enumerate().collect();
        let (n, mut done, mut squares) = (blocks.len(), 0, 0.0);
        while !blocks.is_empty() {
            if watch.stopped() {
                return None;
            }
            let some: Vec<_> = blocks.drain(..blocks.len().min(BLOCKS)).collect();
            done += some.len();
            let state = || (RowSolver::new(k, Level::best()), Vec::new());
            let parts = parallel::map_with(some, state, |workspace, (block, (rows, biases))| {
                let (solver, targets) = workspace;
                let mut squares = 0.0;
                for (at, (row, bias)) in
                    (block * ROWS..).zip(rows.chunks_exact_mut(stride).zip(biases))
                {
                    let (indices, logs) = entries.logs.row(at);
                    let weights = &entries.weights[entries.logs.range(at)];
                    targets.clear();
                    let others = indices.iter().map(|&index| fixed_biases[index as usize]);
                    targets.extend(logs.iter().zip(others).map(|(log, bias)| log - bias));
                    let found = solver.solve(
                        &RowProblem {
                            factors: fixed.as_slice(),
                            indices,
                            targets,
                            weights: Some(weights),
                            lambda: self.params.regularization as f32,
                            bias: Some(0.0),
                            base: None,
                            linear: None,
                            residuals: true,
                            upcoming: &[],
                        },
                        row,
                    );
                    *bias = found.bias;
                    squares += found.squares;
                }
                squares
            });
            squares += parts.iter().sum::<f64>();
            watch.within(from + 0.5 * done as f64 / n as f64);
        }
        Some(squares)
    }

    /// The penalty on the vectors of both sides.
    fn penalties(&self, sides: &Sides) -> f64 {
        let squares = |values: &[f32]| -> f64 {
            let blocks = values.chunks(1 << 14);
            let one =
                |block: &[f32]| block.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
            parallel::map(blocks, one).iter().sum()
        };
        let all = squares(sides.words.as_slice()) + squares(sides.contexts.as_slice());
        // The penalty that the rows were solved with.
        f64::from(self.params.regularization as f32) * all
    }
}

impl iterate::Solver for Als<'_> {
    type State = Sides;

    fn start(&self, _restart: usize) -> Result<Sides> {
        Ok(start(self.params, self.problem, START))
    }

    fn step(&self, state: &mut Sides, watch: &Watch<'_>) -> Result<Step> {
        let mut next = state.clone();
        let contexts = (&next.contexts, next.context_biases.as_slice());
        let words = (&mut next.words, next.word_biases.as_mut_slice());
        if self.half(&self.by_word, contexts, words, watch, 0.0).is_none() {
            return Ok(Step::Stopped);
        }
        let words = (&next.words, next.word_biases.as_slice());
        let contexts = (&mut next.contexts, next.context_biases.as_mut_slice());
        let by_context = self.by_context.as_ref().unwrap_or(&self.by_word);
        let Some(squares) = self.half(by_context, words, contexts, watch, 0.5) else {
            return Ok(Step::Stopped);
        };
        *state = next;
        Ok(Step::Done(self.problem.cost(squares + self.penalties(state))))
    }

    fn validate(&self, _state: &Sides) -> Option<f64> {
        None
    }

    fn write_state<'b>(&self, state: &'b Sides, prefix: &str, file: &mut Writer<'b>) {
        for (name, rows, biases) in [
            ("words", &state.words, &state.word_biases),
            ("contexts", &state.contexts, &state.context_biases),
        ] {
            write_rows(file, &format!("{prefix}{name}"), rows);
            file.tensor(&format!("{prefix}{name}.biases"), &[biases.len()], biases);
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Sides> {
        let (n, k) = (self.problem.logs.n_rows(), self.params.dimension);
        let mut side = |name: &str| -> Result<(Rows, Vec<f32>)> {
            let rows = read_rows(file, &format!("{prefix}{name}"), n, k)?;
            Ok((rows, file.finite::<f32>(&format!("{prefix}{name}.biases"), &[n])?))
        };
        let (words, word_biases) = side("words")?;
        let (contexts, context_biases) = side("contexts")?;
        Ok(Sides { words, contexts, word_biases, context_biases })
    }
}
