//! Fewer samples than features: the same machine in the space of the samples.
//!
//! With `X Xᵀ = L Lᵀ` a machine on the rows of the triangle `L` has the scores and the norm of one on
//! the rows of `X`: `w = Xᵀβ` and `v = Lᵀβ` differ by a rotation. So solvers whose cost grows with
//! the features see as many as there are samples.

use super::dual::Prepared;
use super::problem::{Intercept, Point, Problem};
use gradus_core::data::{Dense, Matrix};
use gradus_core::kernel::{Level, dense};
use rayon::prelude::*;

/// The lower triangle `L`. A sample that depends on earlier ones has a 0 on the diagonal.
pub(super) fn triangle(prepared: &Prepared<'_>) -> Dense<f64> {
    let (n, level) = (prepared.norms.len(), Level::best());
    let mut l = products(prepared);
    let largest = (0..n).fold(0.0f64, |most, i| most.max(l[i * n + i]));
    for i in 0..n {
        let (above, row) = l.split_at_mut(i * n);
        let row = &mut row[..n];
        for j in 0..i {
            let other = &above[j * n..][..j + 1];
            let rest = row[j] - dense::dot(level, &row[..j], &other[..j]);
            row[j] = if other[j] > 0.0 { rest / other[j] } else { 0.0 };
        }
        let rest = row[i] - dense::dot(level, &row[..i], &row[..i]);
        // What is left of a dependent sample is rounding.
        row[i] = if rest > 1e-13 * row[i].max(1e-3 * largest) { rest.sqrt() } else { 0.0 };
        row[i + 1..].fill(0.0);
    }
    Dense::new(n, n, l).expect("a square")
}

/// The lower triangle of `X Xᵀ`.
fn products(prepared: &Prepared<'_>) -> Vec<f64> {
    let (n, d, level) = (prepared.norms.len(), prepared.matrix().n_cols(), Level::best());
    let mut products = vec![0.0; n * n];
    products.par_chunks_mut(8 * n.max(1)).enumerate().for_each(|(block, out)| {
        let mut spread = Vec::new();
        for (at, out) in out.chunks_exact_mut(n).enumerate() {
            let i = 8 * block + at;
            match prepared.matrix() {
                Matrix::Dense(x) => {
                    dense::dots(level, &x.values()[..(i + 1) * d], x.row(i), &mut out[..=i]);
                }
                Matrix::Sparse(x) => {
                    spread.resize(d, 0.0);
                    let (columns, values) = x.row(i);
                    columns.iter().zip(values).for_each(|(&j, x)| spread[j as usize] = *x);
                    for (j, out) in out[..=i].iter_mut().enumerate() {
                        *out = prepared.dot(j, &spread);
                    }
                    columns.iter().for_each(|&j| spread[j as usize] = 0.0);
                }
            }
        }
    });
    products
}

/// A point of the machine on the triangle as one of the machine on the samples.
pub(super) fn lift(problem: &Problem<'_>, triangle: &Dense<f64>, found: Point) -> Point {
    let n = problem.n();
    // v = Lᵀ a names w = Xᵀ a, which need not be that of the dual coefficients before the end.
    let mut a = found.w.clone();
    for i in (0..n).rev() {
        let row = triangle.row(i);
        a[i] = if row[i] > 0.0 { a[i] / row[i] } else { 0.0 };
        let by = a[i];
        a[..i].iter_mut().zip(row).for_each(|(a, l)| *a -= by * l);
    }
    let point = problem.point(found.beta);
    let mut here = Point { w: vec![0.0; problem.design.d()], b: found.b, ..point.clone() };
    problem.design.transposed_times(&a, &mut here.w);
    problem.design.times(&here.w, here.b, &mut here.scores);
    if problem.intercept == Intercept::Free {
        let shift = problem.best_shift(&here.scores);
        here.b += shift;
        here.scores.iter_mut().for_each(|score| *score += shift);
    }
    here.primal = problem.primal(&here.w, here.b, &here.scores);
    problem.stretch(&mut here);
    let mut best = if here.primal < point.primal { here } else { point };
    best.stalled = found.stalled;
    best
}
