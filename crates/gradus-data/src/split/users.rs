//! Splits that go user by user.

use crate::Ratings;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use std::fmt;

/// How much of each user's ratings to hold out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A share of them, rounded to whole ratings, but never all of them: between 0 and 1.
    Share(f64),
    /// A number of ratings; a user who has no more than that keeps all of them.
    Count(usize),
}

impl Amount {
    /// A whole number from 1 on counts ratings, anything else is a share of them.
    pub fn from_number(amount: f64) -> Self {
        if amount >= 1.0 && amount.fract() == 0.0 && amount < 1e15 {
            Self::Count(amount as usize)
        } else {
            Self::Share(amount)
        }
    }

    fn check(self) -> Result<Self> {
        let rule = match self {
            Self::Share(share) if !(share > 0.0 && share < 1.0) => {
                "a share must be greater than 0 and less than 1"
            }
            Self::Count(0) => "must be at least 1",
            _ => return Ok(self),
        };
        Err(Error::parameter("holdout", self, rule))
    }

    /// How many of `n` ratings are held out.
    fn of(self, n: usize) -> usize {
        match self {
            Self::Share(share) => ((share * n as f64).round() as usize).min(n.saturating_sub(1)),
            Self::Count(count) if count < n => count,
            Self::Count(_) => 0,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share.fmt(f),
            Self::Count(count) => count.fmt(f),
        }
    }
}

/// Sets some ratings of each user aside, at random: `(train, held out)`.
///
/// Every user keeps at least one rating to learn from; who has too few keeps all of them.
///
/// # Errors
/// If the amount is outside its range, or no user has enough ratings.
///
/// ```
/// use gradus_data::{Id, Ratings};
/// use gradus_data::split::{Amount, per_user};
///
/// let ratings = Ratings::from_triplets((0..12).map(|i| (Id::Int(i % 3), Id::Int(i), 4.0)))?;
/// let (train, test) = per_user(&ratings, Amount::Count(1), 7)?;
/// assert!((0..3).all(|user| test.by_user().row(user).0.len() == 1));
/// assert_eq!(train.len(), 9);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn per_user(ratings: &Ratings, amount: Amount, seed: u64) -> Result<(Ratings, Ratings)> {
    amount.check()?;
    let mut held_out = vec![false; ratings.len()];
    for user in 0..ratings.n_users() {
        let places = ratings.by_user().range(user);
        let mut stream = Stream::new(seed, "split.per_user", user as u64);
        for chosen in stream.sample(places.len(), amount.of(places.len()))? {
            held_out[places.start + chosen] = true;
        }
    }
    split(ratings, amount, &held_out)
}

/// Sets the last ratings of each user by time aside: `(train, held out)`.
///
/// Of ratings given at the same time the one of the larger item id counts as the later. Every user
/// keeps at least one rating to learn from; who has too few keeps all of them.
///
/// The test comes after the training for each user, not for all of them: what others did later can
/// still be learned from. It is the usual split of sequential recommenders.
///
/// # Errors
/// If the ratings have no times, the amount is outside its range, or no user has enough ratings.
///
/// ```
/// use gradus_data::{Duplicates, Id, RatingsBuilder};
/// use gradus_data::split::{Amount, leave_last_out};
///
/// let mut builder = RatingsBuilder::new();
/// for (item, time) in [("Alien", 30), ("Brazil", 10), ("Casablanca", 20)] {
///     builder.push_at(Id::Int(1), Id::Text(item), 4.0, time)?;
/// }
/// let (_, test) = leave_last_out(&builder.finish(Duplicates::Error)?, Amount::Count(1))?;
/// assert_eq!(test.by_user().row(0).0, [0]);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn leave_last_out(ratings: &Ratings, amount: Amount) -> Result<(Ratings, Ratings)> {
    amount.check()?;
    let times = ratings.times().ok_or_else(|| {
        Error::data(
            "a split by time needs the time of each rating, and these have none: name the column \
             with option `time`",
        )
    })?;
    let mut held_out = vec![false; ratings.len()];
    let mut order = Vec::new();
    for user in 0..ratings.n_users() {
        order.clear();
        order.extend(ratings.by_user().range(user));
        // Positions of a row ascend with the item, so they settle ties.
        order.sort_unstable_by_key(|&at| (times[at], at));
        for &at in order.iter().rev().take(amount.of(order.len())) {
            held_out[at] = true;
        }
    }
    split(ratings, amount, &held_out)
}

fn split(ratings: &Ratings, amount: Amount, held_out: &[bool]) -> Result<(Ratings, Ratings)> {
    if !held_out.contains(&true) {
        let most = (0..ratings.n_users()).map(|user| ratings.by_user().range(user).len()).max();
        return Err(Error::data(format!(
            "holdout = {amount} of each user's ratings: nothing is held out, for no user has more \
             than {} ratings",
            most.unwrap_or(0)
        )));
    }
    Ok(ratings.partition(|at| !held_out[at]))
}

/// The parts of the split [`cold_users`].
#[derive(Clone, Debug)]
pub struct ColdUsers {
    /// The ratings of all other users, to learn from.
    pub train: Ratings,
    /// The ratings by which the held-out users are folded in.
    pub fold_in: Ratings,
    /// The other ratings of the held-out users, to test on.
    pub test: Ratings,
}

/// Holds users out altogether (strong generalisation): a share of them, chosen at random, each with
/// a part of their ratings to fold them in by and a part to test on.
///
/// The share is of the users with two ratings or more; the others cannot be tested and stay in
/// training. At least one rating of a chosen user goes to each part, the rest as `amount` says of
/// the test.
///
/// # Errors
/// If the share or the amount is outside its range, or nobody is left to learn from or to test on.
///
/// ```
/// use gradus_data::{Id, Ratings};
/// use gradus_data::split::{Amount, cold_users};
///
/// let ratings = Ratings::from_triplets((0..40).map(|i| (Id::Int(i % 10), Id::Int(i), 4.0)))?;
/// let cold = cold_users(&ratings, 0.2, Amount::Share(0.5), 1)?;
/// assert_eq!((cold.train.len(), cold.fold_in.len(), cold.test.len()), (32, 4, 4));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn cold_users(ratings: &Ratings, share: f64, amount: Amount, seed: u64) -> Result<ColdUsers> {
    if !(share > 0.0 && share < 1.0) {
        let rule = "the share of users must be greater than 0 and less than 1";
        return Err(Error::parameter("holdout", share, rule));
    }
    amount.check()?;
    let rows = ratings.by_user();
    let able: Vec<usize> =
        (0..ratings.n_users()).filter(|&user| rows.range(user).len() > 1).collect();
    let n = (share * able.len() as f64).round() as usize;
    if n == 0 || n == able.len() {
        return Err(Error::data(format!(
            "holdout = {share} of the users: of {} with two ratings or more that leaves {} to \
             learn from and {n} to test on",
            able.len(),
            able.len() - n
        )));
    }
    let chosen = Stream::new(seed, "split.cold_users", 0).sample(able.len(), n)?;
    #[derive(Clone, Copy, PartialEq)]
    enum Part {
        Train,
        FoldIn,
        Test,
    }
    let mut parts = vec![Part::Train; ratings.len()];
    for user in chosen.into_iter().map(|at| able[at]) {
        let places = rows.range(user);
        parts[places.clone()].fill(Part::FoldIn);
        let n_test = match amount {
            Amount::Count(count) => count.min(places.len() - 1),
            share => share.of(places.len()).max(1),
        };
        let mut stream = Stream::new(seed, "split.cold_users.test", user as u64);
        for at in stream.sample(places.len(), n_test)? {
            parts[places.start + at] = Part::Test;
        }
    }
    let [train, fold_in, test] =
        [Part::Train, Part::FoldIn, Part::Test].map(|part| ratings.filter(|at| parts[at] == part));
    Ok(ColdUsers { train, fold_in, test })
}

/// Holds items out altogether: a share of the rated items, chosen at random, with all their ratings: `(train,
/// held out)`. It asks how a model does on items that are new, of which it knows features at best.
///
/// # Errors
/// If the share is outside its range, or no item is left to learn from or to test on.
///
/// ```
/// use gradus_data::{Id, Ratings};
/// use gradus_data::split::cold_items;
///
/// let ratings = Ratings::from_triplets((0..40).map(|i| (Id::Int(i), Id::Int(i % 10), 4.0)))?;
/// let (train, test) = cold_items(&ratings, 0.2, 1)?;
/// assert_eq!((train.len(), test.len()), (32, 8));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn cold_items(ratings: &Ratings, share: f64, seed: u64) -> Result<(Ratings, Ratings)> {
    if !(share > 0.0 && share < 1.0) {
        let rule = "the share of items must be greater than 0 and less than 1";
        return Err(Error::parameter("holdout", share, rule));
    }
    let rows = ratings.by_item();
    let rated: Vec<usize> =
        (0..ratings.n_items()).filter(|&item| !rows.range(item).is_empty()).collect();
    let n = (share * rated.len() as f64).round() as usize;
    if n == 0 || n == rated.len() {
        return Err(Error::data(format!(
            "holdout = {share} of the items: of {} with ratings that leaves {} to learn from and {n} to \
             test on",
            rated.len(),
            rated.len() - n
        )));
    }
    let mut held_out = vec![false; ratings.n_items()];
    for at in Stream::new(seed, "split.cold_items", 0).sample(rated.len(), n)? {
        held_out[rated[at]] = true;
    }
    let is_held: Vec<bool> = ratings.iter().map(|rating| held_out[rating.item as usize]).collect();
    Ok(ratings.partition(|at| !is_held[at]))
}
