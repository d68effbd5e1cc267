//! Parameters that several networks have, each described once.

/// The shared parameters: a rule for each, for [`gradus_core::params!`].
macro_rules! shared {
    (hidden $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Number of units of each hidden layer; none makes a linear model.
            #[schemars(length(max = 64), inner(range(min = 1, max = 65_536)))]
            pub hidden: Vec<usize>,
        } $($rest)* }
    };
    (activation $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Activation function of the hidden layers.
            pub activation: Activation,
        } $($rest)* }
    };
    (norm $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Normalisation before the activation of each hidden layer.
            pub norm: Norm,
        } $($rest)* }
    };
    (adversarial $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Radius of perturbations to learn against: each batch is changed by the worst of them that gradient steps find. Of images in
            /// units of pixels from 0 to 1, of tables in standard deviations of the features; 0 for none. Costs a pass forward and
            /// back for each step.
            #[schemars(range(min = 0.0))]
            pub adversarial: f64,
        } $($rest)* }
    };
    (adversarial_norm $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Norm of these perturbations.
            pub adversarial_norm: AdversarialNorm,
        } $($rest)* }
    };
    (adversarial_steps $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Gradient steps that look for a perturbation. More steps find worse ones and take longer in proportion.
            #[schemars(range(min = 1, max = 1_000))]
            pub adversarial_steps: usize,
        } $($rest)* }
    };
    (trades $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Learn from the samples as they are, with this weight on the distance between the outputs at samples and at perturbed ones
            /// (TRADES), which trades accuracy for robustness; 0 learns from perturbed samples alone.
            #[schemars(range(min = 0.0, max = 1_000.0))]
            pub trades: f64,
        } $($rest)* }
    };
    (optimizer $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// How a gradient becomes a step.
            pub optimizer: OptimizerKind,
        } $($rest)* }
    };
    (learning_rate $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Length of a step at its largest. Left out, the default of the model for its optimizer.
            #[schemars(range(min = 1e-9, max = 10.0))]
            pub learning_rate: Option<f64>,
        } $($rest)* }
    };
    (schedule $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// How the length of a step changes from the first step to the last.
            pub schedule: ScheduleKind,
        } $($rest)* }
    };
    (warm_up $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Share of the steps over which the length rises in a straight line from 0.
            #[schemars(range(min = 0.0, max = 0.9))]
            pub warm_up: f64,
        } $($rest)* }
    };
    (batch_size $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their number.
            #[schemars(range(min = 1, max = 1_000_000))]
            pub batch_size: Option<usize>,
        } $($rest)* }
    };
    (micro_batch $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Units whose gradient is computed at once: the gradients of the parts of a batch are added, which needs less memory.
            /// Left out, the whole batch.
            #[schemars(range(min = 1, max = 1_000_000))]
            pub micro_batch: Option<usize>,
        } $($rest)* }
    };
    (weight_decay $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor weights of normalisations.
            #[schemars(range(min = 0.0, max = 10.0))]
            pub weight_decay: f64,
        } $($rest)* }
    };
    (clip_norm $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Largest norm of the gradient; a longer one is shortened to it. 0 turns this off.
            #[schemars(range(min = 0.0, max = 1e6))]
            pub clip_norm: f64,
        } $($rest)* }
    };
    (average $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Share of the moving average of the weights that stays with each step: 0.999 averages about the last 1,000 steps, and
            /// the average is the model. 0 turns this off.
            #[schemars(range(min = 0.0, max = 0.99999))]
            pub average: f64,
        } $($rest)* }
    };
    (dropout $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Probability with which an output of a hidden layer is set to 0 in training.
            #[schemars(range(min = 0.0, max = 0.95))]
            pub dropout: f64,
        } $($rest)* }
    };
    (class_weight $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether classes count by their samples, or all equally.
            pub class_weight: ClassWeight,
        } $($rest)* }
    };
    (max_iter $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Number of epochs: passes over the data (for each random start). Left out, it is chosen by the amount of data.
            #[schemars(range(min = 1, max = 1_000_000))]
            pub max_iter: Option<usize>,
        } $($rest)* }
    };
    (patience $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Stop when the held-out score has not improved for so many epochs; 0 turns that off.
            #[schemars(range(min = 0, max = 1_000_000))]
            pub patience: usize,
        } $($rest)* }
    };
    (restarts $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Number of random starts; the best is kept.
            #[schemars(range(min = 1, max = 1000))]
            pub restarts: usize,
        } $($rest)* }
    };
    (validation_fraction $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Share of the data that is held out to choose the epoch that is kept, where no held-out data is given; 0 learns from all
            /// of it and keeps the last epoch. At least 100 samples are held out, but no more than a fifth; fewer than 100 are all learned from.
            #[schemars(range(min = 0.0, max = 0.5))]
            pub validation_fraction: f64,
        } $($rest)* }
    };
    (refit $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether the network learns anew from all samples, where `validation_fraction` of them was held out: for as many epochs as were best.
            pub refit: bool,
        } $($rest)* }
    };
    (seed $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Seed of the initial weights, of the order of the data and of dropout.
            pub seed: u64,
        } $($rest)* }
    };
    (device $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Where the weights are trained. The model that comes of it predicts on the processor.
            pub device: crate::device::DeviceKind,
        } $($rest)* }
    };
}

pub(crate) use shared;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much each class counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeight {
    /// As much as its samples weigh.
    #[default]
    None,
    /// All classes the same: samples of rare ones count more.
    Balanced,
}
