//! The best of what is shown, one at a time.

use super::{Categories, Scored};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Keeps the best `n` of the items pushed; ties go to the smaller index.
#[derive(Clone, Debug)]
pub struct TopN {
    n: usize,
    /// A heap with the worst at the top.
    heap: BinaryHeap<Worst>,
}

#[derive(Clone, Copy, Debug)]
struct Worst(Scored);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Greater is worse: a smaller score, then a larger index.
        other.0.score.total_cmp(&self.0.score).then(self.0.item.cmp(&other.0.item))
    }
}
impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Worst {}

impl TopN {
    /// Keeps `n`.
    pub fn new(n: usize) -> Self {
        // Not `with_capacity(n)`: `n` is the user's and may be huge.
        Self { n, heap: BinaryHeap::new() }
    }

    /// Whether a score could be among the best: a quick test before the work of building one.
    #[inline]
    pub fn wants(&self, score: f32) -> bool {
        self.heap.len() < self.n || self.heap.peek().is_some_and(|worst| score >= worst.0.score)
    }

    /// The score that a newcomer must reach, once there are `n`.
    #[inline]
    pub fn threshold(&self) -> Option<f32> {
        if self.heap.len() < self.n { None } else { self.heap.peek().map(|worst| worst.0.score) }
    }

    /// Keeps the item if it is among the best.
    pub fn push(&mut self, scored: Scored) {
        let scored = Worst(scored);
        if self.heap.len() < self.n {
            self.heap.push(scored);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && scored < *worst
        {
            *worst = scored;
        }
    }

    /// The best, best first.
    pub fn into_sorted(self) -> Vec<Scored> {
        self.heap.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
    }
}

/// Keeps the best `n` with no more of a category than allowed: a [`TopN`], or one with limits.
///
/// With one category for each item the lists that keep the limits are the independent sets of a
/// matroid, so taking the best that still fits, again and again, gives the best list; and so does
/// exchanging the worst that a newcomer competes with, which is what happens here.
#[derive(Clone, Debug)]
pub struct Shortlist<'a> {
    kind: Kind<'a>,
}

#[derive(Clone, Debug)]
enum Kind<'a> {
    Plain(TopN),
    Limited(Limited<'a>),
}

#[derive(Clone, Debug)]
struct Limited<'a> {
    n: usize,
    categories: &'a Categories,
    all: BTreeSet<Worst>,
    /// The members of `all` of each category.
    of: BTreeMap<u32, BTreeSet<Worst>>,
}

impl<'a> Shortlist<'a> {
    /// Keeps `n`, with no more of each category than it says.
    pub fn new(n: usize, categories: Option<&'a Categories>) -> Self {
        let kind = match categories {
            None => Kind::Plain(TopN::new(n)),
            Some(categories) => {
                Kind::Limited(Limited { n, categories, all: BTreeSet::new(), of: BTreeMap::new() })
            }
        };
        Self { kind }
    }

    /// Whether a score could be among the best: a quick test before the work of building one.
    #[inline]
    pub fn wants(&self, score: f32) -> bool {
        match &self.kind {
            Kind::Plain(top) => top.wants(score),
            Kind::Limited(list) => {
                list.all.len() < list.n
                    || list.all.last().is_some_and(|worst| score >= worst.0.score)
            }
        }
    }

    /// The score that a newcomer must reach (at least), once there are `n`.
    #[inline]
    pub fn threshold(&self) -> Option<f32> {
        match &self.kind {
            Kind::Plain(top) => top.threshold(),
            Kind::Limited(list) if list.all.len() < list.n => None,
            Kind::Limited(list) => list.all.last().map(|worst| worst.0.score),
        }
    }

    /// Keeps the item if it is among the best.
    pub fn push(&mut self, scored: Scored) {
        match &mut self.kind {
            Kind::Plain(top) => top.push(scored),
            Kind::Limited(list) => list.push(Worst(scored)),
        }
    }

    /// The best, best first.
    pub fn into_sorted(self) -> Vec<Scored> {
        match self.kind {
            Kind::Plain(top) => top.into_sorted(),
            Kind::Limited(list) => list.all.into_iter().map(|worst| worst.0).collect(),
        }
    }
}

impl Limited<'_> {
    fn push(&mut self, new: Worst) {
        let category = |item: u32| self.categories.of_item.get(item as usize).copied().flatten();
        let own = category(new.0.item);
        let rivals = own.and_then(|own| self.of.get(&own));
        let taken = rivals.map_or(0, BTreeSet::len);
        // Whom it has to beat: the worst of its full category, or of the full list.
        let rival = if own.is_some() && taken >= self.categories.max {
            match rivals.and_then(BTreeSet::last) {
                Some(&rival) => Some(rival),
                None => return,
            }
        } else if self.all.len() >= self.n {
            match self.all.last() {
                Some(&rival) => Some(rival),
                None => return,
            }
        } else {
            None
        };
        if let Some(rival) = rival {
            if new >= rival {
                return;
            }
            let others = category(rival.0.item);
            self.all.remove(&rival);
            if let Some(set) = others.and_then(|others| self.of.get_mut(&others)) {
                set.remove(&rival);
            }
        }
        self.all.insert(new);
        if let Some(own) = own {
            self.of.entry(own).or_default().insert(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn sorted(mut all: Vec<Scored>) -> Vec<Scored> {
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
        all
    }

    #[test]
    fn the_best_are_kept_as_a_full_sort_would() {
        let mut stream = Stream::new(1, "top", 0);
        for n in [0, 1, 3, 10, 100] {
            // Few distinct scores, so that ties matter.
            let all: Vec<Scored> =
                (0..50).map(|item| Scored { item, score: stream.below(8) as f32 }).collect();
            let mut order = stream.permutation(all.len());
            let mut top = TopN::new(n);
            for at in order.drain(..) {
                if top.wants(all[at].score) {
                    top.push(all[at]);
                }
                assert!(top.threshold().is_none_or(|least| top.wants(least)));
            }
            let mut sorted = sorted(all);
            sorted.truncate(n);
            assert_eq!(top.into_sorted(), sorted);
        }
    }

    #[test]
    fn limits_give_what_taking_the_best_that_fits_gives() {
        let mut stream = Stream::new(2, "top", 0);
        for round in 0..200 {
            let n_items = 40;
            let of_item: Vec<Option<u32>> = (0..n_items)
                .map(|_| (stream.below(6) > 0).then(|| stream.below(4) as u32))
                .collect();
            let categories = Categories { of_item, max: round % 4 };
            let all: Vec<Scored> = (0..n_items)
                .map(|item| Scored { item: item as u32, score: stream.below(9) as f32 })
                .collect();
            for n in [0, 1, 5, 12, 100] {
                let mut list = Shortlist::new(n, Some(&categories));
                for at in stream.permutation(all.len()) {
                    if list.wants(all[at].score) {
                        list.push(all[at]);
                    }
                }
                let (mut counts, mut greedy) = ([0; 4], Vec::new());
                for scored in sorted(all.clone()) {
                    let category = categories.of_item[scored.item as usize];
                    let fits = category.is_none_or(|c| counts[c as usize] < categories.max);
                    if fits && greedy.len() < n {
                        category.into_iter().for_each(|c| counts[c as usize] += 1);
                        greedy.push(scored);
                    }
                }
                assert_eq!(list.into_sorted(), greedy, "round {round}, n {n}");
            }
        }
    }
}
