//! Transformation of features, and the gradient of outputs with respect to features.

use crate::dataset::Dataset;
use gradus_base::Result;
use gradus_data::{Dense, Inputs, Matrix, Samples};

/// A model that turns features into other features, row by row.
pub trait Transform: Send + Sync {
    /// The input features that the model expects.
    fn inputs(&self) -> &Inputs;

    /// The names of the transformed features.
    fn output_names(&self) -> Vec<String>;

    /// The transformed features, a row for each row.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>>;

    /// The transformed features, stored sparse where most of them are 0.
    ///
    /// # Errors
    /// As [`transform`](Self::transform).
    fn transform_matrix(&self, features: &Matrix) -> Result<Matrix> {
        self.transform(features).map(Matrix::Dense)
    }

    /// The transformed features of data of the kind that the model learned from, a row for each unit.
    ///
    /// # Errors
    /// If the data is of another kind, or the number of features is not that of training.
    fn transform_data(&self, data: &dyn Dataset) -> Result<Matrix> {
        self.transform_matrix(data.of_kind::<Samples>()?.features())
    }

    /// The inverse transformation: features that are transformed into these, or the nearest to that;
    /// `None` if the model has no inverse.
    fn inverse(&self, transformed: &Dense<f64>) -> Option<Result<Dense<f64>>> {
        let _ = transformed;
        None
    }

    /// Whether a code that is transformed back and again gives the code: of a projection it does, of a network nearly.
    fn inverse_is_exact(&self) -> bool {
        true
    }

    /// Whether entries that sparse features do not store are missing instead of 0, so that no measure looks at them.
    fn absent_is_missing(&self) -> bool {
        false
    }
}

/// Gives the weight of each score, from the number of the first row and the scores of some rows.
pub type Weigh<'a> = dyn FnMut(usize, &Dense<f64>) -> Dense<f64> + 'a;

/// The scores of some rows, and at each row the gradient of a weighted sum of its scores.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoresAndGradient {
    /// The scores, `n × outputs`.
    pub scores: Dense<f64>,
    /// The gradients, `n × features`.
    pub gradient: Dense<f64>,
}

/// Scores that are affine functions of the features: `X Wᵀ + b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine<'a> {
    /// `W`: a row for each score, a column for each feature.
    pub coefficients: &'a Dense<f64>,
    /// `b`: one number for each score.
    pub intercepts: &'a [f64],
}

/// A model whose outputs have a gradient with respect to its features.
pub trait Gradient: Send + Sync {
    /// The number of outputs: scores, as [`Predict::scores`](crate::predict::Predict::scores) gives
    /// them.
    fn n_outputs(&self) -> usize;

    /// The gradient of one output with respect to the features, at each row.
    ///
    /// # Errors
    /// If there is no such output, or the number of features is not that of training.
    fn input_gradient(&self, features: &Matrix, output: usize) -> Result<Dense<f64>>;

    /// The scores, and the gradient of a weighted sum of them, by one pass forward and one back. `weigh` is called once for each
    /// part of the rows, in order, and its weights may depend on the scores: so the gradient of any function of the scores costs no
    /// more than that of one score. `None` if the model has only [`input_gradient`](Self::input_gradient).
    ///
    /// # Shapes
    /// `weigh` takes and gives `rows × outputs`.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    fn scores_and_gradient(
        &self,
        features: &Matrix,
        weigh: &mut Weigh<'_>,
    ) -> Result<Option<ScoresAndGradient>> {
        let _ = (features, weigh);
        Ok(None)
    }

    /// The coefficients, if the scores are affine functions of the features.
    fn affine(&self) -> Option<Affine<'_>> {
        None
    }
}
