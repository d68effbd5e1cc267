//! The number of clusters, where it was left out.

use super::data::scaled;
use super::{KMeans, cluster};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::estimator::{Fit as _, Job};
use gradus_core::progress::Event;
use gradus_core::report::Choice;
use gradus_data::{Matrix, Samples};
use gradus_metrics::clustering::Distances;

/// Numbers of clusters are tried on this many samples at most.
const SAMPLES: usize = 2000;
/// Starts of each.
const STARTS: usize = 3;
/// The numbers that are tried first; then those between the best one and its neighbours.
const TRIED: [usize; 21] =
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64];
/// A cluster has this many of these samples at least, on average.
const SIZE: usize = 4;
/// Below this silhouette there is no structure to speak of (Kaufman, Rousseeuw: Finding groups in data, 1990).
const WEAK: f64 = 0.25;

/// The number of clusters with the highest mean silhouette.
pub(super) fn choose(
    params: &KMeans,
    samples: &Samples,
    scale: Option<&[f64]>,
    job: &Job<'_, Samples>,
) -> Result<Choice> {
    let weighty = |row: &u32| samples.weights().is_none_or(|w| w[*row as usize] > 0.0);
    let mut rows: Vec<u32> = (0..samples.len() as u32).filter(weighty).collect();
    let n = rows.len();
    let of = if n > SAMPLES { format!(" on {SAMPLES} of the samples") } else { String::new() };
    if n > SAMPLES {
        Stream::new(params.seed, "kmeans.choose", 0).shuffle(&mut rows);
        rows.truncate(SAMPLES);
        rows.sort_unstable();
    }
    let features = samples.features().select_rows(&rows);
    let features = scaled(&features, scale, params.metric).into_owned();
    let weights: Option<Vec<f64>> =
        samples.weights().map(|w| rows.iter().map(|&row| w[row as usize]).collect());
    let what = "n_clusters";
    job.observer.notice(&Event::Choosing { model: KMeans::NAME, trial: 1, what });
    let tried = Tried::new(&features, weights.as_deref(), params.seed, job)?;
    let most = rows.len() / SIZE;
    let grid: Vec<usize> = TRIED.into_iter().filter(|&k| k <= most.max(2) && k < n).collect();
    let mut found = tried.all(&grid)?;
    // Between the best and its neighbours, closer and closer.
    while let Some((_, best)) = found.best() {
        let below = found.0.iter().map(|&(k, _)| k).filter(|&k| k < best).max();
        let above = found.0.iter().map(|&(k, _)| k).filter(|&k| k > best).min();
        let middle = |other: usize| (best + other) / 2;
        let between: Vec<usize> = [below, above].into_iter().flatten().map(middle).collect();
        let next: Vec<usize> =
            between.into_iter().filter(|&k| found.0.iter().all(|&(known, _)| known != k)).collect();
        if next.is_empty() {
            break;
        }
        found.0.extend(tried.all(&next)?.0);
    }
    let Some((silhouette, k)) = found.best() else {
        let k = n.min(1);
        let reason = "there are no two groups of different samples";
        return Ok(Choice::new("n_clusters", k as f64, reason));
    };
    let last = grid.last().copied().unwrap_or(k);
    let mut reason =
        format!("the highest silhouette ({silhouette:.3}) of 2 to {last} clusters{of}");
    if silhouette < WEAK {
        reason += "; it is low: the samples do not fall into clear groups";
    }
    Ok(Choice::new("n_clusters", k as f64, reason))
}

/// Numbers of clusters and their silhouettes.
struct Found(Vec<(usize, f64)>);

impl Found {
    /// The highest silhouette, and the smallest number of clusters that has it.
    fn best(&self) -> Option<(f64, usize)> {
        let mut best: Option<(f64, usize)> = None;
        for &(k, silhouette) in &self.0 {
            let wins =
                best.is_none_or(|(most, of)| silhouette > most || (silhouette == most && k < of));
            if wins {
                best = Some((silhouette, k));
            }
        }
        best
    }
}

/// The samples that numbers of clusters are tried on.
struct Tried<'a> {
    features: &'a Matrix,
    weights: Option<&'a [f64]>,
    distances: Distances,
    seed: u64,
    job: &'a Job<'a, Samples>,
}

impl<'a> Tried<'a> {
    fn new(
        features: &'a Matrix,
        weights: Option<&'a [f64]>,
        seed: u64,
        job: &'a Job<'a, Samples>,
    ) -> Result<Self> {
        Ok(Self { features, weights, distances: Distances::new(features)?, seed, job })
    }

    /// The silhouettes of these numbers of clusters, of those that have one.
    fn all(&self, numbers: &[usize]) -> Result<Found> {
        let found = parallel::map(numbers, |&k| Ok((k, self.silhouette(k)?)));
        let found: Result<Vec<(usize, Option<f64>)>> = found.into_iter().collect();
        Ok(Found(found?.into_iter().filter_map(|(k, value)| Some((k, value?))).collect()))
    }

    fn silhouette(&self, k: usize) -> Result<Option<f64>> {
        // What was found so far stands: the fit that follows is told to stop as well.
        if self.job.stop.requested() {
            return Ok(None);
        }
        let labels = cluster(self.features, self.weights, k, self.seed, STARTS)?.labels;
        // Fewer different samples than two have no silhouette.
        let Ok(values) = self.distances.silhouettes(&labels) else { return Ok(None) };
        let weight = |row: usize| self.weights.map_or(1.0, |weights| weights[row]);
        let total: f64 = (0..values.len()).map(weight).sum();
        let sum: f64 = values.iter().enumerate().map(|(row, value)| weight(row) * value).sum();
        Ok(Some(sum / total))
    }
}
