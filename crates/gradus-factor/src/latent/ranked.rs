//! Held-out signs of interest, and how well a model ranks them.

use gradus_core::data::{Csr, Ids, Ratings};
use gradus_core::kernel::{self, Level, Rows};
use gradus_core::random::Stream;
use gradus_core::recommend::{Scored, TopN};
use gradus_core::{Error, Result};
use gradus_select::metrics::ranking::ndcg;
use rayon::prelude::*;

/// How much of a ranking is judged.
pub(crate) const PLACES: usize = 20;
/// Users judged at most: the score of so many has a standard error of 0.002 or so, and judging
/// must not take longer than an iteration.
const MOST_USERS: usize = 20_000;
/// Users that share a pass over the items, and items scored at a time.
const USERS: usize = 16;
const ITEMS: usize = 256;

/// Held-out items of the users that training knows, in the indices of the training data.
pub(crate) struct Ranked<'a> {
    /// What was seen in training, and is not ranked.
    seen: &'a Csr,
    n_items: usize,
    /// Users with their held-out items, sorted. An item that training does not know has an index
    /// past the last: nobody can find it, but it should have been found.
    users: Vec<(u32, Vec<u32>)>,
    /// How many users there were to choose from.
    candidates: usize,
}

impl<'a> Ranked<'a> {
    pub(crate) fn new(held: &Ratings, data: &'a Ratings) -> Result<Self> {
        let map = |from: &Ids, to: &Ids| -> Vec<Option<u32>> {
            if from == to {
                (0..from.len() as u32).map(Some).collect()
            } else {
                from.iter().map(|id| to.find(id)).collect()
            }
        };
        let (known_users, known_items) =
            (map(held.users(), data.users()), map(held.items(), data.items()));
        let n_items = data.n_items();
        let mut users = Vec::new();
        for (row, user) in known_users.iter().enumerate() {
            let Some(user) = *user else { continue };
            let (items, values) = held.by_user().row(row);
            let weights = held.weights_by_user().map(|w| &w[held.by_user().range(row)]);
            let seen = data.by_user().row(user as usize).0;
            let mut relevant: Vec<u32> = (0..items.len())
                .filter(|&at| values[at] > 0.0 && weights.is_none_or(|w| w[at] > 0.0))
                .map(|at| known_items[items[at] as usize].unwrap_or(n_items as u32 + items[at]))
                .filter(|item| seen.binary_search(item).is_err())
                .collect();
            relevant.sort_unstable();
            if !relevant.is_empty() {
                users.push((user, relevant));
            }
        }
        if users.is_empty() {
            return Err(Error::data(
                "held-out ratings: there are none above 0 of a user that training knows and an item \
                 that the user has not had in training",
            ));
        }
        users.sort_unstable();
        let candidates = users.len();
        if candidates > MOST_USERS {
            let mut stream = Stream::new(0, "ranked.users", 0);
            let (mut wanted, mut left) = (MOST_USERS as u64, candidates as u64);
            users.retain(|_| {
                let chosen = stream.below(left) < wanted;
                wanted -= u64::from(chosen);
                left -= 1;
                chosen
            });
        }
        Ok(Self { seen: data.by_user(), n_items, users, candidates })
    }

    /// What is worth knowing about the score.
    pub(crate) fn note(&self) -> Option<String> {
        (self.users.len() < self.candidates).then(|| {
            format!(
                "the held-out score is taken over {} of {} users",
                self.users.len(),
                self.candidates
            )
        })
    }

    /// The mean NDCG@20 of the items ranked by `β_i + γ_u·γ_i`, without those seen in training.
    pub(crate) fn ndcg(&self, level: Level, users: &Rows, items: &Rows, bias: &[f32]) -> f64 {
        let stride = items.stride();
        self.mean(|block| {
            let mut factors = Vec::with_capacity(block.len() * stride);
            for (user, _) in block {
                factors.extend_from_slice(users.row(*user as usize));
            }
            let mut best: Vec<TopN> = block.iter().map(|_| TopN::new(PLACES)).collect();
            let mut scores = vec![0.0; block.len() * ITEMS];
            for (at, items) in items.as_slice().chunks(ITEMS * stride).enumerate() {
                let count = items.len() / stride;
                let scores = &mut scores[..block.len() * count];
                kernel::scores(level, users.k(), &factors, items, scores);
                for ((user, _), (best, scores)) in
                    block.iter().zip(best.iter_mut().zip(scores.chunks_exact(count)))
                {
                    let seen = self.seen.row(*user as usize).0;
                    for (item, product) in (at * ITEMS..).zip(scores) {
                        let score = product + bias[item];
                        if best.wants(score) && seen.binary_search(&(item as u32)).is_err() {
                            best.push(Scored { item: item as u32, score });
                        }
                    }
                }
            }
            let ranked =
                best.into_iter().map(|best| best.into_sorted().iter().map(|s| s.item).collect());
            ranked.collect()
        })
    }

    /// The mean NDCG@20 of one order of the items for all, best first.
    pub(crate) fn ndcg_of_order(&self, order: &[u32]) -> f64 {
        self.mean(|block| {
            let unseen = |user: u32| {
                let seen = self.seen.row(user as usize).0;
                order.iter().copied().filter(|item| seen.binary_search(item).is_err())
            };
            block.iter().map(|(user, _)| unseen(*user).take(PLACES).collect()).collect()
        })
    }

    /// The mean NDCG@20 of items in an order drawn for each user.
    pub(crate) fn ndcg_of_chance(&self) -> f64 {
        self.mean(|block| {
            let drawn = |user: u32| {
                let seen = self.seen.row(user as usize).0;
                let mut stream = Stream::new(0, "ranked.chance", u64::from(user));
                let mut items: Vec<u32> = Vec::with_capacity(PLACES);
                while items.len() < PLACES.min(self.n_items - seen.len()) {
                    let item = stream.below(self.n_items as u64) as u32;
                    if !items.contains(&item) && seen.binary_search(&item).is_err() {
                        items.push(item);
                    }
                }
                items
            };
            block.iter().map(|(user, _)| drawn(*user)).collect()
        })
    }

    /// The mean over all users, block by block in order.
    fn mean(&self, rank: impl Fn(&[(u32, Vec<u32>)]) -> Vec<Vec<u32>> + Sync) -> f64 {
        let sums: Vec<f64> = self
            .users
            .par_chunks(USERS)
            .map(|block| {
                let ranked = rank(block);
                block
                    .iter()
                    .zip(&ranked)
                    .fold(0.0, |sum, ((_, held), ranked)| sum + ndcg(ranked, held, PLACES))
            })
            .collect();
        sums.iter().fold(0.0, |sum, part| sum + part) / self.users.len() as f64
    }
}
