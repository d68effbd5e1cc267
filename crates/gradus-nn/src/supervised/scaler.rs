//! Features in units that a network can learn from.

use super::Features;
use gradus_base::{Error, Result, parallel};
use gradus_data::{ImageShape, Matrix};
use gradus_file::{Reader, Writer};

/// Rows whose quantiles stand for those of all.
const SAMPLE: usize = 50_000;

/// Beyond so many quartile distances values are compressed.
const KNEE: f32 = 3.0;

/// An affine map of each feature, and a smooth bound on what comes out.
///
/// Of tables: the median becomes 0 and the distance of the quartiles 1 (of a feature whose quartiles are equal, half the range),
/// then `z / √(1 + (z / 3)²)`, so that a wild value is no further off than 3. The result does not depend on the unit of a feature.
/// Of images: pixels minus their mean over the training images, divided by their deviation, for each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaler {
    centre: Vec<f32>,
    factor: Vec<f32>,
    bounded: bool,
}

impl Scaler {
    /// The scaler of a table; `rows` are the rows to learn from, in an order that depends on their content alone.
    pub fn of_table(features: &Matrix, rows: &[u32]) -> Self {
        let rows = &rows[..rows.len().min(SAMPLE)];
        let d = features.n_cols();
        let columns = columns(&features.select_rows(&ascending(rows)), rows.len());
        let found = parallel::map(columns, |(mut stored, zeros)| {
            stored.sort_unstable_by(f64::total_cmp);
            let sorted = Sorted { below: stored.partition_point(|x| *x < 0.0), stored, zeros };
            let [low, median, high] = [0.25, 0.5, 0.75].map(|q| sorted.quantile(q));
            let mut spread = high - low;
            if spread <= 0.0 {
                spread = 0.5 * (sorted.quantile(1.0) - sorted.quantile(0.0));
            }
            // A constant feature says nothing, and would say something wild of the first other value.
            let factor = if spread > 0.0 { 1.0 / spread } else { 0.0 };
            (median as f32, factor as f32)
        });
        debug_assert_eq!(found.len(), d);
        let (centre, factor) = found.into_iter().unzip();
        Self { centre, factor, bounded: true }
    }

    /// Leaves so many features as they are.
    pub fn identity(n: usize) -> Self {
        Self { centre: vec![0.0; n], factor: vec![1.0; n], bounded: false }
    }

    /// The same line for so many features: what they are beyond `centre`, times `factor`.
    pub fn affine(n: usize, centre: f64, factor: f64) -> Self {
        Self { centre: vec![centre as f32; n], factor: vec![factor as f32; n], bounded: false }
    }

    /// Mean 0 and variance 1 for each feature, without a bound, so that there is a way back; a constant feature becomes 0.
    pub fn standard<'a>(features: impl Into<Features<'a>>, rows: &[u32]) -> Self {
        let features = features.into();
        let rows = ascending(&rows[..rows.len().min(SAMPLE)]);
        let (n, d) = (rows.len().max(1) as f64, features.n_cols());
        let sums = |of: &(dyn Fn(usize, f64) -> f64 + Sync)| {
            let parts = parallel::map(rows.chunks(4096).collect::<Vec<_>>(), |rows| {
                let mut sums = vec![0.0f64; d];
                for &row in rows {
                    features.each(row as usize, |at, x| sums[at] += of(at, x));
                }
                sums
            });
            let mut sums = vec![0.0f64; d];
            for part in parts {
                sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
            sums
        };
        let mean: Vec<f64> = sums(&|_, x| x).into_iter().map(|sum| sum / n).collect();
        let squares = sums(&|at, x| (x - mean[at]).powi(2));
        // Zeros that a sparse matrix leaves out.
        let there = sums(&|_, _| 1.0);
        let factors = squares.iter().zip(&there).zip(&mean).map(|((squares, there), mean)| {
            let variance = (squares + (n - there) * mean * mean) / n;
            let deviation = variance.sqrt();
            // The mean of equal numbers is not always that number.
            if deviation > 1e-7 * mean.abs() { (1.0 / deviation) as f32 } else { 0.0 }
        });
        let factor = factors.collect();
        Self { centre: mean.iter().map(|mean| *mean as f32).collect(), factor, bounded: false }
    }

    /// The scaler of images of this size.
    pub fn of_images<'a>(
        features: impl Into<Features<'a>>,
        rows: &[u32],
        shape: ImageShape,
    ) -> Self {
        let features = features.into();
        let pixels = shape.height * shape.width;
        let channels = shape.channels;
        let mut sums = vec![(0.0f64, 0.0f64); channels];
        let rows = ascending(&rows[..rows.len().min(SAMPLE)]);
        let parts = parallel::map_below(rows.len(), 64, |at| {
            let mut sums = vec![(0.0f64, 0.0f64); channels];
            features.each(rows[at] as usize, |at, x| {
                let (sum, squares) = &mut sums[at % channels];
                *sum += x;
                *squares += x * x;
            });
            sums
        });
        for part in parts {
            for (all, one) in sums.iter_mut().zip(part) {
                *all = (all.0 + one.0, all.1 + one.1);
            }
        }
        let n = (rows.len() * pixels).max(1) as f64;
        let of = |at: usize| {
            let (mean, squares) = (sums[at % channels].0 / n, sums[at % channels].1 / n);
            let deviation = (squares - mean * mean).max(0.0).sqrt();
            (mean as f32, if deviation > 0.0 { (1.0 / deviation) as f32 } else { 0.0 })
        };
        let (centre, factor) = (0..pixels * channels).map(of).unzip();
        Self { centre, factor, bounded: false }
    }

    /// The number of features.
    pub fn len(&self) -> usize {
        self.centre.len()
    }

    /// Whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.centre.is_empty()
    }

    /// Some rows of features, scaled, row after row.
    pub fn apply<'a>(&self, features: impl Into<Features<'a>>, rows: &[u32]) -> Vec<f32> {
        let (d, features) = (self.len(), features.into());
        let mut out = vec![0.0f32; rows.len() * d];
        let scale = |(x, out): (f32, &mut f32), at: usize| {
            let z = (x - self.centre[at]) * self.factor[at];
            *out = if self.bounded { bound(z) } else { z };
        };
        parallel::each_row(&mut out, d.max(1), |at, out| {
            if let Features::Matrix(Matrix::Sparse(_)) = features {
                for (column, out) in out.iter_mut().enumerate() {
                    scale((0.0, out), column);
                }
            }
            features.each(rows[at] as usize, |column, x| {
                scale((x as f32, &mut out[column]), column);
            });
        });
        out
    }

    /// Scaled features, row after row, in their own units: the way back of a scaler without a bound.
    pub fn inverse(&self, scaled: &[f32]) -> Vec<f64> {
        debug_assert!(!self.bounded, "a bound has no way back");
        let d = self.len().max(1);
        let back = |(at, z): (usize, &f32)| {
            let (centre, factor) = (f64::from(self.centre[at % d]), f64::from(self.factor[at % d]));
            if factor > 0.0 { centre + f64::from(*z) / factor } else { centre }
        };
        scaled.iter().enumerate().map(back).collect()
    }

    /// One row of features, scaled.
    pub(crate) fn scale(&self, row: &[f64], out: &mut [f32]) {
        for (at, (out, x)) in out.iter_mut().zip(row).enumerate() {
            let z = (*x as f32 - self.centre[at]) * self.factor[at];
            *out = if self.bounded { bound(z) } else { z };
        }
    }

    /// The factor of each feature.
    pub(crate) fn factors(&self) -> &[f32] {
        &self.factor
    }

    /// Some rows of features, scaled but not bounded.
    pub(super) fn unbounded<'a>(
        &self,
        features: impl Into<Features<'a>>,
        rows: &[u32],
    ) -> Vec<f32> {
        if !self.bounded {
            return self.apply(features, rows);
        }
        Self { bounded: false, ..self.clone() }.apply(features, rows)
    }

    /// Bounds scaled features, if this scaler does so.
    pub(super) fn bounded_values(&self, mut z: Vec<f32>) -> Vec<f32> {
        if self.bounded {
            z.iter_mut().for_each(|z| *z = bound(*z));
        }
        z
    }

    /// Multiplies derivatives with respect to bounded features by those of the bound, at scaled features.
    pub(super) fn slopes(&self, z: &[f32], slopes: &mut [f32]) {
        if self.bounded {
            let by = |z: f32| (1.0 + (z / KNEE).powi(2)).powf(-1.5);
            slopes.iter_mut().zip(z).for_each(|(slope, z)| *slope *= by(*z));
        }
    }

    /// The derivative of each scaled feature with respect to the feature itself, at these rows.
    pub fn derivative<'a>(&self, features: impl Into<Features<'a>>, rows: &[u32]) -> Vec<f32> {
        let mut z = Self { bounded: false, ..self.clone() }.apply(features, rows);
        let d = self.len().max(1);
        for (at, z) in z.iter_mut().enumerate() {
            let by = if self.bounded { (1.0 + (*z / KNEE).powi(2)).powf(-1.5) } else { 1.0 };
            *z = by * self.factor[at % d];
        }
        z
    }

    /// Writes it to a file.
    pub fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("bounded", &self.bounded);
        file.tensor("scaler.centre", &[self.len()], &self.centre);
        file.tensor("scaler.factor", &[self.len()], &self.factor);
    }

    /// Reads it back.
    ///
    /// # Errors
    /// If it is not there, or is for another number of features.
    pub fn read(file: &mut Reader, d: usize) -> Result<Self> {
        let finite = |file: &mut Reader, name: &str| -> Result<Vec<f32>> {
            let values: Vec<f32> = file.tensor(name, &[d])?;
            match values.iter().all(|value| value.is_finite()) {
                true => Ok(values),
                false => Err::<_, Error>(
                    file.broken(format!("`{name}` has a number that is not finite")),
                ),
            }
        };
        let centre = finite(file, "scaler.centre")?;
        let factor = finite(file, "scaler.factor")?;
        Ok(Self { centre, factor, bounded: file.get("bounded")? })
    }
}

fn bound(z: f32) -> f32 {
    z / (1.0 + (z / KNEE).powi(2)).sqrt()
}

fn ascending(rows: &[u32]) -> Vec<u32> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows
}

/// The stored entries of each column that are not 0, and how many others there are.
fn columns(features: &Matrix, n: usize) -> Vec<(Vec<f64>, usize)> {
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); features.n_cols()];
    match features {
        Matrix::Dense(dense) => {
            for row in dense.rows() {
                for (column, x) in columns.iter_mut().zip(row).filter(|(_, x)| **x != 0.0) {
                    column.push(*x);
                }
            }
        }
        Matrix::Sparse(sparse) => {
            for (column, x) in
                sparse.indices().iter().zip(sparse.values()).filter(|(_, x)| **x != 0.0)
            {
                columns[*column as usize].push(*x);
            }
        }
    }
    columns
        .into_iter()
        .map(|column| (n - column.len(), column))
        .map(|(zeros, column)| (column, zeros))
        .collect()
}

/// The numbers of a column in order: the negative ones, zeros, and the positive ones.
struct Sorted {
    stored: Vec<f64>,
    below: usize,
    zeros: usize,
}

impl Sorted {
    fn at(&self, rank: usize) -> f64 {
        match rank {
            rank if rank < self.below => self.stored[rank],
            rank if rank < self.below + self.zeros => 0.0,
            rank => self.stored[rank - self.zeros],
        }
    }

    /// A quantile, between the two nearest numbers.
    fn quantile(&self, q: f64) -> f64 {
        let n = self.stored.len() + self.zeros;
        if n == 0 {
            return 0.0;
        }
        let place = q * (n - 1) as f64;
        let (low, high) = (self.at(place.floor() as usize), self.at(place.ceil() as usize));
        low + (high - low) * place.fract()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::Dense;

    #[test]
    fn features_are_scaled_by_their_quartiles() {
        let x = Dense::from_fn(101, 3, |row, column| match column {
            0 => row as f64,
            1 => 7.0,
            _ => f64::from(row == 0),
        });
        let rows: Vec<u32> = (0..101).collect();
        for x in [Matrix::from(x.clone()), Matrix::from(x.to_sparse().unwrap())] {
            let scaler = Scaler::of_table(&x, &rows);
            assert_eq!(scaler.centre, [50.0, 7.0, 0.0]);
            assert_eq!(scaler.factor, [0.02, 0.0, 2.0]);
            let out = scaler.apply(&x, &[0, 50, 100]);
            assert_eq!(out[3..6], [0.0, 0.0, 0.0]);
            assert!((out[6] - 1.0 / (1.0f32 + 1.0 / 9.0).sqrt()).abs() < 1e-6);
            assert!(out[2] > 1.5 && out[2] < 2.0, "{out:?}");
            // The derivative is that of finite differences.
            let slope = scaler.derivative(&x, &[100])[0];
            let (up, down) = (bound(0.02 * 50.5), bound(0.02 * 49.5));
            assert!((slope - (up - down)).abs() < 1e-5, "{slope}");
        }
    }
}
