//! The Gaussian that the rows of one side come from, drawn given the rows.

use super::dense::Matrix;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_kernel::Rows;

/// Rows are summed in blocks of this many, block by block, whatever the number of threads.
const BLOCK: usize = 512;

/// The weight of the prior of a covariance, in rows for each row there is. It keeps the chain from drifting
/// to large variances where the data do not tell them; a prior of a few rows does not.
const COVARIANCE_WEIGHT: f64 = 0.3;

/// The weight β₀ of the prior mean, zero, in rows.
pub(super) const MEAN_WEIGHT: f64 = 1.0;

/// Mean and precision of a Gaussian over `rank + 1` dimensions, the bias last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gaussian {
    pub(super) mean: Vec<f64>,
    pub(super) precision: Matrix,
}

impl Gaussian {
    /// Draws the Gaussian given `n` rows that came from it, by their moments.
    ///
    /// The prior is Normal–Wishart: `Λ ~ W(W₀, d + 1 + c n)` and `μ ~ N(0, Λ⁻¹/β₀)`, where
    /// `W₀⁻¹ = (1 + c n) diag(v)` for the variances `v` that are expected: it is worth `1 + c n` rows. So
    /// `Λ` is Wishart with `d + 1 + (1 + c) n` degrees of freedom and inverse scale
    /// `W₀⁻¹ + S + (β₀ n / (β₀ + n)) x̄ x̄ᵀ`, and `μ ~ N(n x̄ / (β₀ + n), Λ⁻¹ / (β₀ + n))`.
    pub(super) fn draw(moments: &Moments, variances: &[f64], stream: &mut Stream) -> Result<Self> {
        let (d, n) = (moments.mean.len(), moments.count);
        let total = MEAN_WEIGHT + n;
        let mut inverse_scale = moments.scatter.clone();
        for (i, &variance) in variances.iter().enumerate() {
            let by = MEAN_WEIGHT * n / total * moments.mean[i];
            for (to, &x) in inverse_scale.row_mut(i).iter_mut().zip(&moments.mean) {
                *to += by * x;
            }
            inverse_scale.row_mut(i)[i] += (1.0 + COVARIANCE_WEIGHT * n) * variance;
        }
        let broken = || Error::data("bayes: the factors became too large; check the ratings");
        let freedom = d as f64 + 1.0 + (1.0 + COVARIANCE_WEIGHT) * n;
        let root = wishart_root(&inverse_scale, freedom, stream).ok_or_else(broken)?;
        let precision = root.times(&root.transposed());
        // With Λ = R Rᵀ, R⁻ᵀ z has covariance Λ⁻¹. R is not triangular; its Cholesky factor is.
        let l = precision.cholesky().ok_or_else(broken)?;
        let z: Vec<f64> = (0..d).map(|_| stream.normal() / total.sqrt()).collect();
        let noise = l.inverse_lower().transposed().apply(&z);
        let mean = moments.mean.iter().zip(noise).map(|(x, e)| x * n / total + e).collect();
        Ok(Self { mean, precision })
    }
}

/// A matrix `R` such that `R Rᵀ` is Wishart, by Bartlett's decomposition.
fn wishart_root(inverse_scale: &Matrix, freedom: f64, stream: &mut Stream) -> Option<Matrix> {
    let d = inverse_scale.n;
    let mut bartlett = Matrix::zeros(d);
    for i in 0..d {
        for j in 0..i {
            bartlett.row_mut(i)[j] = stream.normal();
        }
        bartlett.row_mut(i)[i] = (2.0 * stream.gamma((freedom - i as f64) / 2.0)).sqrt();
    }
    let scale_root = inverse_scale.cholesky()?.inverse_lower().transposed();
    Some(scale_root.times(&bartlett))
}

/// The number of rows, their mean, and their scatter about the mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moments {
    pub(super) count: f64,
    pub(super) mean: Vec<f64>,
    pub(super) scatter: Matrix,
}

impl Moments {
    /// The moments of rows with the bias as their last value, less `shift` where given.
    pub(super) fn of(rows: &Rows, shift: Option<&Rows>) -> Self {
        let (n, d) = (rows.n_rows(), rows.k());
        let take = |row: usize, to: &mut [f64]| {
            for (to, &x) in to.iter_mut().zip(rows.row(row)) {
                *to = f64::from(x);
            }
            if let Some(shift) = shift {
                to.iter_mut().zip(shift.row(row)).for_each(|(to, &z)| *to -= f64::from(z));
            }
        };
        let sums = parallel::map(parallel::blocks(n, BLOCK), |rows| {
            let (mut sum, mut values) = (vec![0.0; d], vec![0.0; d]);
            for row in rows {
                take(row, &mut values);
                sum.iter_mut().zip(&values).for_each(|(sum, x)| *sum += x);
            }
            sum
        });
        let mut mean = vec![0.0; d];
        for sum in sums {
            mean.iter_mut().zip(sum).for_each(|(mean, x)| *mean += x / n as f64);
        }
        let parts = parallel::map(parallel::blocks(n, BLOCK), |rows| {
            let (mut part, mut values) = (Matrix::zeros(d), vec![0.0; d]);
            for row in rows {
                take(row, &mut values);
                values.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean);
                for i in 0..d {
                    let x = values[i];
                    let to = &mut part.row_mut(i)[i..];
                    to.iter_mut().zip(&values[i..]).for_each(|(to, y)| *to += x * y);
                }
            }
            part
        });
        let mut scatter = Matrix::zeros(d);
        for part in parts {
            scatter.values.iter_mut().zip(part.values).for_each(|(to, x)| *to += x);
        }
        for i in 0..d {
            for j in 0..i {
                scatter.values[i * d + j] = scatter.values[j * d + i];
            }
        }
        Self { count: n as f64, mean, scatter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: usize, d: usize, seed: u64) -> Rows {
        let mut rows = Rows::zeros(n, d);
        for i in 0..n {
            let mut stream = Stream::new(seed, "test.rows", i as u64);
            let shared = stream.normal();
            for (j, x) in rows.row_mut(i)[..d].iter_mut().enumerate() {
                *x = (0.3 * j as f64 + stream.normal() + shared) as f32;
            }
        }
        rows
    }

    #[test]
    fn moments_match_plain_loops() {
        let (n, d) = (1300, 3);
        let (rows, shift) = (rows(n, d, 1), rows(n, d, 2));
        let moments = Moments::of(&rows, Some(&shift));
        let x = |i: usize, j: usize| f64::from(rows.row(i)[j]) - f64::from(shift.row(i)[j]);
        for j in 0..d {
            let mean = (0..n).map(|i| x(i, j)).sum::<f64>() / n as f64;
            assert!((moments.mean[j] - mean).abs() < 1e-10);
            for l in 0..d {
                let want: f64 =
                    (0..n).map(|i| (x(i, j) - moments.mean[j]) * (x(i, l) - moments.mean[l])).sum();
                assert!((moments.scatter.row(j)[l] - want).abs() < 1e-7);
            }
        }
    }

    #[test]
    fn the_draws_have_the_moments_of_the_normal_wishart() {
        let (n, d, variances) = (40, 3, [0.5, 0.2, 1.5]);
        let moments = Moments::of(&rows(n, d, 3), None);
        let draws: Vec<Gaussian> = (0..20_000)
            .map(|at| Gaussian::draw(&moments, &variances, &mut Stream::new(9, "t", at)).unwrap())
            .collect();
        let (n, count) = (n as f64, draws.len() as f64);
        let freedom = d as f64 + 1.0 + (1.0 + COVARIANCE_WEIGHT) * n;
        // The inverse scale, and from it E Λ = ν W and E Λ⁻¹ = W⁻¹ / (ν − d − 1).
        let mut inverse_scale = moments.scatter.clone();
        for (i, variance) in variances.iter().enumerate() {
            for j in 0..d {
                inverse_scale.row_mut(i)[j] +=
                    MEAN_WEIGHT * n / (MEAN_WEIGHT + n) * moments.mean[i] * moments.mean[j];
            }
            inverse_scale.row_mut(i)[i] += (1.0 + COVARIANCE_WEIGHT * n) * variance;
        }
        let average = |of: &dyn Fn(&Gaussian) -> f64| draws.iter().map(of).sum::<f64>() / count;
        let inverse = |g: &Gaussian| {
            let l = g.precision.cholesky().unwrap().inverse_lower();
            l.transposed().times(&l)
        };
        let inverses: Vec<Matrix> = draws.iter().map(inverse).collect();
        let root = inverse_scale.cholesky().unwrap().inverse_lower();
        let scale = root.transposed().times(&root);
        for i in 0..d {
            let mean = average(&|g| g.mean[i]);
            let want = moments.mean[i] * n / (MEAN_WEIGHT + n);
            // Standard deviations near 0.25 over √20000 draws.
            assert!((mean - want).abs() < 0.01, "mean {mean} for {want}");
            for j in 0..d {
                let got = average(&|g| g.precision.row(i)[j]);
                let want = freedom * scale.row(i)[j];
                assert!((got - want).abs() < 0.01, "precision {got} for {want}");
                let covariance = inverses.iter().map(|m| m.row(i)[j]).sum::<f64>() / count;
                let want = inverse_scale.row(i)[j] / (freedom - d as f64 - 1.0);
                assert!((covariance - want).abs() < 0.02, "covariance {covariance} for {want}");
                // The mean's covariance is E Λ⁻¹ / (β₀ + n).
                let centre = |i: usize| moments.mean[i] * n / (MEAN_WEIGHT + n);
                let spread = average(&|g| (g.mean[i] - centre(i)) * (g.mean[j] - centre(j)));
                let want = want / (MEAN_WEIGHT + n);
                assert!((spread - want).abs() < 0.003, "spread {spread} for {want}");
            }
        }
    }
}
