//! The attacks by name.

use super::Access;
use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Attack {
    /// The exact distance to the nearest other decision of a linear model.
    Exact,
    /// One step of the full radius along the gradient.
    Fgsm,
    /// Projected gradient descent with a fixed step, momentum and restarts.
    Pgd,
    /// Auto-PGD on the cross-entropy.
    ApgdCe,
    /// Auto-PGD on the difference of logits ratio.
    ApgdDlr,
    /// Auto-PGD on the targeted difference of logits ratio, towards one class after another.
    ApgdT,
    /// The fast adaptive boundary attack towards one class after another: shortest perturbations.
    FabT,
    /// Random search over windows, from scores alone.
    Square,
    /// Projected gradient descent on gradients by differences, from scores alone.
    Differences,
    /// Perturbations of a surrogate that was trained on decisions of the model.
    Transfer,
    /// HopSkipJump: along the boundary, from decisions alone.
    #[serde(rename = "hopskipjump")]
    HopSkipJump,
}

impl Attack {
    /// All attacks, with their names and what they do.
    pub const ALL: [(Self, &'static str, &'static str); 11] = [
        (Self::Exact, "exact", "the exact distance, of linear models"),
        (Self::Fgsm, "fgsm", "one step along the gradient"),
        (Self::Pgd, "pgd", "projected gradient descent with a fixed step"),
        (Self::ApgdCe, "apgd-ce", "Auto-PGD on the cross-entropy"),
        (Self::ApgdDlr, "apgd-dlr", "Auto-PGD on the difference of logits ratio"),
        (Self::ApgdT, "apgd-t", "the same towards one class after another"),
        (Self::FabT, "fab-t", "shortest perturbations towards one class after another"),
        (Self::Square, "square", "random search from scores"),
        (Self::Differences, "differences", "gradients by differences of scores"),
        (
            Self::Transfer,
            "transfer",
            "perturbations of a surrogate trained on decisions of the model",
        ),
        (Self::HopSkipJump, "hopskipjump", "along the boundary, from decisions"),
    ];

    /// The attack of a name.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn parse(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(attack, ..)| *attack).ok_or_else(|| Error::UnknownName {
            what: "attack",
            name: name.to_owned(),
            known: Self::ALL.map(|(_, name, _)| name).join(", "),
        })
    }

    /// The name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(attack, ..)| *attack == self).map_or("", |(_, name, _)| name)
    }

    /// What the attack asks the model for.
    pub fn access(self) -> Access {
        match self {
            Self::Square | Self::Differences => Access::Scores,
            Self::HopSkipJump | Self::Transfer => Access::Decisions,
            _ => Access::Gradients,
        }
    }

    /// Whether it looks for the shortest perturbation, whatever the radius.
    pub fn is_minimal(self) -> bool {
        matches!(self, Self::FabT | Self::HopSkipJump | Self::Exact)
    }

    /// The attacks that suit a model: the exact distance where it is known; with gradients those of AutoAttack (Auto-PGD on the
    /// cross-entropy, targeted Auto-PGD, FAB, Square); with scores Square; else HopSkipJump.
    pub fn ensemble(access: Access, exact: bool) -> Vec<Self> {
        match access {
            Access::Gradients if exact => vec![Self::Exact],
            Access::Gradients => vec![Self::ApgdCe, Self::ApgdT, Self::FabT, Self::Square],
            Access::Scores => vec![Self::Square, Self::HopSkipJump],
            Access::Decisions => vec![Self::HopSkipJump],
        }
    }

    /// Refuses an attack that asks for more than there is.
    ///
    /// # Errors
    /// Names what would work.
    pub fn check(self, access: Access, exact: bool) -> Result<()> {
        if self == Self::Exact && !exact {
            let rule = "distances are exact for linear models alone, with features that all change continuously; take fab-t, or \
                        hopskipjump of a model without gradients";
            return Err(Error::parameter("attacks", self, rule));
        }
        if self.access() <= access {
            return Ok(());
        }
        let works: Vec<&str> = Self::ALL
            .iter()
            .filter(|(attack, ..)| attack.access() <= access && *attack != Self::Exact)
            .map(|(_, name, _)| *name)
            .collect();
        let needs = match self.access() {
            Access::Gradients => "a gradient with respect to its features",
            _ => "scores",
        };
        let works = works.join(", ");
        let rule = format!(
            "the attack needs {needs}, which the model does not give; these would work: {works}"
        );
        Err(Error::parameter("attacks", self, rule))
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
