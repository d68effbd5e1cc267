//! The ranking of held-out items: how models of implicit feedback are evaluated.
//!
//! The protocol is that of [`gradus_select::evaluate_ranking`], so that the validation score of a
//! fit, the score of a search and that of an evaluation on the same data are the same number:
//!
//! - relevant is a held-out rating with a value and a weight above 0;
//! - users and items without a rating in training are left out: such an item is neither relevant
//!   nor ranked; unless the model learns from features of users (items), by which it knows them;
//! - what a user has in training is neither relevant nor ranked;
//! - of equal scores the irrelevant item is ranked first.

use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::recommend::{Scored, TopN};
use gradus_core::report::Baseline;
use gradus_data::{Csr, Entity, Ids, Ratings};
use gradus_kernel::{Level, Rows};
use gradus_metrics::ranking::ndcg;
use std::sync::Arc;

/// The length of the list that is evaluated.
pub(crate) const PLACES: usize = 20;
/// The name of the score.
pub(crate) const METRIC: &str = "ndcg@20";

/// Iterations are compared on a sample of the users: a pass over all of them takes several times
/// as long as an iteration where items are many. The sample is so large that its scores take about
/// a quarter of the multiplications of a least squares iteration at rank 64, `pairs scored = 32 ·
/// ratings`, and never smaller than this: the differences between iterations, on the same users,
/// are then known to about 0.002.
const LEAST_SAMPLE: usize = 1000;
const PAIRS_PER_RATING: usize = 32;
/// Seed of that sample. It is not that of the fit, so that fits with different seeds are compared
/// on the same users.
const SAMPLE_SEED: u64 = 0;
/// Users that share a pass over the factors of the items, and items scored at a time.
const USERS: usize = 16;
const ITEMS: usize = 256;
/// Items of which only the largest score is looked at first.
const STRIDE: usize = 64;
/// Marks a relevant item in a list: [`TopN`] gives ties to the smaller index, which puts the
/// irrelevant first.
const RELEVANT: u32 = 1 << 31;

/// A user and the held-out items relevant to them, ascending.
type Case = (u32, Vec<u32>);

/// The users over which a score is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The sample that iterations are compared on.
    Sample,
    /// All of them.
    All,
}

/// The held-out items of each user: items that training knows, but not as items of this user.
pub(crate) struct HeldOutItems {
    users: Vec<Case>,
    /// The users of the sample, if it is smaller.
    sample: Option<Vec<Case>>,
    seen: Arc<Csr>,
    /// Whether each item has a rating in training, or features.
    trained: Vec<bool>,
    n_trained: usize,
}

impl HeldOutItems {
    pub(crate) fn new(held_out: &Ratings, data: &Ratings) -> Result<Self> {
        let map = |from: &Ids, to: &Ids| -> Vec<Option<u32>> {
            if from == to {
                (0..from.len() as u32).map(Some).collect()
            } else {
                from.iter().map(|id| to.find(id)).collect()
            }
        };
        if data.n_items() >= RELEVANT as usize {
            return Err(Error::data("held-out ratings: there can be at most 2^31 - 1 items"));
        }
        // A part of larger data keeps all of its ids, so an id alone does not mean that training
        // has a rating of it.
        let described = Entity::ALL.map(|of| data.features(of).is_some());
        let [users_described, items_described] = described;
        let trained: Vec<bool> = (0..data.n_items())
            .map(|item| items_described || !data.by_item().range(item).is_empty())
            .collect();
        let (user_of, item_of) =
            (map(held_out.users(), data.users()), map(held_out.items(), data.items()));
        let mut users = Vec::new();
        for (row, user) in user_of.into_iter().enumerate() {
            let Some(user) = user else { continue };
            let seen = data.by_user().row(user as usize).0;
            if seen.is_empty() && !users_described {
                continue;
            }
            let mut relevant: Vec<u32> = held_out
                .by_user()
                .range(row)
                .filter(|&at| held_out.by_user().values()[at] > 0.0)
                .filter(|&at| held_out.weights_by_user().is_none_or(|weights| weights[at] > 0.0))
                .filter_map(|at| item_of[held_out.by_user().indices()[at] as usize])
                .filter(|item| trained[*item as usize] && seen.binary_search(item).is_err())
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
        let n_trained = trained.iter().filter(|&&trained| trained).count();
        let most = (PAIRS_PER_RATING * data.len() / n_trained.max(1)).max(LEAST_SAMPLE);
        let sample = (users.len() > most).then(|| {
            let mut stream = Stream::new(SAMPLE_SEED, "ranking.users", 0);
            let (mut wanted, mut left) = (most as u64, users.len() as u64);
            let chosen = users.iter().filter(|_| {
                let chosen = stream.below(left) < wanted;
                wanted -= u64::from(chosen);
                left -= 1;
                chosen
            });
            chosen.cloned().collect()
        });
        Ok(Self { users, sample, seen: data.by_user_shared(), trained, n_trained })
    }

    /// The number of users that are scored.
    pub(crate) fn n_users(&self) -> usize {
        self.users.len()
    }

    /// A remark on how the iterations were scored.
    pub(crate) fn note(&self) -> Option<String> {
        let (sample, all) = (self.sample.as_ref()?.len(), self.users.len());
        Some(format!(
            "iterations were compared on {sample} of {all} users, drawn at random (seed \
             {SAMPLE_SEED}); the final held-out score is over all of them"
        ))
    }

    fn cases(&self, over: Over) -> &[Case] {
        match (&self.sample, over) {
            (Some(sample), Over::Sample) => sample,
            _ => &self.users,
        }
    }

    /// The score over all users of a state that was chosen by the sample; nothing where the sample
    /// is all of them, and the score is known.
    pub(crate) fn beyond_sample(&self, score: impl FnOnce() -> f64) -> Option<f64> {
        self.sample.as_ref().map(|_| score())
    }

    /// Adds an item to a list if it is ranked for this user.
    fn offer(&self, best: &mut TopN, (user, relevant): &Case, item: u32, score: f32) {
        if !best.wants(score) || !self.trained[item as usize] {
            return;
        }
        if relevant.binary_search(&item).is_ok() {
            best.push(Scored { item: item | RELEVANT, score });
        } else if self.seen.row(*user as usize).0.binary_search(&item).is_err() {
            best.push(Scored { item, score });
        }
    }

    /// The mean NDCG of items ranked by `β_i + γ_u·γ_i`; the factors of user `u` are in row
    /// `place(u)`.
    pub(crate) fn ndcg_of_factors(
        &self,
        over: Over,
        level: Level,
        (users, place): (&Rows, impl Fn(u32) -> usize + Sync),
        (items, bias): (&Rows, &[f32]),
    ) -> f64 {
        let stride = items.stride();
        let cases = self.cases(over);
        let sums: Vec<f64> = parallel::map(cases.chunks(USERS), |block| {
            let rows = block.iter().flat_map(|(user, _)| users.row(place(*user)));
            let factors: Vec<f32> = rows.copied().collect();
            let mut best: Vec<TopN> = block.iter().map(|_| TopN::new(PLACES)).collect();
            let mut scores = vec![0.0; block.len() * ITEMS];
            for (at, rows) in items.as_slice().chunks(ITEMS * stride).enumerate() {
                let (first, count) = (at * ITEMS, rows.len() / stride);
                let scores = &mut scores[..block.len() * count];
                gradus_kernel::scores(level, items.k(), &factors, rows, scores);
                let lists = block.iter().zip(&mut best).zip(scores.chunks_exact(count));
                for ((case, best), scores) in lists {
                    for (item, (product, bias)) in (first..).zip(scores.iter().zip(&bias[first..]))
                    {
                        self.offer(best, case, item as u32, product + bias);
                    }
                }
            }
            block.iter().zip(best).map(|(case, best)| gain(best, &case.1)).sum()
        });
        sums.iter().sum::<f64>() / cases.len() as f64
    }

    /// The mean NDCG over all users; `score` fills in the scores of all items for a user.
    pub(crate) fn ndcg(&self, score: impl Fn(usize, &mut [f32]) + Sync) -> f64 {
        self.ndcg_in_blocks(Over::All, 1, |users, scores| score(users[0] as usize, scores))
    }

    /// The mean NDCG, with the scores of up to `block` users filled in at once: a row of all items
    /// for each.
    pub(crate) fn ndcg_in_blocks(
        &self,
        over: Over,
        block: usize,
        score: impl Fn(&[u32], &mut [f32]) + Sync,
    ) -> f64 {
        let n_items = self.seen.n_cols();
        let cases = self.cases(over);
        let buffer = || vec![0.0; n_items * block];
        let each: Vec<Vec<f64>> =
            parallel::map_with(cases.chunks(block), buffer, |scores, block| {
                let users: Vec<u32> = block.iter().map(|(user, _)| *user).collect();
                let scores = &mut scores[..n_items * block.len()];
                score(&users, scores);
                let rows = block.iter().zip(scores.chunks_exact(n_items));
                rows.map(|(case, scores)| {
                    let mut best = TopN::new(PLACES);
                    for (item, &score) in scores.iter().enumerate() {
                        self.offer(&mut best, case, item as u32, score);
                    }
                    gain(best, &case.1)
                })
                .collect()
            });
        each.iter().flatten().sum::<f64>() / cases.len() as f64
    }

    /// The mean NDCG of several scorings at once, over one in `every` of the users. `score` is given up to `block` users and
    /// hands over the scores of all items for each of them and each variant: the place of the user in the
    /// block, the number of the variant, the scores.
    pub(crate) fn ndcg_of_variants(
        &self,
        variants: usize,
        (every, block): (usize, usize),
        score: impl Fn(&[u32], &mut dyn FnMut(usize, usize, &[f32])) + Sync,
    ) -> Vec<f64> {
        let cases: Vec<&Case> = self.users.iter().step_by(every).collect();
        let each = parallel::map(cases.chunks(block), |cases| {
            let users: Vec<u32> = cases.iter().map(|(user, _)| *user).collect();
            let mut sums = vec![0.0; variants];
            score(&users, &mut |place, variant, scores| {
                let mut best = TopN::new(PLACES);
                // Most items are no candidates: several of them are looked at together.
                for (at, scores) in scores.chunks(STRIDE).enumerate() {
                    if best.wants(largest(scores)) {
                        for (item, &score) in (at * STRIDE..).zip(scores) {
                            self.offer(&mut best, cases[place], item as u32, score);
                        }
                    }
                }
                sums[variant] += gain(best, &cases[place].1);
            });
            sums
        });
        let mut means = vec![0.0; variants];
        for sums in each {
            means.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum);
        }
        means.iter_mut().for_each(|mean| *mean /= cases.len() as f64);
        means
    }

    /// The expected score of a list in random order.
    fn by_chance(&self) -> f64 {
        let gain = |places: usize| -> f64 {
            (0..places).map(|place| 1.0 / (place as f64 + 2.0).log2()).sum()
        };
        let each = self.users.iter().map(|(user, relevant)| {
            let unseen = self.n_trained - self.seen.range(*user as usize).len();
            let hit = relevant.len() as f64 / unseen as f64;
            hit * gain(unseen.min(PLACES)) / gain(relevant.len().min(PLACES))
        });
        each.sum::<f64>() / self.users.len() as f64
    }

    /// The baselines: chance and popularity.
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

/// The largest of some scores, of which none is NaN, several at a time.
fn largest(scores: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = scores.chunks_exact(16);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, larger);
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &score)| *lane = larger(*lane, score));
    }
    lanes.into_iter().fold(rest, larger)
}

/// The NDCG of a list whose relevant items are marked.
fn gain(best: TopN, relevant: &[u32]) -> f64 {
    let ranked: Vec<u32> = best.into_sorted().iter().map(|s| s.item & !RELEVANT).collect();
    ndcg(&ranked, relevant, PLACES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::Id;
    use gradus_data::make::RatingsSpec;

    #[test]
    fn chance_is_the_mean_over_many_random_orders() {
        let data = RatingsSpec::new(40, 60, 800).make(1).unwrap().ratings;
        let (train, held_out) = data.partition(|at| at % 4 != 0);
        let held_out = HeldOutItems::new(&held_out, &train).unwrap();
        let rounds = 300;
        let mean: f64 = (0..rounds)
            .map(|round| {
                held_out.ndcg(|user, scores| {
                    let mut stream =
                        gradus_base::random::Stream::new(round, "test.order", user as u64);
                    scores.fill_with(|| stream.uniform() as f32);
                })
            })
            .sum::<f64>()
            / rounds as f64;
        assert!(
            (mean / held_out.by_chance() - 1.0).abs() < 0.02,
            "{mean} {}",
            held_out.by_chance()
        );
    }

    #[test]
    fn only_new_pairs_of_known_users_and_items_count() {
        let of = |rows: &[(i64, i64)]| {
            Ratings::from_triplets(rows.iter().map(|&(u, i)| (Id::Int(u), Id::Int(i), 1.0)))
                .unwrap()
        };
        let train = of(&[(1, 10), (1, 11), (2, 12), (3, 13)]);
        // Seen, unknown item, unknown user: nothing is left but (2, 10).
        let held_out = of(&[(1, 10), (1, 99), (9, 10), (2, 10)]);
        let items = HeldOutItems::new(&held_out, &train).unwrap();
        assert_eq!(items.users, [(1, vec![0])]);
        assert_eq!(items.ndcg(|_, scores| scores.copy_from_slice(&[1.0, 0.0, 9.0, 0.0])), 1.0);
        let second = items.ndcg(|_, scores| scores.copy_from_slice(&[1.0, 0.0, 9.0, 2.0]));
        assert_eq!(second, 1.0 / 3f64.log2());
        assert!(HeldOutItems::new(&of(&[(1, 10)]), &train).is_err());
    }

    #[test]
    fn what_training_does_not_have_is_neither_relevant_nor_ranked() {
        let rows = [(1, 10), (1, 11), (2, 11), (2, 12), (3, 13), (4, 10)];
        let of = |rows: &[(i64, i64)]| {
            Ratings::from_triplets(rows.iter().map(|&(u, i)| (Id::Int(u), Id::Int(i), 1.0)))
                .unwrap()
        };
        // Item 13 and users 3 and 4 lose all they have; the ids stay.
        let (held_out, train) = of(&rows).partition(|at| [1, 4, 5].contains(&at));
        assert_eq!((train.n_users(), train.n_items()), (4, 4));
        let items = HeldOutItems::new(&held_out, &train).unwrap();
        assert_eq!(items.users, [(0, vec![1])]);
        // Item 13 has the best score and takes no place.
        assert_eq!(items.ndcg(|_, scores| scores.copy_from_slice(&[0.0, 1.0, 0.5, 9.0])), 1.0);
    }

    #[test]
    fn of_equal_scores_the_irrelevant_comes_first() {
        let data = RatingsSpec::new(30, 300, 600).make(3).unwrap().ratings;
        let (train, held_out) = data.partition(|at| at % 4 != 0);
        let held_out = HeldOutItems::new(&held_out, &train).unwrap();
        // A model that knows nothing gets nothing where there are twenty irrelevant items.
        assert_eq!(held_out.ndcg(|_, scores| scores.fill(1.0)), 0.0);
        let items = Rows::zeros(train.n_items(), 3);
        let users = Rows::zeros(train.n_users(), 3);
        let bias = vec![0.5; train.n_items()];
        let by_factors = held_out.ndcg_of_factors(
            Over::All,
            Level::best(),
            (&users, |user| user as usize),
            (&items, &bias),
        );
        assert_eq!(by_factors, 0.0);
    }
}
