//! Samples as the passes take them: about a centre, in units of a scale, in blocks, those with missing entries sorted by
//! which ones are missing.

use gradus_base::{Error, Result, parallel};
use gradus_data::{Inputs, Matrix};
use std::collections::BTreeMap;
use std::ops::Range;

/// Samples in a block.
pub(super) const BLOCK: usize = 256;
/// The blocks are cut into this many parts at most. Each part has sums of its own, which are added in order: so memory does
/// not grow with the number of samples, and results do not depend on the number of threads.
const PARTS: usize = 64;
/// Values past this cannot be squared and summed safely.
const LARGEST: f64 = 1e150;

/// The units of samples: `(x − centre) / scale`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Space {
    pub(super) centre: Vec<f64>,
    pub(super) scale: Vec<f64>,
}

/// The pattern of observed and missing features.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    pub(super) observed: Vec<usize>,
    pub(super) missing: Vec<usize>,
}

/// Consecutive samples, all complete or all of one pattern.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) rows: Range<usize>,
    pub(super) pattern: Option<usize>,
}

/// Samples, complete ones first.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) d: usize,
    /// The values by rows; 0, the centre, where an entry is missing.
    pub(super) values: Vec<f64>,
    /// The place of each sample in the data that was given.
    pub(super) order: Vec<u32>,
    pub(super) weights: Vec<f64>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) blocks: Vec<Block>,
}

/// Refuses features that a mixture cannot take: of another number, infinite, or too large to be squared. NaN is a
/// missing entry.
pub(super) fn check(inputs: &Inputs, features: &Matrix) -> Result<()> {
    let d = features.n_cols();
    inputs.check_width(d)?;
    let wrong = |x: &f64| x.abs() > LARGEST;
    let values = features.values();
    let blocks = parallel::map(values.chunks(1 << 14), |values| values.iter().any(wrong));
    if !blocks.contains(&true) {
        return Ok(());
    }
    let dense = features.to_dense();
    let at = dense.values().iter().position(wrong).unwrap_or_default();
    let (row, column) = (at / d.max(1) + 1, at % d.max(1) + 1);
    let value = dense.values()[at];
    let rule = if value.is_finite() {
        "is too large: squares of values past 1e150 are not finite"
    } else {
        "is not a finite number"
    };
    Err(Error::data(format!("row {row}, column {column}: {value} {rule}")))
}

impl Rows {
    /// The samples of a matrix that have a weight.
    pub(super) fn new(features: &Matrix, weights: Option<&[f64]>, space: &Space) -> Self {
        let (n, d) = features.shape();
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let (mut order, mut gaps): (Vec<u32>, BTreeMap<Vec<u32>, Vec<u32>>) = Default::default();
        for row in (0..n).filter(|&row| weight(row) > 0.0) {
            let missing: Vec<u32> = match features {
                Matrix::Dense(x) => {
                    let row = x.row(row);
                    (0..d as u32).filter(|&j| row[j as usize].is_nan()).collect()
                }
                Matrix::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    let gaps = columns.iter().zip(values).filter(|(_, x)| x.is_nan());
                    gaps.map(|(&column, _)| column).collect()
                }
            };
            if missing.is_empty() {
                order.push(row as u32);
            } else {
                gaps.entry(missing).or_default().push(row as u32);
            }
        }
        let mut blocks: Vec<Block> = parallel::blocks(order.len(), BLOCK)
            .map(|rows| Block { rows, pattern: None })
            .collect();
        let mut patterns = Vec::new();
        for (missing, rows) in gaps {
            let first = order.len();
            let pattern = Some(patterns.len());
            blocks.extend(
                parallel::blocks(rows.len(), BLOCK)
                    .map(|rows| Block { rows: first + rows.start..first + rows.end, pattern }),
            );
            order.extend(rows);
            let is_missing = |j: &usize| missing.binary_search(&(*j as u32)).is_ok();
            let (missing, observed) = (0..d).partition(is_missing);
            patterns.push(Pattern { observed, missing });
        }
        let mut values = vec![0.0; order.len() * d];
        let by: Vec<f64> = space.scale.iter().map(|scale| 1.0 / scale).collect();
        parallel::each(values.chunks_mut((BLOCK * d).max(1)).enumerate(), |(block, to)| {
            for (at, to) in to.chunks_exact_mut(d.max(1)).enumerate() {
                let row = order[block * BLOCK + at] as usize;
                match features {
                    Matrix::Dense(x) => to.copy_from_slice(x.row(row)),
                    Matrix::Sparse(x) => {
                        let (columns, values) = x.row(row);
                        columns.iter().zip(values).for_each(|(&c, x)| to[c as usize] += x);
                    }
                }
                for ((to, centre), by) in to.iter_mut().zip(&space.centre).zip(&by) {
                    *to = if to.is_nan() { 0.0 } else { (*to - centre) * by };
                }
            }
        });
        let weights = order.iter().map(|&row| weight(row as usize)).collect();
        Self { d, values, order, weights, patterns, blocks }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn total_weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The blocks in parts that depend on the data alone.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[Block]> {
        self.blocks.chunks(self.blocks.len().div_ceil(PARTS).max(1))
    }

    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.d..(row + 1) * self.d]
    }

    /// Applies `work(row, feature, value)` to each observed value of each sample and sums the results by feature.
    pub(super) fn sum_by_feature(
        &self,
        work: impl Fn(usize, usize, f64) -> f64 + Sync,
    ) -> Vec<f64> {
        let parts: Vec<&[Block]> = self.parts().collect();
        let sums = parallel::map(parts, |blocks| {
            let mut sums = vec![0.0; self.d];
            for block in blocks {
                for row in block.rows.clone() {
                    let values = self.row(row);
                    match block.pattern {
                        None => {
                            for (j, (sum, x)) in sums.iter_mut().zip(values).enumerate() {
                                *sum += work(row, j, *x);
                            }
                        }
                        Some(pattern) => {
                            for &j in &self.patterns[pattern].observed {
                                sums[j] += work(row, j, values[j]);
                            }
                        }
                    }
                }
            }
            sums
        });
        let mut total = vec![0.0; self.d];
        for sums in sums {
            total.iter_mut().zip(&sums).for_each(|(total, sum)| *total += sum);
        }
        total
    }

    /// Multiplies each feature.
    pub(super) fn rescale(&mut self, by: &[f64]) {
        let d = self.d.max(1);
        parallel::each(self.values.chunks_mut(BLOCK * d), |values| {
            for row in values.chunks_exact_mut(d) {
                row.iter_mut().zip(by).for_each(|(x, by)| *x *= by);
            }
        });
    }
}
