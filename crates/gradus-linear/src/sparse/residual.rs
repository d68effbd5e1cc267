//! The problem on some of the columns, by their entries: coordinate descent that keeps the
//! residuals. For more columns than a Gram matrix pays for.

use super::anderson::{Anderson, DEPTH};
use super::penalty::Penalty;
use super::problem::Problem;
use crate::design::sparse_dot;
use gradus_base::parallel;
use gradus_core::progress::Stop;
use gradus_kernel::{Level, dense};

/// Columns at hand, and what is kept of the residuals: of a sparse matrix `u r` with the shares `u`
/// of the samples, of a dense one `√u r`, so that a product with a column is a gradient.
struct Residuals<'p, 'a> {
    problem: &'p Problem<'a>,
    columns: &'p [u32],
    copied: Vec<Vec<f64>>,
    kept: Vec<f64>,
    level: Level,
}

impl<'p, 'a> Residuals<'p, 'a> {
    fn new(problem: &'p Problem<'a>, columns: &'p [u32], mut r: Vec<f64>) -> Self {
        let sparse = problem.sparse_columns().is_some();
        for (row, r) in r.iter_mut().enumerate() {
            let share = problem.share(row);
            *r *= if sparse { share } else { share.sqrt() };
        }
        let copied = if sparse { Vec::new() } else { problem.copied(columns) };
        Self { problem, columns, copied, kept: r, level: Level::best() }
    }

    /// `Xᵀr` of the column at a place, less `shift` times what the shift of a sparse matrix adds.
    fn gradient(&self, at: usize, shift: f64) -> f64 {
        let problem = self.problem;
        match problem.sparse_columns() {
            None => dense::dot(self.level, &self.copied[at], &self.kept),
            Some(x) => {
                let j = self.columns[at] as usize;
                let (rows, values) = x.row(j);
                (sparse_dot(rows, values, &self.kept) + shift * problem.means[j]) / problem.scale[j]
            }
        }
    }

    /// `Xᵀr` of all columns at hand.
    fn gradients(&self) -> Vec<f64> {
        parallel::map_below(self.columns.len(), 64, |at| self.gradient(at, 0.0))
    }

    /// Takes `step` times the column at a place off the residuals.
    fn take(&mut self, at: usize, step: f64, shift: &mut f64) {
        let problem = self.problem;
        let Some(x) = problem.sparse_columns() else {
            dense::add_scaled(self.level, -step, &self.copied[at], &mut self.kept);
            return;
        };
        let j = self.columns[at] as usize;
        let by = step / problem.scale[j];
        *shift += by * problem.means[j];
        let (rows, values) = x.row(j);
        match problem.weights() {
            None => {
                let by = by * problem.share(0);
                for (&row, x) in rows.iter().zip(values) {
                    self.kept[row as usize] -= by * x;
                }
            }
            Some(_) => {
                for (&row, x) in rows.iter().zip(values) {
                    self.kept[row as usize] -= by * x * problem.share(row as usize);
                }
            }
        }
    }

    /// Adds what centring adds to every residual.
    fn settle(&mut self, shift: f64) {
        if shift != 0.0 {
            for (row, kept) in self.kept.iter_mut().enumerate() {
                *kept += shift * self.problem.share(row);
            }
        }
    }

    /// `‖r‖²`.
    fn rest(&self) -> f64 {
        if self.problem.sparse_columns().is_none() {
            return self.kept.iter().map(|r| r * r).sum();
        }
        let square = |(row, kept): (usize, &f64)| {
            let share = self.problem.share(row);
            if share > 0.0 { kept * kept / share } else { 0.0 }
        };
        self.kept.iter().enumerate().map(square).sum()
    }
}

/// Minimises over the coefficients `beta` of `columns`, from where they stand, until the gap is at
/// most `target`; the passes it took. `r` are the residuals.
///
/// Passes go over the columns that are in use or should be, which every look at the gap tells anew.
#[allow(clippy::too_many_arguments)]
pub(super) fn descend(
    problem: &Problem<'_>,
    columns: &[u32],
    penalty: Penalty,
    r: Vec<f64>,
    beta: &mut [f64],
    target: f64,
    passes: usize,
    stop: &Stop,
) -> usize {
    let squares: Vec<f64> = columns.iter().map(|&j| problem.squares[j as usize]).collect();
    let mut residuals = Residuals::new(problem, columns, r);
    let mut anderson = Anderson::new();
    let mut other = vec![0.0; columns.len()];
    let mut other_kept = vec![0.0; residuals.kept.len()];
    let mut g = residuals.gradients();
    let mut standing = penalty.standing(beta, &g, &squares, residuals.rest());
    let mut done = 0;
    let mut weights: Option<Vec<f64>> = None;
    while standing.gap > target && done < passes && !stop.requested() {
        // Passes come after: they alone make coefficients exactly 0.
        if let Some(weights) = weights.take() {
            anderson.mix(&weights, &mut other, &mut other_kept);
            std::mem::swap(&mut residuals.kept, &mut other_kept);
            if penalty.positive {
                let mut shift = 0.0;
                for (at, x) in other.iter_mut().enumerate().filter(|(_, x)| **x < 0.0) {
                    residuals.take(at, -*x, &mut shift);
                    *x = 0.0;
                }
                residuals.settle(shift);
            }
            if 0.5 * residuals.rest() + penalty.of(&other) < standing.objective {
                beta.copy_from_slice(&other);
            } else {
                std::mem::swap(&mut residuals.kept, &mut other_kept);
            }
        }
        let used = |at: &usize| beta[*at] != 0.0 || penalty.gradient_size(g[*at]) > penalty.a;
        let active: Vec<usize> =
            (0..columns.len()).filter(|&at| squares[at] > 0.0).filter(used).collect();
        for _ in 0..=DEPTH {
            done += 1;
            let mut shift = 0.0;
            for &at in &active {
                let (old, square) = (beta[at], squares[at]);
                let g = residuals.gradient(at, shift);
                let step = penalty.best(g + square * old, square) - old;
                if step != 0.0 {
                    beta[at] = old + step;
                    residuals.take(at, step, &mut shift);
                }
            }
            residuals.settle(shift);
            weights = anderson.keep(beta, &residuals.kept);
        }
        let before = standing.objective;
        g = residuals.gradients();
        standing = penalty.standing(beta, &g, &squares, residuals.rest());
        // Down to rounding.
        if standing.objective >= before {
            break;
        }
    }
    done
}
