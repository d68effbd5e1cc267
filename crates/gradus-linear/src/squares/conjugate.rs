//! Least squares by conjugate gradients, for matrices that are only multiplied with.

use super::normal::norm;
use crate::design::Design;
use crate::{conjugate, parallel};
use gradus_core::progress::Stop;

/// A solution and how exact it is.
pub(crate) struct Conjugate {
    pub(crate) coefficients: Vec<f64>,
    /// `‖XᵀW(y − Xβ) − μβ‖ / ‖XᵀWy‖`.
    pub(crate) residual: f64,
    /// `Σ w (y − Xβ)²`.
    pub(crate) squares: f64,
    pub(crate) iterations: usize,
}

/// How the columns are scaled while conjugate gradients run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scaling {
    /// Not at all: from 0 and without a penalty the solution tends to the smallest one.
    None,
    /// Each by its own length, which is faster where lengths differ.
    Lengths,
}

/// Solves `min ½ Σ w (y − Xβ)² + ½ μ ‖β‖²` from `start`.
pub(crate) fn conjugate(
    design: &Design<'_>,
    y: &[f64],
    penalty: f64,
    (start, scaling): (&[f64], Scaling),
    (tol, max_iter): (f64, usize),
    stop: &Stop,
) -> Conjugate {
    let (n, d) = (design.n(), design.d());
    let scale: Vec<f64> = match scaling {
        Scaling::None => vec![1.0; d],
        Scaling::Lengths => {
            let inverse = |square: f64| if square > 0.0 { 1.0 / square.sqrt() } else { 1.0 };
            lengths(design).iter().map(|square| inverse(square + penalty)).collect()
        }
    };
    let mut x = start.to_vec();
    let mut gradient = vec![0.0; d];
    let mut margins = vec![0.0; n];
    let weighted = |r: &[f64]| -> Vec<f64> {
        r.iter().enumerate().map(|(row, r)| design.weight(row) * r).collect()
    };
    design.transposed_times(&weighted(y), &mut gradient);
    let size = norm(&gradient).max(f64::MIN_POSITIVE);
    if x.iter().any(|x| *x != 0.0) {
        design.times(&x, 0.0, &mut margins);
        let residual: Vec<f64> = y.iter().zip(&margins).map(|(y, m)| y - m).collect();
        design.transposed_times(&weighted(&residual), &mut gradient);
        gradient.iter_mut().zip(&x).for_each(|(g, x)| *g -= penalty * x);
    }
    let mut times = |v: &[f64], out: &mut [f64]| {
        design.times(v, 0.0, &mut margins);
        design.transposed_times(&weighted(&margins), out);
        out.iter_mut().zip(v).for_each(|(out, v)| *out += penalty * v);
    };
    let stopped = |gradient: &[f64]| norm(gradient) <= tol * size || stop.requested();
    let limits = conjugate::Limits { share: 0.0, max_iter, stopped: &stopped };
    let precondition = |i: usize, g: f64| g * scale[i] * scale[i];
    let iterations = conjugate::solve(&mut times, precondition, &mut x, gradient.clone(), limits);
    // The gradient as it is, not as rounding has carried it along.
    design.times(&x, 0.0, &mut margins);
    let residual: Vec<f64> = y.iter().zip(&margins).map(|(y, m)| y - m).collect();
    let weighted = weighted(&residual);
    let squares = residual.iter().zip(&weighted).map(|(r, weighted)| r * weighted).sum();
    design.transposed_times(&weighted, &mut gradient);
    gradient.iter_mut().zip(&x).for_each(|(g, x)| *g -= penalty * x);
    Conjugate { coefficients: x, residual: norm(&gradient) / size, squares, iterations }
}

/// `Σ w x²` of every centred and scaled column.
fn lengths(design: &Design<'_>) -> Vec<f64> {
    match design.matrix() {
        gradus_data::Matrix::Dense(x) => {
            let mut sums = vec![0.0; design.d()];
            for (row, x) in x.rows().enumerate() {
                let weight = design.weight(row);
                for (((sum, x), c), s) in
                    sums.iter_mut().zip(x).zip(design.center()).zip(design.scale())
                {
                    let x = (x - c) / s;
                    *sum += weight * x * x;
                }
            }
            sums
        }
        gradus_data::Matrix::Sparse(_) => {
            let total = design.total();
            let columns = design.columns().expect("a sparse matrix has columns");
            let entries = columns.nnz();
            parallel::map((0..design.d()).collect(), entries, |column: usize| {
                let (c, s) = (design.center()[column], design.scale()[column]);
                let (rows, values) = columns.row(column);
                let (mut stored, mut sum) = (0.0, 0.0);
                for (&row, x) in rows.iter().zip(values) {
                    let weight = design.weight(row as usize);
                    stored += weight;
                    sum += weight * (x - c) * (x - c);
                }
                (sum + (total - stored).max(0.0) * c * c) / (s * s)
            })
        }
    }
}
