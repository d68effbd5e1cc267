//! The start of the iterations: greedy k-means++.

use super::data::{Data, Rows};
use super::search::add_columns;
use gradus_base::parallel;
use gradus_base::random::Stream;
use gradus_kernel::nearest::Centres;

/// Samples of which potentials are summed together; a multiple of the samples in a block at every level.
const ROWS: usize = 1920;

/// Squared distances of the samples to the nearest centre so far, in the unit of single precision.
struct Distances {
    nearest: Vec<f32>,
    /// `Σ w d²` of each block of samples.
    sums: Vec<f64>,
}

/// Draws `k` of the samples as centres: the first by its weight, each further one with a probability proportional to its
/// weight times the squared distance to the nearest centre so far; of `2 + ln k` such draws the one that lowers the sum
/// of these distances most.
pub(super) fn plus_plus(data: &Data<'_>, k: usize, seed: u64, restart: usize) -> Vec<f64> {
    let mut stream = Stream::new(seed, "kmeans.start", restart as u64);
    let (n, d) = (data.len(), data.n_features());
    let mut centres = vec![0.0; k * d];
    let by_weight = Distances::by_weight(data);
    let first = by_weight.draw(data, &mut stream);
    data.row(first, &mut centres[..d]);
    let mut distances = Distances { nearest: vec![f32::INFINITY; n], sums: Vec::new() };
    distances.lower(data, &[first]);
    let draws = 2 + (k as f64).ln() as usize;
    for centre in centres.chunks_exact_mut(d.max(1)).skip(1) {
        let total: f64 = distances.sums.iter().sum();
        // All samples lie on centres: further ones coincide.
        let from = if total > 0.0 { &distances } else { &by_weight };
        let candidates: Vec<usize> = (0..draws).map(|_| from.draw(data, &mut stream)).collect();
        let best = distances.lower(data, &candidates);
        data.row(best, centre);
    }
    centres
}

impl Distances {
    /// All at a distance of 1: what is drawn from these is drawn by the weights.
    fn by_weight(data: &Data<'_>) -> Self {
        let sum = |rows: std::ops::Range<usize>| rows.map(|row| data.weight(row)).sum();
        let sums = parallel::map(parallel::blocks(data.len(), ROWS), sum);
        Self { nearest: Vec::new(), sums }
    }

    fn chance(&self, data: &Data<'_>, row: usize) -> f64 {
        data.weight(row) * self.nearest.get(row).map_or(1.0, |&d| f64::from(d))
    }

    fn draw(&self, data: &Data<'_>, stream: &mut Stream) -> usize {
        let mut at = stream.uniform() * self.sums.iter().sum::<f64>();
        let mut block = 0;
        while block + 1 < self.sums.len() && at >= self.sums[block] {
            at -= self.sums[block];
            block += 1;
        }
        let rows = block * ROWS..data.len().min((block + 1) * ROWS);
        let mut drawn = rows.start;
        for row in rows {
            let chance = self.chance(data, row);
            if chance > 0.0 {
                drawn = row;
                if at < chance {
                    break;
                }
            }
            at -= chance;
        }
        drawn
    }

    /// Takes the candidate that lowers the sum of the distances most, the first of equals, and lowers the distances.
    fn lower(&mut self, data: &Data<'_>, candidates: &[usize]) -> usize {
        let (n, m) = (data.len(), candidates.len());
        let search = Candidates::new(data, candidates);
        let nearest = &self.nearest;
        let parts = parallel::map(parallel::blocks(n, ROWS), |rows| {
            let mut squares = search.squares(data, rows.clone());
            let mut sums = vec![0.0f64; m];
            for (squares, sum) in squares.chunks_exact_mut(rows.len()).zip(&mut sums) {
                for (square, row) in squares.iter_mut().zip(rows.clone()) {
                    *square = square.min(nearest[row]);
                    *sum += data.weight(row) * f64::from(*square);
                }
            }
            (sums, squares)
        });
        let potential = |at: usize| parts.iter().map(|(sums, _)| sums[at]).sum::<f64>();
        let potentials: Vec<f64> = (0..m).map(potential).collect();
        let least =
            |best: usize, at: usize| if potentials[at] < potentials[best] { at } else { best };
        let best = (1..m).fold(0, least);
        for ((_, squares), nearest) in parts.iter().zip(self.nearest.chunks_mut(ROWS)) {
            nearest.copy_from_slice(&squares[best * nearest.len()..][..nearest.len()]);
        }
        self.sums = parts.iter().map(|(sums, _)| sums[best]).collect();
        candidates[best]
    }
}

/// Samples that may become a centre.
struct Candidates<'a> {
    rows: &'a [usize],
    /// The values of the rows in double precision, and the squares of their norms.
    values: Vec<f64>,
    norms: Vec<f64>,
    scores: Scores,
    largest: f32,
}

enum Scores {
    Dense(Centres),
    Sparse { columns: Vec<f32>, stride: usize },
}

impl<'a> Candidates<'a> {
    fn new(data: &Data<'_>, rows: &'a [usize]) -> Self {
        let (d, m) = (data.n_features(), rows.len());
        let mut values = vec![0.0; m * d];
        rows.iter().zip(values.chunks_exact_mut(d.max(1))).for_each(|(&row, to)| data.row(row, to));
        let norms: Vec<f64> =
            values.chunks_exact(d.max(1)).map(|c| c.iter().map(|c| c * c).sum()).collect();
        let largest = rows.iter().fold(0.0f32, |most, &row| most.max(data.norms[row])).sqrt();
        let single = |(at, c): (usize, &f64)| ((c - data.mean[at % d]) * data.unit) as f32;
        let scores = match data.rows {
            Rows::Dense(_) => {
                let single: Vec<f32> = values.iter().enumerate().map(single).collect();
                Scores::Dense(Centres::new(data.level, d, &single))
            }
            Rows::Sparse(_) => {
                let stride = m.next_multiple_of(8);
                let mut columns = vec![0.0f32; d * stride];
                for (at, &c) in values.iter().enumerate() {
                    columns[at % d * stride + at / d] = (c * data.unit) as f32;
                }
                Scores::Sparse { columns, stride }
            }
        };
        Self { rows, values, norms, scores, largest }
    }

    /// The squared distances of some samples, candidate after candidate.
    fn squares(&self, data: &Data<'_>, rows: std::ops::Range<usize>) -> Vec<f32> {
        let (n, m, d) = (rows.len(), self.rows.len(), data.n_features());
        let mut squares = vec![0.0f32; n * m];
        match &self.scores {
            Scores::Dense(centres) => {
                let width = data.level.samples_at_once();
                let blocks = data.blocks(rows.clone());
                let mut scores = vec![0.0; n.next_multiple_of(width) * m];
                centres.scores(blocks, &mut scores);
                for block in 0..n.div_ceil(width) {
                    for at in 0..m {
                        let first = block * width;
                        let some = width.min(n - first);
                        let from = &scores[(block * m + at) * width..][..some];
                        squares[at * n + first..][..some].copy_from_slice(from);
                    }
                }
            }
            Scores::Sparse { columns, stride } => {
                let Rows::Sparse(x) = &data.rows else { return squares };
                let mut scratch = vec![0.0; *stride];
                for (place, row) in rows.clone().enumerate() {
                    scratch.fill(0.0);
                    add_columns(data, x.row(row), columns, &mut scratch);
                    for at in 0..m {
                        let half = 0.5 * data.norms[self.rows[at]];
                        squares[at * n + place] = scratch[at] - half;
                    }
                }
            }
        }
        // From scores to squares; those that rounding may have made are computed again in double precision.
        let share = (2 * d + 8) as f32 * 16.0 * f32::EPSILON;
        for (at, squares) in squares.chunks_exact_mut(n.max(1)).enumerate() {
            for (square, row) in squares.iter_mut().zip(rows.clone()) {
                let norm = data.norms[row];
                *square = norm - 2.0 * *square;
                if *square < share * self.largest * (norm.sqrt() + self.largest) {
                    let centre = &self.values[at * d..(at + 1) * d];
                    let far = data.squared_distance(row, centre, self.norms[at]);
                    *square = (far * data.unit * data.unit) as f32;
                }
            }
        }
        squares
    }
}
