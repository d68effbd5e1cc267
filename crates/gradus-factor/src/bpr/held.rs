//! Held-out choices, and how well they are ranked.

use gradus_core::data::{Csr, Ratings};
use gradus_core::kernel::{self, Level, Rows};
use gradus_core::random::Stream;
use gradus_core::recommend::{Scored, TopN};
use gradus_core::report::Baseline;
use gradus_core::{Error, Result};
use gradus_select::metrics::ranking::ndcg;
use rayon::prelude::*;

/// The length of the list that is judged.
const LENGTH: usize = 20;
/// Users that share a pass over the items, and items scored at once.
const USERS: usize = 16;
const ITEMS: usize = 256;

/// For each user with held-out items that training knows: those items, sorted.
pub(super) struct Held<'a> {
    train: &'a Csr,
    users: Vec<(u32, Vec<u32>)>,
}

impl<'a> Held<'a> {
    pub(super) fn new(held: &Ratings, data: &'a Ratings) -> Result<Self> {
        let items: Vec<Option<u32>> = held.items().iter().map(|id| data.items().find(id)).collect();
        let mut users: Vec<(u32, Vec<u32>)> = Vec::new();
        for row in 0..held.n_users() {
            let Some(user) = data.users().find(held.users().get(row)) else { continue };
            let train = data.by_user().row(user as usize).0;
            let (indices, values) = held.by_user().row(row);
            let mut found: Vec<u32> = indices
                .iter()
                .zip(values)
                .filter(|(_, value)| **value > 0.0)
                .filter_map(|(&item, _)| items[item as usize])
                .filter(|item| train.binary_search(item).is_err())
                .collect();
            found.sort_unstable();
            if !found.is_empty() {
                users.push((user, found));
            }
        }
        if users.is_empty() {
            return Err(Error::data(
                "held-out data: no user of the training has an item there that is new to them and \
                 known to the training",
            ));
        }
        Ok(Self { train: data.by_user(), users })
    }

    /// Mean NDCG@20 over the users of the items ranked by `β_i + γ_u·γ_i`.
    pub(super) fn ndcg(
        &self,
        level: Level,
        user_row: impl Fn(u32) -> usize + Sync,
        users: &Rows,
        items: &Rows,
        bias: &[f32],
    ) -> f64 {
        let stride = items.stride();
        let blocks: Vec<f64> = self
            .users
            .par_chunks(USERS)
            .map(|block| {
                let factors: Vec<f32> = block
                    .iter()
                    .flat_map(|(user, _)| users.row(user_row(*user)).iter().copied())
                    .collect();
                let mut best: Vec<TopN> = block.iter().map(|_| TopN::new(LENGTH)).collect();
                let mut scores = vec![0.0; block.len() * ITEMS];
                for (at, rows) in items.as_slice().chunks(ITEMS * stride).enumerate() {
                    let (first, count) = (at * ITEMS, rows.len() / stride);
                    let scores = &mut scores[..block.len() * count];
                    kernel::scores(level, items.k(), &factors, rows, scores);
                    let lists = block.iter().zip(&mut best).zip(scores.chunks_exact(count));
                    for (((user, _), best), scores) in lists {
                        let seen = self.train.row(*user as usize).0;
                        let all = (first..).zip(scores.iter().zip(&bias[first..]));
                        for (item, (product, bias)) in all {
                            let scored = Scored { item: item as u32, score: product + bias };
                            if best.wants(scored.score) && seen.binary_search(&scored.item).is_err()
                            {
                                best.push(scored);
                            }
                        }
                    }
                }
                let gains = block.iter().zip(best).map(|((_, relevant), best)| {
                    let ranked: Vec<u32> = best.into_sorted().iter().map(|s| s.item).collect();
                    ndcg(&ranked, relevant, LENGTH)
                });
                gains.sum()
            })
            .collect();
        blocks.iter().sum::<f64>() / self.users.len() as f64
    }

    /// Mean NDCG@20 of one list for all, each user's training items left out.
    fn ndcg_of_list(&self, list: impl Fn(u32) -> Vec<u32> + Sync) -> f64 {
        let gains: Vec<f64> = self
            .users
            .par_iter()
            .map(|(user, relevant)| {
                let seen = self.train.row(*user as usize).0;
                let ranked: Vec<u32> = list(*user)
                    .into_iter()
                    .filter(|item| seen.binary_search(item).is_err())
                    .take(LENGTH)
                    .collect();
                ndcg(&ranked, relevant, LENGTH)
            })
            .collect();
        gains.iter().sum::<f64>() / gains.len() as f64
    }

    /// What has to be beaten: items in random order, and the most popular first.
    pub(super) fn baselines(&self, data: &Ratings, seed: u64) -> Vec<Baseline> {
        let n_items = data.n_items();
        let random = |user: u32| {
            let mut stream = Stream::new(seed, "baseline.random", u64::from(user));
            let seen = self.train.row(user as usize).0.len();
            // So many that a full list is left when the seen are taken out.
            let n = (LENGTH + seen).min(n_items);
            let mut chosen: Vec<u32> = Vec::with_capacity(n);
            while chosen.len() < n && chosen.len() < 4 * LENGTH {
                let item = stream.index(n_items) as u32;
                if !chosen.contains(&item) {
                    chosen.push(item);
                }
            }
            chosen
        };
        let by_item = data.by_item();
        let mut popular: Vec<u32> = (0..n_items as u32).collect();
        popular.sort_by_key(|&item| std::cmp::Reverse(by_item.range(item as usize).len()));
        let longest = self.users.iter().map(|(u, _)| self.train.row(*u as usize).0.len()).max();
        popular.truncate(LENGTH + longest.unwrap_or(0));
        vec![
            Baseline { name: "random order".into(), score: self.ndcg_of_list(random) },
            Baseline { name: "most popular".into(), score: self.ndcg_of_list(|_| popular.clone()) },
        ]
    }
}
