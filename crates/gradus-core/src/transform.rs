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
}
