//! The ground floor of gradus: data, the contract of a model, the model file, kernels.
//!
//! | module | what lives there |
//! |---|---|
//! | [`data`] | ratings, matrices, tables; readers, writers and generators |
//! | [`kernel`] | small dense kernels, chosen at run time for the processor at hand |
//! | [`error`] | the one error type: argument, value, rule |

pub mod data;
pub mod error;
pub mod estimator;
pub mod file;
pub mod iterate;
pub mod kernel;
pub mod params;
pub mod progress;
pub mod recommend;
pub mod report;

pub use error::{Error, Result};
