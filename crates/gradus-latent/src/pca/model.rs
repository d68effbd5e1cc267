//! The fitted principal component analysis.

use super::data::Data;
use super::spectrum::Spectrum;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Density, Generate};
use gradus_core::estimator::Model;
use gradus_core::predict::check_features;
use gradus_core::transform::Transform;
use gradus_data::{Dense, Inputs, Matrix, Samples};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, block};

/// Rows that are transformed together.
const ROWS: usize = 64;
/// Variances past those of the components that a model keeps, for the chart of them.
const KEPT: usize = 1000;

/// The mean, the components and their variances.
#[derive(Clone, Debug, PartialEq)]
pub struct PcaModel {
    inputs: Inputs,
    mean: Vec<f64>,
    /// Components × features, orthonormal rows.
    components: Dense<f64>,
    /// The same by columns: features × components.
    columns: Vec<f64>,
    /// The variances that are known, those of the components first.
    spectrum: Vec<f64>,
    details: Details,
}

/// The numbers of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Details {
    n_components: usize,
    total_variance: f64,
    noise_variance: f64,
    weight: f64,
    n_samples: u64,
    whiten: bool,
}

/// The parts of a model besides its spectrum.
pub(super) struct Parts {
    pub(super) inputs: Inputs,
    pub(super) mean: Vec<f64>,
    pub(super) weight: f64,
    pub(super) n_samples: u64,
    pub(super) whiten: bool,
}

fn by_columns(components: &Dense<f64>) -> Vec<f64> {
    components.transpose().into_values()
}

impl PcaModel {
    pub(super) fn new(parts: Parts, spectrum: Spectrum) -> Self {
        let (k, d) = (spectrum.values.len(), parts.mean.len());
        let rest = d - k;
        let noise_variance = if rest == 0 { 0.0 } else { spectrum.left_out() / rest as f64 };
        let details = Details {
            n_components: k,
            total_variance: spectrum.total,
            noise_variance,
            weight: parts.weight,
            n_samples: parts.n_samples,
            whiten: parts.whiten,
        };
        let mut all = spectrum.all;
        all.truncate(k.max(KEPT));
        let components = Dense::new(k, d, spectrum.vectors).expect("a row for each component");
        let columns = by_columns(&components);
        let (inputs, mean) = (parts.inputs, parts.mean);
        Self { inputs, mean, components, columns, spectrum: all, details }
    }

    /// The components, components × features: orthonormal rows, the largest entry of each positive.
    pub fn components(&self) -> &Dense<f64> {
        &self.components
    }

    /// The mean of the features; zeros of data that was not centred.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.details.n_components
    }

    /// The variance of each component.
    pub fn explained_variance(&self) -> &[f64] {
        &self.spectrum[..self.details.n_components]
    }

    /// The share of each component of the variance; zeros of data that does not vary.
    pub fn explained_ratio(&self) -> Vec<f64> {
        let total = self.details.total_variance;
        let share = |value: &f64| if total > 0.0 { value / total } else { 0.0 };
        self.explained_variance().iter().map(share).collect()
    }

    /// The singular values of the centred data, each with the root of its weight.
    pub fn singular_values(&self) -> Vec<f64> {
        let divisor = Data::divisor(self.details.weight).sqrt();
        self.explained_variance().iter().map(|value| value.sqrt() * divisor).collect()
    }

    /// All variances that are known, those of the components first: 1000 at most.
    pub fn spectrum(&self) -> &[f64] {
        &self.spectrum
    }

    /// The variance of the data, summed over features.
    pub fn total_variance(&self) -> f64 {
        self.details.total_variance
    }

    /// The mean variance in the directions left out: the noise of the probabilistic model.
    pub fn noise_variance(&self) -> f64 {
        self.details.noise_variance
    }

    /// Number of samples of training.
    pub fn n_samples(&self) -> u64 {
        self.details.n_samples
    }

    /// The standard deviations that transformed features are divided by, if they are: 0 for directions without
    /// variance, which have no scale to bring them to.
    fn deviations(&self) -> Option<Vec<f64>> {
        let values = self.explained_variance();
        let least = values.first().map_or(0.0, |first| 1e-14 * first);
        let root = |value: &f64| if *value > least { value.sqrt() } else { 0.0 };
        self.details.whiten.then(|| values.iter().map(root).collect())
    }

    /// Components × rows of centred features, before whitening.
    fn projected(&self, features: &Matrix) -> Dense<f64> {
        let (n, d) = features.shape();
        let (k, level) = (self.details.n_components, Level::best());
        let mut z = vec![0.0; n * k];
        // Of sparse rows: as if centred, without making them dense.
        let mut offset = vec![0.0; k];
        if features.is_sparse() {
            block::times(level, (&self.mean, d, d), -1.0, k, &self.columns, &mut offset);
        }
        let parts = z.chunks_mut((ROWS * k).max(1)).enumerate();
        parallel::each(parts, |(part, z)| {
            let rows = part * ROWS..n.min((part + 1) * ROWS);
            match features {
                Matrix::Dense(x) => {
                    let mut centred = x.values()[rows.start * d..rows.end * d].to_vec();
                    for row in centred.chunks_exact_mut(d) {
                        row.iter_mut().zip(&self.mean).for_each(|(x, mean)| *x -= mean);
                    }
                    block::times(level, (&centred, d, d), 1.0, k, &self.columns, z);
                }
                Matrix::Sparse(x) => {
                    let starts = &x.indptr()[rows.start..=rows.end];
                    let stored = (starts, x.indices(), x.values());
                    block::sparse_times(level, stored, k, &self.columns, z);
                    for z in z.chunks_exact_mut(k) {
                        z.iter_mut().zip(&offset).for_each(|(z, offset)| *z += offset);
                    }
                }
            }
        });
        Dense::new(n, k, z).expect("a row for each sample")
    }

    /// `‖x − μ‖²` of each row.
    pub(super) fn squares_about_mean(&self, features: &Matrix) -> Vec<f64> {
        let of_mean: f64 = self.mean.iter().map(|mean| mean * mean).sum();
        parallel::map_below(features.n_rows(), ROWS, |row| match features {
            Matrix::Dense(x) => {
                x.row(row).iter().zip(&self.mean).map(|(x, mean)| (x - mean) * (x - mean)).sum()
            }
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                let differ = |(&c, x): (&u32, &f64)| {
                    let mean = self.mean[c as usize];
                    (x - mean) * (x - mean) - mean * mean
                };
                (columns.iter().zip(values).map(differ).sum::<f64>() + of_mean).max(0.0)
            }
        })
    }

    /// The squared distance of each row from its reconstruction.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    pub fn reconstruction_errors(&self, features: &Matrix) -> Result<Vec<f64>> {
        check_features(&self.inputs, features)?;
        let z = self.projected(features);
        let inside = z.rows().map(|z| z.iter().map(|z| z * z).sum::<f64>());
        let squares = self.squares_about_mean(features).into_iter();
        Ok(squares.zip(inside).map(|(all, inside)| (all - inside).max(0.0)).collect())
    }

    /// The natural logarithm of the density of each row under probabilistic PCA.
    ///
    /// Directions without variance would have a density of infinity or 0; they count as having 1e-12 of the
    /// largest variance.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    pub fn log_densities(&self, features: &Matrix) -> Result<Vec<f64>> {
        check_features(&self.inputs, features)?;
        let (d, k) = (self.mean.len(), self.details.n_components);
        let (floor, values) = (self.least_variance(), self.explained_variance());
        let values: Vec<f64> = values.iter().map(|value| value.max(floor)).collect();
        let noise = self.details.noise_variance.max(floor);
        let rest = (d - k) as f64;
        let constant = d as f64 * std::f64::consts::TAU.ln()
            + values.iter().map(|value| value.ln()).sum::<f64>()
            + if rest > 0.0 { rest * noise.ln() } else { 0.0 };
        let z = self.projected(features);
        let squares = self.squares_about_mean(features);
        let log = |(z, all): (&[f64], f64)| {
            let (mut inside, mut distance) = (0.0, 0.0);
            for (z, value) in z.iter().zip(&values) {
                inside += z * z;
                distance += z / value * z;
            }
            if rest > 0.0 {
                distance += (all - inside).max(0.0) / noise;
            }
            -0.5 * (constant + distance)
        };
        Ok(z.rows().zip(squares).map(log).collect())
    }

    fn least_variance(&self) -> f64 {
        let largest = self.spectrum.first().copied().unwrap_or(0.0);
        let mean = self.mean.iter().fold(0.0f64, |most, mean| most.max(mean.abs()));
        (1e-12 * largest).max((f64::EPSILON * mean).powi(2)).max(f64::MIN_POSITIVE)
    }
}

impl Transform for PcaModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (1..=self.details.n_components).map(|at| format!("pc{at}")).collect()
    }

    /// # Shapes
    /// `features` is samples × features of training; the result samples × components.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        let mut z = self.projected(features);
        // What is not finite in the features is not finite here, where there is less to look at.
        if !z.values().iter().all(|z| z.is_finite()) {
            check_features(&self.inputs, features)?;
        }
        if let Some(deviations) = self.deviations() {
            let by: Vec<f64> =
                deviations.iter().map(|s| if *s > 0.0 { 1.0 / s } else { 0.0 }).collect();
            let k = by.len();
            for row in z.values_mut().chunks_exact_mut(k.max(1)) {
                row.iter_mut().zip(&by).for_each(|(z, by)| *z *= by);
            }
        }
        Ok(z)
    }

    /// # Shapes
    /// `transformed` is samples × components; the result samples × features of training.
    fn inverse(&self, transformed: &Dense<f64>) -> Option<Result<Dense<f64>>> {
        let (n, width) = transformed.shape();
        let (k, d, level) = (self.details.n_components, self.mean.len(), Level::best());
        if width != k {
            return Some(Err(Error::Shape {
                what: "transformed features".into(),
                expected: format!("{k} (one for each component)"),
                got: width.to_string(),
            }));
        }
        let mut x = vec![0.0; n * d];
        let deviations = self.deviations();
        parallel::each(x.chunks_mut(ROWS * d).enumerate(), |(part, x)| {
            x.chunks_exact_mut(d).for_each(|x| x.copy_from_slice(&self.mean));
            let rows = part * ROWS..n.min((part + 1) * ROWS);
            let mut z = transformed.values()[rows.start * k..rows.end * k].to_vec();
            if let Some(deviations) = &deviations {
                for z in z.chunks_exact_mut(k) {
                    z.iter_mut().zip(deviations).for_each(|(z, s)| *z *= s);
                }
            }
            block::times(level, (&z, k, k), 1.0, d, self.components.values(), x);
        });
        Some(Dense::new(n, d, x))
    }
}

impl Density for PcaModel {
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        self.log_densities(data.of_kind::<Samples>()?.features())
    }
}

impl Generate for PcaModel {
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        let (k, d) = (self.details.n_components, self.mean.len());
        let noise = self.details.noise_variance;
        let beyond: Vec<f64> =
            self.explained_variance().iter().map(|value| (value - noise).max(0.0).sqrt()).collect();
        let len = n.checked_mul(d).filter(|len| *len <= isize::MAX as usize / 8);
        let Some(len) = len else {
            return Err(Error::data(format!(
                "pca: {n} samples of {d} features are beyond any memory"
            )));
        };
        let mut x = vec![0.0; len];
        parallel::each_row(&mut x, d, |row, x| {
            let mut stream = Stream::new(seed, "pca.generate", row as u64);
            let z: Vec<f64> = beyond.iter().map(|by| by * stream.normal()).collect();
            x.iter_mut().zip(&self.mean).for_each(|(x, m)| *x = m + noise.sqrt() * stream.normal());
            block::times(Level::best(), (&z, k, k), 1.0, d, self.components.values(), x);
        });
        let samples = Samples::unlabelled(Dense::new(n, d, x)?)?;
        Ok(Box::new(samples.with_inputs(self.inputs.clone())?))
    }
}

impl Model for PcaModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("inputs", &self.inputs);
        file.set("n_components", &self.details.n_components);
        file.set("whiten", &self.details.whiten);
        file.set("n_samples", &self.details.n_samples);
        let Details { total_variance, noise_variance, weight, .. } = self.details;
        for (name, value) in [
            ("total_variance", total_variance),
            ("noise_variance", noise_variance),
            ("weight", weight),
        ] {
            file.tensor_owned(name, &[1], vec![value]);
        }
        file.tensor("mean", &[self.mean.len()], &self.mean);
        let shape = [self.components.n_rows(), self.components.n_cols()];
        file.tensor("components", &shape, self.components.values());
        file.tensor("spectrum", &[self.spectrum.len()], &self.spectrum);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = file.get::<Inputs>("inputs")?;
        inputs.check().map_err(|error| file.broken(error))?;
        let (k, d) = (file.get::<usize>("n_components")?, inputs.n_features());
        let mut number = |name: &str| -> Result<f64> {
            let value: f64 = file.finite(name, &[1])?[0];
            if value >= 0.0 { Ok(value) } else { Err(file.broken(format!("`{name}` is negative"))) }
        };
        let details = Details {
            n_components: k,
            total_variance: number("total_variance")?,
            noise_variance: number("noise_variance")?,
            weight: number("weight")?,
            n_samples: file.get("n_samples")?,
            whiten: file.get("whiten")?,
        };
        if k == 0 || k > d {
            return Err(file.broken(format!("{k} components of {d} features")));
        }
        let mean = file.finite("mean", &[d])?;
        let components = Dense::new(k, d, file.finite("components", &[k, d])?)?;
        let spectrum: Vec<f64> = file.vector("spectrum")?;
        let fits = spectrum.iter().all(|x| x.is_finite() && *x >= 0.0);
        if !fits || spectrum.len() < k {
            return Err(file.broken("`spectrum` makes no sense"));
        }
        let columns = by_columns(&components);
        Ok(Self { inputs, mean, components, columns, spectrum, details })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let ratios = self.explained_ratio();
        let shown: Vec<String> =
            ratios.iter().take(8).map(|r| format!("{:.2} %", 100.0 * r)).collect();
        let more = if ratios.len() > 8 { ", …" } else { "" };
        let share: f64 = ratios.iter().sum();
        vec![
            ("features", self.mean.len().to_string()),
            ("components", self.details.n_components.to_string()),
            ("explained variance", format!("{:.2} % ({}{more})", 100.0 * share, shown.join(", "))),
            ("noise variance", format!("{:.4e}", self.details.noise_variance)),
            ("samples", self.details.n_samples.to_string()),
        ]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
