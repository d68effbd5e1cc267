//! Truncated singular value decomposition of an operator.

use crate::basis::{Basis, WIDTH};
use crate::composed::Scaled;
use crate::lanczos::{Aim, Lanczos};
use crate::operator::{Operator, Sparse, Transposed};
use crate::small::jacobi_svd;
use gradus_base::{Error, Result};
use gradus_data::{Csr, Dense};
use std::borrow::Cow;

/// Singular values below this share of the largest are rounding error and left out.
pub const REAL: f64 = 1e-7;

/// How a decomposition is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Done when `‖AᵀA v − σ² v‖ ≤ tol σ₁²` for every vector. The error of the singular values is of
    /// the order of the square of this.
    pub tol: f64,
    /// Largest number of restarts.
    pub max_iter: usize,
    /// Seed of the random start; the result depends on it by rounding and the signs of vectors alone.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { tol: 1e-8, max_iter: 300, seed: 0 }
    }
}

/// A truncated singular value decomposition `A ≈ U diag(s) Vᵀ`.
#[derive(Clone, Debug, PartialEq)]
pub struct Svd {
    /// The left singular vectors, `n_rows × k`, orthonormal columns.
    pub u: Dense<f64>,
    /// The singular values, largest first.
    pub s: Vec<f64>,
    /// The right singular vectors, `n_cols × k`, orthonormal columns.
    pub v: Dense<f64>,
    /// `‖A − U diag(s) Vᵀ‖_F`, from `‖A‖_F² − Σ s²`: by Eckart and Young no matrix of rank `k` comes
    /// closer. Below about `1e-8 ‖A‖_F` it is rounding error.
    pub error: f64,
    /// An estimate of the accuracy: the largest `‖AᵀA v − σ² v‖ / σ₁²`, before the vectors were turned
    /// for the last time.
    pub residual: f64,
    /// Whether the tolerance was reached.
    pub converged: bool,
    /// Number of restarts.
    pub iterations: usize,
}

/// The `k` largest singular values of a matrix and their vectors: its best approximation of rank `k`.
///
/// Block Lanczos on `AᵀA` or `AAᵀ`, whichever is smaller, with full orthogonalisation, restarted from
/// the best vectors; blocks of 8 columns, so that repeated values (up to 8 times) are found. Since
/// the method works on squares, values below `1e-7 σ₁` are right to about `1e-8 σ₁` only. The result
/// does not depend on the number of threads.
///
/// Cost: some `10 k` products with the matrix for well-separated values, and `O(k² n)` for the
/// smaller side `n` a restart.
///
/// # Errors
/// If `k` is 0 or larger than a side of the matrix, an entry is not finite, or an option is outside
/// its range.
///
/// ```
/// use gradus_data::Dense;
/// use gradus_linalg as linalg;
/// let a = Dense::from_rows(&[[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]);
/// let best = linalg::truncated(&a, 1, &linalg::Options::default())?;
/// assert!((best.s[0] - 4.0).abs() < 1e-12 && (best.error - 3.0).abs() < 1e-12);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn truncated(matrix: &dyn Operator, k: usize, options: &Options) -> Result<Svd> {
    let found = truncated_until(matrix, k, options, &|| false)?;
    found.ok_or_else(|| Error::data("svd: stopped"))
}

/// Computes what [`truncated`] does until `stopped` returns true: the result is then the best so far, or `None` before
/// the first restart.
///
/// # Errors
/// As [`truncated`].
pub fn truncated_until(
    matrix: &dyn Operator,
    k: usize,
    options: &Options,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Svd>> {
    decompose(matrix, k, options, stopped, |n, _, aim| Lanczos::start(n, aim))
}

/// Computes what [`truncated`] does from columns that span a space near that of the leading vectors, as those of a
/// matrix near this one: left ones by rows, right ones by rows, and the number of each.
///
/// # Errors
/// As [`truncated`].
pub fn truncated_from(
    matrix: &dyn Operator,
    k: usize,
    (left, right, width): (&[f64], &[f64], usize),
    options: &Options,
) -> Result<Svd> {
    let start = |n: usize, flipped: bool, aim: &Aim| {
        let near = if flipped { left } else { right };
        let mut basis = Basis::new(n, aim.capacity(n));
        for first in (0..width.min(k)).step_by(WIDTH) {
            let count = WIDTH.min(width - first);
            let mut z = vec![0.0; n * WIDTH];
            for (to, from) in z.chunks_exact_mut(WIDTH).zip(near.chunks_exact(width)) {
                to[..count].copy_from_slice(&from[first..first + count]);
            }
            basis.extend(&mut z);
        }
        // What the start does not know of has to be found as well.
        basis.extend_at_random(aim.seed, 0);
        Lanczos { basis, squares: Vec::new(), residual: f64::INFINITY, cycles: 0 }
    };
    let found = decompose(matrix, k, options, &|| false, start)?;
    found.ok_or_else(|| Error::data("svd: stopped"))
}

/// The iteration from a start that is given the smaller side, whether that is the one of the rows, and the aim.
fn decompose(
    matrix: &dyn Operator,
    k: usize,
    options: &Options,
    stopped: &dyn Fn() -> bool,
    start: impl FnOnce(usize, bool, &Aim) -> Lanczos,
) -> Result<Option<Svd>> {
    let total = check(matrix, k, options)?;
    // The method squares singular values twice: those near 1e-100 would vanish.
    if total > 0.0 && !SAFE.contains(&total) {
        let by = (-0.5 * total.log2()).round().exp2();
        let scaled = Scaled::new(matrix, Some(vec![by; matrix.shape().0]), None, (total * by) * by);
        let found = decompose_scaled(&scaled, scaled.squares(), k, options, stopped, start)?;
        return Ok(found.map(|mut found| {
            found.s.iter_mut().for_each(|s| *s /= by);
            Svd { error: found.error / by, ..found }
        }));
    }
    decompose_scaled(matrix, total, k, options, stopped, start)
}

/// The squares of norms that need no scaling.
const SAFE: std::ops::Range<f64> = 1e-60..1e60;

fn decompose_scaled(
    matrix: &dyn Operator,
    total: f64,
    k: usize,
    options: &Options,
    stopped: &dyn Fn() -> bool,
    start: impl FnOnce(usize, bool, &Aim) -> Lanczos,
) -> Result<Option<Svd>> {
    let (m, n) = matrix.shape();
    let flipped = Transposed(matrix);
    let tall: &dyn Operator = if n <= m { matrix } else { &flipped };
    let aim = Aim { k, seed: options.seed };
    let mut lanczos = start(m.min(n), n > m, &aim);
    let (mut converged, mut iterations) = (false, 0);
    while !converged && iterations < options.max_iter && lanczos.cycle(tall, &aim, stopped) {
        iterations += 1;
        converged = lanczos.residual <= options.tol || lanczos.complete();
    }
    if iterations == 0 {
        return Ok(None);
    }
    let (u, s, v) = finish(tall, &lanczos, k, options.seed)?;
    let (u, v) = if n <= m { (u, v) } else { (v, u) };
    let error = (total - s.iter().map(|s| s * s).sum::<f64>()).max(0.0).sqrt();
    let residual = lanczos.residual;
    Ok(Some(Svd { u, s, v, error, residual, converged, iterations }))
}

/// The `k` largest singular values of a sparse matrix and the right vectors by rows, `n_cols × k`; the
/// matrix is given by its rows and by its columns. `None` if `stopped` said to stop.
pub fn right_vectors(
    (rows, columns): (&Csr, &Csr),
    k: usize,
    options: &Options,
    stopped: &dyn Fn() -> bool,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let matrix = Sparse::from_both(Cow::Borrowed(rows), Cow::Borrowed(columns));
    let (m, n) = matrix.shape();
    let flipped = Transposed(&matrix);
    let tall: &dyn Operator = if n <= m { &matrix } else { &flipped };
    let aim = Aim { k, seed: options.seed };
    let mut lanczos = Lanczos::start(m.min(n), &aim);
    for _ in 0..options.max_iter {
        if !lanczos.cycle(tall, &aim, stopped) {
            return None;
        }
        if lanczos.residual <= options.tol || lanczos.complete() {
            break;
        }
    }
    let values: Vec<f64> = lanczos.squares[..k].iter().map(|square| square.sqrt()).collect();
    let mut vectors = lanczos.vectors(k);
    if n > m {
        let left = std::mem::replace(&mut vectors, vec![0.0; n * k]);
        matrix.transposed_times(k, &left, &mut vectors);
        let least = REAL * values.first().copied().unwrap_or(0.0);
        for row in vectors.chunks_exact_mut(k) {
            for (x, &value) in row.iter_mut().zip(&values) {
                *x = if value > least { *x / value } else { 0.0 };
            }
        }
    }
    Some((values, vectors))
}

/// Checks matrix and options; gives `‖A‖_F²`.
fn check(matrix: &dyn Operator, k: usize, options: &Options) -> Result<f64> {
    let (m, n) = matrix.shape();
    if k == 0 || k > m.min(n) {
        let rule = format!("must be from 1 to {}, the smaller side of {m} × {n}", m.min(n));
        return Err(Error::parameter("k", k, rule));
    }
    let fits = options.tol >= 0.0;
    if !fits {
        return Err(Error::parameter("tol", options.tol, "must be 0 or more"));
    }
    if options.max_iter == 0 {
        return Err(Error::parameter("max_iter", 0, "must be 1 or more"));
    }
    let total = matrix.squares();
    if total.is_finite() {
        return Ok(total);
    }
    Err(Error::data(format!(
        "svd: the squares of the {m} × {n} entries add up to {total}; all must be finite, and below \
         1e150 in size"
    )))
}

/// Vectors and values at full accuracy: `A V = U R` by Gram–Schmidt, then the decomposition of the
/// small `R` turns both. Squared values, as the iteration has them, would lose half the digits.
fn finish(
    matrix: &dyn Operator,
    lanczos: &Lanczos,
    k: usize,
    seed: u64,
) -> Result<(Dense<f64>, Vec<f64>, Dense<f64>)> {
    let (m, n) = matrix.shape();
    let right = lanczos.vectors(k);
    let mut left = Basis::new(m, k);
    // Row `c` holds what column `c` of A V is made of.
    let mut columns = vec![0.0; k * k];
    for first in (0..k).step_by(WIDTH) {
        let width = WIDTH.min(k - first);
        let mut x = vec![0.0; n * WIDTH];
        for (to, from) in x.chunks_exact_mut(WIDTH).zip(right.chunks_exact(k)) {
            to[..width].copy_from_slice(&from[first..first + width]);
        }
        let mut z = vec![0.0; m * WIDTH];
        matrix.times(WIDTH, &x, &mut z);
        let before = left.len;
        let split = left.extend(&mut z);
        for column in 0..width {
            let to = &mut columns[(first + column) * k..][..k];
            for (i, row) in split.inside.chunks_exact(WIDTH).enumerate() {
                to[i] = row[column];
            }
            for (i, row) in split.outside.chunks_exact(WIDTH).enumerate() {
                to[before + i] = row[column];
            }
        }
    }
    // Columns that A maps to nothing still get vectors, orthonormal to the others.
    let mut index = 1 << 40;
    while left.len < k {
        left.extend_at_random(seed, index >> 20);
        index += 1 << 20;
    }
    let (turn_left, s, turn_right) = jacobi_svd(k, columns);
    let transposed =
        |rows: &[f64]| -> Vec<f64> { (0..k * k).map(|at| rows[at % k * k + at / k]).collect() };
    let u = left.times(k, k, &transposed(&turn_left));
    let v = Basis::from_packed(n, k, k, &right).times(k, k, &transposed(&turn_right));
    Ok((Dense::new(m, k, u)?, s, Dense::new(n, k, v)?))
}
