//! Subspaces: an orthonormal basis, the principal angles between two, the best encoder of a decoder.

use super::objective::{cross, mixed, transposed};
use gradus_kernel::{Level, block, linalg};

/// Orthonormal columns that span those of a matrix with rows of `k` values, and the same columns through the inverse
/// of the triangle; `None` if they are not independent.
///
/// By two Cholesky factorisations of the products of columns: the second removes what rounding left in the first.
pub(super) fn basis(k: usize, columns: &[f64]) -> Option<Vec<f64>> {
    let mut q = columns.to_vec();
    for _ in 0..2 {
        let lower = linalg::cholesky(k, &cross(k, &q, &q))?;
        // Q = V L⁻ᵀ: row after row by forward substitution.
        for row in q.chunks_exact_mut(k) {
            for a in 0..k {
                let known: f64 = (0..a).map(|b| lower[a * k + b] * row[b]).sum();
                row[a] = (row[a] - known) / lower[a * k + a];
            }
        }
    }
    q.iter().all(|x| x.is_finite()).then_some(q)
}

/// The principal angles between the span of orthonormal rows and that of the columns of a matrix, in degrees, the
/// largest first: one for each of the rows, of which there are no more than columns.
///
/// By their sines, which keep their digits where angles are small.
///
/// # Shapes
/// `rows` holds rows of as many values as `columns` has rows of `k` values.
pub(super) fn angles(rows: &[f64], k: usize, columns: &[f64]) -> Vec<f64> {
    let d = columns.len() / k;
    let r = rows.len() / d;
    let Some(q) = basis(k, columns) else { return vec![90.0; r] };
    let level = Level::best();
    // What of each row lies outside the span: U − (U Q) Qᵀ.
    let mut inside = vec![0.0; r * k];
    block::times(level, (rows, d, d), 1.0, k, &q, &mut inside);
    let mut outside = rows.to_vec();
    block::times(level, (&inside, k, k), -1.0, d, &transposed(d, k, &q), &mut outside);
    let products = linalg::product_transposed(r, r, d, &outside, &outside);
    let Ok(eigen) = linalg::symmetric_eigen(r, &products) else { return vec![90.0; r] };
    let angle = |square: &f64| square.clamp(0.0, 1.0).sqrt().asin().to_degrees();
    eigen.values.iter().rev().map(angle).collect()
}

/// `(V (VᵀV)⁻¹)`, whose transpose is the best encoder of the decoder `V`; `None` if its columns are not independent.
pub(super) fn best_encoder(k: usize, v: &[f64]) -> Option<Vec<f64>> {
    let lower = linalg::cholesky(k, &cross(k, v, v))?;
    let mut inverse = vec![0.0; k * k];
    for (a, row) in inverse.chunks_exact_mut(k).enumerate() {
        row[a] = 1.0;
        linalg::cholesky_solve(k, &lower, row);
    }
    let w = mixed(k, v, &inverse);
    w.iter().all(|x| x.is_finite()).then_some(w)
}
