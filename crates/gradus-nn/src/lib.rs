//! Neural networks: layers, the training loop, and the models made of them.
//!
//! | module | what lives there |
//! |---|---|
//! | [`device`] | tensors and their numbers |
//! | [`weights`] | named weights, their shapes and initial values |
//! | [`layers`] | layers: what a network is made of |
//! | [`ops`] | operations with gradients of their own, faster on the CPU than those of burn |
//! | [`optimizer`] | the update rules: AdamW and stochastic gradient descent with momentum |
//! | [`train`] | the training loop that all networks share |
//! | [`supervised`] | networks that predict numbers or classes from features: what models of tables and of images share |
//! | [`lm`] | language models: decoders that write texts |
//! | [`seq2seq`] | transformers that make texts of texts |
//! | [`textclassifier`] | transformers that predict classes of texts |
//! | [`mlp`] | multi-layer perceptrons for tables |
//! | [`autoencoder`] | codes of tables and of images from which they come back |
//! | [`generative`] | what generative models share |
//! | [`diffusion`] | models that make data of noise, step by step |
//! | [`gan`] | models that make data of noise at once, and learn it against a network that tells it from data |
//! | [`images`] | what networks for images share |
//! | [`pixelcnn`] | PixelCNN: the probability of each pixel given those before it |
//! | [`vae`] | variational autoencoders |
//! | [`cnn`] | convolutional networks for images |
//! | [`vit`] | vision transformers |
//!
//! Tensors and automatic differentiation come from [burn]. Weights have the names and layouts of PyTorch, so that they can be
//! exchanged by safetensors files.

pub mod autoencoder;
pub mod cnn;
pub mod device;
pub mod diffusion;
pub mod gan;
pub mod generative;
pub mod images;
pub mod layers;
pub mod lm;
pub mod mlp;
pub mod ops;
pub mod optimizer;
pub mod parameters;
pub mod pixelcnn;
pub mod seq2seq;
pub mod supervised;
pub mod textclassifier;
pub mod train;
pub mod vae;
pub mod vit;
pub mod weights;

pub use autoencoder::Autoencoder;
pub use cnn::Cnn;
pub use diffusion::Diffusion;
pub use gan::Gan;
pub use images::Augment;
pub use layers::Activation;
pub use lm::Lm;
pub use mlp::{Mlp, MlpRegressor};
pub use pixelcnn::PixelCnn;
pub use seq2seq::Seq2Seq;
pub use textclassifier::TextClassifier;
pub use vae::Vae;
pub use vit::Vit;
