//! Means, Gram matrix and products with the targets of dense samples, in one look at them.

use crate::parallel;
use gradus_base::parallel::blocks;
use gradus_data::Dense;
use gradus_kernel::{Level, dense};
use std::ops::Range;

/// Values that a part of narrow rows has at least: many enough to pay for another thread.
const BLOCK: usize = 1 << 15;

/// Rows that a part of wide ones has at least: many enough to pay for the sums that each clears and adds.
const ROWS: usize = 512;

/// The largest number of partial sums.
const PARTS: usize = 64;

/// Rows that the first guess of the means is taken from.
const GUESS: usize = 256;

/// A guess is too far off if centring again would take more than this times the spread.
const FAR: f64 = 100.0;

/// The result of [`moments`]; all sums are divided by the sum of the weights.
pub(crate) struct Moments {
    /// Means of the features; 0 without centring.
    pub(crate) means: Vec<f64>,
    /// `XᵀX` of the centred features, both triangles.
    pub(crate) gram: Vec<f64>,
    /// `Xᵀy` of each target.
    pub(crate) products: Vec<Vec<f64>>,
}

/// The moments of features and targets around their means, or around 0.
///
/// Features, targets and a column of ones go through one Gram matrix around a guess of the means,
/// the means of a few rows; what the guess was off by is in the products with the ones. A guess that
/// was far off, as of rows that are sorted in an odd way, is made good by a second look.
pub(crate) fn moments(
    x: &Dense<f64>,
    weights: Option<&[f64]>,
    y: &Dense<f64>,
    y_means: &[f64],
    total: f64,
    center: bool,
) -> Moments {
    let (n, d) = x.shape();
    let mut guess = vec![0.0; d];
    if center && n > 0 {
        let step = n.div_ceil(GUESS);
        let rows: Vec<usize> = (0..n).step_by(step).collect();
        for &row in &rows {
            guess.iter_mut().zip(x.row(row)).for_each(|(sum, x)| *sum += x);
        }
        guess.iter_mut().for_each(|sum| *sum /= rows.len() as f64);
    }
    let mut sums = around(x, weights, y, y_means, &guess);
    let k = y.n_cols();
    let width = d + k + 1;
    let off = |sums: &[f64], j: usize| sums[j * width + width - 1] / total;
    if center {
        let far = |j: usize| {
            let square = total * off(&sums, j) * off(&sums, j);
            square > FAR * (sums[j * width + j] - square)
        };
        if (0..d).any(far) {
            for (j, guess) in guess.iter_mut().enumerate() {
                *guess += off(&sums, j);
            }
            sums = around(x, weights, y, y_means, &guess);
        }
    }
    let off: Vec<f64> = (0..width).map(|j| if center { off(&sums, j) } else { 0.0 }).collect();
    let entry = |i: usize, j: usize| sums[i * width + j] / total - off[i] * off[j];
    let mut gram = vec![0.0; d * d];
    for i in 0..d {
        for j in i..d {
            (gram[i * d + j], gram[j * d + i]) = (entry(i, j), entry(i, j));
        }
    }
    Moments {
        means: guess.iter().zip(&off).map(|(guess, off)| guess + off).collect(),
        gram,
        products: (0..k).map(|t| (0..d).map(|j| entry(j, d + t)).collect()).collect(),
    }
}

/// The upper triangle of the Gram matrix of `[X − guess, y − means, 1]`.
fn around(
    x: &Dense<f64>,
    weights: Option<&[f64]>,
    y: &Dense<f64>,
    y_means: &[f64],
    guess: &[f64],
) -> Vec<f64> {
    let (n, d) = x.shape();
    let k = y.n_cols();
    let width = d + k + 1;
    let level = Level::best();
    let step = if d <= 256 { BLOCK / width } else { ROWS }.max(1);
    let parts = PARTS.min((1 << 23) / (width * width)).max(4);
    let part = n.div_ceil(step).div_ceil(parts).max(1) * step;
    let blocks = blocks(n, part).collect();
    let operations = n.saturating_mul(width * width);
    let found: Vec<Vec<f64>> = parallel::map(blocks, operations, |rows: Range<usize>| {
        let mut sums = vec![0.0; width * width];
        let first = rows.start;
        let weights = weights.map(|weights| &weights[rows.clone()]);
        dense::gram_of(level, (rows.len(), width), weights, &mut sums, |at, to| {
            let (of_x, rest) = to.split_at_mut(d);
            let given = x.row(first + at).iter().zip(guess);
            of_x.iter_mut().zip(given).for_each(|(to, (x, guess))| *to = x - guess);
            let given = y.row(first + at).iter().zip(y_means);
            rest.iter_mut().zip(given).for_each(|(to, (y, mean))| *to = y - mean);
            rest[k] = 1.0;
        });
        sums
    });
    let mut found = found.into_iter();
    let mut total = found.next().unwrap_or_else(|| vec![0.0; width * width]);
    for sums in found {
        total.iter_mut().zip(&sums).for_each(|(total, x)| *total += x);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    #[test]
    fn moments_are_those_of_plain_loops() {
        let mut stream = Stream::new(1, "moments", 0);
        for (n, d, center) in [(1, 1, true), (7, 3, true), (900, 40, true), (40, 5, false)] {
            // The last rows are far from the others, and some means far larger than the spread.
            let x = Dense::from_fn(n, d, |row, column| {
                let far = if row > n - n / 50 { 1e6 } else { 0.0 };
                stream.normal() + 1e5 * (column % 3) as f64 + far
            });
            let y = Dense::from_fn(n, 2, |_, t| stream.normal() + 10.0 * t as f64);
            let w: Vec<f64> = (0..n).map(|_| stream.uniform() + 0.1).collect();
            let total: f64 = w.iter().sum();
            let mean = |values: Vec<f64>| {
                if center {
                    values.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() / total
                } else {
                    0.0
                }
            };
            let x_means: Vec<f64> = (0..d).map(|j| mean(x.column(j).collect())).collect();
            let y_means: Vec<f64> = (0..2).map(|t| mean(y.column(t).collect())).collect();
            let found = moments(&x, Some(&w), &y, &y_means, total, center);
            let near = |got: f64, expected: f64, size: f64| {
                assert!((got - expected).abs() <= 1e-9 * size, "{n} {d}: {got} {expected}");
            };
            let sum = |f: &dyn Fn(usize) -> f64| (0..n).map(|i| w[i] * f(i)).sum::<f64>() / total;
            for i in 0..d {
                near(found.means[i], x_means[i], 1.0 + x_means[i].abs() * 1e-4);
                let off = |r: usize, j: usize| x[(r, j)] - x_means[j];
                for j in 0..d {
                    let size = |j: usize| sum(&|r| off(r, j) * off(r, j)).sqrt();
                    let expected = sum(&|r| off(r, i) * off(r, j));
                    near(found.gram[i * d + j], expected, 1e-3 + size(i) * size(j));
                }
                for t in 0..2 {
                    let expected = sum(&|r| off(r, i) * (y[(r, t)] - y_means[t]));
                    near(found.products[t][i], expected, 1.0 + expected.abs());
                }
            }
        }
    }
}
