//! How good a ranking is, evaluated by the items known to be relevant.
//!
//! Relevance is yes or no. `ranked` is a list of items, best first and each once; `relevant` the
//! relevant ones, in ascending order. Places count from 1. Every function is 0 where nothing is
//! relevant or `k` is 0, and looks at the first `k` items only (at all of them, if there are fewer).
//!
//! Definitions are those of the literature on recommenders. Where libraries differ:
//!
//! | measure | here | elsewhere |
//! |---|---|---|
//! | [`precision`] | hits ÷ `k`, also of a shorter list | `implicit` divides by `min(k, relevant)`, which is between precision and recall |
//! | [`recall`] | hits ÷ relevant | some divide by `min(k, relevant)` |
//! | [`average_precision`] | ÷ `min(k, relevant)`, so that the best list gets 1 | `trec_eval` and `ranx` divide by all relevant |
//! | [`ndcg`] | ideal list cut at `k` | all agree; without the cut a full hit list of `k` would not get 1 |
//! | [`auc`] | over the full ranking, a tie counts half | `implicit` guesses what is behind place `k` |
//! | [`novelty`] | in bits, by the share of users | some by the share of ratings |

use gradus_core::recommend::Scored;

/// The share of the first `k` places that hold relevant items.
///
/// ```
/// use gradus_metrics::ranking::precision;
/// assert_eq!(precision(&[7, 3, 5], &[3, 4], 2), 0.5);
/// ```
pub fn precision(ranked: &[u32], relevant: &[u32], k: usize) -> f64 {
    AtK::of(&hits(ranked, relevant, k), relevant.len(), k).precision
}

/// The share of the relevant items that are among the first `k`.
///
/// ```
/// use gradus_metrics::ranking::recall;
/// assert_eq!(recall(&[7, 3, 5], &[3, 4, 6, 7], 2), 0.5);
/// ```
pub fn recall(ranked: &[u32], relevant: &[u32], k: usize) -> f64 {
    AtK::of(&hits(ranked, relevant, k), relevant.len(), k).recall
}

/// Normalised discounted cumulative gain of the first `k`: `Σ 1/log₂(place + 1)` over the hits,
/// divided by what the best possible list would get, `Σ_{place ≤ min(k, |relevant|)}`.
///
/// ```
/// use gradus_metrics::ranking::ndcg;
/// // One of two relevant items, in second place.
/// let best = 1.0 + 1.0 / 3f64.log2();
/// assert_eq!(ndcg(&[7, 3, 5], &[3, 4], 2), (1.0 / 3f64.log2()) / best);
/// ```
pub fn ndcg(ranked: &[u32], relevant: &[u32], k: usize) -> f64 {
    AtK::of(&hits(ranked, relevant, k), relevant.len(), k).ndcg
}

/// Average precision of the first `k`: the precision at the place of each hit, added up and divided
/// by `min(k, |relevant|)`. Its mean over users is MAP.
///
/// ```
/// use gradus_metrics::ranking::average_precision;
/// assert_eq!(average_precision(&[7, 3, 5, 4], &[4, 7], 4), (1.0 + 0.5) / 2.0);
/// ```
pub fn average_precision(ranked: &[u32], relevant: &[u32], k: usize) -> f64 {
    AtK::of(&hits(ranked, relevant, k), relevant.len(), k).map
}

/// One over the place of the first hit among the first `k`; 0 without a hit. Its mean over users is
/// MRR.
///
/// ```
/// use gradus_metrics::ranking::reciprocal_rank;
/// assert_eq!(reciprocal_rank(&[7, 3, 5], &[3, 5], 3), 0.5);
/// ```
pub fn reciprocal_rank(ranked: &[u32], relevant: &[u32], k: usize) -> f64 {
    AtK::of(&hits(ranked, relevant, k), relevant.len(), k).mrr
}

/// 1 if there is a hit among the first `k`. Its mean over users is the hit rate.
///
/// ```
/// use gradus_metrics::ranking::hit;
/// assert_eq!((hit(&[7, 3, 5], &[5], 2), hit(&[7, 3, 5], &[5], 3)), (0.0, 1.0));
/// ```
pub fn hit(ranked: &[u32], relevant: &[u32], k: usize) -> f64 {
    AtK::of(&hits(ranked, relevant, k), relevant.len(), k).hit_rate
}

/// The chance that a relevant item is scored above an irrelevant one, a tie counting half: the area
/// under the ROC curve. `scored` is the full ranking, every item that could have been recommended,
/// best first. Nothing if there is no relevant or no irrelevant item in it.
///
/// ```
/// use gradus_core::recommend::Scored;
/// use gradus_metrics::ranking::auc;
///
/// let scored = [(7, 3.0), (3, 2.0), (5, 2.0), (4, 1.0)];
/// let scored = scored.map(|(item, score)| Scored { item, score });
/// // Item 3 is above one of three others and tied with another.
/// assert_eq!(auc(&scored, &[3]), Some(1.5 / 3.0));
/// ```
pub fn auc(scored: &[Scored], relevant: &[u32]) -> Option<f64> {
    let (mut above, mut n_relevant, mut pairs) = (0.0, 0.0, 0.0);
    for tied in scored.chunk_by(|a, b| a.score == b.score) {
        let good = tied.iter().filter(|s| is_in(relevant, s.item)).count() as f64;
        let bad = tied.len() as f64 - good;
        // Pairs won: of the relevant so far with these others.
        pairs += n_relevant * bad + 0.5 * good * bad;
        n_relevant += good;
        above += bad;
    }
    (n_relevant > 0.0 && above > 0.0).then(|| pairs / (n_relevant * above))
}

/// The share of a catalogue of `n_items` that is in the first `k` of at least one list: 1 where
/// everything is recommended to someone, near 0 where all get the same.
///
/// ```
/// use gradus_metrics::ranking::coverage;
/// assert_eq!(coverage([&[1, 2, 3][..], &[2, 1]], 2, 10), 0.2);
/// ```
pub fn coverage<'a>(lists: impl IntoIterator<Item = &'a [u32]>, k: usize, n_items: usize) -> f64 {
    let seen: std::collections::HashSet<u32> =
        lists.into_iter().flat_map(|list| list.iter().take(k).copied()).collect();
    if n_items == 0 { 0.0 } else { seen.len() as f64 / n_items as f64 }
}

/// How little known the first `k` items are: the mean of `−log₂ p`, where `p` is the share of the
/// `n_users` users who know the item; `known` says for each item how many do. An item nobody knows
/// counts as known to one. An empty list gets 0.
///
/// ```
/// use gradus_metrics::ranking::novelty;
/// // One item known to half of the users, one to an eighth.
/// assert_eq!(novelty(&[1, 0], &[1, 4], 8, 2), (1.0 + 3.0) / 2.0);
/// ```
pub fn novelty(ranked: &[u32], known: &[u32], n_users: usize, k: usize) -> f64 {
    let list = &ranked[..ranked.len().min(k)];
    let bits = |&item: &u32| {
        let users = known.get(item as usize).copied().unwrap_or(0).max(1);
        (n_users as f64 / f64::from(users)).log2()
    };
    if list.is_empty() { 0.0 } else { list.iter().map(bits).sum::<f64>() / list.len() as f64 }
}

/// The items in the order in which they are evaluated: by score, and of equal scores the irrelevant
/// first.
///
/// A model that gives all items the same score knows nothing, and gets nothing so; if ties went to
/// the smaller index, or to the relevant item, it could get any score at all. For the same reason a
/// list that was cut in the middle of a tie says too little: see to it that the group of the last
/// place that counts is whole.
///
/// ```
/// use gradus_core::recommend::Scored;
/// use gradus_metrics::ranking::pessimistic_order;
///
/// let scored = [(7, 3.0), (3, 2.0), (5, 2.0)].map(|(item, score)| Scored { item, score });
/// assert_eq!(pessimistic_order(&scored, &[3]), [7, 5, 3]);
/// ```
pub fn pessimistic_order(scored: &[Scored], relevant: &[u32]) -> Vec<u32> {
    let mut order = Vec::with_capacity(scored.len());
    for tied in scored.chunk_by(|a, b| a.score == b.score) {
        if let [alone] = tied {
            order.push(alone.item);
            continue;
        }
        let (good, bad): (Vec<u32>, Vec<u32>) =
            tied.iter().map(|s| s.item).partition(|&item| is_in(relevant, item));
        order.extend(bad);
        order.extend(good);
    }
    order
}

fn is_in(relevant: &[u32], item: u32) -> bool {
    relevant.binary_search(&item).is_ok()
}

/// The places of the relevant items among the first `k`, counted from 0.
pub fn hits(ranked: &[u32], relevant: &[u32], k: usize) -> Vec<usize> {
    let first = ranked.iter().take(k).enumerate();
    first.filter(|(_, item)| is_in(relevant, **item)).map(|(place, _)| place).collect()
}

/// All measures of one list at one `k`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtK {
    /// The share of the list that is relevant.
    pub precision: f64,
    /// The share of what is relevant that the list has.
    pub recall: f64,
    /// Normalised discounted cumulative gain.
    pub ndcg: f64,
    /// Average precision.
    pub map: f64,
    /// The reciprocal rank of the first hit.
    pub mrr: f64,
    /// 1 if there is a hit.
    pub hit_rate: f64,
}

impl AtK {
    /// Computes the measures from the places of the hits, ascending from 0, and the number of relevant items.
    pub fn of(hits: &[usize], n_relevant: usize, k: usize) -> Self {
        if k == 0 || n_relevant == 0 {
            return Self::default();
        }
        let hits = &hits[..hits.partition_point(|&place| place < k)];
        let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let best = k.min(n_relevant);
        let precisions =
            hits.iter().zip(1..).map(|(&place, n)| f64::from(n) / (place as f64 + 1.0));
        Self {
            precision: hits.len() as f64 / k as f64,
            recall: hits.len() as f64 / n_relevant as f64,
            ndcg: hits.iter().map(|&place| gain(place)).sum::<f64>()
                / (0..best).map(gain).sum::<f64>(),
            map: precisions.sum::<f64>() / best as f64,
            mrr: hits.first().map_or(0.0, |&place| 1.0 / (place as f64 + 1.0)),
            hit_rate: if hits.is_empty() { 0.0 } else { 1.0 },
        }
    }
}

#[cfg(test)]
mod tests;
