//! Who rated what, how much: the data of every recommender.

use super::{Csr, Ids};
use crate::{Error, Result};
use std::sync::Arc;

/// What to do with a (user, item) pair that occurs more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplicates {
    /// Keep the last one read.
    #[default]
    Last,
    /// Keep the mean of their values (weighted by their weights); the weights add up.
    Mean,
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
    /// Its weight; 1 where the data has none.
    pub weight: f32,
}

/// A set of ratings, held by user and by item.
///
/// Canonical: both [`Ids`] are sorted, every pair occurs once, the entries of each row are sorted
/// by column. Two files with the same ratings in another order give equal `Ratings` (the
/// `last` policy for duplicates apart).
#[derive(Clone, Debug, PartialEq)]
pub struct Ratings {
    users: Ids,
    items: Ids,
    by_user: Arc<Csr>,
    by_item: Csr,
    /// Weights in the order of `by_user` and of `by_item`.
    weights: Option<(Vec<f32>, Vec<f32>)>,
}

impl Ratings {
    /// Takes ratings that are canonical already, by user, without weights.
    ///
    /// # Errors
    /// If the matrix is not `users × items`, the ids do not ascend, or the entries of a row are
    /// not strictly ascending by column.
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
        let by_item = by_user.transpose();
        Ok(Self { users, items, by_user: Arc::new(by_user), by_item, weights: None })
    }

    /// The ids of the users: row `u` of [`by_user`](Self::by_user) belongs to `users().get(u)`.
    pub fn users(&self) -> &Ids {
        &self.users
    }

    /// The ids of the items.
    pub fn items(&self) -> &Ids {
        &self.items
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
