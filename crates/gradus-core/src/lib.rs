//! The contract of a model: parameters → fit → a fitted model and its report.
//!
//! | module | what lives there |
//! |---|---|
//! | [`mod@params`], [`params!`] | a model's parameters, defined once |
//! | [`dataset`] | data sets of any kind, and how a file of each is read |
//! | [`estimator`] | the contract: parameters → fit → model and report |
//! | [`capability`] | what a fitted model can do |
//! | [`iterate`] | the loop every iterative fit shares: stopping, restarts, checkpoints |
//! | [`progress`], [`report`] | watching a fit, and what happened in it |
//! | [`recommend`], [`update`] | what a recommender can do, and adding new ratings to a model |
//! | [`predict`], [`transform`] | what a model of features can do |
//! | [`cluster`], [`topics`], [`embed`] | what clusterings, topic models and embeddings can do |
//! | [`density`] | what a model of a distribution can do |
//! | [`registry`] | the models that a program knows, by name |

pub mod capability;
pub mod cluster;
pub mod dataset;
mod define;
pub mod density;
pub mod embed;
pub mod estimator;
pub mod iterate;
pub mod params;
pub mod predict;
pub mod progress;
pub mod recommend;
pub mod registry;
pub mod report;
pub mod topics;
pub mod transform;
pub mod translate;
pub mod update;

pub use gradus_base::{Error, Result};
