//! Neural networks: layers, the training loop, and the models made of them.
//!
//! | module | what lives there |
//! |---|---|
//! | [`device`] | the processor that a network runs on |
//! | [`weights`] | named weights, their shapes and initial values |
//! | [`layers`] | layers: what a network is made of |
//! | [`ops`] | operations with gradients of their own, faster on the CPU than those of burn |
//! | [`optimizer`] | the update rules: AdamW and stochastic gradient descent with momentum |
//! | [`train`] | the training loop that all networks share |
//! | [`supervised`] | networks that predict numbers or classes from features: what models of tables and of images share |
//! | [`mlp`] | multi-layer perceptrons for tables |
//!
//! Tensors and automatic differentiation come from [burn](burn). Weights have the names and layouts of PyTorch, so that they can be
//! exchanged by safetensors files.

pub mod device;
pub mod layers;
pub mod mlp;
pub mod ops;
pub mod optimizer;
pub mod parameters;
pub mod supervised;
pub mod train;
pub mod weights;

pub use device::DeviceKind;
pub use layers::Activation;
pub use mlp::{Mlp, MlpRegressor};
