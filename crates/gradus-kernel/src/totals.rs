//! Sums over all rows of a side: what implicit feedback needs of the pairs that were not observed.

use super::Level;
use super::gram::Gram;
use super::rows::{Rows, padded};
use gradus_base::parallel;
use std::ops::Range;

/// Rows summed in single precision before they join the total, which is in double.
const CHUNK: usize = 1024;
/// Bytes of rows multiplied at a time: a part of a second-level cache, so that a large matrix is
/// not written too often.
const BLOCK_BYTES: usize = 256 * 1024;

/// The sums `Σ v vᵀ`, `Σ b v`, `Σ v`, `Σ b²`, `Σ b` over the rows `v` of a side and their biases `b`.
///
/// The scores `s = b_u + b_i + x_u·y_i` of all pairs of two sides are never formed: sums over them
/// follow from the totals of the two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    k: usize,
    n_rows: usize,
    /// `Σ v vᵀ`, `k × k`, both triangles.
    matrix: Vec<f64>,
    biased: Vec<f64>,
    sum: Vec<f64>,
    bias: f64,
    bias_squares: f64,
}

impl Totals {
    /// Sums over all rows. The result does not depend on the number of threads.
    ///
    /// # Shapes
    /// One bias for each row. Panics if it is not so.
    pub fn of(level: Level, rows: &Rows, bias: &[f32]) -> Totals {
        let (k, n_rows, stride) = (rows.k(), rows.n_rows(), rows.stride());
        assert_eq!(bias.len(), n_rows, "as many biases as rows");
        let mut totals = Totals {
            k,
            n_rows,
            matrix: vec![0.0; k * k],
            biased: vec![0.0; k],
            sum: vec![0.0; k],
            bias: bias.iter().map(|&b| f64::from(b)).sum(),
            bias_squares: bias.iter().map(|&b| f64::from(b) * f64::from(b)).sum(),
        };
        let starts: Vec<usize> = (0..n_rows).step_by(CHUNK).collect();
        let block = BLOCK_BYTES / (4 * stride.max(1));
        // A few chunks at a time, so that only a few matrices are in memory; joined in order.
        for wave in starts.chunks(2 * rayon::current_num_threads()) {
            let parts: Vec<Gram> = parallel::map(wave, |&start| {
                let end = n_rows.min(start + CHUNK);
                let indices: Vec<u32> = (0..(end - start) as u32).collect();
                let mut gram = Gram::with_block(k, level, block.clamp(16, CHUNK));
                gram.reset(None, 0.0);
                let factors = &rows.as_slice()[start * stride..end * stride];
                gram.accumulate(factors, &indices, &bias[start..end], None, &[]);
                gram
            });
            parallel::each(totals.matrix.chunks_exact_mut(k.max(1)).enumerate(), |(i, row)| {
                for part in &parts {
                    let from = &part.matrix()[i * stride..][..k];
                    for (sum, &v) in row[i..].iter_mut().zip(&from[i..]) {
                        *sum += f64::from(v);
                    }
                }
            });
            for part in &parts {
                let (biased, sum) = part.vectors();
                for (to, from) in [(&mut totals.biased, biased), (&mut totals.sum, sum)] {
                    to.iter_mut().zip(from).for_each(|(to, &v)| *to += f64::from(v));
                }
            }
        }
        for i in 0..k {
            for j in 0..i {
                totals.matrix[i * k + j] = totals.matrix[j * k + i];
            }
        }
        totals
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The matrix `Σ v vᵀ`, `k × k`, both triangles.
    pub fn matrix(&self) -> &[f64] {
        &self.matrix
    }

    /// The vectors `Σ b v` and `Σ v`.
    pub fn vectors(&self) -> (&[f64], &[f64]) {
        (&self.biased, &self.sum)
    }

    /// The sum of the biases.
    pub fn bias(&self) -> f64 {
        self.bias
    }

    /// The sum of `s²` over all pairs of a row of this side and a row of the other.
    ///
    /// # Shapes
    /// Both sides have rows of `k` values.
    pub fn squared_scores(&self, other: &Totals) -> f64 {
        assert_eq!(self.k, other.k, "rows of as many values");
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        product(&self.matrix, &other.matrix)
            + 2.0 * product(&self.biased, &other.sum)
            + 2.0 * product(&self.sum, &other.biased)
            + 2.0 * self.bias * other.bias
            + self.bias_squares * other.n_rows as f64
            + self.n_rows as f64 * other.bias_squares
    }

    /// The normal equations of all rows, each with this weight and minus its bias as target: the
    /// [`base`](super::RowProblem::base) of a row whose score should be zero everywhere.
    pub fn base(&self, level: Level, weight: f64) -> Gram {
        self.block_base(level, weight, 0..self.k, -1.0)
    }

    /// The same for a step in some of the coordinates: the targets are zero, and the
    /// gradient at the starting point goes into the linear term.
    ///
    /// # Shapes
    /// `columns` lies within `0..k`.
    pub fn step_base(&self, level: Level, weight: f64, columns: Range<usize>) -> Gram {
        self.block_base(level, weight, columns, 0.0)
    }

    fn block_base(&self, level: Level, weight: f64, columns: Range<usize>, sign: f64) -> Gram {
        let width = columns.len();
        let mut matrix = Rows::zeros(padded(width), width);
        let narrow = |values: &[f64], by: f64, to: &mut [f32]| {
            to.iter_mut().zip(values).for_each(|(to, &v)| *to = (by * v) as f32);
        };
        for i in 0..width {
            let from = &self.matrix[(columns.start + i) * self.k..][columns.clone()];
            narrow(from, weight, matrix.row_mut(i));
        }
        let (mut wyv, mut wv) = (vec![0.0; padded(width)], vec![0.0; padded(width)]);
        narrow(&self.biased[columns.clone()], sign * weight, &mut wyv);
        narrow(&self.sum[columns], weight, &mut wv);
        let sums = [weight * self.n_rows as f64, sign * weight * self.bias];
        Gram::from_sums(width, level, matrix, [&wyv, &wv], sums)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, SIZES};
    use super::*;

    fn plain(rows: &Rows, bias: &[f32]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let k = rows.k();
        let (mut matrix, mut biased, mut sum) = (vec![0.0; k * k], vec![0.0; k], vec![0.0; k]);
        for (n, &b) in bias.iter().enumerate() {
            let v: Vec<f64> = rows.row(n)[..k].iter().map(|&v| f64::from(v)).collect();
            for i in 0..k {
                (0..k).for_each(|j| matrix[i * k + j] += v[i] * v[j]);
                biased[i] += f64::from(b) * v[i];
                sum[i] += v[i];
            }
        }
        (matrix, biased, sum)
    }

    #[test]
    fn sums_match_plain_loops_on_any_number_of_threads() {
        for (k, n) in SIZES.into_iter().zip([0, 1, 5, 1023, 1024, 1025, 3000].into_iter().cycle()) {
            let mut random = Random((k * 7 + n) as u64);
            let (rows, bias) = (random.rows(n, k, 1.0), random.values(n));
            let (matrix, biased, sum) = plain(&rows, &bias);
            for level in Level::available() {
                let totals = Totals::of(level, &rows, &bias);
                let tolerance = 1e-6 * (n as f64 + 1.0);
                let near =
                    |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance);
                assert!(near(totals.matrix(), &matrix), "{level} {k} {n}");
                assert!(near(totals.vectors().0, &biased) && near(totals.vectors().1, &sum));
                let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
                assert_eq!(three.install(|| Totals::of(level, &rows, &bias)), totals);
            }
        }
    }

    #[test]
    fn squared_scores_are_those_of_all_pairs() {
        for k in [1, 5, 17] {
            let mut random = Random(k as u64);
            let (a, b) = (random.rows(40, k, 1.0), random.rows(30, k, 1.0));
            let (bias_a, bias_b) = (random.values(40), random.values(30));
            let mut want = 0.0;
            for i in 0..40 {
                for j in 0..30 {
                    let product: f64 = a
                        .row(i)
                        .iter()
                        .zip(b.row(j))
                        .map(|(&x, &y)| f64::from(x) * f64::from(y))
                        .sum();
                    want += (product + f64::from(bias_a[i]) + f64::from(bias_b[j])).powi(2);
                }
            }
            for level in Level::available() {
                let (a, b) = (Totals::of(level, &a, &bias_a), Totals::of(level, &b, &bias_b));
                let got = a.squared_scores(&b);
                assert!((got / want - 1.0).abs() < 1e-6, "{level} {k}: {got} {want}");
                assert!((b.squared_scores(&a) / got - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_base_is_what_accumulating_all_rows_gives() {
        for level in Level::available() {
            let mut random = Random(3);
            let (rows, bias) = (random.rows(300, 21, 1.0), random.values(300));
            let totals = Totals::of(level, &rows, &bias);
            let mut all = Gram::new(21, level);
            all.reset(None, 0.0);
            let targets: Vec<f32> = bias.iter().map(|b| -b).collect();
            let indices: Vec<u32> = (0..300).collect();
            all.accumulate(rows.as_slice(), &indices, &targets, Some(&[0.25; 300]), &[]);
            let base = totals.base(level, 0.25);
            let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
            for i in 0..21 {
                let upper = i * 32 + i..i * 32 + 21;
                assert!(near(&base.matrix()[upper.clone()], &all.matrix()[upper]), "{level} {i}");
            }
            assert!(
                near(base.vectors().0, all.vectors().0) && near(base.vectors().1, all.vectors().1)
            );
            assert!((base.sums().0 - all.sums().0).abs() < 1e-9);
            assert!((base.sums().1 - all.sums().1).abs() < 1e-4);
            let part = totals.step_base(level, 0.25, 8..13);
            assert_eq!(part.k(), 5);
            assert_eq!(part.matrix()[16 + 4], base.matrix()[9 * 32 + 12]);
            assert_eq!(part.vectors().1[..5], base.vectors().1[8..13]);
            assert!(part.vectors().0.iter().all(|&v| v == 0.0) && part.sums().1 == 0.0);
        }
    }
}
