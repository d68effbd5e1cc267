//! How good a ranking is, judged by the items known to be relevant.
//!
//! Relevance is yes or no. `ranked` is a list of items, best first; `relevant` the relevant ones,
//! in ascending order. Definitions are those of the literature on recommenders; where libraries
//! differ the choice is stated.

/// Normalised discounted cumulative gain of the first `k`: `Σ 1/log₂(place + 1)` over the hits,
/// divided by what the best possible list would get, `Σ_{place ≤ min(k, |relevant|)}`.
///
/// Zero where nothing is relevant or `k` is zero.
///
/// ```
/// use gradus_select::metrics::ranking::ndcg;
/// // One of two relevant items, in second place.
/// let best = 1.0 + 1.0 / 3f64.log2();
/// assert_eq!(ndcg(&[7, 3, 5], &[3, 4], 2), (1.0 / 3f64.log2()) / best);
/// ```
pub fn ndcg(ranked: &[u32], relevant: &[u32], k: usize) -> f64 {
    let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
    let hits = ranked.iter().take(k).enumerate();
    let got: f64 = hits
        .filter(|(_, item)| relevant.binary_search(item).is_ok())
        .map(|(place, _)| gain(place))
        .sum();
    let best: f64 = (0..k.min(relevant.len())).map(gain).sum();
    if best > 0.0 { got / best } else { 0.0 }
}
