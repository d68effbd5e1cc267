//! How a fit is run.

use super::Model;
use crate::iterate::Checkpoint;
use crate::progress::{Observer, Silent, Stop};

/// The options of a fit. Only `validation` and `warm` change the result.
pub struct Job<'a, D> {
    /// Held-out data: scored after every iteration, for early stopping.
    pub validation: Option<&'a D>,
    /// A fitted model to start from instead of at random, where it is of the same type and fits
    /// the data; otherwise it is left aside.
    pub warm: Option<&'a dyn Model>,
    /// Receives the events of the fit.
    pub observer: &'a dyn Observer,
    /// A flag that ends the fit with the best model so far.
    pub stop: Stop,
    /// The checkpoint, from which a killed fit can go on to the same result.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the held-out score is compared with those of simpler models. A fit that is one of many
    /// trials has no use for it.
    pub baselines: bool,
}

impl<D> Default for Job<'_, D> {
    fn default() -> Self {
        Self {
            validation: None,
            warm: None,
            observer: &Silent,
            stop: Stop::new(),
            checkpoint: None,
            baselines: true,
        }
    }
}

impl<'a, D> Job<'a, D> {
    /// Scores this held-out data after every iteration and stops early when it gets no better.
    pub fn validation(mut self, data: &'a D) -> Self {
        self.validation = Some(data);
        self
    }

    /// Starts from this model instead of at random.
    pub fn warm(mut self, model: &'a dyn Model) -> Self {
        self.warm = Some(model);
        self
    }

    /// The model to start from, if there is one of this type.
    pub fn warm_model<M: Model>(&self) -> Option<&'a M> {
        let model: &dyn std::any::Any = self.warm?;
        model.downcast_ref()
    }

    /// Sends the events of the fit to this observer.
    pub fn observer(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Ends when this flag is raised.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Leaves simpler models out of the report.
    pub fn without_baselines(mut self) -> Self {
        self.baselines = false;
        self
    }

    /// Keeps the state of the fit in a file.
    pub fn checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.checkpoint = Some(checkpoint);
        self
    }
}

/// The parts of a [`Job`] that do not depend on the kind of data.
pub struct Run<'a> {
    /// A fitted model to start from instead of at random.
    pub warm: Option<&'a dyn Model>,
    /// Receives the events of the fit.
    pub observer: &'a dyn Observer,
    /// A flag that ends the fit with the best model so far.
    pub stop: Stop,
    /// The checkpoint.
    pub checkpoint: Option<Checkpoint>,
}

impl Default for Run<'_> {
    fn default() -> Self {
        Self { warm: None, observer: &Silent, stop: Stop::new(), checkpoint: None }
    }
}
