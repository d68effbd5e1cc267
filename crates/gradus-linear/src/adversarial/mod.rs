//! Linear classifiers that learn against perturbations of their features.
//!
//! Of a linear score the worst perturbation is known: within a radius ε of a norm it lowers the margin of a sample by
//! `ε ‖u∘w‖*`, with the units `u` of the features and the dual norm (the sum of absolute values of `linf`, the root of the
//! sum of squares of `l2`). So nothing has to be attacked in training: the objective is
//!
//! `(1 / W) Σ w_i ℓ(t_i (b + x_i·w) − ε ‖u∘w‖*) + penalty`,
//!
//! which is convex, since `ℓ` falls and its argument is concave.
//!
//! | file | what it holds |
//! |---|---|
//! | `binary.rs` | the objective of two classes, and its solution: exact |
//! | `cone.rs` | the proximal step of that problem |
//! | `pairs.rs` | the objective of more classes: an upper bound, pair by pair |

mod binary;
mod cone;
mod pairs;

pub(crate) use binary::{MarginLoss, Margins};
pub(crate) use pairs::Pairs;

use crate::design::{Design, Preparation};
use gradus_base::{Error, Result};
use gradus_data::{Inputs, Matrix, Samples};
use gradus_optim::AdversarialNorm;

/// The perturbations that a model learns against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Adversary {
    pub(crate) radius: f64,
    pub(crate) norm: AdversarialNorm,
}

impl Adversary {
    /// What the report says of it.
    pub(crate) fn note(self) -> String {
        format!("learned against perturbations of radius {} in {}", self.radius, self.norm.name())
    }
}

/// Refuses a radius that is not finite.
pub(crate) fn check_radius(radius: f64) -> Result<()> {
    if radius.is_finite() {
        return Ok(());
    }
    Err(Error::parameter("adversarial", radius, "must be finite and at least 0"))
}

/// The features in the units of perturbations: of tables standard deviations, of images those of pixels.
pub(crate) struct Frame<'a> {
    pub(crate) design: Design<'a>,
    /// Whether each feature can be perturbed: constant ones have no unit.
    pub(crate) moves: Vec<bool>,
    /// What the penalty sees of a coefficient of 1.
    pub(crate) penalised: Vec<f64>,
}

impl<'a> Frame<'a> {
    /// The frame of some samples; `weights` are those of the loss, with the weights of classes.
    pub(crate) fn new(
        samples: &'a Samples,
        weights: Option<&'a [f64]>,
        (center, standardize): (bool, bool),
    ) -> Self {
        let features = samples.features();
        let deviations =
            |center| Design::new(features, samples.weights(), Preparation { center, scale: true });
        let is_images = matches!(samples.inputs(), Inputs::Images(_));
        let (design, penalised) = if is_images {
            let preparation = Preparation { center, scale: false };
            let design = Design::new(features, samples.weights(), preparation);
            let penalised = match standardize {
                true => deviations(false).given_scale().to_vec(),
                false => vec![1.0; design.d()],
            };
            (design, penalised)
        } else {
            let design = deviations(center);
            let penalised = match standardize {
                true => vec![1.0; design.d()],
                false => design.given_scale().iter().map(|scale| 1.0 / scale).collect(),
            };
            (design, penalised)
        };
        let moves = if is_images { vec![true; design.d()] } else { varying(samples) };
        let design = match weights {
            Some(weights) => design.with_weights(weights),
            None => design,
        };
        Self { design, moves, penalised }
    }

    /// The strength of half the squares of each coefficient.
    pub(crate) fn ridge(&self, strength: f64) -> Vec<f64> {
        self.penalised.iter().map(|p| strength * p * p).collect()
    }

    /// The strength of the absolute value of each coefficient.
    pub(crate) fn l1(&self, strength: f64) -> Vec<f64> {
        self.penalised.iter().map(|p| strength * p).collect()
    }
}

/// Whether each feature has unlike values among the samples that weigh something.
fn varying(samples: &Samples) -> Vec<bool> {
    let n = samples.len();
    let counts = |row: usize| samples.weights().is_none_or(|weights| weights[row] > 0.0);
    let rows: Vec<usize> = (0..n).filter(|&row| counts(row)).collect();
    match samples.features() {
        Matrix::Dense(x) => {
            let mut varies = vec![false; x.n_cols()];
            let Some((&first, others)) = rows.split_first() else { return varies };
            let first = x.row(first);
            for &row in others {
                let each = varies.iter_mut().zip(x.row(row)).zip(first);
                each.for_each(|((varies, x), first)| *varies |= x != first);
            }
            varies
        }
        Matrix::Sparse(x) => {
            // The value of a column if all of its stored values are alike, and how many there are.
            let mut seen: Vec<(f64, usize, bool)> = vec![(0.0, 0, false); x.n_cols()];
            for &row in &rows {
                let (columns, values) = x.row(row);
                for (&column, &value) in columns.iter().zip(values) {
                    let (first, count, unlike) = &mut seen[column as usize];
                    if *count == 0 {
                        *first = value;
                    }
                    *unlike |= value != *first;
                    *count += 1;
                }
            }
            let varies = |(first, count, unlike): &(f64, usize, bool)| {
                *unlike || (*count > 0 && *count < rows.len() && *first != 0.0)
            };
            seen.iter().map(varies).collect()
        }
    }
}

#[cfg(test)]
mod tests;
