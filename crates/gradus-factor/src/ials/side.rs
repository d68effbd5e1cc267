//! The data of one side, as the solvers need it.

use crate::blocks::Blocks;
use crate::latent::Implicit;
use crate::side::PriorRows;
use gradus_base::{Error, Result};
use gradus_data::{Csr, Ratings};
use gradus_kernel::gram::Gram;

/// One side of the data: its rows, their penalties, and how they are cut into blocks.
pub(super) struct Side<'a> {
    pub(super) rows: &'a Csr,
    /// `w c(r)` of each observation; 1 if absent.
    pub(super) weights: Option<Vec<f32>>,
    /// The target of each observation; 1 if absent.
    targets: Option<Vec<f32>>,
    pub(super) lambdas: Vec<f32>,
    pub(super) blocks: Blocks,
}

impl<'a> Side<'a> {
    pub(super) fn new(
        rows: &'a Csr,
        weights: Option<&[f32]>,
        rule: &Implicit,
        (rank, n_others): (usize, usize),
    ) -> Self {
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
        let lambda = |row: usize| {
            let weights = weights.map(|weights| &weights[rows.range(row)]);
            rule.lambda(rows.row(row).1, weights, n_others)
        };
        let lambdas = (0..rows.n_rows()).map(lambda).collect();
        // A row costs its system, which has the size of the rank.
        let blocks = Blocks::new(rows, rank.min(1024));
        Self { rows, weights: confidences, targets, lambdas, blocks }
    }

    /// The confidence in each observation of a row.
    pub(super) fn weights(&self, row: usize) -> Option<&[f32]> {
        self.weights.as_ref().map(|weights| &weights[self.rows.range(row)])
    }

    /// The target of each observation of a row, less `known`.
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

/// The rows of one side, where their prior means come from features.
pub(super) struct Seen<'s> {
    pub(super) side: &'s Side<'s>,
    /// The normal equations of the pairs that were not observed.
    pub(super) base: Option<&'s Gram>,
    pub(super) biases: bool,
}

impl PriorRows for Seen<'_> {
    fn observations(&self) -> &Csr {
        self.side.rows
    }

    fn blocks(&self) -> &Blocks {
        &self.side.blocks
    }

    fn weights(&self, row: usize) -> Option<&[f32]> {
        self.side.weights(row)
    }

    fn penalties(&self, row: usize) -> (f32, Option<f32>) {
        let lambda = self.side.lambdas[row];
        (lambda, self.biases.then_some(lambda))
    }

    fn targets(&self, row: usize, fixed_bias: &[f32], to: &mut Vec<f32>) {
        let indices = self.side.rows.row(row).0;
        self.side.targets(row, |at| fixed_bias[indices[at] as usize], to);
    }

    fn base(&self) -> Option<&Gram> {
        self.base
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
