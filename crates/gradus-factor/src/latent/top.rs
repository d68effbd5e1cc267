//! The best items for someone, and the items most like another.

use super::{Affine, LatentFactors};
use crate::catalogue;
use gradus_core::kernel;
use gradus_core::recommend::{Filter, Scored, Target, TopN};
use gradus_core::{Error, Result};
use rayon::prelude::*;

/// Items are scored in blocks of so many: their factors and the scores stay in the nearest caches.
const ITEMS: usize = 256;
/// Users that share a pass over the items.
const USERS: usize = 8;

/// Someone to recommend to: factors and the items to leave out, sorted.
struct Seeker<'a> {
    constant: f32,
    normal: Affine,
    seen: &'a [u32],
}

impl LatentFactors {
    pub(super) fn top_items(
        &self,
        target: &Target<'_>,
        n: usize,
        filter: &Filter,
    ) -> Result<Vec<Scored>> {
        let (person, seen) = self.person(target)?;
        let seen = catalogue::left_out(seen.as_deref(), filter)?;
        let allowed = catalogue::allowed(filter, self.items_len())?;
        let constant = self.mean as f32 + person.bias;
        let seeker = Seeker { constant, normal: person.normal, seen };
        let mut found = self.top_block(&person.factors, &[seeker], n, &allowed);
        Ok(found.pop().unwrap_or_default())
    }

    /// The best `n` items for each of many users, in parallel and exactly; users share passes over
    /// the items. The result is the same as that of [`top`](gradus_core::recommend::Recommend::top)
    /// for each.
    pub fn top_many(&self, users: &[u32], n: usize, filter: &Filter) -> Result<Vec<Vec<Scored>>> {
        for &user in users {
            self.user_row(user)?;
        }
        let seen = |user: u32| {
            let seen = self.history.as_ref().map(|h| h.ratings.row(user as usize).0);
            catalogue::left_out(seen, filter)
        };
        let allowed = catalogue::allowed(filter, self.items_len())?;
        let blocks: Result<Vec<_>> = users
            .par_chunks(USERS)
            .map(|block| {
                let mut factors = Vec::with_capacity(block.len() * self.user_factors.stride());
                let mut seekers = Vec::with_capacity(block.len());
                for &user in block {
                    factors.extend_from_slice(self.user_factors.row(user as usize));
                    let constant = self.mean as f32 + self.user_bias[user as usize];
                    let normal = self.user_normal(user);
                    seekers.push(Seeker { constant, normal, seen: seen(user)? });
                }
                Ok(self.top_block(&factors, &seekers, n, &allowed))
            })
            .collect();
        Ok(blocks?.into_iter().flatten().collect())
    }

    fn items_len(&self) -> usize {
        self.item_bias.len()
    }

    fn top_block(
        &self,
        factors: &[f32],
        seekers: &[Seeker<'_>],
        n: usize,
        allowed: &Option<Vec<bool>>,
    ) -> Vec<Vec<Scored>> {
        let stride = self.item_factors.stride();
        let mut best: Vec<TopN> = seekers.iter().map(|_| TopN::new(n)).collect();
        let mut scores = vec![0.0; seekers.len() * ITEMS];
        for (block, items) in self.item_factors.as_slice().chunks(ITEMS * stride).enumerate() {
            let first = block * ITEMS;
            let count = items.len() / stride;
            let scores = &mut scores[..seekers.len() * count];
            kernel::scores(self.level, self.rank(), factors, items, scores);
            let biases = &self.item_bias[first..first + count];
            for ((seeker, best), scores) in
                seekers.iter().zip(&mut best).zip(scores.chunks_exact(count))
            {
                for (at, (&product, &bias)) in scores.iter().zip(biases).enumerate() {
                    // The same order of additions as in `score`.
                    let x = seeker.constant + bias + product;
                    let score = self.undone(seeker.normal, (first + at) as u32, x);
                    if best.wants(score) {
                        let item = (first + at) as u32;
                        let free = allowed.as_ref().is_none_or(|allowed| allowed[item as usize]);
                        if free && seeker.seen.binary_search(&item).is_err() {
                            best.push(Scored { item, score });
                        }
                    }
                }
            }
        }
        let mut best: Vec<Vec<Scored>> = best.into_iter().map(TopN::into_sorted).collect();
        for scored in best.iter_mut().flatten() {
            scored.score = self.link.predict(scored.score);
        }
        best
    }

    pub(super) fn nearest_items(&self, item: usize, n: usize) -> Result<Vec<Scored>> {
        let stride = self.item_factors.stride();
        let row = self.item_factors.row(item);
        let norm = kernel::dot(self.level, row, row).sqrt();
        if norm == 0.0 {
            return Err(Error::data(format!(
                "item `{}` has no factors to compare (too few ratings)",
                self.items.get(item)
            )));
        }
        let mut scores = vec![0.0; self.items_len()];
        kernel::scores(self.level, self.rank(), row, self.item_factors.as_slice(), &mut scores);
        let mut best = TopN::new(n);
        for (other, (factors, &product)) in
            self.item_factors.as_slice().chunks_exact(stride).zip(&scores).enumerate()
        {
            let other_norm = kernel::dot(self.level, factors, factors).sqrt();
            if other == item || other_norm == 0.0 {
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
