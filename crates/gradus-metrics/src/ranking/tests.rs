//! Every measure against a slow one written from its definition, by sets and loops over places.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

struct Oracle {
    ranked: Vec<u32>,
    relevant: BTreeSet<u32>,
}

impl Oracle {
    fn is_hit(&self, place: usize) -> bool {
        place <= self.ranked.len() && self.relevant.contains(&self.ranked[place - 1])
    }

    fn n_hits(&self, k: usize) -> f64 {
        (1..=k).filter(|&place| self.is_hit(place)).count() as f64
    }

    fn precision(&self, k: usize) -> f64 {
        if k == 0 { 0.0 } else { self.n_hits(k) / k as f64 }
    }

    fn recall(&self, k: usize) -> f64 {
        if self.relevant.is_empty() { 0.0 } else { self.n_hits(k) / self.relevant.len() as f64 }
    }

    fn ndcg(&self, k: usize) -> f64 {
        let dcg = |is_hit: &dyn Fn(usize) -> bool| {
            let mut sum = 0.0;
            for place in 1..=k {
                if is_hit(place) {
                    sum += std::f64::consts::LN_2 / ((place + 1) as f64).ln();
                }
            }
            sum
        };
        // The ideal list: all relevant items first.
        let ideal = dcg(&|place| place <= self.relevant.len());
        if ideal == 0.0 { 0.0 } else { dcg(&|place| self.is_hit(place)) / ideal }
    }

    fn map(&self, k: usize) -> f64 {
        let mut sum = 0.0;
        for place in 1..=k {
            if self.is_hit(place) {
                sum += self.precision(place);
            }
        }
        let most = k.min(self.relevant.len());
        if most == 0 { 0.0 } else { sum / most as f64 }
    }

    fn mrr(&self, k: usize) -> f64 {
        let first = (1..=k).find(|&place| self.is_hit(place));
        first.map_or(0.0, |place| 1.0 / place as f64)
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

/// A list of different items and a set of relevant ones, some of them not in the list.
fn case() -> impl Strategy<Value = (Vec<u32>, BTreeSet<u32>)> {
    (Just((0..20u32).collect::<Vec<_>>()).prop_shuffle(), 0..20usize).prop_flat_map(
        |(mut items, n)| {
            items.truncate(n);
            (Just(items), prop::collection::btree_set(0..25u32, 0..12))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_measure_agrees_with_its_definition((ranked, set) in case(), k in 0..25usize) {
        let relevant: Vec<u32> = set.iter().copied().collect();
        let oracle = Oracle { ranked: ranked.clone(), relevant: set };
        let empty = k == 0 || relevant.is_empty();
        for (name, got, expected) in [
            ("precision", precision(&ranked, &relevant, k), oracle.precision(k)),
            ("recall", recall(&ranked, &relevant, k), oracle.recall(k)),
            ("ndcg", ndcg(&ranked, &relevant, k), oracle.ndcg(k)),
            ("map", average_precision(&ranked, &relevant, k), oracle.map(k)),
            ("mrr", reciprocal_rank(&ranked, &relevant, k), oracle.mrr(k)),
            ("hit", hit(&ranked, &relevant, k), f64::from(oracle.n_hits(k) > 0.0)),
        ] {
            prop_assert!(close(got, expected), "{name}@{k}: {got}, not {expected}");
            prop_assert!((0.0..=1.0 + 1e-12).contains(&got), "{name} = {got}");
            prop_assert!(!empty || got == 0.0);
        }
        // The best possible list gets 1 (where it can).
        prop_assert!(empty || close(ndcg(&relevant, &relevant, k), 1.0));
        prop_assert!(empty || close(average_precision(&relevant, &relevant, k), 1.0));
    }

    #[test]
    fn auc_is_the_share_of_pairs_in_the_right_order(
        scores in prop::collection::vec(0..6i32, 0..15),
        set in prop::collection::btree_set(0..15u32, 0..8),
    ) {
        let mut scored: Vec<Scored> = scores
            .iter()
            .zip(0..)
            .map(|(&score, item)| Scored { item, score: score as f32 })
            .collect();
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
        let relevant: Vec<u32> = set.iter().copied().collect();
        let (mut won, mut pairs) = (0.0, 0.0);
        for good in scored.iter().filter(|s| set.contains(&s.item)) {
            for bad in scored.iter().filter(|s| !set.contains(&s.item)) {
                pairs += 1.0;
                if good.score > bad.score {
                    won += 1.0;
                } else if good.score == bad.score {
                    won += 0.5;
                }
            }
        }
        match auc(&scored, &relevant) {
            Some(area) => prop_assert!(close(area, won / pairs), "{area}, not {}", won / pairs),
            None => prop_assert_eq!(pairs, 0.0),
        }
    }

    #[test]
    fn a_tied_item_is_placed_behind_the_others(
        scores in prop::collection::vec(0..4i32, 1..12),
        set in prop::collection::btree_set(0..12u32, 1..5),
        k in 1..12usize,
    ) {
        let mut scored: Vec<Scored> = scores
            .iter()
            .zip(0..)
            .map(|(&score, item)| Scored { item, score: score as f32 })
            .collect();
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
        let relevant: Vec<u32> = set.iter().copied().collect();
        let order = pessimistic_order(&scored, &relevant);
        // The worst of all orders that respect the scores: for one relevant item alone its place is
        // one more than the number of irrelevant items with at least its score, and of relevant
        // ones with a higher score (or tied and before it).
        for (n, s) in order.iter().filter(|item| set.contains(item)).enumerate() {
            let score = scores[*s as usize];
            let others =
                (0..scores.len()).filter(|&i| !set.contains(&(i as u32)) && scores[i] >= score);
            let place = order.iter().position(|item| item == s).unwrap();
            prop_assert_eq!(place, others.count() + n);
        }
        // No order does worse.
        let given: Vec<u32> = scored.iter().map(|s| s.item).collect();
        prop_assert!(ndcg(&order, &relevant, k) <= ndcg(&given, &relevant, k) + 1e-12);
        let mut same = order.clone();
        same.sort_unstable();
        prop_assert_eq!(same, (0..scores.len() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn coverage_and_novelty_agree_with_counting(
        lists in prop::collection::vec(case(), 0..6),
        known in prop::collection::vec(0..9u32, 20),
        k in 0..22usize,
    ) {
        let lists: Vec<Vec<u32>> = lists.into_iter().map(|(list, _)| list).collect();
        let mut seen = [false; 20];
        for list in &lists {
            for (place, &item) in list.iter().enumerate() {
                seen[item as usize] |= place < k;
            }
        }
        let share = seen.iter().filter(|&&seen| seen).count() as f64 / 20.0;
        prop_assert_eq!(coverage(lists.iter().map(Vec::as_slice), k, 20), share);
        for list in &lists {
            let (mut sum, mut n) = (0.0, 0.0f64);
            for &item in list.iter().take(k) {
                let users = if known[item as usize] == 0 { 1 } else { known[item as usize] };
                sum -= (f64::from(users) / 9.0).ln() / std::f64::consts::LN_2;
                n += 1.0;
            }
            prop_assert!(close(novelty(list, &known, 9, k), sum / n.max(1.0)));
        }
    }
}

#[test]
fn a_constant_score_gets_nothing_at_the_top_and_half_the_area() {
    let scored: Vec<Scored> = (0..100).map(|item| Scored { item, score: 1.0 }).collect();
    let order = pessimistic_order(&scored, &[0, 1, 2]);
    assert_eq!(hit(&order, &[0, 1, 2], 10), 0.0);
    assert_eq!(auc(&scored, &[0, 1, 2]), Some(0.5));
}
