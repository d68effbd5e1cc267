//! Models of a distribution: the density of data, and new data drawn from it.

use crate::dataset::Dataset;
use gradus_base::{Error, Result};
use gradus_data::{Dense, Matrix};

/// A model with a density.
pub trait Density: Send + Sync {
    /// The natural logarithm of the density, or of the probability, of each unit of the data.
    ///
    /// # Errors
    /// If the data is of another kind, or has other features than training had.
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>>;

    /// The number of tokens whose probabilities [`log_density`](Self::log_density) multiplies, of each unit; `None` of a model
    /// that knows none. The loss of a model of language is one for each token.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    fn n_tokens(&self, data: &dyn Dataset) -> Option<Result<Vec<usize>>> {
        let _ = data;
        None
    }

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

    /// The interface of models that go on with a text, if supported.
    fn continuation(&self) -> Option<&dyn Continue> {
        None
    }
}

/// How the next token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it: 1 draws with the probabilities of the model, less prefers what is likely, 0 always takes the
    /// most probable token.
    pub temperature: f64,
    /// Only the so many most probable tokens are drawn; 0 for all.
    pub top_k: usize,
    /// Only the most probable tokens that together have this probability are drawn; 1 for all.
    pub top_p: f64,
    /// The seed.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 0 }
    }
}

impl Sampling {
    /// Checks the numbers.
    ///
    /// # Errors
    /// Names the first one out of its range.
    pub fn check(&self) -> Result<()> {
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            let rule = "must be a finite number of at least 0";
            return Err(Error::parameter("temperature", self.temperature, rule));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(Error::parameter("top_p", self.top_p, "must be above 0 and at most 1"));
        }
        Ok(())
    }
}

/// A model that goes on with a text.
pub trait Continue: Send + Sync {
    /// Draws at most so many tokens after `prompt`, and calls `take` with the bytes of each as soon as it is drawn; it ends early
    /// if `take` answers false. The same seed gives the same text.
    ///
    /// # Errors
    /// If `sampling` is not possible.
    fn continue_text(
        &self,
        prompt: &str,
        n_tokens: usize,
        sampling: &Sampling,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()>;
}
