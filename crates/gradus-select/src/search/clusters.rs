//! Choosing the number of clusters, by criteria that need no held-out data.
//!
//! | criterion | better | what it asks |
//! |---|---|---|
//! | silhouette | higher | are samples nearer to their own cluster than to the next one? |
//! | BIC, AIC | lower | is the likelihood worth its parameters? Of models that know densities and count parameters |
//! | gap | the first that the next one does not beat by a standard error | are clusters tighter than in data without any? |
//! | stability | higher | do fits to halves of the data put samples together alike? |
//!
//! All are functions of data, parameters and seed.

use super::{Axis, Search, grid};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::cluster::Cluster;
use gradus_core::estimator::{AnyFitted, Run};
use gradus_data::{Dense, Matrix, Samples};
use gradus_kernel::linalg;
use gradus_metrics::clustering::{Agreement, Silhouette};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Samples that silhouettes and agreements are measured on, and that the gap is measured with, at most.
const SAMPLES: usize = 2000;
/// Data sets without clusters that the gap is measured by.
const REFERENCES: usize = 10;
/// Pairs of halves whose clusters are compared.
const PAIRS: usize = 5;
/// Samples in a half at most.
const HALF: usize = 5000;
/// Data of more features has reference data along the features, not along its principal axes.
const ROTATED: usize = 300;

/// The criterion for the number of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Criterion {
    /// The mean silhouette.
    Silhouette,
    /// The Bayesian information criterion.
    Bic,
    /// Akaike's information criterion.
    Aic,
    /// The gap statistic.
    Gap,
    /// The adjusted Rand index of clusters of halves of the data.
    Stability,
}

impl Criterion {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Silhouette, Self::Bic, Self::Aic, Self::Gap, Self::Stability];

    /// Returns the name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Silhouette => "silhouette",
            Self::Bic => "BIC",
            Self::Aic => "AIC",
            Self::Gap => "gap",
            Self::Stability => "stability",
        }
    }

    /// Whether a larger value is better.
    pub fn higher_is_better(self) -> bool {
        !matches!(self, Self::Bic | Self::Aic)
    }

    /// The criterion of this name.
    ///
    /// # Errors
    /// If there is none; the message lists those there are.
    pub fn parse(name: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|one| one.name().eq_ignore_ascii_case(name));
        known.copied().ok_or_else(|| Error::UnknownName {
            what: "criterion",
            name: name.to_owned(),
            known: Self::ALL.map(|one| one.name().to_lowercase()).join(", "),
        })
    }
}

/// A value and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// The standard error; 0 where there is none.
    pub error: f64,
}

/// One combination of parameters, and what the criteria say of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterCandidate {
    /// The parameters that were set.
    pub params: Map<String, Value>,
    /// How many clusters have a sample.
    pub clusters: usize,
    /// The values of the criteria, in the order of [`Criterion::ALL`]; `None` where a criterion has no value.
    pub measures: Vec<Option<Measured>>,
}

impl ClusterCandidate {
    /// Returns the value of a criterion.
    pub fn measure(&self, criterion: Criterion) -> Option<Measured> {
        self.measures[criterion as usize]
    }
}

/// The result of a search for the number of clusters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClustersFound {
    /// The candidates, in the order of the grid.
    pub candidates: Vec<ClusterCandidate>,
    /// The candidate that each criterion chooses, of those that say something.
    pub choices: Vec<(Criterion, usize)>,
    /// The criterion that decides.
    pub criterion: Criterion,
    /// The candidate it chooses.
    pub best: usize,
    /// Things worth knowing.
    pub notes: Vec<String>,
}

/// The fits of a candidate.
#[derive(Clone, Copy)]
enum Task {
    /// All samples.
    Whole,
    /// Some samples, or (from 1) data without clusters that is like them.
    Reference(usize),
    /// A pair of halves.
    Pair(usize),
}

/// The result of a fit.
enum Finding {
    Whole { clusters: usize, silhouette: Option<f64>, bic: Option<f64>, aic: Option<f64> },
    LogWithin(Option<f64>),
    Agreement(Option<f64>),
}

fn tasks() -> impl Iterator<Item = Task> {
    let references = (0..=REFERENCES).map(Task::Reference);
    std::iter::once(Task::Whole).chain(references).chain((0..PAIRS).map(Task::Pair))
}

impl Search<'_> {
    /// How many fits [`Search::run_clusters`] takes.
    pub fn fits_clusters(&self) -> usize {
        let candidates: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        candidates * (2 + REFERENCES + 2 * PAIRS)
    }

    /// Tries every candidate of a clustering, and measures its clusters. `observe` is called with the number of fits that are done. Without a
    /// criterion BIC decides, of models that have it, else the silhouette.
    ///
    /// # Errors
    /// If a candidate does not fit the data, the criterion says nothing of this model, or it was stopped.
    pub fn run_clusters(
        &self,
        data: &Samples,
        criterion: Option<Criterion>,
        observe: &(dyn Fn(usize) + Sync),
    ) -> Result<ClustersFound> {
        let params: Vec<Map<String, Value>> =
            grid::chains(&self.fixed, &self.axes).into_iter().flatten().collect();
        let some = subsample(data, SAMPLES, self.seed, "select.some");
        let done = AtomicUsize::new(0);
        let work: Vec<(usize, Task)> =
            (0..params.len()).flat_map(|at| tasks().map(move |task| (at, task))).collect();
        let axes = Reference::new(some.features());
        let found = parallel::try_map(work, |(at, task)| {
            let finding = self.measure(&params[at], data, &some, &axes, task);
            let fits = if matches!(task, Task::Pair(_)) { 2 } else { 1 };
            observe(done.fetch_add(fits, Ordering::Relaxed) + fits);
            finding.map(|finding| (at, finding))
        });
        if self.stop.requested() {
            return Err(Error::data("search: interrupted; nothing to report"));
        }
        let mut findings: Vec<Vec<Finding>> = params.iter().map(|_| Vec::new()).collect();
        found?.into_iter().for_each(|(at, finding)| findings[at].push(finding));
        let candidates: Vec<ClusterCandidate> = params
            .into_iter()
            .zip(findings)
            .map(|(params, found)| summed(params, &found))
            .collect();
        let choices: Vec<(Criterion, usize)> = Criterion::ALL
            .into_iter()
            .filter_map(|one| Some((one, choice(one, &candidates, &self.axes)?)))
            .collect();
        let by = |wanted: Criterion| choices.iter().find(|(one, _)| *one == wanted).copied();
        let (criterion, best) = match criterion {
            Some(wanted) => by(wanted).ok_or_else(|| {
                let known: Vec<&str> = choices.iter().map(|(one, _)| one.name()).collect();
                Error::data(format!(
                    "option `criterion` = {}: it says nothing of these candidates of `{}`; {} do",
                    wanted.name().to_lowercase(),
                    self.model.name(),
                    known.join(", ")
                ))
            })?,
            None => by(Criterion::Bic)
                .or_else(|| by(Criterion::Silhouette))
                .or_else(|| choices.first().copied())
                .ok_or_else(|| {
                    Error::data("select: no criterion says anything; are all samples equal?")
                })?,
        };
        let mut notes = Vec::new();
        if data.len() > SAMPLES {
            notes.push(format!(
                "silhouettes, gaps and stabilities are measured on {SAMPLES} of {} samples",
                data.len()
            ));
        }
        Ok(ClustersFound { candidates, choices, criterion, best, notes })
    }

    /// Fits the candidate that was chosen on all the data.
    ///
    /// # Errors
    /// If the fit fails.
    pub fn refit_clusters(
        &self,
        found: &ClustersFound,
        data: &Samples,
        run: &Run<'_>,
    ) -> Result<AnyFitted> {
        self.model.fit(&found.candidates[found.best].params, data, None, run)
    }

    fn measure(
        &self,
        params: &Map<String, Value>,
        data: &Samples,
        some: &Samples,
        reference: &Reference,
        task: Task,
    ) -> Result<Finding> {
        let fit = |samples: &Samples| {
            let run = Run { stop: self.stop.clone(), ..Run::default() };
            self.model.fit(params, samples, None, &run)
        };
        match task {
            Task::Whole => {
                let fitted = fit(data)?;
                let model = fitted.clusterer()?;
                let labels = labels(model, data.features())?;
                let clusters = count(&labels);
                let silhouette = match clusters > 1 && clusters < data.len() {
                    true => {
                        let features = model.measured(data.features());
                        Some(Silhouette::new(&features, &labels, SAMPLES, self.seed))
                    }
                    false => None,
                };
                // Of a draw of many samples all may be of one cluster.
                let silhouette = silhouette.and_then(Result::ok).map(|found| found.mean);
                let (mut bic, mut aic) = (None, None);
                if let Some(density) = fitted.model.density()
                    && let Some(p) = density.n_parameters()
                {
                    let logs = density.log_density(data)?;
                    let weight = |row: usize| data.weights().map_or(1.0, |w| w[row]);
                    let n: f64 = (0..data.len()).map(weight).sum();
                    let sum: f64 =
                        logs.iter().enumerate().map(|(row, log)| weight(row) * log).sum();
                    bic = Some(-2.0 * sum + p * n.ln());
                    aic = Some(-2.0 * sum + 2.0 * p);
                }
                Ok(Finding::Whole { clusters, silhouette, bic, aic })
            }
            Task::Reference(0) => log_within(&fit(some)?, some).map(Finding::LogWithin),
            Task::Reference(index) => {
                let drawn = reference.draw(some.len(), self.seed, index as u64)?;
                log_within(&fit(&drawn)?, &drawn).map(Finding::LogWithin)
            }
            Task::Pair(index) => {
                let mut rows: Vec<u32> = (0..data.len() as u32).collect();
                Stream::new(self.seed, "select.halves", index as u64).shuffle(&mut rows);
                let half = (rows.len() / 2).min(HALF);
                let mut found = Vec::new();
                for part in [&rows[..half], &rows[half..2 * half]] {
                    let mut part = part.to_vec();
                    part.sort_unstable();
                    let Ok(fitted) = fit(&data.select_rows(&part)) else {
                        // A half may have fewer samples than clusters.
                        return Ok(Finding::Agreement(None));
                    };
                    found.push(labels(fitted.clusterer()?, some.features())?);
                }
                let several = found.iter().all(|labels| count(labels) > 1);
                let agreement = match several {
                    true => Some(Agreement::new(&found[0], &found[1])?.adjusted_rand),
                    false => None,
                };
                Ok(Finding::Agreement(agreement))
            }
        }
    }
}

/// The cluster of each sample; samples of none count as one more.
fn labels(model: &dyn Cluster, features: &Matrix) -> Result<Vec<u32>> {
    let none = model.n_clusters() as u32;
    Ok(model.labels(features)?.into_iter().map(|label| label.unwrap_or(none)).collect())
}

fn count(labels: &[u32]) -> usize {
    labels.iter().collect::<std::collections::BTreeSet<_>>().len()
}

/// Some of the samples, at random but in their order.
fn subsample(data: &Samples, most: usize, seed: u64, purpose: &str) -> Samples {
    if data.len() <= most {
        return data.clone();
    }
    let mut rows: Vec<u32> = (0..data.len() as u32).collect();
    Stream::new(seed, purpose, 0).shuffle(&mut rows);
    rows.truncate(most);
    rows.sort_unstable();
    data.select_rows(&rows)
}

/// The logarithm of the sum of the squared distances of samples to the mean of their cluster; `None` if that is 0.
fn log_within(fitted: &AnyFitted, samples: &Samples) -> Result<Option<f64>> {
    let model = fitted.clusterer()?;
    let labels = labels(model, samples.features())?;
    let x = model.measured(samples.features()).to_dense();
    let (d, k) = (x.n_cols(), model.n_clusters() + 1);
    let weight = |row: usize| samples.weights().map_or(1.0, |weights| weights[row]);
    let (mut sums, mut seen) = (vec![0.0; k * d], vec![0.0; k]);
    for (row, (values, &label)) in x.rows().zip(&labels).enumerate() {
        let to = &mut sums[label as usize * d..][..d];
        to.iter_mut().zip(values).for_each(|(to, x)| *to += weight(row) * x);
        seen[label as usize] += weight(row);
    }
    let mut within = 0.0;
    for (row, (values, &label)) in x.rows().zip(&labels).enumerate() {
        let (sums, n) = (&sums[label as usize * d..][..d], seen[label as usize]);
        let square = |(x, sum): (&f64, &f64)| if n > 0.0 { (x - sum / n).powi(2) } else { 0.0 };
        within += weight(row) * values.iter().zip(sums).map(square).sum::<f64>();
    }
    Ok((within > 0.0 && within.is_finite()).then(|| within.ln()))
}

/// The box that data without clusters is drawn from: along the principal axes of the samples.
struct Reference {
    mean: Vec<f64>,
    /// Axes × features; empty for the axes of the features.
    axes: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Reference {
    fn new(features: &Matrix) -> Self {
        let x = features.to_dense();
        let (n, d) = x.shape();
        // What is missing is taken as the mean of its feature.
        let mut mean = vec![0.0; d];
        for (j, mean) in mean.iter_mut().enumerate() {
            let known: Vec<f64> = x.column(j).filter(|x| !x.is_nan()).collect();
            *mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        }
        let off = |row: usize, j: usize| {
            let x = x[(row, j)];
            if x.is_nan() { 0.0 } else { x - mean[j] }
        };
        let mut axes = Vec::new();
        if d <= ROTATED {
            let rows: Vec<f64> = (0..n * d).map(|at| off(at / d, at % d)).collect();
            let mut scatter = vec![0.0; d * d];
            linalg::add_gram(d, n, &rows, &mut scatter);
            if let Ok(eigen) = linalg::symmetric_eigen(d, &scatter) {
                axes = eigen.vectors;
            }
        }
        let (mut low, mut high) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
        for row in 0..n {
            for at in 0..d {
                let along = match axes.is_empty() {
                    true => off(row, at),
                    false => (0..d).map(|j| off(row, j) * axes[at * d + j]).sum(),
                };
                low[at] = low[at].min(along);
                high[at] = high[at].max(along);
            }
        }
        Self { mean, axes, low, high }
    }

    fn draw(&self, n: usize, seed: u64, index: u64) -> Result<Samples> {
        let d = self.mean.len();
        let mut stream = Stream::new(seed, "select.gap", index);
        let mut x = Dense::full(n, d, 0.0);
        for row in 0..n {
            let z: Vec<f64> =
                (0..d).map(|at| stream.uniform_in(self.low[at], self.high[at])).collect();
            for j in 0..d {
                let off = match self.axes.is_empty() {
                    true => z[j],
                    false => (0..d).map(|at| z[at] * self.axes[at * d + j]).sum(),
                };
                x[(row, j)] = self.mean[j] + off;
            }
        }
        Samples::unlabelled(x)
    }
}

/// The mean and its standard error; `None` of nothing.
fn mean(values: &[f64]) -> Option<Measured> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
    let error = if n > 1.0 { (squares / (n - 1.0) / n).sqrt() } else { 0.0 };
    Some(Measured { value, error })
}

fn summed(params: Map<String, Value>, found: &[Finding]) -> ClusterCandidate {
    let exactly = |value: Option<f64>| value.map(|value| Measured { value, error: 0.0 });
    let (mut clusters, mut measures) = (0, vec![None; Criterion::ALL.len()]);
    let (mut within, mut agreements, mut torn) = (Vec::new(), Vec::new(), false);
    for finding in found {
        match *finding {
            Finding::Whole { clusters: n, silhouette, bic, aic } => {
                clusters = n;
                measures[Criterion::Silhouette as usize] = exactly(silhouette);
                measures[Criterion::Bic as usize] = exactly(bic);
                measures[Criterion::Aic as usize] = exactly(aic);
            }
            Finding::LogWithin(log) => within.push(log),
            Finding::Agreement(Some(value)) => agreements.push(value),
            Finding::Agreement(None) => torn = true,
        }
    }
    if let Some(within) = within.into_iter().collect::<Option<Vec<f64>>>()
        && let Some((own, references)) = within.split_first()
        && let Some(expected) = mean(references)
    {
        let b = references.len() as f64;
        let spread = references.iter().map(|x| (x - expected.value).powi(2)).sum::<f64>() / b;
        let error = spread.sqrt() * (1.0 + 1.0 / b).sqrt();
        measures[Criterion::Gap as usize] = Some(Measured { value: expected.value - own, error });
    }
    if !torn && clusters > 1 {
        measures[Criterion::Stability as usize] = mean(&agreements);
    }
    ClusterCandidate { params, clusters, measures }
}

/// The candidate that a criterion chooses.
fn choice(one: Criterion, candidates: &[ClusterCandidate], axes: &[Axis]) -> Option<usize> {
    let known: Vec<(usize, Measured)> = candidates
        .iter()
        .enumerate()
        .filter_map(|(at, candidate)| Some((at, candidate.measure(one)?)))
        .collect();
    if one == Criterion::Gap && axes.len() == 1 {
        // Tibshirani's rule: the first that is within a standard error of the next.
        let mut ordered = known.clone();
        ordered.sort_by_key(|(at, _)| (candidates[*at].clusters, *at));
        let first =
            ordered.windows(2).find(|pair| pair[0].1.value >= pair[1].1.value - pair[1].1.error);
        return first.map(|pair| pair[0].0).or(ordered.last().map(|(at, _)| *at));
    }
    let sign = if one.higher_is_better() { 1.0 } else { -1.0 };
    // Of equals the first, but of equally stable ones the last: more clusters say more.
    let mut best: Option<(usize, f64)> = None;
    for (at, measured) in known {
        let value = sign * measured.value;
        let wins = match best {
            None => true,
            Some((_, most)) if one == Criterion::Stability => value >= most - 1e-12,
            Some((_, most)) => value > most,
        };
        if wins {
            best = Some((at, value.max(best.map_or(f64::NEG_INFINITY, |(_, most)| most))));
        }
    }
    best.map(|(at, _)| at)
}
