//! The fitted Gaussian mixture.

use super::Covariance;
use super::expect::each_block;
use super::mixture::{Factors, Metric, Mixture};
use super::rows::{self, Rows, Space};
use super::solve::{Em, State};
use crate::kmeans::{self, scaled};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::cluster::Cluster;
use gradus_core::dataset::Dataset;
use gradus_core::density::{Density, Generate};
use gradus_core::estimator::Model;
use gradus_data::{Dense, Inputs, Matrix, Samples};
use gradus_file::{Reader, Writer};
use gradus_kernel::linalg;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The weights, means and covariances of the components.
pub struct GmmModel {
    inputs: Inputs,
    /// The mixture in the units of the data.
    mixture: Mixture,
    /// The mean log-likelihood of the training samples.
    log_likelihood: f64,
    sizes: Vec<u64>,
    details: Details,
    /// The mixture about its own mean, in units that keep squares within the range of numbers.
    space: Space,
    scaled: Mixture,
    factors: Factors,
}

/// The numbers of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) covariance_type: Covariance,
    pub(super) n_components: usize,
    pub(super) n_samples: u64,
    pub(super) converged: bool,
    pub(super) n_iter: u64,
    /// Components whose variances are held at the floor, in more directions than those of all samples together.
    pub(super) collapsed: u64,
    /// The total weight of the samples: a tensor of its own in a file.
    #[serde(skip)]
    pub(super) weight: f64,
}

impl Clone for GmmModel {
    fn clone(&self) -> Self {
        let parts = (self.mixture.clone(), self.log_likelihood, self.sizes.clone(), self.details);
        Self::assemble(self.inputs.clone(), parts).expect("as it was made before")
    }
}

impl std::fmt::Debug for GmmModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GmmModel").field("mixture", &self.mixture).finish_non_exhaustive()
    }
}

/// The power of 2 at or below a positive number.
fn unit_near(x: f64) -> f64 {
    if x > 0.0 && x.is_finite() { crate::moments::power_of_two_near(x) } else { 1.0 }
}

impl GmmModel {
    /// The model of a fit.
    pub(super) fn fitted(
        inputs: Inputs,
        state: &State,
        solver: &Em,
        details: Details,
    ) -> Result<Self> {
        let Space { centre, scale } = &solver.space;
        let mut mixture = state.mixture.mapped(|j, x| centre[j] + x * scale[j], scale);
        if details.covariance_type == Covariance::Unit {
            mixture.covariances = vec![1.0];
        }
        let sizes = vec![0; details.n_components];
        Self::assemble(inputs, (mixture, -state.objective, sizes, details)).map_err(|c| {
            Error::data(format!(
                "gmm: the covariance of component {} is not positive definite in the units of the data; a larger \
                 reg_covar keeps variances away from 0",
                c + 1
            ))
        })
    }

    /// The standard deviation of each feature under the mixture.
    fn deviations(&self) -> Vec<f64> {
        let Mixture { k, d, weights, means, .. } = &self.mixture;
        let about = |j: usize| -> f64 {
            let mean: f64 = (0..*k).map(|c| weights[c] * means[c * d + j]).sum();
            let of = |c: usize| self.mixture.variance(c, j) + (means[c * d + j] - mean).powi(2);
            (0..*k).map(|c| weights[c] * of(c)).sum::<f64>().sqrt()
        };
        let positive = |x: f64| if x > 0.0 { x } else { 1.0 };
        (0..*d).map(|j| positive(about(j))).collect()
    }

    /// Counts the samples of each component.
    pub(super) fn with_sizes(mut self, features: &Matrix) -> Result<Self> {
        self.sizes.fill(0);
        for label in self.labels(features)?.into_iter().flatten() {
            self.sizes[label as usize] += 1;
        }
        Ok(self)
    }

    /// The number of a component whose covariance is not positive definite if there is one.
    fn assemble(
        inputs: Inputs,
        (mixture, log_likelihood, sizes, details): (Mixture, f64, Vec<u64>, Details),
    ) -> std::result::Result<Self, usize> {
        let (k, d) = (mixture.k, mixture.d);
        let mut space = Space { centre: vec![0.0; d], scale: vec![1.0; d] };
        for j in 0..d {
            let of = |c: usize| mixture.weights[c] * mixture.means[c * d + j];
            space.centre[j] = (0..k).map(of).sum();
            let variance = |c: usize| mixture.weights[c] * mixture.variance(c, j);
            space.scale[j] = unit_near((0..k).map(variance).sum::<f64>().sqrt());
        }
        if matches!(mixture.kind, Covariance::Spherical | Covariance::Unit) {
            let first = space.scale[0];
            space.scale.fill(first);
        }
        let by: Vec<f64> = space.scale.iter().map(|scale| 1.0 / scale).collect();
        let scaled = mixture.mapped(|j, x| (x - space.centre[j]) * by[j], &by);
        let factors = scaled.factors()?;
        Ok(Self { inputs, mixture, log_likelihood, sizes, details, space, scaled, factors })
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.mixture.k
    }

    /// The share of each component.
    pub fn weights(&self) -> &[f64] {
        &self.mixture.weights
    }

    /// The mean of a component.
    ///
    /// # Panics
    /// If there is no such component.
    pub fn mean(&self, component: usize) -> &[f64] {
        self.mixture.mean(component)
    }

    /// Returns the structure of the covariances.
    pub fn covariance_type(&self) -> Covariance {
        self.details.covariance_type
    }

    /// The covariances, with their shape: components × features × features (`full`), features × features (`tied`),
    /// components × features (`diag`), components (`spherical`), one number (`unit`).
    pub fn covariances(&self) -> (Vec<usize>, &[f64]) {
        let shape = self.mixture.kind.shape(self.mixture.k, self.mixture.d);
        (shape, &self.mixture.covariances)
    }

    /// The covariance of two features in a component.
    ///
    /// # Panics
    /// If there is no such component or feature.
    pub fn covariance(&self, component: usize, (i, j): (usize, usize)) -> f64 {
        let (d, of) = (self.mixture.d, &self.mixture.covariances);
        match self.mixture.kind {
            Covariance::Full => of[component * d * d + i * d + j],
            Covariance::Tied => of[i * d + j],
            _ if i != j => 0.0,
            _ => self.mixture.variance(component, j),
        }
    }

    /// The mean log-likelihood of a training sample.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// The number of free parameters.
    pub fn n_parameters(&self) -> f64 {
        self.mixture.kind.n_parameters(self.mixture.k, self.mixture.d)
    }

    /// The Bayesian information criterion on the training samples: `−2 ln L + p ln N`. Lower is better.
    pub fn bic(&self) -> f64 {
        let n = self.details.weight;
        -2.0 * n * self.log_likelihood + self.n_parameters() * n.ln()
    }

    /// Akaike's information criterion on the training samples: `−2 ln L + 2 p`. Lower is better.
    pub fn aic(&self) -> f64 {
        -2.0 * self.details.weight * self.log_likelihood + 2.0 * self.n_parameters()
    }

    /// The number of components whose variances are held at the floor. The likelihood of such a mixture says little: it
    /// would be larger with a lower floor.
    pub fn n_collapsed(&self) -> usize {
        self.details.collapsed as usize
    }

    /// Whether the fit converged within its tolerance.
    pub fn converged(&self) -> bool {
        self.details.converged
    }

    fn rows(&self, features: &Matrix) -> Result<Rows> {
        rows::check(&self.inputs, features)?;
        Ok(Rows::new(features, None, &self.space))
    }

    /// The natural logarithm of the density of each row, over the features that it has.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is infinite.
    pub fn log_densities(&self, features: &Matrix) -> Result<Vec<f64>> {
        let rows = self.rows(features)?;
        let logs: Vec<f64> = self.space.scale.iter().map(|scale| scale.ln()).collect();
        let all: f64 = logs.iter().sum();
        let blocks = each_block(&rows, &self.scaled, &self.factors, |scratch, block| {
            let off = match block.pattern {
                None => all,
                Some(pattern) => rows.patterns[pattern].observed.iter().map(|&j| logs[j]).sum(),
            };
            scratch.logs[..block.rows.len()].iter().map(|log| log - off).collect::<Vec<f64>>()
        });
        let mut out = vec![0.0; features.n_rows()];
        for (value, &row) in blocks.into_iter().flatten().zip(&rows.order) {
            out[row as usize] = value;
        }
        Ok(out)
    }

    /// Returns the features with missing entries replaced by their conditional means.
    ///
    /// # Errors
    /// As [`log_densities`](Self::log_densities).
    ///
    /// # Shapes
    /// `n × features` to the same.
    pub fn impute(&self, features: &Matrix) -> Result<Dense<f64>> {
        let rows = self.rows(features)?;
        let mut out = features.to_dense();
        let d = rows.d;
        let Space { centre, scale } = &self.space;
        let blocks = each_block(&rows, &self.scaled, &self.factors, |scratch, block| {
            let mut values =
                vec![0.0; if block.pattern.is_some() { d * block.rows.len() } else { 0 }];
            for (at, to) in values.chunks_exact_mut(d).enumerate() {
                scratch.imputed(&rows, block, &self.scaled, at, to);
            }
            values
        });
        for (block, values) in rows.blocks.iter().zip(blocks) {
            let Some(pattern) = block.pattern else { continue };
            for (row, values) in block.rows.clone().zip(values.chunks_exact(d)) {
                for &j in &rows.patterns[pattern].missing {
                    out[(rows.order[row] as usize, j)] = centre[j] + values[j] * scale[j];
                }
            }
        }
        Ok(out)
    }

    fn shares(&self, features: &Matrix) -> Result<Dense<f64>> {
        let rows = self.rows(features)?;
        let k = self.mixture.k;
        let blocks = each_block(&rows, &self.scaled, &self.factors, |scratch, block| {
            let n = block.rows.len();
            let mut values = vec![0.0; n * k];
            for c in 0..k {
                for (at, share) in scratch.shares_of(c)[..n].iter().enumerate() {
                    values[at * k + c] = *share;
                }
            }
            values
        });
        let mut out = vec![0.0; features.n_rows() * k];
        for (block, values) in rows.blocks.iter().zip(blocks) {
            for (row, values) in block.rows.clone().zip(values.chunks_exact(k)) {
                let row = rows.order[row] as usize;
                out[row * k..(row + 1) * k].copy_from_slice(values);
            }
        }
        Dense::new(features.n_rows(), k, out)
    }

    /// `P` with `P Pᵀ = Σ⁻¹`, as scikit-learn's `precisions_cholesky_`: upper triangles, or inverse standard deviations.
    fn precisions_cholesky(&self) -> Vec<f64> {
        let (d, scale) = (self.mixture.d, &self.space.scale);
        match &self.factors.metric {
            Metric::Lower { inverses, .. } => {
                let entry =
                    |inverse: &Vec<f64>, at: usize| inverse[at % d * d + at / d] / scale[at / d];
                inverses.iter().flat_map(|one| (0..d * d).map(move |at| entry(one, at))).collect()
            }
            Metric::Diagonal(_) => {
                self.mixture.covariances.iter().map(|variance| 1.0 / variance.sqrt()).collect()
            }
        }
    }
}

impl Cluster for GmmModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn n_clusters(&self) -> usize {
        self.mixture.k
    }

    fn sizes(&self) -> Vec<u64> {
        self.sizes.clone()
    }

    fn labels(&self, features: &Matrix) -> Result<Vec<Option<u32>>> {
        let shares = self.shares(features)?;
        let best = |shares: &[f64]| {
            let mut best = 0;
            for (c, share) in shares.iter().enumerate() {
                if *share > shares[best] {
                    best = c;
                }
            }
            Some(best as u32)
        };
        Ok(shares.rows().map(best).collect())
    }

    fn memberships(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        self.shares(features).map(Some)
    }

    /// Fills in missing entries; where the kind of covariances does not depend on the units of the features, divides them by
    /// their standard deviations, so that measures do not depend on them, either.
    fn measured<'a>(&self, features: &'a Matrix) -> Cow<'a, Matrix> {
        let filled = match features.values().iter().any(|x| x.is_nan()) {
            // What cannot be imputed is refused by whatever measures it.
            true => self
                .impute(features)
                .map_or(Cow::Borrowed(features), |filled| Cow::Owned(filled.into())),
            false => Cow::Borrowed(features),
        };
        if matches!(self.mixture.kind, Covariance::Spherical | Covariance::Unit) {
            return filled;
        }
        let scaled = scaled(&filled, Some(&self.deviations()), kmeans::KMeansMetric::Euclidean);
        Cow::Owned(scaled.into_owned())
    }
}

impl Density for GmmModel {
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        self.log_densities(data.of_kind::<Samples>()?.features())
    }

    /// `None` where components have collapsed: the likelihood is then a matter of the floor, and no criterion holds.
    fn n_parameters(&self) -> Option<f64> {
        (self.details.collapsed == 0).then(|| self.n_parameters())
    }

    fn impute(&self, features: &Matrix) -> Option<Result<Dense<f64>>> {
        Some(self.impute(features))
    }
}

impl Generate for GmmModel {
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        let (k, d) = (self.mixture.k, self.mixture.d);
        let len = n.checked_mul(d).filter(|len| *len <= isize::MAX as usize / 8);
        let Some(len) = len else {
            return Err(Error::data(format!(
                "gmm: {n} samples of {d} features are beyond any memory"
            )));
        };
        let lowers: Vec<Vec<f64>> = if self.mixture.kind.has_matrices() {
            let factor = |matrix: &[f64]| linalg::cholesky(d, matrix).unwrap_or_default();
            self.scaled.covariances.chunks_exact(d * d).map(factor).collect()
        } else {
            Vec::new()
        };
        let Space { centre, scale } = &self.space;
        let mut x = vec![0.0; len];
        parallel::each_row(&mut x, d, |row, x| {
            let mut stream = Stream::new(seed, "gmm.generate", row as u64);
            let mut left = stream.uniform();
            let mut c = 0;
            while c + 1 < k && left >= self.mixture.weights[c] {
                left -= self.mixture.weights[c];
                c += 1;
            }
            // Rounding of the sum of the weights must not end in a component without any.
            while c > 0 && self.mixture.weights[c] == 0.0 {
                c -= 1;
            }
            let z: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
            for (j, x) in x.iter_mut().enumerate() {
                let off = match lowers.get(c.min(lowers.len().saturating_sub(1))) {
                    Some(lower) => {
                        let row = &lower[j * d..=j * d + j];
                        row.iter().zip(&z).map(|(l, z)| l * z).sum::<f64>()
                    }
                    None => self.scaled.variance(c, j).sqrt() * z[j],
                };
                *x = centre[j] + (self.scaled.means[c * d + j] + off) * scale[j];
            }
        });
        let samples = Samples::unlabelled(Dense::new(n, d, x)?)?;
        Ok(Box::new(samples.with_inputs(self.inputs.clone())?))
    }
}

impl Model for GmmModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let Mixture { kind, k, d, weights, means, covariances } = &self.mixture;
        self.inputs.write(file);
        file.set("facts", &self.details);
        file.tensor("weights", &[*k], weights);
        file.tensor("means", &[*k, *d], means);
        file.tensor("covariances", &kind.shape(*k, *d), covariances);
        file.tensor_owned("precisions_cholesky", &kind.shape(*k, *d), self.precisions_cholesky());
        file.tensor("sizes", &[*k], &self.sizes);
        for (name, value) in [
            ("weight", self.details.weight),
            ("lower_bound", self.log_likelihood),
            ("bic", self.bic()),
            ("aic", self.aic()),
            ("converged", f64::from(u8::from(self.details.converged))),
        ] {
            file.tensor_owned(name, &[1], vec![value]);
        }
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let mut details: Details = file.get("facts")?;
        let (kind, k, d) = (details.covariance_type, details.n_components, inputs.n_features());
        if k == 0 || d == 0 {
            return Err(file.broken("a mixture without components or features"));
        }
        details.weight = file.finite("weight", &[1])?[0];
        let log_likelihood = file.finite("lower_bound", &[1])?[0];
        let weights: Vec<f64> = file.finite("weights", &[k])?;
        let means = file.finite("means", &[k, d])?;
        let covariances = file.finite("covariances", &kind.shape(k, d))?;
        let sizes = file.tensor::<u64>("sizes", &[k])?;
        let whole = (weights.iter().sum::<f64>() - 1.0).abs() <= 1e-6;
        if !whole || weights.iter().any(|weight| *weight < 0.0) || details.weight <= 0.0 {
            return Err(file.broken("`weights` are no shares that add up to 1"));
        }
        let mixture = Mixture { kind, k, d, weights, means, covariances };
        let symmetric = !kind.has_matrices()
            || mixture
                .covariances
                .chunks_exact(d * d)
                .all(|matrix| (0..d * d).all(|at| matrix[at] == matrix[at % d * d + at / d]));
        if !symmetric {
            return Err(file.broken("a covariance is not symmetric"));
        }
        Self::assemble(inputs, (mixture, log_likelihood, sizes, details)).map_err(|c| {
            file.broken(format!("the covariance of component {} is not positive definite", c + 1))
        })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let kind = match self.details.covariance_type {
            Covariance::Full => "full",
            Covariance::Tied => "tied (one for all components)",
            Covariance::Diag => "diagonal",
            Covariance::Spherical => "spherical",
            Covariance::Unit => "unit",
        };
        let shares: Vec<String> =
            self.weights().iter().take(8).map(|w| format!("{:.1} %", 100.0 * w)).collect();
        let more = if self.mixture.k > 8 { ", …" } else { "" };
        vec![
            ("features", self.mixture.d.to_string()),
            ("components", format!("{} ({}{more})", self.mixture.k, shares.join(", "))),
            ("covariances", kind.into()),
            ("mean log-likelihood", format!("{:.6}", self.log_likelihood)),
            ("BIC", format!("{:.4}", self.bic())),
            ("AIC", format!("{:.4}", self.aic())),
            ("free parameters", self.n_parameters().to_string()),
            ("samples", self.details.n_samples.to_string()),
        ]
    }

    fn clusterer(&self) -> Option<&dyn Cluster> {
        Some(self)
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
