//! Matrices of low rank.

use super::Set;
use gradus_base::{Error, Result};

/// Matrices of `n_rows × n_cols` of at most this rank, by rows.
///
/// The nearest one keeps the largest singular values (Eckart and Young, 1936). The set is not
/// convex: projected descent on it is iterative hard thresholding. The decomposition is a one-sided
/// Jacobi of `O(rows · cols²)` for each of some ten sweeps: for matrices up to a few hundred wide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankK {
    /// Rows of the matrix.
    pub n_rows: usize,
    /// Columns of the matrix.
    pub n_cols: usize,
    /// Largest rank.
    pub rank: usize,
}

impl RankK {
    /// Makes the set of matrices of this shape and at most this rank.
    pub fn new(n_rows: usize, n_cols: usize, rank: usize) -> Self {
        Self { n_rows, n_cols, rank }
    }
}

impl Set for RankK {
    fn project(&self, x: &mut [f64]) {
        let Self { n_rows, n_cols, rank } = *self;
        if rank >= n_rows.min(n_cols) {
            return;
        }
        // The shorter side as columns: they are what is turned against one another.
        let wide = n_cols > n_rows;
        let (long, short) = if wide { (n_cols, n_rows) } else { (n_rows, n_cols) };
        let at = |i: usize, j: usize| if wide { j * n_cols + i } else { i * n_cols + j };
        let columns: Vec<Vec<f64>> =
            (0..short).map(|j| (0..long).map(|i| x[at(i, j)]).collect()).collect();
        let (turned, v) = jacobi(columns);
        let mut order: Vec<(f64, usize)> =
            turned.iter().enumerate().map(|(j, c)| (c.iter().map(|x| x * x).sum(), j)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        // A = (A V) Vᵀ, of which the heaviest columns are kept.
        x.fill(0.0);
        for &(_, k) in &order[..rank] {
            for j in 0..short {
                for i in 0..long {
                    x[at(i, j)] += turned[k][i] * v[k][j];
                }
            }
        }
    }

    fn check(&self, dim: usize) -> Result<()> {
        if self.n_rows.checked_mul(self.n_cols) != Some(dim) {
            return Err(Error::Shape {
                what: "matrix of low rank".into(),
                expected: format!("{dim} numbers"),
                got: format!("{} × {}", self.n_rows, self.n_cols),
            });
        }
        if self.rank == 0 {
            return Err(Error::parameter("rank", 0, "must be at least 1"));
        }
        Ok(())
    }
}

/// Turns columns against one another until all are orthogonal (Hestenes, 1958): gives `A V` and `V`,
/// both as columns.
fn jacobi(mut a: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let n = a.len();
    let mut v: Vec<Vec<f64>> =
        (0..n).map(|j| (0..n).map(|i| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..60 {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
                let (pp, qq, pq) = (dot(&a[p], &a[p]), dot(&a[q], &a[q]), dot(&a[p], &a[q]));
                if pq.abs() <= 1e-15 * (pp * qq).sqrt() || pq == 0.0 {
                    continue;
                }
                turned = true;
                let zeta = (qq - pp) / (2.0 * pq);
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                for columns in [&mut a, &mut v] {
                    let (first, second) = columns.split_at_mut(q);
                    for (x, y) in first[p].iter_mut().zip(second[0].iter_mut()) {
                        (*x, *y) = (c * *x - c * t * *y, c * t * *x + c * *y);
                    }
                }
            }
        }
        if !turned {
            break;
        }
    }
    (a, v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_by_hand() {
        // diag(3, 2) turned: [[3, 0], [0, 2]] keeps the 3.
        let mut x = [3.0, 0.0, 0.0, 2.0];
        RankK::new(2, 2, 1).project(&mut x);
        assert_eq!(x, [3.0, 0.0, 0.0, 0.0]);
        // [[1, 1], [1, 1]] has rank 1 already; a wide and a tall one.
        for (rows, cols) in [(2, 3), (3, 2)] {
            let mut x = [1.0; 6];
            RankK::new(rows, cols, 1).project(&mut x);
            assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-14), "{x:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_the_rest_of_the_singular_values() {
        // Singular values of [[4, 0], [3, −5]] are √40 and √10.
        let whole = [4.0, 0.0, 3.0, -5.0];
        let mut x = whole;
        RankK::new(2, 2, 1).project(&mut x);
        let cut: f64 = whole.iter().zip(&x).map(|(a, b)| (a - b).powi(2)).sum();
        assert!((cut - 10.0).abs() < 1e-12, "{cut}");
        assert!((x[0] * x[3] - x[1] * x[2]).abs() < 1e-12);
    }
}
