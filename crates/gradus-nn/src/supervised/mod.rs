//! Networks that predict numbers or classes from features: what a perceptron for tables and a network for images share.
//!
//! A network says how outputs come from features ([`Network`]); scaling, targets, losses, training, the fitted model and its
//! file are here.

mod adversary;
mod data;
mod fit;
mod model;
mod scaler;
mod targets;
mod texts;

pub use adversary::Adversary;
pub use data::{Data, Features};
pub use fit::{Supervised, fit};
pub(crate) use fit::{hold_out, order_of};
pub use gradus_optim::AdversarialNorm;
pub use model::NetworkModel;
pub use scaler::Scaler;
pub use texts::{samples_of, tokens_of};

use crate::layers::Pass;
use crate::weights::{Layout, Weights};
use burn::tensor::Tensor;
use gradus_base::Result;
use gradus_core::report::Choice;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// A network from rows of features to rows of outputs.
pub trait Network: Clone + Debug + Send + Sync + Sized + 'static {
    /// Everything that determines its layers. It is kept in the model file.
    type Architecture: Clone + Debug + PartialEq + Send + Sync + Serialize + DeserializeOwned;

    /// Whether the gradient of outputs with respect to features means anything; not where features are numbers of tokens.
    const HAS_GRADIENT: bool = true;

    /// The layers. Their weights are added to `layout`.
    ///
    /// # Errors
    /// If sizes do not fit together.
    fn new(architecture: &Self::Architecture, layout: &mut Layout) -> Result<Self>;

    /// The number of inputs and outputs.
    fn shape(architecture: &Self::Architecture) -> (usize, usize);

    /// The outputs: one for each target, or one for each class.
    ///
    /// # Shapes
    /// `n × inputs` to `n × outputs`.
    fn forward(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Tensor<2>;

    /// What the last layer computes the outputs from: the features that the network found. `None` of one that has no hidden layers.
    ///
    /// # Shapes
    /// `n × inputs` to `n × features`.
    fn hidden(&self, weights: &Weights, x: Tensor<2>, pass: &Pass) -> Option<Tensor<2>> {
        let _ = (weights, x, pass);
        None
    }

    /// Changes inputs at random while the network learns: shifted and mirrored images.
    fn augment(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let _ = pass;
        x
    }

    /// Its parts in a few words, for `info`.
    fn summary(architecture: &Self::Architecture) -> Vec<(&'static str, String)>;
}

/// The options of training that models of this module share, with what was chosen for those left out.
#[derive(Clone, Debug)]
pub struct Training {
    /// The options of the loop.
    pub options: crate::train::TrainOptions,
    /// Largest number of epochs.
    pub epochs: usize,
    /// The values that were chosen, with reasons.
    pub chosen: Vec<Choice>,
}
