//! Principal component analysis.
//!
//! | file | what it holds |
//! |---|---|
//! | `spectrum.rs` | the leading eigenvalues and eigenvectors of the covariance, by several solvers |
//! | `data.rs` | means, and the centred data as an operator |
//! | `choose.rs` | how many components: by held-out log-likelihood |
//! | `model.rs` | what is learned: transform, inverse, density, generate |
//! | `stream.rs` | a fit to batches, or to a file larger than memory |

mod choose;
pub(crate) mod data;
mod model;
mod spectrum;
mod stream;
#[cfg(test)]
mod tests;

pub use model::PcaModel;
pub use stream::IncrementalPca;

use crate::moments::Moments;
use choose::Chosen;
use data::Data;
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::density::Density as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{LoopOptions, LoopOutcome, own_loop};
use gradus_core::params::{self, Params};
use gradus_core::report::{Certificate, Choice, StopReason};
use gradus_data::{Inputs, RowBlocks, Samples};
use model::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spectrum::{Method, Spectrum, Wanted};
use std::time::Instant;

/// How the components are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PcaSolver {
    /// The solver is chosen by the shape of the data: `svd` for little data, `covariance` for up to 1000 features (or
    /// samples), `randomized` beyond that and for sparse data with more than 300 features.
    #[default]
    Auto,
    /// The eigenvectors of the covariance matrix, or of the products of samples if there are fewer of
    /// those: one pass over the data. Variances are right to about 1e-15 of the largest.
    Covariance,
    /// The singular value decomposition of the centred data: small variances keep their digits, too. Of
    /// dense data.
    Svd,
    /// Power iterations, one component after another, each with the ones before projected out. Slow where
    /// variances are alike: to see the method, and for a component or two.
    Power,
    /// A block Krylov method from a random start, to the accuracy `tol`: for few components of large or
    /// sparse data, which stays sparse.
    Randomized,
}

/// Principal component analysis: the directions in which the data varies most.
///
/// The components are the eigenvectors `v_1, …, v_k` of the covariance matrix of the features, largest
/// eigenvalue first; a sample `x` becomes `z = V (x − μ)`, and `Vᵀ z + μ` is the nearest point to `x` on the
/// best-fitting plane of `k` dimensions. The sign of a component is such that its largest entry is
/// positive. The explained variance of a component is its eigenvalue, `Σ w (z_i)² / (Σ w − 1)`.
///
/// The model is also a distribution, that of probabilistic PCA: a normal distribution with mean `μ` and
/// covariance `Vᵀ (Λ − σ²) V + σ² I`, where the noise variance `σ²` is the mean of the eigenvalues left out.
/// It tells how probable a sample is, and draws new ones.
///
/// Without `n_components` their number is chosen by the log-likelihood of held-out samples. With all
/// components nothing is lost and the features are only rotated.
///
/// Cost: `O(N D²)` and `O(D³)` through the covariance matrix of `D` features, `O(D N²)` with fewer samples
/// than features, some `10 k` products with the data for `randomized`. Features in different units should
/// be brought to one scale first: a feature in millimetres has a million times the variance of one in
/// metres. The objective in the report is the variance left out.
///
/// References: Tipping, Bishop: Probabilistic principal component analysis, 1999. Halko, Martinsson, Tropp:
/// Finding structure with randomness, 2011. Musco, Musco: Randomized block Krylov methods, 2015.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Pca {
    /// Number of components, if 1 or more; if below 1, so many that they explain this share of the
    /// variance. Left out, the number under which held-out samples are most probable.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub n_components: Option<f64>,

    /// How the components are found.
    pub solver: PcaSolver,

    /// Whether transformed features are divided by their standard deviation in training.
    pub whiten: bool,

    /// Whether the mean is subtracted. Without it this is a truncated singular value decomposition, and
    /// variances are mean squares.
    pub center: bool,

    /// Accuracy of `randomized` and `power`: done when `‖C v − λ v‖ ≤ tol λ₁` for every component `v`, with the
    /// covariance `C`. A variance is then right to `tol λ₁`, and to about the square of `tol` where variances are
    /// not alike.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Largest number of restarts of `randomized`, and of iterations of `power` for each component.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Seed of random starts and of the samples held out to choose the number of components.
    pub seed: u64,
}

impl Default for Pca {
    fn default() -> Self {
        Self {
            n_components: None,
            solver: PcaSolver::Auto,
            whiten: false,
            center: true,
            tol: 1e-6,
            max_iter: 1000,
            seed: 0,
        }
    }
}

impl Params for Pca {
    fn check_together(&self) -> Result<()> {
        match self.n_components {
            Some(n) if n >= 1.0 && n.fract() != 0.0 => Err(Error::parameter(
                "n_components",
                n,
                "must be a whole number of components, or a share of the variance between 0 and 1",
            )),
            _ => Ok(()),
        }
    }
}

impl Pca {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many components are wanted, of at most `most`.
    fn wanted(&self, n: usize, d: usize) -> Result<Option<Wanted>> {
        Ok(match self.n_components {
            None => None,
            Some(share) if share < 1.0 => Some(Wanted::Share(share)),
            Some(count) => {
                let most = n.min(d);
                if count > most as f64 {
                    let rule = format!(
                        "must be at most {most}, the smaller of {n} samples and {d} features, or a share below 1"
                    );
                    return Err(Error::parameter("n_components", count, rule));
                }
                Some(Wanted::Count(count as usize))
            }
        })
    }

    fn loop_options(&self, started: Instant) -> LoopOptions<'static> {
        LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "mean log density",
            higher_is_better: true,
            max_iter: 1,
            seed: self.seed,
            restarts: 1,
            params: params::record(self),
            ..LoopOptions::default()
        }
    }

    /// The fit to the moments of parts, for data that is not in memory.
    fn fit_moments(&self, parts: &[Moments], inputs: Inputs) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let moments = choose::merged(parts, None);
        if moments.weight() == 0.0 {
            return Err(Error::data("pca: no samples to learn from"));
        }
        let (n, d) = (usize::try_from(moments.count()).unwrap_or(usize::MAX), moments.n_features());
        let (wanted, chosen) = match self.wanted(n, d)? {
            Some(wanted) => (wanted, None),
            None => {
                let chosen = choose::by_moments(parts)?;
                (Wanted::Count(chosen.count), Some(chosen))
            }
        };
        let mut options = self.loop_options(started);
        options.chosen = chosen.iter().map(Chosen::choice).collect();
        let (model, report) = own_loop(&options, &Job::<Samples>::default(), |_| {
            let spectrum = spectrum::of_moments(&moments, wanted)?;
            let outcome = outcome(&spectrum, &inputs, None);
            let parts = Parts {
                inputs,
                mean: moments.mean().to_vec(),
                weight: moments.weight(),
                n_samples: moments.count(),
                whiten: self.whiten,
            };
            Ok((PcaModel::new(parts, spectrum), outcome))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// A feature that has this share of the variance by itself is more likely in another unit than of more interest.
const ALONE: f64 = 0.99;

/// The feature that is all of the first component and nearly all of the variance, if there is one; and its share.
fn alone(spectrum: &Spectrum, inputs: &Inputs) -> Option<(String, f64)> {
    let d = spectrum.mean.len();
    let entries = spectrum.vectors.get(..d).filter(|_| d > 1 && spectrum.total > 0.0)?;
    let (at, entry) = entries.iter().enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let share = spectrum.values[0] / spectrum.total * entry * entry;
    (share > ALONE).then(|| (inputs.feature_names().swap_remove(at), share))
}

/// Returns the report of a spectrum.
fn outcome(spectrum: &Spectrum, inputs: &Inputs, validation: Option<f64>) -> LoopOutcome {
    let stop_reason = match spectrum.method {
        Method::Closed => StopReason::Solved,
        Method::Iterative { interrupted: true, .. } => StopReason::Interrupted,
        Method::Iterative { residual, tol, .. } if residual <= tol => StopReason::Converged,
        Method::Iterative { .. } => StopReason::MaxIterations,
    };
    let certificate = match spectrum.method {
        Method::Closed => None,
        Method::Iterative { residual, tol, .. } => {
            Some(Certificate { name: "residual".into(), value: residual, tolerance: tol })
        }
    };
    let mut notes = vec![spectrum.how.clone()];
    let (k, rank) = (spectrum.values.len(), spectrum.rank());
    let (explained, all) = (spectrum.values.iter().sum::<f64>(), spectrum.total);
    if all > 0.0 {
        let share = (100.0 * explained / all).min(100.0);
        let plural = if k == 1 { " explains" } else { "s explain" };
        notes.push(format!("{k} component{plural} {share:.2} % of the variance"));
    }
    if rank < k {
        notes.push(format!(
            "the data varies in {rank} directions only; components past {rank} have no variance"
        ));
    }
    if let Some((feature, share)) = alone(spectrum, inputs) {
        let share = 100.0 * share;
        notes.push(format!(
            "feature `{feature}` has {share:.2} % of the variance: components look past the others unless all are brought to one scale"
        ));
    }
    LoopOutcome { stop_reason, objective: spectrum.left_out(), validation, certificate, notes }
}

impl Fit for Pca {
    const NAME: &'static str = "pca";
    const CLASS: &'static str = "Pca";
    const FAMILY: &'static str = "latent";
    type Data = Samples;
    type Model = PcaModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Transform, Capability::Density, Capability::Generate],
        streams: true,
        ..Traits::TRANSFORMER
    };

    fn fit_rows(
        &self,
        rows: &mut dyn RowBlocks,
        job: &Job<'_, Samples>,
    ) -> Option<Result<Fitted<Self>>> {
        Some(stream::fit_rows(self, rows, job))
    }

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        if samples.is_empty() {
            return Err(Error::data("pca: no samples to learn from"));
        }
        if samples.n_features() == 0 {
            return Err(Error::data("pca: the samples have no features"));
        }
        if let Some(held_out) = job.validation {
            if held_out.is_empty() {
                return Err(Error::data("pca: the held-out data has no samples"));
            }
            samples.inputs().check_width(held_out.n_features())?;
        }
        let (n, d) = (samples.len(), samples.n_features());
        if self.solver == PcaSolver::Svd && samples.features().is_sparse() {
            let rule = "must be another for sparse features: auto, covariance, power or randomized";
            return Err(Error::parameter("solver", "svd", rule));
        }
        let wanted = self.wanted(n, d)?;
        let data = Data::new(samples, self.center);
        let (chosen, moments) = match wanted {
            Some(_) => (None, None),
            None => choose::by_held_out(&data, self)?,
        };
        let wanted = wanted.unwrap_or(Wanted::Count(chosen.as_ref().map_or(1, |c| c.count)));
        let mut options = self.loop_options(started);
        options.chosen = chosen.iter().map(Chosen::choice).collect();
        let (model, report) = own_loop(&options, job, |fit_loop| {
            let spectrum = spectrum::of_data(&data, moments, wanted, self, fit_loop)?;
            let parts = Parts {
                inputs: samples.inputs().clone(),
                mean: spectrum.mean.clone(),
                weight: data.total(),
                n_samples: n as u64,
                whiten: self.whiten,
            };
            let mut outcome = outcome(&spectrum, samples.inputs(), None);
            let model = PcaModel::new(parts, spectrum);
            if let Some(held_out) = job.validation {
                let logs = model.log_density(held_out)?;
                let weight = |row: usize| held_out.weights().map_or(1.0, |w| w[row]);
                let total: f64 = (0..logs.len()).map(weight).sum();
                let sum: f64 = logs.iter().enumerate().map(|(row, log)| weight(row) * log).sum();
                outcome.validation = Some(sum / total);
            }
            Ok((model, outcome))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

impl Chosen {
    fn choice(&self) -> Choice {
        Choice::new("n_components", self.count as f64, self.reason.clone())
    }
}
