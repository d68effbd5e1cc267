//! The data of one side, as the solvers need it.

use crate::latent::Implicit;
use gradus_base::{Error, Result};
use gradus_data::{Csr, Ratings};

/// Rows are handed to threads in blocks of about so many observations. The blocks depend on data
/// and rank alone, and sums are taken block by block, so results do not depend on the number of
/// threads.
const BLOCK: usize = 1 << 14;

/// One side of the data: its rows, their penalties, and how they are cut into blocks.
pub(super) struct Side<'a> {
    pub(super) rows: &'a Csr,
    /// `w c(r)` of each observation; 1 if absent.
    pub(super) weights: Option<Vec<f32>>,
    /// What the score of each observation should be; 1 if absent.
    targets: Option<Vec<f32>>,
    pub(super) lambdas: Vec<f32>,
    /// Row bounds of the blocks.
    bounds: Vec<usize>,
}

/// A block of rows being solved, with their observations.
pub(super) struct Block<'b> {
    pub(super) first: usize,
    pub(super) factors: &'b mut [f32],
    pub(super) bias: &'b mut [f32],
}

impl<'a> Side<'a> {
    pub(super) fn new(
        rows: &'a Csr,
        weights: Option<&[f32]>,
        rule: &Implicit,
        rank: usize,
    ) -> Self {
        let n_others = rows.n_cols();
        let confidence = |at: usize| {
            let weight = weights.map_or(1.0, |weights| weights[at]);
            weight * rule.confidence(rows.values()[at])
        };
        let plain = (0..rows.nnz()).all(|at| confidence(at) == 1.0);
        let confidences: Option<Vec<f32>> =
            (!plain).then(|| (0..rows.nnz()).map(confidence).collect());
        let targets = rule
            .has_targets()
            .then(|| (0..rows.nnz()).map(|at| rule.target(confidence(at))).collect());
        let (mut bounds, mut filled) = (vec![0], 0);
        let mut lambdas = Vec::with_capacity(rows.n_rows());
        for row in 0..rows.n_rows() {
            let range = rows.range(row);
            let weights = weights.map(|weights| &weights[range.clone()]);
            lambdas.push(rule.lambda(rows.row(row).1, weights, n_others));
            filled += range.len() + rank.min(1024);
            if filled >= BLOCK {
                bounds.push(row + 1);
                filled = 0;
            }
        }
        if bounds.last() != Some(&rows.n_rows()) {
            bounds.push(rows.n_rows());
        }
        Self { rows, weights: confidences, targets, lambdas, bounds }
    }

    /// Cuts the rows of a solution into the blocks.
    pub(super) fn blocks<'b>(
        &self,
        stride: usize,
        mut factors: &'b mut [f32],
        mut bias: &'b mut [f32],
    ) -> Vec<Block<'b>> {
        let mut blocks = Vec::with_capacity(self.bounds.len());
        for bound in self.bounds.windows(2) {
            let count = bound[1] - bound[0];
            let (block, after) = factors.split_at_mut(count * stride);
            let (block_bias, after_bias) = bias.split_at_mut(count);
            blocks.push(Block { first: bound[0], factors: block, bias: block_bias });
            (factors, bias) = (after, after_bias);
        }
        blocks
    }

    /// Cuts one value for each observation in the same way.
    pub(super) fn observations<'b>(&self, mut values: &'b mut [f32]) -> Vec<&'b mut [f32]> {
        let mut parts = Vec::with_capacity(self.bounds.len());
        for bound in self.bounds.windows(2) {
            let count = self.rows.indptr()[bound[1]] - self.rows.indptr()[bound[0]];
            let (part, after) = values.split_at_mut(count);
            parts.push(part);
            values = after;
        }
        parts
    }

    /// The confidence in each observation of a row.
    pub(super) fn weights(&self, row: usize) -> Option<&[f32]> {
        self.weights.as_ref().map(|weights| &weights[self.rows.range(row)])
    }

    /// What the score of each observation of a row should be, less what `known` says of it.
    pub(super) fn targets(&self, row: usize, known: impl Fn(usize) -> f32, to: &mut Vec<f32>) {
        let range = self.rows.range(row);
        to.clear();
        match &self.targets {
            None => to.extend((0..range.len()).map(|at| 1.0 - known(at))),
            Some(targets) => {
                to.extend(targets[range].iter().enumerate().map(|(at, t)| t - known(at)));
            }
        }
    }
}

/// Refuses values below zero, naming the pair.
pub(super) fn check_values(data: &Ratings) -> Result<()> {
    if data.by_user().values().iter().all(|&value| value >= 0.0) {
        return Ok(());
    }
    match data.iter().find(|rating| rating.value < 0.0) {
        Some(rating) => Err(Error::data(format!(
            "ials: user `{}`, item `{}`: the value {} is negative; signs of interest are 0 or more",
            data.users().get(rating.user as usize),
            data.items().get(rating.item as usize),
            rating.value
        ))),
        None => Ok(()),
    }
}
