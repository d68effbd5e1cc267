//! The dual, one sample at a time: coordinate descent with shrinking.
//!
//! `w = Xᵀβ` is kept beside `β`; each visit of a sample solves for its `β_i` exactly. Samples at a
//! bound whose slope holds them there are left out until the others are done. An intercept that is
//! penalised is a feature of value 1. A free one is found by the method of multipliers:
//! it is penalised for its distance from where it last was, `(b − b₀)² / 2ρ`, which is a feature of
//! value `√ρ`, and `b₀` follows `b`.
//!
//! Reference: Hsieh, Chang, Lin, Keerthi, Sundararajan: A dual coordinate descent method for
//! large-scale linear SVM, 2008. Ho, Lin: Large-scale linear support vector regression, 2012.

use super::newton::Watch;
use super::problem::{Intercept, Point, Problem, squared_norm};
use crate::design::{Design, sparse_dot, sum};
use crate::parallel;
use gradus_base::random::Stream;
use gradus_data::{Dense, Matrix};
use gradus_kernel::{Level, dense, prefetch};
use std::borrow::Cow;

/// How many rows ahead memory is asked for.
const AHEAD: usize = 3;

/// The rows of a design as coordinate descent reads them: prepared once. Sparse rows are not
/// centred, and a sparse design must not ask for it.
pub(crate) struct Prepared<'a> {
    matrix: Cow<'a, Matrix>,
    pub(crate) norms: Vec<f64>,
    level: Level,
}

/// The sum of the squares of each row.
pub(super) fn squared_norms(matrix: &Matrix) -> Vec<f64> {
    parallel::map_below(matrix.n_rows(), matrix.values().len(), |row| match matrix {
        Matrix::Dense(x) => x.row(row).iter().map(|x| x * x).sum(),
        Matrix::Sparse(x) => x.row(row).1.iter().map(|x| x * x).sum(),
    })
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(design: &'a Design<'a>) -> Self {
        let matrix = design.matrix();
        let (center, scale) = (design.center(), design.scale());
        let scaled = scale.iter().any(|s| *s != 1.0);
        let centered = center.iter().any(|c| *c != 0.0);
        let d = design.d();
        let matrix = match matrix {
            Matrix::Dense(x) if scaled || centered => {
                let mut values = x.values().to_vec();
                let operations = values.len();
                parallel::each_row(&mut values, d, operations, |_, row| {
                    for ((x, c), s) in row.iter_mut().zip(center).zip(scale) {
                        *x = (*x - c) / s;
                    }
                });
                let copy = Dense::new(x.n_rows(), d, values).expect("as many values as before");
                Cow::Owned(Matrix::Dense(copy))
            }
            Matrix::Sparse(x) if scaled => {
                let values = x.indices().iter().zip(x.values());
                let values = values.map(|(&j, x)| x / scale[j as usize]).collect();
                Cow::Owned(Matrix::Sparse(x.with_values(values)))
            }
            _ => Cow::Borrowed(matrix),
        };
        let norms = squared_norms(&matrix);
        Self { matrix, norms, level: Level::best() }
    }

    /// The rows.
    pub(super) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    #[inline]
    pub(super) fn dot(&self, row: usize, w: &[f64]) -> f64 {
        match &*self.matrix {
            Matrix::Dense(x) => dense::dot(self.level, x.row(row), w),
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                sparse_dot(columns, values, w)
            }
        }
    }

    /// Asks for a row that is needed soon: rows are visited in an order that no cache can foresee.
    #[inline]
    fn foresee(&self, row: usize) {
        if let Matrix::Sparse(x) = &*self.matrix {
            let range = x.range(row);
            prefetch(x.indices(), range.start, range.len());
            prefetch(x.values(), range.start, range.len());
        }
    }

    /// Shows every entry of a row, with its column.
    #[inline]
    pub(crate) fn each(&self, row: usize, mut look: impl FnMut(usize, f64)) {
        match &*self.matrix {
            Matrix::Dense(x) => x.row(row).iter().enumerate().for_each(|(j, x)| look(j, *x)),
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                columns.iter().zip(values).for_each(|(&j, x)| look(j as usize, *x));
            }
        }
    }

    #[inline]
    pub(super) fn add(&self, row: usize, by: f64, w: &mut [f64]) {
        match &*self.matrix {
            Matrix::Dense(x) => dense::add_scaled(self.level, by, x.row(row), w),
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                for (&c, x) in columns.iter().zip(values) {
                    w[c as usize] += by * x;
                }
            }
        }
    }
}

/// The dual coefficients to begin with, and `w = Xᵀβ`: those that the squared residuals of a classifier
/// would have if no sample shared a feature with another, times what is best for the dual. Where the
/// cost is so low that samples hardly matter to each other, they almost solve the problem.
fn first(problem: &Problem<'_>, prepared: &Prepared<'_>, rho: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut beta, mut w) = (vec![0.0; problem.n()], vec![0.0; problem.design.d()]);
    if !(problem.loss.squared && problem.loss.classes) || problem.intercept == Intercept::Free {
        return (beta, w);
    }
    let ridge = |i: usize| problem.loss.ridge(problem.costs[i]);
    for (i, beta) in beta.iter_mut().enumerate().filter(|(i, _)| problem.costs[*i] > 0.0) {
        *beta = problem.targets[i] / (ridge(i) + prepared.norms[i] + rho);
    }
    problem.design.transposed_times_once(&beta, &mut w);
    let gain: f64 = beta.iter().zip(problem.targets).map(|(beta, target)| beta * target).sum();
    let own = beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0);
    let own: f64 = own.map(|(i, beta)| ridge(i) * beta * beta).sum();
    let shared: f64 = squared_norm(&w) + rho * sum(&beta) * sum(&beta);
    let by = gain / (shared + own);
    let by = if by.is_finite() { by } else { 0.0 };
    beta.iter_mut().chain(&mut w).for_each(|x| *x *= by);
    (beta, w)
}

/// Maximises the dual until the gap is below `tol` times the objective.
pub(super) fn solve(
    problem: &Problem<'_>,
    prepared: &Prepared<'_>,
    (tol, max_iter, seed): (f64, usize, u64),
    watch: &mut dyn Watch,
) -> Point {
    let n = problem.n();
    let bounds: Vec<(f64, f64)> =
        (0..n).map(|i| problem.loss.bounds(problem.targets[i], problem.costs[i])).collect();
    let (epsilon, free) = (problem.loss.epsilon, problem.intercept == Intercept::Free);
    let rho = match problem.intercept {
        Intercept::Absent => 0.0,
        Intercept::Penalized => 1.0 / problem.q(),
        // Of the size of the features, so that the intercept is as quick as they are.
        Intercept::Free => {
            let mean = prepared.norms.iter().sum::<f64>() / n.max(1) as f64;
            if mean > 0.0 { mean } else { 1.0 }
        }
    };
    let usable: Vec<usize> = (0..n).filter(|&i| problem.costs[i] > 0.0).collect();
    let (mut beta, w) = first(problem, prepared, rho);
    let mut point = problem.point_of(beta.clone(), w);
    let (mut w, mut b) = (point.w.clone(), if free { point.b } else { rho * sum(&beta) });
    problem.stretch(&mut point);
    let mut best = point;
    watch.iteration(best.primal);
    let mut active = usable.clone();
    let mut epoch = 0;
    // Targets are of size 1, or of their own size: violations begin there.
    let size = problem.targets.iter().fold(0.0f64, |most, t| most.max(t.abs()));
    let mut enough = 0.1 * size;
    let mut threshold = f64::INFINITY;
    while best.gap() > tol * best.primal {
        // Until no sample violates its condition by more than is enough for now, but not for ever:
        // one stubborn sample says little of the gap.
        let patience = epoch + 10 + epoch / 3;
        let mut ended = false;
        while epoch < patience {
            ended = epoch >= max_iter || watch.stopped();
            if ended {
                break;
            }
            Stream::new(seed, "linear.svm.dual", epoch as u64).shuffle(&mut active);
            epoch += 1;
            let (mut most, mut kept) = (0.0f64, 0);
            for at in 0..active.len() {
                if at % 1024 == 1023 && watch.stopped() {
                    // Those not looked at stay.
                    active.copy_within(at.., kept);
                    kept += active.len() - at;
                    break;
                }
                if let Some(&soon) = active.get(at + AHEAD) {
                    prepared.foresee(soon);
                }
                let i = active[at];
                let ((low, high), old) = (bounds[i], beta[i]);
                let ridge = problem.loss.ridge(problem.costs[i]);
                let slope = prepared.dot(i, &w) + b - problem.targets[i] + ridge * old;
                // Slopes of the dual to the right and to the left.
                let right = slope + if old >= 0.0 { epsilon } else { -epsilon };
                let left = slope + if old > 0.0 { epsilon } else { -epsilon };
                let up = if old < high { -right } else { f64::NEG_INFINITY };
                let down = if old > low { left } else { f64::NEG_INFINITY };
                let violation = up.max(down);
                if violation < -threshold {
                    continue;
                }
                active[kept] = i;
                kept += 1;
                most = most.max(violation);
                if violation <= 1e-14 * size {
                    continue;
                }
                let curvature = prepared.norms[i] + ridge + rho;
                let new = if curvature <= 0.0 {
                    // A row of zeros without an intercept: nothing but its bound stops it.
                    if up > 0.0 { high } else { low }
                } else if slope + epsilon < curvature * old {
                    old - (slope + epsilon) / curvature
                } else if slope - epsilon > curvature * old {
                    old - (slope - epsilon) / curvature
                } else {
                    0.0
                };
                let new = new.clamp(low, high);
                let by = new - old;
                if by != 0.0 && new.is_finite() {
                    beta[i] = new;
                    prepared.add(i, by, &mut w);
                    b += rho * by;
                }
            }
            active.truncate(kept);
            threshold = if most > 0.0 { most } else { f64::INFINITY };
            if most <= enough {
                if active.len() == usable.len() {
                    break;
                }
                // Those left out are looked at again, before it counts.
                active.clone_from(&usable);
                threshold = f64::INFINITY;
            }
        }
        if free {
            // The centre moves to `b`, and `b` keeps its distance `ρ Σβ` from the centre.
            b += rho * beta.iter().sum::<f64>();
        }
        let mut point = problem.exact_point(beta.clone());
        if problem.intercept != Intercept::Free {
            // What rounding added up over many steps is taken back.
            w.copy_from_slice(&point.w);
            b = if problem.intercept == Intercept::Absent { 0.0 } else { point.b };
        }
        problem.stretch(&mut point);
        watch.iteration(point.primal);
        best.improve(point);
        if ended {
            break;
        }
        if epoch < patience {
            enough *= 0.2;
        }
        if enough < 1e-13 * size {
            best.stalled = true;
            break;
        }
    }
    best
}
