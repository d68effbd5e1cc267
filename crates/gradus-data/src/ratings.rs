//! Ratings of items by users: the data of every recommender.

use super::{Csr, Features, Id, Ids, RatingsBuilder, builder};
use gradus_base::text::csv_field;
use gradus_base::{Error, Result};
use std::io::{self, Write};
use std::sync::Arc;

/// The treatment of a (user, item) pair that occurs more than once.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Duplicates {
    /// Keep the last one read.
    #[default]
    Last,
    /// Keep the mean of their values (weighted by their weights); the weights add up, and the time is
    /// the latest.
    Mean,
    /// Keep the sum of their values, as for a log of events; the weights add up, and the time is the
    /// latest.
    Sum,
    /// Refuse the data and name the pair.
    Error,
}

/// One rating, with the indices of its user and item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Index into [`Ratings::users`].
    pub user: u32,
    /// Index into [`Ratings::items`].
    pub item: u32,
    /// The value.
    pub value: f32,
    /// The weight of the rating; 1 where the data has none.
    pub weight: f32,
}

/// A set of ratings, stored by user and by item.
///
/// Canonical: both [`Ids`] are sorted, every pair occurs once, the entries of each row are sorted
/// by column. Two files with the same ratings in another order give equal `Ratings` (the
/// `last` policy for duplicates apart).
#[derive(Clone, Debug, PartialEq)]
pub struct Ratings {
    /// Shared with the ratings taken from these by [`filter`](Self::filter).
    users: Arc<Ids>,
    items: Arc<Ids>,
    by_user: Arc<Csr>,
    by_item: Csr,
    /// Weights in the order of `by_user` and of `by_item`.
    weights: Option<(Vec<f32>, Vec<f32>)>,
    /// Times in the order of `by_user`.
    times: Option<Vec<i64>>,
    /// Features of the users and of the items: see [`with_features`](Self::with_features).
    pub(super) features: [Option<Arc<Features>>; 2],
}

impl Ratings {
    /// Ratings from (user, item, value) triplets. Of a pair that occurs more than once the last
    /// value counts; [`RatingsBuilder`] offers other policies, weights, and columns at a time.
    ///
    /// # Errors
    /// If there are none, or a value is not finite.
    ///
    /// ```
    /// use gradus_data::{Id, Ratings};
    ///
    /// let ratings = Ratings::from_triplets([
    ///     (Id::Text("ann"), Id::Int(7), 5.0),
    ///     (Id::Text("bob"), Id::Int(7), 3.0),
    /// ])?;
    /// assert_eq!(ratings.users().find(Id::Text("bob")), Some(1));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn from_triplets<'a>(
        triplets: impl IntoIterator<Item = (Id<'a>, Id<'a>, f32)>,
    ) -> Result<Self> {
        let mut builder = RatingsBuilder::new();
        for (user, item, value) in triplets {
            builder.push(user, item, value)?;
        }
        builder.finish(Duplicates::default())
    }

    /// Ratings whose users and items are given by their index in known ids, some of which may have
    /// no rating: `user_indices[k]` rated `item_indices[k]` with `values[k]`, weighing `weights[k]`.
    ///
    /// # Errors
    /// If the columns differ in length, an index is not below the number of ids, a value is not
    /// finite, a weight is not finite or negative, or a pair occurs twice under
    /// [`Duplicates::Error`].
    ///
    /// ```
    /// use gradus_data::{Duplicates, Ids, Ratings};
    ///
    /// let ids = (Ids::range(3), Ids::range(2));
    /// let ratings =
    ///     Ratings::from_indexed(ids, (&[2, 0], &[1, 1]), &[4.0, 2.0], None, Duplicates::Error)?;
    /// assert_eq!(ratings.by_item().row(1), (&[0, 2][..], &[2.0, 4.0][..]));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn from_indexed(
        (users, items): (Ids, Ids),
        (user_indices, item_indices): (&[u32], &[u32]),
        values: &[f32],
        weights: Option<&[f32]>,
        duplicates: Duplicates,
    ) -> Result<Self> {
        let ids = (users.from_sorted()?, items.from_sorted()?);
        builder::from_indexed(ids, (user_indices, item_indices), values, weights, duplicates)
    }

    /// Ratings that are already by user: row `u` of `by_user` belongs to `users.get(u)`.
    ///
    /// # Errors
    /// If the ids are not strictly ascending, the shape does not fit them, or the items of a row
    /// are not strictly ascending.
    pub fn from_by_user(users: Ids, items: Ids, by_user: Csr) -> Result<Self> {
        let (users, items) = (users.from_sorted()?, items.from_sorted()?);
        if (by_user.n_rows(), by_user.n_cols()) != (users.len(), items.len()) {
            return Err(Error::Shape {
                what: "ratings by user".into(),
                expected: format!("{} users × {} items", users.len(), items.len()),
                got: format!("{} × {}", by_user.n_rows(), by_user.n_cols()),
            });
        }
        for row in 0..by_user.n_rows() {
            if !by_user.row(row).0.is_sorted_by(|a, b| a < b) {
                return Err(Error::data(format!(
                    "ratings by user: the items of row {row} are not strictly ascending"
                )));
            }
        }
        let (by_item, _) = builder::transpose(&by_user, None);
        Ok(Self::from_parts(Arc::new(users), Arc::new(items), by_user, by_item, None, None))
    }

    pub(super) fn from_parts(
        users: Arc<Ids>,
        items: Arc<Ids>,
        by_user: Csr,
        by_item: Csr,
        weights: Option<(Vec<f32>, Vec<f32>)>,
        times: Option<Vec<i64>>,
    ) -> Self {
        let features = [None, None];
        Self { users, items, by_user: Arc::new(by_user), by_item, weights, times, features }
    }

    /// The same ratings with the time of each, in the order of
    /// [`by_user().values()`](Self::by_user); any time they had is forgotten.
    ///
    /// # Errors
    /// If there are not as many times as ratings.
    pub fn with_times(self, times: Vec<i64>) -> Result<Self> {
        if times.len() != self.len() {
            return Err(Error::Shape {
                what: "times".into(),
                expected: format!("{} (one for each rating)", self.len()),
                got: times.len().to_string(),
            });
        }
        Ok(Self { times: Some(times), ..self })
    }

    /// The ratings for which `keep` holds, over the same users and items: a user or an item may be
    /// left without any. `keep` is asked once for each position in
    /// [`by_user().values()`](Self::by_user), in order.
    pub fn filter(&self, mut keep: impl FnMut(usize) -> bool) -> Self {
        let kept: Vec<bool> = (0..self.len()).map(&mut keep).collect();
        self.masked(&kept, true)
    }

    /// Two sets of ratings over the same users and items: those for which `first` holds, and the
    /// rest. The way to hold out a test set: `first` is asked once for each position in
    /// [`by_user().values()`](Self::by_user), in order.
    ///
    /// ```
    /// # use gradus_data::{Id, Ratings};
    /// # let ratings = Ratings::from_triplets([1, 2, 3, 4].map(|i| (Id::Int(1), Id::Int(i), 5.0)))?;
    /// let (train, test) = ratings.partition(|at| at % 4 != 0);
    /// assert_eq!((train.len(), test.len()), (3, 1));
    /// assert_eq!(train.items(), test.items());
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn partition(&self, mut first: impl FnMut(usize) -> bool) -> (Self, Self) {
        let kept: Vec<bool> = (0..self.len()).map(&mut first).collect();
        (self.masked(&kept, true), self.masked(&kept, false))
    }

    /// The same ratings with other values. `value` is asked once for each, in the order of
    /// [`iter`](Self::iter), and must give finite numbers.
    pub fn map_values(&self, value: impl FnMut(Rating) -> f32) -> Self {
        let values: Vec<f32> = self.iter().map(value).collect();
        let (indptr, indices) = (self.by_user.indptr().to_vec(), self.by_user.indices().to_vec());
        let by_user = Csr::from_trusted(self.n_items(), indptr, indices, values);
        let (by_item, weights_by_item) = builder::transpose(&by_user, self.weights_by_user());
        let weights = self.weights_by_user().map(<[f32]>::to_vec).zip(weights_by_item);
        let (users, items) = (self.users.clone(), self.items.clone());
        let mapped = Self::from_parts(users, items, by_user, by_item, weights, self.times.clone());
        Self { features: self.features.clone(), ..mapped }
    }

    /// The ratings whose place in `mask` is `wanted`.
    fn masked(&self, mask: &[bool], wanted: bool) -> Self {
        let n = mask.iter().filter(|&&kept| kept == wanted).count();
        let mut indptr = Vec::with_capacity(self.n_users() + 1);
        let (mut indices, mut values) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut weights = self.weights.as_ref().map(|_| Vec::with_capacity(n));
        let mut times = self.times.as_ref().map(|_| Vec::with_capacity(n));
        indptr.push(0);
        for user in 0..self.n_users() {
            for at in self.by_user.range(user).filter(|&at| mask[at] == wanted) {
                indices.push(self.by_user.indices()[at]);
                values.push(self.by_user.values()[at]);
                if let (Some(weights), Some((by_user, _))) = (&mut weights, &self.weights) {
                    weights.push(by_user[at]);
                }
                if let (Some(times), Some(all)) = (&mut times, &self.times) {
                    times.push(all[at]);
                }
            }
            indptr.push(indices.len());
        }
        let by_user = Csr::from_trusted(self.n_items(), indptr, indices, values);
        let (by_item, weights_by_item) = builder::transpose(&by_user, weights.as_deref());
        let weights = weights.zip(weights_by_item);
        let (users, items) = (self.users.clone(), self.items.clone());
        let masked = Self::from_parts(users, items, by_user, by_item, weights, times);
        Self { features: self.features.clone(), ..masked }
    }

    /// The ids of the users: row `u` of [`by_user`](Self::by_user) belongs to `users().get(u)`.
    pub fn users(&self) -> &Ids {
        &self.users
    }

    /// The ids of the items.
    pub fn items(&self) -> &Ids {
        &self.items
    }

    pub(super) fn users_shared(&self) -> Arc<Ids> {
        Arc::clone(&self.users)
    }

    pub(super) fn items_shared(&self) -> Arc<Ids> {
        Arc::clone(&self.items)
    }

    /// The ratings by user, `n_users × n_items`.
    pub fn by_user(&self) -> &Csr {
        &self.by_user
    }

    /// The same, to share: a model keeps it without a copy.
    pub fn by_user_shared(&self) -> Arc<Csr> {
        Arc::clone(&self.by_user)
    }

    /// The ratings by item, `n_items × n_users`.
    pub fn by_item(&self) -> &Csr {
        &self.by_item
    }

    /// The weights in the order of `by_user().values()`, if there are any.
    pub fn weights_by_user(&self) -> Option<&[f32]> {
        self.weights.as_ref().map(|(by_user, _)| by_user.as_slice())
    }

    /// The weights in the order of `by_item().values()`, if there are any.
    pub fn weights_by_item(&self) -> Option<&[f32]> {
        self.weights.as_ref().map(|(_, by_item)| by_item.as_slice())
    }

    /// Returns the time of each rating, in the order of `by_user().values()`, if times were read: see
    /// [`ReadOptions::times`](super::ReadOptions::times). Any number that grows with time; seconds since 1970 where the
    /// file has dates.
    pub fn times(&self) -> Option<&[i64]> {
        self.times.as_deref()
    }

    /// Writes CSV with the columns there are: user, item, rating if they are `rated`, weight, time.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write_csv(&self, rated: bool, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let (weights, times) = (self.weights_by_user(), self.times());
        let header = [
            Some("user,item"),
            rated.then_some("rating"),
            weights.map(|_| "weight"),
            times.map(|_| "time"),
        ];
        writeln!(out, "{}", header.into_iter().flatten().collect::<Vec<_>>().join(","))?;
        let quoted = |id: Id<'_>| match id {
            Id::Text(text) => csv_field(text).into_owned(),
            Id::Int(number) => number.to_string(),
        };
        let items: Vec<String> = self.items().iter().map(quoted).collect();
        for user in 0..self.n_users() {
            let id = quoted(self.users().get(user));
            for at in self.by_user().range(user) {
                write!(out, "{id},{}", items[self.by_user().indices()[at] as usize])?;
                if rated {
                    write!(out, ",{}", self.by_user().values()[at])?;
                }
                if let Some(weights) = weights {
                    write!(out, ",{}", weights[at])?;
                }
                if let Some(times) = times {
                    write!(out, ",{}", times[at])?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }

    /// Number of users.
    pub fn n_users(&self) -> usize {
        self.users.len()
    }

    /// Number of items.
    pub fn n_items(&self) -> usize {
        self.items.len()
    }

    /// Number of ratings.
    pub fn len(&self) -> usize {
        self.by_user.nnz()
    }

    /// Whether there are no ratings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All ratings, user by user.
    pub fn iter(&self) -> impl Iterator<Item = Rating> + '_ {
        (0..self.n_users()).flat_map(move |user| {
            self.by_user.range(user).map(move |at| Rating {
                user: user as u32,
                item: self.by_user.indices()[at],
                value: self.by_user.values()[at],
                weight: self.weights_by_user().map_or(1.0, |weights| weights[at]),
            })
        })
    }
}
