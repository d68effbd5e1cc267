//! A decomposition that starts from vectors near the singular vectors: those of the iteration before.

use super::basis::{Basis, WIDTH};
use super::lanczos::{Aim, Lanczos};
use super::matrix::{Matrix, Transposed};
use super::{Options, Svd, check, finish};
use gradus_base::Result;

/// As [`truncated`](super::truncated), from columns that span a space near that of the leading vectors: left ones by
/// rows, then right ones, `width` of each.
pub(crate) fn truncated_from(
    matrix: &dyn Matrix,
    k: usize,
    (left, right, width): (&[f64], &[f64], usize),
    options: &Options,
) -> Result<Svd> {
    let total = check(matrix, k, options)?;
    let (m, n) = matrix.shape();
    let flipped = Transposed(matrix);
    let (tall, start): (&dyn Matrix, _) = if n <= m { (matrix, right) } else { (&flipped, left) };
    let aim = Aim { k, seed: options.seed };
    let small = m.min(n);
    let mut basis = Basis::new(small, aim.capacity(small));
    for first in (0..width.min(k)).step_by(WIDTH) {
        let count = WIDTH.min(width - first);
        let mut z = vec![0.0; small * WIDTH];
        for (to, from) in z.chunks_exact_mut(WIDTH).zip(start.chunks_exact(width)) {
            to[..count].copy_from_slice(&from[first..first + count]);
        }
        basis.extend(&mut z);
    }
    // What the start does not know of has to be found as well.
    basis.extend_at_random(options.seed, 0);
    let mut lanczos = Lanczos { basis, squares: Vec::new(), residual: f64::INFINITY, cycles: 0 };
    let (mut converged, mut iterations) = (false, 0);
    while !converged && iterations < options.max_iter {
        lanczos.cycle(tall, &aim, &|| false);
        iterations += 1;
        converged = lanczos.residual <= options.tol || lanczos.complete();
    }
    let (u, s, v) = finish(tall, &lanczos, k, options.seed)?;
    let (u, v) = if n <= m { (u, v) } else { (v, u) };
    let error = (total - s.iter().map(|s| s * s).sum::<f64>()).max(0.0).sqrt();
    Ok(Svd { u, s, v, error, converged, iterations })
}
