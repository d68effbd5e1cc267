//! Mini-batch k-means: centres as running means of the samples that small batches assigned to them.

use super::data::{Data, normalise};
use super::lloyd::{self, Start};
use super::search::Prepared;
use super::{KMeansMetric, start};
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_file::{Reader, Writer};

/// Batches between two looks for centres without samples.
const LOOK: u64 = 16;

/// Mini-batch k-means on some samples. An iteration goes once over all of them, in batches and in random order.
pub(super) struct MiniBatch<'a> {
    pub(super) data: &'a Data<'a>,
    pub(super) k: usize,
    pub(super) start: Start<'a>,
    pub(super) batch: usize,
    pub(super) seed: u64,
    pub(super) held_out: Option<&'a Data<'a>>,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) centres: Vec<f64>,
    /// Weights of the samples that each centre is the mean of.
    weights: Vec<f64>,
    restart: u64,
    iterations: u64,
}

impl Solver for MiniBatch<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let centres = match self.start {
            Start::PlusPlus { seed } => start::plus_plus(self.data, self.k, seed, restart),
            Start::Given(centres) => centres.to_vec(),
        };
        let weights = vec![0.0; self.k];
        Ok(State { centres, weights, restart: restart as u64, iterations: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let (data, d) = (self.data, self.data.n_features());
        let mut next = state.clone();
        let index = state.restart << 32 | state.iterations;
        let mut stream = Stream::new(self.seed, "kmeans.batches", index);
        let mut order: Vec<u32> = (0..data.len() as u32).collect();
        stream.shuffle(&mut order);
        let (mut row, mut sum) = (vec![0.0; d], 0.0);
        for (number, batch) in (0u64..).zip(order.chunks(self.batch)) {
            if watch.stopped() {
                return Ok(Step::Stopped);
            }
            let prepared = Prepared::new(data, &next.centres);
            let labels = prepared.labels_of(data, batch);
            let mut farthest = (0.0, None);
            for (&sample, &label) in batch.iter().zip(&labels) {
                let far = prepared.dissimilarity(data, sample as usize, label as usize);
                let cost = data.weight(sample as usize) * far;
                sum += cost;
                if cost > farthest.0 {
                    farthest = (cost, Some(sample));
                }
            }
            for (&sample, &label) in batch.iter().zip(&labels) {
                let (weight, label) = (data.weight(sample as usize), label as usize);
                if weight == 0.0 {
                    continue;
                }
                next.weights[label] += weight;
                let share = weight / next.weights[label];
                data.row(sample as usize, &mut row);
                let centre = &mut next.centres[label * d..(label + 1) * d];
                centre.iter_mut().zip(&row).for_each(|(c, x)| *c += share * (x - *c));
            }
            if data.metric == KMeansMetric::Cosine {
                next.centres.chunks_exact_mut(d.max(1)).for_each(normalise);
            }
            // A centre that has hardly any samples begins again at the sample of the batch that is farthest from its own.
            if number % LOOK == LOOK - 1 {
                let most = next.weights.iter().copied().fold(0.0, f64::max);
                let lost = (0..self.k).find(|&at| next.weights[at] < 0.001 * most);
                if let (Some(lost), Some(sample)) = (lost, farthest.1) {
                    data.row(sample as usize, &mut next.centres[lost * d..(lost + 1) * d]);
                    let least = next.weights.iter().copied().filter(|w| *w >= 0.001 * most);
                    next.weights[lost] = least.fold(f64::INFINITY, f64::min);
                }
            }
        }
        next.iterations += 1;
        *state = next;
        Ok(Step::Done(sum))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out?;
        Some(lloyd::cost(held_out, &state.centres).1 / held_out.total)
    }

    fn keeps_last(&self) -> bool {
        true
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        let (k, d) = (self.k, self.data.n_features());
        file.set(&format!("{prefix}at"), &[state.restart, state.iterations]);
        file.tensor(&format!("{prefix}centres"), &[k, d], &state.centres);
        file.tensor(&format!("{prefix}weights"), &[k], &state.weights);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (k, d) = (self.k, self.data.n_features());
        let [restart, iterations] = file.get(&format!("{prefix}at"))?;
        let centres = file.finite(&format!("{prefix}centres"), &[k, d])?;
        let weights = file.finite(&format!("{prefix}weights"), &[k])?;
        Ok(State { centres, weights, restart, iterations })
    }
}
