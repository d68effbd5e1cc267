//! Updating a model by new ratings: the rows they touch are solved again, all others keep their bits.
//!
//! In order:
//!
//! 1. The new ratings are merged into those kept from training. Ids stay sorted, so a new one moves
//!    the rows behind it.
//! 2. New items (and on request the known items with new ratings) are solved from all their
//!    ratings, the users held fixed as they were before. A user who is new as well counts with bias
//!    and factors zero, or what their features say, which is all the model knows of them yet.
//! 3. Users with new ratings are solved from all their ratings, the items held fixed as step 2 left
//!    them.
//!
//! So after the update each touched user is exactly where a solver of rows would put them. The mean
//! stays; the range that predictions are clipped to grows to the new ratings. Cost: the rows solved,
//! a copy of the kept ratings, and with known items one more look through them.

use super::{FactorVector, FoldIn, LatentFactors};
use crate::catalogue::History;
use gradus_base::{Error, Result, parallel};
use gradus_core::update::{Update, UpdateOptions, Updated};
use gradus_data::{Csr, Entity, Kept, Merged, Ratings};
use gradus_kernel::Rows;
use std::sync::Arc;

impl Update for LatentFactors {
    fn update(&mut self, events: &Ratings, how: &UpdateOptions) -> Result<Updated> {
        let history = self.history.as_ref().ok_or_else(|| {
            Error::data(
                "the model was fitted with keep_history = false: without the ratings of the \
                 training data none can be added; fit it again with keep_history",
            )
        })?;
        if let (FoldIn::Implicit(_), Some(event)) =
            (&self.fold_in, events.iter().find(|event| event.value < 0.0))
        {
            return Err(Error::data(format!(
                "new ratings: the value {} is negative; signs of interest are 0 or more",
                event.value
            )));
        }
        self.check_features(events)?;
        if events.is_empty() {
            return Ok(Updated { since_fit: self.added, ..Updated::default() });
        }
        let kept = Kept {
            users: &self.users,
            items: &self.items,
            ratings: &history.ratings,
            weights: history.weights.as_deref(),
        };
        let merged = Merged::new(kept, events, how.duplicates)?;
        let (new_users, new_items) =
            (merged.users.len() - self.users.len(), merged.items.len() - self.items.len());

        let mut rated_before = vec![false; self.items.len()];
        history.ratings.indices().iter().for_each(|&item| rated_before[item as usize] = true);

        // Nothing can fail from here on: a model whose items cannot be solved offers no update.
        // What was summed over all users for an earlier `fold_in_item` does not count the new ones.
        self.users_base.take();
        if new_users > 0 {
            self.user_bias = moved(&self.user_bias, &merged.user_places, merged.users.len());
            self.user_factors =
                moved_rows(&self.user_factors, &merged.user_places, merged.users.len());
        }
        if new_items > 0 {
            self.item_bias = moved(&self.item_bias, &merged.item_places, merged.items.len());
            self.item_factors =
                moved_rows(&self.item_factors, &merged.item_places, merged.items.len());
        }
        let places = (&merged.user_places[..], &merged.item_places[..]);
        let touched = [&merged.touched_users[..], &merged.touched_items[..]];
        self.move_features(events, (&merged.users, &merged.items), places, touched);
        // What the model knows of new users and items before their ratings.
        for (of, touched, places) in [
            (Entity::User, &merged.touched_users, &merged.user_places),
            (Entity::Item, &merged.touched_items, &merged.item_places),
        ] {
            let known: std::collections::HashSet<u32> = places.iter().copied().collect();
            for &row in touched.iter().filter(|row| !known.contains(row)) {
                let Some(prior) = self.prior(of, row as usize) else { continue };
                let (bias, factors) = self.at_prior(of, prior);
                let (of_rows, rows) = match of {
                    Entity::User => (&mut self.user_bias, &mut self.user_factors),
                    Entity::Item => (&mut self.item_bias, &mut self.item_factors),
                };
                of_rows[row as usize] = bias;
                rows.row_mut(row as usize).copy_from_slice(&factors);
            }
        }
        if let Some((low, high)) = &mut self.range {
            let (least, most) = super::range(events);
            (*low, *high) = (low.min(least), high.max(most));
        }

        let mut known = vec![false; merged.items.len()];
        merged.item_places.iter().for_each(|&place| known[place as usize] = true);
        // An item that was known by its features alone is as new as one that was not known at all.
        if self.side[Entity::Item as usize].is_some() {
            for (&place, rated) in merged.item_places.iter().zip(rated_before) {
                known[place as usize] = rated;
            }
        }
        let mut items = merged.touched_items.clone();
        items.retain(|&item| how.items || !known[item as usize]);
        let columns = columns(&merged, &items, how.items);
        let pairs = items.iter().zip(&columns);
        let solved: Vec<FactorVector> = parallel::try_map(pairs, |(&item, column)| {
            let prior = self.prior(Entity::Item, item as usize);
            self.solve_item(&column.users, &column.values, column.weights.as_deref(), prior)
        })?;
        for (&item, solved) in items.iter().zip(solved) {
            self.item_bias[item as usize] = solved.bias;
            self.item_factors.row_mut(item as usize).copy_from_slice(&solved.factors);
        }

        self.items_base.take();

        let (ratings, weights) = (&merged.ratings, merged.weights.as_deref());
        let solved: Vec<FactorVector> = parallel::map(&merged.touched_users, |&user| {
            let (items, values) = ratings.row(user as usize);
            let weights = weights.map(|weights| &weights[ratings.range(user as usize)]);
            self.solve_user(items, values, weights, self.prior(Entity::User, user as usize))
        });
        for (&user, solved) in merged.touched_users.iter().zip(solved) {
            self.user_bias[user as usize] = solved.bias;
            self.user_factors.row_mut(user as usize).copy_from_slice(&solved.factors);
        }

        self.users_base.take();
        self.added += events.len() as u64;
        let updated = Updated {
            events: events.len(),
            changed: merged.changed,
            users: merged.touched_users.len(),
            items: merged.touched_items.len(),
            new_users,
            new_items,
            rows_solved: merged.touched_users.len() + items.len(),
            since_fit: self.added,
        };
        (self.users, self.items) = (merged.users, merged.items);
        self.history = Some(History { ratings: Arc::new(merged.ratings), weights: merged.weights });
        Ok(updated)
    }
}

/// The ratings of one item.
#[derive(Default)]
struct Column {
    users: Vec<u32>,
    values: Vec<f32>,
    weights: Option<Vec<f32>>,
}

/// The ratings of some items, taken from the rows of all users, or, where only new items are asked
/// for, of the users with new ratings: nobody else can have rated them.
fn columns(merged: &Merged, items: &[u32], of_all: bool) -> Vec<Column> {
    const NONE: u32 = u32::MAX;
    let column =
        || Column { weights: merged.weights.as_ref().map(|_| Vec::new()), ..Column::default() };
    let mut columns: Vec<Column> = items.iter().map(|_| column()).collect();
    if items.is_empty() {
        return columns;
    }
    let mut places = vec![NONE; merged.items.len()];
    for (place, &item) in items.iter().enumerate() {
        places[item as usize] = place as u32;
    }
    let ratings: &Csr = &merged.ratings;
    let mut take = |user: usize| {
        for at in ratings.range(user) {
            let place = places[ratings.indices()[at] as usize];
            if place != NONE {
                let column = &mut columns[place as usize];
                column.users.push(user as u32);
                column.values.push(ratings.values()[at]);
                if let (Some(weights), Some(all)) = (&mut column.weights, &merged.weights) {
                    weights.push(all[at]);
                }
            }
        }
    };
    if of_all {
        (0..merged.users.len()).for_each(take);
    } else {
        merged.touched_users.iter().for_each(|&user| take(user as usize));
    }
    columns
}

fn moved(values: &[f32], places: &[u32], n: usize) -> Vec<f32> {
    let mut moved = vec![0.0; n];
    for (&value, &place) in values.iter().zip(places) {
        moved[place as usize] = value;
    }
    moved
}

fn moved_rows(rows: &Rows, places: &[u32], n: usize) -> Rows {
    let mut moved = Rows::zeros(n, rows.k());
    for (row, &place) in places.iter().enumerate() {
        moved.row_mut(place as usize).copy_from_slice(rows.row(row));
    }
    moved
}
