//! Half a step for the squared error: one factor, the other one fixed.

use super::NmfSolver;
use gradus_base::parallel;
use gradus_kernel::nonnegative::{self, Penalty};
use gradus_kernel::{Level, linalg};

/// Rows that a thread takes at a time.
const ROWS: usize = 16 * nonnegative::ROWS;

/// Lowers `Σ ½ zᵀ G z − bᵀ z + penalty` in every row `z ≥ 0`.
///
/// # Shapes
/// `gram` is `k × k`, `b` and `z` hold rows of `k` values.
pub(super) fn half(
    solver: NmfSolver,
    (gram, penalty, sweeps): (&[f64], Penalty, usize),
    b: &[f64],
    z: &mut [f64],
) {
    let k = gram.len().isqrt();
    let rows = z.chunks_mut(ROWS * k).zip(b.chunks(ROWS * k));
    let lower = factored(solver, gram, penalty);
    parallel::each(rows, |(z, b)| {
        within(solver, (gram, penalty, sweeps), lower.as_deref(), b, z);
    });
}

/// The same for a few rows, by the thread that asks.
pub(super) fn block(
    solver: NmfSolver,
    (gram, penalty, sweeps): (&[f64], Penalty, usize),
    b: &[f64],
    z: &mut [f64],
) {
    let lower = factored(solver, gram, penalty);
    within(solver, (gram, penalty, sweeps), lower.as_deref(), b, z);
}

/// The Cholesky factor that `projected_als` needs; `None` of other solvers, and where there is none.
fn factored(solver: NmfSolver, gram: &[f64], penalty: Penalty) -> Option<Vec<f64>> {
    if solver != NmfSolver::ProjectedAls {
        return None;
    }
    let k = gram.len().isqrt();
    let mut system = gram.to_vec();
    (0..k).for_each(|a| system[a * k + a] += penalty.l2);
    linalg::cholesky(k, &system)
}

fn within(
    solver: NmfSolver,
    (gram, penalty, sweeps): (&[f64], Penalty, usize),
    lower: Option<&[f64]>,
    b: &[f64],
    z: &mut [f64],
) {
    let (k, level) = (gram.len().isqrt(), Level::best());
    match (solver, lower) {
        (NmfSolver::Multiplicative, _) => {
            for (z, b) in z.chunks_exact_mut(k).zip(b.chunks_exact(k)) {
                multiply(gram, penalty, b, z);
            }
        }
        (NmfSolver::ProjectedAls, Some(lower)) => {
            for (z, b) in z.chunks_exact_mut(k).zip(b.chunks_exact(k)) {
                let mut s: Vec<f64> = b.iter().map(|b| b - penalty.l1).collect();
                linalg::cholesky_solve(k, lower, &mut s);
                s.iter_mut().for_each(|s| *s = s.max(0.0));
                // A projection may raise the error; coordinate descent cannot.
                if value(gram, penalty, b, &s) <= value(gram, penalty, b, z) {
                    z.copy_from_slice(&s);
                } else {
                    nonnegative::hals(level, gram, penalty, 1, b, z);
                }
            }
        }
        _ => {
            let pieces = z.chunks_mut(nonnegative::ROWS * k).zip(b.chunks(nonnegative::ROWS * k));
            for (z, b) in pieces {
                nonnegative::hals(level, gram, penalty, sweeps, b, z);
            }
        }
    }
}

fn multiply(gram: &[f64], penalty: Penalty, b: &[f64], z: &mut [f64]) {
    let k = z.len();
    let below: Vec<f64> = gram
        .chunks_exact(k)
        .zip(z.iter())
        .map(|(row, z_a)| {
            let product: f64 = row.iter().zip(z.iter()).map(|(g, z)| g * z).sum();
            product + penalty.l1 + penalty.l2 * z_a
        })
        .collect();
    for ((z, b), below) in z.iter_mut().zip(b).zip(below) {
        *z = if below > 0.0 { *z * b.max(0.0) / below } else { 0.0 };
    }
}

fn value(gram: &[f64], penalty: Penalty, b: &[f64], z: &[f64]) -> f64 {
    let k = z.len();
    let mut value = 0.0;
    for ((row, z_a), b) in gram.chunks_exact(k).zip(z).zip(b) {
        let product: f64 = row.iter().zip(z).map(|(g, z)| g * z).sum();
        value += z_a * (0.5 * (product + penalty.l2 * z_a) - b + penalty.l1);
    }
    value
}
