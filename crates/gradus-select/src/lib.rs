//! Splits, metrics and search: how good a model is, measured on what it has not seen.
//!
//! | module | what lives there |
//! |---|---|
//! | [`split`] | setting ratings or rows aside |
//! | [`search`] | choosing parameters by trying them |
//! | [`metrics`] | the error of predictions, the quality of classifiers and of rankings |
//! | [`bounds`] | how far a score can be from the truth, and how many points it would take |
//! | [`bias_variance`](mod@bias_variance) | what a model gets wrong always, and what by chance |
//! | [`judge`] | how well a model of features predicts, each score with its interval |
//! | [`evaluate_ranking`] | how well a recommender ranks what its users went on to like |

pub mod bias_variance;
pub mod bounds;
mod evaluate;
pub mod judge;
pub mod metrics;
pub mod search;
pub mod split;

pub use evaluate::{
    Estimate, RankingAt, RankingOptions, RankingReport, RatingScale, Skipped, evaluate_ranking,
};
