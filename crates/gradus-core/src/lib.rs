//! The ground floor of gradus: data, the contract of a model, the model file, kernels.
//!
//! | module | what lives there |
//! |---|---|
//! | [`data`] | ratings, matrices, tables; readers, writers and generators |
//! | [`kernel`] | small dense kernels, chosen at run time for the processor at hand |
//! | [`random`] | seeds, and a stream of random numbers for each purpose and row |
//! | [`error`] | the one error type: argument, value, rule |

pub mod data;
pub mod error;
pub mod kernel;
pub mod random;

pub use error::{Error, Result};
