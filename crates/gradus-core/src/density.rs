//! Models of a distribution: the density of data, and new data drawn from it.

use crate::dataset::Dataset;
use gradus_base::Result;
use gradus_data::{Dense, Matrix};

/// A model with a density.
pub trait Density: Send + Sync {
    /// The natural logarithm of the density, or of the probability, of each unit of the data.
    ///
    /// # Errors
    /// If the data is of another kind, or has other features than training had.
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>>;

    /// The number of free parameters, for criteria such as BIC; `None` of a model that does not count them.
    fn n_parameters(&self) -> Option<f64> {
        None
    }

    /// The features with what is missing (NaN) replaced by its mean given the others; `None` of a model that does not know
    /// it.
    ///
    /// # Shapes
    /// `n × features` to the same.
    ///
    /// # Errors
    /// If the number of features is not that of training.
    fn impute(&self, features: &Matrix) -> Option<Result<Dense<f64>>> {
        let _ = features;
        None
    }
}

/// A model that draws new data from the distribution it learned.
pub trait Generate: Send + Sync {
    /// Draws `n` units. The same seed gives the same data.
    ///
    /// # Errors
    /// If this many cannot be drawn.
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>>;
}
