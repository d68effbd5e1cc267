//! The sparsity pattern of planted ratings: how many ratings each user gives, and of which items.

use gradus_base::random::{Alias, Stream};
use gradus_base::{Error, Result};

/// Cuts `total` into whole parts, each at least 1 and at most `cap`, in proportion to `weights`
/// as far as those bounds allow.
///
/// The caller has checked that `weights.len() <= total <= weights.len() * cap`.
pub(super) fn apportion(total: usize, weights: &[f64], cap: usize) -> Vec<usize> {
    let n = weights.len();
    let mut parts = vec![1usize; n];
    let mut open: Vec<usize> = if cap > 1 { (0..n).collect() } else { Vec::new() };
    let mut left = total - n;
    // Whoever would go over the cap gets the cap; what is over goes to the others, again.
    while left > 0 {
        let weight: f64 = open.iter().map(|&part| weights[part]).sum();
        let rate = left as f64 / weight;
        let before = open.len();
        open.retain(|&part| {
            let full = rate * weights[part] >= (cap - 1) as f64;
            if full {
                let more = (cap - 1).min(left);
                parts[part] += more;
                left -= more;
            }
            !full
        });
        if open.len() < before {
            continue;
        }
        // Nobody is over: whole shares first, then one each to the largest fractions.
        let mut fractions: Vec<(f64, usize)> = Vec::with_capacity(open.len());
        for &part in &open {
            let share = rate * weights[part];
            let whole = (share as usize).min(left);
            parts[part] += whole;
            left -= whole;
            fractions.push((share.fract(), part));
        }
        fractions.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        while left > 0 {
            for &(_, part) in &fractions {
                if left > 0 && parts[part] < cap {
                    parts[part] += 1;
                    left -= 1;
                }
            }
        }
    }
    parts
}

/// The items and how likely each is to be picked, by genre.
///
/// An item's weight for one user is its popularity times the user's liking of its genre, so an
/// item is drawn in constant time: first the genre, then the item within it.
pub(super) struct Catalogue {
    popularity: Vec<f64>,
    genre: Vec<u32>,
    /// Per genre: its items, its share of all popularity, and the table to draw from; `None` for
    /// a genre without items.
    genres: Vec<Option<(Vec<u32>, f64, Alias)>>,
}

/// Memory that the choices of one user after the other reuse.
#[derive(Default)]
pub(super) struct Scratch {
    /// An open-addressed set of items + 1; 0 is an empty slot.
    set: Vec<u32>,
    race: Vec<(f64, u32)>,
}

impl Scratch {
    fn clear(&mut self, n: usize) {
        self.set.clear();
        self.set.resize((2 * n).next_power_of_two(), 0);
    }

    /// Whether `item` was not in the set before.
    fn insert(&mut self, item: u32) -> bool {
        let mask = self.set.len() - 1;
        let mut slot = (item.wrapping_mul(0x9e37_79b1) >> 7) as usize & mask;
        loop {
            match self.set[slot] {
                0 => {
                    self.set[slot] = item + 1;
                    return true;
                }
                taken if taken == item + 1 => return false,
                _ => slot = (slot + 1) & mask,
            }
        }
    }
}

impl Catalogue {
    pub(super) fn new(popularity: Vec<f64>, genre: Vec<u32>, n_genres: usize) -> Result<Self> {
        let mut members = vec![Vec::new(); n_genres];
        for (item, &genre) in (0u32..).zip(&genre) {
            members[genre as usize].push(item);
        }
        let mut genres = Vec::with_capacity(n_genres);
        for items in members {
            if items.is_empty() {
                genres.push(None);
                continue;
            }
            let weights: Vec<f64> = items.iter().map(|&item| popularity[item as usize]).collect();
            genres.push(Some((items, weights.iter().sum(), Alias::new(&weights)?)));
        }
        if genres.iter().all(Option::is_none) {
            return Err(Error::data("no items to choose from"));
        }
        Ok(Self { popularity, genre, genres })
    }

    /// Adds items to `chosen` until there are `n`, and sorts it. `liking` has a factor for each
    /// genre; the items already in `chosen` are kept and not drawn again.
    ///
    /// The law is that of drawing one by one, each time among those left, by weight.
    pub(super) fn choose(
        &self,
        n: usize,
        liking: &[f64],
        chosen: &mut Vec<u32>,
        stream: &mut Stream,
        scratch: &mut Scratch,
    ) {
        scratch.clear(n);
        for &item in chosen.iter() {
            scratch.insert(item);
        }
        // Drawing until something new comes is quick while little is taken; a dense row, or one
        // whose popular items are used up, is drawn by the race below instead.
        if n <= self.popularity.len() / 16 {
            let share = |genre: usize| self.genres[genre].as_ref().map_or(0.0, |g| g.1);
            let total: f64 = (0..self.genres.len()).map(|g| share(g) * liking[g]).sum();
            let mut tries = 64 + 16 * n;
            while chosen.len() < n && tries > 0 {
                tries -= 1;
                let mut point = stream.uniform() * total;
                let mut pick = None;
                for (genre, catalogue) in self.genres.iter().enumerate() {
                    if let Some(catalogue) = catalogue {
                        pick = Some(catalogue);
                        point -= catalogue.1 * liking[genre];
                        if point < 0.0 {
                            break;
                        }
                    }
                }
                let (items, _, table) = pick.expect("one genre has items");
                let item = items[table.sample(stream)];
                if scratch.insert(item) {
                    chosen.push(item);
                }
            }
        }
        if chosen.len() < n {
            self.race(n, liking, chosen, stream, scratch);
        }
        chosen.sort_unstable();
    }

    /// The rest at once: every item runs with an exponential time of rate its weight, and the
    /// first ones in are a sample of exactly the same law (Efraimidis and Spirakis 2006).
    fn race(
        &self,
        n: usize,
        liking: &[f64],
        chosen: &mut Vec<u32>,
        stream: &mut Stream,
        scratch: &mut Scratch,
    ) {
        let mut race = std::mem::take(&mut scratch.race);
        race.clear();
        for (item, (&popularity, &genre)) in (0u32..).zip(self.popularity.iter().zip(&self.genre)) {
            // Everyone draws, taken or not: the stream then does not depend on what was taken.
            let time = stream.exponential() / (popularity * liking[genre as usize]);
            race.push((time, item));
        }
        chosen.sort_unstable();
        race.retain(|(_, item)| chosen.binary_search(item).is_err());
        let more = n - chosen.len();
        if more < race.len() {
            race.select_nth_unstable_by(more, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        chosen.extend(race[..more].iter().map(|&(_, item)| item));
        scratch.race = race;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_keep_their_bounds() {
        for (total, weights, cap) in [
            (10, vec![1.0, 1.0, 8.0], 10),
            (10, vec![1.0, 1.0, 1e9], 5),
            (30, vec![1.0, 2.0, 3.0], 10),
            (3, vec![5.0, 1.0, 1.0], 10),
            (29, vec![1e-9, 1.0, 1e9], 10),
            (7, vec![1.0; 7], 1),
            (1001, vec![0.3; 13], 400),
        ] {
            let parts = apportion(total, &weights, cap);
            assert_eq!(parts.iter().sum::<usize>(), total, "{weights:?}");
            assert!(parts.iter().all(|&part| (1..=cap).contains(&part)), "{parts:?}");
        }
        assert_eq!(apportion(103, &[1.0, 3.0, 6.0], 1000), [11, 31, 61]);
    }

    /// The two ways to draw follow one law: how often each item is chosen agrees.
    #[test]
    fn rejection_and_race_agree() {
        let n_items = 64;
        let popularity = gradus_base::random::power_law_weights(n_items, 1.0, 0.0);
        let genre = (0..n_items as u32).map(|item| item % 3).collect();
        let catalogue = Catalogue::new(popularity, genre, 4).unwrap();
        let liking = [1.0, 0.5, 2.0, 1.0];
        let mut scratch = Scratch::default();
        let mut counts = [[0f64; 64]; 2];
        let runs = 20_000;
        for run in 0..runs {
            let mut stream = Stream::new(1, "agree", run);
            for (way, counts) in counts.iter_mut().enumerate() {
                let mut chosen = vec![5];
                if way == 0 {
                    catalogue.choose(4, &liking, &mut chosen, &mut stream, &mut scratch);
                } else {
                    catalogue.race(4, &liking, &mut chosen, &mut stream, &mut scratch);
                }
                assert_eq!(chosen.len(), 4);
                chosen.iter().for_each(|&item| counts[item as usize] += 1.0);
            }
        }
        assert_eq!(counts[0][5], runs as f64);
        for (item, (a, b)) in counts[0].iter().zip(counts[1]).enumerate() {
            assert!((a - b).abs() <= 5.0 * (a + b).sqrt(), "item {item}: {a} and {b}");
        }
    }

    #[test]
    fn everything_can_be_chosen() {
        let weights: Vec<f64> = (0..100).map(|item| (-30.0 * item as f64).exp()).collect();
        let catalogue = Catalogue::new(weights, vec![0; 100], 1).unwrap();
        let mut stream = Stream::new(1, "all", 0);
        for n in [1, 6, 100] {
            let mut chosen = Vec::new();
            catalogue.choose(n, &[1.0], &mut chosen, &mut stream, &mut Scratch::default());
            assert_eq!(chosen.len(), n);
            assert!(chosen.is_sorted_by(|a, b| a < b));
        }
    }
}
