//! How ratings are held out: what `fit --holdout` and `split` share.

use crate::output::Outcome;
use clap::ValueEnum;
use gradus_data::Ratings;
use gradus_metrics::split::{Amount, ColdUsers, cold_users, holdout, leave_last_out, per_user};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SplitName {
    /// A share of all ratings
    Random,
    /// A share or a number of each user's ratings
    PerUser,
    /// The same, the last ones by time
    Last,
    /// A share of the users, altogether
    Cold,
}

impl SplitName {
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::PerUser => "per-user",
            Self::Last => "last",
            Self::Cold => "cold",
        }
    }

    /// Splits into training and held-out ratings. All ratings of a cold user are held out.
    pub fn split(self, ratings: &Ratings, held: f64, seed: u64) -> Outcome<(Ratings, Ratings)> {
        Ok(match self {
            Self::Random => holdout(ratings, held, seed)?,
            Self::PerUser => per_user(ratings, amount(held), seed)?,
            Self::Last => leave_last_out(ratings, amount(held))?,
            Self::Cold => {
                let ColdUsers { train, .. } = cold_users(ratings, held, Amount::Count(1), seed)?;
                let is_warm = |user| !train.by_user().range(user).is_empty();
                let kept: Vec<bool> =
                    ratings.iter().map(|rating| is_warm(rating.user as usize)).collect();
                ratings.partition(|at| kept[at])
            }
        })
    }
}

/// A whole number from 1 on counts ratings, anything else is a share of them.
pub fn amount(held: f64) -> Amount {
    if held >= 1.0 && held.fract() == 0.0 && held < 1e15 {
        Amount::Count(held as usize)
    } else {
        Amount::Share(held)
    }
}
