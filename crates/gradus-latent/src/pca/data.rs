//! Samples as the centred, weighted, scaled operator whose singular values are wanted.

use crate::moments::{SAFE, power_of_two_near};
use gradus_base::{Error, Result, parallel};
use gradus_data::{Dense, Matrix, Samples};
use gradus_kernel::{Level, dense};
use gradus_linalg::{Centred, Operator, Scaled, Sparse};

/// Rows that a thread takes at a time.
const ROWS: usize = 1024;

/// The data of a fit.
pub(crate) struct Data<'a> {
    pub(crate) features: &'a Matrix,
    pub(crate) weights: Option<&'a [f64]>,
    pub(crate) centred: bool,
}

/// The data about its mean.
pub(crate) struct About {
    pub(crate) mean: Vec<f64>,
    /// The multiplier of rows, besides the root of their weight: a power of 2.
    pub(crate) scale: f64,
    /// `Σ w ‖x − μ‖²` of scaled rows.
    pub(crate) squares: f64,
}

impl<'a> Data<'a> {
    pub(crate) fn new(samples: &'a Samples, centred: bool) -> Self {
        Self { features: samples.features(), weights: samples.weights(), centred }
    }

    pub(crate) fn total(&self) -> f64 {
        self.weights.map_or(self.features.n_rows() as f64, |weights| weights.iter().sum())
    }

    /// Returns the divisor of sums of squares: `Σ w − 1`, as of counted samples; for weights that are shares of 1, for
    /// which that has no meaning, half their sum at least.
    pub(crate) fn divisor(total: f64) -> f64 {
        (total - 1.0).max(0.5 * total)
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// The mean, and how far the rows are from it.
    ///
    /// # Errors
    /// If the values are so large that their sums are not finite.
    pub(crate) fn about(&self) -> Result<About> {
        let mean = if self.centred { self.mean() } else { vec![0.0; self.features.n_cols()] };
        if mean.iter().any(|mean| !mean.is_finite()) {
            return Err(Error::data("pca: the values are too large: their sums are not finite"));
        }
        let mut about = About { squares: self.squares(&mean, 1.0), mean, scale: 1.0 };
        if !SAFE.contains(&about.squares) {
            let most = self.features.values().iter().fold(0.0f64, |most, x| most.max(x.abs()));
            if most > 0.0 {
                about.scale = power_of_two_near(1.0 / most);
                about.squares = self.squares(&about.mean, about.scale);
            }
        }
        Ok(about)
    }

    fn mean(&self) -> Vec<f64> {
        let (n, d) = self.features.shape();
        let parts = parallel::map(parallel::blocks(n, ROWS), |rows| {
            let mut sums = vec![0.0; d];
            match self.features {
                Matrix::Dense(x) => {
                    let weights: Vec<f64> = rows.clone().map(|row| self.weight(row)).collect();
                    let values = &x.values()[rows.start * d..rows.end * d];
                    dense::add_rows(Level::best(), values, &weights, &mut sums);
                }
                Matrix::Sparse(x) => {
                    for row in rows {
                        let (columns, values) = x.row(row);
                        let weight = self.weight(row);
                        for (&column, x) in columns.iter().zip(values) {
                            sums[column as usize] += weight * x;
                        }
                    }
                }
            }
            sums
        });
        let mut mean = vec![0.0; d];
        for part in parts {
            mean.iter_mut().zip(part).for_each(|(mean, x)| *mean += x);
        }
        let total = self.total();
        mean.iter_mut().for_each(|mean| *mean /= total);
        mean
    }

    /// `Σ w ‖s (x − μ)‖²`.
    fn squares(&self, mean: &[f64], scale: f64) -> f64 {
        let n = self.features.n_rows();
        let square = |x: f64| (x * scale) * (x * scale);
        let parts = parallel::map(parallel::blocks(n, ROWS), |rows| match self.features {
            Matrix::Dense(x) => rows
                .map(|row| {
                    let pairs = x.row(row).iter().zip(mean);
                    self.weight(row) * pairs.map(|(x, m)| square(x - m)).sum::<f64>()
                })
                .sum::<f64>(),
            // What is stored, less what a row of zeros would be in its places.
            Matrix::Sparse(x) => rows
                .map(|row| {
                    let (columns, values) = x.row(row);
                    let pairs = columns.iter().zip(values);
                    let differ = |(&c, x): (&u32, &f64)| {
                        let mean = mean[c as usize];
                        square(x - mean) - square(mean)
                    };
                    self.weight(row) * pairs.map(differ).sum::<f64>()
                })
                .sum(),
        });
        let sum: f64 = parts.iter().sum();
        match self.features {
            Matrix::Dense(_) => sum,
            Matrix::Sparse(_) => {
                (sum + self.total() * mean.iter().map(|m| square(*m)).sum::<f64>()).max(0.0)
            }
        }
    }

    /// Returns the multipliers of rows, unless all are 1.
    fn factors(&self, scale: f64) -> Option<Vec<f64>> {
        match self.weights {
            None if scale == 1.0 => None,
            None => Some(vec![scale; self.features.n_rows()]),
            Some(weights) => Some(weights.iter().map(|w| w.sqrt() * scale).collect()),
        }
    }

    /// Works on `diag(√w) (X − 1 μᵀ) s`, without a copy of the data.
    pub(crate) fn with_operator<R>(
        &self,
        about: &About,
        work: impl FnOnce(&dyn Operator) -> R,
    ) -> R {
        let sparse;
        let plain: &dyn Operator = match self.features {
            Matrix::Dense(x) => x,
            Matrix::Sparse(x) => {
                sparse = Sparse::new(x);
                &sparse
            }
        };
        let centred;
        let inner: &dyn Operator = if self.centred {
            centred = Centred::columns(plain, about.mean.clone());
            &centred
        } else {
            plain
        };
        work(&Scaled::new(inner, self.factors(about.scale), None, about.squares))
    }

    /// The same as a matrix of its own, of dense data.
    pub(crate) fn copied(&self, about: &About) -> Dense<f64> {
        let factors = self.factors(about.scale);
        let mut copy = self.features.to_dense();
        let d = copy.n_cols();
        parallel::each_row(copy.values_mut(), d, |row, x| {
            let by = factors.as_ref().map_or(1.0, |factors| factors[row]);
            x.iter_mut().zip(&about.mean).for_each(|(x, mean)| *x = (*x - mean) * by);
        });
        copy
    }
}
