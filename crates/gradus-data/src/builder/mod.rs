//! Building [`Ratings`] from columns of ids and values.

mod assemble;
mod chunk;
mod intern;

pub(super) use assemble::{mean, transpose};

use super::{Duplicates, Id, IdSlice, Ids, Ratings};
use chunk::{CHUNK_ROWS, Chunk, Extras};
use gradus_base::{Error, Result, parallel};
use intern::Interner;

/// Collects ratings block by block and turns them into [`Ratings`].
///
/// Ids may be integers or text; an axis whose ids all are integers in canonical form (`42`, not
/// `042`) has integer ids, any other has text ids. The order of arrival matters for
/// [`Duplicates::Last`] alone, the size of the blocks and the number of threads for nothing.
///
/// # Memory
/// 12 bytes for each rating while they arrive (16 with weights), 20 at the peak of
/// [`finish`](Self::finish), 16 for the result; with times 8 more.
///
/// ```
/// use gradus_data::{Duplicates, Id, RatingsBuilder, TextIds};
///
/// let mut builder = RatingsBuilder::new();
/// let items: TextIds = ["Alien", "Brazil", "Alien"].into_iter().collect();
/// builder.push_columns([7, 7, 3].as_slice(), &items, &[4.0, 2.5, 5.0], None)?;
/// builder.push(Id::Int(3), Id::Text("Brazil"), 1.0)?;
/// let ratings = builder.finish(Duplicates::Error)?;
/// assert_eq!((ratings.n_users(), ratings.n_items(), ratings.len()), (2, 2, 4));
/// assert_eq!(ratings.users().get(0), Id::Int(3));
/// assert_eq!(ratings.by_user().row(0), (&[0, 1][..], &[5.0, 1.0][..]));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub struct RatingsBuilder {
    users: Interner,
    items: Interner,
    chunks: Vec<Chunk>,
    /// Whether a weight was seen (then every chunk from there on has them), and whether the first
    /// rating had a time (then every rating must have one).
    extras: Extras,
    len: usize,
}

impl Default for RatingsBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl RatingsBuilder {
    /// A builder without ratings.
    pub fn new() -> Self {
        Self {
            users: Interner::new("user"),
            items: Interner::new("item"),
            chunks: Vec::new(),
            extras: Extras::default(),
            len: 0,
        }
    }

    /// How many ratings arrived so far, duplicates included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none arrived.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one rating.
    ///
    /// # Errors
    /// If the value is not finite.
    pub fn push(&mut self, user: Id<'_>, item: Id<'_>, value: f32) -> Result<()> {
        self.push_one(user, item, value, None, None)
    }

    /// Adds one rating with the time it was given at: any number that grows with time, seconds
    /// since 1970 by custom.
    ///
    /// # Errors
    /// If the value is not finite, or the ratings so far have no times.
    ///
    /// ```
    /// use gradus_data::{Duplicates, Id, RatingsBuilder};
    ///
    /// let mut builder = RatingsBuilder::new();
    /// builder.push_at(Id::Int(1), Id::Text("Brazil"), 4.0, 978_300_760)?;
    /// builder.push_at(Id::Int(1), Id::Text("Alien"), 5.0, 978_302_109)?;
    /// let ratings = builder.finish(Duplicates::Error)?;
    /// assert_eq!(ratings.times(), Some(&[978_302_109, 978_300_760][..]));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn push_at(&mut self, user: Id<'_>, item: Id<'_>, value: f32, time: i64) -> Result<()> {
        self.push_one(user, item, value, None, Some(time))
    }

    /// Adds one rating with a weight. Weight 0 keeps the rating as an interaction that no fit sees.
    ///
    /// # Errors
    /// If the value is not finite, or the weight is not finite or negative.
    pub fn push_weighted(
        &mut self,
        user: Id<'_>,
        item: Id<'_>,
        value: f32,
        weight: f32,
    ) -> Result<()> {
        self.push_one(user, item, value, Some(weight), None)
    }

    fn push_one(
        &mut self,
        user: Id<'_>,
        item: Id<'_>,
        value: f32,
        weight: Option<f32>,
        time: Option<i64>,
    ) -> Result<()> {
        check_values(&[value], weight.as_ref().map(std::slice::from_ref))?;
        self.check_timed(time.is_some())?;
        let (user, item) = (self.users.number_one(user)?, self.items.number_one(item)?);
        self.extras.weights |= weight.is_some();
        let free = open_chunk(&mut self.chunks, self.extras).free_rows(1);
        (free.users[0], free.items[0], free.values[0]) = (user, item, value);
        if let Some(weights) = free.weights {
            weights[0] = weight.unwrap_or(1.0);
        }
        if let (Some(times), Some(time)) = (free.times, time) {
            times[0] = time;
        }
        self.count(1);
        Ok(())
    }

    /// Adds a block of ratings: row `k` is `users[k]`, `items[k]`, `values[k]`, `weights[k]`.
    /// Ratings without weights count as weight 1 beside ratings with them.
    ///
    /// # Errors
    /// If the columns differ in length, a value is not finite, or a weight is not finite or
    /// negative. Nothing of the block is added then.
    pub fn push_columns<'a>(
        &mut self,
        users: impl Into<IdSlice<'a>>,
        items: impl Into<IdSlice<'a>>,
        values: &[f32],
        weights: Option<&[f32]>,
    ) -> Result<()> {
        let (users, items) = (users.into(), items.into());
        check_lengths(users.len(), items.len(), values, weights, None)?;
        check_values(values, weights)?;
        self.push_checked(users, items, values, weights, None)
    }

    /// Adds a block of ratings as [`push_columns`](Self::push_columns) does, with their times.
    ///
    /// # Errors
    /// As [`push_columns`](Self::push_columns), and if the ratings so far have no times.
    pub fn push_columns_at<'a>(
        &mut self,
        users: impl Into<IdSlice<'a>>,
        items: impl Into<IdSlice<'a>>,
        values: &[f32],
        weights: Option<&[f32]>,
        times: &[i64],
    ) -> Result<()> {
        let (users, items) = (users.into(), items.into());
        check_lengths(users.len(), items.len(), values, weights, Some(times))?;
        check_values(values, weights)?;
        self.push_checked(users, items, values, weights, Some(times))
    }

    /// A rating without a time among others with one cannot be put in order.
    fn check_timed(&mut self, timed: bool) -> Result<()> {
        if self.is_empty() {
            self.extras.times = timed;
        }
        if self.extras.times == timed {
            return Ok(());
        }
        let (has, others) = if timed { ("a", "none") } else { ("no", "one") };
        Err(Error::data(format!(
            "rating {} has {has} time, those before have {others}: give all of them a time or none",
            self.len + 1
        )))
    }

    /// Adds a block of columns of equal length whose values and weights were checked.
    pub(super) fn push_checked(
        &mut self,
        users: IdSlice<'_>,
        items: IdSlice<'_>,
        values: &[f32],
        weights: Option<&[f32]>,
        times: Option<&[i64]>,
    ) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        self.check_timed(times.is_some())?;
        self.extras.weights |= weights.is_some();
        let mut start = 0;
        while start < values.len() {
            let free = open_chunk(&mut self.chunks, self.extras).free_rows(values.len() - start);
            let end = start + free.users.len();
            self.users.number(users, start, free.users)?;
            self.items.number(items, start, free.items)?;
            free.values.copy_from_slice(&values[start..end]);
            match (free.weights, weights) {
                (Some(free), Some(weights)) => free.copy_from_slice(&weights[start..end]),
                (Some(free), None) => free.fill(1.0),
                (None, _) => {}
            }
            if let (Some(free), Some(times)) = (free.times, times) {
                free.copy_from_slice(&times[start..end]);
            }
            self.count(end - start);
            start = end;
        }
        Ok(())
    }

    fn count(&mut self, n: usize) {
        self.len += n;
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.grow(n);
        }
    }

    /// Sorts the ids, settles duplicates and builds both matrices.
    ///
    /// # Errors
    /// If there are no ratings, if a pair occurs twice under [`Duplicates::Error`], or if the
    /// weights of a pair add up to infinity.
    pub fn finish(self, duplicates: Duplicates) -> Result<Ratings> {
        if self.is_empty() {
            return Err(Error::data("no ratings"));
        }
        let ((users, user_places), (items, item_places)) =
            parallel::join(|| self.users.finish(), || self.items.finish());
        assemble::assemble(users, items, self.chunks, &user_places, &item_places, duplicates)
    }
}

/// Ratings whose users and items are given by their index in known ids: see
/// [`Ratings::from_indexed`].
pub(super) fn from_indexed(
    (users, items): (Ids, Ids),
    (user_indices, item_indices): (&[u32], &[u32]),
    values: &[f32],
    weights: Option<&[f32]>,
    duplicates: Duplicates,
) -> Result<Ratings> {
    check_lengths(user_indices.len(), item_indices.len(), values, weights, None)?;
    check_values(values, weights)?;
    for (what, indices, n) in
        [("user", user_indices, users.len()), ("item", item_indices, items.len())]
    {
        if n >= u32::MAX as usize {
            return Err(Error::data(format!("{n} {what}s: indices are 32-bit")));
        }
        if let Some(index) = indices.iter().find(|&&index| index as usize >= n) {
            return Err(Error::data(format!("{what} index {index} is not below {n}")));
        }
    }
    let mut chunks = Vec::new();
    let extras = Extras { weights: weights.is_some(), times: false };
    let mut start = 0;
    while start < values.len() {
        let chunk = open_chunk(&mut chunks, extras);
        let free = chunk.free_rows(values.len() - start);
        let range = start..start + free.users.len();
        free.users.copy_from_slice(&user_indices[range.clone()]);
        free.items.copy_from_slice(&item_indices[range.clone()]);
        free.values.copy_from_slice(&values[range.clone()]);
        if let (Some(free), Some(weights)) = (free.weights, weights) {
            free.copy_from_slice(&weights[range.clone()]);
        }
        chunk.grow(range.len());
        start = range.end;
    }
    let user_places: Vec<u32> = (0..users.len() as u32).collect();
    let item_places: Vec<u32> = (0..items.len() as u32).collect();
    assemble::assemble(users, items, chunks, &user_places, &item_places, duplicates)
}

/// A chunk with free rows, also for the extras.
fn open_chunk(chunks: &mut Vec<Chunk>, extras: Extras) -> &mut Chunk {
    if !chunks.last().is_some_and(|chunk| !chunk.is_full() && chunk.extras() == extras) {
        chunks.push(Chunk::new(CHUNK_ROWS, extras));
    }
    let last = chunks.len() - 1;
    &mut chunks[last]
}

fn check_lengths(
    users: usize,
    items: usize,
    values: &[f32],
    weights: Option<&[f32]>,
    times: Option<&[i64]>,
) -> Result<()> {
    let lengths = [
        ("items", items),
        ("values", values.len()),
        ("weights", weights.map_or(users, <[_]>::len)),
        ("times", times.map_or(users, <[_]>::len)),
    ];
    match lengths.into_iter().find(|&(_, len)| len != users) {
        None => Ok(()),
        Some((what, len)) => Err(Error::Shape {
            what: what.into(),
            expected: format!("{users} (one for each user)"),
            got: len.to_string(),
        }),
    }
}

fn check_values(values: &[f32], weights: Option<&[f32]>) -> Result<()> {
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(Error::data(format!("value {at}: {} is not finite", values[at])));
    }
    match weights.and_then(|weights| {
        weights
            .iter()
            .position(|weight| !(weight.is_finite() && *weight >= 0.0))
            .map(|at| (at, weights[at]))
    }) {
        None => Ok(()),
        Some((at, weight)) if weight < 0.0 => {
            Err(Error::data(format!("weight {at}: {weight} is negative")))
        }
        Some((at, weight)) => Err(Error::data(format!("weight {at}: {weight} is not finite"))),
    }
}

#[cfg(test)]
mod tests;
