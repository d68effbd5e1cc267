//! The problem on some of the columns, by their Gram matrix: coordinate descent with covariance
//! updates.

use super::anderson::{Anderson, DEPTH};
use super::penalty::Penalty;
use gradus_core::progress::Stop;
use gradus_kernel::linalg;
use gradus_kernel::{Level, dense};

/// Passes between two checks of the stop flag.
const LOOK: usize = 16;

/// Passes at the end at most, until no more coefficients become 0.
const SETTLE: usize = 10;

/// Extrapolations without any gain before it is given up.
const IDLE: usize = 10;

/// Columns that are solved for exactly at most: a third of a second.
pub(super) const EXACT: usize = 2000;

/// The smallest pivot, in units of the diagonal, with which they are.
const PIVOT: f64 = 1e-12;

/// A place of a column that is not among those chosen.
const NONE: u32 = u32::MAX;

/// The columns chosen so far, and their Gram matrix. Columns are only added, so that along a path
/// of penalties every product is taken once.
pub(super) struct Quadratic {
    columns: Vec<u32>,
    place: Vec<u32>,
    gram: Vec<f64>,
    stride: usize,
    level: Level,
}

impl Quadratic {
    pub(super) fn new(d: usize) -> Self {
        let level = Level::best();
        Self { columns: Vec::new(), place: vec![NONE; d], gram: Vec::new(), stride: 0, level }
    }

    /// All columns at once, with their Gram matrix.
    pub(super) fn whole(gram: Vec<f64>, d: usize) -> Self {
        let all = || 0..d as u32;
        Self {
            columns: all().collect(),
            place: all().collect(),
            gram,
            stride: d,
            level: Level::best(),
        }
    }

    pub(super) fn columns(&self) -> &[u32] {
        &self.columns
    }

    pub(super) fn holds(&self, column: u32) -> bool {
        self.place[column as usize] != NONE
    }

    /// Adds columns. `products(places, at, column, out)` puts the products of the column at place
    /// `at` with those of all places into `out`.
    pub(super) fn add(
        &mut self,
        new: &[u32],
        products: impl FnOnce(&[u32], &[u32], usize, &mut [f64], usize),
    ) {
        let before = self.columns.len();
        for &column in new {
            self.place[column as usize] = self.columns.len() as u32;
            self.columns.push(column);
        }
        let after = self.columns.len();
        if after > self.stride {
            let stride = after.max(self.stride * 3 / 2).next_multiple_of(8);
            let mut gram = vec![0.0; stride * stride];
            for at in 0..before {
                gram[at * stride..][..before]
                    .copy_from_slice(&self.gram[at * self.stride..][..before]);
            }
            (self.gram, self.stride) = (gram, stride);
        }
        let rows = &mut self.gram[before * self.stride..after * self.stride];
        products(&self.columns, &self.place, before, rows, self.stride);
        for at in before..after {
            for other in 0..at {
                self.gram[other * self.stride + at] = self.gram[at * self.stride + other];
            }
        }
    }

    /// Minimises over the coefficients `beta` of the chosen columns, from where they stand, until
    /// the gap is at most `target`; the passes it took.
    ///
    /// `q = Xᵀy`, `squares` is the diagonal and `g = Xᵀ(y − Xβ)` goes along with `beta`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn descend(
        &self,
        penalty: Penalty,
        yy: f64,
        q: &[f64],
        squares: &[f64],
        beta: &mut [f64],
        g: &mut [f64],
        target: f64,
        passes: usize,
        stop: &Stop,
    ) -> usize {
        let n = self.columns.len();
        let mut anderson = Anderson::new();
        let (mut other, mut other_g) = (vec![0.0; n], vec![0.0; n]);
        // ‖y − Xβ‖² = ⟨y, y⟩ − ⟨β, q + g⟩.
        let rest = |beta: &[f64], g: &[f64]| {
            let along: f64 = beta.iter().zip(q).zip(g).map(|((x, q), g)| x * (q + g)).sum();
            (yy - along).max(0.0)
        };
        let standing_of =
            |beta: &[f64], g: &[f64]| penalty.standing(beta, g, squares, rest(beta, g));
        let mut standing = standing_of(beta, g);
        let mut done = 0;
        let mut weights: Option<Vec<f64>> = None;
        let (mut lowest, mut least, mut idle) = (f64::INFINITY, f64::INFINITY, 0);
        while standing.gap > target && done < passes {
            if done % LOOK == LOOK - 1 && stop.requested() {
                break;
            }
            // The last thing done is always a pass: it alone makes coefficients exactly 0.
            if let Some(weights) = weights.take() {
                anderson.mix(&weights, &mut other, &mut other_g);
                if penalty.positive {
                    self.clip(&mut other, &mut other_g);
                }
                let there = 0.5 * rest(&other, &other_g) + penalty.of(&other);
                if there < standing.objective {
                    beta.copy_from_slice(&other);
                    g.copy_from_slice(&other_g);
                }
            }
            done += 1;
            if !self.pass(penalty, squares, beta, g) {
                break;
            }
            weights = anderson.keep(beta, g);
            standing = standing_of(beta, g);
            if done % (DEPTH + 1) == 0 {
                idle =
                    if standing.objective < lowest || standing.gap < least { 0 } else { idle + 1 };
                // Down to rounding: a gradient from the samples may tell more.
                if idle == IDLE {
                    break;
                }
                (lowest, least) = (lowest.min(standing.objective), least.min(standing.gap));
            }
        }
        // What the first pass after an extrapolation leaves next to 0, the next ones make 0.
        let mut used = usize::MAX;
        for _ in 0..SETTLE.min(done) {
            let now = beta.iter().filter(|x| **x != 0.0).count();
            if now == used || !self.pass(penalty, squares, beta, g) {
                break;
            }
            used = now;
        }
        done
    }

    /// The solution `x` of `(G + b) x = right` for the columns `chosen`, which it holds; `None` if
    /// they are too many or too much alike.
    pub(super) fn exact(&self, b: f64, chosen: &[u32], right: Vec<f64>) -> Option<Vec<f64>> {
        let n = chosen.len();
        if n == 0 || n > EXACT {
            return None;
        }
        let places: Vec<usize> =
            chosen.iter().map(|&column| self.place[column as usize] as usize).collect();
        let entry = |i: usize, j: usize| {
            self.gram[places[i] * self.stride + places[j]] + if i == j { b } else { 0.0 }
        };
        let scale: Vec<f64> = (0..n).map(|i| 1.0 / entry(i, i).sqrt()).collect();
        let matrix: Vec<f64> =
            (0..n * n).map(|at| entry(at / n, at % n) * scale[at / n] * scale[at % n]).collect();
        let lower = linalg::cholesky(n, &matrix)?;
        if !(0..n).all(|i| lower[i * n + i] * lower[i * n + i] > PIVOT) {
            return None;
        }
        let right: Vec<f64> = right.iter().zip(&scale).map(|(x, s)| x * s).collect();
        let mut x = right.clone();
        linalg::cholesky_solve(n, &lower, &mut x);
        // Once more, by what rounding left.
        let mut off: Vec<f64> = matrix
            .chunks_exact(n)
            .zip(&right)
            .map(|(row, right)| right - dense::dot(self.level, row, &x))
            .collect();
        linalg::cholesky_solve(n, &lower, &mut off);
        let x: Vec<f64> =
            x.iter().zip(&off).zip(&scale).map(|((x, off), s)| (x + off) * s).collect();
        x.iter().all(|x| x.is_finite()).then_some(x)
    }

    /// Makes coefficients that are negative 0.
    fn clip(&self, beta: &mut [f64], g: &mut [f64]) {
        let n = self.columns.len();
        for (at, x) in beta.iter_mut().enumerate().filter(|(_, x)| **x < 0.0) {
            dense::add_scaled(self.level, *x, &self.gram[at * self.stride..][..n], g);
            *x = 0.0;
        }
    }

    /// Moves every coordinate to where it is best; whether any moved.
    fn pass(&self, penalty: Penalty, squares: &[f64], beta: &mut [f64], g: &mut [f64]) -> bool {
        let n = self.columns.len();
        let mut moved = false;
        for at in 0..n {
            let (old, square) = (beta[at], squares[at]);
            if square == 0.0 || (old == 0.0 && penalty.gradient_size(g[at]) <= penalty.a) {
                continue;
            }
            let new = penalty.best(g[at] + square * old, square);
            let step = new - old;
            if step != 0.0 {
                moved |= step.abs() > 1e-16 * old.abs();
                beta[at] = new;
                dense::add_scaled(self.level, -step, &self.gram[at * self.stride..][..n], g);
            }
        }
        moved
    }
}
