//! New interactions without a new fit.
//!
//! What the users have is extended first, and scores are made from it: a user with new items, known or new themselves,
//! is scored from all their items by the weights of the fit. What a rule learned of pairs of known items stays
//! as it is, to the last bit, unless their items are to be solved again. New items are added as the rule says.

use super::{Scorer, ScoringRule};
use crate::catalogue::{History, UserProfile};
use crate::interest::Strength;
use gradus_base::{Error, Result};
use gradus_core::update::{Update, UpdateOptions, Updated};
use gradus_data::{Csr, Entity, Kept, Merged, Ratings};
use std::sync::Arc;

/// The changes of an update, in the new numbering of users and items.
#[derive(Debug)]
pub struct Change<'a> {
    /// The ids and all interactions.
    pub merged: &'a Merged,
    /// Whether each item was known before.
    pub known: Vec<bool>,
    /// The items to solve, ascending: those that are new, and on request the others with new interactions.
    pub solve: Vec<u32>,
}

impl<'a> Change<'a> {
    fn new(merged: &'a Merged, how: &UpdateOptions) -> Self {
        let mut known = vec![false; merged.items.len()];
        merged.item_places.iter().for_each(|&place| known[place as usize] = true);
        let mut solve = merged.touched_items.clone();
        solve.retain(|&item| how.items || !known[item as usize]);
        Self { merged, known, solve }
    }

    /// The number of items.
    pub(crate) fn n_items(&self) -> usize {
        self.merged.items.len()
    }

    /// The items that were not known, ascending.
    pub(crate) fn new_items(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.known.len()).filter(|&item| !self.known[item])
    }

    /// The strengths of all interactions by user.
    pub(crate) fn strengths(&self, strength: Strength) -> Csr {
        let ratings = &self.merged.ratings;
        ratings.with_values(strength.all(ratings.values(), self.merged.weights.as_deref()))
    }

    fn profile(&self, user: usize) -> UserProfile<'_> {
        let (items, values) = self.merged.ratings.row(user);
        let range = self.merged.ratings.range(user);
        let weights = self.merged.weights.as_ref().map(|weights| &weights[range]);
        UserProfile { user: Some(user), items: items.into(), values: values.into(), weights }
    }

    /// The residuals of the users of an item, `Σ_u x_ui (x_u − y_u)`, for all items: the gradient with respect to what
    /// this item adds to each. `by_user` and `of_item` are strengths.
    pub(crate) fn unexplained<R: ScoringRule>(
        &self,
        rule: &R,
        by_user: &Csr,
        of_item: (&[u32], &[f32]),
    ) -> Vec<f64> {
        let mut sums = vec![0.0f64; self.n_items()];
        let mut scores = vec![0.0f32; self.n_items()];
        for (&user, &x) in of_item.0.iter().zip(of_item.1) {
            let x = f64::from(x);
            let (items, strengths) = by_user.row(user as usize);
            for (&item, &y) in items.iter().zip(strengths) {
                sums[item as usize] += x * f64::from(y);
            }
            rule.scores(&self.profile(user as usize), &mut scores);
            sums.iter_mut().zip(&scores).for_each(|(sum, &y)| *sum -= x * f64::from(y));
        }
        sums
    }
}

/// The error of a model file that holds too little to add items.
pub(crate) fn not_kept(what: &str) -> Error {
    Error::data(format!(
        "the model was saved by an earlier version, without {what}, and cannot add users or items; fit it again"
    ))
}

/// A sparse matrix from the entries of its rows.
pub(crate) fn sparse_rows(n_cols: usize, rows: &[Vec<(u32, f32)>]) -> Result<Csr> {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        indices.extend(row.iter().map(|entry| entry.0));
        values.extend(row.iter().map(|entry| entry.1));
        indptr.push(indices.len());
    }
    Csr::new(n_cols, indptr, indices, values)
}

impl<R: ScoringRule> Update for Scorer<R> {
    fn update(&mut self, events: &Ratings, how: &UpdateOptions) -> Result<Updated> {
        let history = self.catalogue.history.as_ref().ok_or_else(|| {
            Error::data(
                "the model was fitted with keep_history = false: without the ratings of the training data \
                 none can be added; fit it again with keep_history",
            )
        })?;
        if let Some(event) = events.iter().find(|event| event.value < 0.0) {
            return Err(Error::data(format!(
                "new ratings: the value {} is negative; signs of interest are 0 or more",
                event.value
            )));
        }
        if let Some(of) = Entity::ALL.into_iter().find(|&of| events.features(of).is_some()) {
            return Err(Error::data(format!(
                "option `{}`: the model was not fitted with such features of {}s",
                of.option(),
                of.name()
            )));
        }
        if events.is_empty() {
            return Ok(Updated { since_fit: self.added, ..Updated::default() });
        }
        let kept = Kept {
            users: &self.catalogue.users,
            items: &self.catalogue.items,
            ratings: &history.ratings,
            weights: history.weights.as_deref(),
        };
        let merged = Merged::new(kept, events, how.duplicates)?;
        let change = Change::new(&merged, how);
        let rows_solved = self.rule.update(&change)?;
        self.added += events.len() as u64;
        let updated = Updated {
            events: events.len(),
            changed: merged.changed,
            users: merged.touched_users.len(),
            items: merged.touched_items.len(),
            new_users: merged.users.len() - self.catalogue.users.len(),
            new_items: merged.items.len() - self.catalogue.items.len(),
            rows_solved,
            since_fit: self.added,
        };
        (self.catalogue.users, self.catalogue.items) = (merged.users, merged.items);
        let history = History { ratings: Arc::new(merged.ratings), weights: merged.weights };
        self.catalogue.history = Some(history);
        Ok(updated)
    }
}
