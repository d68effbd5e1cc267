//! A block of coordinates after another (iALS++).
//!
//! With the other side fixed, the objective of a row is quadratic. Its coordinates are cut into
//! blocks; for each block in turn, every row takes the exact step in those coordinates, bias
//! included. The scores of the observed pairs are kept beside the rows and updated with each step,
//! so a step needs the block's columns only, and the small matrix and its factor have the size of
//! a block.

use super::rows::{Half, penalty};
use crate::blocks::{Block, Progress};
use crate::half::Sums;
use crate::vectors::Vectors;
use gradus_base::parallel;
use gradus_core::iterate::Watch;
use gradus_kernel::gram::Gram;
use gradus_kernel::{RowProblem, RowSolver, Rows, dots_at, padded, scores};
use std::ops::Range;

/// Rows whose slopes are computed together.
const BATCH: usize = 32;

/// The terms that all rows of a side share in a step in some of the coordinates.
struct Step {
    columns: Range<usize>,
    /// The chosen columns of the fixed side.
    fixed: Rows,
    base: Gram,
    /// `α₀ Σ y y_cᵀ` for each of the columns `c`, then `α₀ Σ y`, over the fixed side.
    slopes: Rows,
    /// `α₀ Σ β y_c` for each of the columns, then `α₀ Σ β`.
    constants: Vec<f32>,
}

/// The workspace of one thread.
struct Work {
    solver: RowSolver,
    slopes: Vec<f32>,
    targets: Vec<f32>,
    linear: Vec<f32>,
    moved: Vec<f32>,
    products: Vec<f32>,
}

impl Half<'_> {
    pub(super) fn solve_blocks(&self, watch: &Watch<'_>) -> Option<(Vectors, Sums)> {
        let mut solved = self.from.clone();
        let mut predicted = vec![0.0; self.side.rows.nnz()];
        let k = self.from.factors.k();
        let starts: Vec<usize> = (0..k).step_by(self.params.block).collect();
        let (n_steps, n_blocks) = (starts.len() + 1, self.side.blocks.ranges().count());
        let progress = Progress::new(watch, self.share, n_steps * n_blocks);
        for at in 0..n_steps {
            let blocks = solved.blocks(&self.side.blocks).into_iter();
            let work = blocks.zip(self.side.blocks.cut_ratings(self.side.rows, &mut predicted));
            if at == 0 {
                parallel::each(work, |(block, predicted)| {
                    progress.block(|| self.predict_block(&block, predicted));
                });
            } else {
                let start = starts[at - 1];
                let step = self.step(start..k.min(start + self.params.block));
                let state = || Work::new(self, &step);
                parallel::each_with(work, state, |work, (block, predicted)| {
                    progress.block(|| self.step_block(&step, block, predicted, work));
                });
            }
            if !progress.has_done((at + 1) * n_blocks) {
                return None;
            }
        }
        let blocks = solved.blocks(&self.side.blocks).into_iter();
        let work = blocks.zip(self.side.blocks.cut_ratings(self.side.rows, &mut predicted));
        let sums = parallel::map(work, |(block, predicted)| self.sum_block(&block, predicted));
        Some((solved, sums.into_iter().fold(Sums::default(), Sums::add)))
    }

    /// Returns the terms that the rows share in a step in these coordinates.
    fn step(&self, columns: Range<usize>) -> Step {
        let (k, width) = (self.from.factors.k(), columns.len());
        let weight = f64::from(self.unobserved);
        let mut fixed = Rows::zeros(self.fixed.factors.n_rows(), width);
        let stride = fixed.stride();
        parallel::each_row(fixed.as_mut_slice(), stride, |row, to| {
            to[..width].copy_from_slice(&self.fixed.factors.row(row)[columns.clone()]);
        });
        let mut slopes = Rows::zeros(width + 1, k);
        let narrow = |to: &mut [f32], from: &[f64]| {
            to.iter_mut().zip(from).for_each(|(to, &v)| *to = (weight * v) as f32);
        };
        let (biased, sum) = self.totals.vectors();
        for (at, column) in columns.clone().enumerate() {
            narrow(slopes.row_mut(at), &self.totals.matrix()[column * k..][..k]);
        }
        narrow(slopes.row_mut(width), sum);
        let mut constants = vec![0.0; width + 1];
        narrow(&mut constants, &biased[columns.clone()]);
        constants[width] = (weight * self.totals.bias()) as f32;
        let base = self.totals.step_base(self.level, weight, columns.clone());
        Step { columns, fixed, base, slopes, constants }
    }

    /// The scores of the observed pairs of a block of rows.
    fn predict_block(&self, block: &Block<'_>, mut predicted: &mut [f32]) {
        for (row, x, bias) in block.iter() {
            let indices = self.side.rows.row(row).0;
            let (mine, rest) = predicted.split_at_mut(indices.len());
            dots_at(self.level, self.fixed.factors.as_slice(), indices, x, mine);
            for (score, &index) in mine.iter_mut().zip(indices) {
                *score += bias + self.fixed.bias[index as usize];
            }
            predicted = rest;
        }
    }

    /// Takes the step of each row of a block.
    fn step_block(
        &self,
        step: &Step,
        block: Block<'_>,
        mut predicted: &mut [f32],
        work: &mut Work,
    ) {
        let (k, stride) = (self.from.factors.k(), self.from.factors.stride());
        let width = step.columns.len();
        let n_others = self.totals.n_rows() as f32 * self.unobserved;
        let batches = block.factors.chunks_mut(BATCH * stride).zip(block.bias.chunks_mut(BATCH));
        for (batch, (factors, biases)) in batches.enumerate() {
            let slopes = &mut work.slopes[..biases.len() * (width + 1)];
            scores(self.level, k, factors, step.slopes.as_slice(), slopes);
            let rows = factors.chunks_exact_mut(stride).zip(biases);
            let rows = rows.zip(slopes.chunks_exact(width + 1)).enumerate();
            for (at, ((x, bias), slopes)) in rows {
                let row = block.first + batch * BATCH + at;
                let indices = self.side.rows.row(row).0;
                let (mine, rest) = predicted.split_at_mut(indices.len());
                let lambda = self.side.lambdas[row];
                let (sum, x_here) = (step.base.vectors().1, &mut x[step.columns.clone()]);
                for c in 0..width {
                    let slope = slopes[c] + *bias * sum[c] + step.constants[c];
                    work.linear[c] = -slope - lambda * x_here[c];
                }
                let slope = slopes[width] + *bias * n_others + step.constants[width];
                self.side.targets(row, |at| mine[at], &mut work.targets);
                let problem = RowProblem {
                    factors: step.fixed.as_slice(),
                    indices,
                    targets: &work.targets,
                    weights: self.side.weights(row),
                    lambda,
                    bias: self.params.biases.then_some(lambda),
                    base: Some(&step.base),
                    linear: Some((&work.linear, -slope - lambda * *bias)),
                    residuals: false,
                    upcoming: &self.side.rows.indices()[self.side.rows.range(row).end..],
                };
                let found = work.solver.solve(&problem, &mut work.moved);
                x_here.iter_mut().zip(&work.moved).for_each(|(x, by)| *x += by);
                *bias += found.bias;
                work.products.resize(indices.len(), 0.0);
                let fixed = step.fixed.as_slice();
                dots_at(self.level, fixed, indices, &work.moved, &mut work.products);
                for (score, by) in mine.iter_mut().zip(&work.products) {
                    *score += by + found.bias;
                }
                predicted = rest;
            }
        }
    }

    fn sum_block(&self, block: &Block<'_>, mut predicted: &[f32]) -> Sums {
        let mut sums = Sums::default();
        let mut errors = Vec::new();
        for (row, x, bias) in block.iter() {
            sums.penalty += penalty(self.side.lambdas[row], x, bias);
            let (mine, rest) = predicted.split_at(self.side.rows.range(row).len());
            self.side.targets(row, |at| mine[at], &mut errors);
            let weights = self.side.weights(row);
            for (at, &error) in errors.iter().enumerate() {
                let weight = weights.map_or(1.0, |weights| f64::from(weights[at]));
                sums.squares += weight * f64::from(error) * f64::from(error);
            }
            predicted = rest;
        }
        sums
    }
}

impl Work {
    fn new(half: &Half<'_>, step: &Step) -> Self {
        let width = step.columns.len();
        Self {
            solver: RowSolver::new(width, half.level),
            slopes: vec![0.0; BATCH * (width + 1)],
            targets: Vec::new(),
            linear: vec![0.0; padded(width)],
            moved: vec![0.0; padded(width)],
            products: Vec::new(),
        }
    }
}
