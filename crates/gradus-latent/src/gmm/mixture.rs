//! The parameters of a mixture, and what is derived from them for the passes.

use super::Covariance;
use super::rows::Pattern;
use gradus_kernel::{gaussian, linalg};

/// Weights, means and covariances, in the units of some space.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mixture {
    pub(super) kind: Covariance,
    pub(super) k: usize,
    pub(super) d: usize,
    pub(super) weights: Vec<f64>,
    /// Components × features.
    pub(super) means: Vec<f64>,
    /// The covariances, in the layout of [`Covariance::shape`].
    pub(super) covariances: Vec<f64>,
}

impl Covariance {
    /// The shape of the covariances of a mixture.
    pub(super) fn shape(self, k: usize, d: usize) -> Vec<usize> {
        match self {
            Self::Full => vec![k, d, d],
            Self::Tied => vec![d, d],
            Self::Diag => vec![k, d],
            Self::Spherical => vec![k],
            Self::Unit => vec![1],
        }
    }

    /// Whether covariances are matrices.
    pub(super) fn has_matrices(self) -> bool {
        matches!(self, Self::Full | Self::Tied)
    }

    /// The number of free parameters.
    pub(super) fn n_parameters(self, k: usize, d: usize) -> f64 {
        let (k, d) = (k as f64, d as f64);
        let of_covariances = match self {
            Self::Full => k * d * (d + 1.0) / 2.0,
            Self::Tied => d * (d + 1.0) / 2.0,
            Self::Diag => k * d,
            Self::Spherical => k,
            Self::Unit => 0.0,
        };
        of_covariances + k * d + k - 1.0
    }
}

impl Mixture {
    pub(super) fn mean(&self, c: usize) -> &[f64] {
        &self.means[c * self.d..(c + 1) * self.d]
    }

    /// The covariance matrix of a component, of kinds that have one.
    fn matrix(&self, c: usize) -> &[f64] {
        let size = self.d * self.d;
        match self.kind {
            Covariance::Full => &self.covariances[c * size..(c + 1) * size],
            _ => &self.covariances,
        }
    }

    /// The variance of a feature of a component.
    pub(super) fn variance(&self, c: usize, j: usize) -> f64 {
        match self.kind {
            Covariance::Full | Covariance::Tied => self.matrix(c)[j * self.d + j],
            Covariance::Diag => self.covariances[c * self.d + j],
            Covariance::Spherical => self.covariances[c],
            Covariance::Unit => self.covariances[0],
        }
    }

    /// The mixture in another space: features divided by `by`, after `centre` is taken off.
    pub(super) fn mapped(&self, map: impl Fn(usize, f64) -> f64, by: &[f64]) -> Self {
        let d = self.d;
        let means = self.means.iter().enumerate().map(|(at, x)| map(at % d.max(1), *x)).collect();
        let covariances = self.covariances.iter().enumerate().map(|(at, x)| match self.kind {
            // The product of both first: so a symmetric matrix stays one to the last bit.
            Covariance::Full | Covariance::Tied => x * (by[at / d % d] * by[at % d]),
            Covariance::Diag => x * by[at % d] * by[at % d],
            Covariance::Spherical | Covariance::Unit => x * by[0] * by[0],
        });
        Self { means, covariances: covariances.collect(), weights: self.weights.clone(), ..*self }
    }

    /// Returns the factors that the passes need; the number of the first component whose covariance is not positive
    /// definite if there is one.
    pub(super) fn factors(&self) -> Result<Factors, usize> {
        let (k, d) = (self.k, self.d);
        let log_tau = std::f64::consts::TAU.ln();
        let constant =
            |c: usize, log_det: f64| self.weights[c].ln() - 0.5 * (d as f64 * log_tau + log_det);
        if self.kind.has_matrices() {
            let n = if self.kind == Covariance::Full { k } else { 1 };
            let (mut inverses, mut log_dets) = (Vec::with_capacity(n), Vec::with_capacity(n));
            for c in 0..n {
                let (inverse, log_det) = inverse_factor(d, self.matrix(c)).ok_or(c)?;
                inverses.push(inverse);
                log_dets.push(log_det);
            }
            let packed = inverses.iter().map(|inverse| gaussian::pack(d, inverse)).collect();
            let constants = (0..k).map(|c| constant(c, log_dets[c.min(n - 1)])).collect();
            return Ok(Factors { constants, metric: Metric::Lower { packed, inverses } });
        }
        let mut inverse_sds = Vec::with_capacity(k * d);
        let mut constants = Vec::with_capacity(k);
        for c in 0..k {
            let mut log_det = 0.0;
            for j in 0..d {
                let variance = self.variance(c, j);
                if !(variance > 0.0 && variance.is_finite()) {
                    return Err(c);
                }
                log_det += variance.ln();
                inverse_sds.push(1.0 / variance.sqrt());
            }
            constants.push(constant(c, log_det));
        }
        Ok(Factors { constants, metric: Metric::Diagonal(inverse_sds) })
    }

    /// The distribution of the features that are missing given those that are there, under a component.
    pub(super) fn conditional(&self, c: usize, pattern: &Pattern) -> Conditional {
        let (d, o, m) = (self.d, pattern.observed.len(), pattern.missing.len());
        let log_tau = std::f64::consts::TAU.ln();
        if !self.kind.has_matrices() {
            let log_det: f64 = pattern.observed.iter().map(|&j| self.variance(c, j).ln()).sum();
            let lower = pattern.observed.iter().map(|&j| 1.0 / self.variance(c, j).sqrt());
            let spread = pattern.missing.iter().map(|&j| self.variance(c, j)).collect();
            let constant = -0.5 * (o as f64 * log_tau + log_det);
            return Conditional { lower: lower.collect(), constant, slopes: Vec::new(), spread };
        }
        let matrix = self.matrix(c);
        let entry = |i: usize, j: usize| matrix[i * d + j];
        let part = |rows: &[usize], columns: &[usize]| -> Vec<f64> {
            rows.iter().flat_map(|&i| columns.iter().map(move |&j| entry(i, j))).collect()
        };
        let seen = part(&pattern.observed, &pattern.observed);
        // A principal part of a positive definite matrix is one; what rounding may take away is given back.
        let (lower, log_det) = inverse_factor(o, &seen).unwrap_or_else(|| {
            let mut raised = seen.clone();
            (0..o).for_each(|i| raised[i * o + i] *= 1.0 + 1e-12);
            inverse_factor(o, &raised).unwrap_or_else(|| (identity(o), 0.0))
        });
        // Slopes: Σ_mo Lᵀ⁻¹ L⁻¹.
        let across = part(&pattern.missing, &pattern.observed);
        let half = linalg::product_transposed(m, o, o, &across, &lower);
        let slopes = linalg::product(m, o, o, &half, &lower);
        let mut spread = part(&pattern.missing, &pattern.missing);
        let explained = linalg::product_transposed(m, m, o, &half, &half);
        spread.iter_mut().zip(&explained).for_each(|(all, explained)| *all -= explained);
        for i in 0..m {
            spread[i * m + i] = spread[i * m + i].max(0.0);
        }
        let constant = -0.5 * (o as f64 * log_tau + log_det);
        Conditional { lower, constant, slopes, spread }
    }
}

fn identity(n: usize) -> Vec<f64> {
    (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect()
}

/// The inverse of the lower triangle of a positive definite matrix, and the logarithm of its determinant.
pub(super) fn inverse_factor(d: usize, matrix: &[f64]) -> Option<(Vec<f64>, f64)> {
    if d == 0 {
        return Some((Vec::new(), 0.0));
    }
    if !matrix.iter().all(|x| x.is_finite()) {
        return None;
    }
    let lower = linalg::cholesky(d, matrix)?;
    let log_det = (0..d).map(|i| 2.0 * lower[i * d + i].ln()).sum::<f64>();
    let mut inverse = vec![0.0; d * d];
    for i in 0..d {
        let by = 1.0 / lower[i * d + i];
        let (before, row) = inverse.split_at_mut(i * d);
        let row = &mut row[..d];
        for (j, before) in before.chunks_exact(d).enumerate() {
            let l = lower[i * d + j];
            if l != 0.0 {
                row[..=j].iter_mut().zip(before).for_each(|(to, from)| *to -= l * from);
            }
        }
        row[..i].iter_mut().for_each(|x| *x *= by);
        row[i] = by;
    }
    (log_det.is_finite() && inverse.iter().all(|x| x.is_finite())).then_some((inverse, log_det))
}

/// Quantities derived from a mixture for the passes.
pub(super) struct Factors {
    /// `ln π − ½ (D ln 2π + ln |Σ|)` of each component.
    pub(super) constants: Vec<f64>,
    pub(super) metric: Metric,
}

pub(super) enum Metric {
    /// The inverse of the lower triangle of each covariance, or of the one they share; packed, and as it is.
    Lower { packed: Vec<Vec<f64>>, inverses: Vec<Vec<f64>> },
    /// The inverse standard deviations, components × features.
    Diagonal(Vec<f64>),
}

/// The distribution of the missing features of a pattern under a component.
pub(super) struct Conditional {
    /// The inverse of the lower triangle of the covariance of what is there; of diagonal kinds its diagonal.
    pub(super) lower: Vec<f64>,
    /// `−½ (O ln 2π + ln |Σ_oo|)`.
    pub(super) constant: f64,
    /// Missing × observed; empty of diagonal kinds, where features say nothing of each other.
    pub(super) slopes: Vec<f64>,
    /// The covariance of what is missing: missing × missing; of diagonal kinds its diagonal.
    pub(super) spread: Vec<f64>,
}

impl Conditional {
    /// The log density of what is there, from differences from the mean.
    pub(super) fn log_density(&self, off: &[f64]) -> f64 {
        let o = off.len();
        let mut sum = 0.0;
        if self.slopes.is_empty() {
            // A diagonal, or nothing at all.
            sum += self.lower.iter().zip(off).map(|(by, x)| (by * x) * (by * x)).sum::<f64>();
        } else {
            for (i, row) in self.lower.chunks_exact(o.max(1)).enumerate() {
                let y: f64 = row[..=i].iter().zip(off).map(|(l, x)| l * x).sum();
                sum += y * y;
            }
        }
        self.constant - 0.5 * sum
    }

    /// Differences of the missing features from the mean that are expected.
    pub(super) fn expected(&self, off: &[f64], to: &mut [f64]) {
        if self.slopes.is_empty() {
            return to.fill(0.0);
        }
        for (to, row) in to.iter_mut().zip(self.slopes.chunks_exact(off.len())) {
            *to = row.iter().zip(off).map(|(slope, x)| slope * x).sum();
        }
    }
}
