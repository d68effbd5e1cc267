//! A clustering: k-means by Lloyd's algorithm.

use gradus::data::{Dense, Inputs, Matrix, Samples};
use gradus::model::{
    Cluster, Dataset, Fit, Fitted, Job, LoopOptions, Model, Params, Reader, Solver, Step, Stream,
    Traits, Watch, Writer, record, run,
};
use gradus::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// K-means: clusters around centres, each sample in that of the nearest.
///
/// Lloyd's algorithm minimises the sum of squared distances of the samples to their centres: it assigns
/// each sample to the nearest centre, moves each centre to the mean of its samples, and repeats. The
/// centres start at samples drawn far from each other (k-means++). A centre that loses all of its samples
/// moves to the sample that is farthest from its own centre. The sum never rises, and the best of
/// several starts is kept. Samples count by their weights. The objective in the report is the mean squared
/// distance of a sample to its centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Means {
    /// Number of clusters.
    #[schemars(range(min = 1, max = 100_000))]
    pub n_clusters: usize,
    /// Largest number of iterations of each start.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,
    /// A start ends when the objective falls by less than this share of itself.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,
    /// Number of starts; the best is kept.
    #[schemars(range(min = 1, max = 1000))]
    pub restarts: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Means {
    fn default() -> Self {
        Self { n_clusters: 3, max_iter: 300, tol: 1e-6, restarts: 5, seed: 0 }
    }
}

impl Params for Means {}

/// The centres of clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Centres {
    inputs: Inputs,
    centres: Dense<f64>,
    sizes: Vec<u64>,
}

impl Fit for Means {
    const NAME: &'static str = "means";
    const CLASS: &'static str = "Means";
    const FAMILY: &'static str = "cluster";
    type Data = Samples;
    type Model = Centres;
    const TRAITS: Traits = Traits::CLUSTERING;

    fn fit_job(&self, data: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        self.check()?;
        if data.len() < self.n_clusters {
            let (n, k) = (data.len(), self.n_clusters);
            return Err(Error::data(format!("means: {n} samples are fewer than {k} clusters")));
        }
        let weights = data.weights().map_or_else(|| vec![1.0; data.len()], <[f64]>::to_vec);
        let lloyd = Lloyd {
            params: self,
            x: data.features().to_dense(),
            held_out: job.validation.map(|held_out| held_out.features().to_dense()),
            weights,
        };
        let options = LoopOptions {
            model: Self::NAME,
            metric: "mean squared distance",
            max_iter: self.max_iter,
            tol: self.tol,
            restarts: self.restarts,
            seed: self.seed,
            params: record(self),
            fingerprint: Dataset::fingerprint(data),
            ..LoopOptions::default()
        };
        let (centres, report) = run(&lloyd, &options, job)?;
        let mut sizes = vec![0; self.n_clusters];
        lloyd.x.rows().for_each(|row| sizes[nearest(&centres, row).0] += 1);
        let model = Centres { inputs: data.inputs().clone(), centres, sizes };
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// Lloyd's algorithm on some samples.
struct Lloyd<'a> {
    params: &'a Means,
    x: Dense<f64>,
    weights: Vec<f64>,
    held_out: Option<Dense<f64>>,
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The nearest centre, the first of equals, and the squared distance to it.
fn nearest(centres: &Dense<f64>, row: &[f64]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (at, centre) in centres.rows().enumerate() {
        let distance = squared_distance(centre, row);
        if distance < best.1 {
            best = (at, distance);
        }
    }
    best
}

impl Lloyd<'_> {
    /// The mean squared distance to the centres.
    fn objective(&self, centres: &Dense<f64>) -> f64 {
        let pairs = self.x.rows().zip(&self.weights);
        let sum: f64 = pairs.map(|(row, weight)| weight * nearest(centres, row).1).sum();
        sum / self.weights.iter().sum::<f64>()
    }
}

impl Solver for Lloyd<'_> {
    type State = Dense<f64>;

    /// Draws centres by k-means++: each with a probability proportional to the squared distance to
    /// those there are.
    fn start(&self, restart: usize) -> Result<Dense<f64>> {
        let mut stream = Stream::new(self.params.seed, "means.start", restart as u64);
        let mut chances = self.weights.clone();
        let mut left = vec![f64::INFINITY; self.x.n_rows()];
        let mut centres = Vec::with_capacity(self.params.n_clusters * self.x.n_cols());
        for _ in 0..self.params.n_clusters {
            let mut at = stream.uniform() * chances.iter().sum::<f64>();
            let drawn = chances.iter().position(|chance| {
                at -= chance;
                at < 0.0
            });
            // None where all samples lie on centres: any will do.
            let centre = self.x.row(drawn.unwrap_or_else(|| stream.index(self.x.n_rows())));
            centres.extend_from_slice(centre);
            for (row, x) in self.x.rows().enumerate() {
                left[row] = left[row].min(squared_distance(centre, x));
                chances[row] = self.weights[row] * left[row];
            }
        }
        Dense::new(self.params.n_clusters, self.x.n_cols(), centres)
    }

    fn step(&self, centres: &mut Dense<f64>, watch: &Watch<'_>) -> Result<Step> {
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        let (k, d) = centres.shape();
        let (mut sums, mut totals) = (Dense::full(k, d, 0.0), vec![0.0; k]);
        let mut farthest = (f64::NEG_INFINITY, 0);
        for (at, (row, &weight)) in self.x.rows().zip(&self.weights).enumerate() {
            let (cluster, distance) = nearest(centres, row);
            totals[cluster] += weight;
            sums.row_mut(cluster).iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
            if weight * distance > farthest.0 {
                farthest = (weight * distance, at);
            }
        }
        let mut spare = Some(farthest.1);
        for (cluster, total) in totals.into_iter().enumerate() {
            let centre = centres.row_mut(cluster);
            if total > 0.0 {
                let means = sums.row(cluster).iter().map(|sum| sum / total);
                centre.iter_mut().zip(means).for_each(|(centre, mean)| *centre = mean);
            } else if let Some(sample) = spare.take() {
                centre.copy_from_slice(self.x.row(sample));
            }
        }
        Ok(Step::Done(self.objective(centres)))
    }

    fn validate(&self, centres: &Dense<f64>) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let sum: f64 = held_out.rows().map(|row| nearest(centres, row).1).sum();
        Some(sum / held_out.n_rows().max(1) as f64)
    }

    fn write_state<'a>(&self, centres: &'a Dense<f64>, prefix: &str, file: &mut Writer<'a>) {
        let (k, d) = centres.shape();
        file.tensor(&format!("{prefix}centres"), &[k, d], centres.values());
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Dense<f64>> {
        let shape = (self.params.n_clusters, self.x.n_cols());
        let values = file.finite(&format!("{prefix}centres"), &[shape.0, shape.1])?;
        Dense::new(shape.0, shape.1, values)
    }
}

impl Cluster for Centres {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn n_clusters(&self) -> usize {
        self.centres.n_rows()
    }

    fn sizes(&self) -> Vec<u64> {
        self.sizes.clone()
    }

    fn labels(&self, features: &Matrix) -> Result<Vec<Option<u32>>> {
        self.inputs.check_width(features.n_cols())?;
        features.check_finite()?;
        let label = |row: &[f64]| Some(nearest(&self.centres, row).0 as u32);
        Ok(features.to_dense().rows().map(label).collect())
    }

    fn distances(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        self.inputs.check_width(features.n_cols())?;
        features.check_finite()?;
        let x = features.to_dense();
        Ok(Some(Dense::from_fn(x.n_rows(), self.n_clusters(), |row, cluster| {
            squared_distance(self.centres.row(cluster), x.row(row)).sqrt()
        })))
    }
}

impl Model for Centres {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let (k, d) = self.centres.shape();
        self.inputs.write(file);
        file.tensor("centres", &[k, d], self.centres.values());
        file.tensor("sizes", &[k], &self.sizes);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let sizes: Vec<u64> = file.vector("sizes")?;
        let (k, d) = (sizes.len(), inputs.n_features());
        let centres = Dense::new(k, d, file.finite("centres", &[k, d])?)?;
        Ok(Self { inputs, centres, sizes })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
        vec![
            ("features", self.centres.n_cols().to_string()),
            ("clusters", self.n_clusters().to_string()),
            ("samples in each", sizes.join(", ")),
        ]
    }

    fn clusterer(&self) -> Option<&dyn Cluster> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::model::DataKind;

    /// Two pairs of points: by hand, the centres are the means of the pairs, and the mean squared
    /// distance is that of half a pair.
    #[test]
    fn the_centres_are_the_means_of_their_samples() {
        let x = Dense::from_rows(&[[0.0, 0.0], [0.0, 2.0], [10.0, 0.0], [10.0, 4.0]]);
        let samples = Samples::unlabelled(x).unwrap();
        let fitted = Means { n_clusters: 2, ..Means::default() }.fit(&samples).unwrap();
        let mut centres: Vec<&[f64]> = fitted.centres.rows().collect();
        centres.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(centres, [[0.0, 1.0], [10.0, 2.0]]);
        assert_eq!(fitted.report.objective, (1.0 + 1.0 + 4.0 + 4.0) / 4.0);
        assert_eq!(fitted.sizes, [2, 2]);
    }

    #[test]
    fn the_objective_never_rises() {
        let samples = Samples::example(200, 3, &Means::TRAITS).unwrap();
        let params =
            Means { n_clusters: 7, restarts: 1, tol: 0.0, max_iter: 40, ..Means::default() };
        let trace = params.fit(&samples).unwrap().report.trace;
        assert!(trace.windows(2).all(|pair| pair[1].objective <= pair[0].objective + 1e-12));
        assert!(trace.last().unwrap().objective < trace[0].objective);
    }

    /// Fewer different samples than clusters: some centres coincide, and the rest is exact.
    #[test]
    fn repeated_samples_are_no_trouble() {
        let x = Dense::from_rows(&[[1.0], [1.0], [1.0], [5.0]]);
        let samples = Samples::unlabelled(x).unwrap();
        let fitted = Means { n_clusters: 3, ..Means::default() }.fit(&samples).unwrap();
        assert_eq!(fitted.report.objective, 0.0);
        assert_eq!(fitted.sizes.iter().sum::<u64>(), 4);
    }

    #[test]
    fn fewer_samples_than_clusters_are_refused() {
        let samples = Samples::unlabelled(Dense::from_rows(&[[1.0], [2.0]])).unwrap();
        let error = Means::default().fit(&samples).unwrap_err().to_string();
        assert!(error.contains("2 samples") && error.contains("3 clusters"), "{error}");
    }
}
