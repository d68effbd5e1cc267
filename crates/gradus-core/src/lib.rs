//! The contract of a model: parameters → fit → a fitted model and its report.
//!
//! | module | what lives there |
//! |---|---|
//! | [`params`] | a model's parameters, defined once |
//! | [`estimator`] | the contract: parameters → fit → model and report |
//! | [`capability`] | what a fitted model can do |
//! | [`iterate`] | the loop every iterative fit shares: stopping, restarts, checkpoints |
//! | [`progress`], [`report`] | watching a fit, and what happened in it |
//! | [`recommend`], [`update`] | what a recommender can do, and adding new ratings to a model |
//! | [`predict`] | what a model of features can do |

pub mod capability;
pub mod estimator;
pub mod iterate;
pub mod params;
pub mod predict;
pub mod progress;
pub mod recommend;
pub mod report;
pub mod update;

pub use gradus_base::{Error, Result};
