//! The weights of items from their Gram matrix.

use super::Ease;
use crate::choice::{NOWHERE, Subset};
use crate::fitting::interrupted;
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::Fit;
use gradus_core::progress::Stop;
use gradus_data::Csr;
use gradus_kernel::{Level, NotInverted, Rows, invert_positive, sum_rows};

/// Rows of the weights that a thread makes at a time.
const ROWS: usize = 64;

/// The Gram matrix `XᵀX` by rows, of the items that have a place; the others are left out.
///
/// Sums are taken in double precision in the order of the users.
pub(super) fn gram(by_user: &Csr, by_item: &Csr, places: &[u32]) -> Vec<f64> {
    let mut items: Vec<(u32, usize)> = (0..places.len())
        .filter(|&item| places[item] != NOWHERE)
        .map(|item| (places[item], item))
        .collect();
    items.sort_unstable();
    let n = items.len();
    let mut gram = vec![0.0; n * n];
    let rows = gram.chunks_exact_mut(n.max(1)).zip(items);
    parallel::each(rows, |(row, (_, item))| {
        let (users, strengths) = by_item.row(item);
        for (&user, &x) in users.iter().zip(strengths) {
            let (others, strengths) = by_user.row(user as usize);
            for (&other, &y) in others.iter().zip(strengths) {
                let place = places[other as usize];
                if place != NOWHERE {
                    row[place as usize] += f64::from(x) * f64::from(y);
                }
            }
        }
    });
    gram
}

/// The solution for a penalty.
pub(super) struct Weights {
    pub(super) rows: Rows,
    /// `‖X − X B‖² + λ ‖B‖²`.
    pub(super) objective: f64,
}

/// `B_ij = −P_ij / P_jj` with a zero diagonal, for `P = (G + λ I)⁻¹`.
pub(super) fn weights(n: usize, mut gram: Vec<f64>, lambda: f64, stop: &Stop) -> Result<Weights> {
    for i in 0..n {
        gram[i * n + i] += lambda;
    }
    invert_positive(n, &mut gram, &|| stop.requested()).map_err(|why| match why {
        NotInverted::Stopped => interrupted(Ease::NAME),
        NotInverted::NotPositive => Error::data(format!(
            "ease: with a penalty of {lambda} the normal equations are singular in double precision; \
             option `regularization` must be larger"
        )),
    })?;
    let inverse = gram;
    let diagonal: Vec<f64> = (0..n).map(|i| inverse[i * n + i]).collect();
    // What the regression of an item on all others leaves, its penalty included, is 1 / P_jj − λ.
    let objective: f64 = diagonal.iter().map(|p| (1.0 / p - lambda).max(0.0)).sum();
    let mut rows = Rows::zeros(n, n);
    let bands = rows.chunks_mut(ROWS).enumerate();
    parallel::each(bands, |(band, rows)| {
        let stride = gradus_kernel::padded(n);
        let (first, count) = (band * ROWS, rows.len() / stride);
        for (row, to) in (first..).zip(rows.chunks_exact_mut(stride)) {
            let from = &inverse[row * n..][..row];
            for ((to, p), own) in to.iter_mut().zip(from).zip(&diagonal) {
                *to = (-p / own) as f32;
            }
        }
        // What lies right of the diagonal, from the rows below, each of which is read along.
        for column in first + 1..n {
            let from = &inverse[column * n + first..][..count.min(column - first)];
            for (at, p) in from.iter().enumerate() {
                rows[at * stride + column] = (-p / diagonal[column]) as f32;
            }
        }
    });
    Ok(Weights { rows, objective })
}

/// The scores of all items for a user by the weights of a subset; 0 for items that are not in it.
pub(super) fn subset_scores(
    subset: &Subset,
    weights: &Weights,
    (items, x): (&[u32], &[f32]),
    scores: &mut [f32],
) {
    let mut sums = vec![0.0; weights.rows.stride()];
    let at: Vec<u32> = items.iter().map(|&item| subset.places[item as usize]).collect();
    let rows = weights.rows.as_slice();
    sum_rows(Level::best(), subset.items.len(), rows, &at, Some(x), &mut sums);
    scores.fill(0.0);
    for (&item, &sum) in subset.items.iter().zip(&sums) {
        scores[item as usize] = sum;
    }
}
