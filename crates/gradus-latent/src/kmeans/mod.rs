//! K-means clustering.
//!
//! | file | what it holds |
//! |---|---|
//! | `data.rs` | the samples, in double precision where they lie and packed in single precision |
//! | `choose.rs` | the number of clusters, where it was left out |
//! | `start.rs` | where the iterations begin: greedy k-means++ |
//! | `search.rs` | which centre is nearest: bounds, products, and double precision where those cannot tell |
//! | `units.rs` | whether features are in unlike units |
//! | `update.rs` | the centres of clusters; clusters that lost all samples |
//! | `lloyd.rs`, `minibatch.rs` | the iterations |
//! | `hartigan.rs` | single samples moved where that lowers the inertia |
//! | `stream.rs` | Lloyd's iterations over a file larger than memory |
//! | `model.rs` | what is learned: labels, distances |

mod choose;
mod data;
mod hartigan;
mod lloyd;
mod minibatch;
mod model;
mod search;
mod start;
mod stream;
#[cfg(test)]
mod tests;
mod units;
mod update;

pub use model::KMeansModel;

use data::Data;
pub(crate) use data::scaled;
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{self, Params};
use gradus_core::report::{Choice, Report};
use gradus_data::{Dense, Matrix, RowBlocks, Samples};
use lloyd::{Lloyd, Start};
use minibatch::MiniBatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::time::Instant;

/// How the centres are improved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KMeansAlgorithm {
    /// Lloyd's algorithm on all samples, exactly: it ends where no sample changes its cluster.
    #[default]
    Lloyd,
    /// Running means over batches in random order: an inertia some percent higher after few passes.
    MiniBatch,
}

/// How distances are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KMeansMetric {
    /// The distance in space.
    #[default]
    Euclidean,
    /// One minus the cosine of the angle (spherical k-means), for texts: samples are divided by their norms, and centres
    /// are directions. A sample without any feature is at a distance of 1 from every centre.
    Cosine,
}

/// K-means: clusters around centres, each sample in the cluster of the nearest.
///
/// It minimises the inertia `Σ w |x − c(x)|²`, the weighted sum of the squared distances of the samples `x` to their
/// centres `c(x)`. Lloyd's algorithm assigns each sample to the nearest centre, moves each centre to the mean of its
/// samples, and repeats; the inertia never rises. The problem is not convex, so the iterations begin at samples drawn far
/// from each other (greedy k-means++), and the best of several starts is kept. A cluster that loses all samples takes
/// the sample that is farthest from its own centre. Clusters are numbered by their weight, the largest first.
///
/// Distances are found by products in single precision and decided in double precision wherever rounding could matter, and
/// samples whose cluster cannot have changed are left out by Hamerly's bounds: the clusters are those of plain loops in
/// double precision. An iteration costs at most `2 N k D` operations (`2 n k` for `n` entries of sparse features, which stay
/// sparse), and late ones a fraction of that. Features far from 0 lose no digits.
///
/// K-means looks for round clusters of like width. Features in unlike units need `standardize`; missing entries are not
/// taken: impute them first.
///
/// References: Lloyd: Least squares quantization in PCM, 1982. Arthur, Vassilvitskii: k-means++, 2007. Hamerly: Making
/// k-means even faster, 2010. Sculley: Web-scale k-means clustering, 2010. Dhillon, Modha: Concept decompositions for large
/// sparse text data using clustering, 2001.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct KMeans {
    /// Number of clusters. Left out, the number from 2 to 64 with the highest mean silhouette, tried on 2,000 samples at
    /// most; `gradus select` compares further criteria.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub n_clusters: Option<usize>,

    /// How the centres are improved.
    pub algorithm: KMeansAlgorithm,

    /// How distances are measured.
    pub metric: KMeansMetric,

    /// Whether each feature is divided by its standard deviation before distances are taken. Left out, it is where one
    /// feature has more than 90 % of the variance, or a third of the features at most have 99 %, as with features in unlike
    /// units; never for sparse features.
    pub standardize: Option<bool>,

    /// Number of starts, of which the best is kept. Left out, as many as make the work of an iteration of all of them
    /// four billion products, at least 1 and 20 at most; the best is then improved by moves of single samples (Hartigan)
    /// where the data is small and dense.
    #[schemars(range(min = 1, max = 10_000))]
    pub n_init: Option<usize>,

    /// Largest number of iterations of each start. Of mini-batches, an iteration goes over all samples once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// A start ends when an iteration lowers the inertia by less than this share of it; with 0, when no sample changes its
    /// cluster.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Samples of a mini-batch.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub batch_size: usize,

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for KMeans {
    fn default() -> Self {
        Self {
            n_clusters: None,
            algorithm: KMeansAlgorithm::Lloyd,
            metric: KMeansMetric::Euclidean,
            standardize: None,
            n_init: None,
            max_iter: 300,
            tol: 1e-6,
            batch_size: 1024,
            seed: 0,
        }
    }
}

impl Params for KMeans {}

/// The parameters of a fit, with every choice made.
struct Plan {
    k: usize,
    n_init: usize,
    scale: Option<Vec<f64>>,
    chosen: Vec<Choice>,
    notes: Vec<String>,
    /// Whether the start is given, so that its order is kept.
    given: bool,
}

impl KMeans {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn plan(
        &self,
        samples: &Samples,
        given: Option<usize>,
        job: &Job<'_, Samples>,
    ) -> Result<Plan> {
        let (n, d) = samples.features().shape();
        let (mut chosen, mut notes) = (Vec::new(), Vec::new());
        // Samples of weight 0 take no part.
        let counted = samples.weights().map_or(n, |w| w.iter().filter(|w| **w > 0.0).count());
        let dense = match samples.features() {
            Matrix::Dense(x) => Some(x),
            Matrix::Sparse(_) => None,
        };
        let deviations = || units::deviations(samples.features(), samples.weights());
        let compares = d > 1 && self.metric == KMeansMetric::Euclidean;
        let scale = match (self.standardize, dense) {
            (Some(true), _) => Some(deviations()),
            (given, Some(_)) if compares => {
                let deviations = match given {
                    None => deviations(),
                    Some(_) => units::about(samples.features(), samples.weights()),
                };
                let names = samples.inputs().feature_names();
                let outweighing = units::outweighing(&deviations, &names);
                match (given, outweighing) {
                    (None, Some(which)) => {
                        let reason = format!(
                            "{which} of the variance, so features are divided by their standard deviations"
                        );
                        chosen.push(Choice::new("standardize", 1.0, reason));
                        Some(deviations)
                    }
                    (_, Some(which)) => {
                        notes.push(format!(
                            "{which} of the variance, nearly enough to decide alone which centre is nearest; \
                             standardize = true gives all features the same say"
                        ));
                        None
                    }
                    (_, None) => None,
                }
            }
            _ => None,
        };
        // A constant feature is not scaled.
        let scale: Option<Vec<f64>> =
            scale.map(|s| s.into_iter().map(|s| if s > 0.0 { s } else { 1.0 }).collect());
        let k = match self.n_clusters.or(given) {
            Some(k) => k,
            None => {
                let kept = job.checkpoint.as_ref().map(|file| file.chosen()).transpose()?;
                let kept = kept.and_then(|chosen| {
                    chosen.into_iter().find(|choice| choice.parameter == "n_clusters")
                });
                let choice = match kept {
                    Some(choice) => choice,
                    None => choose::choose(self, samples, scale.as_deref(), job)?,
                };
                let k = choice.value as usize;
                chosen.insert(0, choice);
                k.max(1)
            }
        };
        if k > counted {
            let rule = format!("must be at most {counted}, the number of samples");
            return Err(Error::parameter("n_clusters", k, rule));
        }
        let n_init = match (self.n_init, given) {
            (Some(n_init), None) => n_init,
            (_, Some(_)) => 1,
            (None, None) => {
                let work = n as f64 * d as f64 * k as f64;
                let n_init = (4e9 / work).clamp(1.0, 20.0) as usize;
                let reason = "as many as fit into the work of four billion products, 20 at most";
                chosen.push(Choice::new("n_init", n_init as f64, reason));
                n_init
            }
        };
        Ok(Plan { k, n_init, scale, chosen, notes, given: given.is_some() })
    }

    /// Whether the best start is improved sample by sample: by default, and where the start is not given.
    fn improves(&self, plan: &Plan) -> bool {
        self.n_init.is_none() && !plan.given && self.metric == KMeansMetric::Euclidean
    }

    fn loop_options(
        &self,
        started: Instant,
        fingerprint: u64,
        plan: &Plan,
    ) -> LoopOptions<'static> {
        let metric = match self.metric {
            KMeansMetric::Euclidean => "mean squared distance",
            KMeansMetric::Cosine => "mean cosine distance",
        };
        LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric,
            max_iter: self.max_iter,
            // Where no sample changed its cluster, the inertia is the same to the last bit.
            tol: self.tol.max(f64::MIN_POSITIVE),
            seed: self.seed,
            restarts: plan.n_init,
            params: params::record(self),
            fingerprint,
            chosen: plan.chosen.clone(),
            ..LoopOptions::default()
        }
    }

    /// Fits the model from given centres instead of from samples drawn by k-means++.
    ///
    /// # Shapes
    /// `centres` is clusters × features.
    ///
    /// # Errors
    /// As [`fit_job`](Fit::fit_job), and if the centres have another number of features, are not finite, or are not
    /// `n_clusters`.
    pub fn fit_from(
        &self,
        samples: &Samples,
        centres: &Dense<f64>,
        job: &Job<'_, Samples>,
    ) -> Result<Fitted<Self>> {
        let (k, d) = centres.shape();
        let expected = (self.n_clusters.unwrap_or(k), samples.n_features());
        if (k, d) != expected || k == 0 {
            return Err(Error::Shape {
                what: "initial centres".into(),
                expected: format!("{} × {} (clusters × features)", expected.0, expected.1),
                got: format!("{k} × {d}"),
            });
        }
        if centres.values().iter().any(|c| !c.is_finite()) {
            return Err(Error::data("kmeans: an initial centre is not finite"));
        }
        self.fit_with(samples, Some(centres), job)
    }

    fn fit_with(
        &self,
        samples: &Samples,
        given: Option<&Dense<f64>>,
        job: &Job<'_, Samples>,
    ) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        if samples.is_empty() {
            return Err(Error::data("kmeans: no samples to learn from"));
        }
        if samples.n_features() == 0 {
            return Err(Error::data("kmeans: the samples have no features"));
        }
        if let Some(held_out) = job.validation {
            if held_out.is_empty() {
                return Err(Error::data("kmeans: the held-out data has no samples"));
            }
            samples.inputs().check_width(held_out.n_features())?;
        }
        let plan = self.plan(samples, given.map(Dense::n_rows), job)?;
        let scale = plan.scale.as_deref();
        let data = Data::new(
            scaled(samples.features(), scale, self.metric),
            samples.weights(),
            self.metric,
        )?;
        let held_out = match job.validation {
            Some(held_out) => Some(Data::new(
                scaled(held_out.features(), scale, self.metric),
                held_out.weights(),
                self.metric,
            )?),
            None => None,
        };
        let given = given.map(|centres| {
            let centres = Matrix::from(centres.clone());
            scaled(&centres, scale, self.metric).into_owned().to_dense().into_values()
        });
        let start = match &given {
            Some(centres) => Start::Given(centres),
            None => Start::PlusPlus { seed: self.seed },
        };
        // Only a checkpoint needs to recognise the data.
        let fingerprint = job.checkpoint.as_ref().map_or(0, |_| samples.fingerprint());
        let options = self.loop_options(started, fingerprint, &plan);
        let (k, seed) = (plan.k, self.seed);
        let held = held_out.as_ref();
        let (centres, labels, mut report) = match self.algorithm {
            KMeansAlgorithm::Lloyd => {
                let solver = Lloyd { data: &data, k, start, held_out: held };
                let (mut state, report) = iterate::run(&solver, &options, job)?;
                let mut labels = solver.labels(&mut state);
                if self.improves(&plan) {
                    hartigan::polish(&data, k, &mut state.centres, &mut labels);
                }
                // Centres that are scaled back and forth are rounded, and may have other samples.
                (state.centres, Some(labels).filter(|_| plan.scale.is_none()), report)
            }
            KMeansAlgorithm::MiniBatch => {
                let batch = self.batch_size;
                let solver = MiniBatch { data: &data, k, start, batch, seed, held_out: held };
                let (state, report) = iterate::run(&solver, &options, job)?;
                (state.centres, None, report)
            }
        };
        let model = self.finish(samples, &data, (centres, labels), &plan)?;
        report.notes.extend(plan.notes);
        model.remark(&mut report);
        report.seconds = started.elapsed().as_secs_f64().max(report.seconds);
        Ok(Fitted { params: self.clone(), model, report })
    }

    /// The model with these centres, and the clusters of the training samples.
    fn finish(
        &self,
        samples: &Samples,
        data: &Data<'_>,
        (mut centres, labels): (Vec<f64>, Option<Vec<u32>>),
        plan: &Plan,
    ) -> Result<KMeansModel> {
        if let Some(scale) = &plan.scale {
            centres.iter_mut().zip(scale.iter().cycle()).for_each(|(c, s)| *c *= s);
        }
        let mut model = KMeansModel {
            inputs: samples.inputs().clone(),
            metric: self.metric,
            centres: Dense::new(plan.k, samples.n_features(), centres)?,
            scale: plan.scale.clone(),
            sizes: Vec::new(),
            inertia: 0.0,
            weight: data.total,
            training: Vec::new(),
        };
        let mut labels = labels.unwrap_or_else(|| lloyd::labels(data, &model.scaled_centres()));
        if !plan.given {
            let mut weights = vec![0.0; plan.k];
            labels
                .iter()
                .enumerate()
                .for_each(|(row, &at)| weights[at as usize] += data.weight(row));
            let order = order(&model.centres, &weights);
            let mut place = vec![0; plan.k];
            order.iter().enumerate().for_each(|(to, &from)| place[from] = to as u32);
            labels.iter_mut().for_each(|label| *label = place[*label as usize]);
            model.centres = reordered(&model.centres, &order);
        }
        model.inertia = lloyd::total(data, &model.scaled_centres(), &labels);
        model.sizes = vec![0; plan.k];
        labels.iter().for_each(|&label| model.sizes[label as usize] += 1);
        model.training = labels;
        Ok(model)
    }
}

impl KMeansModel {
    fn remark(&self, report: &mut Report) {
        let empty = self.sizes.iter().filter(|size| **size == 0).count();
        if empty > 0 {
            let of = self.sizes.len();
            report.notes.push(format!(
                "{empty} of {of} clusters have no samples: there are fewer different samples than clusters"
            ));
        }
    }
}

impl Fit for KMeans {
    const NAME: &'static str = "kmeans";
    const CLASS: &'static str = "KMeans";
    const FAMILY: &'static str = "latent";
    type Data = Samples;
    type Model = KMeansModel;
    const TRAITS: Traits = Traits { warm_start: true, streams: true, ..Traits::CLUSTERING };

    fn fit_rows(
        &self,
        rows: &mut dyn RowBlocks,
        job: &Job<'_, Samples>,
    ) -> Option<Result<Fitted<Self>>> {
        Some(stream::fit_rows(self, rows, job))
    }

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        // A model to start from, where it has as many clusters and features.
        let warm = job.warm_model::<KMeansModel>().map(KMeansModel::centres).filter(|centres| {
            let k = self.n_clusters.unwrap_or(centres.n_rows());
            centres.shape() == (k, samples.n_features())
        });
        self.fit_with(samples, warm, job)
    }
}

/// Clusters of samples, for models that begin at them.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// Clusters × features.
    pub centres: Dense<f64>,
    /// The cluster of each sample.
    pub labels: Vec<u32>,
    /// The weighted sum of the squared distances to the centres.
    pub inertia: f64,
}

/// The clusters of features as they are, by Lloyd's algorithm from the best of several starts of k-means++.
///
/// # Shapes
/// `features` is samples × features; there is a weight for each sample, or none.
///
/// # Errors
/// If there are fewer samples of a weight above 0 than clusters, or a number is not finite.
pub fn cluster(
    features: &Matrix,
    weights: Option<&[f64]>,
    n_clusters: usize,
    seed: u64,
    restarts: usize,
) -> Result<Clustering> {
    let samples = Samples::unlabelled(features.clone())?;
    let samples = match weights {
        Some(weights) => samples.with_weights(weights.to_vec())?,
        None => samples,
    };
    let params =
        KMeans::new().n_clusters(n_clusters).n_init(restarts).seed(seed).standardize(false);
    params.check()?;
    let plan = params.plan(&samples, None, &Job::default())?;
    let data = Data::new(
        scaled(samples.features(), None, KMeansMetric::Euclidean),
        samples.weights(),
        KMeansMetric::Euclidean,
    )?;
    let solver = Lloyd { data: &data, k: plan.k, start: Start::PlusPlus { seed }, held_out: None };
    let options = params.loop_options(Instant::now(), 0, &plan);
    let (mut state, _) = iterate::run(&solver, &options, &Job::<Samples>::default())?;
    let labels = solver.labels(&mut state);
    let inertia = lloyd::total(&data, &state.centres, &labels);
    let centres = Dense::new(plan.k, samples.n_features(), state.centres)?;
    Ok(Clustering { centres, labels, inertia })
}

/// The clusters by their weights, the largest first, and by their centres where these are equal: an order that does not
/// depend on how the centres were drawn.
fn order(centres: &Dense<f64>, weights: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    let by_centre = |a: usize, b: usize| {
        let pairs = centres.row(a).iter().zip(centres.row(b));
        pairs.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then_with(|| by_centre(a, b)));
    order
}

fn reordered(centres: &Dense<f64>, order: &[usize]) -> Dense<f64> {
    Dense::from_fn(order.len(), centres.n_cols(), |row, at| centres[(order[row], at)])
}
