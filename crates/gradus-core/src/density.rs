//! What a model of a distribution can do: tell how probable data is, and make more of it.

use crate::dataset::Dataset;
use gradus_base::Result;

/// A model that tells how probable data is.
pub trait Density: Send + Sync {
    /// The natural logarithm of the density, or of the probability, of each unit of the data.
    ///
    /// # Errors
    /// If the data is of another kind, or has other features than training had.
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>>;
}

/// A model that makes data like that it learned from.
pub trait Generate: Send + Sync {
    /// Draws `n` units. The same seed gives the same data.
    ///
    /// # Errors
    /// If so many cannot be drawn.
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>>;
}
