//! Gaussian mixtures, fitted by expectation and maximisation.
//!
//! | file | what it holds |
//! |---|---|
//! | `rows.rs` | samples in blocks, those with missing entries sorted by which are missing |
//! | `start.rs` | the units of the features, and the k-means clusters that a fit begins with |
//! | `mixture.rs` | the parameters, factorised; the distribution of missing entries given others |
//! | `expect.rs`, `maximize.rs` | the two halves of an iteration |
//! | `solve.rs` | the iterations |
//! | `choose.rs` | the number of components, where it was left out |
//! | `model.rs` | what is learned: memberships, densities, draws, imputation |

mod choose;
mod expect;
mod maximize;
mod mixture;
mod model;
mod rows;
mod solve;
mod start;
#[cfg(test)]
mod tests;

pub use model::GmmModel;

use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{self, Params};
use gradus_core::report::StopReason;
use gradus_data::Samples;
use model::Details;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use solve::{Em, Plan, State};
use std::time::Instant;

/// The structure of the covariances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Covariance {
    /// A matrix for each component: ellipsoids of any shape and direction.
    #[default]
    Full,
    /// One matrix for all components.
    Tied,
    /// A variance for each component and feature: ellipsoids along the axes.
    Diag,
    /// A variance for each component: spheres of different sizes.
    Spherical,
    /// Variance 1 for all, in the units of the data: means and weights alone are learned.
    Unit,
}

/// A Gaussian mixture: clusters as ellipsoids, with the probability of every sample.
///
/// The density is `p(x) = Σ_k π_k N(x; μ_k, Σ_k)`. Expectation gives `r_nk`, how probable component `k` is for sample
/// `n`; maximisation sets `π_k`, `μ_k` and `Σ_k` to the weighted moments. The mean log-likelihood `Σ w ln p(x) / Σ w` never
/// falls: every iteration checks that, and a fall beyond rounding ends the fit and is reported. Everything is computed in
/// logarithms and from differences `x − μ`, so that clusters far from the origin keep their digits.
///
/// A component that shrinks to a point would have an infinite likelihood. So the variance of every component is at least
/// `reg_covar` times the variance within the clusters of the k-means start, in every direction; eigenvalues below that are
/// set to it, which is the maximum of the likelihood under this constraint. The report says which components are held. Of
/// features that were recorded in steps, such as codes and counts, the variance is also at least that of rounding to a step,
/// `step² / 12`: a component of one code alone would have none. A
/// fit in other units of the features gives the same mixture in these units, but for `spherical` and `unit`, which compare
/// features with each other.
///
/// Missing entries (NaN) need no imputation: a sample counts by the features that it has, and maximisation takes the moments
/// of the others that are expected given them. This assumes that entries are missing at random. A sample of weight 3 is
/// three samples.
///
/// The problem is not convex: another start may end elsewhere, and `n_init` starts keep the best. Cost of an iteration:
/// `2 N k D²` operations for matrices, `6 N k D` for diagonals; for each pattern of missing entries `k D³` more. Sparse
/// features are made dense. With more features than samples in a cluster prefer `tied`, `diag` or `spherical`.
///
/// References: Dempster, Laird, Rubin: Maximum likelihood from incomplete data via the EM algorithm, 1977. Ghahramani,
/// Jordan: Supervised learning from incomplete data via an EM approach, 1994. Ingrassia, Rocci: Constrained monotone EM
/// algorithms for finite mixture of multivariate Gaussians, 2007.
///
/// ```
/// use gradus_core::cluster::Cluster;
/// use gradus_core::estimator::Fit;
/// use gradus_data::{Dense, Samples};
/// use gradus_latent::Gmm;
/// let x = Dense::from_rows(&[[0.0], [0.2], [0.1], [5.0], [5.3], [4.9]]);
/// let fitted = Gmm::new().n_components(2usize).fit(&Samples::unlabelled(x.clone())?)?;
/// let labels = fitted.labels(&x.into())?;
/// assert!(labels[0] == labels[1] && labels[0] != labels[3]);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Gmm {
    /// Number of components. Left out, the number with the lowest BIC is taken, from 1 upwards until three in a row are no
    /// better.
    #[schemars(range(min = 1, max = 100_000))]
    pub n_components: Option<usize>,

    /// The structure of the covariances.
    pub covariance_type: Covariance,

    /// Smallest variance of a component in any direction, as a share of the variance within the clusters of the k-means
    /// start, feature by feature. So it means the same in any unit.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub reg_covar: f64,

    /// Number of k-means starts; the mixture with the highest likelihood is kept.
    #[schemars(range(min = 1, max = 10_000))]
    pub n_init: usize,

    /// Largest number of components tried where `n_components` is left out.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_components: usize,

    /// Largest number of iterations of each start.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Stop when an iteration raises the mean log-likelihood of a sample by less than this; 0 turns this off.
    #[schemars(range(min = 0.0))]
    pub tol: f64,

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Gmm {
    fn default() -> Self {
        Self {
            n_components: None,
            covariance_type: Covariance::Full,
            reg_covar: 1e-6,
            n_init: 1,
            max_components: 20,
            max_iter: 300,
            tol: 1e-4,
            seed: 0,
        }
    }
}

impl Params for Gmm {
    fn check_together(&self) -> Result<()> {
        if !self.tol.is_finite() {
            return Err(Error::parameter("tol", self.tol, "must be a finite number of at least 0"));
        }
        Ok(())
    }
}

impl Gmm {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn loop_options(&self, started: Instant, fingerprint: u64) -> LoopOptions<'static> {
        LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "negative log density",
            max_iter: self.max_iter,
            // The rule of the loop is relative to the objective, which depends on the unit of the data.
            tol: 0.0,
            seed: self.seed,
            restarts: self.n_init,
            params: params::record(self),
            fingerprint,
            ..LoopOptions::default()
        }
    }

    fn check_data(&self, samples: &Samples, held_out: Option<&Samples>) -> Result<()> {
        let (n, d) = samples.features().shape();
        if n == 0 {
            return Err(Error::data("gmm: no samples to learn from"));
        }
        if d == 0 {
            return Err(Error::data("gmm: the samples have no features"));
        }
        rows::check(samples.inputs(), samples.features())?;
        if let Some(held_out) = held_out {
            if held_out.is_empty() {
                return Err(Error::data("gmm: the held-out data has no samples"));
            }
            rows::check(samples.inputs(), held_out.features())?;
        }
        let weighty = samples.weights().map_or(n, |w| w.iter().filter(|w| **w > 0.0).count());
        match self.n_components {
            Some(k) if k > weighty => {
                let rule =
                    format!("must be at most {weighty}, the number of samples with a weight");
                Err(Error::parameter("n_components", k, rule))
            }
            _ => Ok(()),
        }
    }
}

impl Fit for Gmm {
    const NAME: &'static str = "gmm";
    const CLASS: &'static str = "GaussianMixture";
    const FAMILY: &'static str = "latent";
    type Data = Samples;
    type Model = GmmModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Cluster, Capability::Density, Capability::Generate],
        missing: true,
        ..Traits::CLUSTERING
    };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        self.check_data(samples, job.validation)?;
        // Only a checkpoint needs to recognise the data.
        let fingerprint = job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint());
        let mut options = self.loop_options(started, fingerprint);
        let k = match self.n_components {
            Some(k) => k,
            None => {
                let kept = job.checkpoint.as_ref().map(|file| file.chosen()).transpose()?;
                let kept = kept.and_then(|chosen| {
                    chosen.into_iter().find(|choice| choice.parameter == "n_components")
                });
                let choice = match kept {
                    Some(choice) => choice,
                    None => choose::choose(self, samples, job)?,
                };
                let k = choice.value as usize;
                options.chosen.push(choice);
                k.max(1)
            }
        };
        let (features, weights) = (samples.features(), samples.weights());
        let prepared = start::prepare(
            features,
            weights,
            self.covariance_type,
            (k, self.seed, self.reg_covar),
        )?;
        let names = samples.inputs().feature_names();
        if let Some(&j) = prepared.tiny.first() {
            return Err(Error::data(format!(
                "gmm: feature `{}` varies by less than 1e-140, whose square is below what double precision holds; \
                 measure it in a smaller unit",
                names[j]
            )));
        }
        let constant: Vec<String> = prepared.constant.iter().map(|&j| names[j].clone()).collect();
        let stepped: Vec<String> = prepared.stepped.iter().map(|&j| names[j].clone()).collect();
        let incomplete = prepared.rows.blocks.iter().filter(|block| block.pattern.is_some());
        let incomplete: usize = incomplete.map(|block| block.rows.len()).sum();
        let Self { covariance_type: kind, reg_covar: floor, tol, seed, .. } = *self;
        let solver = Em::new(Plan { kind, k, floor, tol, seed }, prepared);
        let (state, mut report) = iterate::run(&solver, &options, job)?;
        // A variance that is held at that of a step is not one that would be 0.
        let singular = solver.singular()?.max(stepped.len());
        let details = Details {
            covariance_type: kind,
            n_components: k,
            weight: solver.rows.total_weight(),
            n_samples: solver.rows.len() as u64,
            converged: matches!(report.stop_reason, StopReason::Converged),
            n_iter: report.trace[report.best].iteration as u64,
            collapsed: state.collapsed(singular).len() as u64,
        };
        report.notes = notes(&state, (&constant, singular), floor);
        if !stepped.is_empty() && state.floored.iter().any(|floored| *floored > 0) {
            report.notes.push(format!(
                "features recorded in steps: {}; their variance in a component is at least that of rounding to a step",
                some_of(&stepped)
            ));
        }
        if incomplete > 0 {
            let n = solver.rows.len();
            report.notes.push(format!(
                "{incomplete} of {n} samples have missing entries; they count by the features that they have"
            ));
        }
        let model = GmmModel::fitted(samples.inputs().clone(), &state, &solver, details)?;
        let model = model.with_sizes(features)?;
        if let Some(held_out) = job.validation {
            let logs = model.log_densities(held_out.features())?;
            let weight = |row: usize| held_out.weights().map_or(1.0, |weights| weights[row]);
            let total: f64 = (0..logs.len()).map(weight).sum();
            let sum: f64 = logs.iter().enumerate().map(|(row, log)| weight(row) * log).sum();
            report.validation = Some(-sum / total);
        }
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// The first of some names.
fn some_of(names: &[String]) -> String {
    let some = names.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let more = if names.len() > 5 { ", …" } else { "" };
    format!("{}{more}", some.join(", "))
}

/// Returns remarks on a fit beyond its figures.
fn notes(state: &State, (constant, singular): (&[String], usize), floor: f64) -> Vec<String> {
    let mut notes = Vec::new();
    if state.fall > 0.0 {
        notes.push(format!(
            "the log-likelihood fell by {:.2e} in an iteration, which rounding alone can do; the fit ended before it",
            state.fall
        ));
    }
    if !constant.is_empty() {
        notes.push(format!(
            "constant features: {}; their variance is held at {floor} of the square of their value",
            some_of(constant)
        ));
    }
    let mixture = &state.mixture;
    let empty = mixture.weights.iter().filter(|weight| **weight == 0.0).count();
    if empty > 0 {
        notes.push(format!(
            "{empty} of {} components are empty: there are fewer different samples, or clusters, than components",
            mixture.k
        ));
    }
    let (d, collapsed) = (mixture.d, state.collapsed(singular));
    if let Some(&first) = collapsed.first() {
        let list: Vec<String> = collapsed.iter().take(8).map(|c| (c + 1).to_string()).collect();
        let more = if collapsed.len() > 8 { ", …" } else { "" };
        let directions = match mixture.kind {
            Covariance::Spherical => "in all directions".to_owned(),
            _ => {
                format!("(component {}: in {} of {d} directions)", first + 1, state.floored[first])
            }
        };
        notes.push(format!(
            "collapsed: components {}{more} would have no variance {directions}; it is held at reg_covar = {floor} of \
             the variance within the clusters of the start. Fewer components, covariance_type = diag or spherical, or a \
             larger reg_covar avoid that",
            list.join(", ")
        ));
    }
    notes
}
