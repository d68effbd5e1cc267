//! The ground floor of gradus: data, the contract of a model, the model file, kernels.

pub mod kernel;
