//! What a recommender can do, whatever model stands behind it.

use crate::data::{Csr, Ids};
use crate::{Error, Result};
use rayon::prelude::*;

/// A score for an item, by index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Index into the model's items.
    pub item: u32,
    /// The predicted rating, or the similarity.
    pub score: f32,
}

/// How one of the user's own ratings bore on a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// The item the user rated.
    pub item: u32,
    /// The user's rating of it.
    pub value: f32,
    /// What it adds to the score.
    pub contribution: f32,
}

/// Where a rating will lie, with a stated probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f32,
    /// The upper end.
    pub high: f32,
}

/// Why a score is what it is: `score = base + Σ contributions`.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The score of the item for the user, before clipping.
    pub score: f32,
    /// What anyone's score for this item starts from.
    pub base: f32,
    /// What each of the user's ratings adds, largest in size first.
    pub contributions: Vec<Contribution>,
}

/// Which items may be recommended.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these, if given.
    pub allow: Option<Vec<u32>>,
    /// Never these.
    pub deny: Vec<u32>,
    /// Also what the user has already rated.
    pub include_seen: bool,
}

/// The ratings of someone the model may not know: item indices and values.
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
        if self.items.len() != self.values.len() {
            return Err(Error::Shape {
                what: "profile values".into(),
                expected: format!("{} (one for each item)", self.items.len()),
                got: self.values.len().to_string(),
            });
        }
        if self.items.is_empty() {
            return Err(Error::data("profile: no ratings; give at least one to fold a user in"));
        }
        if let Some(item) = self.items.iter().find(|&&item| item as usize >= n_items) {
            return Err(Error::data(format!("profile: item index {item} is not below {n_items}")));
        }
        if let Some(value) = self.values.iter().find(|value| !value.is_finite()) {
            return Err(Error::data(format!("profile: rating {value} is not a finite number")));
        }
        let mut sorted = self.items.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                Err(Error::data(format!("profile: item index {} is rated twice", pair[0])))
            }
            None => Ok(()),
        }
    }
}

/// Whom a recommendation is for.
#[derive(Clone, Debug)]
pub enum Target<'a> {
    /// A user of the training data.
    User(u32),
    /// Someone described by a handful of ratings, folded in without retraining.
    Profile(&'a Profile),
}

/// A model that predicts ratings and recommends items.
pub trait Recommend: Send + Sync {
    /// The users it was trained on.
    fn users(&self) -> &Ids;
    /// The items it was trained on.
    fn items(&self) -> &Ids;
    /// What every user rated in training, `n_users × n_items`, if the model kept it.
    fn history(&self) -> Option<&Csr>;

    /// Predicts the rating of each pair; `None` is a user or item the model does not know, and
    /// gets the best that can be said without it.
    ///
    /// # Shapes
    /// One prediction for each pair.
    fn predict(&self, pairs: &[(Option<u32>, Option<u32>)]) -> Vec<f32>;

    /// For each pair the interval that holds the rating someone would give with probability
    /// `level`, if this kind of model knows how sure it is.
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
    ) -> Result<Option<Vec<Interval>>> {
        let _ = (pairs, level);
        Ok(None)
    }

    /// The best `n` items, best first; ties go to the smaller index.
    fn top(&self, target: &Target<'_>, n: usize, filter: &Filter) -> Result<Vec<Scored>>;

    /// The best `n` items for each of many users, as [`top`](Self::top) gives them; by default one
    /// after the other on all cores.
    ///
    /// # Shapes
    /// One list for each user.
    fn top_many(&self, users: &[u32], n: usize, filter: &Filter) -> Result<Vec<Vec<Scored>>> {
        users.par_iter().map(|&user| self.top(&Target::User(user), n, filter)).collect()
    }

    /// The `n` items most like this one (cosine of what the model knows of them), without itself.
    fn similar_items(&self, item: u32, n: usize) -> Result<Vec<Scored>>;

    /// What each of the target's ratings adds to the score of `item`.
    fn explain(&self, target: &Target<'_>, item: u32) -> Result<Explanation>;
}

/// Keeps the best `n` of what it is shown; ties go to the smaller index.
#[derive(Clone, Debug)]
pub struct TopN {
    n: usize,
    /// A heap with the worst at the top.
    heap: std::collections::BinaryHeap<Worst>,
}

#[derive(Clone, Copy, Debug)]
struct Worst(Scored);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Greater is worse: a smaller score, then a larger index.
        other.0.score.total_cmp(&self.0.score).then(self.0.item.cmp(&other.0.item))
    }
}
impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Worst {}

impl TopN {
    /// Keeps `n`.
    pub fn new(n: usize) -> Self {
        // Not `with_capacity(n)`: `n` is the user's and may be huge.
        Self { n, heap: std::collections::BinaryHeap::new() }
    }

    /// Whether a score could be among the best: a quick test before the work of building one.
    #[inline]
    pub fn wants(&self, score: f32) -> bool {
        self.heap.len() < self.n || self.heap.peek().is_some_and(|worst| score >= worst.0.score)
    }

    /// Takes it if it is among the best.
    pub fn push(&mut self, scored: Scored) {
        let scored = Worst(scored);
        if self.heap.len() < self.n {
            self.heap.push(scored);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && scored < *worst
        {
            *worst = scored;
        }
    }

    /// The best, best first.
    pub fn into_sorted(self) -> Vec<Scored> {
        self.heap.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_as_a_full_sort_would() {
        let mut stream = crate::random::Stream::new(1, "top", 0);
        for n in [0, 1, 3, 10, 100] {
            // Few distinct scores, so that ties matter.
            let all: Vec<Scored> =
                (0..50).map(|item| Scored { item, score: stream.below(8) as f32 }).collect();
            let mut order = stream.permutation(all.len());
            let mut top = TopN::new(n);
            for at in order.drain(..) {
                if top.wants(all[at].score) {
                    top.push(all[at]);
                }
            }
            let mut sorted = all.clone();
            sorted.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
            sorted.truncate(n);
            assert_eq!(top.into_sorted(), sorted);
        }
    }

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
