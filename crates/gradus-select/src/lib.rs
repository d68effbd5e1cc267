//! Splits, metrics and search: how good a model is, measured on what it has not seen.
//!
//! | module | what lives there |
//! |---|---|
//! | [`split`] | setting ratings aside |
//! | [`search`] | choosing parameters by trying them |
//! | [`metrics`] | the error of predictions, the quality of rankings |
//! | [`evaluate_ranking`] | how well a recommender ranks what its users went on to like |

mod evaluate;
pub mod metrics;
pub mod search;
pub mod split;

pub use evaluate::{Estimate, RankingAt, RankingOptions, RankingReport, Skipped, evaluate_ranking};
