//! Multi-layer perceptrons for tables: classes (`mlp`) and numbers (`mlpregressor`).

mod network;
#[cfg(test)]
mod tests;

pub use network::{MlpArchitecture, MlpNetwork};

use crate::device::DeviceKind;
use crate::layers::{Activation, Norm};
use crate::optimizer::OptimizerKind;
use crate::parameters::{ClassWeight, shared};
use crate::supervised::{
    self, AdversarialNorm, Adversary, Data, NetworkModel, Scaler, Supervised, Training,
};
use crate::train::{ScheduleKind, TrainOptions, plan_epochs};
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_core::report::Choice;
use gradus_data::Samples;

/// Steps that a fit should take at least, where the number of epochs is left out; of few samples, and against perturbations, which take
/// longer to learn.
const STEPS: (usize, usize) = (1_500, 6_000);

/// The fewest and the most epochs of a fit, where their number is left out; the same of few samples and against perturbations.
const EPOCHS: ((usize, usize), (usize, usize)) = ((10, 50), (20, 200));

/// Fewer samples than these are learned in many short steps: their noise is soon learned by heart.
const FEW: usize = 1_000;

/// Epochs without a better held-out score after which a fit ends.
const PATIENCE: usize = 20;

gradus_core::params! { [shared]
    /// Multi-layer perceptron: a network that predicts classes from features.
    ///
    /// Layer after layer computes `h ← f(W h + b)` with an activation function `f`; the last one gives a logit for each class, and
    /// the softmax of them is the probability. The fit minimises the cross-entropy by AdamW over batches, whose gradients come from
    /// back-propagation. A tenth of the samples is held out (unless held-out data is given) to find the number of epochs
    /// with the least log loss, and then the network learns anew from all samples for so many.
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
         class_weight, adversarial, adversarial_norm, adversarial_steps, trades, max_iter, patience, restarts, validation_fraction, refit, seed, device],
    }
}

gradus_core::params! { [shared]
    /// Multi-layer perceptron for numbers: a network that predicts one target or several from features.
    ///
    /// The layers are those of `mlp`, with an output for each target. The fit minimises half the squared error in units of the
    /// deviation of each target, which is brought to mean 0 and variance 1, by AdamW over batches. A tenth of the samples is held out
    /// (unless held-out data is given) to find the number of epochs with the least root mean square error, and then the network learns
    /// anew from all samples for so many.
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
         max_iter, patience, restarts, validation_fraction, refit, seed, device],
    }
}

impl Default for Mlp {
    fn default() -> Self {
        Self {
            hidden: vec![128, 128],
            activation: Activation::Relu,
            norm: Norm::None,
            dropout: 0.1,
            optimizer: OptimizerKind::Adam,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.05,
            batch_size: None,
            weight_decay: 0.1,
            clip_norm: 1.0,
            average: 0.99,
            class_weight: ClassWeight::None,
            adversarial: 0.0,
            adversarial_norm: AdversarialNorm::Linf,
            adversarial_steps: 7,
            trades: 0.0,
            max_iter: None,
            patience: PATIENCE,
            restarts: 1,
            validation_fraction: 0.1,
            refit: true,
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
            adversarial: _,
            adversarial_norm: _,
            adversarial_steps: _,
            trades: _,
            max_iter,
            patience,
            restarts,
            validation_fraction,
            refit,
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
            refit,
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

/// The length of steps for so many samples: few are learned by heart in a few long steps. Against perturbations steps are shorter,
/// and more.
fn learning_rate(optimizer: OptimizerKind, n: usize, is_adversarial: bool) -> f64 {
    let rate = match n {
        0..FEW => 5e-4,
        FEW..10_000 => 5e-3,
        _ => 1e-2,
    };
    match (optimizer, is_adversarial && n >= FEW) {
        (OptimizerKind::Adam, false) => rate,
        (OptimizerKind::Adam, true) => rate / 5.0,
        (OptimizerKind::Sgd, false) if n < FEW => 10.0 * rate,
        (OptimizerKind::Sgd, false) => 4.0 * rate,
        (OptimizerKind::Sgd, true) => 2.0 * rate,
    }
}

/// Implements what the two models share.
macro_rules! perceptron {
    ($Params:ident, $name:literal, $traits:expr, |$params:ident| $balanced:expr, $adversary:expr) => {
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

            fn architecture(&self, data: &Data<'_>, n_outputs: usize) -> Result<MlpArchitecture> {
                Ok(MlpArchitecture {
                    inputs: data.features.n_cols(),
                    hidden: self.hidden.clone(),
                    outputs: n_outputs,
                    activation: self.activation,
                    norm: self.norm,
                    dropout: self.dropout,
                })
            }

            fn scaler(&self, data: &Data<'_>, rows: &[u32]) -> Scaler {
                Scaler::of_table(data.samples.features(), rows)
            }

            fn training(&self, n: usize) -> Training {
                let batch = self.batch_size.unwrap_or_else(|| batch_size(n)).min(n.max(1));
                let is_adversarial = self.adversary().is_some();
                let (least, range) = match is_adversarial || n < FEW {
                    false => (STEPS.0, EPOCHS.0),
                    true => (STEPS.1, EPOCHS.1),
                };
                let planned = || plan_epochs(n, batch, least, range);
                let epochs = self.schedule.iterations(self.max_iter, planned);
                let mut chosen = Vec::new();
                if self.max_iter.is_none() {
                    let reason = format!("about {least} steps, from {} to {} epochs", range.0, range.1);
                    chosen.push(Choice::new("max_iter", epochs as f64, reason));
                }
                if self.batch_size.is_none() {
                    chosen.push(Choice::new("batch_size", batch as f64, format!("{n} samples")));
                }
                let rate = self.schedule.rate(self.learning_rate, learning_rate(self.optimizer, n, is_adversarial));
                if self.learning_rate.is_none() {
                    chosen.push(Choice::new("learning_rate", rate, format!("{n} samples")));
                }
                let steps = self.schedule.steps(epochs, n.div_ceil(batch));
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

            fn refit(&self) -> bool {
                self.refit
            }

            fn balanced(&self) -> bool {
                let $params = self;
                $balanced
            }

            fn adversary(&self) -> Option<Adversary> {
                let $params = self;
                $adversary
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
                let (data, held) = (Data::from(samples), job.validation.map(Data::from));
                let (model, report) = supervised::fit(self, &data, held.as_ref(), job, || samples.fingerprint())?;
                Ok(Fitted { params: self.clone(), model, report })
            }
        }
    };
}

perceptron!(
    Mlp,
    "mlp",
    Traits::CLASSIFICATION,
    |params| params.class_weight == ClassWeight::Balanced,
    (params.adversarial > 0.0).then_some(Adversary {
        radius: params.adversarial,
        norm: params.adversarial_norm,
        steps: params.adversarial_steps,
        trades: params.trades,
    })
);
perceptron!(MlpRegressor, "mlpregressor", Traits::REGRESSION, |_params| false, None);
