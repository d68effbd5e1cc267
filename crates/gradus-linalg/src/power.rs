//! The best approximation of rank 1, by alternating power steps.

use crate::Operator;
use crate::svd::Options;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_kernel::{Level, dense};

/// The best approximation `σ u vᵀ` of rank 1 of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct RankOne {
    /// The left vector, of length 1.
    pub u: Vec<f64>,
    /// The largest singular value.
    pub s: f64,
    /// The right vector, of length 1.
    pub v: Vec<f64>,
    /// `‖A − σ u vᵀ‖_F` after each step: it never rises, and ends at the error of Eckart and Young.
    pub errors: Vec<f64>,
    /// `‖Aᵀ u − σ v‖ / σ`: how far the last step was from changing nothing.
    pub residual: f64,
    /// Whether that is within the tolerance.
    pub converged: bool,
}

/// The best approximation of rank 1 by alternating power steps: `u ← A v / ‖A v‖`, `v ← Aᵀ u / ‖Aᵀ u‖`.
///
/// Each half of a step is the least squares solution for one vector, the other one fixed, as in alternating least squares for
/// a factorisation of rank 1; so the error never rises. The angle to the singular vectors shrinks by `(σ₂/σ₁)²` a step: where the first
/// two singular values are alike, [`truncated`](crate::truncated) is far faster. Cost of a step: two products with the
/// matrix.
///
/// ```
/// use gradus_data::Dense;
/// use gradus_linalg::{Options, rank_one};
/// let found = rank_one(&Dense::from_rows(&[[3.0, 0.0], [0.0, 1.0]]), &Options::default())?;
/// assert!((found.s - 3.0).abs() < 1e-9 && (found.errors.last().unwrap() - 1.0).abs() < 1e-9);
/// # Ok::<(), gradus_base::Error>(())
/// ```
///
/// # Errors
/// If the matrix has no entries, or one is not finite.
pub fn rank_one(matrix: &dyn Operator, options: &Options) -> Result<RankOne> {
    let (m, n) = matrix.shape();
    if m == 0 || n == 0 {
        return Err(Error::data(format!("rank_one: a matrix of {m} × {n} has no entries")));
    }
    let squares = matrix.squares();
    if !squares.is_finite() {
        return Err(Error::data("rank_one: the sum of the squares of the entries is not finite"));
    }
    let level = Level::best();
    let normalise = |x: &mut [f64]| {
        // Relative to the largest, so that no square leaves the range of numbers.
        let most = x.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if most > 0.0 {
            x.iter_mut().for_each(|x| *x /= most);
            let norm = dense::dot(level, x, x).sqrt();
            x.iter_mut().for_each(|x| *x /= norm);
            return most * norm;
        }
        0.0
    };
    let mut stream = Stream::new(options.seed, "linalg.rank_one", 0);
    let mut v: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
    normalise(&mut v);
    let (mut u, mut next) = (vec![0.0; m], vec![0.0; n]);
    let mut found = RankOne {
        u: Vec::new(),
        s: 0.0,
        v: Vec::new(),
        errors: Vec::new(),
        residual: 0.0,
        converged: false,
    };
    for _ in 0..options.max_iter.max(1) {
        matrix.times(1, &v, &mut u);
        if normalise(&mut u) == 0.0 {
            // Nothing along v: of a start at random that is the zero matrix.
            u[0] = 1.0;
            found.errors.push(squares.max(0.0).sqrt());
            found.converged = true;
            break;
        }
        matrix.transposed_times(1, &u, &mut next);
        found.s = normalise(&mut next);
        let off = next.iter().zip(&v).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        std::mem::swap(&mut v, &mut next);
        found.errors.push((squares - found.s * found.s).max(0.0).sqrt());
        found.residual = off;
        if off <= options.tol {
            found.converged = true;
            break;
        }
    }
    (found.u, found.v) = (u, v);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truncated;
    use gradus_data::Dense;

    fn normal(m: usize, n: usize, seed: u64) -> Dense<f64> {
        let mut stream = Stream::new(seed, "test", 0);
        Dense::from_fn(m, n, |_, _| stream.normal())
    }

    #[test]
    fn it_is_the_leading_pair_and_the_error_never_rises() {
        for (m, n) in [(30, 8), (8, 30), (1, 5), (5, 1), (1, 1)] {
            let a = normal(m, n, 3);
            for unit in [1.0, 1e-100, 1e100] {
                let a = Dense::from_fn(m, n, |r, c| unit * a[(r, c)]);
                let options = Options { tol: 1e-12, max_iter: 100_000, ..Options::default() };
                let found = rank_one(&a, &options).unwrap();
                let best = truncated(&a, 1, &Options::default()).unwrap();
                assert!(found.converged, "{m} × {n}");
                assert!((found.s / best.s[0] - 1.0).abs() < 1e-10, "{} {}", found.s, best.s[0]);
                let scale = a.squares().sqrt();
                assert!((found.errors.last().unwrap() - best.error).abs() < 1e-7 * scale);
                assert!(found.errors.windows(2).all(|w| w[1] <= w[0] + 1e-9 * scale));
                let same: f64 = (0..n).map(|j| found.v[j] * best.v[(j, 0)]).sum();
                assert!((same.abs() - 1.0).abs() < 1e-9);
                let along: f64 = (0..m)
                    .map(|i| (0..n).map(|j| found.u[i] * a[(i, j)] * found.v[j]).sum::<f64>())
                    .sum();
                assert!((along / found.s - 1.0).abs() < 1e-9, "u and v are of one sign");
            }
        }
    }

    #[test]
    fn a_step_by_hand_zeros_and_what_is_refused() {
        // A matrix of rank 1 is found in one step, seen in the second.
        let a = Dense::from_fn(4, 3, |r, c| (r + 1) as f64 * (c + 1) as f64);
        let found = rank_one(&a, &Options::default()).unwrap();
        assert!(found.errors.len() <= 3 && (found.s - 420f64.sqrt()).abs() < 1e-12, "{found:?}");
        let zero = rank_one(&Dense::full(3, 2, 0.0), &Options::default()).unwrap();
        assert!(zero.converged && zero.s == 0.0 && zero.errors == [0.0]);
        assert!(rank_one(&Dense::full(0, 2, 0.0), &Options::default()).is_err());
        assert!(rank_one(&Dense::full(1, 1, f64::NAN), &Options::default()).is_err());
    }
}
