//! Features brought into the order of the users and items of ratings.

use super::{Entity, Features, SideTable};
use crate::merge::Union;
use crate::{Csr, Ids, Ratings, builder};
use gradus_base::{Error, Result};
use std::sync::Arc;

impl Ratings {
    /// The same ratings with the features of users or of items. Ids that only the table has are added: users
    /// (items) without a rating, of whom a model knows what their features say. Ids of the ratings that the
    /// table lacks have no features, and count as average.
    ///
    /// # Errors
    /// If no id of the table is one of the ratings.
    pub fn with_features(self, of: Entity, table: &SideTable) -> Result<Self> {
        let ids = match of {
            Entity::User => self.users(),
            Entity::Item => self.items(),
        };
        if !self.is_empty() && !table.ids().iter().any(|id| ids.find(id).is_some()) {
            let shown = |ids: &Ids| {
                let some: Vec<String> = ids.iter().take(3).map(|id| format!("`{id}`")).collect();
                format!("{}{}", some.join(", "), if ids.len() > 3 { ", …" } else { "" })
            };
            return Err(Error::data(format!(
                "option `{}`: none of the {} ids of the table ({}) is {} {} of the ratings ({}): is it the \
                 right column of ids?",
                of.option(),
                table.ids().len(),
                shown(table.ids()),
                if of == Entity::User { "a" } else { "an" },
                of.name(),
                shown(ids)
            )));
        }
        let all: Vec<usize> = (0..table.ids().len()).collect();
        let union = Union::new(ids, table.ids(), &all)?;
        let n = union.ids.len();
        let none = Features {
            matrix: Csr::from_trusted(table.features().n_cols(), vec![0], Vec::new(), Vec::new()),
            known: Vec::new(),
            encoder: Arc::clone(table.encoder()),
        };
        let own = Features {
            matrix: table.features().clone(),
            known: vec![true; table.ids().len()],
            encoder: Arc::clone(table.encoder()),
        };
        let features = Arc::new(none.merged(n, &[], Some((&own, &union.new))));
        let same = n == ids.len();
        let mut ratings = if same { self } else { self.moved(of, union) };
        ratings.features[of as usize] = Some(features);
        Ok(ratings)
    }

    /// The features of the users or of the items, if there are any.
    pub fn features(&self, of: Entity) -> Option<&Arc<Features>> {
        self.features[of as usize].as_ref()
    }

    /// Whether users or items have features.
    pub fn has_features(&self) -> bool {
        self.features.iter().any(Option::is_some)
    }

    /// The same ratings without features.
    pub fn without_features(&self) -> Self {
        let mut plain = self.clone();
        plain.features = [None, None];
        plain
    }

    /// The same ratings with features that are in their order already.
    ///
    /// # Errors
    /// If there are not as many rows of features as users (items).
    pub fn with_aligned_features(mut self, of: Entity, features: Arc<Features>) -> Result<Self> {
        let n = match of {
            Entity::User => self.n_users(),
            Entity::Item => self.n_items(),
        };
        if features.known.len() != n {
            return Err(Error::Shape {
                what: format!("{} features", of.name()),
                expected: format!("{n} rows"),
                got: format!("{} rows", features.known.len()),
            });
        }
        self.features[of as usize] = Some(features);
        Ok(self)
    }

    /// The same ratings over more users or items.
    fn moved(&self, of: Entity, union: Union) -> Self {
        let n = union.ids.len();
        let ids = Arc::new(union.ids);
        let (users, items) = match of {
            Entity::User => (ids, self.items_shared()),
            Entity::Item => (self.users_shared(), ids),
        };
        // For each new user the old one, and for each old item the new one.
        let mut rows: Vec<Option<usize>> = (0..self.n_users()).map(Some).collect();
        let mut columns: Vec<u32> = (0..self.n_items() as u32).collect();
        match of {
            Entity::User => {
                rows = vec![None; n];
                for (old, &new) in union.known.iter().enumerate() {
                    rows[new as usize] = Some(old);
                }
            }
            Entity::Item => columns.clone_from(&union.known),
        }
        let by_user = self.by_user();
        let (mut indptr, mut order) = (vec![0], Vec::with_capacity(self.len()));
        for row in &rows {
            if let Some(row) = row {
                let start = order.len();
                order.extend(by_user.range(*row));
                let column = |at: &usize| columns[by_user.indices()[*at] as usize];
                // Only where the order of the ids has changed from that of integers to that of text.
                if !order[start..].is_sorted_by_key(column) {
                    order[start..].sort_unstable_by_key(column);
                }
            }
            indptr.push(order.len());
        }
        let indices = order.iter().map(|&at| columns[by_user.indices()[at] as usize]).collect();
        let values = order.iter().map(|&at| by_user.values()[at]).collect();
        let moved = Csr::from_trusted(items.len(), indptr, indices, values);
        let take = |weights: &[f32]| order.iter().map(|&at| weights[at]).collect::<Vec<f32>>();
        let weights = self.weights_by_user().map(take);
        let (by_item, of_items) = builder::transpose(&moved, weights.as_deref());
        let times = self.times().map(|times| order.iter().map(|&at| times[at]).collect());
        let mut ratings =
            Self::from_parts(users, items, moved, by_item, weights.zip(of_items), times);
        ratings.features.clone_from(&self.features);
        ratings
    }
}
