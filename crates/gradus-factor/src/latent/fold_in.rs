//! The solution of one row when the other side is known: folding in, updating, explaining.

use super::features::PriorMean;
use super::link::working;
use super::{Affine, FactorVector, Implicit, LatentFactors, Pairs, RatingLink, Robust};
use gradus_base::{Error, Result};
use gradus_core::recommend::{Profile, check_row, sorted_row};
use gradus_data::Entity;
use gradus_kernel::{RowCoordinates, RowProblem, RowSolver, Rows, padded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The growth of the penalty of a row with its number of ratings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// λ times the number of the row's ratings (the sum of their weights): the choice of the literature.
    #[default]
    Count,
    /// λ times the root of that number: between the two others, and better than both on most data.
    Sqrt,
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
    /// The absolute or the Huber loss with a penalty.
    Robust(Robust),
    /// Projection on the factors of the items, where what is absent is 0.
    Projection(Projection),
    /// Pairs: what a user has ranks above what the user does not have.
    Pairs(Pairs),
    /// Signs of interest, where pairs that were not observed count too.
    Implicit(Implicit),
    /// Least squares with a penalty over factors of 0 or more.
    NonNegative(NonNegative),
}

/// The least squares of [`Squares`] over factors of 0 or more; the bias is free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NonNegative {
    /// The penalties.
    pub non_negative: Squares,
}

/// Projection on item factors whose columns are orthogonal: `x_t = Σ_j r_j v_jt / Σ_i v_it²` over the
/// rated items `j` and all items `i`. It minimises `Σ_i (r_i − x·v_i)²` with 0 for what is absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// The power of the singular values in the item factors; the rest is in those of the users.
    pub power: f32,
}

/// Least squares with a penalty: `Σ w (y − x·v − β)² + λ_row ‖x‖² + λ_β β²`, in the units of the ratings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Squares {
    /// Strength of the penalty on factors.
    pub regularization: f32,
    /// The growth of the penalty with the row.
    pub scaling: Scaling,
    /// Whether there is a bias to solve for.
    pub biases: bool,
    /// The penalty on the biases of users and of items, the same for every row. Absent in models of 0.1,
    /// which had that of the factors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_regularization: Option<[f32; 2]>,
}

/// The penalty of the rows of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RowRule {
    regularization: f32,
    scaling: Scaling,
    /// The penalty on the bias, if there is one.
    bias: Option<BiasPenalty>,
}

/// The penalty on the bias of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BiasPenalty {
    /// A multiple of the penalty on the factors.
    Ratio(f32),
    /// The same for every row.
    Fixed(f32),
}

impl RowRule {
    /// The penalties on the factors and on the bias of a row with this many ratings; no bias, no penalty.
    pub(crate) fn of(&self, count: usize, weights: Option<&[f32]>) -> (f32, Option<f32>) {
        let count =
            || weights.map_or(count as f64, |weights| weights.iter().map(|&w| f64::from(w)).sum());
        let lambda = f64::from(self.regularization);
        let lambda = match self.scaling {
            Scaling::None => self.regularization,
            Scaling::Sqrt => (lambda * count().sqrt()) as f32,
            Scaling::Count => (lambda * count()) as f32,
        };
        let bias = self.bias.map(|bias| match bias {
            BiasPenalty::Ratio(ratio) => ratio * lambda,
            BiasPenalty::Fixed(bias) => bias,
        });
        (lambda, bias)
    }

    /// The rule that has the penalties of this row, whatever its ratings weigh.
    pub(super) fn fixed(&self, count: usize, weights: Option<&[f32]>) -> Self {
        let (regularization, bias) = self.of(count, weights);
        Self { regularization, scaling: Scaling::None, bias: bias.map(BiasPenalty::Fixed) }
    }

    /// The rule of rows whose bias has this many times the penalty of the factors.
    pub(crate) fn with_ratio(regularization: f32, scaling: Scaling, ratio: Option<f32>) -> Self {
        Self { regularization, scaling, bias: ratio.map(BiasPenalty::Ratio) }
    }
}

/// Rounds of coordinate descent over a row of non-negative factors at a time, and how often at most.
const ROUNDS: (usize, usize) = (10, 100);

/// Steps of Newton's method to fold in a user under a logistic link; six are enough from 0.
const NEWTON_STEPS: usize = 8;

impl Squares {
    /// The penalty of the rows of users.
    pub(crate) fn of_users(&self) -> RowRule {
        self.rows(0)
    }

    /// The penalty of the rows of items.
    pub(crate) fn of_items(&self) -> RowRule {
        self.rows(1)
    }

    fn rows(&self, side: usize) -> RowRule {
        let Self { regularization, scaling, biases, bias_regularization } = *self;
        let of = |sides: [f32; 2]| BiasPenalty::Fixed(sides[side]);
        let bias = biases.then(|| bias_regularization.map_or(BiasPenalty::Ratio(1.0), of));
        RowRule { regularization, scaling, bias }
    }
}

/// The scale `|N|^-½` of the sum of implicit factors: a rating of weight zero counts as absent, and any
/// other counts once.
pub(crate) fn implicit_scale(count: usize, weights: Option<&[f32]>) -> f32 {
    let count = weights.map_or(count, |weights| weights.iter().filter(|&&w| w > 0.0).count());
    1.0 / (count.max(1) as f32).sqrt()
}

/// Returns 0 for each rating whose weight is 0 and 1 for the others; `None` if no weight is 0.
pub(crate) fn presence(weights: &[f32]) -> Option<Vec<f32>> {
    let some_absent = weights.contains(&0.0);
    some_absent.then(|| weights.iter().map(|&w| f32::from(u8::from(w > 0.0))).collect())
}

/// The side that is held fixed while a row of the other is solved.
pub(super) struct Fixed<'a> {
    pub(super) factors: &'a Rows,
    pub(super) bias: &'a [f32],
}

impl LatentFactors {
    /// How rows are solved.
    #[cfg(test)]
    pub(crate) fn rule_for_test(&self) -> FoldIn {
        self.fold_in
    }

    /// Solves for a new user from a handful of ratings, the items held fixed.
    ///
    /// For a user of the training data with the ratings of the training data this gives the very
    /// factors of the model, if it was fitted by exact row solves.
    pub fn fold_in(&self, profile: &Profile) -> Result<FactorVector> {
        // In the order in which training saw them, so that the sums agree to the last bit.
        let Profile { items, values } = profile.sorted(self.items.len())?;
        self.check_profile(&values)?;
        Ok(self.solve_user(&items, &values, None, None))
    }

    /// Refuses values that cannot be signs of interest where the model takes them for such.
    pub(super) fn check_profile(&self, values: &[f32]) -> Result<()> {
        match (&self.fold_in, values.iter().find(|&&value| value < 0.0)) {
            (FoldIn::Implicit(_), Some(value)) => Err(Error::data(format!(
                "profile: the value {value} is negative; signs of interest are 0 or more"
            ))),
            _ => Ok(()),
        }
    }

    /// Solves for a new item from a handful of ratings, the users held fixed: `values[k]` is the
    /// rating of user `users[k]`. Returns its bias and its factors.
    ///
    /// # Shapes
    /// `rank()` factors.
    ///
    /// # Errors
    /// If there are no ratings, a user is unknown or occurs twice, or a value is not finite; or if
    /// the items of this kind of model cannot be solved by themselves.
    pub fn fold_in_item(&self, users: &[u32], values: &[f32]) -> Result<(f32, Vec<f32>)> {
        check_row("new item", "user", users, values, self.users.len())?;
        let (users, values) = sorted_row(users, values);
        let mut item = self.solve_item(&users, &values, None, None)?;
        item.factors.truncate(self.rank());
        Ok((item.bias, item.factors))
    }

    /// Solves the row of an item, the users held fixed. `users` ascend.
    pub(super) fn solve_item(
        &self,
        users: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
        prior: Option<PriorMean>,
    ) -> Result<FactorVector> {
        let fixed = Fixed { factors: &self.user_factors, bias: &self.user_bias };
        let plain =
            self.link.is_identity() && self.normal.is_none() && self.implicit_factors.is_none();
        match &self.fold_in {
            FoldIn::Squares(rule) if plain => {
                let targets = self.targets(&fixed, users, values);
                Ok(self.solve_about(&rule.of_items(), &fixed, users, targets, weights, prior))
            }
            FoldIn::Robust(rule) if plain => {
                let targets = self.targets(&fixed, users, values);
                let row = rule.squares().of_items();
                Ok(self.solve_robust((rule, &row), &fixed, users, &targets, weights))
            }
            FoldIn::NonNegative(rule) if plain => {
                let targets = self.targets(&fixed, users, values);
                let row = rule.non_negative.of_items();
                Ok(self.solve_non_negative(&row, &fixed, users, &targets, weights))
            }
            FoldIn::Implicit(rule) => {
                let base = self.users_base(rule);
                let about = (self.n_observed(Entity::User), prior);
                Ok(self.solve_implicit_row(rule, &fixed, &base, (users, values, weights), about))
            }
            _ => Err(Error::data("the items of this kind of model cannot be solved by themselves")),
        }
    }

    /// Solves the row of a user, the items held fixed. `items` ascend.
    pub(super) fn solve_user(
        &self,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
        prior: Option<PriorMean>,
    ) -> FactorVector {
        match &self.fold_in {
            FoldIn::Squares(rule) if self.link.is_identity() => {
                self.solve_squares(&rule.of_users(), items, values, weights, prior)
            }
            FoldIn::Squares(rule) => self.solve_linked(&rule.of_users(), items, values, weights),
            FoldIn::Robust(rule) => {
                let fixed = Fixed { factors: &self.item_factors, bias: &self.item_bias };
                let targets = self.targets(&fixed, items, values);
                let row = rule.squares().of_users();
                self.solve_robust((rule, &row), &fixed, items, &targets, weights)
            }
            FoldIn::NonNegative(rule) => {
                let fixed = Fixed { factors: &self.item_factors, bias: &self.item_bias };
                let targets = self.targets(&fixed, items, values);
                let row = rule.non_negative.of_users();
                self.solve_non_negative(&row, &fixed, items, &targets, weights)
            }
            FoldIn::Pairs(rule) => self.solve_pairs(rule, items),
            FoldIn::Projection(_) => self.project(items, values, weights),
            FoldIn::Implicit(rule) => {
                let fixed = Fixed { factors: &self.item_factors, bias: &self.item_bias };
                let base = self.items_base(rule);
                let about = (self.n_observed(Entity::Item), prior);
                self.solve_implicit_row(rule, &fixed, &base, (items, values, weights), about)
            }
        }
    }

    /// The inverse squares of the lengths of the columns of item factors; 0 where there is nothing.
    pub(super) fn inverse_lengths(&self) -> Vec<f64> {
        let mut lengths = vec![0.0; self.rank()];
        for item in 0..self.items.len() {
            for (length, &x) in lengths.iter_mut().zip(self.item_factors(item)) {
                *length += f64::from(x) * f64::from(x);
            }
        }
        lengths.into_iter().map(|length| if length > 0.0 { 1.0 / length } else { 0.0 }).collect()
    }

    fn project(&self, items: &[u32], values: &[f32], weights: Option<&[f32]>) -> FactorVector {
        let mut sums = vec![0.0; self.rank()];
        for (at, (&item, &value)) in items.iter().zip(values).enumerate() {
            let value = f64::from(value * weights.map_or(1.0, |weights| weights[at]));
            for (sum, &x) in sums.iter_mut().zip(self.item_factors(item as usize)) {
                *sum += value * f64::from(x);
            }
        }
        let mut factors = vec![0.0; padded(self.rank())];
        for ((to, sum), by) in factors.iter_mut().zip(sums).zip(self.inverse_lengths()) {
            *to = (sum * by) as f32;
        }
        FactorVector { bias: 0.0, factors, normal: Affine::IDENTITY }
    }

    fn solve_linked(
        &self,
        rule: &RowRule,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> FactorVector {
        // Newton's method: the penalty is in the units of the loss, so it is solved with the
        // weights of the step but counted by those of the ratings.
        let factors = vec![0.0; padded(self.rank())];
        let mut vector = FactorVector { bias: 0.0, factors, normal: Affine::IDENTITY };
        for _ in 0..NEWTON_STEPS {
            let (targets, curvatures) = self.working_ratings(&vector, items, values, weights);
            let rule = rule.fixed(items.len(), weights);
            vector = self.solve_squares(&rule, items, &targets, Some(&curvatures), None);
        }
        vector
    }

    /// Targets and weights of the least squares whose solution is the next of Newton's steps.
    pub(super) fn working_ratings(
        &self,
        vector: &FactorVector,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> (Vec<f32>, Vec<f32>) {
        let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
        let RatingLink::Logistic { low, high } = self.link else {
            return (values.to_vec(), (0..items.len()).map(weight).collect());
        };
        let step = |(at, (&item, &value)): (usize, (&u32, &f32))| {
            let score = self.score_of_item(vector, item as usize);
            let (target, curvature) = working(low, high, value, score);
            (target, weight(at) * curvature)
        };
        items.iter().zip(values).enumerate().map(step).unzip()
    }

    fn solve_squares(
        &self,
        rule: &RowRule,
        items: &[u32],
        values: &[f32],
        weights: Option<&[f32]>,
        prior: Option<PriorMean>,
    ) -> FactorVector {
        let (normal, values) = self.normalised(items, values, weights);
        let fixed = Fixed { factors: &self.item_factors, bias: &self.item_bias };
        let targets = self.targets(&fixed, items, &values);
        // What the items say that a user rated, or what the user's features say: no model has both.
        let centre = self.centre(items, weights).or(prior);
        let vector = self.solve_about(rule, &fixed, items, targets, weights, centre);
        FactorVector { normal, ..vector }
    }

    /// The values less the mean and the bias of the other side: what the row has to explain.
    pub(super) fn targets(&self, fixed: &Fixed<'_>, indices: &[u32], values: &[f32]) -> Vec<f32> {
        let left = |(&index, &value): (&u32, &f32)| {
            (f64::from(value) - self.mean) as f32 - fixed.bias[index as usize]
        };
        indices.iter().zip(values).map(left).collect()
    }

    pub(super) fn solve_row(
        &self,
        rule: &RowRule,
        fixed: &Fixed<'_>,
        indices: &[u32],
        targets: &[f32],
        weights: Option<&[f32]>,
    ) -> FactorVector {
        let (lambda, bias) = rule.of(indices.len(), weights);
        let mut factors = vec![0.0; padded(self.rank())];
        let solution = RowSolver::new(self.rank(), self.level).solve(
            &RowProblem {
                factors: fixed.factors.as_slice(),
                indices,
                targets,
                weights,
                lambda,
                bias,
                base: None,
                linear: None,
                residuals: false,
                upcoming: &[],
            },
            &mut factors,
        );
        FactorVector { bias: solution.bias, factors, normal: Affine::IDENTITY }
    }

    /// Solves a row with factors of 0 or more: coordinate descent from 0, until no factor moves any more.
    fn solve_non_negative(
        &self,
        rule: &RowRule,
        fixed: &Fixed<'_>,
        indices: &[u32],
        targets: &[f32],
        weights: Option<&[f32]>,
    ) -> FactorVector {
        let (lambda, of_bias) = rule.of(indices.len(), weights);
        let problem = RowProblem {
            factors: fixed.factors.as_slice(),
            indices,
            targets,
            weights,
            lambda,
            bias: of_bias,
            base: None,
            linear: None,
            residuals: false,
            upcoming: &[],
        };
        let mut solver = RowCoordinates::non_negative(self.rank(), self.level);
        let (mut factors, mut bias) = (vec![0.0; padded(self.rank())], 0.0);
        for _ in 0..ROUNDS.1 {
            let before = factors.clone();
            bias = solver.improve(&problem, ROUNDS.0, &mut factors, bias).bias;
            let size = factors.iter().fold(0.0f32, |most, &x| most.max(x));
            let moved = factors.iter().zip(&before).map(|(a, b)| (a - b).abs());
            if moved.fold(0.0, f32::max) <= 1e-6 * size {
                break;
            }
        }
        FactorVector { bias, factors, normal: Affine::IDENTITY }
    }

    /// The sum of the implicit factors of the items that a user rated: the centre of the user's penalty,
    /// bias and factors.
    fn centre(&self, items: &[u32], weights: Option<&[f32]>) -> Option<(f32, Vec<f32>)> {
        let implicit = self.implicit_factors.as_ref()?;
        let mut row = vec![0.0; implicit.factors.stride()];
        let present = weights.and_then(presence);
        let bias = implicit.sum(self.level, items, present.as_deref(), &mut row);
        let scale = implicit_scale(items.len(), weights);
        row.iter_mut().for_each(|x| *x *= scale);
        Some((bias * scale, row))
    }

    /// The mean and spread of a user's values, and the values without them.
    pub(super) fn normalised<'v>(
        &self,
        items: &[u32],
        values: &'v [f32],
        weights: Option<&[f32]>,
    ) -> (Affine, Cow<'v, [f32]>) {
        let Some(normal) = &self.normal else { return (Affine::IDENTITY, values.into()) };
        let user = normal.new_user(values, weights);
        let free = |(&item, &value)| normal.apply(user, item, value);
        (user, items.iter().zip(values).map(free).collect::<Vec<_>>().into())
    }
}
