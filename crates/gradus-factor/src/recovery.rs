//! Exact recovery: from how many entries a matrix of low rank can be completed, in theory and on planted matrices.
//!
//! ```
//! use gradus_factor::recovery::{self, RecoveryMethod, Trial};
//! let trial = Trial { n_rows: 40, n_cols: 30, rank: 1, share: 0.6, seed: 0 };
//! assert!(trial.share > recovery::least_share(40, 30, 1));
//! assert!(trial.error(RecoveryMethod::Svp)? < 1e-2);
//! # Ok::<(), gradus_base::Error>(())
//! ```

use crate::latent::LatentFactors;
use crate::{SoftImpute, Svp, Svt};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit as _, Job};
use gradus_core::recommend::Recommend as _;
use gradus_data::{Dense, Duplicates, Ids, Ratings};

/// The degrees of freedom of a matrix of a rank: `k (m + n − k)`, which is `2 n k − k²` for a square one.
///
/// The rank is at most the smaller side.
pub fn degrees_of_freedom(n_rows: usize, n_cols: usize, rank: usize) -> usize {
    let rank = rank.min(n_rows).min(n_cols);
    rank * (n_rows + n_cols - rank)
}

/// The degrees of freedom as a share of the entries: fewer observed entries leave a whole family of matrices of that
/// rank, whatever the method.
pub fn least_share(n_rows: usize, n_cols: usize, rank: usize) -> f64 {
    let size = n_rows as f64 * n_cols as f64;
    if size > 0.0 { degrees_of_freedom(n_rows, n_cols, rank) as f64 / size } else { 1.0 }
}

/// The coherence μ of a space with an orthonormal basis in its columns, `n × k`: `n/k` times the largest square of the
/// length of a row. From 1 (spread evenly) to `n/k` (an axis lies in it).
///
/// A matrix whose row and column space have a small μ can be recovered from few entries drawn at random; one with a
/// large μ hides in entries that may not be drawn.
pub fn coherence(basis: &Dense<f64>) -> f64 {
    let (n, k) = basis.shape();
    let longest =
        basis.rows().map(|row| row.iter().map(|x| x * x).sum::<f64>()).fold(0.0, f64::max);
    if k == 0 { 1.0 } else { longest * n as f64 / k as f64 }
}

/// The share of entries above which the smallest nuclear norm recovers a matrix, by the statistical dimension of the
/// cone of descent of the norm.
///
/// For random measurements of a large matrix the theorem is exact: above the curve recovery succeeds almost always,
/// below it fails almost always. Entries drawn at random from an incoherent matrix follow the same curve closely.
///
/// Reference: Amelunxen, Lotz, McCoy, Tropp: Living on the edge: phase transitions in convex programs with random data,
/// 2014, proposition 4.7.
pub fn nuclear_norm_share(n_rows: usize, n_cols: usize, rank: usize) -> f64 {
    let (small, large) = (n_rows.min(n_cols) as f64, n_rows.max(n_cols) as f64);
    let k = rank as f64;
    if k >= small {
        return 1.0;
    }
    // Rows are the smaller side: ν is the ratio of the sides, ρ the share of the rank.
    let (rho, nu) = (k / small, small / large);
    let y = (nu - rho * nu) / (1.0 - rho * nu);
    let (low, high) = (1.0 - y.sqrt(), 1.0 + y.sqrt());
    // The distribution of the singular values of noise (Marchenko and Pastur), by the angle that takes the root away
    // at both ends.
    const STEPS: usize = 400;
    let (middle, half) = (0.5 * (low * low + high * high), 0.5 * (high * high - low * low));
    let noise: Vec<(f64, f64)> = (0..STEPS)
        .map(|step| {
            let angle = std::f64::consts::PI * (step as f64 + 0.5) / STEPS as f64;
            let square = middle - half * angle.cos();
            // The density of the square, times the width of the step.
            let density = half * angle.sin() / (2.0 * std::f64::consts::PI * y * square);
            let width = half * angle.sin() * std::f64::consts::PI / STEPS as f64;
            (square.max(0.0).sqrt(), density * width)
        })
        .collect();
    let share = |tau: f64| {
        let above = noise.iter().filter(|(u, _)| *u > tau);
        let tail: f64 = above.map(|(u, weight)| (u - tau).powi(2) * weight).sum();
        rho * nu + (1.0 - rho * nu) * (rho * (1.0 + tau * tau) + (1.0 - rho) * tail)
    };
    // It is convex in τ: golden section.
    let (mut a, mut b) = (0.0, high);
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..60 {
        let (c, d) = (b - golden * (b - a), a + golden * (b - a));
        if share(c) < share(d) {
            b = d;
        } else {
            a = c;
        }
    }
    share(0.5 * (a + b)).min(1.0)
}

/// A method of completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryMethod {
    /// The nuclear norm by a path of penalties towards 0; the rank is not given.
    SoftImpute,
    /// Singular value projection, with the rank given.
    Svp,
    /// Singular value thresholding; the rank is not given.
    Svt,
}

impl RecoveryMethod {
    /// Every method.
    pub const ALL: [Self; 3] = [Self::SoftImpute, Self::Svt, Self::Svp];

    /// The name of its model.
    pub fn name(self) -> &'static str {
        match self {
            Self::SoftImpute => SoftImpute::NAME,
            Self::Svp => Svp::NAME,
            Self::Svt => Svt::NAME,
        }
    }
}

/// A planted matrix of normal factors, some of whose entries are observed without noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Number of rows.
    pub n_rows: usize,
    /// Number of columns.
    pub n_cols: usize,
    /// The rank of the matrix.
    pub rank: usize,
    /// The share of the entries that is observed; as many are drawn at random.
    pub share: f64,
    /// Seed of matrix and entries.
    pub seed: u64,
}

impl Trial {
    /// The matrix by rows, and its observed entries.
    ///
    /// # Errors
    /// If a side, the rank or the share is 0, or too large.
    pub fn make(&self) -> Result<(Vec<f64>, Ratings)> {
        let Self { n_rows, n_cols, rank, share, seed } = *self;
        if rank == 0 || rank > n_rows.min(n_cols) {
            let rule = format!("must be from 1 to the smaller side of {n_rows} × {n_cols}");
            return Err(Error::parameter("rank", rank, rule));
        }
        let fits = share > 0.0 && share <= 1.0;
        if !fits {
            return Err(Error::parameter("share", share, "must be above 0 and at most 1"));
        }
        let mut stream = Stream::new(seed, "recovery", 0);
        let mut normal =
            |count: usize| -> Vec<f64> { (0..count).map(|_| stream.normal()).collect() };
        let (left, right) = (normal(n_rows * rank), normal(n_cols * rank));
        let truth = gradus_kernel::linalg::product_transposed(n_rows, n_cols, rank, &left, &right);
        let mut places: Vec<u32> = (0..(n_rows * n_cols) as u32).collect();
        Stream::new(seed, "recovery", 1).shuffle(&mut places);
        let count = ((share * places.len() as f64).round() as usize).clamp(1, places.len());
        places.truncate(count);
        let n = n_cols as u32;
        let (users, items): (Vec<u32>, Vec<u32>) = places.iter().map(|at| (at / n, at % n)).unzip();
        let values: Vec<f32> = places.iter().map(|&at| truth[at as usize] as f32).collect();
        let ids = (Ids::range(n_rows), Ids::range(n_cols));
        let data = Ratings::from_indexed(ids, (&users, &items), &values, None, Duplicates::Error)?;
        Ok((truth, data))
    }

    /// The relative error `‖X̂ − X‖_F / ‖X‖_F` of a method.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub fn error(&self, method: RecoveryMethod) -> Result<f64> {
        let (truth, data) = self.make()?;
        let model = self.complete(method, &data)?;
        let n = self.n_cols;
        let pairs: Vec<_> =
            (0..truth.len()).map(|at| (Some((at / n) as u32), Some((at % n) as u32))).collect();
        let (mut error, mut total) = (0.0, 0.0);
        for (x, t) in model.predict(&pairs).into_iter().zip(&truth) {
            error += (f64::from(x) - t).powi(2);
            total += t * t;
        }
        Ok((error / total).sqrt())
    }

    fn complete(&self, method: RecoveryMethod, data: &Ratings) -> Result<LatentFactors> {
        Ok(match method {
            RecoveryMethod::Svp => {
                let svp = Svp::new().rank(self.rank).biases(false).clip(false);
                svp.keep_history(false).tol(1e-7).max_iter(300).fit(data)?.model
            }
            RecoveryMethod::Svt => {
                let svt = Svt::new().residual(3e-4).biases(false).clip(false);
                svt.keep_history(false).max_iter(300).fit(data)?.model
            }
            RecoveryMethod::SoftImpute => {
                let params = SoftImpute::new().biases(false).clip(false).keep_history(false);
                let mut model: Option<LatentFactors> = None;
                // A penalty towards 0 gives the smallest nuclear norm; each fit starts from the one before.
                for (strength, tol) in [(1.0, 1e-3), (0.1, 1e-3), (0.01, 1e-3), (1e-3, 1e-4)] {
                    let job = match &model {
                        Some(model) => Job::default().warm(model),
                        None => Job::default(),
                    };
                    let params = params.clone().regularization(strength).tol(tol).max_iter(60);
                    model = Some(params.fit_job(data, &job)?.model);
                }
                model.expect("there are four strengths")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_of_freedom_are_those_of_the_factors() {
        assert_eq!(degrees_of_freedom(10, 10, 3), 2 * 10 * 3 - 9);
        assert_eq!(degrees_of_freedom(10, 20, 10), 200);
        assert_eq!(degrees_of_freedom(10, 20, 99), 200);
        assert!((least_share(100, 100, 10) - 0.19).abs() < 1e-12);
    }

    #[test]
    fn coherence_is_least_for_even_rows_and_largest_for_an_axis() {
        let even = Dense::new(4, 1, vec![0.5; 4]).unwrap();
        assert!((coherence(&even) - 1.0).abs() < 1e-12);
        let axis = Dense::new(4, 1, vec![1.0, 0.0, 0.0, 0.0]).unwrap();
        assert!((coherence(&axis) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn the_curve_of_the_nuclear_norm_lies_above_the_degrees_of_freedom() {
        let mut before = 0.0;
        for rank in 1..40 {
            let share = nuclear_norm_share(40, 40, rank);
            assert!(share >= least_share(40, 40, rank) && share <= 1.0, "{rank}: {share}");
            assert!(share >= before, "{rank}: {share} after {before}");
            before = share;
        }
        // Small ranks need 3 (m + n − k) k entries (the paper, after proposition 4.7): 6 ρ of a square matrix.
        let share = nuclear_norm_share(10_000, 10_000, 10);
        assert!((share / 0.006 - 1.0).abs() < 0.1, "{share}");
        assert_eq!(nuclear_norm_share(40, 40, 40), 1.0);
        assert!((nuclear_norm_share(30, 60, 5) - nuclear_norm_share(60, 30, 5)).abs() < 1e-12);
    }

    #[test]
    fn every_method_succeeds_far_above_the_transition_and_fails_below_it() {
        let trial = |rank, share| Trial { n_rows: 40, n_cols: 40, rank, share, seed: 3 };
        for method in RecoveryMethod::ALL {
            let (above, below) = (trial(2, 0.7), trial(8, 0.2));
            assert!(below.share < least_share(40, 40, 8));
            let error = above.error(method).unwrap();
            assert!(error < 1e-2, "{method:?}: {error}");
            let error = below.error(method).unwrap();
            assert!(error > 0.1, "{method:?}: {error}");
        }
    }

    #[test]
    fn a_trial_that_makes_no_sense_is_refused() {
        let trial = Trial { n_rows: 5, n_cols: 5, rank: 6, share: 0.5, seed: 0 };
        assert!(trial.make().unwrap_err().to_string().contains("rank"));
        let trial = Trial { rank: 1, share: 0.0, ..trial };
        assert!(trial.make().unwrap_err().to_string().contains("share"));
    }
}
