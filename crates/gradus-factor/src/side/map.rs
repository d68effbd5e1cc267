//! The linear map from features to the prior mean of bias and factors.

use crate::vectors::Vectors;
use gradus_base::{Result, parallel};
use gradus_data::{FeatureEncoder, FeatureRow, Features};
use gradus_file::{Reader, Writer};
use gradus_kernel::Level;

/// `m = Wᵀ(x − x̄)`: the prior mean of a row from its features.
#[derive(Clone, Debug)]
pub(crate) struct FeatureMap {
    /// A row for each feature.
    pub(crate) coefficients: Vectors,
    /// `Wᵀ x̄`.
    centre: Vectors,
}

impl FeatureMap {
    pub(crate) fn zeros(n_features: usize, k: usize) -> Self {
        Self { coefficients: Vectors::zeros(n_features, k), centre: Vectors::zeros(1, k) }
    }

    /// The map with these coefficients.
    pub(crate) fn new(coefficients: Vectors, encoder: &FeatureEncoder) -> Self {
        let k = coefficients.factors.k();
        let (mut sums, mut bias) = (vec![0.0; k], 0.0);
        for (feature, &mean) in encoder.mean().iter().enumerate() {
            let row = &coefficients.factors.row(feature)[..k];
            sums.iter_mut().zip(row).for_each(|(sum, &w)| *sum += mean * f64::from(w));
            bias += mean * f64::from(coefficients.bias[feature]);
        }
        let mut centre = Vectors::zeros(1, k);
        let out = centre.factors.row_mut(0).iter_mut();
        out.zip(sums).for_each(|(out, sum)| *out = sum as f32);
        centre.bias[0] = bias as f32;
        Self { coefficients, centre }
    }

    /// The prior mean for these features: the factors go to `out`, the bias is returned.
    pub(crate) fn mean(
        &self,
        level: Level,
        (indices, values): (&[u32], &[f32]),
        out: &mut [f32],
    ) -> f32 {
        let bias = self.coefficients.sum(level, indices, Some(values), out);
        out.iter_mut().zip(self.centre.factors.row(0)).for_each(|(x, &c)| *x -= c);
        bias - self.centre.bias[0]
    }

    /// The prior mean for the features of someone new.
    pub(crate) fn mean_of(&self, level: Level, row: &FeatureRow) -> (f32, Vec<f32>) {
        let mut factors = vec![0.0; self.centre.factors.stride()];
        let bias = self.mean(level, (&row.indices, &row.values), &mut factors);
        (bias, factors)
    }

    /// The prior means of all rows; 0 for those without features.
    pub(crate) fn means(&self, level: Level, features: &Features) -> Vectors {
        let k = self.coefficients.factors.k();
        let mut means = Vectors::zeros(features.known().len(), k);
        let stride = means.factors.stride();
        means.bias = parallel::map_rows(means.factors.as_mut_slice(), stride, |row, out| {
            if features.is_known(row) {
                self.mean(level, features.matrix().row(row), out)
            } else {
                0.0
            }
        });
        means
    }

    /// Returns this map plus a multiple of another.
    pub(crate) fn plus(&self, by: f64, other: &Self, encoder: &FeatureEncoder) -> Self {
        let mut sum = self.coefficients.clone();
        add_values(sum.factors.as_mut_slice(), by, other.coefficients.factors.as_slice());
        add_values(&mut sum.bias, by, &other.coefficients.bias);
        Self::new(sum, encoder)
    }

    /// Number of features.
    pub(crate) fn n_features(&self) -> usize {
        self.coefficients.bias.len()
    }

    pub(crate) fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        self.coefficients.write(name, file);
    }

    pub(crate) fn read(
        name: &str,
        file: &mut Reader,
        encoder: &FeatureEncoder,
        k: usize,
    ) -> Result<Self> {
        Ok(Self::new(Vectors::read(name, file, encoder.n_features(), k)?, encoder))
    }
}

pub(super) fn add_values(to: &mut [f32], by: f64, from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(x, &d)| *x = (f64::from(*x) + by * f64::from(d)) as f32);
}
