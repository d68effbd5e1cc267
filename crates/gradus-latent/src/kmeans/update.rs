//! The centres of clusters: weighted means of their samples.

use super::KMeansMetric;
use super::data::{Data, Rows, normalise};
use super::search::{self, Assignment, Change};
use gradus_base::parallel;

/// Samples of a cluster that are summed together.
const PIECE: usize = 4096;

/// The sums of the samples of each cluster, less the mean of all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sums {
    pub(super) k: usize,
    /// Clusters × features.
    pub(super) sums: Vec<f64>,
    /// Sums of weights.
    pub(super) weights: Vec<f64>,
    /// Numbers of samples with a weight above 0.
    pub(super) counts: Vec<u64>,
}

/// The numbers below `n`, grouped by a label: group `g` is `order[starts[g]..starts[g + 1]]`, ascending.
fn grouped(k: usize, labels: impl Iterator<Item = u32> + Clone) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0usize; k + 1];
    labels.clone().for_each(|label| starts[label as usize + 1] += 1);
    for at in 0..k {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut order = vec![0u32; starts[k]];
    for (at, label) in labels.enumerate() {
        let place = &mut next[label as usize];
        order[*place] = at as u32;
        *place += 1;
    }
    (starts, order)
}

impl Sums {
    pub(super) fn zeros(k: usize, d: usize) -> Self {
        Self { k, sums: vec![0.0; k * d], weights: vec![0.0; k], counts: vec![0; k] }
    }

    /// The sums of all samples.
    pub(super) fn of(data: &Data<'_>, k: usize, labels: &[u32]) -> Self {
        let mut sums = Self::zeros(k, data.n_features());
        let (starts, order) = grouped(k, labels.iter().copied());
        sums.add(data, &starts, &order, 1.0);
        sums
    }

    /// Moves samples from cluster to cluster.
    pub(super) fn change(&mut self, data: &Data<'_>, changes: &[Change]) {
        let rows = |order: Vec<u32>| -> Vec<u32> {
            order.into_iter().map(|at| changes[at as usize].row).collect()
        };
        let (starts, order) = grouped(self.k, changes.iter().map(|change| change.from));
        self.add(data, &starts, &rows(order), -1.0);
        let (starts, order) = grouped(self.k, changes.iter().map(|change| change.to));
        self.add(data, &starts, &rows(order), 1.0);
        let d = data.n_features();
        for at in 0..self.k {
            // What is left of an empty cluster is rounding.
            if self.counts[at] == 0 {
                self.sums[at * d..(at + 1) * d].fill(0.0);
                self.weights[at] = 0.0;
            }
        }
    }

    /// Adds samples that are grouped by cluster, times `sign`.
    fn add(&mut self, data: &Data<'_>, starts: &[usize], order: &[u32], sign: f64) {
        let d = data.n_features();
        // Pieces of a cluster have sums of their own, which are added in order; of sparse samples, whose sums may be long,
        // a cluster is one piece.
        let piece = match data.rows {
            Rows::Dense(_) => PIECE,
            Rows::Sparse(_) => usize::MAX,
        };
        let counts: Vec<usize> =
            (0..self.k).map(|at| (starts[at + 1] - starts[at]).div_ceil(piece)).collect();
        let mut extra = vec![0.0; counts.iter().map(|n| n.saturating_sub(1)).sum::<usize>() * d];
        let mut work: Vec<(&[u32], &mut [f64])> = Vec::new();
        let mut rest = extra.chunks_exact_mut(d.max(1));
        for (at, sum) in self.sums.chunks_exact_mut(d.max(1)).enumerate() {
            let mut sum = Some(sum);
            let samples = &order[starts[at]..starts[at + 1]];
            for some in samples.chunks(piece.min(samples.len().max(1))) {
                // The first piece is added to the sum itself.
                let to = sum.take().or_else(|| rest.next());
                work.extend(to.map(|to| (some, to)));
            }
        }
        parallel::each(work, |(samples, sum)| data.add_to(samples, sign, sum));
        let mut rest = extra.chunks_exact(d.max(1));
        for (at, sum) in self.sums.chunks_exact_mut(d.max(1)).enumerate() {
            for _ in 1..counts[at] {
                let Some(part) = rest.next() else { break };
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
            let samples = &order[starts[at]..starts[at + 1]];
            match data.weights {
                None => {
                    self.weights[at] += sign * samples.len() as f64;
                    let n = samples.len() as u64;
                    self.counts[at] =
                        if sign > 0.0 { self.counts[at] + n } else { self.counts[at] - n };
                }
                Some(weights) => {
                    let of = samples.iter().map(|&row| weights[row as usize]);
                    self.weights[at] += sign * of.clone().sum::<f64>();
                    let n = of.filter(|weight| *weight > 0.0).count() as u64;
                    self.counts[at] =
                        if sign > 0.0 { self.counts[at] + n } else { self.counts[at] - n };
                }
            }
        }
    }

    /// Gives each empty cluster the sample that is farthest from its own centre, by weight times squared distance, the
    /// farthest first; never the only sample of a cluster, nor one that lies on its centre. Tells what changed.
    pub(super) fn fill_empty(
        &self,
        data: &Data<'_>,
        centres: &[f64],
        assignment: &mut Assignment,
    ) -> Vec<Change> {
        let empty: Vec<usize> = (0..self.k).filter(|&at| self.counts[at] == 0).collect();
        if empty.is_empty() {
            return Vec::new();
        }
        let own = search::own(data, centres, &assignment.labels);
        let cost = |row: usize| data.weight(row) * own[row];
        let mut order: Vec<usize> = (0..data.len()).filter(|&row| cost(row) > 0.0).collect();
        let by_cost = |a: &usize, b: &usize| cost(*b).total_cmp(&cost(*a)).then(a.cmp(b));
        order.sort_unstable_by(by_cost);
        let mut counts = self.counts.clone();
        let mut farthest = order.into_iter();
        let mut changes = Vec::new();
        for to in empty {
            let free = farthest.find(|&row| counts[assignment.labels[row] as usize] > 1);
            let Some(row) = free else { break };
            let from = std::mem::replace(&mut assignment.labels[row], to as u32);
            counts[from as usize] -= 1;
            (assignment.upper[row], assignment.lower[row]) = (f32::INFINITY, 0.0);
            changes.push(Change { row: row as u32, from, to: to as u32 });
        }
        changes
    }

    /// The centres of these sums; a cluster without samples keeps the centre it has.
    pub(super) fn centres(&self, data: &Data<'_>, centres: &mut [f64]) {
        let d = data.n_features().max(1);
        for (at, (sum, centre)) in
            self.sums.chunks_exact(d).zip(centres.chunks_exact_mut(d)).enumerate()
        {
            if self.counts[at] == 0 {
                continue;
            }
            let weight = self.weights[at];
            match data.metric {
                KMeansMetric::Euclidean => {
                    for ((centre, sum), mean) in centre.iter_mut().zip(sum).zip(&data.mean) {
                        *centre = mean + sum / weight;
                    }
                }
                KMeansMetric::Cosine => {
                    let whole: Vec<f64> =
                        sum.iter().zip(&data.mean).map(|(sum, mean)| sum + weight * mean).collect();
                    if whole.iter().any(|x| *x != 0.0) {
                        centre.copy_from_slice(&whole);
                        normalise(centre);
                    }
                }
            }
        }
    }

    /// The objective, from the sums alone: what is left of the squares about the mean of all. `None` where too few digits
    /// would be left.
    pub(super) fn objective(&self, data: &Data<'_>) -> Option<f64> {
        let d = data.n_features().max(1);
        let (mut all, mut explained) = (data.squares, 0.0);
        for (at, sum) in self.sums.chunks_exact(d).enumerate() {
            if self.counts[at] == 0 {
                continue;
            }
            let weight = self.weights[at];
            match data.metric {
                KMeansMetric::Euclidean => {
                    explained += sum.iter().map(|x| x * x).sum::<f64>() / weight;
                }
                KMeansMetric::Cosine => {
                    let whole = sum.iter().zip(&data.mean).map(|(sum, mean)| sum + weight * mean);
                    explained += whole.map(|x| x * x).sum::<f64>().sqrt();
                    all = data.total;
                }
            }
        }
        let left = all - explained;
        (left > 1e-6 * all).then_some(left)
    }
}
