//! The users and items that a recommender knows: their ids, and the users' ratings in training. Shared
//! by all recommenders of this crate.

use crate::latent::no_features;
use gradus_base::{Error, Result};
use gradus_core::recommend::{Filter, Profile, Recipient};
use gradus_data::{Csr, Ids, Ratings};
use gradus_file::{Reader, Writer};
use std::borrow::Cow;
use std::sync::Arc;

/// The training ratings of the users.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) ratings: Arc<Csr>,
    pub(crate) weights: Option<Vec<f32>>,
}

impl History {
    pub(crate) fn of(data: &Ratings) -> Self {
        Self {
            ratings: data.by_user_shared(),
            weights: data.weights_by_user().map(<[f32]>::to_vec),
        }
    }

    pub(crate) fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.ratings.write("history", file);
        if let Some(weights) = &self.weights {
            file.tensor("history.weights", &[weights.len()], weights);
        }
    }

    pub(crate) fn read(file: &mut Reader, n_users: usize, n_items: usize) -> Result<Self> {
        let ratings = Csr::read("history", n_users, n_items, file)?;
        let weights = if file.has("history.weights") {
            Some(file.finite("history.weights", &[ratings.nnz()])?)
        } else {
            None
        };
        Ok(Self { ratings: Arc::new(ratings), weights })
    }

    /// The items, values and weights of a user.
    pub(crate) fn row(&self, user: usize) -> (&[u32], &[f32], Option<&[f32]>) {
        let (items, values) = self.ratings.row(user);
        (items, values, self.weights.as_ref().map(|w| &w[self.ratings.range(user)]))
    }
}

/// The row of a user, if there is one of this number.
pub(crate) fn user_row(user: u32, n_users: usize) -> Result<usize> {
    if (user as usize) < n_users {
        return Ok(user as usize);
    }
    Err(Error::parameter("user", user, format!("must be below the number of users, {n_users}")))
}

/// The row of an item, if there is one of this number.
pub(crate) fn item_row(item: u32, n_items: usize) -> Result<usize> {
    if (item as usize) < n_items {
        return Ok(item as usize);
    }
    Err(Error::parameter("item", item, format!("must be below the number of items, {n_items}")))
}

/// A user and their ratings, in ascending order of the items.
#[derive(Clone, Debug)]
pub struct UserProfile<'a> {
    /// The row of the user, if the user is one of the training data.
    pub user: Option<usize>,
    /// The items that the user rated; none where the model kept no history.
    pub items: Cow<'a, [u32]>,
    /// The ratings of these items.
    pub values: Cow<'a, [f32]>,
    /// The weights of the ratings, if they have any.
    pub weights: Option<&'a [f32]>,
}

impl UserProfile<'_> {
    /// The weight of the rating at this place.
    pub fn weight(&self, at: usize) -> f32 {
        self.weights.map_or(1.0, |weights| weights[at])
    }
}

/// The users and items of a model, with the history of the users where it is kept.
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub(crate) users: Ids,
    pub(crate) items: Ids,
    pub(crate) history: Option<History>,
}

impl Catalogue {
    pub(crate) fn new(data: &Ratings, keep_history: bool) -> Self {
        Self {
            users: data.users().clone(),
            items: data.items().clone(),
            history: keep_history.then(|| History::of(data)),
        }
    }

    pub(crate) fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("history", &self.history.is_some());
        self.users.write("users", file);
        self.items.write("items", file);
        if let Some(history) = &self.history {
            history.write(file);
        }
    }

    pub(crate) fn read(file: &mut Reader) -> Result<Self> {
        let kept: bool = file.get("history")?;
        let (users, items) = (Ids::read("users", file)?, Ids::read("items", file)?);
        let history =
            if kept { Some(History::read(file, users.len(), items.len())?) } else { None };
        Ok(Self { users, items, history })
    }

    /// The profile of a user of the training data.
    pub(crate) fn of_user(&self, row: usize) -> UserProfile<'_> {
        let (items, values, weights) =
            self.history.as_ref().map_or((&[][..], &[][..], None), |history| history.row(row));
        UserProfile { user: Some(row), items: items.into(), values: values.into(), weights }
    }

    /// The profile of the user that a target stands for.
    pub(crate) fn profile(&self, target: &Recipient<'_>) -> Result<UserProfile<'_>> {
        match target {
            Recipient::User(user) => Ok(self.of_user(user_row(*user, self.users.len())?)),
            Recipient::Profile(profile) => {
                // In the order in which training saw them, so that sums agree to the last bit.
                let Profile { items, values } = profile.sorted(self.items.len())?;
                Ok(UserProfile {
                    user: None,
                    items: items.into(),
                    values: values.into(),
                    weights: None,
                })
            }
            Recipient::Described { .. } => Err(no_features()),
        }
    }

    /// The items that the filter leaves out for this profile.
    pub(crate) fn seen<'t>(
        &self,
        profile: &'t UserProfile<'_>,
        filter: &Filter,
    ) -> Result<&'t [u32]> {
        let known = profile.user.is_none() || self.history.is_some();
        filter.unseen(known.then_some(&*profile.items))
    }
}
