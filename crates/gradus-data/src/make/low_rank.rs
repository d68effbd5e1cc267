//! A planted low-rank matrix, seen in part and through noise.

use super::{at_least, setters};
use crate::{Csr, Dense};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};

/// How the mass of the planted factors is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coherence {
    /// Gaussian factors: no entry matters more than another, the easy case of completion theory.
    #[default]
    Incoherent,
    /// One row and column in twenty carries ten times the mass, and is missed by sparse sampling.
    Spiky,
}

/// A planted matrix `M = U Vᵀ` of rank `rank`, observed in part: `X_ij = M_ij + noise`.
///
/// `U` (rows × rank) and `V` (cols × rank) are Gaussian, scaled so that the entries of `M` have
/// variance 1 in the mean; `noise` is therefore the inverse of the signal-to-noise ratio.
///
/// ```
/// use gradus_data::make::LowRankSpec;
/// let made = LowRankSpec::new(30, 20, 2).observed(0.5).noise(0.1).make(1)?;
/// assert_eq!(made.observed.nnz(), 300);
/// assert_eq!(made.truth().shape(), (30, 20));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LowRankSpec {
    /// Number of rows. Default 200.
    pub rows: usize,
    /// Number of columns. Default 100.
    pub cols: usize,
    /// The rank. Default 5.
    pub rank: usize,
    /// Standard deviation of the noise on each observed entry. Default 0.
    pub noise: f64,
    /// The part of all entries that is observed, exact to one entry. Default 1.
    pub observed: f64,
    /// How the factors' mass is spread. Default incoherent.
    pub coherence: Coherence,
}

impl Default for LowRankSpec {
    fn default() -> Self {
        let coherence = Coherence::Incoherent;
        Self { rows: 200, cols: 100, rank: 5, noise: 0.0, observed: 1.0, coherence }
    }
}

/// A partly observed matrix and the factors behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeLowRank {
    /// The observed entries, rows × cols, with noise.
    pub observed: Csr,
    /// The left factors, rows × rank.
    pub left: Dense<f64>,
    /// The right factors, cols × rank.
    pub right: Dense<f64>,
    /// Standard deviation of the noise.
    pub noise: f64,
}

impl MadeLowRank {
    /// The planted value of one entry.
    ///
    /// # Panics
    /// If `row` or `col` is outside the matrix.
    pub fn value(&self, row: usize, col: usize) -> f64 {
        self.left.row(row).iter().zip(self.right.row(col)).map(|(a, b)| a * b).sum()
    }

    /// The whole planted matrix.
    pub fn truth(&self) -> Dense<f64> {
        Dense::from_fn(self.left.n_rows(), self.right.n_rows(), |row, col| self.value(row, col))
    }
}

impl LowRankSpec {
    /// A matrix of this shape and rank, the rest as by default.
    pub fn new(rows: usize, cols: usize, rank: usize) -> Self {
        Self { rows, cols, rank, ..Self::default() }
    }

    setters! { noise: f64, observed: f64, coherence: Coherence }

    /// Checks every parameter.
    ///
    /// # Errors
    /// For the first parameter outside its range, named with the rule it broke.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [("rows", self.rows), ("cols", self.cols)] {
            if value == 0 || value >= u32::MAX as usize {
                return Err(Error::parameter(name, value, "must be between 1 and 2^32 - 2"));
            }
        }
        let most = self.rows.min(self.cols);
        if !(1..=most).contains(&self.rank) {
            let rule =
                format!("must be between 1 and {most} for a {} × {} matrix", self.rows, self.cols);
            return Err(Error::parameter("rank", self.rank, rule));
        }
        super::check_sizes(self.rows.max(self.cols), self.rank)?;
        at_least("noise", self.noise, 0.0)?;
        if !(self.observed > 0.0 && self.observed <= 1.0) {
            return Err(Error::parameter("observed", self.observed, "must be above 0, at most 1"));
        }
        Ok(())
    }

    /// Makes the matrix.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn make(&self, seed: u64) -> Result<MadeLowRank> {
        self.check()?;
        let left = self.factors(self.rows, "make low rank: left", seed)?;
        let right = self.factors(self.cols, "make low rank: right", seed)?;
        let mut made = MadeLowRank { observed: Csr::default(), left, right, noise: self.noise };

        // Exactly round(observed · rows · cols) entries: row r gets the difference of two roundings.
        let before = |row: usize| (self.observed * row as f64 * self.cols as f64).round() as usize;
        let rows: Vec<(Vec<u32>, Vec<f32>)> = parallel::map_below(self.rows, 32, |row| {
            let mut stream = Stream::new(seed, "make low rank: row", row as u64);
            let count = (before(row + 1) - before(row)).min(self.cols);
            let columns = stream.sample(self.cols, count).expect("count is at most cols");
            let values = columns
                .iter()
                .map(|&col| (made.value(row, col) + self.noise * stream.normal()) as f32)
                .collect();
            (columns.into_iter().map(|col| col as u32).collect(), values)
        });
        let mut indptr = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for (columns, row) in rows {
            indices.extend(columns);
            values.extend(row);
            indptr.push(indices.len());
        }
        made.observed = Csr::new(self.cols, indptr, indices, values)?;
        Ok(made)
    }

    fn factors(&self, n: usize, purpose: &str, seed: u64) -> Result<Dense<f64>> {
        let scale = 1.0 / (self.rank as f64).sqrt().sqrt();
        let mut spikes = vec![1.0; n];
        if self.coherence == Coherence::Spiky {
            let chosen = Stream::new(seed, purpose, u64::MAX).sample(n, n.div_ceil(20))?;
            // Ten times the mass of the others, and a mean mass of 1 all the same.
            let share = chosen.len() as f64 / n as f64;
            let low = 1.0 / (1.0 + 9.0 * share);
            spikes.fill(low.sqrt());
            chosen.iter().for_each(|&at| spikes[at] = (10.0 * low).sqrt());
        }
        let mut values = vec![0.0; n * self.rank];
        parallel::each_row(&mut values, self.rank, |at, row| {
            let mut stream = Stream::new(seed, purpose, at as u64);
            row.iter_mut().for_each(|x| *x = scale * spikes[at] * stream.normal());
        });
        Dense::new(n, self.rank, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_square(values: impl Iterator<Item = f64>) -> f64 {
        let (n, sum) = values.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v * v));
        sum / n
    }

    #[test]
    fn entries_have_unit_variance_and_the_count_is_exact() {
        for coherence in [Coherence::Incoherent, Coherence::Spiky] {
            let spec = LowRankSpec::new(400, 300, 6).observed(0.123).coherence(coherence);
            let made = spec.make(1).unwrap();
            assert_eq!(made.observed.nnz(), (0.123f64 * 120_000.0).round() as usize);
            let variance = mean_square(made.truth().into_values().into_iter());
            assert!((variance - 1.0).abs() < 0.25, "{coherence:?} {variance}");
        }
    }

    #[test]
    fn residuals_are_the_noise() {
        let made = LowRankSpec::new(200, 150, 3).noise(0.2).observed(0.5).make(2).unwrap();
        let residuals = (0..200).flat_map(|row| {
            let (columns, values) = made.observed.row(row);
            columns
                .iter()
                .zip(values)
                .map(|(&col, &x)| f64::from(x) - made.value(row, col as usize))
                .collect::<Vec<_>>()
        });
        let sd = mean_square(residuals).sqrt();
        assert!((sd - 0.2).abs() < 0.2 * 4.0 / 30_000f64.sqrt(), "{sd}");
    }

    #[test]
    fn the_rank_is_the_rank() {
        // Gaussian elimination with full pivoting leaves nothing after `rank` steps.
        let mut matrix = LowRankSpec::new(12, 9, 3).make(3).unwrap().truth();
        for _ in 0..3 {
            let (row, col) = (0..12)
                .flat_map(|r| (0..9).map(move |c| (r, c)))
                .max_by(|&a, &b| matrix[a].abs().total_cmp(&matrix[b].abs()))
                .unwrap();
            let pivot = matrix[(row, col)];
            assert!(pivot.abs() > 1e-6);
            let line = matrix.row(row).to_vec();
            for r in 0..12 {
                let factor = matrix[(r, col)] / pivot;
                for (x, y) in matrix.row_mut(r).iter_mut().zip(&line) {
                    *x -= factor * y;
                }
            }
        }
        assert!(matrix.values().iter().all(|x| x.abs() < 1e-10));
    }

    #[test]
    fn spikes_hold_more_than_their_share() {
        let row_mass = |coherence| {
            let made = LowRankSpec::new(400, 100, 8).coherence(coherence).make(4).unwrap();
            let mut mass: Vec<f64> =
                made.left.rows().map(|row| row.iter().map(|x| x * x).sum()).collect();
            mass.sort_by(f64::total_cmp);
            mass[380..].iter().sum::<f64>() / mass.iter().sum::<f64>()
        };
        assert!(row_mass(Coherence::Incoherent) < 0.15);
        assert!(row_mass(Coherence::Spiky) > 0.25);
    }

    #[test]
    fn seeds_matter_threads_do_not_and_bad_specs_are_refused() {
        let spec = LowRankSpec::new(50, 40, 4).observed(0.3).noise(0.1);
        let on = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| spec.make(5).unwrap())
        };
        assert_eq!(on(1), on(7));
        assert_ne!(on(1), spec.make(6).unwrap());
        for bad in [
            LowRankSpec::new(0, 5, 1),
            LowRankSpec::new(5, 5, 6),
            LowRankSpec::new(5, 5, 0),
            spec.clone().observed(0.0),
            spec.clone().observed(1.1),
            spec.clone().noise(f64::NAN),
        ] {
            assert!(bad.make(1).is_err(), "{bad:?}");
        }
    }
}
