//! The matrix of residuals: its largest singular values, and the duality gap that follows from them.
//!
//! With `θ = w e` the dual problem is to maximise
//!
//! `Σ θ (r − α) − ½ Σ θ²/w − ½ Σ_u (Σ_i θ_ui)²/d_u − ½ Σ_i (Σ_u θ_ui)²/d_i`
//!
//! over all θ on the observed pairs with `‖θ‖₂ ≤ τ` and `Σ θ = 0`. Any such θ gives a lower bound of the
//! objective; the residuals, scaled down until they are feasible, give one that is exact at the optimum.

use super::solve::State;
use crate::latent::Squares;
use gradus_base::{Result, parallel};
use gradus_data::{Csr, Ratings};
use gradus_kernel::Level;
use gradus_linalg::{Options, Sparse, Svd, truncated};
use std::borrow::Cow;

/// Rows handed to a thread at a time.
const ROWS: usize = 256;

/// The weighted residuals `w e` on the observed pairs, the mean at its optimum.
pub(super) struct Residuals<'a> {
    data: &'a Ratings,
    rows: Csr,
    columns: Csr,
    /// `Σ w e²`.
    squares: f64,
    /// `Σ w e (r − α)`.
    along: f64,
    /// The sums of `w e` of each user and of each item.
    sums: [Vec<f64>; 2],
}

/// The residuals of one row.
#[derive(Default)]
struct Part {
    values: Vec<f32>,
    sums: Vec<f64>,
    squares: f64,
    along: f64,
}

impl<'a> Residuals<'a> {
    pub(super) fn new(level: Level, data: &'a Ratings, state: &State) -> Self {
        let als = &state.als;
        let mean = als.mean + als.drift;
        let side = |matrix: &Csr, weights: Option<&[f32]>, own, other| {
            let (own, other): (&crate::vectors::Vectors, &crate::vectors::Vectors) = (own, other);
            let parts = parallel::map(parallel::blocks(matrix.n_rows(), ROWS), |rows| {
                let (mut part, mut dots) = (Part::default(), Vec::new());
                for row in rows {
                    let (indices, values) = matrix.row(row);
                    let range = matrix.range(row);
                    dots.resize(indices.len(), 0.0f32);
                    let factors = other.factors.as_slice();
                    gradus_kernel::dots(level, factors, indices, own.factors.row(row), &mut dots);
                    let base = mean + f64::from(own.bias[row]);
                    let mut sum = 0.0;
                    for (at, (&index, &value)) in indices.iter().zip(values).enumerate() {
                        let w = weights.map_or(1.0, |weights| f64::from(weights[range.start + at]));
                        let bias = f64::from(other.bias[index as usize]);
                        let e = f64::from(value) - base - bias - f64::from(dots[at]);
                        part.values.push((w * e) as f32);
                        sum += w * e;
                        part.squares += w * e * e;
                        part.along += w * e * (f64::from(value) - mean);
                    }
                    part.sums.push(sum);
                }
                part
            });
            let mut all = Part::default();
            all.values.reserve(matrix.nnz());
            for part in parts {
                all.values.extend(part.values);
                all.sums.extend(part.sums);
                all.squares += part.squares;
                all.along += part.along;
            }
            all
        };
        let (users, items) = (&als.users, &als.items);
        let by_user = side(data.by_user(), data.weights_by_user(), users, items);
        let by_item = side(data.by_item(), data.weights_by_item(), items, users);
        Self {
            data,
            rows: data.by_user().with_values(by_user.values),
            columns: data.by_item().with_values(by_item.values),
            squares: by_user.squares,
            along: by_user.along,
            sums: [by_user.sums, by_item.sums],
        }
    }

    /// The leading singular values and vectors.
    pub(super) fn leading(&self, k: usize, options: &Options) -> Result<Svd> {
        let k = k.min(self.data.n_users()).min(self.data.n_items());
        let matrix = Sparse::from_both(Cow::Borrowed(&self.rows), Cow::Borrowed(&self.columns));
        truncated(&matrix, k, options)
    }

    /// The duality gap as a share of the objective, given the largest singular value of the residuals; `None` where
    /// biases have no penalty, since the dual then has further constraints.
    pub(super) fn gap(&self, rule: &Squares, largest: f64, objective: f64) -> Option<f64> {
        let mut bend = self.squares;
        if rule.biases {
            for (sums, penalty) in self.sums.iter().zip(rule.bias_regularization?) {
                if penalty <= 0.0 {
                    return None;
                }
                bend += sums.iter().map(|x| x * x).sum::<f64>() / f64::from(penalty);
            }
        }
        let feasible = if largest > 0.0 { f64::from(rule.regularization) / largest } else { 1.0 };
        let best = if bend > 0.0 { (self.along / bend).max(0.0) } else { 0.0 };
        let scale = best.min(feasible);
        let dual = scale * self.along - 0.5 * scale * scale * bend;
        Some(if objective > 0.0 { ((objective - dual) / objective).max(0.0) } else { 0.0 })
    }

    /// Returns `Σ w u² v²` over the observed pairs for each of the leading directions `u vᵀ`.
    pub(super) fn curvatures(&self, found: &Svd, count: usize) -> Vec<f64> {
        let (matrix, weights) = (self.data.by_user(), self.data.weights_by_user());
        let parts = parallel::map(parallel::blocks(matrix.n_rows(), ROWS), |rows| {
            let mut sums = vec![0.0; count];
            for row in rows {
                let (indices, range) = (matrix.row(row).0, matrix.range(row));
                let mut inner = vec![0.0; count];
                for (&item, at) in indices.iter().zip(range) {
                    let w = weights.map_or(1.0, |weights| f64::from(weights[at]));
                    let v = &found.v.row(item as usize)[..count];
                    inner.iter_mut().zip(v).for_each(|(sum, v)| *sum += w * v * v);
                }
                let u = found.u.row(row);
                sums.iter_mut().zip(inner).zip(u).for_each(|((sum, x), u)| *sum += u * u * x);
            }
            sums
        });
        let mut total = vec![0.0; count];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        total
    }
}
