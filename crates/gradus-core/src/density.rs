//! Models of a distribution: the density of data, and new data drawn from it.

use crate::dataset::Dataset;
use gradus_base::{Error, Result};
use gradus_data::{Dense, Inputs, Matrix};

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

    /// The features that it tells the density of; `None` of a model of other data than features.
    fn inputs(&self) -> Option<&Inputs> {
        None
    }

    /// Whether [`log_density`](Self::log_density) is a lower bound on the log density instead of the log density itself.
    fn is_bound(&self) -> bool {
        false
    }

    /// The discrete numbers that a unit consists of, where [`log_density`](Self::log_density) is the logarithm of a probability;
    /// `None` of a density. The mean loss of one of them, in bits, is what generative models of images are compared by.
    fn dimensions(&self) -> Option<Dimensions> {
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

/// The discrete numbers that a unit consists of: the pixels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// How many they are: pixels times channels.
    pub number: usize,
    /// The number of values that each can have: 2 of binary pixels, 256 of bytes.
    pub levels: usize,
}

impl Dimensions {
    /// Bits per dimension of a loss in nats per unit.
    pub fn bits(self, nats: f64) -> f64 {
        nats / (self.number.max(1) as f64 * std::f64::consts::LN_2)
    }
}

/// What is drawn, and how. What is `None` is up to the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draw<'a> {
    /// The number of units.
    pub n: usize,
    /// The seed.
    pub seed: u64,
    /// The class to draw from, of a model of classes.
    pub class: Option<&'a str>,
    /// The strength of the guidance towards that class: 0 for none.
    pub guidance: Option<f64>,
    /// The number of steps from noise to data.
    pub steps: Option<usize>,
    /// The divisor of logits, or the factor of the deviation of noise: below 1 what is likely is preferred.
    pub temperature: Option<f64>,
    /// Where to compute, `cpu` or `gpu`, of a model that can do so on a graphics card.
    pub device: Option<&'a str>,
    /// Units that are begun and have to be completed.
    pub complete: Option<Prefix<'a>>,
}

/// Units of which the first part is kept, and the rest is drawn given that part.
#[derive(Clone, Copy, Debug)]
pub struct Prefix<'a> {
    /// The units; the next draw after the last of them begins with the first again.
    pub data: &'a dyn Dataset,
    /// The share that is kept: the upper rows of an image, the first features of a table.
    pub keep: f64,
}

impl<'a> Draw<'a> {
    /// So many units, with all options left out.
    pub fn new(n: usize, seed: u64) -> Self {
        Self { n, seed, ..Self::default() }
    }

    /// Checks the numbers, and that no option is given but these: what a model does not know it must not pass over in silence.
    ///
    /// # Errors
    /// Names the first that is not for `model`, or is out of its range.
    pub fn check(&self, model: &str, known: &[&str]) -> Result<()> {
        let given = [
            ("class", self.class.map(str::to_owned)),
            ("guidance", self.guidance.map(|value| value.to_string())),
            ("steps", self.steps.map(|value| value.to_string())),
            ("temperature", self.temperature.map(|value| value.to_string())),
            ("device", self.device.map(str::to_owned)),
            ("complete", self.complete.map(|found| found.data.describe())),
        ];
        for (name, value) in given {
            if let Some(value) = value.filter(|_| !known.contains(&name)) {
                let rule = match known {
                    [] => {
                        format!("is not for `{model}`, which takes the number and the seed alone")
                    }
                    known => format!("is not for `{model}`, which takes {}", known.join(", ")),
                };
                return Err(Error::parameter(name, value, rule));
            }
        }
        let at_least_0 = "must be a finite number of at least 0";
        for (name, value) in [("guidance", self.guidance), ("temperature", self.temperature)] {
            if let Some(value) = value.filter(|value| !(*value >= 0.0 && value.is_finite())) {
                return Err(Error::parameter(name, value, at_least_0));
            }
        }
        if self.steps == Some(0) {
            return Err(Error::parameter("steps", 0, "must be at least 1"));
        }
        if let Some(Prefix { data, keep }) = self.complete {
            if !(0.0..=1.0).contains(&keep) {
                return Err(Error::parameter("keep", keep, "must be a share from 0 to 1"));
            }
            if data.is_empty() && self.n > 0 {
                return Err(Error::data("there is nothing to complete: the data is empty"));
            }
        }
        Ok(())
    }
}

/// Samples that were drawn from the same noise after some epochs of a fit: they show what was learned when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The epochs after which samples were drawn.
    pub epochs: Vec<u64>,
    /// The features of the samples, as many after each epoch, row after row.
    pub samples: Vec<f32>,
}

impl Progress {
    /// The features of the samples after each epoch.
    pub fn each(&self) -> impl Iterator<Item = (u64, &[f32])> {
        let size = self.samples.len() / self.epochs.len().max(1);
        self.epochs.iter().copied().zip(self.samples.chunks_exact(size.max(1)))
    }
}

/// A model that draws new data from the distribution it learned.
pub trait Generate: Send + Sync {
    /// Draws `n` units. The same seed gives the same data.
    ///
    /// # Errors
    /// If this many cannot be drawn.
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>>;

    /// Draws as asked for. [`generate`](Self::generate) is the same with all options left out.
    ///
    /// # Errors
    /// If an option is not for this model, or out of its range.
    fn draw(&self, request: &Draw<'_>) -> Result<Box<dyn Dataset>> {
        request.check("this model", &[])?;
        self.generate(request.n, request.seed)
    }

    /// The features that are drawn; `None` of a model of other data than features.
    fn inputs(&self) -> Option<&Inputs> {
        None
    }

    /// Samples of the same noise after some epochs of the fit, of a model that kept some.
    fn progress(&self) -> Option<&Progress> {
        None
    }

    /// Samples along `n` paths between two random codes each, `steps` to a path, one path after another; `None` of a model without
    /// codes.
    ///
    /// # Errors
    /// If this many cannot be drawn.
    fn interpolate(&self, n: usize, steps: usize, seed: u64) -> Option<Result<Box<dyn Dataset>>> {
        let _ = (n, steps, seed);
        None
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_model_does_not_know_are_refused_by_name() {
        let request = Draw { steps: Some(3), temperature: Some(0.5), ..Draw::new(1, 0) };
        let said = request.check("gmm", &[]).unwrap_err().to_string();
        assert!(said.contains("steps") && said.contains("gmm"), "{said}");
        let said = request.check("diffusion", &["steps"]).unwrap_err().to_string();
        assert!(said.contains("temperature") && said.contains("takes steps"), "{said}");
        assert!(request.check("other", &["steps", "temperature"]).is_ok());
        let cold = Draw { temperature: Some(f64::NAN), ..Draw::new(1, 0) };
        assert!(cold.check("other", &["temperature"]).is_err());
        let none = Draw { steps: Some(0), ..Draw::new(1, 0) };
        assert!(none.check("other", &["steps"]).is_err());
    }

    #[test]
    fn bits_per_dimension_of_fair_coins_are_1() {
        let coins = Dimensions { number: 8, levels: 2 };
        assert!((coins.bits(8.0 * 2.0f64.ln()) - 1.0).abs() < 1e-12);
    }
}
