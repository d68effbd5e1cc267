//! Splits that treat all ratings alike.

use crate::Ratings;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};

/// Sets a random share of the ratings aside: `(train, held out)`.
///
/// Exactly `round(share · n)` ratings are held out, each set of that size being equally likely.
///
/// # Errors
/// If `share` is not strictly between 0 and 1, or leaves one of the parts empty.
///
/// ```
/// use gradus_data::{Id, Ratings};
/// use gradus_data::split::holdout;
///
/// let ratings = Ratings::from_triplets((0..10).map(|i| (Id::Int(i % 3), Id::Int(i), 4.0)))?;
/// let (train, test) = holdout(&ratings, 0.2, 1)?;
/// assert_eq!((train.len(), test.len()), (8, 2));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn holdout(ratings: &Ratings, share: f64, seed: u64) -> Result<(Ratings, Ratings)> {
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::parameter("holdout", share, "must be greater than 0 and less than 1"));
    }
    let held_out = (share * ratings.len() as f64).round() as usize;
    if held_out == 0 || held_out == ratings.len() {
        return Err(Error::data(format!(
            "holdout = {share}: of {} ratings that leaves {} to learn from and {held_out} to test on",
            ratings.len(),
            ratings.len() - held_out
        )));
    }
    // Selection sampling: one pass, no list of positions.
    let mut stream = Stream::new(seed, "split.holdout", 0);
    let (mut wanted, mut left) = (held_out as u64, ratings.len() as u64);
    Ok(ratings.partition(|_| {
        let chosen = stream.below(left) < wanted;
        wanted -= u64::from(chosen);
        left -= 1;
        !chosen
    }))
}

/// Cuts the ratings into `k` random parts whose sizes differ by one at most, each of which can be
/// held out in turn: `k`-fold cross-validation.
///
/// # Errors
/// If `k` is less than 2, or larger than the number of ratings.
///
/// ```
/// use gradus_data::{Id, Ratings};
/// use gradus_data::split::folds;
///
/// let ratings = Ratings::from_triplets((0..10).map(|i| (Id::Int(i % 3), Id::Int(i), 4.0)))?;
/// for (train, test) in folds(&ratings, 5, 1)?.iter() {
///     assert_eq!((train.len(), test.len()), (8, 2));
/// }
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn folds(ratings: &Ratings, k: usize, seed: u64) -> Result<Folds<'_>> {
    if k < 2 || k > ratings.len() {
        let rule = format!("must be from 2 to the number of ratings, {}", ratings.len());
        return Err(Error::parameter("folds", k, rule));
    }
    let too_many = |_| Error::parameter("folds", k, "must be less than 2^32");
    let n = u32::try_from(k).map_err(too_many)?;
    let mut parts: Vec<u32> = (0..n).cycle().take(ratings.len()).collect();
    Stream::new(seed, "split.folds", 0).shuffle(&mut parts);
    Ok(Folds { ratings, parts, k })
}

/// The parts of [`folds`]. A split is made when it is asked for: memory for one at a time.
#[derive(Clone, Debug)]
pub struct Folds<'a> {
    ratings: &'a Ratings,
    /// The part of each rating.
    parts: Vec<u32>,
    k: usize,
}

impl Folds<'_> {
    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.k
    }

    /// Whether there are none, which is never so.
    pub fn is_empty(&self) -> bool {
        self.k == 0
    }

    /// The split that holds part `fold` out: `(train, held out)`.
    ///
    /// # Errors
    /// If there is no such part; they count from 0.
    pub fn get(&self, fold: usize) -> Result<(Ratings, Ratings)> {
        if fold >= self.k {
            return Err(Error::parameter("fold", fold, format!("must be below {}", self.k)));
        }
        Ok(self.split(fold))
    }

    /// All splits in turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Ratings, Ratings)> + '_ {
        (0..self.k).map(|fold| self.split(fold))
    }

    fn split(&self, fold: usize) -> (Ratings, Ratings) {
        self.ratings.partition(|at| self.parts[at] as usize != fold)
    }
}
