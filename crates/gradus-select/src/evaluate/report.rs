//! Means, their errors, and what was counted.

use super::RankingOptions;
use super::cases::Cases;
use gradus_metrics::ranking::{AtK, novelty};
use serde::Serialize;

/// A mean over users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard error: the spread over users, divided by the root of their number. Not a number (null in JSON) for
    /// one user.
    pub standard_error: f64,
}

/// The measures of lists of one length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankingAt {
    /// The length of the lists.
    pub k: usize,
    /// Share of the places that hold relevant items.
    pub precision: Estimate,
    /// Share of the relevant items that are in the list.
    pub recall: Estimate,
    /// Normalised discounted cumulative gain.
    pub ndcg: Estimate,
    /// Mean average precision.
    pub map: Estimate,
    /// Mean reciprocal rank of the first hit.
    pub mrr: Estimate,
    /// Share of users with a hit.
    pub hit_rate: Estimate,
    /// How little known the items are, in bits; nothing where the training data is not known, or
    /// items were sampled.
    pub novelty: Option<Estimate>,
    /// Share of the ranked items that are in someone's list; nothing where items were sampled.
    pub coverage: Option<f64>,
    /// Popularity of the items shown: the share of users who have them in training, on average over
    /// the list. Nothing where the training data is not known, or items were sampled.
    pub popularity: Option<Estimate>,
}

/// The scale of ratings: the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatingScale {
    /// The lowest rating.
    pub low: f32,
    /// The highest.
    pub high: f32,
}

impl RatingScale {
    /// Computes the scale of these ratings.
    pub fn of(values: &[f32]) -> Self {
        Self {
            low: values.iter().copied().fold(f32::INFINITY, f32::min),
            high: values.iter().copied().fold(f32::NEG_INFINITY, f32::max),
        }
    }

    /// Returns the start of the upper quarter of the scale, 4 for 1–5: the default threshold of relevance.
    pub fn upper_quarter(&self) -> f32 {
        self.low + 0.75 * (self.high - self.low)
    }
}

/// Users who could not be evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The model does not know them, and nothing is there to fold them in by.
    pub unknown_users: usize,
    /// Users whose test ratings are all below the threshold.
    pub nothing_relevant: usize,
    /// Users whose relevant items are all unknown to the model, or in training as well.
    pub nothing_known: usize,
    /// Users who have rated every item, so that no item can be sampled for them.
    pub no_others: usize,
}

impl Skipped {
    /// All of them.
    pub fn total(&self) -> usize {
        self.unknown_users + self.nothing_relevant + self.nothing_known + self.no_others
    }
}

/// The result of [`evaluate_ranking`](super::evaluate_ranking).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankingReport {
    /// `full` (every item is ranked) or `sampled`.
    pub protocol: &'static str,
    /// The number of random items among which each relevant one was ranked, if items were sampled. Such figures cannot
    /// be compared with those of the full ranking, nor with other sample sizes.
    pub sampled: Option<usize>,
    /// The value from which on a test rating counted as relevant, if not all did.
    pub threshold: Option<f32>,
    /// Users evaluated.
    pub users: usize,
    /// Users who were folded in, included in `users`.
    pub folded_in: usize,
    /// Users not evaluated.
    pub skipped: Skipped,
    /// Items that were ranked: those with a rating in training.
    pub items: usize,
    /// Relevant test ratings the users were evaluated by.
    pub relevant: usize,
    /// Relevant test ratings left out because the model does not know the item.
    pub unknown_items: usize,
    /// Relevant test ratings left out because they are in training as well.
    pub in_training: usize,
    /// The measures for each length of list.
    pub at: Vec<RankingAt>,
    /// The chance that a relevant item is ranked above another, if it was asked for.
    pub auc: Option<Estimate>,
    /// Popularity of what the users went on to choose: as [`RankingAt::popularity`], of their
    /// relevant items. Lists with a higher one favour popular items more than the users do.
    pub relevant_popularity: Option<Estimate>,
}

/// The measures of one user.
pub(super) struct Evaluated {
    pub at: Vec<AtK>,
    pub auc: Option<f64>,
}

/// A running mean and the squares around it (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    n: usize,
    mean: f64,
    squares: f64,
}

impl Running {
    fn add(&mut self, value: f64) {
        self.n += 1;
        let before = value - self.mean;
        self.mean += before / self.n as f64;
        self.squares += before * (value - self.mean);
    }

    fn estimate(&self) -> Estimate {
        let n = self.n as f64;
        Estimate { mean: self.mean, standard_error: (self.squares / (n - 1.0) / n).sqrt() }
    }
}

/// The mean share of users who have the items; nothing of an empty list.
fn popularity(items: &[u32], known: &[u32], n_users: usize) -> Option<f64> {
    let sum: f64 = items.iter().map(|&item| f64::from(known[item as usize])).sum();
    let n = items.len() as f64 * n_users as f64;
    (n > 0.0).then(|| sum / n)
}

/// The sums over the users so far, always added in the order of the users.
pub(super) struct Totals {
    pub lengths: Vec<usize>,
    /// Users with no items to rank theirs among.
    pub no_others: usize,
    users: usize,
    relevant: usize,
    at: Vec<[Running; 8]>,
    auc: Running,
    relevant_popularity: Running,
    /// Items that are ranked.
    items: usize,
    /// The best place at which each item was shown to anyone.
    best_place: Vec<usize>,
    /// The number of users who know each item, and the number of users.
    popularity: Option<(Vec<u32>, usize)>,
}

impl Totals {
    pub(super) fn new(lengths: &[usize], cases: &Cases<'_>) -> Self {
        Self {
            lengths: lengths.to_vec(),
            no_others: 0,
            users: 0,
            relevant: 0,
            at: vec![Default::default(); lengths.len()],
            auc: Running::default(),
            relevant_popularity: Running::default(),
            items: cases.n_ranked(),
            best_place: vec![usize::MAX; cases.model.items().len()],
            popularity: cases.popularity(),
        }
    }

    /// Adds a user with their relevant items, and the list that was shown to them if it was the
    /// best of the catalogue.
    pub(super) fn add(&mut self, relevant: &[u32], evaluated: &Evaluated, shown: Option<&[u32]>) {
        self.users += 1;
        self.relevant += relevant.len();
        for ((sums, at), &k) in self.at.iter_mut().zip(&evaluated.at).zip(&self.lengths) {
            let [precision, recall, ndcg, map, mrr, hit_rate, new, popular] = sums;
            precision.add(at.precision);
            recall.add(at.recall);
            ndcg.add(at.ndcg);
            map.add(at.map);
            mrr.add(at.mrr);
            hit_rate.add(at.hit_rate);
            if let (Some(shown), Some((known, users))) = (shown, &self.popularity) {
                new.add(novelty(shown, known, *users, k));
                if let Some(share) = popularity(&shown[..k.min(shown.len())], known, *users) {
                    popular.add(share);
                }
            }
        }
        if let (Some(_), Some((known, users))) = (shown, &self.popularity)
            && let Some(share) = popularity(relevant, known, *users)
        {
            self.relevant_popularity.add(share);
        }
        for (place, &item) in shown.unwrap_or_default().iter().enumerate() {
            let best = &mut self.best_place[item as usize];
            *best = place.min(*best);
        }
        if let Some(auc) = evaluated.auc {
            self.auc.add(auc);
        }
    }

    pub(super) fn report(&self, cases: &Cases<'_>, options: &RankingOptions<'_>) -> RankingReport {
        let sampled = options.sampled;
        let items = self.items;
        let at = self.at.iter().zip(&self.lengths).map(|(sums, &k)| {
            let [precision, recall, ndcg, map, mrr, hit_rate, new, popular] =
                sums.map(|sum| sum.estimate());
            let covered = self.best_place.iter().filter(|&&place| place < k).count();
            RankingAt {
                k,
                precision,
                recall,
                ndcg,
                map,
                mrr,
                hit_rate,
                novelty: (sums[6].n > 0).then_some(new),
                coverage: sampled.is_none().then_some(covered as f64 / items as f64),
                popularity: (sums[7].n > 0).then_some(popular),
            }
        });
        RankingReport {
            protocol: if sampled.is_some() { "sampled" } else { "full" },
            sampled,
            threshold: options.threshold,
            users: self.users,
            folded_in: cases.folded_in(),
            skipped: Skipped { no_others: self.no_others, ..cases.skipped },
            items,
            relevant: self.relevant,
            unknown_items: cases.unknown_items,
            in_training: cases.in_training,
            at: at.collect(),
            auc: (options.auc && self.auc.n > 0).then(|| self.auc.estimate()),
            relevant_popularity: (self.relevant_popularity.n > 0)
                .then(|| self.relevant_popularity.estimate()),
        }
    }
}
