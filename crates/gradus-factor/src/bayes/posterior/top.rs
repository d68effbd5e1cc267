//! The best items for a user, and the items most similar to another.

use super::Posterior;
use gradus_base::{Result, parallel};
use gradus_core::recommend::{Filter, Recipient, Recommend as _, Scored, TopN};
use gradus_kernel::padded;

/// Items widened to single precision at a time: they stay in the second cache.
const ITEMS: usize = 16;

impl Posterior {
    pub(super) fn top_items(
        &self,
        target: &Recipient<'_>,
        n: usize,
        filter: &Filter,
    ) -> Result<Vec<Scored>> {
        let (vector, seen) = self.query_vector(target)?;
        let seen = filter.unseen(seen.as_deref())?;
        let allowed = filter.allowed(self.items.len(), self.history())?;
        let mut scores = self.products(&vector, |_| ());
        scores.iter_mut().for_each(|score| *score = self.rating(*score));
        Ok(filter.best(n, &scores, allowed.as_deref(), seen))
    }

    /// The dot product of a vector with every item, each changed by `edit` before.
    fn products(&self, vector: &[f32], edit: impl Fn(&mut [f32]) + Sync) -> Vec<f32> {
        let stride = padded(self.wide());
        let mut products = vec![0.0; self.items.len()];
        let (blocks, wide) = (products.chunks_mut(ITEMS).enumerate(), || vec![0.0; ITEMS * stride]);
        parallel::each_with(blocks, wide, |wide, (block, products)| {
            let wide = &mut wide[..products.len() * stride];
            for (at, item) in wide.chunks_exact_mut(stride).enumerate() {
                self.widen_item(Some(block * ITEMS + at), item);
                edit(item);
            }
            gradus_kernel::scores(self.level, self.wide(), vector, wide, products);
        });
        products
    }

    /// Cosine of the factors of all draws side by side: a draw's axes mean the same for all items
    /// but nothing to another draw, and so each is compared with its own kind.
    pub(super) fn nearest_items(&self, item: usize, n: usize) -> Vec<Scored> {
        let step = self.rank + 2;
        let without_bias = |vector: &mut [f32]| {
            for draw in vector.chunks_exact_mut(step) {
                draw[self.rank..].fill(0.0);
            }
        };
        let normed = |vector: &mut [f32]| {
            without_bias(vector);
            let norm = gradus_kernel::dot(self.level, vector, vector).sqrt();
            if norm > 0.0 {
                vector.iter_mut().for_each(|x| *x /= norm);
            }
        };
        let mut own = vec![0.0; padded(self.wide())];
        self.widen_item(Some(item), &mut own);
        normed(&mut own);
        let mut best = TopN::new(n);
        for (other, product) in (0..).zip(self.products(&own, normed)) {
            let score = product.clamp(-1.0, 1.0);
            if other as usize != item && best.wants(score) {
                best.push(Scored { item: other, score });
            }
        }
        best.into_sorted()
    }
}
