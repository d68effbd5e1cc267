//! Tokens cut into a grid of blocks, so that many of them are sampled at once.
//!
//! Documents and words are dealt into as many groups each. The blocks of a *round*, document group `a` with word
//! group `a + r`, share neither a document nor a word: they run in any order, on any number of threads, to the same
//! result. After all rounds every token has had its turn. Only the totals of the topics are shared; a block works
//! on a copy of them from the start of the round.

use gradus_base::parallel;
use gradus_data::Csr;

/// The number of tokens in a block, about, within the bounds below.
const BLOCK: usize = 1 << 14;
/// More groups would wait at the end of a round too often.
const MOST_GROUPS: usize = 32;

/// The group and the place in the group of each row.
pub(super) struct Deal {
    pub(super) places: Vec<(u32, u32)>,
    /// The rows of each group, ascending.
    pub(super) groups: Vec<Vec<u32>>,
}

impl Deal {
    /// Deals rows of these sizes into groups of about equal size: the largest first, each to the smallest group.
    fn new(sizes: &[u64], n_groups: usize) -> Self {
        let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
        order.sort_by_key(|&row| (std::cmp::Reverse(sizes[row as usize]), row));
        let mut loads = vec![(0u64, 0usize); n_groups];
        let mut groups = vec![Vec::new(); n_groups];
        for row in order {
            let smallest = (0..n_groups).min_by_key(|&group| loads[group]).unwrap_or(0);
            loads[smallest].0 += sizes[row as usize];
            loads[smallest].1 += 1;
            groups[smallest].push(row);
        }
        let mut places = vec![(0, 0); sizes.len()];
        for (group, rows) in (0u32..).zip(&mut groups) {
            rows.sort_unstable();
            for (place, &row) in (0u32..).zip(rows.iter()) {
                places[row as usize] = (group, place);
            }
        }
        Self { places, groups }
    }
}

/// The tokens of a group of documents and a group of words, word by word.
pub(super) struct Block {
    /// The place of each word in its group, and the end of its tokens.
    pub(super) words: Vec<(u32, u32)>,
    /// The place of the document of each token in its group.
    pub(super) docs: Vec<u32>,
}

/// All tokens of a corpus.
pub(super) struct Grid {
    pub(super) docs: Deal,
    pub(super) words: Deal,
    /// The number of tokens of each document and of each word.
    pub(super) doc_sizes: Vec<u64>,
    pub(super) word_sizes: Vec<u64>,
    /// Block of document group `a` and word group `b` at `a · groups + b`.
    pub(super) blocks: Vec<Block>,
    pub(super) n_tokens: u64,
}

impl Grid {
    /// Cuts counts, documents × words, all of which must be whole numbers below 2³².
    pub(super) fn new(counts: &Csr<f64>) -> Self {
        let mut word_sizes = vec![0u64; counts.n_cols()];
        let mut doc_sizes = vec![0u64; counts.n_rows()];
        for (doc, size) in doc_sizes.iter_mut().enumerate() {
            let (words, values) = counts.row(doc);
            for (&word, &count) in words.iter().zip(values) {
                word_sizes[word as usize] += count as u64;
                *size += count as u64;
            }
        }
        let n_tokens: u64 = doc_sizes.iter().sum();
        let wanted = (n_tokens as f64 / BLOCK as f64).sqrt() as usize;
        let n_groups = (wanted + 1).next_power_of_two() / 2;
        let n_groups = n_groups.min(MOST_GROUPS).min(counts.n_rows()).min(counts.n_cols()).max(1);
        let docs = Deal::new(&doc_sizes, n_groups);
        let words = Deal::new(&word_sizes, n_groups);
        let bands = parallel::map(&docs.groups, |band| {
            // Entries by word group, then by word; documents ascend in each.
            let mut entries: Vec<Vec<(u32, u32, u32)>> = vec![Vec::new(); n_groups];
            for (place, &doc) in (0u32..).zip(band) {
                let (columns, values) = counts.row(doc as usize);
                for (&word, &count) in columns.iter().zip(values) {
                    let (group, at) = words.places[word as usize];
                    if count > 0.0 {
                        entries[group as usize].push((at, place, count as u32));
                    }
                }
            }
            let block = |mut entries: Vec<(u32, u32, u32)>| {
                entries.sort_unstable();
                let n = entries.iter().map(|&(_, _, count)| count as usize).sum();
                let mut block = Block { words: Vec::new(), docs: Vec::with_capacity(n) };
                for (word, doc, count) in entries {
                    block.docs.extend(std::iter::repeat_n(doc, count as usize));
                    let end = block.docs.len() as u32;
                    match block.words.last_mut() {
                        Some(last) if last.0 == word => last.1 = end,
                        _ => block.words.push((word, end)),
                    }
                }
                block
            };
            entries.into_iter().map(block).collect::<Vec<Block>>()
        });
        let blocks = bands.into_iter().flatten().collect();
        Self { docs, words, doc_sizes, word_sizes, blocks, n_tokens }
    }

    pub(super) fn n_groups(&self) -> usize {
        self.docs.groups.len()
    }
}

/// The topics that occur in each row of a group with their counts, in any order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lists {
    /// The start of the list of each row; it has place for as many topics as the row can have.
    starts: Vec<usize>,
    lengths: Vec<u32>,
    entries: Vec<(u32, u32)>,
}

impl Lists {
    /// Empty lists of rows with this many tokens.
    pub(super) fn new(sizes: impl Iterator<Item = u64>, n_topics: usize) -> Self {
        let mut starts = vec![0];
        for size in sizes {
            let last = starts[starts.len() - 1];
            starts.push(last + size.min(n_topics as u64) as usize);
        }
        let n = starts[starts.len() - 1];
        Self { lengths: vec![0; starts.len() - 1], entries: vec![(0, 0); n], starts }
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> &[(u32, u32)] {
        let start = self.starts[row];
        &self.entries[start..start + self.lengths[row] as usize]
    }

    /// All the place of a row, and the number of topics in it.
    #[inline]
    pub(super) fn row_mut(&mut self, row: usize) -> (&mut [(u32, u32)], &mut u32) {
        let range = self.starts[row]..self.starts[row + 1];
        (&mut self.entries[range], &mut self.lengths[row])
    }

    /// Puts every list in the order of the topics: what is drawn depends on the order.
    pub(super) fn sort(&mut self) {
        for row in 0..self.lengths.len() {
            let (entries, length) = self.row_mut(row);
            entries[..*length as usize].sort_unstable();
        }
    }

    /// Adds a token of a topic.
    pub(super) fn add(&mut self, row: usize, topic: u32) {
        let (entries, length) = self.row_mut(row);
        match entries[..*length as usize].iter_mut().find(|entry| entry.0 == topic) {
            Some(entry) => entry.1 += 1,
            None => {
                entries[*length as usize] = (topic, 1);
                *length += 1;
            }
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        (0..self.lengths.len()).map(|row| self.get(row))
    }
}
