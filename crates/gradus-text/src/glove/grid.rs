//! The entries of a matrix cut into a grid of blocks, so that many steps of gradient descent run at once.
//!
//! Words and contexts are assigned at random to as many groups each. The blocks of a *round*, word group `a` with
//! context group `a + d`, share no row: they run in any order, on any number of threads, to the same result. After all
//! rounds every entry has had its turn. A block touches few rows, which the second cache holds.
//!
//! Reference: Gemulla, Nijkamp, Haas, Sismanis: Large-scale matrix factorization with distributed stochastic gradient
//! descent, 2011.

use gradus_base::parallel;
use gradus_base::random::Stream;
use gradus_data::Csr;
use gradus_kernel::Rows;
use gradus_kernel::sgd::{Entry, Extra, Movable};

/// The number of entries in a block, about, within the bounds below.
const BLOCK: usize = 1 << 14;
/// Fewer groups would leave threads without work, more would wait at the end of a round too often.
const GROUPS: std::ops::RangeInclusive<usize> = 16..=64;
/// Words whose entries take turns: their rows stay in the nearest cache.
const INTERLEAVED: usize = 32;

/// The number of groups: a function of the data alone.
pub(super) fn groups(n_words: usize, nnz: usize) -> usize {
    let wanted = (nnz as f64 / BLOCK as f64).sqrt() as usize;
    let wanted = wanted.next_power_of_two().clamp(*GROUPS.start(), *GROUPS.end());
    wanted.min(n_words).max(1)
}

/// Rows assigned at random to groups with about equal numbers of entries.
pub(super) struct Partition {
    /// The row at each position.
    pub(super) rows: Vec<u32>,
    /// The position of each row.
    pub(super) positions: Vec<u32>,
    /// The first position of each group, and the end.
    bounds: Vec<usize>,
}

impl Partition {
    /// `sizes` are the numbers of entries of the rows.
    pub(super) fn new(sizes: &[usize], groups: usize, stream: &mut Stream) -> Self {
        let (n, total) = (sizes.len(), sizes.iter().sum::<usize>());
        let mut rows: Vec<u32> = (0..n as u32).collect();
        stream.shuffle(&mut rows);
        let (mut positions, mut bounds, mut filled) = (vec![0; n], vec![0], 0);
        for (position, &row) in rows.iter().enumerate() {
            positions[row as usize] = position as u32;
            filled += sizes[row as usize];
            let full = filled * groups >= bounds.len() * total;
            // The groups to come need a row each, however the entries lie.
            let last_chance = n - position - 1 == groups - bounds.len();
            if bounds.len() < groups && (full || last_chance) {
                bounds.push(position + 1);
            }
        }
        bounds.push(n);
        Self { rows, positions, bounds }
    }

    /// The group of each row, and its position there.
    fn addresses(&self) -> Vec<(u32, u32)> {
        let mut addresses = vec![(0, 0); self.rows.len()];
        for (group, bound) in (0u32..).zip(self.bounds.windows(2)) {
            for (local, &row) in (0u32..).zip(&self.rows[bound[0]..bound[1]]) {
                addresses[row as usize] = (group, local);
            }
        }
        addresses
    }

    /// Cuts rows that lie in the order of the positions into their groups.
    fn split<'a>(&self, rows: &'a mut Rows, extras: &'a mut [Extra]) -> Vec<Movable<'a>> {
        let stride = rows.stride();
        let counts = || self.bounds.windows(2).map(|bound| bound[1] - bound[0]);
        let groups = parallel::cut(rows.as_mut_slice(), counts().map(|count| count * stride));
        let groups = groups.zip(parallel::cut(extras, counts()));
        groups.map(|(rows, extras)| Movable { rows, extras }).collect()
    }
}

/// The entries of a word group, those of each context group together, with their weights.
struct Band {
    entries: Vec<Entry>,
    weights: Vec<f32>,
    starts: Vec<usize>,
}

/// The entries in blocks.
pub(super) struct Grid {
    pub(super) words: Partition,
    pub(super) contexts: Partition,
    bands: Vec<Band>,
}

impl Grid {
    /// Cuts the entries of a matrix; `weight` gives the weight of each by its value.
    pub(super) fn new(
        matrix: &Csr<f32>,
        words: Partition,
        contexts: Partition,
        weight: impl Fn(f32) -> f32 + Sync,
    ) -> Self {
        let groups = words.bounds.len() - 1;
        let addresses = contexts.addresses();
        let bands = parallel::map(words.bounds.windows(2), |bound| {
            let rows = &words.rows[bound[0]..bound[1]];
            let mut starts = vec![0; groups + 1];
            for &row in rows {
                for &column in matrix.row(row as usize).0 {
                    starts[addresses[column as usize].0 as usize + 1] += 1;
                }
            }
            (0..groups).for_each(|group| starts[group + 1] += starts[group]);
            let mut ends = starts.clone();
            let mut entries = vec![Entry { user: 0, item: 0, value: 0.0 }; starts[groups]];
            let mut weights = vec![0.0; starts[groups]];
            for rows in rows.chunks(INTERLEAVED).zip((0u32..).step_by(INTERLEAVED)) {
                // A step has to wait for the one before it if that moved the same row; in turns the processor works on
                // several.
                let mut left: Vec<_> = (rows.1..)
                    .zip(rows.0)
                    .map(|(local, &row)| {
                        let (columns, values) = matrix.row(row as usize);
                        (local, columns.iter().zip(values))
                    })
                    .collect();
                while !left.is_empty() {
                    left.retain_mut(|(user, entries_of_row)| {
                        let Some((&column, &value)) = entries_of_row.next() else {
                            return false;
                        };
                        let (group, item) = addresses[column as usize];
                        let to = &mut ends[group as usize];
                        entries[*to] = Entry { user: *user, item, value };
                        weights[*to] = weight(value);
                        *to += 1;
                        true
                    });
                }
            }
            Band { entries, weights, starts }
        });
        Self { words, contexts, bands }
    }

    /// The number of groups of words, and of contexts.
    pub(super) fn groups(&self) -> usize {
        self.bands.len()
    }

    /// Runs all rounds in the order given: `work` gets the rows of a word group and a context group and the entries of
    /// both. Calls `after` with the results of each round in the order of the word groups, and ends early, with
    /// `false`, where it says so.
    pub(super) fn rounds<T: Send>(
        &self,
        (words, of_words): (&mut Rows, &mut [Extra]),
        (contexts, of_contexts): (&mut Rows, &mut [Extra]),
        order: &[usize],
        work: impl Fn(Movable<'_>, Movable<'_>, &[Entry], &[f32]) -> T + Sync,
        mut after: impl FnMut(usize, Vec<T>) -> bool,
    ) -> bool {
        let groups = self.groups();
        let mut words = self.words.split(words, of_words);
        let mut contexts = self.contexts.split(contexts, of_contexts);
        let mut turned = 0;
        for (done, &shift) in order.iter().enumerate() {
            contexts.rotate_left((shift + groups - turned) % groups);
            turned = shift;
            let pairs = words.iter_mut().zip(&mut contexts).enumerate();
            let results = parallel::map(pairs, |(group, (words, contexts))| {
                let band = &self.bands[group];
                let other = (group + shift) % groups;
                let range = band.starts[other]..band.starts[other + 1];
                let (entries, weights) = (&band.entries[range.clone()], &band.weights[range]);
                work(words.again(), contexts.again(), entries, weights)
            });
            if !after(done, results) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_its_turn_and_blocks_of_a_round_share_no_row() {
        for (n, each) in [(1usize, 1usize), (5, 3), (40, 11), (900, 60)] {
            let mut stream = Stream::new(n as u64, "grid", 0);
            let (mut indptr, mut indices) = (vec![0], Vec::new());
            for _ in 0..n {
                let count = stream.index(each.min(n) + 1);
                let row = stream.sample(n, count).unwrap();
                indices.extend(row.iter().map(|&at| at as u32));
                indptr.push(indices.len());
            }
            let values: Vec<f32> = (0..indices.len()).map(|at| at as f32).collect();
            let counts = Csr::new(n, indptr, indices, values).unwrap();
            let groups = groups(n, counts.nnz());
            let sizes = |of: &Csr<f32>| (0..n).map(|row| of.range(row).len()).collect::<Vec<_>>();
            let words = Partition::new(&sizes(&counts), groups, &mut stream);
            let contexts = Partition::new(&sizes(&counts.transpose()), groups, &mut stream);
            let grid = Grid::new(&counts, words, contexts, |value| -value);
            assert_eq!(grid.groups(), groups);
            // Rows know their number by their bias.
            let named = |partition: &Partition| -> Vec<Extra> {
                let extra = |&row: &u32| Extra { bias: row as f32, ..Extra::default() };
                partition.rows.iter().map(extra).collect()
            };
            let (mut of_words, mut of_contexts) = (named(&grid.words), named(&grid.contexts));
            let (mut left, mut right) = (Rows::zeros(n, 2), Rows::zeros(n, 2));
            let mut found = Vec::new();
            let done = grid.rounds(
                (&mut left, &mut of_words),
                (&mut right, &mut of_contexts),
                &stream.permutation(groups),
                |words, contexts, entries, weights| {
                    let named = |entry: &Entry, weight: &f32| {
                        let word = words.extras[entry.user as usize].bias as u32;
                        let context = contexts.extras[entry.item as usize].bias as u32;
                        assert_eq!(*weight, -entry.value);
                        (word, context, entry.value as u32)
                    };
                    let pairs = entries.iter().zip(weights);
                    pairs.map(|(entry, weight)| named(entry, weight)).collect::<Vec<_>>()
                },
                |_, blocks| {
                    found.extend(blocks.into_iter().flatten());
                    true
                },
            );
            assert!(done);
            found.sort_unstable();
            let want: Vec<_> = (0..n)
                .flat_map(|row| {
                    let (columns, values) = counts.row(row);
                    let pairs = columns.iter().zip(values);
                    pairs.map(move |(&column, &value)| (row as u32, column, value as u32))
                })
                .collect();
            assert_eq!(found, want);
        }
    }
}
