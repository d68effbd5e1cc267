//! Multi-layer perceptrons for tables: classes (`mlp`) and numbers (`mlpregressor`).

mod network;
#[cfg(test)]
mod tests;

pub use network::{MlpArchitecture, MlpNetwork};

use crate::device::DeviceKind;
use crate::layers::{Activation, Norm};
use crate::optimizer::OptimizerKind;
use crate::parameters::{ClassWeight, shared};
use crate::supervised::{self, NetworkModel, Scaler, Supervised, Training};
use crate::train::{ScheduleKind, TrainOptions, plan_epochs};
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_core::report::Choice;
use gradus_data::Samples;

/// Steps that a fit should take at least, where the number of epochs is left out.
const STEPS: usize = 6_000;

/// The fewest and the most epochs of a fit, where their number is left out.
const EPOCHS: (usize, usize) = (20, 200);

gradus_core::params! { [shared]
    /// Multi-layer perceptron: a network that predicts classes from features.
    ///
    /// Layer after layer computes `h ← f(W h + b)` with an activation function `f`; the last one gives a logit for each class, and
    /// the softmax of them is the probability. The fit minimises the cross-entropy by AdamW over batches, whose gradients come from
    /// back-propagation. A tenth of the samples is held out (unless held-out data is given), and the epoch with the
    /// least log loss on it is kept.
    ///
    /// Features are brought to the same scale by their quartiles, and wild values are drawn in, so that units and outliers do not
    /// matter. A model of few samples (some hundreds) is as a rule no better than `logistic` or `svm`, which are
    /// faster; compare them with `gradus compare`.
    ///
    /// Samples may have weights. Cost of an epoch: six operations for each weight and sample. The result does not depend on the number
    /// of threads, nor on the order of the samples.
    ///
    /// Reference: Rumelhart, Hinton, Williams: Learning representations by back-propagating errors, 1986; Loshchilov, Hutter:
    /// Decoupled weight decay regularization, 2019; for the scaling, Holzmüller, Grinsztajn, Steinwart: Better by default, 2024.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::predict::Predict;
    /// use gradus_data::{Dense, Id, Samples};
    /// use gradus_nn::Mlp;
    ///
    /// // The exclusive or, which no linear model can learn.
    /// let x = Dense::from_fn(200, 2, |row, column| f64::from((row >> column) as u32 & 1));
    /// let y: Vec<Id> = (0..200).map(|row| Id::Int(((row & 1) ^ (row >> 1 & 1)) as i64)).collect();
    /// let fitted = Mlp::new().hidden(vec![16]).learning_rate(0.01).max_iter(100).fit(&Samples::classification(x, y)?)?;
    /// let corners = Dense::from_rows(&[[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
    /// assert_eq!(fitted.classes(&corners.into())?, [0, 1, 1, 0]);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Mlp {
        [hidden, activation, norm, dropout, optimizer, learning_rate, schedule, warm_up, batch_size, weight_decay, clip_norm, average,
         class_weight, max_iter, patience, restarts, validation_fraction, seed, device],
    }
}

gradus_core::params! { [shared]
    /// Multi-layer perceptron for numbers: a network that predicts one target or several from features.
    ///
    /// The layers are those of `mlp`, with an output for each target. The fit minimises half the squared error in units of the
    /// deviation of each target, which is brought to mean 0 and variance 1, by AdamW over batches. A tenth of the samples is held out
    /// (unless held-out data is given), and the epoch with the least root mean square error on it is kept.
    ///
    /// Everything else is as for `mlp`. Predictions are in the units of the targets.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::predict::Predict;
    /// use gradus_data::{Dense, Samples};
    /// use gradus_nn::MlpRegressor;
    ///
    /// let x = Dense::from_fn(500, 1, |row, _| row as f64 / 100.0);
    /// let y = x.values().iter().map(|x| 1000.0 * x.sin()).collect();
    /// let fitted = MlpRegressor::new().hidden(vec![32, 32]).learning_rate(0.01).max_iter(100).fit(&Samples::regression(x, y)?)?;
    /// let found = fitted.scores(&Dense::from_rows(&[[1.5]]).into())?;
    /// assert!((found[(0, 0)] - 997.0).abs() < 100.0);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct MlpRegressor {
        [hidden, activation, norm, dropout, optimizer, learning_rate, schedule, warm_up, batch_size, weight_decay, clip_norm, average,
         max_iter, patience, restarts, validation_fraction, seed, device],
    }
}

impl Default for Mlp {
    fn default() -> Self {
        Self {
            hidden: vec![256, 256],
            activation: Activation::Relu,
            norm: Norm::None,
            dropout: 0.1,
            optimizer: OptimizerKind::Adam,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.05,
            batch_size: None,
            weight_decay: 0.01,
            clip_norm: 1.0,
            average: 0.99,
            class_weight: ClassWeight::None,
            max_iter: None,
            patience: 0,
            restarts: 1,
            validation_fraction: 0.1,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Default for MlpRegressor {
    fn default() -> Self {
        let Mlp {
            hidden,
            activation,
            norm,
            dropout,
            optimizer,
            learning_rate,
            schedule,
            warm_up,
            batch_size,
            weight_decay,
            clip_norm,
            average,
            class_weight: _,
            max_iter,
            patience,
            restarts,
            validation_fraction,
            seed,
            device,
        } = Mlp::default();
        Self {
            hidden,
            activation,
            norm,
            dropout,
            optimizer,
            learning_rate,
            schedule,
            warm_up,
            batch_size,
            weight_decay,
            clip_norm,
            average,
            max_iter,
            patience,
            restarts,
            validation_fraction,
            seed,
            device,
        }
    }
}

/// The batch size for so many samples: small ones learn more in an epoch, large ones are computed faster.
fn batch_size(n: usize) -> usize {
    match n {
        0..1_000 => 32,
        1_000..10_000 => 64,
        10_000..50_000 => 128,
        _ => 256,
    }
}

/// The length of steps for so many samples: few are learned by heart in a few long steps.
fn learning_rate(optimizer: OptimizerKind, n: usize) -> f64 {
    let rate = match n {
        0..1_000 => 5e-4,
        1_000..10_000 => 1e-3,
        _ => 2e-3,
    };
    match optimizer {
        OptimizerKind::Adam => rate,
        OptimizerKind::Sgd => 10.0 * rate,
    }
}

/// Implements what the two models share.
macro_rules! perceptron {
    ($Params:ident, $name:literal, $traits:expr, |$params:ident| $balanced:expr) => {
        impl Params for $Params {
            fn check_together(&self) -> Result<()> {
                if !self.activation.has_gradient() {
                    let rule = "must be another for a fit: its gradient is 0, so that the layers below it cannot learn";
                    return Err(Error::parameter("activation", "step", rule));
                }
                Ok(())
            }
        }

        impl Supervised for $Params {
            type Network = MlpNetwork;

            fn architecture(&self, samples: &Samples, n_outputs: usize) -> Result<MlpArchitecture> {
                Ok(MlpArchitecture {
                    inputs: samples.n_features(),
                    hidden: self.hidden.clone(),
                    outputs: n_outputs,
                    activation: self.activation,
                    norm: self.norm,
                    dropout: self.dropout,
                })
            }

            fn scaler(&self, samples: &Samples, rows: &[u32]) -> Scaler {
                Scaler::of_table(samples.features(), rows)
            }

            fn training(&self, n: usize) -> Training {
                let batch = self.batch_size.unwrap_or_else(|| batch_size(n)).min(n.max(1));
                let epochs = self.max_iter.unwrap_or_else(|| plan_epochs(n, batch, STEPS, EPOCHS));
                let mut chosen = Vec::new();
                if self.max_iter.is_none() {
                    let reason = format!("about {STEPS} steps, from {} to {} epochs", EPOCHS.0, EPOCHS.1);
                    chosen.push(Choice::new("max_iter", epochs as f64, reason));
                }
                if self.batch_size.is_none() {
                    chosen.push(Choice::new("batch_size", batch as f64, format!("{n} samples")));
                }
                let rate = self.learning_rate.unwrap_or_else(|| learning_rate(self.optimizer, n));
                if self.learning_rate.is_none() {
                    chosen.push(Choice::new("learning_rate", rate, format!("{n} samples")));
                }
                let steps = epochs * n.div_ceil(batch);
                let kinds = (self.optimizer, self.schedule);
                let mut options = TrainOptions::new(kinds, (rate, self.warm_up), steps, batch, self.seed);
                options.step.weight_decay = self.weight_decay;
                options.step.clip_norm = self.clip_norm;
                options.average = self.average;
                Training { options, epochs, chosen }
            }

            fn validation_fraction(&self) -> f64 {
                self.validation_fraction
            }

            fn device(&self) -> $crate::device::DeviceKind {
                self.device
            }

            fn balanced(&self) -> bool {
                let $params = self;
                $balanced
            }

            fn patience_and_restarts(&self) -> (usize, usize) {
                (self.patience, self.restarts)
            }
        }

        impl Fit for $Params {
            const NAME: &'static str = $name;
            const CLASS: &'static str = stringify!($Params);
            const FAMILY: &'static str = "nn";
            type Data = Samples;
            type Model = NetworkModel<MlpNetwork>;
            const TRAITS: Traits = Traits {
                iterative: true,
                resumable: true,
                weights: false,
                warm_start: true,
                early_stopping: true,
                ..$traits
            };

            fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
                self.check()?;
                let (model, report) = supervised::fit(self, samples, job.validation, job, || samples.fingerprint())?;
                Ok(Fitted { params: self.clone(), model, report })
            }
        }
    };
}

perceptron!(Mlp, "mlp", Traits::CLASSIFICATION, |params| params.class_weight
    == ClassWeight::Balanced);
perceptron!(MlpRegressor, "mlpregressor", Traits::REGRESSION, |_params| false);
