//! Evaluation and search: how good a model is, measured on what it has not seen.
//!
//! | module | what lives there |
//! |---|---|
//! | [`search`] | choosing parameters by trying them |
//! | [`compare`] | choosing a model by a race within a time budget |
//! | [`bias_variance`](mod@bias_variance) | what a model gets wrong always, and what by chance |
//! | [`samples`] | how well a model of features predicts, each score with its interval |
//! | [`unit_losses`] | how far a model is off that neither recommends nor predicts |
//! | [`evaluate_ranking`] | how well a recommender ranks what its users went on to like |

pub mod bias_variance;
pub mod compare;
mod evaluate;
pub mod samples;
pub mod search;
mod units;

pub use units::{NO_LOSS, PER_TOKEN, UnitLosses, further_losses, unit_losses};

pub use evaluate::{
    Estimate, RankingAt, RankingOptions, RankingReport, RatingScale, Skipped, UserRanking,
    UserRankings, evaluate_ranking, rankings_by_user,
};
