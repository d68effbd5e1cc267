//! Non-negative matrix factorisation.
//!
//! | file | what it holds |
//! |---|---|
//! | `data.rs` | the data, the unit it is measured in, entries by rows and by columns |
//! | `start.rs` | where the iterations begin: NNDSVD, random |
//! | `solve.rs` | the iterations |
//! | `frobenius.rs`, `divergence.rs` | half a step, by loss |
//! | `observed.rs` | both for data with missing entries, or with weights of entries |
//! | `nnls.rs` | small non-negative quadratic problems, exactly |
//! | `model.rs` | what is learned: transform, inverse |

mod data;
mod divergence;
mod frobenius;
mod model;
mod nnls;
mod observed;
mod solve;
mod start;
#[cfg(test)]
mod tests;

pub use model::NmfModel;
pub use observed::known;

use data::{Data, check_non_negative, column_sums};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{self, Params};
use gradus_core::report::Choice;
use gradus_core::transform::Transform as _;
use gradus_data::{Matrix, Samples};
use model::Details;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use solve::{Alternation, Plan};
use start::Factors;
use std::time::Instant;

/// How far the product of the factors is from the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NmfLoss {
    /// Half the sum of the squared errors: errors alike in size everywhere.
    #[default]
    Frobenius,
    /// The Kullback–Leibler divergence `Σ x ln(x / y) − x + y`: for counts, whose errors grow with their size. Its cost
    /// grows with the entries that are not 0.
    Kl,
}

/// How the factors are improved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NmfSolver {
    /// `hals` for `frobenius`, `newton` for `kl`.
    #[default]
    Auto,
    /// Hierarchical alternating least squares, which is coordinate descent: one entry of a row at a time, eight
    /// sweeps for each product with the data. For `frobenius`.
    Hals,
    /// Alternating least squares with what is negative set to 0, row by row; a row that this does not improve takes
    /// a sweep of `hals` instead. For `frobenius`.
    ProjectedAls,
    /// The multiplicative updates of Lee and Seung: slow, and an entry that is 0 stays 0. For both losses.
    Multiplicative,
    /// A Newton step for each row of a factor in its entries that are not stored at 0, the quadratic model minimised over
    /// non-negative rows by coordinate descent, with a line search. For `kl`.
    Newton,
}

/// The start of the iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// The positive parts of singular vectors (NNDSVD), with zeros. For `kl`, which needs products above 0, zeros are
    /// replaced by a millionth of the mean of the data. Past the rank of the data components are random.
    Nndsvd,
    /// The same with zeros replaced by the mean of the data.
    #[default]
    Nndsvda,
    /// Absolute values of normal deviates, such that products have the mean of the data.
    Random,
}

/// The meaning of entries that sparse features do not store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Absent {
    /// 0, as usual.
    #[default]
    Zero,
    /// Not known: only the entries that are stored count, zeros among them included.
    Missing,
}

/// Non-negative matrix factorisation: samples as sums of parts.
///
/// The samples `X ≥ 0` (`N × D`) are approximated by `W H`, where `H ≥ 0` has a row for each of `k` components and
/// `W ≥ 0` says how much of each component a sample has. Nothing can be subtracted, so that components tend to be parts:
/// of faces, or topics of documents. The objective is
///
/// `loss(X / s, W H) + l1 (D Σ W + N Σ H) + ½ l2 (D Σ W² + N Σ H²)`,
///
/// with half the squared error or the divergence as loss, and `s` the root of the mean square of the entries of `X`
/// (their mean for `kl`). So penalties mean the same whatever the unit and the size of the data, and data times `c`
/// gives a reconstruction times `c`. A sample of weight 3 is three samples. The trace of the report is the objective in
/// the unit of the data: times `s²`, or `s` for `kl`.
///
/// Each iteration improves all rows of `W` and then all columns of `H`; no step raises the objective. The problem is not
/// convex: another start may end elsewhere. Cost of an iteration: `4 n k` operations for `n` entries (those that are not 0,
/// of sparse data) and some `10 (N + D) k²` for `frobenius`; `n k²` for `kl` by `newton`, `8 n k` by `multiplicative`.
/// A sample is transformed by the best `W` for the components, to the last digits: an active set method, or Newton steps.
/// Components are ordered by how much they contribute to the data.
///
/// With `absent = missing` the loss is a sum over the entries that sparse features store (in Rust [`known`] makes such features
/// of dense ones with `NaN`; Python takes `NaN` for missing), or over all entries with weights (Rust: [`Nmf::fit_weighted`], Python:
/// `entry_weight`), and the penalty of a row grows with the weight of its entries; an iteration then costs `2 n k²`. New samples are fitted by the entries they have, and their inverse completes them.
///
/// References: Lee, Seung: Learning the parts of objects, 1999. Cichocki, Phan: Fast local algorithms for large scale
/// non-negative matrix and tensor factorizations, 2009. Gillis, Glineur: Accelerated multiplicative updates and
/// hierarchical ALS, 2012. Hsieh, Dhillon: Fast coordinate descent methods with variable selection for NMF, 2011.
/// Boutsidis, Gallopoulos: SVD based initialization, 2008.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Nmf {
    /// Number of components. Left out, half of the number of features, and 10 at most. It may be larger than the numbers
    /// of samples and of features.
    #[schemars(range(min = 1, max = 100_000))]
    pub n_components: Option<usize>,

    /// The loss that is minimised.
    pub loss: NmfLoss,

    /// The solver.
    pub solver: NmfSolver,

    /// The start of the iterations.
    pub init: Init,

    /// The meaning of entries that sparse features do not store.
    pub absent: Absent,

    /// Strength of the penalty on the entries of both factors, for data divided by the root of its mean square (its
    /// mean for `kl`). Some 0.001 to 0.1 makes factors sparse.
    #[schemars(range(min = 0.0))]
    pub l1: f64,

    /// Strength of the penalty on half the squares of the entries of both factors, in the same unit.
    #[schemars(range(min = 0.0))]
    pub l2: f64,

    /// Largest number of iterations.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Nmf {
    fn default() -> Self {
        Self {
            n_components: None,
            loss: NmfLoss::Frobenius,
            solver: NmfSolver::Auto,
            init: Init::Nndsvda,
            absent: Absent::Zero,
            l1: 0.0,
            l2: 0.0,
            max_iter: 500,
            tol: 1e-5,
            seed: 0,
        }
    }
}

impl Params for Nmf {
    fn check_together(&self) -> Result<()> {
        for (name, value) in [("l1", self.l1), ("l2", self.l2)] {
            if !value.is_finite() {
                return Err(Error::parameter(name, value, "must be a finite number of at least 0"));
            }
        }
        let (name, fits) = match self.solver {
            NmfSolver::Auto | NmfSolver::Multiplicative => return Ok(()),
            NmfSolver::Hals => ("hals", NmfLoss::Frobenius),
            NmfSolver::ProjectedAls => ("projected_als", NmfLoss::Frobenius),
            NmfSolver::Newton => ("newton", NmfLoss::Kl),
        };
        if fits == self.loss {
            return Ok(());
        }
        let rule = match self.loss {
            NmfLoss::Frobenius => {
                "must be auto, hals, projected_als or multiplicative for loss = frobenius"
            }
            NmfLoss::Kl => "must be auto, multiplicative or newton for loss = kl",
        };
        Err(Error::parameter("solver", name, rule))
    }
}

impl Nmf {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn plan(&self, k: usize) -> Plan {
        let solver = match (self.solver, self.loss) {
            (NmfSolver::Auto, NmfLoss::Frobenius) => NmfSolver::Hals,
            (NmfSolver::Auto, NmfLoss::Kl) => NmfSolver::Newton,
            (given, _) => given,
        };
        let Self { loss, init, l1, l2, seed, .. } = *self;
        Plan { k, loss, solver, init, l1, l2, seed }
    }

    fn loop_options(&self, started: Instant, fingerprint: u64) -> LoopOptions<'static> {
        LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "reconstruction RMSE",
            max_iter: self.max_iter,
            tol: self.tol,
            seed: self.seed,
            restarts: 1,
            params: params::record(self),
            fingerprint,
            ..LoopOptions::default()
        }
    }
}

/// The components in the order of what they contribute to the data, largest first.
fn ordered(k: usize, factors: &Factors, weights: Option<&[f64]>) -> Vec<f64> {
    let (w, h) = (column_sums(k, &factors.w, weights), column_sums(k, &factors.h, None));
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|&a, &b| (w[b] * h[b]).total_cmp(&(w[a] * h[a])).then(a.cmp(&b)));
    factors.h.chunks_exact(k).flat_map(|h| order.iter().map(|&a| h[a])).collect()
}

impl Fit for Nmf {
    const NAME: &'static str = "nmf";
    const CLASS: &'static str = "Nmf";
    const FAMILY: &'static str = "latent";
    type Data = Samples;
    type Model = NmfModel;
    const TRAITS: Traits =
        Traits { iterative: true, resumable: true, non_negative: true, ..Traits::TRANSFORMER };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        self.fit_entries(samples, None, job)
    }
}

impl Nmf {
    /// Fits with a weight for each entry: `Σ w (x − y)²` instead of `Σ (x − y)²`, and likewise for the divergence. An entry
    /// of weight 0 is missing.
    ///
    /// # Shapes
    /// `weights` is samples × features; what it does not store, if it is sparse, is 0.
    ///
    /// # Errors
    /// As [`fit`](Fit::fit); and if the weights are of another shape, or one is negative or not finite.
    pub fn fit_weighted(&self, samples: &Samples, weights: &Matrix) -> Result<Fitted<Self>> {
        self.fit_entries(samples, Some(weights), &Job::default())
    }

    /// Fits like [`fit_weighted`](Self::fit_weighted), with everything a long run may want.
    ///
    /// # Errors
    /// As [`fit_weighted`](Self::fit_weighted).
    pub fn fit_entries(
        &self,
        samples: &Samples,
        weights: Option<&Matrix>,
        job: &Job<'_, Samples>,
    ) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let (n, d) = samples.features().shape();
        if n == 0 {
            return Err(Error::data("nmf: no samples to learn from"));
        }
        if d == 0 {
            return Err(Error::data("nmf: the samples have no features"));
        }
        check_non_negative(samples.features())?;
        if let Some(held_out) = job.validation {
            if held_out.is_empty() {
                return Err(Error::data("nmf: the held-out data has no samples"));
            }
            samples.inputs().check_width(held_out.n_features())?;
            check_non_negative(held_out.features())?;
        }
        // Not by the number of samples: a weight of 3 is three of them.
        let k = self.n_components.unwrap_or((d / 2).clamp(1, 10));
        let fits = n.max(d).checked_mul(k).is_some_and(|len| len <= isize::MAX as usize / 16);
        if !fits {
            let rule = format!(
                "must be fewer: factors of {n} samples and {d} features do not fit into memory"
            );
            return Err(Error::parameter("n_components", k, rule));
        }
        let partly = self.absent == Absent::Missing && samples.features().is_sparse();
        let observed = match (weights, partly) {
            (None, false) => None,
            _ => Some(observed::entries(samples, weights, self.absent)?),
        };
        if observed.as_ref().is_some_and(|(entries, _)| entries.nnz() == 0) {
            return Err(Error::data("nmf: every entry is missing: nothing to learn from"));
        }
        // Only a checkpoint needs to recognise the data.
        let fingerprint = job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint());
        let mut options = self.loop_options(started, fingerprint);
        if let Some((_, Some(weights))) = &observed {
            // A checkpoint goes on with the weights it began with.
            options.fingerprint = weights.iter().fold(options.fingerprint, |hash, w| {
                (hash.rotate_left(23) ^ w.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            });
        }
        if self.n_components.is_none() {
            let reason = "half of the number of features, 10 at most";
            options.chosen.push(Choice::new("n_components", k as f64, reason));
        }
        let solver = Alternation::new(self.plan(k), Data::new(samples, self.loss, observed));
        let (factors, mut report) = iterate::run(&solver, &options, job)?;
        let data = solver.data();
        let loss = solver.loss(&factors);
        // What it is compared with: no component at all, of which there is no divergence, or the best single one.
        let whole = match self.loss {
            NmfLoss::Frobenius => 0.5 * data.squares,
            NmfLoss::Kl if data.observed.is_some() => solver.divergence_from_mean(),
            NmfLoss::Kl => solver.divergence_from_margins(),
        };
        let details = Details {
            n_components: k,
            loss: self.loss,
            unit: data.unit,
            l1: self.l1,
            l2: self.l2,
            error: (2.0 * loss * solver.loss_unit()).sqrt(),
            relative_error: if whole > 0.0 { (loss / whole).sqrt() } else { 0.0 },
            n_samples: n as u64,
            observed: self.absent == Absent::Missing || data.observed.is_some(),
        };
        if data.squares == 0.0 {
            report.notes.push("every entry is 0, and so are the components".into());
        }
        if k > n.min(d) && self.init != Init::Random {
            report.notes.push(format!(
                "{n} samples of {d} features have {} singular vectors; the other components begin at random",
                n.min(d)
            ));
        }
        let h = ordered(k, &factors, samples.weights());
        let model = NmfModel::new(samples.inputs().clone(), h, details);
        if let Some(held_out) = job.validation {
            report.validation = Some(held_out_error(&model, held_out)?);
        }
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// The root of the mean squared error of held-out samples, transformed and back, over the entries they have.
fn held_out_error(model: &NmfModel, held_out: &Samples) -> Result<f64> {
    let z = model.transform(held_out.features())?;
    let (mut sum, mut total) = (0.0, 0.0);
    for row in 0..held_out.len() {
        let y = z.row(row);
        let weight = held_out.weights().map_or(1.0, |weights| weights[row]);
        let mut add = |column: usize, x: f64| {
            let y: f64 = (0..y.len()).map(|a| y[a] * model.components()[(a, column)]).sum();
            sum += weight * (x - y) * (x - y);
            total += weight;
        };
        match held_out.features() {
            Matrix::Sparse(x) if model.knows_missing() => {
                let (columns, values) = x.row(row);
                columns.iter().zip(values).for_each(|(&c, x)| add(c as usize, *x));
            }
            features => {
                let x = features.select_rows(&[row as u32]).to_dense();
                x.values().iter().enumerate().for_each(|(column, x)| add(column, *x));
            }
        }
    }
    Ok((sum / total.max(f64::MIN_POSITIVE)).sqrt())
}
