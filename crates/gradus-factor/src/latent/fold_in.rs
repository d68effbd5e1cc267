//! How one row is solved when the other side is known: folding in, updating, explaining.

use super::{Implicit, LatentFactors, Person};
use gradus_core::kernel::{RowProblem, RowSolver, padded};
use gradus_core::recommend::Profile;
use gradus_core::{Error, Result};
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
    /// Signs of interest, where pairs that were not observed count too.
    Implicit(Implicit),
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

impl LatentFactors {
    /// Solves for a new user from a handful of ratings, the items held fixed.
    ///
    /// For a user of the training data with the ratings of the training data this gives the very
    /// factors of the model, if it was fitted by exact row solves.
    pub fn fold_in(&self, profile: &Profile) -> Result<Person> {
        profile.check(self.items.len())?;
        // In the order in which training saw them, so that the sums agree to the last bit.
        let mut order: Vec<usize> = (0..profile.items.len()).collect();
        order.sort_unstable_by_key(|&at| profile.items[at]);
        let items: Vec<u32> = order.iter().map(|&at| profile.items[at]).collect();
        let values: Vec<f32> = order.iter().map(|&at| profile.values[at]).collect();
        if let (FoldIn::Implicit(_), Some(value)) =
            (&self.fold_in, values.iter().find(|&&value| value < 0.0))
        {
            return Err(Error::data(format!(
                "profile: the value {value} is negative; signs of interest are 0 or more"
            )));
        }
        Ok(self.solve_person(&items, &values, None))
    }

    pub(super) fn solve_person(
        &self,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> Person {
        match &self.fold_in {
            FoldIn::Squares(rule) => self.solve_squares(rule, items, values, weights),
            FoldIn::Implicit(rule) => self.solve_implicit(rule, items, values, weights),
        }
    }

    fn solve_squares(
        &self,
        rule: &Squares,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> Person {
        let targets: Vec<f32> = items
            .iter()
            .zip(values)
            .map(|(&item, &value)| {
                (f64::from(value) - self.mean) as f32 - self.item_bias[item as usize]
            })
            .collect();
        let lambda = rule.lambda(items.len(), weights);
        let mut factors = vec![0.0; padded(self.rank())];
        let solution = RowSolver::new(self.rank(), self.level).solve(
            &RowProblem {
                factors: self.item_factors.as_slice(),
                indices: items,
                targets: &targets,
                weights,
                lambda,
                bias: rule.biases.then_some(lambda),
                base: None,
                pull: None,
                residuals: false,
                upcoming: &[],
            },
            &mut factors,
        );
        Person { bias: solution.bias, factors }
    }
}
