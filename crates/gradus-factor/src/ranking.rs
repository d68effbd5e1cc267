//! Held-out items, and how well a model ranks them: how models of implicit feedback are judged.

use gradus_core::data::{Csr, Ids, Ratings};
use gradus_core::kernel::{self, Level, Rows};
use gradus_core::random::Stream;
use gradus_core::recommend::{Filter, Scored, TopN};
use gradus_core::report::Baseline;
use gradus_core::{Error, Result};
use gradus_select::metrics::ranking::ndcg;
use rayon::prelude::*;
use std::sync::Arc;

/// The length of the list that is judged.
pub(crate) const PLACES: usize = 20;
/// What the score is called.
pub(crate) const METRIC: &str = "ndcg@20";

/// Users judged at most: the score of so many has a standard error of 0.002 or so, and judging
/// must not take longer than an iteration.
const MOST_USERS: usize = 20_000;
/// Users that share a pass over the factors of the items, and items scored at a time.
const USERS: usize = 16;
const ITEMS: usize = 256;

/// The held-out items of each user who has any that training knows but did not show them.
pub(crate) struct HeldItems {
    users: Vec<(u32, Vec<u32>)>,
    seen: Arc<Csr>,
    /// How many users there were to choose from.
    candidates: usize,
}

impl HeldItems {
    pub(crate) fn new(held: &Ratings, data: &Ratings) -> Result<Self> {
        let map = |from: &Ids, to: &Ids| -> Vec<Option<u32>> {
            if from == to {
                (0..from.len() as u32).map(Some).collect()
            } else {
                from.iter().map(|id| to.find(id)).collect()
            }
        };
        let (user_of, item_of) = (map(held.users(), data.users()), map(held.items(), data.items()));
        let mut users = Vec::new();
        for (row, user) in user_of.into_iter().enumerate() {
            let Some(user) = user else { continue };
            let seen = data.by_user().row(user as usize).0;
            let mut relevant: Vec<u32> = held
                .by_user()
                .range(row)
                .filter(|&at| held.by_user().values()[at] > 0.0)
                .filter(|&at| held.weights_by_user().is_none_or(|weights| weights[at] > 0.0))
                .filter_map(|at| item_of[held.by_user().indices()[at] as usize])
                .filter(|item| seen.binary_search(item).is_err())
                .collect();
            relevant.sort_unstable();
            if !relevant.is_empty() {
                users.push((user, relevant));
            }
        }
        if users.is_empty() {
            return Err(Error::data(
                "held-out ratings: there are none above 0 of a user and an item that training knows \
                 and has not paired already",
            ));
        }
        users.sort_unstable_by_key(|(user, _)| *user);
        let candidates = users.len();
        if candidates > MOST_USERS {
            let mut stream = Stream::new(0, "ranking.users", 0);
            let (mut wanted, mut left) = (MOST_USERS as u64, candidates as u64);
            users.retain(|_| {
                let chosen = stream.below(left) < wanted;
                wanted -= u64::from(chosen);
                left -= 1;
                chosen
            });
        }
        Ok(Self { users, seen: data.by_user_shared(), candidates })
    }

    /// What is worth knowing about the score.
    pub(crate) fn note(&self) -> Option<String> {
        let (judged, all) = (self.users.len(), self.candidates);
        (judged < all).then(|| format!("the held-out score is taken over {judged} of {all} users"))
    }

    /// The mean NDCG of items ranked by `β_i + γ_u·γ_i`; the factors of user `u` are in row
    /// `place(u)`.
    pub(crate) fn ndcg_of_factors(
        &self,
        level: Level,
        (users, place): (&Rows, impl Fn(u32) -> usize + Sync),
        (items, bias): (&Rows, &[f32]),
    ) -> f64 {
        let stride = items.stride();
        let sums: Vec<f64> = self
            .users
            .par_chunks(USERS)
            .map(|block| {
                let rows = block.iter().flat_map(|(user, _)| users.row(place(*user)));
                let factors: Vec<f32> = rows.copied().collect();
                let mut best: Vec<TopN> = block.iter().map(|_| TopN::new(PLACES)).collect();
                let mut scores = vec![0.0; block.len() * ITEMS];
                for (at, rows) in items.as_slice().chunks(ITEMS * stride).enumerate() {
                    let (first, count) = (at * ITEMS, rows.len() / stride);
                    let scores = &mut scores[..block.len() * count];
                    kernel::scores(level, items.k(), &factors, rows, scores);
                    let lists = block.iter().zip(&mut best).zip(scores.chunks_exact(count));
                    for (((user, _), best), scores) in lists {
                        let seen = self.seen.row(*user as usize).0;
                        for (item, (product, bias)) in
                            (first..).zip(scores.iter().zip(&bias[first..]))
                        {
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
                    ndcg(&ranked, relevant, PLACES)
                });
                gains.sum()
            })
            .collect();
        sums.iter().sum::<f64>() / self.users.len() as f64
    }

    /// The mean NDCG over the users; `score` fills in the scores of all items for a user.
    pub(crate) fn ndcg(&self, score: impl Fn(usize, &mut [f32]) + Sync) -> f64 {
        self.ndcg_in_blocks(1, |users, scores| score(users[0] as usize, scores))
    }

    /// The same, with the scores of up to `block` users filled in at once: a row of all items for
    /// each.
    pub(crate) fn ndcg_in_blocks(
        &self,
        block: usize,
        score: impl Fn(&[u32], &mut [f32]) + Sync,
    ) -> f64 {
        let n_items = self.seen.n_cols();
        let each: Vec<Vec<f64>> = self
            .users
            .par_chunks(block)
            .map_init(
                || vec![0.0; n_items * block],
                |scores, block| {
                    let users: Vec<u32> = block.iter().map(|(user, _)| *user).collect();
                    let scores = &mut scores[..n_items * block.len()];
                    score(&users, scores);
                    let rows = block.iter().zip(scores.chunks_exact(n_items));
                    rows.map(|((user, relevant), scores)| {
                        let seen = self.seen.row(*user as usize).0;
                        let best = Filter::default().best(PLACES, scores, None, seen);
                        let ranked: Vec<u32> = best.iter().map(|scored| scored.item).collect();
                        ndcg(&ranked, relevant, PLACES)
                    })
                    .collect()
                },
            )
            .collect();
        each.iter().flatten().sum::<f64>() / self.users.len() as f64
    }

    /// What a list in random order gets on average.
    fn by_chance(&self) -> f64 {
        let gain = |places: usize| -> f64 {
            (0..places).map(|place| 1.0 / (place as f64 + 2.0).log2()).sum()
        };
        let each = self.users.iter().map(|(user, relevant)| {
            let unseen = self.seen.n_cols() - self.seen.range(*user as usize).len();
            let hit = relevant.len() as f64 / unseen as f64;
            hit * gain(unseen.min(PLACES)) / gain(relevant.len().min(PLACES))
        });
        each.sum::<f64>() / self.users.len() as f64
    }

    /// What a model has to beat: chance and popularity.
    pub(crate) fn baselines(&self, data: &Ratings) -> Vec<Baseline> {
        let counts = crate::baseline::popularity(data);
        vec![
            Baseline { name: "random order".into(), score: self.by_chance() },
            Baseline {
                name: "most popular".into(),
                score: self.ndcg(|_, scores| scores.copy_from_slice(&counts)),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_core::data::Id;
    use gradus_core::data::make::RatingsSpec;

    #[test]
    fn chance_is_the_mean_over_many_random_orders() {
        let data = RatingsSpec::new(40, 60, 800).make(1).unwrap().ratings;
        let (train, held) = data.partition(|at| at % 4 != 0);
        let held = HeldItems::new(&held, &train).unwrap();
        let rounds = 300;
        let mean: f64 = (0..rounds)
            .map(|round| {
                held.ndcg(|user, scores| {
                    let mut stream =
                        gradus_core::random::Stream::new(round, "test.order", user as u64);
                    scores.fill_with(|| stream.uniform() as f32);
                })
            })
            .sum::<f64>()
            / rounds as f64;
        assert!((mean / held.by_chance() - 1.0).abs() < 0.02, "{mean} {}", held.by_chance());
    }

    #[test]
    fn only_new_pairs_of_known_users_and_items_count() {
        let of = |rows: &[(i64, i64)]| {
            Ratings::from_triplets(rows.iter().map(|&(u, i)| (Id::Int(u), Id::Int(i), 1.0)))
                .unwrap()
        };
        let train = of(&[(1, 10), (1, 11), (2, 12), (3, 13)]);
        // Seen, unknown item, unknown user: nothing is left but (2, 10).
        let held = of(&[(1, 10), (1, 99), (9, 10), (2, 10)]);
        let judge = HeldItems::new(&held, &train).unwrap();
        assert_eq!(judge.users, [(1, vec![0])]);
        assert_eq!(judge.ndcg(|_, scores| scores.copy_from_slice(&[1.0, 0.0, 9.0, 0.0])), 1.0);
        let second = judge.ndcg(|_, scores| scores.copy_from_slice(&[1.0, 0.0, 9.0, 2.0]));
        assert_eq!(second, 1.0 / 3f64.log2());
        assert!(HeldItems::new(&of(&[(1, 10)]), &train).is_err());
    }
}
