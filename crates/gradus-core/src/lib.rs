//! The ground floor of gradus: data, the contract of a model, the model file, kernels.
//!
//! | module | what lives there |
//! |---|---|
//! | [`data`] | ratings, matrices, tables; readers, writers and generators |
//! | [`kernel`] | small dense kernels, chosen at run time for the processor at hand |
//! | [`parallel`] | work in pieces, on the threads of the pool |
//! | [`random`] | seeds, and a stream of random numbers for each purpose and row |
//! | [`params`] | a model's parameters, defined once |
//! | [`estimator`] | the contract: parameters → fit → model and report |
//! | [`capability`] | what a fitted model can do |
//! | [`iterate`] | the loop every iterative fit shares: stopping, restarts, checkpoints |
//! | [`progress`], [`report`] | watching a fit, and what happened in it |
//! | [`recommend`], [`update`] | what a recommender can do, and adding new ratings to a model |
//! | [`file`](mod@file) | the model file |
//! | [`output`] | writing files: all or nothing, and nothing that should stay |
//! | [`memory`] | an allocator for the large matrices of a command or a package |
//! | [`text`] | text from data, made fit to show |
//! | [`error`] | the one error type: argument, value, rule |

pub mod capability;
pub mod data;
pub mod error;
pub mod estimator;
pub mod file;
pub mod iterate;
pub mod kernel;
pub mod linalg;
pub mod memory;
pub mod output;
pub mod parallel;
pub mod params;
pub mod predict;
pub mod progress;
pub mod random;
pub mod recommend;
pub mod report;
pub mod text;
pub mod update;

pub use error::{Error, Result};
