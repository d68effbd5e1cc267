//! How strong a sign of interest is: the matrix that the models of item weights and graph filters see.

use crate::catalogue::UserProfile;
use gradus_base::{Error, Result};
use gradus_data::{Csr, Ratings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The strength `x` of an interaction as a function of its value `r` and its weight `w`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// `x = w` for every value above 0: that there was an interaction counts, not how much.
    #[default]
    Presence,
    /// `x = w ln(1 + r)`: counts that level off.
    Log,
    /// `x = w r`: counts as they are.
    Value,
}

impl Strength {
    /// The strength of an interaction.
    pub(crate) fn of(self, value: f32, weight: f32) -> f32 {
        match self {
            Self::Presence if value > 0.0 => weight,
            Self::Presence => 0.0,
            Self::Log => weight * value.max(0.0).ln_1p(),
            Self::Value => weight * value,
        }
    }

    /// The strengths of all values.
    pub(crate) fn all(self, values: &[f32], weights: Option<&[f32]>) -> Vec<f32> {
        let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
        values.iter().enumerate().map(|(at, &value)| self.of(value, weight(at))).collect()
    }

    /// The strengths of a profile, in the order of its items.
    pub(crate) fn of_profile(self, profile: &UserProfile<'_>) -> Vec<f32> {
        self.all(&profile.values, profile.weights)
    }

    /// The strengths by user.
    pub(crate) fn by_user(self, data: &Ratings) -> Csr {
        data.by_user().with_values(self.all(data.by_user().values(), data.weights_by_user()))
    }

    /// The strengths by item.
    pub(crate) fn by_item(self, data: &Ratings) -> Csr {
        data.by_item().with_values(self.all(data.by_item().values(), data.weights_by_item()))
    }
}

/// The mean square of the strengths above 0: the unit of the penalties, so that they do not depend on the
/// scale of the values.
///
/// # Errors
/// If no strength is above 0, or they are too large to be squared.
pub(crate) fn mean_square(model: &str, strengths: &Csr) -> Result<f64> {
    let (mut sum, mut count) = (0.0, 0usize);
    for &x in strengths.values().iter().filter(|&&x| x > 0.0) {
        sum += f64::from(x).powi(2);
        count += 1;
    }
    if count == 0 {
        return Err(Error::data(format!(
            "{model}: all values or weights are 0: there is no sign of interest to learn from"
        )));
    }
    let most = f64::from(f32::MAX);
    if sum > most {
        return Err(Error::data(format!(
            "{model}: the squares of the strengths add up to {sum:e}, more than single precision holds \
             ({most:e}); the values are too large"
        )));
    }
    Ok(sum / count as f64)
}
