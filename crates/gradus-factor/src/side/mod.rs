//! Side information: the prior mean of a row's bias and factors is a linear map of its features.
//!
//! The penalty of a row is `λ_i ‖u_i − m_i‖²` with `m_i = Wᵀ(x_i − x̄)` in place of `λ_i ‖u_i‖²`, and the map `W`
//! has a penalty `Σ_j ρ_j ‖W_j‖²` of its own, one strength for each column of the side table, chosen from
//! the data. A row without ratings is its prior mean; a row with many is where it would be without features.
//!
//! | file | what it does |
//! |---|---|
//! | `map.rs` | the map: prior means of rows, what each feature adds, its place in a model file |
//! | `rows.rs` | the rows of one side: ratings, or whatever else a model brings |
//! | `half.rs` | half a step of least squares about prior means |
//! | `prior.rs` | one side during a fit: the gradient with respect to the map and a direction to go |
//! | `strength.rs` | how strongly the map is penalised, column by column |
//!
//! # The step of the map
//!
//! With every row at its minimum, `F(W) = Σ_i min_u [loss_i(u) + λ_i‖u − Wᵀx_i‖²] + Σ ρ‖W‖²` is a quadratic whose
//! gradient is `−2 Σ_i x_i λ_i (u_i − m_i)ᵀ + 2ρW`, and whose second derivative in row `i` is
//! `S_i = λ_i A_i (A_i + λ_i)⁻¹`, with `A_i` the Gram matrix of the row. Setting `W` to the ridge regression of the rows, in turns
//! with them, takes `λ_i` for `S_i`, and crawls where rows have few ratings. Here each half-step goes along
//! a direction `D = H⁻¹ · gradient`, with `S_i` taken for diagonal in the principal axes of the other side.
//! While a row's system is factored, it is solved for `λ_i Dᵀx_i` as well: that gives the exact second derivative along `D`, so the
//! step is the exact minimum along `D` and the objective never rises.

#[cfg(test)]
mod bayes_tests;
mod half;
#[cfg(test)]
mod implicit_tests;
mod map;
mod prior;
mod rows;
mod strength;
#[cfg(test)]
mod tests;

pub(crate) use map::FeatureMap;
pub(crate) use prior::{OtherSide, Prior};
pub(crate) use rows::{PriorRows, Rated};
pub(crate) use strength::{Strength, Strengths};
