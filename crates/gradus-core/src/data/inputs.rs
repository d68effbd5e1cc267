//! What a model is told of a sample, and how the columns of a table become numbers.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

#[cfg(feature = "tables")]
mod encode;

#[cfg(feature = "tables")]
pub use encode::{EncodeOptions, Encoded, Fill};

/// What a model is told of a sample: so many plain numbers, or the columns of a table.
///
/// A model keeps it, so that a table is turned into the same numbers ever after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// So many numbers without names.
    Plain(usize),
    /// Columns of a table.
    Columns(Vec<Input>),
}

/// A column of a table, as a model takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The column's name.
    pub name: String,
    /// How it becomes numbers.
    #[serde(flatten)]
    pub kind: InputKind,
}

/// How a column becomes numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InputKind {
    /// It is a number.
    Number {
        /// What stands for a missing value; `None` refuses one.
        fill: Option<f64>,
    },
    /// It is one of several words: a feature for each, 1 where it is that word.
    Category {
        /// The words, ascending.
        levels: Vec<String>,
        /// Whether the first word has no feature of its own, being what all others are compared
        /// with.
        #[serde(default)]
        drop_first: bool,
        /// Which word stands for a missing value; `None` refuses one.
        fill: Option<String>,
    },
}

impl Input {
    /// How many features the column becomes.
    pub fn width(&self) -> usize {
        match &self.kind {
            InputKind::Number { .. } => 1,
            InputKind::Category { levels, drop_first, .. } => {
                levels.len() - usize::from(*drop_first && !levels.is_empty())
            }
        }
    }
}

impl Inputs {
    /// Number of features.
    pub fn n_features(&self) -> usize {
        match self {
            Self::Plain(n) => *n,
            Self::Columns(columns) => columns.iter().map(Input::width).sum(),
        }
    }

    /// The name of every feature: `age`, `colour=red`, or `x1`, `x2`, … where there are none.
    pub fn feature_names(&self) -> Vec<String> {
        match self {
            Self::Plain(n) => (1..=*n).map(|at| format!("x{at}")).collect(),
            Self::Columns(columns) => {
                let mut names = Vec::with_capacity(self.n_features());
                for column in columns {
                    match &column.kind {
                        InputKind::Number { .. } => names.push(column.name.clone()),
                        InputKind::Category { levels, drop_first, .. } => {
                            let levels = &levels[usize::from(*drop_first && !levels.is_empty())..];
                            names.extend(levels.iter().map(|l| format!("{}={l}", column.name)));
                        }
                    }
                }
                names
            }
        }
    }

    /// Refuses another number of features.
    ///
    /// # Errors
    /// Names both numbers.
    pub fn check_width(&self, n_features: usize) -> Result<()> {
        if n_features == self.n_features() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "number of features".into(),
            expected: format!("{} (as in training)", self.n_features()),
            got: n_features.to_string(),
        })
    }

    /// Refuses what contradicts itself, as a broken file may.
    ///
    /// # Errors
    /// Names the column.
    pub fn check(&self) -> Result<()> {
        let Self::Columns(columns) = self else { return Ok(()) };
        for column in columns {
            let fault = |what: &str| Err(Error::data(format!("input `{}`: {what}", column.name)));
            match &column.kind {
                InputKind::Number { fill: Some(fill) } if !fill.is_finite() => {
                    return fault("fills with what is not a finite number");
                }
                InputKind::Category { levels, .. } if !levels.is_sorted_by(|a, b| a < b) => {
                    return fault("its words do not ascend");
                }
                _ => {}
            }
        }
        Ok(())
    }
}
