//! Setting ratings aside.

use gradus_core::data::Ratings;
use gradus_core::random::Stream;
use gradus_core::{Error, Result};

/// Sets a random share of the ratings aside: `(train, held out)`.
///
/// Exactly `round(share · n)` ratings are held out, each set of that size being equally likely.
/// Both parts keep all ids, so a user whose ratings all went to one part is still known to the
/// other. The same seed and ratings give the same split, in whatever order the file had them.
///
/// # Errors
/// If `share` is not strictly between 0 and 1, or leaves one of the parts empty.
pub fn holdout(ratings: &Ratings, share: f64, seed: u64) -> Result<(Ratings, Ratings)> {
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::parameter("holdout", share, "must be greater than 0 and less than 1"));
    }
    let held = (share * ratings.len() as f64).round() as usize;
    if held == 0 || held == ratings.len() {
        return Err(Error::data(format!(
            "holdout = {share}: of {} ratings that leaves {} to learn from and {held} to test on",
            ratings.len(),
            ratings.len() - held
        )));
    }
    // Selection sampling: one pass, no list of positions.
    let mut stream = Stream::new(seed, "split.holdout", 0);
    let (mut wanted, mut left) = (held as u64, ratings.len() as u64);
    Ok(ratings.partition(|_| {
        let chosen = stream.below(left) < wanted;
        wanted -= u64::from(chosen);
        left -= 1;
        !chosen
    }))
}
