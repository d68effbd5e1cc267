//! Ratings cut into a grid of blocks, so that many steps of gradient descent run at once.
//!
//! Users and items are assigned at random to as many groups each. The blocks of a *round*, user group
//! `a` with item group `a + d`, share no row: they run in any order, on any number of threads, to
//! the same result. After all rounds every rating has had its turn.
//!
//! Reference: Gemulla, Nijkamp, Haas, Sismanis: Large-scale matrix factorization with distributed
//! stochastic gradient descent, 2011.

use gradus_base::parallel;
use gradus_base::random::Stream;
use gradus_data::{Csr, Ratings};
use gradus_kernel::Rows;
use gradus_kernel::sgd::{Entry, Extra, Movable};

/// The number of ratings in a block, about, within the bounds below.
const BLOCK: usize = 1 << 14;
/// Fewer groups would leave threads without work, more would wait at the end of a round too often.
const GROUPS: std::ops::RangeInclusive<usize> = 16..=64;
/// Users whose values take turns: their rows stay in the nearest cache.
const INTERLEAVED: usize = 32;

/// The number of groups: a function of the data alone.
pub(crate) fn groups(data: &Ratings) -> usize {
    let wanted = (data.len() as f64 / BLOCK as f64).sqrt() as usize;
    wanted
        .next_power_of_two()
        .clamp(*GROUPS.start(), *GROUPS.end())
        .min(data.n_users())
        .min(data.n_items())
        .max(1)
}

/// Rows assigned at random to groups.
pub(crate) struct Partition {
    /// Row at each position.
    pub(crate) rows: Vec<u32>,
    /// Position of each row.
    pub(crate) positions: Vec<u32>,
    /// First position of each group, and the end.
    pub(crate) bounds: Vec<usize>,
}

impl Partition {
    /// Groups with about equal numbers of ratings.
    pub(crate) fn by_ratings(side: &Csr, groups: usize, stream: &mut Stream) -> Self {
        Self::new(side.n_rows(), side.nnz(), |row| side.range(row).len(), groups, stream)
    }

    /// Groups with equal numbers of rows, or one more: every set of rows is as likely as another
    /// to be a group.
    pub(crate) fn by_rows(n: usize, groups: usize, stream: &mut Stream) -> Self {
        Self::new(n, n, |_| 1, groups, stream)
    }

    fn new(
        n: usize,
        total: usize,
        size: impl Fn(usize) -> usize,
        groups: usize,
        stream: &mut Stream,
    ) -> Self {
        let mut rows: Vec<u32> = (0..n as u32).collect();
        stream.shuffle(&mut rows);
        let mut positions = vec![0; n];
        let mut bounds = vec![0];
        let mut filled = 0;
        for (position, &row) in rows.iter().enumerate() {
            positions[row as usize] = position as u32;
            filled += size(row as usize);
            let full = filled * groups >= bounds.len() * total;
            // The groups to come need a row each, however the ratings lie.
            let last_chance = n - position - 1 == groups - bounds.len();
            if bounds.len() < groups && (full || last_chance) {
                bounds.push(position + 1);
            }
        }
        bounds.push(n);
        Self { rows, positions, bounds }
    }

    /// Group and position in the group of each row.
    fn addresses(&self) -> Vec<(u32, u32)> {
        let mut addresses = vec![(0, 0); self.rows.len()];
        for (group, bound) in self.bounds.windows(2).enumerate() {
            for (local, &row) in self.rows[bound[0]..bound[1]].iter().enumerate() {
                addresses[row as usize] = (group as u32, local as u32);
            }
        }
        addresses
    }

    /// Cuts rows that lie in the order of the positions into their groups.
    pub(crate) fn split<'a>(
        &self,
        rows: &'a mut Rows,
        extras: &'a mut [Extra],
    ) -> Vec<Movable<'a>> {
        let stride = rows.stride();
        let counts = || self.bounds.windows(2).map(|bound| bound[1] - bound[0]);
        let groups = parallel::cut(rows.as_mut_slice(), counts().map(|count| count * stride));
        let groups = groups.zip(parallel::cut(extras, counts()));
        groups.map(|(rows, extras)| Movable { rows, extras }).collect()
    }
}

/// The ratings of a user group: those of each item group together, in the order of the users.
pub(crate) struct Band {
    entries: Vec<Entry>,
    weights: Option<Vec<f32>>,
    starts: Vec<usize>,
}

/// The ratings in blocks.
pub(crate) struct Grid {
    bands: Vec<Band>,
}

impl Grid {
    /// Cuts the ratings, their values passed through `value`. Those of weight 0, and those it gives
    /// `None` for, are left out.
    pub(crate) fn new(
        data: &Ratings,
        users: &Partition,
        items: &Partition,
        value: impl Fn(f32) -> Option<f32> + Sync,
    ) -> Self {
        let groups = users.bounds.len() - 1;
        let addresses = items.addresses();
        let by_user = data.by_user();
        let weights = data.weights_by_user();
        let band = |bound: &[usize]| {
            let rows = &users.rows[bound[0]..bound[1]];
            let mut starts = vec![0; groups + 1];
            let counted = |at: usize| {
                let weighty = weights.is_none_or(|weights| weights[at] > 0.0);
                value(by_user.values()[at]).filter(|_| weighty)
            };
            for &row in rows {
                for at in by_user.range(row as usize) {
                    let group = addresses[by_user.indices()[at] as usize].0;
                    starts[group as usize + 1] += usize::from(counted(at).is_some());
                }
            }
            for group in 0..groups {
                starts[group + 1] += starts[group];
            }
            let mut ends = starts.clone();
            let total = starts[groups];
            let mut entries = vec![Entry { user: 0, item: 0, value: 0.0 }; total];
            let mut kept = weights.map(|_| vec![0.0; total]);
            for (user, &row) in (0u32..).zip(rows) {
                for at in by_user.range(row as usize) {
                    let Some(value) = counted(at) else { continue };
                    let (group, item) = addresses[by_user.indices()[at] as usize];
                    let to = &mut ends[group as usize];
                    entries[*to] = Entry { user, item, value };
                    if let (Some(kept), Some(weights)) = (&mut kept, weights) {
                        kept[*to] = weights[at];
                    }
                    *to += 1;
                }
            }
            Band { entries, weights: kept, starts }
        };
        Self { bands: parallel::map(users.bounds.windows(2), band) }
    }

    /// The same with the values of [`INTERLEAVED`] users at a time taken in turns. A step has to wait for
    /// the one before it if that moved the same row; in turns the processor works on several.
    pub(crate) fn interleaved(mut self) -> Self {
        parallel::each(&mut self.bands, |band| {
            let mut order: Vec<usize> = Vec::with_capacity(band.entries.len());
            for block in band.starts.windows(2) {
                let entries = &band.entries[block[0]..block[1]];
                let mut first = block[0];
                let mut ranges = Vec::new();
                for run in entries.chunk_by(|a, b| a.user == b.user) {
                    ranges.push(first..first + run.len());
                    first += run.len();
                }
                for turn in ranges.chunks_mut(INTERLEAVED) {
                    loop {
                        let held_out = order.len();
                        order.extend(turn.iter_mut().filter_map(Iterator::next));
                        if order.len() == held_out {
                            break;
                        }
                    }
                }
            }
            band.entries = order.iter().map(|&at| band.entries[at]).collect();
            if let Some(weights) = &mut band.weights {
                *weights = order.iter().map(|&at| weights[at]).collect();
            }
        });
        self
    }

    /// The number of groups of users, and of items.
    pub(crate) fn groups(&self) -> usize {
        self.bands.len()
    }

    /// The ratings of a user group and an item group, with their weights.
    pub(crate) fn block(&self, users: usize, items: usize) -> (&[Entry], Option<&[f32]>) {
        let band = &self.bands[users];
        let range = band.starts[items]..band.starts[items + 1];
        (&band.entries[range.clone()], band.weights.as_ref().map(|weights| &weights[range]))
    }
}

/// Runs all rounds in the order given: `work` gets the numbers of the user group and the item group, and
/// their rows. Calls `after` with the results of each round in the order of the user groups, and
/// ends early, with `false`, where it says so.
pub(crate) fn rounds<T: Send>(
    mut users: Vec<Movable<'_>>,
    mut items: Vec<Movable<'_>>,
    order: &[usize],
    work: impl Fn(usize, usize, Movable<'_>, Movable<'_>) -> T + Sync,
    mut after: impl FnMut(usize, Vec<T>) -> bool,
) -> bool {
    let groups = users.len();
    let mut turned = 0;
    for (done, &shift) in order.iter().enumerate() {
        items.rotate_left((shift + groups - turned) % groups);
        turned = shift;
        let pairs = users.iter_mut().zip(&mut items).enumerate();
        let results = parallel::map(pairs, |(group, (users, items))| {
            work(group, (group + shift) % groups, users.again(), items.again())
        });
        if !after(done, results) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::make::RatingsSpec;

    #[test]
    fn every_rating_is_in_one_block_and_blocks_of_a_round_share_nothing() {
        for (n_users, n_items, count) in [(300, 90, 6000), (3, 5, 12), (1, 8, 8), (40, 17, 40)] {
            let data = RatingsSpec::new(n_users, n_items, count).make(1).unwrap().ratings;
            let groups = groups(&data);
            let users = Partition::by_ratings(data.by_user(), groups, &mut Stream::new(1, "u", 0));
            let items = Partition::by_ratings(data.by_item(), groups, &mut Stream::new(1, "i", 0));
            for partition in [&users, &items] {
                assert_eq!(partition.bounds.len(), groups + 1);
                assert!(partition.bounds.windows(2).all(|b| b[0] < b[1]), "{:?}", partition.bounds);
                assert!(
                    partition
                        .positions
                        .iter()
                        .enumerate()
                        .all(|(r, &p)| partition.rows[p as usize] == r as u32)
                );
            }
            let grid = Grid::new(&data, &users, &items, Some).interleaved();
            let mut found = Vec::new();
            for a in 0..groups {
                for b in 0..groups {
                    for entry in grid.block(a, b).0 {
                        let user = users.rows[users.bounds[a] + entry.user as usize];
                        let item = items.rows[items.bounds[b] + entry.item as usize];
                        found.push((user, item, entry.value.to_bits()));
                    }
                }
            }
            found.sort_unstable();
            let expected: Vec<_> =
                data.iter().map(|r| (r.user, r.item, r.value.to_bits())).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn groups_have_about_equal_numbers_of_ratings() {
        let data = RatingsSpec::new(4000, 1500, 200_000).make(2).unwrap().ratings;
        let partition = Partition::by_ratings(data.by_user(), 16, &mut Stream::new(1, "u", 0));
        for bound in partition.bounds.windows(2) {
            let count: usize = partition.rows[bound[0]..bound[1]]
                .iter()
                .map(|&row| data.by_user().range(row as usize).len())
                .sum();
            assert!((count as f64 / (200_000.0 / 16.0) - 1.0).abs() < 0.2, "{count}");
        }
    }

    #[test]
    fn rounds_visit_every_pair_of_groups_once() {
        let (mut users, mut items) = (Rows::zeros(10, 3), Rows::zeros(8, 3));
        let (mut u, mut i) = (vec![Extra::default(); 10], vec![Extra::default(); 8]);
        let partition = |n: usize, bounds: [usize; 5]| Partition {
            rows: (0..n as u32).collect(),
            positions: (0..n as u32).collect(),
            bounds: bounds.to_vec(),
        };
        for (item, extra) in i.iter_mut().enumerate() {
            extra.penalty = item as f32;
        }
        let groups = partition(8, [0, 1, 3, 6, 8]);
        let mut visits = Vec::new();
        let done = rounds(
            partition(10, [0, 2, 4, 6, 10]).split(&mut users, &mut u),
            groups.split(&mut items, &mut i),
            &[2, 0, 3, 1],
            |a, b, users, items| (a, b, users.extras.len(), items.extras[0].penalty),
            |_, mut results| {
                visits.append(&mut results);
                true
            },
        );
        assert!(done);
        for &(a, b, n, first) in &visits {
            assert_eq!((n, first), ([2, 2, 2, 4][a], groups.bounds[b] as f32));
        }
        let mut pairs: Vec<_> = visits.iter().map(|v| (v.0, v.1)).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, (0..16).map(|n| (n / 4, n % 4)).collect::<Vec<_>>());
    }
}
