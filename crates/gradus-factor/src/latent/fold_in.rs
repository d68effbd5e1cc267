//! How one row is solved when the other side is known: folding in, updating, explaining.

use super::{LatentFactors, Person};
use gradus_core::Result;
use gradus_core::kernel::{RowProblem, RowSolver, Rows, padded};
use gradus_core::recommend::{Profile, check_row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the penalty of a row grows with its number of ratings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// λ times the number of the row's ratings (the sum of their weights): the common choice, whose best λ hardly depends on the size of the data.
    #[default]
    Count,
    /// λ for every row alike: rows with many ratings are fitted more closely.
    None,
}

/// How a row is solved when the other side is known. Kept in the model file.
///
/// A new way is a new variant; a file tells them apart by the names of their fields.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FoldIn {
    /// Least squares with a penalty.
    Squares(Squares),
}

/// Least squares with a penalty: `Σ w (y − x·v − β)² + λ_row (‖x‖² + β²)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Squares {
    /// Strength of the penalty.
    pub regularization: f32,
    /// How it grows with the row.
    pub scaling: Scaling,
    /// Whether there is a bias to solve for.
    pub biases: bool,
}

impl Squares {
    /// The penalty of a row with so many ratings.
    pub(crate) fn lambda(&self, count: usize, weights: Option<&[f32]>) -> f32 {
        match self.scaling {
            Scaling::None => self.regularization,
            Scaling::Count => {
                let count = weights
                    .map_or(count as f64, |weights| weights.iter().map(|&w| f64::from(w)).sum());
                (f64::from(self.regularization) * count) as f32
            }
        }
    }
}

/// The side that is held fixed while a row of the other is solved.
struct Fixed<'a> {
    factors: &'a Rows,
    bias: &'a [f32],
}

impl LatentFactors {
    /// Solves for a new user from a handful of ratings, the items held fixed.
    ///
    /// For a user of the training data with the ratings of the training data this gives the very
    /// factors of the model, if it was fitted by exact row solves.
    pub fn fold_in(&self, profile: &Profile) -> Result<Person> {
        profile.check(self.items.len())?;
        let (items, values) = in_order(&profile.items, &profile.values);
        Ok(self.solve_person(&items, &values, None))
    }

    /// Solves for a new item from a handful of ratings, the users held fixed: `values[k]` is the
    /// rating of user `users[k]`. Returns its bias and its factors.
    ///
    /// # Shapes
    /// `rank()` factors.
    ///
    /// # Errors
    /// If there are no ratings, a user is unknown or occurs twice, or a value is not finite.
    pub fn fold_in_item(&self, users: &[u32], values: &[f32]) -> Result<(f32, Vec<f32>)> {
        check_row("new item", "user", users, values, self.users.len())?;
        let (users, values) = in_order(users, values);
        let mut item = self.solve_item(&users, &values, None);
        item.factors.truncate(self.rank());
        Ok((item.bias, item.factors))
    }

    /// Solves the row of a user, the items held fixed. `items` ascend.
    pub(super) fn solve_person(
        &self,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> Person {
        let fixed = Fixed { factors: &self.item_factors, bias: &self.item_bias };
        match &self.fold_in {
            FoldIn::Squares(rule) => self.solve_squares(rule, &fixed, items, values, weights),
        }
    }

    /// Solves the row of an item, the users held fixed. `users` ascend.
    pub(super) fn solve_item(
        &self,
        users: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> Person {
        let fixed = Fixed { factors: &self.user_factors, bias: &self.user_bias };
        match &self.fold_in {
            FoldIn::Squares(rule) => self.solve_squares(rule, &fixed, users, values, weights),
        }
    }

    fn solve_squares(
        &self,
        rule: &Squares,
        fixed: &Fixed<'_>,
        indices: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> Person {
        let targets: Vec<f32> = indices
            .iter()
            .zip(values)
            .map(|(&index, &value)| {
                (f64::from(value) - self.mean) as f32 - fixed.bias[index as usize]
            })
            .collect();
        let lambda = rule.lambda(indices.len(), weights);
        let mut factors = vec![0.0; padded(self.rank())];
        let solution = RowSolver::new(self.rank(), self.level).solve(
            &RowProblem {
                factors: fixed.factors.as_slice(),
                indices,
                targets: &targets,
                weights,
                lambda,
                bias: rule.biases.then_some(lambda),
                base: None,
                residuals: false,
                upcoming: &[],
            },
            &mut factors,
        );
        Person { bias: solution.bias, factors }
    }
}

/// Ratings in the order in which training saw them, so that the sums agree to the last bit.
fn in_order(indices: &[u32], values: &[f32]) -> (Vec<u32>, Vec<f32>) {
    let mut order: Vec<usize> = (0..indices.len()).collect();
    order.sort_unstable_by_key(|&at| indices[at]);
    order.iter().map(|&at| (indices[at], values[at])).unzip()
}
