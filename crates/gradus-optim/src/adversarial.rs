//! Norms of the perturbations that models learn against.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The norm of perturbations in adversarial training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdversarialNorm {
    /// The largest change of a feature.
    #[default]
    Linf,
    /// The root of the sum of squared changes.
    L2,
}

impl AdversarialNorm {
    /// The name for programs: `linf`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linf => "linf",
            Self::L2 => "l2",
        }
    }

    /// The dual norm: the most that a perturbation of norm 1 changes the product with `v`.
    ///
    /// ```
    /// use gradus_optim::AdversarialNorm;
    /// assert_eq!(AdversarialNorm::Linf.dual([3.0, -4.0]), 7.0);
    /// assert_eq!(AdversarialNorm::L2.dual([3.0, -4.0]), 5.0);
    /// ```
    pub fn dual(self, v: impl IntoIterator<Item = f64>) -> f64 {
        let v = v.into_iter();
        match self {
            Self::Linf => v.map(f64::abs).sum(),
            Self::L2 => v.map(|x| x * x).sum::<f64>().sqrt(),
        }
    }
}
