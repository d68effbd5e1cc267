//! Shared parts of the methods of matrix completion that use singular value decompositions (`svp`, `svt`): the observed
//! entries, iterates of low rank, and sums of a sparse matrix and one of low rank.
//!
//! Nothing here is as large as users × items.

mod low_rank;
#[cfg(test)]
mod tests;

pub(crate) use low_rank::{LowRank, SparsePlusLowRank};

use crate::baseline::{Components, solve_biases};
use crate::fitting;
use crate::latent::{self, FoldIn, HeldOut, LatentFactors, Parts, Scaling, Squares};
use gradus_base::{Result, parallel};
use gradus_core::progress::Stop;
use gradus_data::{Csr, Ratings};
use gradus_kernel::{Level, dense};

/// Rows handed to a thread at a time.
const ROWS: usize = 256;

/// The observed entries: ratings less the mean and the biases.
pub(crate) struct Observed<'a> {
    pub(crate) data: &'a Ratings,
    pub(crate) level: Level,
    /// The position of each entry of `by_item` in `by_user`.
    places: Vec<usize>,
    mean: f64,
    users: Vec<f32>,
    items: Vec<f32>,
    biases: bool,
    /// The penalties on biases, for users who are folded in.
    damping: [f32; 2],
    range: Option<(f32, f32)>,
    held_out: Option<HeldOut>,
    /// The entries in the order of `by_user`.
    pub(crate) targets: Vec<f64>,
    /// `Σ w t²` over the entries.
    pub(crate) squares: f64,
    /// `Σ w`.
    pub(crate) weight: f64,
}

impl<'a> Observed<'a> {
    /// Makes the entries from the residuals of `bias`, or from the ratings as they are.
    pub(crate) fn new(
        model: &str,
        data: &'a Ratings,
        held_out: Option<&Ratings>,
        (biases, clip): (bool, bool),
        stop: &Stop,
    ) -> Result<Self> {
        let (_, weight) = fitting::total(model, data)?;
        let (n, m) = (data.n_users(), data.n_items());
        let components = Components::estimate(data, biases, stop);
        let (mean, users, items) = if biases {
            let solved = solve_biases(data, components.damping, stop)?.0;
            (solved.mean, solved.users, solved.items)
        } else {
            (0.0, vec![0.0; n], vec![0.0; m])
        };
        let held_out = held_out
            .map(|held_out| HeldOut::new(held_out, data.users(), data.items()))
            .transpose()?;
        let (by_user, by_item) = (data.by_user(), data.by_item());
        let mut next = by_item.indptr().to_vec();
        let mut places = vec![0; data.len()];
        for (at, &item) in by_user.indices().iter().enumerate() {
            places[next[item as usize]] = at;
            next[item as usize] += 1;
        }
        let mut targets = Vec::with_capacity(data.len());
        for (user, &of_user) in users.iter().enumerate() {
            let (indices, values) = by_user.row(user);
            let base = mean + f64::from(of_user);
            targets.extend(
                indices.iter().zip(values).map(|(&item, &value)| {
                    f64::from(value) - base - f64::from(items[item as usize])
                }),
            );
        }
        let weights = data.weights_by_user();
        let w = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at]));
        let squares = targets.iter().enumerate().map(|(at, t)| w(at) * t * t).sum();
        Ok(Self {
            data,
            level: Level::best(),
            places,
            mean,
            users,
            items,
            biases,
            damping: components.damping.map(|damping| damping as f32),
            range: clip.then(|| latent::range(data)),
            held_out,
            targets,
            squares,
            weight,
        })
    }

    /// The weight of an entry.
    pub(crate) fn weight_of(&self, at: usize) -> f64 {
        self.data.weights_by_user().map_or(1.0, |weights| f64::from(weights[at]))
    }

    /// A sparse matrix of values in the order of `by_user`, by rows and by columns.
    pub(crate) fn sparse(&self, values: &[f64]) -> (Csr, Csr) {
        let rows = values.iter().map(|&x| x as f32).collect();
        let columns = self.places.iter().map(|&at| values[at] as f32).collect();
        (self.data.by_user().with_values(rows), self.data.by_item().with_values(columns))
    }

    /// The entries of `A Bᵀ` on the observed pairs, in the order of `by_user`.
    ///
    /// # Shapes
    /// `a` has a row of `k` values for each user, `b` one for each item.
    pub(crate) fn entries(&self, k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
        let rows = self.data.by_user();
        let parts = parallel::map(parallel::blocks(rows.n_rows(), ROWS), |block| {
            let mut out = Vec::new();
            for user in block {
                let own = &a[user * k..][..k];
                let products = rows.row(user).0.iter();
                out.extend(
                    products.map(|&item| dense::dot(self.level, own, &b[item as usize * k..][..k])),
                );
            }
            out
        });
        let mut all = Vec::with_capacity(self.data.len());
        parts.into_iter().for_each(|part| all.extend(part));
        all
    }

    /// Returns the residuals of the entries from a matrix of low rank, and `Σ w e²`.
    pub(crate) fn residuals(&self, x: &LowRank) -> (Vec<f64>, f64) {
        let mut residuals = self.entries(x.rank(), &x.scaled_users(), &x.items);
        residuals.iter_mut().zip(&self.targets).for_each(|(x, t)| *x = t - *x);
        let squares = residuals.iter().enumerate().map(|(at, e)| self.weight_of(at) * e * e).sum();
        (residuals, squares)
    }

    /// The error on held-out ratings.
    pub(crate) fn validate(&self, x: &LowRank) -> Option<f64> {
        let (k, users) = (x.rank(), x.scaled_users());
        Some(self.held_out.as_ref()?.rmse(self.range, |user, item| {
            let mut sum = self.mean;
            sum += user.map_or(0.0, |user| f64::from(self.users[user as usize]));
            sum += item.map_or(0.0, |item| f64::from(self.items[item as usize]));
            if let (Some(user), Some(item)) = (user, item) {
                let (user, item) = (user as usize * k, item as usize * k);
                sum += dense::dot(self.level, &users[user..][..k], &x.items[item..][..k]);
            }
            sum as f32
        }))
    }

    /// The model of the biases and a matrix of low rank. New users are solved for by least squares, with a penalty of
    /// the size of the error that is left.
    pub(crate) fn into_model(self, x: &LowRank, keep_history: bool) -> LatentFactors {
        let left = (self.residuals(x).1 / self.weight).sqrt();
        let least = 1e-6 * (self.squares / self.weight).sqrt();
        let regularization = (left.max(least) as f32).max(f32::MIN_POSITIVE);
        let (user_factors, item_factors) = x.factors();
        let parts = Parts {
            mean: self.mean,
            user_bias: self.users,
            item_bias: self.items,
            user_factors,
            item_factors,
            fold_in: FoldIn::Squares(Squares {
                regularization,
                scaling: Scaling::None,
                biases: self.biases,
                bias_regularization: self.biases.then_some(self.damping),
            }),
        };
        LatentFactors::new(self.data, parts, self.range, keep_history)
    }
}
