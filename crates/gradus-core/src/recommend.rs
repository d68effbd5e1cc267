//! Recommenders: predicted ratings, lists of items, similar items, explanations.

mod filter;
mod shortlist;

use gradus_base::{Error, Result, parallel};
use gradus_data::{Csr, Entity, FeatureEncoder, FeatureRow, Ids};
use std::sync::Arc;

pub use filter::{Categories, Filter};
pub use shortlist::{Shortlist, TopN};

/// A score for an item, by index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Index into the model's items.
    pub item: u32,
    /// The predicted rating, or the similarity.
    pub score: f32,
}

/// A score for a user, by index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredUser {
    /// Index into the model's users.
    pub user: u32,
    /// The predicted rating, or the similarity.
    pub score: f32,
}

impl From<Scored> for ScoredUser {
    /// The score of a list that was made with users in the place of items.
    fn from(scored: Scored) -> Self {
        Self { user: scored.item, score: scored.score }
    }
}

/// The contribution of one of the user's ratings to a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// The item the user rated.
    pub item: u32,
    /// The user's rating of it.
    pub value: f32,
    /// The amount added to the score.
    pub contribution: f32,
}

/// An interval that holds a rating with a given probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionInterval {
    /// The lower end.
    pub low: f32,
    /// The upper end.
    pub high: f32,
}

/// The contribution of a feature to a score.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureContribution {
    /// The side of the feature: user or item.
    pub of: Entity,
    /// The name of the feature: `age`, `genres=Comedy`.
    pub feature: String,
    /// The amount added to the score.
    pub contribution: f32,
}

/// The explanation of a score: `score = base + Σ contributions`, over the user's ratings and features.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The score of the item for the user, before clipping.
    pub score: f32,
    /// The part of the score that does not depend on the user's ratings and features.
    pub base: f32,
    /// The contribution of each of the user's ratings, largest in size first.
    pub contributions: Vec<Contribution>,
    /// The contribution of each feature of the user, largest in size first.
    pub user_features: Vec<FeatureContribution>,
    /// The contribution of each feature of the item, largest in size first. They explain the same score by the
    /// item, and are not part of the sum.
    pub item_features: Vec<FeatureContribution>,
}

/// The profile of a user whom the model need not know: item indices and ratings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Item indices, each once.
    pub items: Vec<u32>,
    /// The rating of each.
    pub values: Vec<f32>,
}

impl Profile {
    /// Checks that items are known, occur once, and values are finite and as many.
    pub fn check(&self, n_items: usize) -> Result<()> {
        check_row("profile", "item", &self.items, &self.values, n_items)
    }

    /// The same ratings in ascending order of the items: the order of the rows of the training
    /// data, which sums and lookups rely on.
    ///
    /// # Errors
    /// If [`check`](Self::check) fails.
    pub fn sorted(&self, n_items: usize) -> Result<Profile> {
        self.check(n_items)?;
        let (items, values) = sorted_row(&self.items, &self.values);
        Ok(Profile { items, values })
    }
}

/// The ratings of one row in ascending order of their indices.
pub fn sorted_row(indices: &[u32], values: &[f32]) -> (Vec<u32>, Vec<f32>) {
    let mut order: Vec<usize> = (0..indices.len()).collect();
    order.sort_unstable_by_key(|&at| indices[at]);
    order.iter().map(|&at| (indices[at], values[at])).unzip()
}

/// Checks ratings of one row by index: known, once each, finite values and as many.
///
/// `row` and `other` name the row and the other side in messages.
pub fn check_row(row: &str, other: &str, indices: &[u32], values: &[f32], n: usize) -> Result<()> {
    if indices.len() != values.len() {
        return Err(Error::Shape {
            what: format!("{row} values"),
            expected: format!("{} (one for each {other})", indices.len()),
            got: values.len().to_string(),
        });
    }
    if indices.is_empty() {
        return Err(Error::data(format!("{row}: no ratings; give at least one to fold it in")));
    }
    if let Some(index) = indices.iter().find(|&&index| index as usize >= n) {
        return Err(Error::data(format!("{row}: {other} index {index} is not below {n}")));
    }
    if let Some(value) = values.iter().find(|value| !value.is_finite()) {
        return Err(Error::data(format!("{row}: rating {value} is not a finite number")));
    }
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::data(format!("{row}: {other} index {} is rated twice", pair[0]))),
        None => Ok(()),
    }
}

/// The recipient of a recommendation.
#[derive(Clone, Debug)]
pub enum Recipient<'a> {
    /// A user of the training data.
    User(u32),
    /// A new user with some ratings, folded in without retraining.
    Profile(&'a Profile),
    /// A new user with features, and with ratings if there are any. An error if the model did not learn from
    /// features of users.
    Described {
        /// The features, encoded as the model does: see [`Recommend::encoder`].
        features: &'a FeatureRow,
        /// The ratings.
        rated: Option<&'a Profile>,
    },
}

/// A model that predicts ratings and recommends items.
pub trait Recommend: Send + Sync {
    /// The users it was trained on.
    fn users(&self) -> &Ids;
    /// The items it was trained on.
    fn items(&self) -> &Ids;
    /// The training ratings, `n_users × n_items`, if the model kept them.
    fn history(&self) -> Option<&Csr>;

    /// How features of users or of items are encoded, if the model learned from any: users and items with
    /// features alone are known to it, and others are met with [`Recipient::Described`].
    fn encoder(&self, of: Entity) -> Option<&Arc<FeatureEncoder>> {
        let _ = of;
        None
    }

    /// Predicts the rating of each pair. `None` stands for a user or item that the model does not know;
    /// the prediction is then the best one without it.
    ///
    /// # Shapes
    /// One prediction for each pair.
    fn predict(&self, pairs: &[(Option<u32>, Option<u32>)]) -> Vec<f32>;

    /// The interval that holds the rating of each pair with probability `level`; `None` if the model has
    /// no intervals.
    ///
    /// # Shapes
    /// One interval for each pair.
    ///
    /// # Errors
    /// If `level` is not between 0 and 1.
    fn interval(
        &self,
        pairs: &[(Option<u32>, Option<u32>)],
        level: f64,
    ) -> Result<Option<Vec<PredictionInterval>>> {
        let _ = (pairs, level);
        Ok(None)
    }

    /// The best `n` items, best first; ties go to the smaller index.
    fn top(&self, target: &Recipient<'_>, n: usize, filter: &Filter) -> Result<Vec<Scored>>;

    /// The best `n` items for each of these users: what [`top`](Self::top) gives for each, to the
    /// last bit, in parallel.
    ///
    /// # Shapes
    /// One list for each user, in their order.
    fn top_many(&self, users: &[u32], n: usize, filter: &Filter) -> Result<Vec<Vec<Scored>>> {
        parallel::try_map(users, |&user| self.top(&Recipient::User(user), n, filter))
    }

    /// The `n` users with the highest predicted rating of this item, best first, without those who have
    /// rated it unless `include_seen`; ties go to the smaller index.
    fn top_users(&self, item: u32, n: usize, include_seen: bool) -> Result<Vec<ScoredUser>> {
        if item as usize >= self.items().len() {
            let rule = format!("must be below the number of items, {}", self.items().len());
            return Err(Error::parameter("item", item, rule));
        }
        let pairs: Vec<_> = (0..self.users().len() as u32).map(|u| (Some(u), Some(item))).collect();
        self.best_users(item, n, include_seen, &self.predict(&pairs))
    }

    /// The best `n` users of an item by these scores, one for each user.
    fn best_users(
        &self,
        item: u32,
        n: usize,
        include_seen: bool,
        scores: &[f32],
    ) -> Result<Vec<ScoredUser>> {
        let history = self.history();
        // To say that nobody can be left out, if so.
        Filter { include_seen, ..Filter::default() }.unseen(history.map(|_| &[][..]))?;
        let mut best = TopN::new(n);
        for (user, &score) in scores.iter().enumerate() {
            if best.wants(score) {
                let seen = history.is_some_and(|h| h.row(user).0.binary_search(&item).is_ok());
                if include_seen || !seen {
                    best.push(Scored { item: user as u32, score });
                }
            }
        }
        Ok(best.into_sorted().into_iter().map(ScoredUser::from).collect())
    }

    /// The `n` items most like this one (by the cosine of their vectors), without itself.
    fn similar_items(&self, item: u32, n: usize) -> Result<Vec<Scored>>;

    /// The `n` users most like this one (by the cosine of their vectors), without this one. An error
    /// if the model does not compare users.
    fn similar_users(&self, user: u32, n: usize) -> Result<Vec<ScoredUser>> {
        let _ = n;
        Err(Error::data(format!(
            "this model cannot say which users are like user {user}: it learns nothing to compare \
             them by"
        )))
    }

    /// The contribution of each of the recipient's ratings to the score of `item`.
    fn explain(&self, target: &Recipient<'_>, item: u32) -> Result<Explanation>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_says_what_is_wrong_with_it() {
        let say = |items: &[u32], values: &[f32]| {
            let profile = Profile { items: items.to_vec(), values: values.to_vec() };
            profile.check(5).unwrap_err().to_string()
        };
        assert!(say(&[], &[]).contains("no ratings"));
        assert!(say(&[1], &[]).contains("expected 1"));
        assert!(say(&[5], &[1.0]).contains("item index 5 is not below 5"));
        assert!(say(&[1, 2, 1], &[1.0; 3]).contains("rated twice"));
        assert!(say(&[1], &[f32::NAN]).contains("NaN"));
    }
}
