//! The counts of the words near each word, row by row.

use super::{ContextSide, END};
use gradus_base::{Result, parallel};
use gradus_kernel::prefetch;

/// The prefetch distance, in places of words.
const AHEAD: usize = 8;
/// A block of rows has at most about this many entries, if there is no memory limit.
pub(super) const BLOCK: u64 = 1 << 18;
/// A block of rows has at least about this many entries.
const LEAST_BLOCK: u64 = 1 << 8;
/// Blocks that are worked on before their entries are handed on: a constant, so that the memory does not depend on the
/// number of threads.
const AT_ONCE: usize = 16;

/// The positions of each word in a part of the sentences.
pub(super) struct Index<'a> {
    words: &'a [u32],
    /// The places of all words, those of word 0 first, ascending for each word.
    places: Vec<u32>,
    /// The first of the places of each word, and the end.
    starts: Vec<usize>,
}

impl<'a> Index<'a> {
    /// Memory for each place.
    pub(super) const BYTES_PER_PLACE: u64 = 4;

    pub(super) fn new(words: &'a [u32], n_words: usize) -> Self {
        let mut starts = vec![0usize; n_words + 1];
        words.iter().filter(|&&word| word != END).for_each(|&word| starts[word as usize + 1] += 1);
        (0..n_words).for_each(|word| starts[word + 1] += starts[word]);
        let mut places = vec![0u32; starts[n_words]];
        let mut next = starts.clone();
        for (place, &word) in (0u32..).zip(words) {
            if word != END {
                places[next[word as usize]] = place;
                next[word as usize] += 1;
            }
        }
        Self { words, places, starts }
    }

    fn of(&self, word: usize) -> &[u32] {
        &self.places[self.starts[word]..self.starts[word + 1]]
    }
}

/// Entries of consecutive rows, their columns ascending.
#[derive(Default)]
pub(super) struct Entries {
    /// The end of each row.
    pub(super) ends: Vec<usize>,
    pub(super) columns: Vec<u32>,
    /// Weights in units, summed.
    pub(super) sums: Vec<u64>,
}

/// The sums of one row, by column.
pub(super) struct Sums {
    sums: Vec<u64>,
    /// The columns that are not 0, in the order in which they came.
    touched: Vec<u32>,
    /// A bit for each column, to sort many of them.
    bits: Vec<u64>,
}

impl Sums {
    pub(super) fn new(n_words: usize) -> Self {
        let (sums, bits) = (vec![0; n_words], vec![0; n_words.div_ceil(64)]);
        Self { sums, bits, touched: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, column: u32, weight: u64) {
        let sum = &mut self.sums[column as usize];
        if *sum == 0 {
            self.touched.push(column);
        }
        *sum = sum.saturating_add(weight);
    }

    /// Moves the row to the end of the entries, and leaves the sums at 0.
    pub(super) fn take(&mut self, entries: &mut Entries) {
        let first = entries.columns.len();
        // To look at all bits takes as long as to sort about so many columns.
        if self.touched.len() * 16 < self.bits.len() {
            self.touched.sort_unstable();
            entries.columns.extend_from_slice(&self.touched);
        } else {
            for &column in &self.touched {
                self.bits[column as usize / 64] |= 1 << (column % 64);
            }
            for (at, word) in (0u32..).zip(&mut self.bits) {
                let mut left = std::mem::take(word);
                while left != 0 {
                    entries.columns.push(at * 64 + left.trailing_zeros());
                    left &= left - 1;
                }
            }
        }
        self.touched.clear();
        let of_columns = entries.columns[first..].iter();
        entries.sums.extend(of_columns.map(|&at| std::mem::take(&mut self.sums[at as usize])));
        entries.ends.push(entries.columns.len());
    }
}

/// How rows are counted.
pub(super) struct Rows {
    pub(super) n_words: usize,
    pub(super) side: ContextSide,
    /// The weight of each distance from 1 on, in units.
    pub(super) weights: Vec<u64>,
    /// A block of rows has about this many entries.
    pub(super) block: u64,
}

impl Rows {
    /// The same with blocks small enough for a memory limit in bytes.
    pub(super) fn within(self, limit: u64) -> Self {
        let block = limit / (8 * 12 * AT_ONCE as u64);
        Self { block: block.clamp(LEAST_BLOCK, BLOCK), ..self }
    }

    /// Memory that counting needs however long the sentences are: sums by column, places by word, and entries before
    /// they are handed on.
    pub(super) fn fixed_bytes(&self) -> u64 {
        let n = self.n_words as u64;
        let sums = 12 * n + n / 8;
        AT_ONCE as u64 * (sums + 12 * (self.block + n)) + 16 * n
    }

    /// Counts all rows in order, on all threads, and hands their entries on in blocks.
    pub(super) fn each(
        &self,
        index: &Index<'_>,
        mut put: impl FnMut(Entries) -> Result<()>,
    ) -> Result<()> {
        let blocks = self.blocks(index);
        for blocks in blocks.windows(2).collect::<Vec<_>>().chunks(AT_ONCE) {
            let counted = parallel::map_with(
                blocks,
                || Sums::new(self.n_words),
                |sums, block| {
                    let mut entries = Entries::default();
                    for word in block[0]..block[1] {
                        self.row(index, word, sums);
                        sums.take(&mut entries);
                    }
                    entries
                },
            );
            counted.into_iter().try_for_each(&mut put)?;
        }
        Ok(())
    }

    /// The first row of each block, and the end.
    fn blocks(&self, index: &Index<'_>) -> Vec<usize> {
        let in_window = match self.side {
            ContextSide::Symmetric => 2 * self.weights.len() as u64,
            ContextSide::Left | ContextSide::Right => self.weights.len() as u64,
        };
        let (mut blocks, mut filled) = (vec![0], 0);
        for word in 0..self.n_words {
            filled += (in_window * index.of(word).len() as u64).min(self.n_words as u64);
            if filled >= self.block && word + 1 < self.n_words {
                blocks.push(word + 1);
                filled = 0;
            }
        }
        blocks.push(self.n_words);
        blocks
    }

    fn row(&self, index: &Index<'_>, word: usize, sums: &mut Sums) {
        let (words, places) = (index.words, index.of(word));
        let (before, after) = match self.side {
            ContextSide::Symmetric => (true, true),
            ContextSide::Left => (true, false),
            ContextSide::Right => (false, true),
        };
        let reach = self.weights.len();
        for (at, &place) in places.iter().enumerate() {
            let place = place as usize;
            if let Some(&next) = places.get(at + AHEAD) {
                prefetch(words, (next as usize).saturating_sub(reach), 2 * reach + 1);
            }
            if before {
                let window = words[place.saturating_sub(reach)..place].iter().rev();
                for (&other, &weight) in window.zip(&self.weights) {
                    if other == END {
                        break;
                    }
                    sums.add(other, weight);
                }
            }
            if after {
                for (&other, &weight) in words[place + 1..].iter().zip(&self.weights) {
                    if other == END {
                        break;
                    }
                    sums.add(other, weight);
                }
            }
        }
    }
}
