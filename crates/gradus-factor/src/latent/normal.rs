//! Normalisation: ratings brought to a common mean and spread before the fit, and back on prediction.
//!
//! A value `r` of user `u` and item `i` is fitted as `x`, where `r = μ_u + σ_u (ν_i + τ_i x)`.
//!
//! A user's mean μ and standard deviation σ are taken as they are: someone who rates from 3 to 5
//! where others rate from 1 to 5 is followed exactly, so shifting or stretching all ratings of a
//! user shifts and stretches the predictions for them. One rating makes a mean without a spread,
//! and then, as for a user whose ratings are all equal, σ is 1. An item's mean ν and deviation τ
//! are estimates of what others will think; they are drawn towards those of all items as if by
//! [`PRIOR`] more ratings.

use gradus_base::Result;
use gradus_data::{Csr, Ratings};
use gradus_file::{Reader, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ratings of the common mean and spread that are added to every item.
const PRIOR: f64 = 5.0;

/// A spread below this share of the largest value is rounding, not opinion.
const NOISE: f64 = 1e-6;

/// The mean and spread that are removed from the ratings before the fit. Predictions are in the units of the ratings
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// No normalisation: ratings are fitted as they are.
    #[default]
    None,
    /// Each user's mean and standard deviation.
    User,
    /// Each item's mean and standard deviation.
    Item,
    /// The mean and standard deviation of each user, then those of each item in the residuals.
    Both,
}

/// `r = shift + scale · x`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    /// The shift, which is added.
    pub shift: f32,
    /// The scale, which is multiplied by; greater than zero.
    pub scale: f32,
}

impl Affine {
    /// Changes nothing.
    pub const IDENTITY: Self = Self { shift: 0.0, scale: 1.0 };

    /// Converts from normalised units to the original units.
    #[inline]
    pub(crate) fn undo(self, x: f32) -> f32 {
        self.shift + self.scale * x
    }

    /// Converts from the original units to normalised units.
    fn apply(self, r: f64) -> f64 {
        (r - f64::from(self.shift)) / f64::from(self.scale)
    }

    fn usable(self) -> bool {
        self.shift.is_finite() && self.scale.is_finite() && self.scale > 0.0
    }
}

/// The statistics of one side.
#[derive(Clone, Debug, PartialEq)]
struct Stats {
    rows: Vec<Affine>,
    /// The statistics of a row without training ratings.
    unknown: Affine,
}

impl Stats {
    fn of(&self, row: Option<u32>) -> Affine {
        row.map_or(self.unknown, |row| self.rows[row as usize])
    }
}

/// The statistics of users and items, as far as there are any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Normal {
    users: Option<Stats>,
    items: Option<Stats>,
}

/// The input of a fit: the ratings, normalised if the parameters say so.
pub(crate) struct Normalised<'a> {
    /// The ratings in their own units.
    pub(crate) source: &'a Ratings,
    pub(crate) normal: Option<Normal>,
    values: Option<Ratings>,
}

impl<'a> Normalised<'a> {
    pub(crate) fn new(kind: Normalize, source: &'a Ratings) -> Self {
        let normal = Normal::of(kind, source);
        let values = normal.as_ref().map(|normal| normal.apply_all(source));
        Self { source, normal, values }
    }

    /// The ratings in the units of the fit.
    pub(crate) fn data(&self) -> &Ratings {
        self.values.as_ref().unwrap_or(self.source)
    }

    /// A prediction in the ratings' own units.
    pub(crate) fn undo(&self, user: Option<u32>, item: Option<u32>, x: f32) -> f32 {
        self.normal.as_ref().map_or(x, |normal| normal.undo(user, item, x))
    }
}

impl Normal {
    /// The statistics of the data; none if there is nothing to normalise.
    fn of(kind: Normalize, data: &Ratings) -> Option<Self> {
        let mut normal = Self::default();
        if matches!(kind, Normalize::User | Normalize::Both) {
            let values = data.by_user().values();
            normal.users = Some(stats(data.by_user(), values, data.weights_by_user(), 0.0));
        }
        if matches!(kind, Normalize::Item | Normalize::Both) {
            // In the order of `by_item`, whose columns are the users.
            let by_item = data.by_item();
            let users = by_item.indices().iter().zip(by_item.values());
            let free = |(&user, &value)| normal.user(Some(user)).apply(f64::from(value)) as f32;
            let values: Vec<f32> = users.map(free).collect();
            normal.items = Some(stats(by_item, &values, data.weights_by_item(), PRIOR));
        }
        (kind != Normalize::None).then_some(normal)
    }

    /// The mean and spread to remove from a user's values; `None` is a user that training never saw.
    #[inline]
    pub(crate) fn user(&self, user: Option<u32>) -> Affine {
        self.users.as_ref().map_or(Affine::IDENTITY, |stats| stats.of(user))
    }

    /// The mean and spread to remove from an item's values, after those of the user.
    #[inline]
    pub(crate) fn item(&self, item: Option<u32>) -> Affine {
        self.items.as_ref().map_or(Affine::IDENTITY, |stats| stats.of(item))
    }

    /// A prediction in the ratings' own units.
    pub(crate) fn undo(&self, user: Option<u32>, item: Option<u32>, x: f32) -> f32 {
        self.user(user).undo(self.item(item).undo(x))
    }

    /// The normalised value of a rating.
    pub(crate) fn apply(&self, user: Affine, item: u32, value: f32) -> f32 {
        self.item(Some(item)).apply(user.apply(f64::from(value))) as f32
    }

    /// The same ratings, normalised.
    fn apply_all(&self, data: &Ratings) -> Ratings {
        data.map_values(|r| self.apply(self.user(Some(r.user)), r.item, r.value))
    }

    /// The mean and spread to remove from the values of a new user.
    pub(crate) fn new_user(&self, values: &[f32], weights: Option<&[f32]>) -> Affine {
        match &self.users {
            Some(stats) => affine(values, weights, stats.unknown, 0.0),
            None => Affine::IDENTITY,
        }
    }

    pub(crate) fn write(&self, file: &mut Writer<'_>) {
        let unknown = |stats: &Option<Stats>| stats.as_ref().map(|stats| stats.unknown);
        file.set("normal", &(unknown(&self.users), unknown(&self.items)));
        for (name, stats) in [("user", &self.users), ("item", &self.items)] {
            let Some(stats) = stats else { continue };
            let flat = stats.rows.iter().flat_map(|a| [a.shift, a.scale]).collect();
            file.tensor_owned(&format!("{name}_normal"), &[stats.rows.len(), 2], flat);
        }
    }

    /// Reads it back; `None` if the model was not normalised.
    pub(crate) fn read(file: &mut Reader, n_users: usize, n_items: usize) -> Result<Option<Self>> {
        let unknown: Option<(Option<Affine>, Option<Affine>)> = file.get("normal")?;
        let Some((user, item)) = unknown else { return Ok(None) };
        let mut side = |name: &str, unknown: Option<Affine>, n: usize| {
            let Some(unknown) = unknown else { return Ok(None) };
            let flat = file.finite(&format!("{name}_normal"), &[n, 2])?;
            let affine = |pair: &[f32]| Affine { shift: pair[0], scale: pair[1] };
            let rows: Vec<Affine> = flat.chunks_exact(2).map(affine).collect();
            if !rows.iter().chain([&unknown]).all(|affine| affine.usable()) {
                return Err(file.broken(format!("{name}_normal: a scale is not greater than 0")));
            }
            Ok(Some(Stats { rows, unknown }))
        };
        Ok(Some(Self { users: side("user", user, n_users)?, items: side("item", item, n_items)? }))
    }
}

/// The statistics of every row, drawn to those of all rows by `prior` more ratings.
fn stats(rows: &Csr, values: &[f32], weights: Option<&[f32]>, prior: f64) -> Stats {
    let all = moments(values, weights).0;
    let of = |row: usize| (&values[rows.range(row)], weights.map(|w| &w[rows.range(row)]));
    let (mut within, mut total) = (0.0, 0.0);
    for row in 0..rows.n_rows() {
        let (values, weights) = of(row);
        let (mean, weight) = moments(values, weights);
        within += squares(values, weights, mean);
        total += weight;
    }
    let unknown = shaped(all, within, total, values);
    let row = |row| {
        let (values, weights) = of(row);
        affine(values, weights, unknown, prior)
    };
    Stats { rows: (0..rows.n_rows()).map(row).collect(), unknown }
}

/// The statistics of one row.
fn affine(values: &[f32], weights: Option<&[f32]>, common: Affine, prior: f64) -> Affine {
    let (mean, weight) = moments(values, weights);
    if weight <= 0.0 {
        return common;
    }
    let (shift, scale) = (f64::from(common.shift), f64::from(common.scale));
    let mean = (weight * mean + prior * shift) / (weight + prior);
    let sum = squares(values, weights, mean) + prior * scale * scale;
    shaped(mean, sum, weight + prior, values)
}

/// A spread that is nothing but rounding is taken as 1.
fn shaped(mean: f64, squares: f64, weight: f64, values: &[f32]) -> Affine {
    let largest = values.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    let spread = (squares / weight).sqrt();
    let usable = spread > NOISE * f64::from(largest) && (spread as f32) > 0.0;
    Affine { shift: mean as f32, scale: if usable { spread as f32 } else { 1.0 } }
}

/// The mean and the sum of the weights.
fn moments(values: &[f32], weights: Option<&[f32]>) -> (f64, f64) {
    let weight = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at]));
    let total: f64 = (0..values.len()).map(weight).sum();
    let sum: f64 = values.iter().enumerate().map(|(at, &x)| weight(at) * f64::from(x)).sum();
    (if total > 0.0 { sum / total } else { 0.0 }, total)
}

/// The sum of squares about a mean.
fn squares(values: &[f32], weights: Option<&[f32]>, mean: f64) -> f64 {
    let weight = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at]));
    values.iter().enumerate().map(|(at, &x)| weight(at) * (f64::from(x) - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests;
