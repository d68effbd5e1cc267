//! Fewer samples than features: the same machine in the space of the samples.
//!
//! With `X Xᵀ = L Lᵀ` a machine on the rows of the triangle `L` has the scores and the norm of one on
//! the rows of `X`: `w = Xᵀβ` and `v = Lᵀβ` differ by a rotation. So solvers whose cost grows with
//! the features see as many as there are samples.

use super::dual::Prepared;
use super::problem::{Intercept, Point, Problem};
use gradus_base::parallel;
use gradus_data::{Dense, Matrix};
use gradus_kernel::{Level, dense, eight};

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

/// The lower triangle of `X Xᵀ`, eight rows at a time, so that the others are read once for eight.
fn products(prepared: &Prepared<'_>) -> Vec<f64> {
    let (n, d, level) = (prepared.norms.len(), prepared.matrix().n_cols(), Level::best());
    let all: Vec<u32> = (0..n as u32).collect();
    let mut products = vec![0.0; n * n];
    parallel::each(products.chunks_mut(8 * n.max(1)).enumerate(), |(block, out)| {
        let (first, rows) = (8 * block, out.len() / n);
        let mut vectors = vec![0.0; 8 * d];
        for lane in 0..rows {
            prepared.each(first + lane, |j, x| vectors[8 * j + lane] = x);
        }
        let others = &all[..first + rows];
        let mut eights = vec![0.0; 8 * others.len()];
        match prepared.matrix() {
            Matrix::Dense(x) => eight::dense(level, x.values(), others, &vectors, &mut eights),
            Matrix::Sparse(x) => {
                let parts = (x.indptr(), x.indices(), x.values());
                eight::sparse(level, parts, others, &vectors, &mut eights);
            }
        }
        for (lane, out) in out.chunks_exact_mut(n).enumerate() {
            for (out, eight) in out[..=first + lane].iter_mut().zip(eights.chunks_exact(8)) {
                *out = eight[lane];
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
