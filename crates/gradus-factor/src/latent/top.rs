//! The best items for a user, the best users for an item, and the rows most similar to another.

use super::{Affine, LatentFactors};
use gradus_base::{Error, Result};
use gradus_core::recommend::{Filter, Recipient, Recommend as _, Scored, Shortlist, TopN};
use gradus_kernel::Rows;
use std::fmt::Display;

/// Items are scored in blocks of this many: their factors and the scores stay in the nearest caches.
const ITEMS: usize = 256;

/// A user to recommend to: the constant part of all scores, and the items to leave out, sorted.
pub(super) struct Query<'a> {
    pub(super) constant: f32,
    pub(super) normal: Affine,
    pub(super) seen: &'a [u32],
}

impl LatentFactors {
    pub(super) fn top_items(
        &self,
        target: &Recipient<'_>,
        n: usize,
        filter: &Filter,
    ) -> Result<Vec<Scored>> {
        let (vector, seen) = self.query_vector(target)?;
        let seen = filter.unseen(seen.as_deref())?;
        let allowed = filter.allowed(self.items.len(), self.history())?;
        let constant = self.mean as f32 + vector.bias;
        let query = Query { constant, normal: vector.normal, seen };
        let mut found = self.top_block(&vector.factors, &[query], n, filter, allowed.as_deref());
        Ok(found.pop().unwrap_or_default())
    }

    /// The prediction for every user and an item, before clipping.
    pub(super) fn scores_of_users(&self, item: usize) -> Vec<f32> {
        let mut scores = vec![0.0; self.users.len()];
        let (users, row) = (self.user_factors.as_slice(), self.item_factors.row(item));
        gradus_kernel::scores(self.level, self.rank(), row, users, &mut scores);
        for (score, bias) in scores.iter_mut().zip(&self.user_bias) {
            // The same order of additions as in `score`.
            *score += self.mean as f32 + bias + self.item_bias[item];
        }
        for (user, score) in scores.iter_mut().enumerate() {
            let x = self.undone(self.user_normal(user as u32), item as u32, *score);
            *score = self.link.predict(x);
        }
        scores
    }

    /// The best items of a few users who share a pass over all of them.
    pub(super) fn top_block(
        &self,
        factors: &[f32],
        queries: &[Query<'_>],
        n: usize,
        filter: &Filter,
        allowed: Option<&[bool]>,
    ) -> Vec<Vec<Scored>> {
        let stride = self.item_factors.stride();
        let limits = filter.categories.as_ref();
        let mut best: Vec<_> = queries.iter().map(|_| Shortlist::new(n, limits)).collect();
        let mut scores = vec![0.0; queries.len() * ITEMS];
        for (block, items) in self.item_factors.as_slice().chunks(ITEMS * stride).enumerate() {
            let first = block * ITEMS;
            let count = items.len() / stride;
            let scores = &mut scores[..queries.len() * count];
            gradus_kernel::scores(self.level, self.rank(), factors, items, scores);
            let biases = &self.item_bias[first..first + count];
            for ((query, best), scores) in
                queries.iter().zip(&mut best).zip(scores.chunks_exact(count))
            {
                for (at, (&product, &bias)) in scores.iter().zip(biases).enumerate() {
                    // The same order of additions as in `score`.
                    let x = query.constant + bias + product;
                    let item = (first + at) as u32;
                    let score = self.undone(query.normal, item, x);
                    if best.wants(score) {
                        let free = allowed.is_none_or(|allowed| allowed[item as usize]);
                        if free && query.seen.binary_search(&item).is_err() {
                            best.push(Scored { item, score });
                        }
                    }
                }
            }
        }
        best.into_iter().map(|best| self.finished(best)).collect()
    }

    /// The list, with predictions for scores.
    pub(super) fn finished(&self, best: Shortlist<'_>) -> Vec<Scored> {
        let mut best = best.into_sorted();
        for scored in &mut best {
            scored.score = self.link.predict(scored.score);
        }
        best
    }

    /// The rows most like one of them by cosine, without itself; `what` is the row's name where it
    /// is zero and like none.
    pub(super) fn nearest(
        &self,
        rows: &Rows,
        row: usize,
        n: usize,
        what: impl Display,
    ) -> Result<Vec<Scored>> {
        let own = rows.row(row);
        let norm = gradus_kernel::dot(self.level, own, own).sqrt();
        if norm == 0.0 {
            return Err(Error::data(format!("{what} has no factors to compare (too few ratings)")));
        }
        let mut scores = vec![0.0; rows.n_rows()];
        gradus_kernel::scores(self.level, self.rank(), own, rows.as_slice(), &mut scores);
        let mut best = TopN::new(n);
        for (other, &product) in scores.iter().enumerate() {
            let factors = rows.row(other);
            let other_norm = gradus_kernel::dot(self.level, factors, factors).sqrt();
            if other == row || other_norm == 0.0 {
                continue;
            }
            let score = (product / (norm * other_norm)).clamp(-1.0, 1.0);
            if best.wants(score) {
                best.push(Scored { item: other as u32, score });
            }
        }
        Ok(best.into_sorted())
    }
}
